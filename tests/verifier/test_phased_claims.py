"""What a plan says of its phases is doubted field by field, and its networks are those of the page."""

import math
from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from typing import Any

import pytest

from coopt.instance.schema import Instance
from coopt.network.growth import lines
from coopt.network.plan_networks import design_of
from coopt.plan.parts import Design
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from coopt.verifier.couplings.growth import (
    GrowthPath,
    Growths,
    StageCharge,
    growth_paths,
    growth_values,
    least_growth_below,
)
from coopt.verifier.parts.stages import GrowthStage, design_of_stage, graph_of_stage
from coopt.verifier.parts.timings import Trainer
from coopt.verifier.parts.wiring import count_levels
from tests.changes import with_couplings
from tests.verifier.cases import DOMAINS, NICS, OPTICS, ask, switch

EVERY_FABRIC = ["rail-only", "rail-optimized", "clos"]


def growing(radices: tuple[int, ...] = (8,), **changes: Any) -> Instance:
    """16 GPUs, then 32, then 64, at prices that rise and fall; labour that makes early uplinks pay."""
    phases = [
        {"year": 2026, "gpus": 16, "workloads": {"name": "first", "max_iteration_time_s": 2.2}},
        {"year": 2027, "gpus": 32, "price": {"nic": 1.2, "optics": 0.9}, "retrofit_usd_per_link": 900,
         "workloads": {"name": "first", "max_iteration_time_s": 1.15}},
        {"year": 2029.5, "gpus": 64, "price": {"switch": 0.5, "energy": 1.5}, "retrofit_usd_per_link": 10},
    ]  # fmt: skip
    few = {"hb_domains": [DOMAINS[0]], "nics": NICS[1], "optics": list(OPTICS[:3]), "oversubscription": 3}
    table = {
        "phase": phases,
        "workload__0__mapping": {"micro_batch": 1, "zero": 1, "sequence_parallel": True},
        "network__switches": [switch(radix) for radix in radices],
        **{f"network__{key}": value for key, value in few.items()},
    }
    return ask(**table | changes)


def twice(*radices: int, **changes: Any) -> Instance:
    """The first and the last of the phases."""
    whole = growing(radices, **changes)
    return whole.model_copy(update={"phase": (whole.phase[0], whole.phase[-1])})


CASES = {
    "clos": lambda: twice(8, network__fabrics="clos"),
    "a dead end": lambda: twice(8, 16, network__hb_domains=list(DOMAINS[:2]), workload__0__max_iteration_time_s=0.19),
    "infeasible": lambda: twice(8, workload__0__max_iteration_time_s=0.01),
}


def test_the_cases_hold_what_they_are_for() -> None:
    plans = [*(solve(case()) for case in CASES.values()), solve(growing(network__fabrics="clos"))]
    assert any(phase.stored for plan in plans for phase in plan.couplings.growth)
    assert any(item.kind == "labour" for plan in plans for phase in plan.couplings.growth for item in phase.bought)
    dead = solve(CASES["a dead end"]()).couplings.myopic
    assert dead.dead_end is not None


@pytest.mark.parametrize("radix", [4, 6, 8, 16])
def test_networks_of_solver_and_verifier_are_the_same(radix: int) -> None:
    instance = growing((radix,), network__fabrics=EVERY_FABRIC, network__hb_domains=list(DOMAINS[:2]))
    ours = {tuple(map(design_of, line, _most(family.uplink_choices for family in line))) for line in lines(instance)}
    theirs = {
        tuple(_drawn(instance, stage, u) for stage, u in zip(path, _most(stage.uplinks for stage in path), strict=True))
        for path in growth_paths(instance, "capex")
    }
    assert len(ours) >= 2
    assert {tuple(map(_shown, one)) for one in ours} == {tuple(map(_shown, one)) for one in theirs}


def _most(choices: Iterable[range]) -> list[int]:
    return [uplinks[-1] for uplinks in choices]


def _drawn(instance: Instance, stage: GrowthStage, uplinks: int) -> Design:
    anything = next(design_of(line[-1], line[-1].uplink_choices[0]) for line in lines(instance))
    return design_of_stage(instance, stage, uplinks, anything.fabric)


def _shown(one: Design) -> str:
    """A design in words, without what is named and not bought."""
    return f"{one.gpus} {one.hb_domain} {one.fabric if one.fabric.tiers else 'no network'}"


@pytest.mark.parametrize("radix", [4, 6, 8])
def test_counts_of_every_stage_are_those_of_its_graph(radix: int) -> None:
    instance = growing((radix,), network__fabrics=EVERY_FABRIC, network__hb_domains=list(DOMAINS[:2]))
    one_pods = 0
    for stage in (stage for path in growth_paths(instance, "capex") for stage in path if stage.ports.tiers > 1):
        for uplinks in stage.uplinks:
            counts = count_levels(graph_of_stage(stage, uplinks), stage.family, stage.with_up(uplinks))
            tiers = _drawn(instance, stage, uplinks).fabric.tier
            assert [(t.switches, t.down_ports, t.uplinks_per_switch, t.links) for t in tiers] == [
                (c.switches, c.down_ports, c.up_ports, c.links) for c in counts
            ]
            one_pods += stage.one_pod
    assert one_pods or radix != 6


def values_of(growths: Growths, path: GrowthPath) -> dict[tuple[int, ...], Fraction]:
    """What a network is worth with any uplinks that never fall and serve."""
    charges = [StageCharge(growths.fleet, stage, t) for t, stage in enumerate(path)]
    serving = [
        [up for up in stage.uplinks if Trainer(question).trains(stage.family, stage.reach(up))]
        for question, stage in zip(growths.fleet.questions, path, strict=True)
    ]
    return {
        uplinks: value
        for uplinks in product(*serving)
        for value in growth_values(growths.fleet, path, [[up] for up in uplinks], charges).values()
    }


@pytest.mark.parametrize("minimize", ["capex", "tco"])
def test_a_network_grows_for_the_least_of_all_uplinks_that_serve(minimize: str) -> None:
    wide = {"network__fabrics": "clos", "network__oversubscription": 6, "objective__minimize": minimize}
    instance = growing((24,), **wide, workload__0__max_iteration_time_s=0.25, phase=[
        {"year": 2026, "gpus": 16, "workloads": {"name": "first", "max_iteration_time_s": 0.9}},
        {"year": 2027, "gpus": 32, "retrofit_usd_per_link": 900, "price": {"optics": 0.9},
         "workloads": {"name": "first", "max_iteration_time_s": 0.45}},
        {"year": 2029.5, "gpus": 64, "retrofit_usd_per_link": 10, "price": {"switch": 0.5, "energy": 1.5}},
    ])  # fmt: skip
    growths, looked_at, bought_early = Growths(instance, instance.objective.minimize), 0, 0
    for path in growths.paths:
        growths.__dict__["paths"] = (path,)
        by_uplinks = values_of(growths, path)
        values, fewest = sorted(set(by_uplinks.values())), by_uplinks[min(by_uplinks)]
        assert least_growth_below(growths, math.inf) == values[0]
        for value in values:
            assert least_growth_below(growths, float(value)) == (values[0] if value > values[0] else None)
        looked_at += len(values)
        bought_early += fewest > values[0]
    assert looked_at > 50
    assert bought_early


NAMES = {
    "nic": {"nic": {"name": "no such NIC", "per_gpu": 1}},
    "nics-per-gpu": {"nic": {"name": NICS[1]["name"], "per_gpu": 999}},
    "switch": {"switch": {"name": "??"}},
    "fabric": {"kind": "rail-only"},
}


@pytest.mark.parametrize("name", NAMES)
def test_a_phase_of_one_domain_names_parts_of_the_instance(name: str) -> None:
    phases = [{"year": 2026, "gpus": 4, "workloads": {"name": "first", "max_iteration_time_s": 9.0}}]
    instance = growing((8,), network__fabrics="clos", phase=[*phases, {"year": 2029, "gpus": 64}])
    plan = solve(instance)
    assert plan.parts[0].design.fabric.tiers == plan.couplings.myopic.steps[0].design.fabric.tiers == 0
    assert verify(instance, plan).accepted
    table = plan.model_dump(mode="json", by_alias=True)
    for where in (table["parts"], table["couplings"]["myopic"]["steps"]):
        known = where[0]["design"]["fabric"]
        where[0]["design"]["fabric"] = known | NAMES[name]
        failures = {check.name for check in verify(instance, Plan.model_validate(table)).failures}
        assert failures & {name, "growth"}
        where[0]["design"]["fabric"] = known


def test_a_plan_without_its_phases_or_that_boasts_of_what_planning_saves_is_rejected() -> None:
    instance = growing()
    plan = solve(instance)
    assert not verify(instance, with_couplings(plan, growth=())).accepted
    assert plan.couplings.myopic.saving is not None
    boasted = plan.couplings.myopic.model_copy(update={"saving": plan.couplings.myopic.saving + 500})
    assert [check.name for check in verify(instance, with_couplings(plan, myopic=boasted)).failures] == ["myopic-value"]
