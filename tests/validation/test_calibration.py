"""Fits find parameters again that made the measurements, and never touch the catalog."""

from dataclasses import replace

import numpy as np
import pytest

from coopt.instance.catalog import entries
from coopt.instance.texts import InstanceError
from coopt.validation.batches import batches_of, predicted_s
from coopt.validation.calibration import FIRST, calibration_of
from coopt.validation.comparison import loss_of
from coopt.validation.facts import FitSet, published_facts
from coopt.validation.fitting import fitted_settings, minimise
from coopt.validation.runs import run_of
from coopt.validation.settings import Settings, check_globs, sets_selected

HOPPER = FitSet(generation="hopper", parameters=("gemm", "kernel_s"))
ONE_SHARE = FitSet(generation="hopper", parameters=("gemm",))
TRUTH = {"gemm": 0.66, "kernel_s": 8e-6}


def measured_with(rows, settings):
    """Rows whose measured time is what the model says with these settings."""
    runs = [run_of(row) for row in rows]
    times = predicted_s(batches_of(runs), settings.gpu, settings.framework)
    return [run_of(row.__class__(**{**vars(row), "iter_time_s": float(t)})) for row, t in zip(rows, times, strict=True)]


@pytest.fixture
def briefly(monkeypatch):
    """Fits end after a few evaluations, of which rows are asked and no values."""
    monkeypatch.setattr("coopt.validation.calibration.FIRST", 12)
    monkeypatch.setattr("coopt.validation.fitting.AGAIN", 12)


@pytest.fixture
def rows(row):
    """Of one model, which takes half as long to evaluate as two."""
    splits = {
        "one": [(1, 4, 16), (4, 4, 4), (8, 1, 8), (2, 8, 4)],
        "two": [(8, 2, 4), (4, 1, 16), (1, 8, 8), (2, 4, 8)],
    }
    shape = {"interleave": 1, "hidden": 2048, "head_dim": 32, "ffn": 6144}
    return [row(id=f"{group}-{t}-{p}", tp=t, pp=p, dp=d, **shape) for group, some in splits.items() for t, p, d in some]


def test_known_parameters_are_found_again_and_the_catalog_stays_as_it_is(rows):
    runs, before = measured_with(rows, Settings().replaced(HOPPER, TRUTH)), entries("gpu")["h100-sxm"].model_dump_json()
    (fit,) = calibration_of(runs, [HOPPER]).fits
    assert entries("gpu")["h100-sxm"].model_dump_json() == before
    found = {parameter.name: parameter.after for parameter in fit.parameters}
    assert found == pytest.approx(TRUTH, rel=0.02)
    assert fit.fitted.mean_abs_error < 1e-3 < fit.before.mean_abs_error
    assert fit.leave_one_group_out.mean_abs_error < 0.01
    assert fit.leave_one_group_out.n == len(runs)


def test_a_precision_keeps_what_was_fitted_for_the_wider_one(row):
    narrow = FitSet(generation="hopper", precision="fp8", parameters=("gemm",))
    rows = [row(id=f"a-{t}-{kind}", tp=t, dp=16 // t, precision=kind) for t in (1, 2, 4) for kind in ("bf16", "fp8")]
    truth = Settings().replaced(HOPPER, TRUTH).replaced(narrow, {"gemm": 0.55})
    both = calibration_of(measured_with(rows, truth), [HOPPER, narrow])
    assert [fit.name for fit in both.fits] == ["hopper 16-bit", "hopper fp8"]
    assert both.fits[1].parameters[0].after == pytest.approx(0.55, rel=0.03)


def test_rows_that_are_not_used_are_held_out(rows):
    runs = measured_with(rows, Settings().replaced(HOPPER, TRUTH))
    (fit,) = calibration_of(runs, [HOPPER.model_copy(update={"rows": ("one-*",)})]).fits
    assert fit.groups == ("one",)
    assert fit.held_out.n == 4
    assert fit.held_out.mean_abs_error < 0.02
    assert fit.leave_one_group_out is None


@pytest.mark.usefixtures("briefly")
def test_rows_of_other_sets_are_no_part_of_the_whole(rows, row):
    others = [row(id=f"two-a100-{t}", gpu="A100-80G", tp=t, dp=16 // t) for t in (1, 2, 4)]
    found = calibration_of(measured_with(rows + others, Settings()), [ONE_SHARE])
    assert found.leave_one_group_out.n == found.fitted.n == len(rows)


@pytest.mark.usefixtures("briefly")
def test_rows_of_one_id_all_count(rows):
    alike = [replace(one, id=one.id.split("-")[0]) for one in rows]
    found = calibration_of(measured_with(alike, Settings().replaced(HOPPER, TRUTH)), [ONE_SHARE])
    assert found.fitted.n == found.leave_one_group_out.n == found.fits[0].leave_one_group_out.n == len(rows)
    assert [kind.name for kind in found.architecture] == ["dense"]


def test_a_pattern_that_fits_no_id_is_named():
    check_globs(("dgxc-*", "*"), ["dgxc-1"])
    with pytest.raises(InstanceError, match=r"'zzz\*'.* 'dgxc-1'"):
        check_globs(("dgxc-*", "zzz*"), ["dgxc-1"])


def test_the_overhead_of_a_framework_is_found(row):
    asked = FitSet(software="megatron-deepspeed", parameters=("overhead",))
    made = {"framework": asked.software, "gpu": "A100-80G", "precision": "fp16"}
    rows = [row(id=f"bloom-{t}", tp=t, dp=16 // t, **made) for t in (1, 2, 4, 8)]
    runs = measured_with(rows, Settings().replaced(asked, {"overhead": 1.3}))
    (fit,) = calibration_of(runs, [asked]).fits
    assert fit.parameters[0].after == pytest.approx(1.3, rel=1e-3)


@pytest.mark.usefixtures("briefly")
def test_sets_without_enough_rows_are_left_out_and_named(rows):
    runs, heard = measured_with(rows[:2], Settings()), []
    other = FitSet(generation="blackwell", parameters=("gemm",))
    assert calibration_of(runs, [HOPPER, other]).left_out == ("blackwell 16-bit",)
    with pytest.raises(InstanceError, match="1 row of blackwell 16-bit"):
        calibration_of(runs, [other])
    calibration_of(runs[:1], [ONE_SHARE], report=heard.append)
    assert heard[0].endswith(" 1 row")


@pytest.mark.usefixtures("briefly")
def test_a_precision_without_rows_takes_the_values_it_is_held_to(row):
    wide = FitSet(generation="blackwell", precision="fp8", parameters=("gemm",))
    narrow = FitSet(generation="blackwell", precision="fp4", parameters=("gemm",), after="blackwell fp8")
    rows = [row(id=f"{g}-{t}", gpu="B200", tp=t, dp=16 // t, precision="fp8") for g in "ab" for t in (1, 2)]
    rows += [row(id=f"c-{t}", gpu="B200", tp=t, dp=16 // t, precision="nvfp4") for t in (1, 2)]
    found = calibration_of(measured_with(rows, Settings()), [wide, narrow])
    assert found.fits[1].leave_one_group_out.n == 2
    assert found.fits[1].leave_one_group_out.mean_abs_error > found.fits[1].fitted.mean_abs_error


def test_few_rows_leave_parameters_near_what_they_are_held_to(rows):
    prior = {"gemm": 0.6, "kernel_s": 4e-6}
    runs = measured_with(rows, Settings().replaced(HOPPER, TRUTH))
    held = [
        fitted_settings(fit_set, runs, Settings(), FIRST).values_of(fit_set, runs[0])["gemm"]
        for fit_set in (HOPPER.model_copy(update={"prior": prior, "weight": weight}) for weight in (1e-6, 1.0, 1e6))
    ]
    assert held[0] == pytest.approx(0.66, rel=0.02)
    assert held[0] > held[1] > held[2]
    assert held[2] == pytest.approx(0.6, rel=1e-3)


def test_wishes_narrow_the_sets():
    assert sets_selected(None, None, None, ()) == published_facts().fit
    (asked,) = sets_selected("hopper", "fp8", "gemm, hbm", ("dgxc-*",))
    assert (asked.parameters, asked.rows) == (("gemm", "hbm"), ("dgxc-*",))
    assert [asked.precision for asked in sets_selected("blackwell", None, None, ())] == ["16-bit", "fp8", "fp4"]
    (other,) = sets_selected("cdna3", "16-bit", None, ())
    assert other.generation == "cdna3"


def test_wishes_that_cannot_be_met_are_refused():
    for words, says in (
        (("hoper", None, None), "--generation = 'hoper'"),
        ((None, None, "gemm"), "needs --generation NAME"),
        (("hopper", None, "gem"), "--parameters: gem cannot"),
        (("hopper", "fp8", "attention"), "attention cannot"),
        (("hopper", None, "gemm,hbm,kernel_s,attention,rail"), "to 4 names"),
        (("hopper", None, ","), "to 4 names"),
        (("cdna3", None, None), "needs --precision"),
    ):
        with pytest.raises(InstanceError) as refused:
            sets_selected(*words, ())
        assert says in str(refused.value)


def test_losses_measure_what_they_say():
    predicted, measured = np.array([2.0, 100.0]), np.array([1.0, 1.0])
    assert loss_of("square", predicted, measured) == pytest.approx((1 + 99**2) / 2)
    assert loss_of("log", predicted, measured) == pytest.approx(0.6)


def lowest(objective, start, step, low, high, evaluations=200):
    return minimise(objective, *map(np.array, (start, step, low, high)), evaluations)


def test_a_curved_valley_is_followed_to_its_end():
    def valley(x):
        return float((1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2)

    point = lowest(valley, [-1.2, 1.0], [0.5, 0.5], [-2.0, -2.0], [2.0, 2.0], evaluations=600)
    assert point == pytest.approx([1.0, 1.0], abs=1e-2)
    assert valley(point) < 1e-4


def test_parameters_of_very_different_size_are_found_together():
    def bowl(x):
        return float(abs(x[0] - 0.7) + abs(x[1] - 3e-6) * 1e5)

    point = lowest(bowl, [0.5, 0.0], [0.1, 2e-6], [0.4, 0.0], [0.95, 5e-5])
    assert point == pytest.approx([0.7, 3e-6], rel=1e-2)


def test_a_minimum_on_the_edge_is_approached_from_inside():
    asked = []

    def slope(x):
        asked.append(x.copy())
        return float(-x[0] + (x[1] - 0.5) ** 2)

    point = lowest(slope, [0.2, 0.2], [0.1, 0.1], [0.0, 0.0], [1.0, 1.0])
    assert point == pytest.approx([1.0, 0.5], abs=0.02)
    assert all((x >= 0).all() and (x <= 1).all() for x in asked)


def test_it_stops_after_so_many_evaluations_and_a_start_outside_is_moved_in():
    asked = []

    def noisy(x):
        asked.append(1)
        return float(np.sin(1e6 * x[0]) + x[0])

    lowest(noisy, [0.5, 0.5], [0.1, 0.1], [0.0, 0.0], [1.0, 1.0], evaluations=40)
    assert len(asked) <= 40
    point = lowest(lambda x: float(x[0] ** 2), [5.0], [0.1], [1.0], [2.0])
    assert point == pytest.approx([1.0], abs=1e-2)
