"""The K best designs, TP groups inside HB domains, by plain enumeration."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import coopt
from coopt.columns.grid import context_of
from coopt.instance.schema import Instance, Limits
from coopt.instance.texts import InstanceError
from coopt.instance.variants import with_tp
from coopt.network.family import Family
from coopt.network.parts import cost_of, within_limits
from coopt.network.plan_networks import design_of
from coopt.network.space import families
from coopt.plan.parts import Design
from coopt.plan.schema import Alternative, Plan, Progress
from coopt.report.plan import plan_report
from coopt.report.screen import plan_screen
from coopt.report.words import rendered
from coopt.solving import shared
from coopt.solving.shared import without
from tests.conftest import ASK_WHY, ask, example_count
from tests.solving import fleet_oracle, oracle
from tests.solving.every_optic import with_every_optic
from tests.solving.fleets import partitions
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
@given(instances(64))
def test_a_longer_list_begins_as_a_shorter_one(instance: Instance) -> None:
    alone, few, many = (listed(coopt.solve(instance, top=top, reasons=False)) for top in (1, 3, 6))
    assert few[:1] == alone
    assert [one.design for one in many[:3]] == [one.design for one in few]


def test_each_runner_up_is_proven_by_other_solvers_too_and_none_is_there_unasked() -> None:
    plan, theirs, alone = coopt.solve(ask(), top=5), coopt.solve(ask(), top=4, solver="appsi_highs"), coopt.solve(ask())
    assert [one.design for one in plan.alternatives[:3]] == [one.design for one in theirs.alternatives]
    assert len(plan.alternatives) == 4
    for one in plan.alternatives:
        assert one.objective.gap == pytest.approx(0.0, abs=1e-9)
        assert one.objective.value == one.cost.of("capex")
    assert (alone.alternatives, alone.alternatives_stop) == ((), None)
    assert coopt.solve(ask(), top=3, time_limit_s=1e-9).alternatives_stop is None


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


@pytest.mark.parametrize("top", [0, -1, 1001])
def test_a_number_out_of_range_is_refused(top: int) -> None:
    with pytest.raises(InstanceError, match=f"top = {top}"):
        coopt.solve(ask(), top=top)


slow = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
SAID = "because no plan that keeps them inside one meets the bound"
HARD = {
    "workload__0__mapping": {"tp": 16, "pp": 1, "micro_batch": [1], "zero": [0], "recompute": ["none"]},
    "network__hb_domains": "hgx-h100-8",
}
"""TP over 16 ranks, in domains of 8."""


@st.composite
def wide(draw: st.DrawFn, questions: st.SearchStrategy[Instance]) -> Instance:
    """Questions in which TP may lie anywhere, or inside, or that leave it open; half of them ask for TP over 8 ranks
    within loose bounds, those of one network on domains of up to 4."""
    asked, said = draw(questions), st.sampled_from([None, None, False, True])
    if draw(st.booleans()):
        return left_open(asked, draw(st.lists(said, min_size=2, max_size=2)))
    changes = {"max_iteration_time_s": draw(st.sampled_from([1.0, 8.0])) * asked.workload[0].bound_s}
    workloads = (
        one.model_copy(update={**changes, "mapping": one.mapping.model_copy(update={"tp": (8,)})})
        for one in asked.workload
    )
    domains = asked.network.hb_domains
    if not asked.beyond_one_network:
        domains = tuple(one for one in domains if one.size <= 4) or (domains[0].model_copy(update={"size": 4}),)
    network = asked.network.model_copy(update={"hb_domains": domains})
    changed = {"workload": tuple(workloads), "network": network, "limits": Limits()}
    return left_open(asked.model_copy(update=changed), [None, draw(said)])


def left_open(instance: Instance, said: list[bool | None]) -> Instance:
    """The instance whose workloads say in turn whether TP groups may extend over HB domains."""
    workloads = zip(instance.workload, said, strict=False)
    changed = (one.model_copy(update={"allow_tp_across": across}) for one, across in workloads)
    return instance.model_copy(update={"workload": (*changed, *instance.workload[len(said) :])})


Enumeration = Callable[[Instance], float]


def by_enumeration(instance: Instance, enumerated: Enumeration) -> tuple[float, bool]:
    """The least objective inside domains where that is left open, else anywhere; and which of the two it is."""
    inside = enumerated(with_tp(instance, across=False))
    if math.isfinite(inside) or all(one.allow_tp_across is not None for one in instance.workload):
        return inside, False
    return enumerated(with_tp(instance, across=True)), True


def answered(instance: Instance, enumerated: Enumeration) -> str:
    """Where the TP groups of the answer lie, which is that of enumeration, says so, and is accepted."""
    expected, across = by_enumeration(instance, enumerated)
    plan = coopt.solve(instance, reasons=ASK_WHY)
    value = math.inf if plan.objective.value is None else plan.objective.value
    assert value == (expected if math.isinf(expected) else pytest.approx(expected, rel=1e-9))
    assert plan.tp_across == across
    verdict = coopt.verify(instance, plan)
    assert verdict.accepted, verdict.failures
    crosses = any(run.placement["tp"][1] > 1 for run in plan.runs)
    assert crosses or not across or plan.cost is None
    return "across" if crosses and across else "none" if plan.cost is None else "inside"


@pytest.mark.parametrize(
    ("questions", "enumerated", "campaign", "kinds"),
    [
        (instances(64), oracle.enumerated, 60, ("across", "inside", "none")),
        (partitions(), fleet_oracle.enumerated, 30, ("inside",)),
    ],
)
def test_answers_are_those_of_enumeration(
    questions: Any, enumerated: Enumeration, campaign: int, kinds: tuple[str, ...]
) -> None:
    seen: Counter[str] = Counter()

    @settings(slow, max_examples=example_count(campaign, campaign // 10))
    @given(wide(questions))
    def each(instance: Instance) -> None:
        seen[answered(instance, enumerated)] += 1

    each()
    assert min(seen[kind] for kind in kinds) > 0, seen


def hard() -> tuple[Instance, Plan]:
    """A question that only TP over several domains answers, with its plan."""
    instance = left_open(ask(**HARD), [None])
    return instance, coopt.solve(instance)


def test_a_plan_says_that_nothing_inside_will_do() -> None:
    instance, plan = hard()
    assert (plan.tp_across, plan.status) == (True, "optimal")
    assert all(SAID in " ".join(rendered(show(instance, plan)).split()) for show in (plan_screen, plan_report))
    allowed = left_open(instance, [True])
    same = coopt.solve(allowed)
    assert (same.tp_across, same.objective.value) == (False, plan.objective.value)
    assert SAID not in " ".join(rendered(plan_screen(allowed, same)).split())
    assert coopt.solve(left_open(instance, [False]), reasons=False).status == "infeasible"


def test_without_a_bound_none_is_the_reason() -> None:
    asked = ask(**HARD, workload__0__max_iteration_time_s=None, objective={"minimize": "time"})
    instance = left_open(asked, [None])
    plan = coopt.solve(instance)
    shown = " ".join(rendered(plan_screen(instance, plan)).split())
    assert plan.tp_across
    assert "HB domains, because" in shown
    assert "bound" not in shown.partition("several HB domains")[2].partition(".")[0]


def test_what_is_said_of_tp_is_checked() -> None:
    instance, plan = hard()
    named = [check.name for check in coopt.verify(instance, plan).checks]
    assert {"tp-open", "tp-inside"} <= {*named}
    inside = plan.model_copy(update={"tp_across": False})
    assert "placement" in failed(instance, inside)
    easy = left_open(ask(), [None])
    found = coopt.solve(easy)
    assert not found.tp_across
    wide = coopt.solve(left_open(easy, [True]))
    forged = wide.model_copy(update={"instance": found.instance, "tp_across": True})
    assert failed(easy, forged) == {"tp-inside"}
    decided = left_open(instance, [True])
    assert failed(decided, coopt.solve(decided).model_copy(update={"tp_across": True})) == {"tp-open"}
    nothing = coopt.solve(left_open(ask(workload__0__max_iteration_time_s=1e-4), [None]))
    assert (nothing.status, nothing.tp_across) == ("infeasible", True)
    none = coopt.solve(left_open(instance, [False]))  # that nothing is feasible is claimed of TP anywhere
    assert failed(instance, none.model_copy(update={"instance": plan.instance})) == {"tp-open"}


def failed(instance: Instance, plan: Plan) -> set[str]:
    """The names of the checks that a plan does not pass."""
    return {check.name for check in coopt.verify(instance, plan).failures}


def test_a_certificate_proves_both_claims() -> None:
    instance, plan = hard()
    found = coopt.certify(instance, plan)
    assert found.ok
    assert "TP groups inside" in found.by
    easy = left_open(ask(), [None])
    assert "inside" not in coopt.certify(easy, coopt.solve(easy)).by
    forged = coopt.solve(left_open(easy, [True])).model_copy(
        update={"instance": coopt.solve(easy).instance, "tp_across": True}
    )
    assert not coopt.certify(easy, forged).ok


def test_fronts_reasons_and_given_mappings_follow_the_plan() -> None:
    instance, plan = hard()
    front = coopt.pareto(instance, points=3)
    assert front.tp_across
    assert plan.objective.value in [point.claim.value for point in front.points]
    assert any("TP groups may span" in said for said in coopt.explain(instance, plan).sentences)
    again = coopt.evaluate(instance, plan.design, [run.mapping for run in plan.workloads])
    assert again.workloads == plan.workloads
    (ranked,) = coopt.mappings(instance, plan, most=1).workloads
    assert ranked.mappings[0].placement["tp"][1] > 1
    easy = left_open(ask(), [None])
    assert not coopt.pareto(easy, points=3).tp_across
    assert all(run.placement["tp"][1] == 1 for run in coopt.mappings(easy, coopt.solve(easy)).workloads[0].mappings)
