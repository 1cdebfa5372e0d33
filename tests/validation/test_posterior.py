"""Runs of one's own move the catalog's values as far as they can tell, and what to run next is worth most."""

from dataclasses import replace

import numpy as np
import pytest

from coopt.instance.texts import InstanceError
from coopt.validation.batches import batches_of, predicted_s
from coopt.validation.facts import FitSet
from coopt.validation.fitting import errors_of
from coopt.validation.own_calibration import Prediction, conditioned, next_run, own_calibration_of, worth
from coopt.validation.posterior import COMMON, posterior_of
from coopt.validation.runs import runs_among
from coopt.validation.settings import Settings

HOPPER = FitSet(generation="hopper", parameters=("gemm", "hbm", "kernel_s", "attention"))
ONE = FitSet(generation="hopper", parameters=("gemm",))
SPLITS = [(1, 4, 16), (4, 4, 4), (8, 2, 4), (8, 1, 8), (2, 8, 4), (4, 2, 8)]


@pytest.fixture
def runs(run):
    """Twelve runs whose measured times are what the model says."""
    found = [
        run(id=f"mine-{t}-{p}", tp=t, pp=p, dp=d, interleave=1, hidden=hidden, head_dim=hidden // 64, ffn=3 * hidden)
        for hidden in (8192, 2048)
        for t, p, d in SPLITS
    ]
    return slowed(found, Settings())


def slowed(runs, settings, by=1.0):
    """Runs that take as long as the model says with these settings, times a factor."""
    times = predicted_s(batches_of(runs), settings.gpu, settings.framework) * by
    return [replace(one, measured_s=float(s)) for one, s in zip(runs, times, strict=True)]


def test_runs_that_confirm_the_catalog_narrow_its_values_and_leave_them(runs):
    posterior, _ = posterior_of(runs, HOPPER)
    for parameter in posterior.parameters:
        assert parameter.after == pytest.approx(parameter.before, rel=1e-6)
        assert parameter.before_low <= parameter.low < parameter.after < parameter.high <= parameter.before_high
    assert not posterior.surprising


def test_slower_products_are_found_and_lie_in_their_interval(runs):
    truth = {"gemm": 0.58}
    posterior, _ = posterior_of(slowed(runs, Settings().replaced(ONE, truth)), HOPPER)
    gemm = posterior.parameters[0]
    assert gemm.low < truth["gemm"] < gemm.high
    assert gemm.after < gemm.before
    assert posterior.fitted.mean_abs_error < 0.5 * posterior.before.mean_abs_error


def test_more_runs_say_more_and_one_far_off_is_called_surprising(runs):
    few, many = (posterior_of(slowed(some, Settings(), 1.1), HOPPER)[0] for some in (runs[:2], runs))
    assert few.fitted.mean_abs_error > many.fitted.mean_abs_error
    assert few.parameters[0].high / few.parameters[0].low > many.parameters[0].high / many.parameters[0].low
    assert posterior_of(slowed(runs[:1], Settings(), 1.5), HOPPER)[0].surprising


def test_the_posterior_of_one_parameter_is_that_of_a_grid(runs):
    some = slowed(runs[:4], Settings(), 1.12)
    _, belief = posterior_of(some, ONE)
    prior, _ = posterior_of(some, ONE)
    (width,) = (np.log(p.before_high / p.before) / 1.645 for p in prior.parameters)
    batches, measured = batches_of(some), np.log([one.measured_s for one in some])
    middle = np.log(prior.parameters[0].before)
    grid = np.linspace(middle - 4 * width, middle + 4 * width, 401)
    missed = np.array([((measured - belief.log_times(batches, np.array([x]))) ** 2).sum() for x in grid])
    weights = np.exp(-0.5 * ((grid - middle) / width) ** 2 - 0.5 * missed / belief.own_error**2)
    weights /= weights.sum()
    mean = weights @ grid
    assert belief.mean[0] == pytest.approx(mean, abs=0.1 * width)
    assert belief.covariance[0, 0] ** 0.5 == pytest.approx((weights @ (grid - mean) ** 2) ** 0.5, rel=0.1)


def test_the_prior_is_as_wide_as_the_error_on_published_runs(runs):
    posterior, belief = posterior_of(runs, HOPPER)
    error = np.hypot(posterior.common_error, posterior.own_error)
    assert posterior.common_error**2 / error**2 == pytest.approx(COMMON, rel=1e-6)
    assert belief.own_error == posterior.own_error
    assert error == pytest.approx(posterior_of(runs, ONE)[0].own_error / (1 - COMMON) ** 0.5)


def test_the_share_of_errors_that_runs_of_one_source_share_is_as_published(published):
    runs = runs_among(published)
    errors = np.log1p(errors_of(runs, Settings()))
    groups: dict[object, list[float]] = {}
    for one, error in zip(runs, errors, strict=True):
        if abs(error) < 0.6:
            key = (one.group, one.generation, one.precision, one.workload.model.name)
            groups.setdefault(key, []).append(float(error))
    several = [np.array(some) for some in groups.values() if len(some) > 1]
    rows, middle = sum(map(len, several)), np.mean(np.concatenate(several))
    within = sum(((some - some.mean()) ** 2).sum() for some in several) / (rows - len(several))
    between = sum(len(some) * (some.mean() - middle) ** 2 for some in several) / (len(several) - 1)
    usual = (rows - sum(len(some) ** 2 for some in several) / rows) / (len(several) - 1)
    common = (between - within) / usual
    assert common / (common + within) == pytest.approx(COMMON, abs=0.1)


def test_a_parameter_that_is_zero_or_does_not_act_is_refused_as_rows_without_a_run_are(run, row, runs):
    a100 = run(gpu="A100-80G", precision="bf16")
    with pytest.raises(InstanceError, match=r"0 for kernel_s of .* 16-bit"):
        posterior_of([a100], FitSet(generation="ampere", parameters=("kernel_s",)))
    alone = [one for one in runs if one.split.pp == 1]
    with pytest.raises(InstanceError, match=r"send_s .* mine-8-1"):
        posterior_of(alone, FitSet(generation="hopper", parameters=("send_s",)))
    for has_logs in (False, True):
        with pytest.raises(InstanceError, match="mine: GPU not published") as refused:
            own_calibration_of([row(id="mine", gpu="")], [HOPPER], has_logs=has_logs)
        assert ("--set" in str(refused.value)) is has_logs


def test_the_worth_of_a_measurement_is_what_drawing_times_says():
    rng = np.random.default_rng(7)
    root = rng.normal(size=(5, 5)) * 0.05
    prediction = Prediction(mean=np.log([10.0, 10.2, 10.5, 11.0, 12.0]), covariance=root @ root.T + 0.002 * np.eye(5))
    now = prediction.expected_s.min()
    draws = rng.multivariate_normal(prediction.mean, prediction.covariance, size=4000)
    for place in range(5):
        later = [conditioned(prediction, place, draw[place]).expected_s for draw in draws]
        saved, changes = worth(prediction, place)
        assert saved == pytest.approx(now - np.mean([times.min() for times in later]), abs=0.02)
        changed = np.mean([times.argmin() != prediction.expected_s.argmin() for times in later])
        assert changes == pytest.approx(changed, abs=0.05)


def test_a_time_that_is_known_is_worth_nothing_more():
    prediction = Prediction(mean=np.log([10.0, 11.0]), covariance=np.array([[0.01, 0.004], [0.004, 0.01]]))
    known = conditioned(prediction, 0, np.log(12.0))
    assert known.expected_s[0] == pytest.approx(12.0)
    assert known.mean[1] == pytest.approx(np.log(11.0) + 0.4 * np.log(1.2))
    assert worth(known, 0) == (0.0, 0.0)
    assert worth(known, 1)[0] > 0.0


def test_what_to_run_next_was_not_run_and_saves_most_first(runs):
    some = slowed(runs[:6], Settings(), 1.05)
    _, belief = posterior_of(some, HOPPER)
    found = next_run(some[1], some, belief)
    ran = {(one.split.tp, one.split.pp, one.split.interleave, one.split.micro_batch, one.split.zero) for one in some}
    saved = [one.saves for one in found.proposals]
    assert saved == sorted(saved, reverse=True)
    assert saved[0] > 0.0
    for one in found.proposals:
        names = ("tp", "pp", "interleave", "micro_batch", "zero")
        assert tuple(one.mapping[name] for name in names) not in ran
        assert one.low_s < one.predicted_s < one.high_s
        assert 0.0 <= one.changes <= 1.0
    assert found.chosen_s <= min(one.measured_s for one in some) * (1 + 1e-9)


def test_a_very_fast_run_leaves_nothing_to_measure(runs):
    some = [replace(one, measured_s=one.measured_s * (0.3 if i == 0 else 1.0)) for i, one in enumerate(runs[:6])]
    _, belief = posterior_of(slowed(runs[:6], Settings()), HOPPER)
    found = next_run(some[0], some, belief)
    assert found.chosen_s == pytest.approx(some[0].measured_s)
    assert not found.proposals or found.proposals[0].saves < 1e-3
