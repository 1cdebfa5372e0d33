"""Fronts are those of plain enumeration, every point is a proven answer to its own bounds, and runs end well."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coopt
from coopt.columns.grid import context_of
from coopt.instance.base import InstanceError
from coopt.instance.schema import Instance
from coopt.instance.variants import with_scaled_bounds
from coopt.network.plan_networks import families_of_design
from coopt.plan.couplings import one_network
from coopt.plan.front import Front, FrontPoint
from coopt.plan.schema import InstanceId, Plan, Progress, SolverReport, Timing
from tests.conftest import ask, example_count, switch
from tests.solving.oracle import enumerated_front, instances

slow = settings(max_examples=example_count(25))
EVERY = 10_000
TINY = Path(__file__).parents[3] / "instances" / "tiny-64.toml"


def large(**changes: Any) -> Instance:
    """A question whose front has a few dozen points."""
    given = {
        "cluster__gpus": 512,
        "workload__0__global_batch": 512,
        "workload__0__max_iteration_time_s": 0.12,
        "network__switches": [switch(32, 9000)],
        "network__oversubscription": 8.0,
    }
    return ask(**(given | changes))


def pairs(front: Front) -> list[tuple[float, float]]:
    return [(point.pace, point.best.cost.of(front.kind)) for point in front.points]


def as_plan(instance: Instance, front: Front, point: FrontPoint) -> tuple[Instance, Plan]:
    """A point as the plan of the instance with its bounds at the pace of the point."""
    asked = with_scaled_bounds(instance, point.pace)
    report = SolverReport(
        formulation="front",
        name="HiGHS",
        version="",
        options={},
        nodes=0,
        columns_enumerated=0,
        columns_gated={},
        columns_kept=0,
        families=0,
        cuts=0,
    )
    plan = Plan(
        instance=InstanceId(name=asked.name, sha256=asked.sha256),
        status="optimal",
        stop_reason="optimal",
        objective=point.best.objective,
        design=point.best.design,
        cost=point.best.cost,
        workloads=point.best.workloads,
        parts=(one_network(point.best.cost, point.best.workloads, design=point.best.design),),
        solver=report,
        timing_s=Timing(model=0, columns=0, build=0, handover=0, solve=0, total=0),
    )
    return asked, plan


@slow
@given(instances())
def test_a_whole_front_is_that_of_plain_enumeration(instance: Instance) -> None:
    front = coopt.pareto(instance, EVERY)
    expected = enumerated_front(instance)
    found = pairs(front)
    assert len(found) == front.size == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one[0] == pytest.approx(other[0], rel=1e-12)
        assert one[1] == pytest.approx(other[1], rel=1e-12, abs=0)
    assert front.stop_reason == ("whole front" if expected else "infeasible")
    assert bool(front.explanation) == (not expected)


@slow
@given(instances(), st.integers(3, 6))
def test_every_point_is_a_plan_that_the_verifier_accepts(instance: Instance, points: int) -> None:
    front = coopt.pareto(instance, points)
    assert len(front.points) == min(points, front.size)
    for point in front.points:
        verdict = coopt.verify(*as_plan(instance, front, point))
        assert verdict.accepted, [check for check in verdict.checks if not check.ok]


@slow
@given(instances())
def test_a_point_costs_what_the_search_finds_for_its_bounds(instance: Instance) -> None:
    front = coopt.pareto(instance, 3)
    for point in front.points:
        plan = coopt.solve(with_scaled_bounds(instance, point.pace))
        assert plan.objective.value == pytest.approx(point.best.objective.value, rel=1e-9)
    assume(front.points)
    just_faster = coopt.solve(with_scaled_bounds(instance, front.points[0].pace * (1 - 1e-9)))
    assert just_faster.status == "infeasible"


@slow
@given(instances(), st.integers(3, 30))
def test_cost_never_rises_along_the_front_and_a_tighter_pace_is_never_cheaper(instance: Instance, points: int) -> None:
    front = coopt.pareto(instance, points)
    for (pace, value), (slower, cheaper) in pairwise(pairs(front)):
        assert slower > pace
        assert cheaper < value
    for point in front.points:
        assert point.best.objective.bound is not None
        assert point.best.objective.gap <= 1e-9
        assert max(w.iteration_time_s / w.bound_s for w in point.best.workloads) == pytest.approx(1, abs=1e-12)


def test_every_point_keeps_the_limits_of_the_instance() -> None:
    free = coopt.pareto(large(), EVERY)
    watts = [point.best.cost.power_w for point in free.points]
    assert max(watts) > min(watts)
    cap = (max(watts) + min(watts)) / 2
    capped = coopt.pareto(large(limits={"power_mw": cap / 1e6}), EVERY)
    assert capped.points
    assert all(point.best.cost.power_w <= cap for point in capped.points)
    assert capped.points[0].pace > free.points[0].pace


@pytest.mark.parametrize("kind", ["capex", "power", "tco"])
def test_the_front_of_another_objective_is_that_of_an_instance_that_asks_for_it(kind: str) -> None:
    asked = coopt.pareto(large(), EVERY, objective=kind)  # type: ignore[arg-type]
    own = coopt.pareto(large(objective={"minimize": kind}), EVERY)
    assert asked.kind == kind
    assert asked.points == own.points


def test_few_points_hold_the_ends_the_answer_to_the_bound_and_then_the_knees() -> None:
    instance = large()
    whole = coopt.pareto(instance, EVERY)
    answer = coopt.solve(instance).objective.value
    assert whole.size > 10
    three = coopt.pareto(instance, 3)
    assert pairs(three)[0] == pairs(whole)[0]
    assert pairs(three)[-1] == pairs(whole)[-1]
    assert pairs(three)[1][1] == answer
    assert three.stop_reason == "points asked for"
    bends = {point.pace for point in whole.points if point.knee}
    assert bends
    assert bends <= {point.pace for point in coopt.pareto(instance, 3 + len(bends)).points}


def test_the_slowest_pace_ends_the_front() -> None:
    whole = coopt.pareto(large(), EVERY)
    last = whole.points[len(whole.points) // 2].pace
    part = coopt.pareto(large(), EVERY, slowest=last)
    assert pairs(part) == [pair for pair in pairs(whole) if pair[0] <= last]
    assert part.size == len(part.points) < whole.size


def test_a_slowest_pace_that_no_design_keeps_is_infeasible_and_says_what_is_needed() -> None:
    fastest = coopt.pareto(large(), 3).points[0].pace
    front = coopt.pareto(large(), slowest=fastest / 2)
    assert (front.points, front.stop_reason, front.complete) == ((), "infeasible", True)
    (why,) = front.explanation
    needed = float(why.split("needs at least ")[1])
    assert fastest <= needed <= fastest * 1.001
    assert coopt.pareto(large(), slowest=needed).points


def test_no_design_at_all_is_explained() -> None:
    front = coopt.pareto(ask(limits={"capex_usd": 1.0}))
    assert front.stop_reason == "infeasible"
    assert "limits.capex_usd" in front.explanation[0]


def test_an_interrupt_keeps_the_points_proven_so_far() -> None:
    def stop(step: Progress) -> None:
        if step.stage == "solve" and step.message.startswith("3 of"):
            raise KeyboardInterrupt

    front = coopt.pareto(large(), on_progress=stop)
    assert (len(front.points), front.complete, front.stop_reason) == (3, False, "interrupted")
    assert set(pairs(front)) <= set(pairs(coopt.pareto(large())))


def test_a_time_limit_keeps_what_is_proven_and_says_so() -> None:
    front = coopt.pareto(ask(), time_limit_s=1e-9)
    assert (front.points, front.complete, front.stop_reason) == ((), False, "time limit")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"points": 2}, "points = 2, needs 3 to"),
        ({"points": 10**9}, "points = 1000000000, needs"),
        ({"slowest": 0.0}, "slowest = 0.0, needs"),
        ({"slowest": float("nan")}, "slowest = nan, needs"),
        ({"time_limit_s": -1.0}, "pareto: time_limit_s"),
    ],
)
def test_values_out_of_range_are_refused(given: dict[str, float], why: str) -> None:
    with pytest.raises(InstanceError, match=why):
        coopt.pareto(ask(), **given)  # type: ignore[arg-type]


def test_a_front_survives_json() -> None:
    front = coopt.pareto(coopt.load(TINY))
    assert len(front.points) == 2
    assert Front.model_validate_json(front.model_dump_json(by_alias=True)) == front


def test_points_of_a_front_are_designs_of_the_instance() -> None:
    instance = large()
    for point in coopt.pareto(instance, 5).points:
        found = next(families_of_design(instance, point.best.design))
        assert context_of(found[0]).site.gpus == point.best.design.gpus
