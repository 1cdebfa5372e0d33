"""Fronts of days with interruptions are those of plain enumeration, and every point answers its own days."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from operator import itemgetter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.base import InstanceError
from coopt.instance.schema import Instance
from coopt.instance.variants import with_scaled_bounds
from coopt.network.parts import cost_of, within_limits
from coopt.solving.fronts.tracing import evenly
from tests.conftest import example_count
from tests.solving.fronts.test_sweep import EVERY, as_plan, pairs
from tests.solving.interrupted import least_s, networks, promised
from tests.solving.questions import interrupted
from tests.solving.test_days import days


def enumerated(instance: Instance, slowest: float) -> list[tuple[float, float]]:
    """Pace and value of every design with every number of spares that no other beats, its days halved where all that
    cost less are slower."""
    asked = instance.availability
    designs = []
    for family, uplinks in networks(instance):
        times = [least_s(instance, family, uplinks, one) for one in instance.workload]
        if any(time_s > slowest * one.bound_s for time_s, one in zip(times, instance.workload, strict=True)):
            continue
        for spares in islice(asked.spares, 4):
            built = replace(family, spare_domains=spares)
            cost = cost_of(instance, built, uplinks)
            if within_limits(instance, built, cost):
                designs.append((cost.of(instance.objective.minimize), times, built, uplinks))
    found, best = set(), slowest
    for value, times, built, uplinks in sorted(designs, key=itemgetter(0)):
        if all(_in_time(instance, built, uplinks, w, time_s, best) for w, time_s in enumerate(times)):
            best = min(best, max(_pace(instance, built, uplinks, w, time_s) for w, time_s in enumerate(times)))
            found.add((best, value))
    front: list[tuple[float, float]] = []
    for pace, value in sorted(found):
        if not front or value < front[-1][1] * (1 - 1e-9):
            front.append((pace, value))
    return front


def _pace(instance: Instance, built: object, uplinks: int, w: int, time_s: float) -> float:
    workload = instance.workload[w]
    if not workload.calendar:
        return time_s / workload.bound_s
    mean = promised(with_scaled_bounds(instance, 1.0), built, uplinks, workload)  # type: ignore[arg-type]
    if instance.availability is None or instance.availability.confidence is None:
        return time_s / workload.bound_s / mean if mean > 1e-9 else math.inf
    low, high = time_s / workload.bound_s, 1e6
    if not _in_time(instance, built, uplinks, w, time_s, high):
        return math.inf
    for _ in range(50):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _in_time(instance, built, uplinks, w, time_s, middle) else (middle, high)
    return high


def _in_time(instance: Instance, built: object, uplinks: int, w: int, time_s: float, pace: float) -> bool:
    moved = with_scaled_bounds(instance, pace)
    workload = moved.workload[w]
    share = promised(moved, built, uplinks, workload) if workload.calendar else 1.0  # type: ignore[arg-type]
    return bool(time_s <= workload.bound_s * share)


@settings(max_examples=example_count(10))
@given(interrupted())
def test_a_front_with_interruptions_is_that_of_plain_enumeration(instance: Instance) -> None:
    front = coopt.pareto(instance, EVERY, slowest=3.0)
    expected = enumerated(instance, 3.0)
    if instance.availability is None or instance.availability.spare_domains is not None:
        assert [one[1] for one in pairs(front)] == pytest.approx([one[1] for one in expected], rel=1e-12)
        assert [one[0] for one in pairs(front)] == pytest.approx([one[0] for one in expected], rel=1e-8)
    else:  # enumeration stops at four domains that stand by
        for pace, value in expected:
            assert min(one[1] for one in pairs(front) if one[0] <= pace * (1 + 1e-8)) <= value * (1 + 1e-12)


@settings(max_examples=example_count(8))
@given(interrupted(), st.integers(3, 4), st.sampled_from([(), ("days",), ("budget",)]))
def test_every_point_is_a_plan_of_its_days_that_the_verifier_accepts(
    instance: Instance, points: int, over: tuple[str, ...]
) -> None:
    if over == ("days",) and not all(one.calendar for one in instance.workload):
        over = ()
    front = coopt.pareto(instance, points, over=over)
    for point in front.points:
        verdict = coopt.verify(*as_plan(instance, front, point))
        assert verdict.accepted, [check for check in verdict.checks if not check.ok]


def test_dates_and_budgets_read_the_same_front() -> None:
    instance = days(20.0)
    whole, dates, budgets = (coopt.pareto(instance, EVERY, over=over) for over in ((), ("days",), ("budget",)))
    assert {one for front in (dates, budgets) for one in pairs(front)} <= set(pairs(whole))
    assert len(whole.points) > 2
    assert [point.days for point in whole.points] == pytest.approx([20.0 * point.pace for point in whole.points])


def test_even_steps_take_the_last_point_within_each() -> None:
    assert evenly(np.array([0.0, 1.0, 9.0, 10.0]), 3) == [0, 1, 3]
    assert evenly(np.array([10.0, 9.0, 1.0, 0.0]), 3) == [3, 2, 0]


def test_a_front_over_days_needs_days() -> None:
    iterations = (
        days(20.0)
        .workload[0]
        .model_copy(update={"train_days": None, "train_tokens": None, "max_iteration_time_s": 1.0})
    )
    with pytest.raises(InstanceError, match="no workload has a bound on days"):
        coopt.pareto(days(20.0).model_copy(update={"workload": (iterations,)}), over=["days"])
