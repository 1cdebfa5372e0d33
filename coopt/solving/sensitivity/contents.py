"""What a plan of any question consists of, wherever its form keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from coopt.instance.schema import Instance
from coopt.plan.direct_links import DirectLinks
from coopt.plan.schema import Design, Plan, WorkloadPlan


@dataclass(frozen=True, kw_only=True)
class Running:
    """A workload as it runs on some network; `phase` counts from 0 where the cluster grows in phases."""

    run: WorkloadPlan
    phase: int | None = None


def running(plan: Plan) -> list[Running]:
    """Every workload in every phase and at every site."""
    if plan.parts:
        years = _years(plan)
        return [
            Running(run=run, phase=None if part.phase is None else years.index(part.phase))
            for part in plan.parts
            for run in part.workloads
        ]
    if plan.phases:
        return [Running(run=run, phase=t) for t, phase in enumerate(plan.phases) for run in phase.workloads]
    if plan.together is not None:
        return [Running(run=run) for site in plan.together.sites for run in site.workloads]
    return [Running(run=run) for run in plan.workloads]


def _years(plan: Plan) -> list[float]:
    """The years in which phases begin, rising."""
    return [spent.year for spent in plan.couplings.growth]


def built(plan: Plan) -> list[Design | DirectLinks]:
    """Every network of the plan, in every phase."""
    if plan.parts:
        return [one for part in plan.parts for one in (part.design, part.links) if one is not None]
    if plan.phases:
        return [phase.design for phase in plan.phases]
    if plan.together is not None:
        return [site.design for site in plan.together.sites]
    if plan.islands:
        return [island.design for island in plan.islands]
    return [one for one in (plan.design, plan.direct) if one is not None]


def standing(plan: Plan, phase: int | None = None) -> list[Design | DirectLinks]:
    """The networks that stand together in a phase, in the last one where none is named."""
    if plan.parts:
        years = _years(plan)
        year = years[-1 if phase is None else phase] if years else None
        there = [part for part in plan.parts if part.phase == year]
        return [one for part in there for one in (part.design, part.links) if one is not None]
    return built(plan)[-1:] if plan.phases else built(plan)


def gpus(plan: Plan, phase: int | None = None) -> float:
    """GPUs that train in a phase, in the last one where none is named."""
    return float(sum(design.gpus for design in standing(plan, phase)))


def racks(plan: Plan) -> float | None:
    """Racks that HB domains fill together, None where a kind of domain does not say."""
    filled = [design.racks for design in standing(plan)]
    return None if None in filled else float(sum(count or 0 for count in filled))


def power_mw(plan: Plan) -> float | None:
    """IT power, that of the hungriest phase where there are several (MW)."""
    phases = plan.phases or plan.couplings.growth
    if phases:
        return max(phase.power_w for phase in phases) / 1e6
    return None if plan.cost is None else plan.cost.power_w / 1e6


def fed_mw(plan: Plan, site: str) -> float | None:
    """What a site feeds, in the phase in which it feeds most (MW)."""
    if plan.couplings.sites:
        return max((one.facility_w for one in plan.couplings.sites if one.site == site), default=0.0) / 1e6
    if plan.together is None:
        return None
    return sum(one.facility_w for one in plan.together.sites if one.name == site) / 1e6


def lit_channels(plan: Plan, between: frozenset[str]) -> float | None:
    """Channels lit between two sites."""
    if plan.couplings.ring is not None:
        links = plan.couplings.ring.wan
    elif plan.together is not None:
        links = plan.together.wan
    else:
        return None
    return float(sum(link.channels for link in links if frozenset(link.between) == between))


def products(plan: Plan, kind: str) -> set[str]:
    """Names of the products of a kind in use, those of cores included."""
    cores = [shared.core for shared in plan.couplings.cores] or [core for core in (plan.core,) if core is not None]
    used = {name for design in built(plan) for name in _of_design(design, kind)}
    if not cores:
        return used
    lone = {one.fabric.nic.name for one in built(plan) if isinstance(one, Design) and not one.fabric.tiers}
    ends = {"switch": {core.switch.name for core in cores}, "optics": {core.optic for core in cores}, "nic": lone}
    return used | ends.get(kind, set())


def _of_design(design: Design | DirectLinks, kind: str) -> set[str]:
    if kind == "hb":
        return {design.hb_domain.name}
    if isinstance(design, DirectLinks):
        return {"nic": {design.nic.name}, "optics": {design.optic}}.get(kind, set())
    fabric = design.fabric
    if not fabric.tiers:
        return set()
    names = {"nic": {fabric.nic.name}, "switch": {fabric.switch.name}, "optics": {tier.optic for tier in fabric.tier}}
    return names[kind]


SOLD_AS = {"hb_domains": "hb", "nics": "nic", "switches": "switch", "optics": "optics"}
"""Lists of the network by the kind of product that they hold."""


def entries_used(instance: Instance, plan: Plan, key: str) -> list[str | int | bool]:
    """What a plan uses of a list, by its key in the instance; names where entries have them."""
    table, *_, name = key.split(".")
    if table.startswith("workload["):
        workload = instance.workload[int(table.removeprefix("workload[").removesuffix("]"))]
        runs = [one.run for one in running(plan) if one.run.name == workload.name]
        return [getattr(run.mapping, name) for run in runs]
    if name in SOLD_AS:
        return sorted(products(plan, SOLD_AS[name]))
    designs = built(plan)
    if name == "fabrics":
        return ["direct" if isinstance(design, DirectLinks) else design.fabric.kind for design in designs]
    assert name == "nics_per_gpu", name
    return [(design if isinstance(design, DirectLinks) else design.fabric).nic.per_gpu for design in designs]
