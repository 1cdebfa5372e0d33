"""Fronts are those of plain enumeration, traced or swept; every point is proven, and knees are where they bend."""

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coopt
from coopt.columns.grid import context_of
from coopt.instance.numerics import SEARCHED
from coopt.instance.schema import Instance, with_workload
from coopt.instance.texts import InstanceError
from coopt.instance.variants import with_scaled_bounds
from coopt.network.plan_networks import families_of_design
from coopt.plan.couplings import one_network
from coopt.plan.front import Front, FrontPoint
from coopt.plan.schema import InstanceId, Plan, Progress
from coopt.report.fronts.text import front_report
from coopt.report.words import rendered
from coopt.solving.arrays import SharedProblem
from coopt.solving.fronts.designs import Certifier
from coopt.solving.fronts.tracing import DEPTH, Tracing, knees, most_telling
from coopt.solving.resolves import Resolver
from formulations.network import FRONT, NetworkData
from tests.conftest import ask, example_count, switch
from tests.explain.changed import only
from tests.formulations.small import best, problems
from tests.kinds import QUESTIONS
from tests.solving.oracle import enumerated_front, instances, with_few_mappings

slow = settings(max_examples=example_count(25))
EVERY = 10_000
TINY = Path(__file__).parents[2] / "instances" / "tiny-64.toml"


def large(**changes: Any) -> Instance:
    """A question whose front has a few dozen points."""
    given = {
        "cluster__gpus": 512, "workload__0__global_batch": 512, "workload__0__max_iteration_time_s": 0.12,
        "network__switches": [switch(32, 9000)], "network__oversubscription": 8.0,
    }  # fmt: skip
    return ask(**(given | changes))


def pairs(front: Front) -> list[tuple[float, float]]:
    return [(point.pace, point.best.cost.of(front.kind)) for point in front.points]


@cache
def any_plan() -> Plan:
    return coopt.solve(ask())


def as_plan(instance: Instance, front: Front, point: FrontPoint) -> tuple[Instance, Plan]:
    """A point as the plan of the instance with its bounds at the pace of the point."""
    asked, best = with_scaled_bounds(instance, point.pace), point.best
    told = {"objective": best.objective, "design": best.design, "cost": best.cost, "workloads": best.workloads}
    told["parts"] = (one_network(best.cost, best.workloads, design=best.design),)
    told["instance"] = InstanceId(name=asked.name, sha256=asked.sha256)
    return asked, any_plan().model_copy(update=told)


@slow
@given(instances(64))
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
def test_a_point_is_an_accepted_plan_that_costs_what_the_search_finds_for_its_bounds(
    instance: Instance, points: int
) -> None:
    """Slower ones cost less, and each is proven."""
    front = coopt.pareto(instance, points)
    assert len(front.points) == min(points, front.size)
    for point in front.points:
        verdict = coopt.verify(*as_plan(instance, front, point))
        assert verdict.accepted, verdict.failures
        found = next(families_of_design(instance, point.best.design))
        assert context_of(found[0]).site.gpus == point.best.design.gpus
        plan = coopt.solve(with_scaled_bounds(instance, point.pace))
        assert plan.objective.value == pytest.approx(point.best.objective.value, rel=1e-9)
        assert point.best.objective.bound is not None
        assert point.best.objective.gap <= 1e-9
        assert max(w.iteration_time_s / w.bound_s for w in point.best.workloads) == pytest.approx(1, abs=1e-12)
    for (pace, value), (slower, cheaper) in pairwise(pairs(front)):
        assert (slower > pace, cheaper < value) == (True, True)
    assume(front.points)
    just_faster = coopt.solve(with_scaled_bounds(instance, front.points[0].pace * (1 - 1e-9)))
    assert just_faster.status == "infeasible"


@pytest.mark.parametrize("kind", ["power", "tco"])
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
    assert three.stop_reason == "all requested points"
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
    none = coopt.pareto(ask(limits={"capex_usd": 1.0}))
    assert none.stop_reason == "infeasible"
    assert "limits.capex_usd" in none.explanation[0]


def test_an_interrupt_keeps_the_points_proven_so_far() -> None:
    def stop(step: Progress) -> None:
        if step.stage == "solve" and step.message.startswith("3 of"):
            raise KeyboardInterrupt

    front = coopt.pareto(large(), on_progress=stop)
    assert (len(front.points), front.complete, front.stop_reason) == (3, False, "interrupted")
    assert set(pairs(front)) <= set(pairs(coopt.pareto(large())))


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
    unbounded = with_workload(ask(), 0, {"max_iteration_time_s": None})
    with pytest.raises(InstanceError, match=r"slowest = 2\.0: no workload has a bound"):
        coopt.pareto(unbounded, slowest=2.0)


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


@settings(max_examples=example_count(20, usual=2))
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


@pytest.mark.parametrize("kind", ["partition", "phased", "sites", "worst-case"])
def test_every_point_is_a_plan_of_its_pace_from_the_fastest_to_the_cheapest(kind: str) -> None:
    instance = only(asked(kind), "network.hb_domains", "hgx-h100-8") if kind == "sites" else asked(kind)
    front = coopt.pareto(instance, points=3)
    assert front.complete
    assert front.points
    for point in front.points:
        assert point.plan is not None
        assert point.pace <= point.solved_at * (1 + 1e-12)
        verdict = coopt.verify(with_scaled_bounds(instance, point.solved_at), point.plan)
        assert verdict.accepted, [check for check in verdict.checks if not check.ok]
        again = coopt.solve(with_scaled_bounds(instance, point.pace), reasons=False)
        assert again.objective.value == pytest.approx(point.cost.of(front.kind), rel=1e-9)

    values = [point.cost.of(front.kind) for point in front.points]
    assert all(after < before for before, after in pairwise(values))
    faster = with_scaled_bounds(instance, front.points[0].pace * (1 - 2 * SEARCHED))
    assert coopt.solve(faster, reasons=False).status == "infeasible"
    assert coopt.solve(with_scaled_bounds(instance, 1e5)).objective.value == pytest.approx(values[-1], rel=1e-9)
    within = [point.cost.of(front.kind) for point in front.points if point.pace <= 1]
    assert within[-1] == pytest.approx(coopt.solve(instance).objective.value, rel=1e-9)


def test_the_bound_of_one_workload_moves_alone() -> None:
    instance = asked("partition")
    front = coopt.pareto(instance, points=3, over=["second"])
    assert front.over == ("second",)
    for point in front.points:
        first, second = instance.workload
        moved = second.model_copy(update={"max_iteration_time_s": second.bound_s * point.pace})
        plan = coopt.solve(instance.model_copy(update={"workload": (first, moved)}))
        assert plan.objective.value == pytest.approx(point.cost.of(front.kind), rel=1e-9)
    told = rendered(front_report(front, instance))
    assert "bounds of second" in told


def test_fronts_of_coupled_networks_say_what_nothing_keeps_what_time_left_and_what_they_do_not_compare() -> None:
    phased = asked("phased")
    slow, late = coopt.pareto(phased, slowest=0.01), coopt.pareto(phased, time_limit_s=1e-9)
    assert (slow.stop_reason, slow.points) == ("infeasible", ())
    assert "0.01 times the bounds" in slow.explanation[0]
    assert (late.stop_reason, late.complete, late.points) == ("time limit", False, ())
    named = r"over = 'third': no workload has this name, needs one of first, second, days, budget"
    with pytest.raises(InstanceError, match=named):
        coopt.pareto(asked("partition"), over=["third"])
    with pytest.raises(InstanceError, match=r"needs robust\.aim = 'worst-case'"):
        coopt.pareto(asked("regret"))


def test_bounds_of_phases_move_too() -> None:
    slower = with_scaled_bounds(asked("phased"), 2.0)
    assert slower.phase[0].workloads[0].max_iteration_time_s == 4.0
    assert slower.workload[0].max_iteration_time_s == 2.0
    assert with_scaled_bounds(asked("phased"), 2.0, over=[]) == asked("phased")


def front(*points: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    pace, value = zip(*points, strict=True)
    return np.array(pace, dtype=float), np.array(value, dtype=float)


fronts = st.lists(
    st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)), min_size=2, max_size=30
).map(lambda steps: (np.cumsum([a for a, _ in steps]), np.cumsum([b for _, b in steps])[::-1].copy()))  # fmt: skip


@pytest.mark.parametrize(
    ("points", "found"),
    [
        (((1, 100), (2, 60), (3, 20), (6, 15), (9, 10)), [2]),
        (((0, 100), (1, 70), (5, 65), (6, 10), (10, 0)), [3, 1]),  # the deeper first
        (((1, 4), (2, 3), (3, 2), (4, 1)), []),  # a straight front
        (((1, 10), (2, 9.5), (3, 8), (4, 0)), []),  # one that bends outwards
        (((1, 5),), []),
    ],
)
def test_the_corners_of_a_bent_front_are_its_knees(points: tuple[tuple[float, float], ...], found: list[int]) -> None:
    assert knees(*front(*points)) == found


def test_points_are_chosen_by_what_is_farthest_from_the_others() -> None:
    pace, value = front((0, 100), (1, 99), (2, 50), (3, 49), (10, 0))
    assert most_telling(pace, value, [0, 4], 3) == [0, 4, 3]
    assert most_telling(pace, value, [0, 4, 0], 9) == [0, 4, 3, 1, 2]
    assert most_telling(*front((1, 5)), [0, 0], 5) == [0]


@pytest.mark.parametrize(("share", "found"), [(0.98, []), (1.02, [1])])
def test_a_bend_counts_from_its_depth_on(share: float, found: list[int]) -> None:
    below = DEPTH * share * np.sqrt(2)  # straight down to the line between the ends
    assert knees(*front((0, 1), (0.5, 0.5 - below), (1, 0))) == found


@given(fronts, st.floats(0.1, 10), st.floats(1e3, 1e9))
def test_knees_do_not_depend_on_units(points: tuple[np.ndarray, np.ndarray], seconds: float, usd: float) -> None:
    pace, value = points
    assert all(0 < knee < len(pace) - 1 for knee in knees(pace, value))
    scaled = np.round(np.log2([seconds, usd]))  # powers of two, which change no digit
    assert knees(pace * 2 ** scaled[0], value * 2 ** scaled[1]) == knees(pace, value)


@given(fronts)
def test_every_knee_lies_below_the_line_between_its_neighbouring_knees(points: tuple[np.ndarray, np.ndarray]) -> None:
    pace, value = points
    stops = sorted([0, *knees(pace, value), len(pace) - 1])
    for before, knee, after in zip(stops, stops[1:], stops[2:], strict=False):
        share = (pace[knee] - pace[before]) / (pace[after] - pace[before])
        assert value[knee] < value[before] + share * (value[after] - value[before])


@given(fronts, st.integers(2, 40))
def test_no_point_is_chosen_twice_and_as_many_as_there_are(points: tuple[np.ndarray, np.ndarray], wanted: int) -> None:
    pace, value = points
    found = most_telling(pace, value, [0, len(pace) - 1], wanted)
    assert len(set(found)) == len(found) == min(wanted, len(pace))
    assert found[:2] == [0, len(pace) - 1]


def problem(data: NetworkData) -> SharedProblem:
    return SharedProblem(families=(), prices=(), columns=(), data=data, scale=2.0)


def least_cost(data: NetworkData, fewest: np.ndarray) -> float:
    """By trying every family at its fewest uplinks, where more never cost less."""
    costs = []
    for f, uplinks in enumerate(fewest.tolist()):
        if uplinks <= data.max_uplinks[f]:
            spines = math.ceil(int(data.leaves[f]) * uplinks / int(data.radix[f]))
            costs.append(float(data.fixed[f] + data.uplink[f] * uplinks + data.spine[f] * spines))
    return min(costs)


@settings(max_examples=example_count(80))
@given(problems(), st.data())
def test_fractions_cost_what_whole_numbers_do_at_every_pace_in_any_order(
    data: NetworkData, draw: st.DataObject
) -> None:
    certifier = Certifier(problem(data))
    for turn in range(3):
        fewest = np.array(
            [
                draw.draw(st.integers(int(a), int(b) + 1))
                for a, b in zip(data.min_uplinks, data.max_uplinks, strict=True)
            ]
        )
        if (fewest > data.max_uplinks).all():
            fewest[0] = data.min_uplinks[0]
        expected = least_cost(data, fewest)
        assert certifier.bound(fewest) == pytest.approx(2 * expected, rel=1e-9, abs=1e-9)
        possible = replace(data, min_uplinks=np.minimum(fewest, data.max_uplinks))
        if (fewest <= data.max_uplinks).all():
            assert best(possible, FRONT) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert certifier.solves == turn + 1
