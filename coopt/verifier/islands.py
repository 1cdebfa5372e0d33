"""Check a partition: every island as a design of its own, then what couples them."""

from __future__ import annotations

from typing import NamedTuple

from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.plan.islands import Island
from coopt.plan.schema import Plan, WorkloadPlan
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.couplings.core import Joint, check_core, joining_nic, joint_of, question_as_built
from coopt.verifier.couplings.limits import check_gpus, check_limits, check_products_in_use, question_of_island
from coopt.verifier.couplings.prices import UnitCounts, check_volume_bill, counts_of_island, counts_together
from coopt.verifier.parts.bill_checks import check_objective
from coopt.verifier.parts.bills import bill, bill_total
from coopt.verifier.parts.design_checks import check_design
from coopt.verifier.parts.part_checks import check_part, check_part_runs
from coopt.verifier.parts.workload_checks import match_workloads


class BuiltIsland(NamedTuple):
    """An island as derived from the plan: what it takes, its racks, and its links into a core."""

    units: UnitCounts
    racks: int | None
    joint: Joint | None


def check_partition(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check every island, their core, their one bill, and the limits on all of them."""
    if plan.cost is not None and plan.islands:
        islands = _islands(ledger, question_as_built(instance, plan.objective.kind, plan), plan)
        if islands is not None:
            check_core(ledger, instance, plan, [island.joint for island in islands])
            units = [island.units for island in islands]
            sums = check_volume_bill(ledger, instance, units, plan.cost)
            counts, racks = counts_together(instance, units), [island.racks for island in islands]
            check_gpus(ledger, instance, counts.active)
            check_limits(ledger, instance, sums, None if None in racks else sum(count or 0 for count in racks))
            check_products_in_use(ledger, instance, counts.products)
            check_objective(ledger, plan, sums)


def _islands(ledger: Ledger, instance: Instance, plan: Plan) -> list[BuiltIsland] | None:
    """Check each island; None where no bill can be made for one of them."""
    expected = tuple(workload.name for workload in instance.workload)
    names = tuple(island.workload for island in plan.islands)
    why = f"The instance has workloads {', '.join(expected)}, the plan islands of {', '.join(names)}."
    if not ledger.same("islands", names, expected, why):
        return None
    workloads = match_workloads(ledger, instance.workload, plan.workloads)
    if not workloads:
        return None
    islands = []
    for (workload, claim), island in zip(workloads, plan.islands, strict=True):
        ledger.subject = f"Island of {workload.name!r}: "
        fits = _check_size(ledger, instance, workload, island.design.gpus)
        question = question_of_island(instance, workload, island.design.gpus)
        islands.append(_island(ledger, question, plan, island, claim) if fits else None)
    ledger.subject = ""
    sound_islands = [built_island for built_island in islands if built_island is not None]
    return sound_islands if len(sound_islands) == len(islands) else None


def _check_size(ledger: Ledger, instance: Instance, workload: Workload, gpus: int) -> bool:
    most, sizes = instance.cluster.gpus[0], workload.gpus
    fits = 1 <= gpus <= most and (sizes is None or gpus in sizes)
    allowed = f"1 to {most}" if sizes is None else ", ".join(map(str, sizes))
    why = f"It trains on {gpus} GPUs, sizes allowed are {allowed}."
    return ledger.holds("island-size", fits, gpus, allowed, why)


def _island(ledger: Ledger, instance: Instance, plan: Plan, island: Island, claim: WorkloadPlan) -> BuiltIsland | None:
    design, kind, (workload,) = island.design, plan.objective.kind, instance.workload
    family = check_design(ledger, instance, design)
    part = check_part(ledger, instance, family, design, [(workload, claim)], kind) if family else None
    if part is None:
        return None
    check_part_runs(ledger, part, instance.cluster.gpu)
    nic = joining_nic(ledger, instance, design)
    if part.optics is None or nic is None:
        return None
    joint = joint_of(instance, kind, part.family, part.ports, nic)
    core_lines = [] if joint is None else [line for line in joint.lines() if line.kind in instance.objective.include]
    power_w = bill_total(
        [*bill(instance, part.family, part.levels, part.optics), *core_lines], instance.objective
    ).power_w
    why = f"It draws {power_w:,.2f} W, the plan says {island.power_w:,.2f} W."
    ledger.close("island-power", island.power_w, power_w, why)
    return BuiltIsland(counts_of_island(part.family, part.levels, part.optics, joint), design.racks, joint)
