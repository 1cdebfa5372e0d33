"""Check a partition: every island as a design of its own, then what couples them."""

from __future__ import annotations

from typing import NamedTuple

from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.workload import Workload
from coopt.plan.schema import Design, Part, Plan
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.couplings.core import Joint, check_core, joining_nic, joint_of, question_as_built
from coopt.verifier.couplings.limits import check_gpus, check_limits, check_products_in_use, question_of_island
from coopt.verifier.couplings.prices import UnitCounts, check_volume_bill, counts_of_island, counts_together
from coopt.verifier.parts.bill_checks import check_bill, check_objective
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
    """Check islands, bill and couplings."""
    if plan.cost is not None and plan.parts:
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
    names = tuple(part.name for part in plan.parts)
    why = f"The instance has workloads {', '.join(expected)}, the plan islands of {', '.join(names)}."
    if not ledger.same("islands", names, expected, why):
        return None
    islands = []
    for workload, part in zip(instance.workload, plan.parts, strict=True):
        ledger.subject = f"Island of {workload.name!r}: "
        if part.design is not None and match_workloads(ledger, (workload,), part.workloads):
            fits = _check_size(ledger, instance, workload, part.design.gpus)
            question = question_of_island(instance, (workload,), part.design.gpus)
            islands.append(_island(ledger, question, plan.objective.kind, part, part.design) if fits else None)
        else:
            islands.append(None)
    ledger.subject = ""
    sound_islands = [built_island for built_island in islands if built_island is not None]
    return sound_islands if len(sound_islands) == len(islands) else None


def _check_size(ledger: Ledger, instance: Instance, workload: Workload, gpus: int) -> bool:
    most, sizes = instance.cluster.gpus[0], workload.gpus
    fits = 1 <= gpus <= most and (sizes is None or gpus in sizes)
    allowed = f"1 to {most}" if sizes is None else ", ".join(map(str, sizes))
    why = f"It trains on {gpus} GPUs, sizes allowed are {allowed}."
    return ledger.holds("island-size", fits, gpus, allowed, why)


def _island(ledger: Ledger, instance: Instance, kind: ObjectiveKind, claim: Part, design: Design) -> BuiltIsland | None:
    family, runs = check_design(ledger, instance, design), zip(instance.workload, claim.workloads, strict=True)
    part = check_part(ledger, instance, family, design, runs, kind) if family else None
    if part is None:
        return None
    check_part_runs(ledger, part, instance.cluster.gpu)
    nic = joining_nic(ledger, instance, design)
    if part.optics is None or nic is None:
        return None
    joint = joint_of(instance, kind, part.family, part.ports, nic)
    core_lines = [] if joint is None else [line for line in joint.lines() if line.kind in instance.objective.include]
    lines = [*bill(instance, part.family, part.levels, part.optics), *core_lines]
    sums = bill_total(lines, instance.objective)
    why = f"It draws {sums.power_w:,.2f} W, the plan says {claim.power_w:,.2f} W."
    ledger.close("island-power", claim.power_w, sums.power_w, why)
    if claim.cost is not None:  # plans of schema 1 have no bills of islands
        check_bill(ledger, lines, sums, claim.cost)
    return BuiltIsland(counts_of_island(part.family, part.levels, part.optics, joint), design.racks, joint)
