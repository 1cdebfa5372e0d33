"""Robust plans: the optimum is that of enumeration, the verifier agrees, and what nobody can stand is said."""

from __future__ import annotations

import math
import threading
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.columns.context import context_of
from coopt.columns.grid import mappings
from coopt.columns.pools import place
from coopt.instance.errors import InstanceError
from coopt.instance.robust import Robust
from coopt.instance.schema import Instance
from coopt.network.failures import losses, without_nics
from coopt.network.family import Family
from coopt.network.limits import within_limits
from coopt.network.lookup import built
from coopt.network.parts import bill, total
from coopt.network.space import families
from coopt.perf.memory import memory_bytes
from coopt.report.plan import plan_report
from coopt.report.render import rendered
from coopt.solving.evaluate import pinned
from coopt.solving.model_files import model_lp
from coopt.solving.workloads import placement_of
from tests.conftest import ask
from tests.solving.oracle import instances
from tests.verifier.test_mutations import survivors

KINDS = ("hb", "nic", "switch", "optics", "gpu")


@st.composite
def wishes(draw: st.DrawFn) -> Robust:
    """Losses, intervals and aims of all sorts."""
    interval = st.sampled_from([(1.0, 1.0), (0.5, 1.0), (0.5, 2.0), (1.0, 3.0)])
    prices = {kind: draw(interval) for kind in draw(st.lists(st.sampled_from(KINDS), max_size=2, unique=True))}
    return Robust.model_validate(
        {
            "survive": draw(st.lists(st.sampled_from(["nic", "leaf", "plane"]), max_size=2, unique=True)),
            "slower": draw(st.sampled_from([1.0, 1.2, 2.0])),
            "prices": prices,
            "efficiency": draw(st.sampled_from([(1.0, 1.0), (0.8, 1.0), (0.9, 1.2)])),
            "aim": draw(st.sampled_from(["worst-case", "regret"])),
        }
    )


def enumerated(instance: Instance) -> float:
    """The least objective of the aim over every family, number of uplinks, mapping and placement."""
    robust = instance.robust
    assert robust is not None
    low, high = robust.efficiency
    if robust.aim == "worst-case":
        worst = {kind: getattr(robust.prices, kind)[1] for kind in KINDS}
        return least(instance, standing(instance, low), worst, at=worst)
    ends = (dict.fromkeys(getattr(robust.prices, kind)) for kind in KINDS)
    ways = [dict(zip(KINDS, factors, strict=True)) for factors in product(*ends)]
    eager, plain = standing(instance, high), dict.fromkeys(KINDS, 1.0)
    best = [least(instance, eager, way, at=plain) for way in ways]
    regrets = (
        max(0.0, *(cost(instance, f, u, way) - value for way, value in zip(ways, best, strict=True)))
        for f, u in standing(instance, low)
        if allowed(instance, f, u, plain)
    )
    return min(regrets, default=math.inf)


def least(instance: Instance, designs: list[tuple[Family, int]], way: dict[str, float], at: dict[str, float]) -> float:
    """The least objective at prices that turned out some way, of designs that keep the limits at others."""
    return min((cost(instance, f, u, way) for f, u in designs if allowed(instance, f, u, at)), default=math.inf)


def allowed(instance: Instance, family: Family, uplinks: int, way: dict[str, float]) -> bool:
    """Whether a design keeps all limits at prices that turned out some way."""
    whole = total(instance.objective, bill(instance, family, uplinks))
    spent = sum(item.usd * way[item.kind] for item in whole.items)
    return within_limits(instance, family, whole.model_copy(update={"capex_usd": spent}))


def cost(instance: Instance, family: Family, uplinks: int, way: dict[str, float]) -> float:
    """The objective of a design at prices that turned out some way, line by line."""
    lines = bill(instance, family, uplinks)
    usd = sum(line.usd * way[line.kind] for line in lines)
    cost = total(instance.objective, lines)
    return {"capex": usd, "power": cost.power_w, "tco": usd + cost.tco_usd - cost.capex_usd}[
        instance.objective.minimize
    ]


def standing(instance: Instance, efficiency: float) -> list[tuple[Family, int]]:
    """Designs that meet their bounds, before and after every loss."""
    robust, found = instance.robust, []
    assert robust is not None
    for family in families(instance):
        for uplinks in family.uplink_choices:
            after = [worst_loss(family, uplinks, part) for part in robust.survive if family.tiers]
            if answers(instance, family, uplinks, efficiency, 1.0, 1.0) and all(
                answers(instance, family, uplinks, efficiency, slow, robust.slower) for slow in after
            ):
                found.append((family, uplinks))
    return found


def worst_loss(family: Family, uplinks: int, part: str) -> float:
    """How much the worst such loss slows what leaves a domain, by going through the parts of the network."""
    if part == "plane":
        return without_nics(family, family.hb.size * family.nics_per_gpu // family.planes)[0]
    named = {"nic": "NIC", "leaf": "leaf switch"}[part]
    return max(loss.nic for loss in losses(family, uplinks) if loss.part.startswith(named))


def answers(instance: Instance, family: Family, uplinks: int, efficiency: float, slower: float, longer: float) -> bool:
    """Whether every workload meets its longer bound when traffic between domains is slower."""
    if math.isinf(slower):
        return False
    old = instance.cluster.gpu.efficiency
    shares = {name: getattr(old, name) * efficiency for name in ("gemm", "hbm", "attention")}
    gpu = instance.cluster.gpu.model_copy(
        update={"efficiency": old.model_copy(update=shares | {"fp8": None, "fp4": None})}
    )
    weak = replace(family, nic=family.nic.model_copy(update={"gbit_s": family.nic.gbit_s / slower}))
    context = context_of(weak)
    for workload in instance.workload:
        whole, _ = mappings(workload, family.gpus)
        fits = memory_bytes(workload, whole) <= gpu.hbm_gb * 1e9
        pool = place(workload, gpu, family.hb, context.site, whole.take(fits))
        if not (pool.time_s(context, uplinks) <= workload.bound_s * longer).any():
            return False
    return True


@settings(max_examples=25, deadline=None)
@given(base=instances(), robust=wishes())
def test_the_optimum_is_that_of_enumeration(base: Instance, robust: Robust) -> None:
    instance = base.model_copy(update={"robust": robust})
    plan, expected = coopt.solve(instance), enumerated(instance)
    assert plan.status == ("optimal" if math.isfinite(expected) else "infeasible")
    if plan.status == "optimal":
        scale = max(1.0, plan.cost.of(instance.objective.minimize) if plan.cost else 0.0)
        assert plan.objective.value == pytest.approx(expected, rel=1e-12, abs=1e-9 * scale)
    else:
        assert plan.explanation
    verdict = coopt.verify(instance, plan)
    assert verdict.accepted, verdict.failures


def test_price_intervals_leave_the_rest_alone_at_one() -> None:
    plain = ask()
    robust = ask(robust={"aim": "worst-case"})
    assert coopt.solve(robust).design == coopt.solve(plain).design


def test_worst_prices_are_those_of_the_upper_ends() -> None:
    plan = coopt.solve(ask(robust={"prices": {"switch": [0.5, 2.0], "hb": [0.9, 1.0]}}))
    assert plan.cost is not None
    assert plan.robust is not None
    dearer = sum(item.usd / 2 for item in plan.cost.items if item.kind == "switch")
    assert plan.robust.list_value == pytest.approx(plan.cost.capex_usd - dearer)


def test_regret_is_no_more_than_that_of_the_plan_for_today() -> None:
    wish = {"aim": "regret", "prices": {"switch": [0.3, 3.0], "nic": [0.5, 2.0], "hb": [0.5, 2.0]}}
    plan = coopt.solve(ask(robust=wish))
    assert plan.robust is not None
    assert plan.objective.value == pytest.approx(max(turn.value - turn.best for turn in plan.robust.turns))
    assert len(plan.robust.turns) == 8


def test_surviving_more_never_costs_less() -> None:
    values = []
    for survive in ([], ["nic"], ["nic", "plane"]):
        wish = {"survive": survive, "slower": 1.1} if survive else {}
        values.append(coopt.solve(ask(network__fabrics="rail-only", robust=wish)).objective.value or math.inf)
    assert values == sorted(values)


@pytest.mark.parametrize(
    "wish", [{"survive": ["nic"], "slower": 1.5}, {"aim": "regret", "prices": {"nic": [0.5, 2.0]}}]
)
def test_every_mutant_is_rejected(wish: dict[str, Any]) -> None:
    few = {"cluster__gpus": 16, "workload__0__global_batch": 16, "workload__0__mapping": {"micro_batch": 1}}
    instance = ask(robust=wish, network__fabrics="rail-only", network__hb_domains="hgx-h100-8", **few)
    plan = coopt.solve(instance)
    assert plan.status == "optimal"
    assert survivors(instance, plan.model_dump(mode="json", by_alias=True)) == []


def test_the_report_says_what_the_plan_stands() -> None:
    instance = ask(robust={"survive": ["nic"], "slower": 1.5, "prices": {"switch": [0.8, 1.4]}})
    text = rendered(plan_report(instance, coopt.solve(instance)))
    assert "What it stands" in text
    assert "any one nic lost" in text
    assert "at list prices" in text


@pytest.mark.parametrize(
    ("wish", "complaint"),
    [
        ({"slower": 1.5}, "robust.slower = 1.5: allows slower iterations after a loss, needs robust.survive"),
        ({"aim": "regret"}, "robust.aim = 'regret': nothing may turn out otherwise"),
        ({"efficiency": [1.0, 0.9]}, r"robust.efficiency = \[1, 0.9\]: needs the smaller factor first"),
        (
            {"efficiency": [1.0, 1.5]},
            r"\[1, 1.5\]: more than the peaks of h100-sxm, needs at most 1.402",
        ),
        ({"prices": {"nic": [2.0, 1.0]}}, r"nic = \[2, 1\]: needs the smaller factor first"),
        ({"survive": ["domain"]}, "survive"),
        ({"survive": ["nic", "nic"]}, "robust.survive: 'nic' appears twice"),
        ({"prices": {"nic": [1.0, 2.0, 3.0]}}, "nic"),
    ],
)
def test_what_makes_no_sense_is_refused(wish: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        ask(robust=wish)


def test_what_nobody_survives_is_said() -> None:
    plan = coopt.solve(ask(network__fabrics="clos", robust={"survive": ["plane"], "slower": 9.0}))
    assert plan.status == "infeasible"
    assert plan.explanation[0].startswith("robust.survive = plane: no network")


def test_a_search_stopped_before_regret_is_known_claims_nothing_of_it() -> None:
    cancel = threading.Event()
    plan = coopt.solve(
        ask(robust={"aim": "regret", "prices": {"switch": [0.3, 3.0]}}),
        cancel=cancel,
        on_progress=lambda step: cancel.set() if "prices may turn out" in step.message else None,
    )
    assert (plan.status, plan.stop_reason, plan.objective.bound) == ("unknown", "interrupted", None)


def test_regret_is_measured_from_optima_whatever_the_gap() -> None:
    instance = ask(robust={"aim": "regret", "prices": {"switch": [0.3, 3.0], "hb": [0.5, 2.0]}})
    exact, loose = coopt.solve(instance), coopt.solve(instance, gap=0.5)
    assert exact.robust is not None
    assert loose.robust is not None
    assert [turn.best for turn in loose.robust.turns] == [turn.best for turn in exact.robust.turns]
    assert coopt.verify(instance, loose).accepted


@pytest.mark.parametrize("fabric", ["rail-only", "rail-optimized", "clos"])
def test_a_lost_nic_slows_an_iteration_as_slower_nics_would(fabric: str) -> None:
    instance = ask(network__fabrics=fabric, network__hb_domains="hgx-h100-8")
    plan = coopt.solve(instance)
    (chosen,), (workload,) = plan.workloads, pinned(instance, [run.mapping for run in plan.workloads])
    family, uplinks = built(instance, plan)
    slower = family.nic.gbit_s / without_nics(family, 1)[0]
    weak = replace(family, nic=family.nic.model_copy(update={"gbit_s": slower}))
    whole, _ = mappings(workload, family.gpus)
    pool = place(workload, instance.cluster.gpu, family.hb, context_of(weak).site, whole)
    rows = (np.array([row]) for row in range(len(pool)))
    taken = [placement_of(workload, pool.mappings.take(row), pool.placements.take(row)) for row in rows]
    time_s = pool.time_s(context_of(weak), uplinks)[taken.index(chosen.placement)]
    (after,) = next(fault for fault in coopt.faults(instance, plan).faults if fault.part == "NIC").workloads
    assert after.iteration_time_s == pytest.approx(time_s, rel=1e-12)


def test_the_program_of_another_kind_of_question_is_not_written() -> None:
    instance = ask(robust={"prices": {"switch": [1.0, 2.0]}})
    with pytest.raises(InstanceError, match="asks for a robust plan, which a file of the program does not know"):
        model_lp(instance, coopt.solve(instance))
