"""Check one part of a plan: a network that stands somewhere, with what trains on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from coopt.instance.errors import counted
from coopt.instance.hardware import Gpu
from coopt.instance.reserves import Availability
from coopt.instance.schema import Instance, Objective, ObjectiveKind
from coopt.instance.workload import Workload
from coopt.plan.schema import Cost, Design, WorkloadPlan
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.parts.bills import BillTotal, SwitchLevel, bill, bill_total, check_bill
from coopt.verifier.parts.design_checks import check_ports, held_in_cages
from coopt.verifier.parts.layouts import Ports, ceil_ratio, core_ports
from coopt.verifier.parts.network_checks import check_network
from coopt.verifier.parts.optics import optic_names, optics_named
from coopt.verifier.parts.outages import outages_of, pace_of
from coopt.verifier.parts.space import DesignFamily, OpticPair, cage_count
from coopt.verifier.parts.spans import Reach, reach_of
from coopt.verifier.parts.uptime import check_uptime, uptime_of
from coopt.verifier.parts.workload_checks import ClaimedRun, check_mappings, check_run


class CountedPart(NamedTuple):
    """A part that can be built, as it was counted on its graph; `optics` is None where a level may not have its own."""

    family: DesignFamily
    ports: Ports
    levels: tuple[SwitchLevel, ...]
    optics: tuple[OpticPair, ...] | None
    runs: list[ClaimedRun]


def check_part(
    ledger: Ledger,
    question: Instance,
    family: DesignFamily,
    design: Design,
    workloads: Iterable[tuple[Workload, WorkloadPlan]],
    kind: ObjectiveKind,
) -> CountedPart | None:
    """Check mappings, ports and the graph of a design whose domains are sound; None where no network can be built.

    Parameters
    ----------
    question
        The instance as far as it asks for this part: its GPUs, its workloads.
    workloads
        Those that are asked for here, with what the plan makes of them.
    """
    runs = check_mappings(ledger, workloads, family)
    ports = check_ports(ledger, question, family, design.fabric, kind)
    if ports is None:
        return None
    optics = optics_named(question, kind, family, optic_names(design.fabric))
    caged_family = held_in_cages(question.network, family, design.fabric)
    levels = check_network(ledger, caged_family, ports, design.fabric, runs, optics=optics)
    if question.network.switch_cages == "kept" and optics is not None:
        _check_cages(ledger, family, ports, levels, optics)
    return CountedPart(caged_family, ports, levels, optics, runs)


def _check_cages(
    ledger: Ledger, family: DesignFamily, ports: Ports, levels: Sequence[SwitchLevel], optics: Sequence[OpticPair]
) -> None:
    """Check that no switch, as it was counted on the graph, takes more modules than it has cages."""
    for tier, level in enumerate(levels, start=1):
        assert family.gear is not None
        # a switch has upper ends of its level and lower ends of the next, a leaf those of links into a core besides
        modules = _modules_of_fullest(level.above, family.gear.carried(optics[tier - 1])[1])
        if tier < len(levels):
            modules += _modules_of_fullest(levels[tier].below, family.gear.carried(optics[tier])[0])
        modules += ceil_ratio(core_ports(family, ports), family.core_module) if tier == 1 else 0
        cages = cage_count(family.gear.at(tier))
        fault = f"A switch of level {tier} takes {counted(modules, 'module')} and has {counted(cages, 'cage')}."
        ledger.holds("cages", modules <= cages, modules, cages, fault)


def _modules_of_fullest(devices: Iterable[tuple[int, int]], links_of_module: int) -> int:
    """Modules of the device that takes most."""
    return max((ceil_ratio(links, links_of_module) for count, links in devices if count), default=0)


def check_part_bill(
    ledger: Ledger, question: Instance, part: CountedPart, cost: Cost, objective: Objective | None = None
) -> BillTotal | None:
    """Check lines, products and sums of the bill of a part alone; None where some level may not have its optic.

    Parameters
    ----------
    objective
        That of the site, where it pays another price of electricity.
    """
    if part.optics is None:
        return None
    lines = bill(question, part.family, part.levels, part.optics)
    sums = bill_total(lines, objective or question.objective)
    check_bill(ledger, lines, sums, cost)
    return sums


def check_part_runs(
    ledger: Ledger,
    part: CountedPart,
    gpu: Gpu,
    waits_s: Mapping[str, float] | None = None,
    availability: Availability | None = None,
) -> None:
    """Check time, memory and utilisation of all that trains on a part.

    Parameters
    ----------
    waits_s
        How long each workload waits for gradients of other sites, where there are any.
    availability
        What interrupts training, if anything does.
    """
    for run in part.runs:
        wait_s = None if waits_s is None else waits_s[run.workload.name]
        reach = reach_of(part.family, part.ports)
        goodput = check_interruptions(ledger, run, availability, part.family, reach, part.levels, gpu)
        check_run(ledger, run, part.family, reach, gpu, wait_s, goodput)


def check_interruptions(
    ledger: Ledger,
    run: ClaimedRun,
    availability: Availability | None,
    family: DesignFamily,
    reach: Reach,
    levels: Sequence[SwitchLevel],
    gpu: Gpu,
) -> float:
    """Check what a plan says of a workload's interruptions; the share of a bound on days that it can count on."""
    uptime = None
    if availability is not None:
        pace = pace_of(availability, run, family, reach, levels, gpu)
        uptime = uptime_of(
            availability, run.workload, family, levels, pace, outages_of(availability, family, levels).share
        )
    check_uptime(ledger, run.workload, run.claim.uptime, uptime)
    return uptime.promised if uptime and run.workload.calendar else 1.0
