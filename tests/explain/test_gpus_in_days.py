"""Other numbers of GPUs, spares and probabilities as ways out: first numbers are found in few tries."""

import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.explain import gpus as other_gpus
from coopt.explain.gpus import other_number, possible_counts, with_gpus
from coopt.explain.limits import NumericLimit
from coopt.explain.thresholds import first_number
from coopt.instance.numerics import EQUAL, SEARCHED
from coopt.instance.schema import Instance, with_part
from coopt.instance.texts import change_text
from coopt.instance.variants import with_scaled_bounds, with_value
from coopt.solving.answer import solve
from coopt.solving.resolves import Resolver, UnprovenError
from tests.conftest import ASK_WHY, ask, example_count
from tests.explain.changed import way_out
from tests.solving.fleet_oracle import enumerated
from tests.solving.questions import interrupted
from tests.solving.test_days import HGX, days, fastest_days, sure_days


@st.composite
def tight(draw: st.DrawFn) -> Instance:
    """Small clusters that fail often, with bounds that are met by some or by none."""
    instance = draw(interrupted())
    return with_scaled_bounds(instance, draw(st.sampled_from([1.0, 0.7, 0.4, 0.2])))


@settings(max_examples=example_count(60, usual=5))
@given(tight())
def test_whether_a_design_trains_in_time_is_that_of_enumeration(instance: Instance) -> None:
    assert Resolver(instance).has_plan(instance) == math.isfinite(enumerated(instance))


def serves(instance: Instance, gpus: int) -> bool:
    return solve(with_gpus(instance, gpus), reasons=False).status == "optimal"


@settings(max_examples=example_count(40, usual=2))
@given(tight())
def test_no_number_of_gpus_is_left_out(instance: Instance) -> None:
    """The fewest that are enough, and the most below those asked for, of all numbers there are."""
    top, is_enough = max(instance.cluster.gpus), Resolver(instance).has_plan
    more, _ = other_number(instance, is_enough, fewer=False, tries=3 * top)
    less, _ = other_number(instance, is_enough, fewer=True, tries=3 * top)
    least, most = (None if found is None else found[1].cluster.gpus[0] for found in (more, less))
    assert most is None or serves(instance, most)
    assert least is None or serves(instance, least)
    last = 2 * top if least is None else min(least, 2 * top)
    left_out = sorted({*range((most or 0) + 1, top), *range(1, last)} - {*instance.cluster.gpus})
    assert not any(serves(instance, count) for count in left_out[:: 1 if ASK_WHY else 4])


@pytest.mark.parametrize("tries", [1, 2, 3, 5, 100])
@pytest.mark.parametrize("is_least", [True, False])
@given(
    counts=st.sets(st.integers(1, 300).map(lambda n: 4 * n), min_size=1, max_size=40),
    enough=st.sets(st.integers(1, 300).map(lambda n: 4 * n)),
)
@settings(max_examples=example_count(30, usual=4))
def test_no_multiple_of_the_step_that_is_told_would_be_better(
    counts: set[int], enough: set[int], tries: int, is_least: bool
) -> None:
    instance, asked = with_gpus(ask(), 4000), []

    def is_enough(changed: Instance) -> bool:
        asked.append(changed.cluster.gpus[0])
        return asked[-1] in enough

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(other_gpus, "possible_counts", lambda _: (sorted(counts), 4))
        patch.setattr(other_gpus, "_quick", lambda _, listed: listed)
        changed, in_vain = other_number(instance, is_enough, fewer=not is_least, tries=tries)
    assert len(asked) == len(set(asked))
    if changed is None:
        tried = [count for count in counts if count in asked]
        assert not counts & enough & {*tried}
        assert in_vain.startswith("any other number")
        return
    ((change,), wider) = changed
    (found,) = wider.cluster.gpus
    assert change.step is not None
    assert found in counts & enough
    better = [count for count in counts & enough if (count < found if is_least else count > found)]
    assert not [count for count in better if count % change.step == 0]
    assert tries < 100 or not better


def test_what_was_found_stands_where_time_is_up_before_something_better(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_enough(changed: Instance) -> bool:
        if changed.cluster.gpus[0] % 32:
            raise UnprovenError("time limit")
        return changed.cluster.gpus[0] >= 96

    monkeypatch.setattr(other_gpus, "possible_counts", lambda _: (list(range(16, 1024, 16)), 16))
    monkeypatch.setattr(other_gpus, "_quick", lambda _, listed: listed)
    changed, _ = other_number(ask(), is_enough, fewer=False, tries=20)
    assert changed is not None
    ((change,), _) = changed
    assert (change.to, change.step) == ("128", 64)


def test_domains_need_not_be_whole_for_a_number_of_gpus_to_be_tried() -> None:
    """Domains of 72 have 64 that train, and 8 idle ones, on 192 GPUs: no multiple of 72 has a mapping."""
    instance = ask(cluster__gpu="gb200", cluster__gpus=144, network__hb_domains="gb200-nvl72")
    counts, unit = possible_counts(instance)
    assert unit == 1
    assert {64, 192, 256} <= {*counts}
    assert not [count for count in counts if count % 72 == 0 and serves(instance, count)]


def test_days_that_failures_alone_break_take_more_gpus_and_their_spares_are_told() -> None:
    instance = days(fastest_days(cluster__gpus=16, **HGX) * 1.0005, **HGX, cluster__gpus=16)
    found = coopt.explain(instance)
    (one,) = (one for one in found.relaxations if one.changes[0].limit == "cluster.gpus")
    (change,) = one.changes
    assert (change.now, change.step, change.least) == ("16", 1, float(change.to))
    assert not any(serves(instance, count) for count in range(1, int(change.to)))
    plan = solve(with_gpus(instance, int(change.to)))
    assert plan.design == one.design
    assert plan.objective.value == one.value
    spares = one.design.spare_gpus
    assert one.notes == (
        (f"This plan trains on {change.to} GPUs and leaves {spares} idle, those of 1 spare HB domain included.",)
        if spares
        else ()
    )
    assert any(
        f"cluster.gpus = {change.to} (now 16, {change_text(change.share)}, the smallest possible):" in said
        for said in found.sentences
    )


def test_days_too_few_spares_and_too_sure_days_are_ways_out() -> None:
    instance = sure_days()
    (said,) = solve(instance).explanation
    missing = float(re.search(r"([\d.]+) days for 'w'", said)[1])
    assert missing <= float(way_out(instance, "workload[0].train_days")[1].to) * (1 + 1e-9) <= missing * 1.002
    one, change = way_out(instance, "availability.spare_domains")
    assert change.now == "[0]"
    spares = tuple(map(int, change.to.strip("[]").split(", ")))
    assert solve(with_part(instance, "availability", {"spare_domains": spares})).objective.value == one.value
    one, change = way_out(instance, "availability.confidence")
    assert (change.now, change.within) == ("0.95", 1e-3)
    confidence = float(change.to)
    assert 0.5 <= confidence < 0.95
    assert solve(with_part(instance, "availability", {"confidence": confidence})).objective.value == one.value
    surer = min(confidence * (1 + 2e-3), 0.95)
    assert solve(with_part(instance, "availability", {"confidence": surer}), reasons=False).status == "infeasible"


def test_days_of_a_phase_are_a_way_out_where_they_are_kept_with_a_probability() -> None:
    """More days are fewer beside the mean, so that those which a plan takes would be too few to ask for."""
    least = round(fastest_days(cluster__gpus=16, **HGX), 3)
    short = {"name": "w", "train_days": least, "train_tokens": days(40.0).workload[0].train_tokens}
    phases = [{"year": 1, "gpus": 16}, {"year": 2, "gpus": 16, "workloads": short}]
    sure = {"rates": "llama-3", "spare_domains": 0, "confidence": 0.95}
    instance = days(40.0, **HGX, cluster__gpus=16, availability=sure, phase=phases)
    one, change = way_out(instance, "phase[1].workloads[0].train_days")
    assert change.now == f"{least:g}"
    longer = with_value(instance, one.changes[0].limit, float(change.to))
    assert solve(longer).objective.value == one.value
    shorter = with_value(instance, one.changes[0].limit, float(change.to) * (1 - 2e-3))
    assert solve(shorter, reasons=False).status == "infeasible"


def test_gpus_that_do_not_help_are_said_where_failures_count() -> None:
    found = coopt.explain(days(1e-3, **HGX))
    (said,) = (one for one in found.sentences if one.startswith("None of these"))
    assert "1 to 1,024" in said
    assert "place of h100-sxm" in said


MOST_TRIES = 200
USES = st.lists(st.integers(1, 2000), min_size=1, max_size=6, unique=True)


def found(now: float, loosest: float, uses: list[Any], *, whole: bool, is_known: bool) -> float:
    """The first number for plans that take so much, of which any that a number lets in answers."""
    limit = NumericLimit(
        key="x", unit="", now=now, loosest=loosest, used=lambda plan: plan if is_known else None, whole=whole
    )
    tries = 0

    def answer(number: float) -> Any:
        nonlocal tries
        tries += 1
        assert tries <= MOST_TRIES
        fits = [use for use in uses if (use >= number if limit.falling else use <= number)]
        return fits[tries % len(fits)] if fits else None

    farthest = answer(loosest)
    return first_number(limit, answer, farthest).number


@given(st.integers(1, 2000), USES, st.booleans(), st.booleans())
def test_it_is_the_least_that_some_plan_takes(now: int, uses: list[int], whole: bool, is_known: bool) -> None:
    number = found(now, 1e15, uses, whole=whole, is_known=is_known)
    if min(uses) <= now:  # the limit as it is lets a plan in, which only what plans take tells
        assert number == now if is_known else now <= number <= max(now * (1 + SEARCHED), now + whole)
    else:
        rel = 0.0 if whole else EQUAL if is_known else SEARCHED
        assert min(uses) <= number
        assert number == pytest.approx(min(uses), rel=rel, abs=0)


@given(st.integers(1, 2000), USES, st.booleans())
def test_it_is_the_most_where_less_lets_more_in(now: int, uses: list[int], is_known: bool) -> None:
    number = found(now, 1e-6, [*map(float, uses)], whole=False, is_known=is_known)
    if max(uses) >= now:
        assert number == now if is_known else now * (1 - SEARCHED) <= number <= now
    else:
        assert number == pytest.approx(max(uses), rel=EQUAL if is_known else SEARCHED)
        assert number <= max(uses) or math.isclose(number, max(uses), rel_tol=EQUAL)
