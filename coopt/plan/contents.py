"""Access to the contents of a plan of any kind, independent of where they are stored.

Designs are also provided as flat columns with fixed names, for tables with one design per row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from coopt.instance.schema import Instance, days_in_turn
from coopt.plan.couplings import Part
from coopt.plan.parts import Design, DirectLinks, Item, WorkloadPlan
from coopt.plan.schema import Plan

ADDED = ("gpus", "spare_gpus", "hb_count", "switches", "transceivers", "racks")
"""Values of several designs that add up."""


@dataclass(frozen=True, kw_only=True)
class Running:
    """A workload on its network in a phase (numbered from 0).

    `where` names the phase and the site in words, where there are several.
    """

    run: WorkloadPlan
    phase: int = 0
    where: str = ""

    @property
    def label(self) -> str:
        """The workload with its phase and site."""
        return f"{self.run.name}, {self.where}" if self.where else self.run.name


def running(plan: Plan) -> list[Running]:
    """Return every workload in every phase and at every site."""
    years = plan.couplings.years
    return [
        Running(run=run, phase=years.index(part.phase), where=_place(part))
        for part in plan.parts
        for run in part.workloads
    ]


def _place(part: Part) -> str:
    """Return site and phase of a part in words."""
    phase = None if part.phase is None else f"{part.phase:.10g}"
    return ", ".join(name for name in (part.site, phase) if name is not None)


def built(plan: Plan) -> list[Design | DirectLinks]:
    """Return every network of the plan, in every phase."""
    return [
        network
        for part in plan.parts
        for network in (part.design, part.links)
        if network is not None
    ]


def installed(plan: Plan, phase: int = -1) -> list[Design | DirectLinks]:
    """Return the networks installed in a phase, by default in the last one."""
    parts = [part for part in plan.parts if part.phase == plan.couplings.years[phase]]
    return [
        network for part in parts for network in (part.design, part.links) if network is not None
    ]


def gpus(plan: Plan, phase: int = -1) -> float:
    """Return the number of training GPUs in a phase, by default in the last one."""
    return float(sum(design.gpus for design in installed(plan, phase)))


def racks(plan: Plan) -> float | None:
    """Return the racks of all HB domains, or None where the racks of a domain are unknown."""
    rack_counts = [design.racks for design in installed(plan)]
    return None if None in rack_counts else float(sum(count or 0 for count in rack_counts))


def used_of(instance: Instance, plan: Plan) -> dict[str, float | None]:
    """Return a plan's use of each given limit, in its own unit; for power, that of the phase with
    the highest use.
    """
    if plan.cost is None:
        return {}
    limits, power_w = instance.limits, max(plan.couplings.drawn_w(plan.cost).values())
    amounts = limits.against(usd=plan.cost.capex_usd, w=power_w, racks=racks(plan))
    used = {key: amount for key, (amount, _) in amounts.items()}
    if limits.train_days_total is not None:
        used["train_days_total"] = promised_days_in_turn(instance, plan.workloads)
    return used


def promised_days_in_turn(instance: Instance, runs: Iterable[WorkloadPlan]) -> float:
    """Return the days in which all workloads train one after the other, with interruptions and
    margin.
    """
    return float(days_in_turn(instance, (run.promised_s for run in runs)))


def bought(plan: Plan) -> list[Item]:
    """Return all purchases of all phases, at the prices paid."""
    assert plan.cost is not None
    return [item for items in plan.couplings.bought(plan.cost).values() for item in items]


def products(plan: Plan, kind: str) -> set[str]:
    """Return the names of the products of a kind in use, including those shared between islands."""
    names = plan.couplings.products(kind)
    for part in plan.parts:
        network, joined = part.design or part.links, plan.couplings.joint(part) is not None
        names |= set() if network is None else _of_design(network, kind, joined=joined)
    return names


def _of_design(design: Design | DirectLinks, kind: str, *, joined: bool) -> set[str]:
    """Return the products of a network; one without tiers has NICs if its domain is connected to
    others.
    """
    if kind == "hb":
        return {design.hb_domain.name}
    if isinstance(design, DirectLinks):
        return {"nic": {design.nic.name}, "optics": {design.optic}}.get(kind, set())
    fabric = design.fabric
    if not fabric.tiers:
        return {fabric.nic.name} if joined and kind == "nic" else set()
    return {
        "nic": {fabric.nic.name},
        "switch": set(fabric.switch_names),
        "optics": {name for tier in fabric.tier for name in tier.optics},
    }[kind]


SOLD_AS = {"hb_domains": "hb", "nics": "nic", "switches": "switch", "optics": "optics"}
"""Lists of the network by the kind of product that they hold."""


def sizes_used(plan: Plan, workload: str) -> list[int]:
    """Return the numbers of GPUs on which a workload runs, for all its networks."""
    return sorted({run.gpus for run in plan.runs if run.name == workload})


def mappings_used(plan: Plan, workload: str, name: str) -> list[str | int | bool]:
    """Return one field of a workload's mappings, for all its networks."""
    return [getattr(run.mapping, name) for run in plan.runs if run.name == workload]


def parts_used(plan: Plan, name: str) -> Sequence[str | int]:
    """Return the entries of a list of the instance's network that a plan uses; names where entries
    have them.
    """
    if name in SOLD_AS:
        return sorted(products(plan, SOLD_AS[name]))
    designs = built(plan)
    if name == "fabrics":
        return [
            "direct" if isinstance(design, DirectLinks) else design.fabric.kind
            for design in designs
        ]
    nics = [
        (design if isinstance(design, DirectLinks) else design.fabric).nic for design in designs
    ]
    numbers = {"nics_per_gpu": "per_gpu", "gpus_per_nic": "shared_by", "nic_planes": "planes"}
    return [getattr(nic, numbers[name]) for nic in nics]


def flat_plan(plan: Plan) -> dict[str, object]:
    """Return what a plan of any kind has built in the end, as columns of one design; empty without
    a plan.
    """
    if len(plan.parts) == 1 and plan.parts[0].links is not None:
        return _flat_links(plan.parts[0].links)
    last_year = max((part.phase for part in plan.parts if part.phase is not None), default=None)
    totals = _totals(
        [part.design for part in plan.parts if part.phase == last_year and part.design is not None]
    )
    for name, count in plan.couplings.shared_counts(last_year).items():
        islands = totals[name]
        assert isinstance(islands, int)
        totals[name] = islands + count
    return totals


def _totals(designs: Sequence[Design]) -> dict[str, object]:
    """Combine designs into columns: sums where possible, common values, and None where values
    differ.
    """
    rows = [flat_design(design) for design in designs]
    totals: dict[str, object] = {}
    for name in rows[0] if rows else ():
        values = [row[name] for row in rows]
        if name in ADDED:
            counts = [value for value in values if isinstance(value, int)]
            totals[name] = sum(counts) if len(counts) == len(values) else None
        else:
            totals[name] = values[0] if len(set(values)) == 1 else None
    return totals


def _flat_links(direct: DirectLinks) -> dict[str, object]:
    """Return the columns of domains on direct links, without tiers and switches."""
    domain = direct.hb_domain
    return {
        "gpus": direct.gpus,
        "spare_gpus": direct.spare_gpus,
        "hb_name": domain.name,
        "hb_size": domain.size,
        "hb_count": domain.count,
        "fabric": "direct",
        "nic": direct.nic.name,
        "nics_per_gpu": direct.nic.per_gpu,
        "transceivers": 2 * direct.links,
        "racks": direct.racks,
    }


def flat_design(design: Design) -> dict[str, object]:
    """Return the columns of GPUs, HB domains and network, with the names in `docs/suites.md`."""
    fabric, domain = design.fabric, design.hb_domain
    return {
        "gpus": design.gpus,
        "spare_gpus": design.spare_gpus,
        "hb_name": domain.name,
        "hb_size": domain.size,
        "hb_count": domain.count,
        "fabric": fabric.kind,
        "tiers": fabric.tiers,
        "planes": fabric.planes,
        "oversubscription": fabric.oversubscription,
        "nic": fabric.nic.name,
        "nics_per_gpu": fabric.nic.per_gpu,
        "switch": fabric.switch_text,
        "switches": fabric.switch_count,
        "transceivers": fabric.transceiver_count,
        "uplinks": fabric.tier[0].uplinks_per_switch if fabric.tier else 0,
        "racks": design.racks,
    }
