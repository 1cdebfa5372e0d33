"""Fronts found by solving at one pace after the other are those of all designs, and every point is proven."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings

import coopt
from coopt.instance.base import InstanceError
from coopt.instance.numerics import SEARCHED
from coopt.instance.schema import Instance
from coopt.instance.variants import with_scaled_bounds
from coopt.plan.front import Front
from coopt.report.fronts.files import NAMES, write_front
from coopt.report.fronts.text import front_report
from coopt.report.words import rendered
from coopt.solving.fronts.tracing import Tracing
from coopt.solving.resolves import Resolver
from tests.conftest import example_count
from tests.kinds import QUESTIONS
from tests.solving.oracle import enumerated_front, with_few_mappings


def asked(kind: str) -> Instance:
    return Instance.model_validate(QUESTIONS[kind])


def thinned(front: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """A front without the points that a slower one of less cost follows within the tolerance."""
    later = [pace for pace, _ in front[1:]] + [math.inf]
    return [one for one, after in zip(front, later, strict=True) if after > one[0] * (1 + 2 * SEARCHED)]


def narrowed(instance: Instance) -> Instance:
    """The question with one HB domain and one fabric, whose front has few points."""
    network = instance.network.model_copy(
        update={"hb_domains": instance.network.hb_domains[:1], "fabrics": instance.network.fabrics[:1]}
    )
    return instance.model_copy(update={"network": network})


@settings(max_examples=example_count(20))
@given(with_few_mappings().map(narrowed))
def test_a_traced_front_is_that_of_plain_enumeration(instance: Instance) -> None:
    tracing = Tracing(
        instance=instance,
        over=None,
        point_count=10_000,
        slowest=None,
        tell=lambda message, done: None,
        resolver=Resolver(instance, shared_out=False),
    )
    stop, why = tracing.trace()
    known = enumerated_front(instance)
    if not known:
        assert stop == "infeasible"
        assert why
        return
    assert stop == "whole front"
    found = [(point.pace, point.cost.of(instance.objective.minimize)) for point in tracing.points()]
    assert all(b[0] > a[0] and b[1] < a[1] for a, b in pairwise(found))
    for pace, value in thinned(known):
        near = [one for one in found if one[0] <= pace * (1 + 2 * SEARCHED)]
        assert near[-1][1] <= value * (1 + 1e-8)
    for pace, value in found:
        assert any(a <= pace * (1 + 1e-9) and b <= value * (1 + 1e-8) for a, b in known)
        assert not any(a < pace * (1 - 2 * SEARCHED) and b <= value * (1 - 1e-8) for a, b in known)


@pytest.fixture(scope="module", params=["partition", "phased", "sites", "worst-case"])
def traced(request: pytest.FixtureRequest) -> tuple[Instance, Front]:
    instance = asked(str(request.param))
    return instance, coopt.pareto(instance, points=4)


def test_every_point_is_a_plan_of_its_pace(traced: tuple[Instance, Front]) -> None:
    instance, front = traced
    assert front.complete
    assert front.points
    for point in front.points:
        assert point.plan is not None
        assert point.pace <= point.solved_at * (1 + 1e-12)
        verdict = coopt.verify(with_scaled_bounds(instance, point.solved_at), point.plan)
        assert verdict.accepted, [check for check in verdict.checks if not check.ok]
        again = coopt.solve(with_scaled_bounds(instance, point.pace))
        assert again.objective.value == pytest.approx(point.cost.of(front.kind), rel=1e-9)


def test_points_fall_in_cost_and_end_with_the_fastest_and_the_cheapest(traced: tuple[Instance, Front]) -> None:
    instance, front = traced
    values = [point.cost.of(front.kind) for point in front.points]
    assert all(after < before for before, after in pairwise(values))
    assert coopt.solve(with_scaled_bounds(instance, front.points[0].pace * (1 - 2 * SEARCHED))).status == "infeasible"
    assert coopt.solve(with_scaled_bounds(instance, 1e5)).objective.value == pytest.approx(values[-1], rel=1e-9)
    within = [point.cost.of(front.kind) for point in front.points if point.pace <= 1]
    assert within[-1] == pytest.approx(coopt.solve(instance).objective.value, rel=1e-9)


def test_a_traced_front_is_written_and_told(traced: tuple[Instance, Front], tmp_path: Path) -> None:
    instance, front = traced
    write_front(front, instance, tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(NAMES)
    assert Front.model_validate_json((tmp_path / "front.json").read_text("utf-8")) == front
    assert len((tmp_path / "front.csv").read_text("utf-8").splitlines()) == len(front.points) + 1
    told = rendered(front_report(front, instance))
    assert "each is proven: no plan" in " ".join(told.split()).lower()
    assert "of bounds" in told


def test_the_bound_of_one_workload_moves_alone() -> None:
    instance = asked("partition")
    front = coopt.pareto(instance, points=4, over=["second"])
    assert front.over == ("second",)
    for point in front.points:
        first, second = instance.workload
        moved = second.model_copy(update={"max_iteration_time_s": second.bound_s * point.pace})
        plan = coopt.solve(instance.model_copy(update={"workload": (first, moved)}))
        assert plan.objective.value == pytest.approx(point.cost.of(front.kind), rel=1e-9)
    told = rendered(front_report(front, instance))
    assert "Only the bounds of second move, the others stay." in told


def test_bounds_of_phases_move_too() -> None:
    slower = with_scaled_bounds(asked("phased"), 2.0)
    assert slower.phase[0].workloads[0].max_iteration_time_s == 4.0
    assert slower.workload[0].max_iteration_time_s == 2.0
    assert with_scaled_bounds(asked("phased"), 2.0, over=[]) == asked("phased")


def test_a_workload_that_is_not_there_is_refused() -> None:
    with pytest.raises(
        InstanceError, match=r"over = 'third': no workload has this name, needs one of first, second, days, budget"
    ):
        coopt.pareto(asked("partition"), over=["third"])


def test_regrets_at_two_paces_do_not_compare() -> None:
    with pytest.raises(InstanceError, match="regrets at two paces do not compare"):
        coopt.pareto(asked("regret"))


def test_a_slowest_pace_that_nothing_keeps_says_so() -> None:
    front = coopt.pareto(asked("phased"), slowest=0.01)
    assert (front.stop_reason, front.points) == ("infeasible", ())
    assert front.explanation[0] == "no plan keeps 0.01 times the bounds"


def test_time_ends_a_front_with_what_is_proven() -> None:
    front = coopt.pareto(asked("phased"), time_limit_s=1e-9)
    assert (front.stop_reason, front.complete, front.points) == ("time limit", False, ())
