"""The K best designs are those of plain enumeration, however many."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.columns.grid import context_of
from coopt.instance.base import InstanceError
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.parts import cost_of, within_limits
from coopt.network.plan_networks import design_of
from coopt.network.space import families
from coopt.plan.parts import Design
from coopt.plan.schema import Alternative, Plan, Progress
from coopt.solving import shared
from coopt.solving.shared import without
from tests.conftest import ask, example_count
from tests.solving.every_optic import with_every_optic
from tests.solving.oracle import fastest_s, instances, load


def built(one: Design) -> str:
    """The network that is built, without the names of optics, parts not bought or fabrics that are one and the same."""
    names: dict[str, Any] = {"kind": True} if one.fabric.tiers == 1 else {}
    fabric = one.fabric.model_dump(exclude={**names, "tier": {"__all__": {"optic"}}})
    return repr(one.model_dump(exclude={"fabric"})) + (repr(fabric) if one.fabric.tiers else "")


def ranking(instance: Instance) -> list[tuple[float, float, str]]:
    """Value, share of the tightest bound and design of all that meet everything, best first."""
    best: dict[str, tuple[float, float]] = {}
    times: dict[Any, float] = {}
    networks = list(with_every_optic(instance, families(instance)))
    load(instance.workload, instance.cluster.gpu, networks)
    for family in networks:
        for uplinks in family.uplink_choices:
            cost = cost_of(instance, family, uplinks)
            key = context_of(family), uplinks
            if key not in times:
                times[key] = _share(instance, family, uplinks)
            if times[key] <= 1 and within_limits(instance, family, cost):
                value = cost.of(instance.objective.minimize), times[key]
                name = built(design_of(family, uplinks))
                best[name] = min(best.get(name, value), value)
    return sorted((*value, name) for name, value in best.items())


def _share(instance: Instance, family: Family, uplinks: int) -> float:
    worst = 0.0
    for workload in instance.workload:
        time_s = fastest_s(workload, instance.cluster.gpu, family, uplinks)
        worst = max(worst, time_s / workload.bound_s if time_s <= workload.bound_s else math.inf)
    return worst


def listed(plan: Plan) -> list[Alternative]:
    """The plan and its runners-up as entries of one list."""
    if plan.design is None or plan.cost is None:
        return []
    first = Alternative(objective=plan.objective, design=plan.design, cost=plan.cost, workloads=plan.workloads)
    return [first, *plan.alternatives]


@settings(max_examples=example_count(25))
@given(instances(), st.integers(2, 7))
def test_the_k_best_equal_plain_enumeration(instance: Instance, top: int) -> None:
    plan, expected = coopt.solve(instance, top=top), ranking(instance)
    found = listed(plan)
    assert len(found) == min(top, len(expected))
    assert len({built(one.design) for one in found}) == len(found)
    assert {built(one.design) for one in found} <= {name for _, _, name in expected}
    values = [one.objective.value for one in found]
    shares = [max(w.iteration_time_s / w.bound_s for w in one.workloads) for one in found]
    assert values == pytest.approx([value for value, _, _ in expected[:top]], rel=1e-12)
    assert shares == pytest.approx([share for _, share, _ in expected[:top]], rel=1e-12)
    if found:
        assert plan.alternatives_stop == ("all found" if len(expected) >= top else "no other design")
    else:
        assert plan.alternatives_stop is None


@settings(max_examples=example_count(8))
@given(instances())
def test_a_longer_list_begins_as_a_shorter_one(instance: Instance) -> None:
    alone, few, many = (listed(coopt.solve(instance, top=top)) for top in (1, 3, 6))
    assert few[:1] == alone
    assert [one.design for one in many[:3]] == [one.design for one in few]


def test_each_is_proven_to_be_the_best_of_those_not_listed_before() -> None:
    plan = coopt.solve(ask(), top=5)
    assert len(plan.alternatives) == 4
    for one in plan.alternatives:
        assert one.objective.gap == pytest.approx(0.0, abs=1e-9)
        assert one.objective.value == one.cost.of("capex")


def test_one_design_is_taken_out_under_every_name() -> None:
    every = tuple(families(ask()))
    tiered = next(family for family in every if len(family.uplink_choices) > 2)
    uplinks = tiered.uplink_choices[1]
    rest = tuple(without(every, tiered, uplinks))
    before, after = ([(built(design_of(f, u))) for f in some for u in f.uplink_choices] for some in (every, rest))
    assert set(before) - set(after) == {built(design_of(tiered, uplinks))}
    flat = next(family for family in every if family.tiers == 1)
    left = {built(design_of(f, u)) for f in without(every, flat, 0) for u in f.uplink_choices}
    assert set(before) - left == {built(design_of(flat, 0))}


def test_without_top_there_are_no_runners_up() -> None:
    plan = coopt.solve(ask())
    assert (plan.alternatives, plan.alternatives_stop) == ((), None)


def test_an_interrupt_keeps_the_runners_up_so_far() -> None:
    def press(step: Progress) -> None:
        if step.message == "runner-up 3 of 9":
            raise KeyboardInterrupt

    plan = coopt.solve(ask(), top=10, on_progress=press)
    assert (plan.status, len(plan.alternatives), plan.alternatives_stop) == ("optimal", 2, "interrupted")


def test_a_time_limit_keeps_the_runners_up_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, calls = shared.search, []

    def late(*given: Any, deadline: float, **others: Any) -> Any:
        calls.append(deadline)
        return plain(*given, deadline=deadline if len(calls) < 4 else 0.0, **others)

    monkeypatch.setattr(shared, "search", late)
    plan = coopt.solve(ask(), top=10)
    assert (plan.status, len(plan.alternatives), plan.alternatives_stop) == ("optimal", 2, "time limit")


def test_a_time_limit_before_the_search_lists_nothing() -> None:
    assert coopt.solve(ask(), top=3, time_limit_s=1e-9).alternatives_stop is None


@pytest.mark.parametrize("top", [0, -1, 1001])
def test_a_number_out_of_range_is_refused(top: int) -> None:
    with pytest.raises(InstanceError, match=f"top = {top}"):
        coopt.solve(ask(), top=top)


def test_runners_up_come_from_other_solvers_as_well() -> None:
    ours, theirs = coopt.solve(ask(), top=4), coopt.solve(ask(), top=4, solver="appsi_highs")
    assert [one.design for one in theirs.alternatives] == [one.design for one in ours.alternatives]
