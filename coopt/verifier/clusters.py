"""Check plans of one cluster, and of islands that divide it.

Each island is checked as a design of its own, then what couples them.
"""

from __future__ import annotations

from typing import NamedTuple

from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.workload import Workload
from coopt.plan.schema import Cost, Design, Part, Plan
from coopt.verifier.bounds.designs import check_beside, check_order, check_rivals
from coopt.verifier.bounds.timed import billed, check_timed_value
from coopt.verifier.checks.claims import check_gap
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.couplings.core import (
    Joint,
    check_cores,
    joining_nic,
    joint_of,
    question_as_built,
)
from coopt.verifier.couplings.outlooks import certain_question, check_robustness
from coopt.verifier.couplings.prices import (
    UnitCounts,
    check_gpus,
    check_limits,
    check_products_in_use,
    check_volume_bill,
    counts_of_island,
    counts_together,
    question_of_island,
)
from coopt.verifier.parts.bills import bill, bill_total
from coopt.verifier.parts.design_checks import check_design
from coopt.verifier.parts.direct_links import check_direct
from coopt.verifier.parts.part_checks import (
    CountedPart,
    check_bill,
    check_objective,
    check_part,
    check_part_bill,
    check_part_runs,
)
from coopt.verifier.parts.workload_checks import match_workloads
from coopt.verifier.simulation.interruptions import check_promises


def check_shared(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check a cluster that all workloads have in turn, and its runners-up."""
    if plan.design is not None and plan.cost is not None:
        part = _check_cluster(ledger, instance, plan, plan.design, plan.cost)
        _check_runners_up(ledger, instance, plan, part)


def check_on_links(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check a cluster with direct links or with switches, and what it says of the other."""
    if plan.rivals is not None:
        check_rivals(ledger, instance, plan, plan.rivals)
    if plan.direct is not None:
        sums = check_direct(ledger, instance, plan, plan.direct)
        if sums is not None:
            check_limits(ledger, instance, sums, plan.direct.racks)
            check_objective(ledger, plan, sums)
    elif plan.design is not None and plan.cost is not None:
        _check_cluster(ledger, instance, plan, plan.design, plan.cost)


def check_robust(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check the plan as an answer to the question without intervals, then its losses and its values
    at other prices.
    """
    if plan.design is not None and plan.cost is not None and plan.robust is not None:
        # Where regret is minimised, the objective is no sum of the bill and `check_robustness`
        # derives it.
        by_bill, question = not instance.outlooks, certain_question(instance)
        part = _check_cluster(ledger, question, plan, plan.design, plan.cost, objective=by_bill)
        if part is not None:
            check_robustness(ledger, instance, plan, part)


def _check_cluster(
    ledger: Ledger,
    instance: Instance,
    plan: Plan,
    design: Design,
    cost: Cost,
    *,
    objective: bool = True,
) -> CountedPart | None:
    """Check design, network, cost and workloads; the part they make, None where no network can be
    built.
    """
    family = check_design(ledger, instance, design)
    workloads = match_workloads(ledger, instance.workload, plan.workloads)
    if family is None:
        return None
    kind = plan.objective.kind
    part = check_part(ledger, instance, family, design, workloads, billed(kind))
    if part is None:
        return None
    sums = check_part_bill(ledger, instance, part, cost)
    if sums is not None:
        check_limits(ledger, instance, sums, design.racks)
    if sums is not None and kind != billed(kind):
        check_timed_value(ledger, instance, plan, part, sums)
    elif sums is not None and objective:
        check_objective(ledger, plan, sums)
    check_part_runs(ledger, part, instance.cluster.gpu, availability=instance.availability)
    if instance.availability is not None:
        check_promises(ledger, instance.availability, part, instance.cluster.gpu)
    return part


def _check_runners_up(
    ledger: Ledger, instance: Instance, plan: Plan, plan_part: CountedPart | None
) -> None:
    """Check each runner-up as the plan itself, and then that they are the next best designs."""
    if not check_beside(ledger, instance, plan) or not plan.alternatives_stop:
        return
    parts_of_rank = [plan_part]
    for rank, alternative in enumerate(plan.alternatives, start=1):
        ledger.turn_to(f"Runner-up {rank}", aside=True)
        sections = {
            "objective": alternative.objective,
            "design": alternative.design,
            "cost": alternative.cost,
            "workloads": alternative.workloads,
        }
        claim = plan.model_copy(update=sections)
        check_gap(ledger, claim)
        parts_of_rank.append(
            _check_cluster(ledger, instance, claim, alternative.design, alternative.cost)
        )
    ledger.turn_to()
    parts = [part for part in parts_of_rank if part is not None]
    # The order counts only among designs that can be built.
    if len(parts) == len(parts_of_rank):
        check_order(ledger, instance, plan, [(part.family, part.ports) for part in parts])


class BuiltIsland(NamedTuple):
    """An island as derived from the plan: what it takes, its racks, and its links into a core."""

    units: UnitCounts
    racks: int | None
    joint: Joint | None


def check_partition(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check islands, bill and couplings."""
    if plan.cost is not None and plan.parts:
        question = question_as_built(instance, plan.objective.kind, plan)
        islands = _islands(ledger, question, plan)
        if islands is not None:
            pairs = zip(plan.parts, islands, strict=True)
            joints = {part.name: island.joint for part, island in pairs if island.joint is not None}
            check_cores(ledger, question, plan, {(None, None): joints} if joints else {})
            units = [island.units for island in islands]
            sums = check_volume_bill(ledger, instance, units, plan.cost)
            counts, racks = counts_together(instance, units), [island.racks for island in islands]
            check_gpus(ledger, counts.active_gpus, instance.cluster.most_gpus)
            # HB domains that do not say what they fill leave the racks of all unknown.
            filled = None if None in racks else sum(count or 0 for count in racks)
            check_limits(ledger, instance, sums, filled, counts)
            check_products_in_use(ledger, instance, counts.products)
            check_objective(ledger, plan, sums)


def _islands(ledger: Ledger, instance: Instance, plan: Plan) -> list[BuiltIsland] | None:
    """Check each island; None where no bill can be made for one of them."""
    expected = tuple(workload.name for workload in instance.workload)
    names = tuple(part.name for part in plan.parts)
    fault = (
        f"The instance has workloads {', '.join(expected)}, the plan islands of {', '.join(names)}."
    )
    if not ledger.same("islands", names, expected, fault):
        return None
    islands = []
    for workload, part in zip(instance.workload, plan.parts, strict=True):
        ledger.turn_to(f"Island of {workload.name!r}", part=part.name)
        if part.design is not None and match_workloads(ledger, (workload,), part.workloads):
            fits = _check_size(ledger, instance, workload, part.design.gpus)
            question = question_of_island(instance, (workload,), part.design.gpus)
            islands.append(
                _island(ledger, question, plan.objective.kind, part, part.design) if fits else None
            )
        else:
            islands.append(None)
    ledger.turn_to()
    sound_islands = [built_island for built_island in islands if built_island is not None]
    return sound_islands if len(sound_islands) == len(islands) else None


def _check_size(ledger: Ledger, instance: Instance, workload: Workload, gpus: int) -> bool:
    most_gpus, sizes = instance.cluster.most_gpus, workload.gpus
    fits = 1 <= gpus <= most_gpus and (sizes is None or gpus in sizes)
    sizes_text = f"1 to {most_gpus}" if sizes is None else ", ".join(map(str, sizes))
    fault = f"It trains on {gpus} GPUs, sizes allowed are {sizes_text}."
    return ledger.holds("island-size", fits, gpus, sizes_text, fault)


def _island(
    ledger: Ledger, instance: Instance, kind: ObjectiveKind, claim: Part, design: Design
) -> BuiltIsland | None:
    family, runs = (
        check_design(ledger, instance, design),
        zip(instance.workload, claim.workloads, strict=True),
    )
    part = check_part(ledger, instance, family, design, runs, kind) if family else None
    if part is None:
        return None
    check_part_runs(ledger, part, instance.cluster.gpu)
    nic = joining_nic(ledger, instance, design)
    if part.optics is None or nic is None:
        return None
    joint = joint_of(instance, kind, part.family, part.ports, nic)
    core_lines = (
        []
        if joint is None
        else [line for line in joint.lines() if line.kind in instance.objective.include]
    )
    lines = [*bill(instance, part.family, part.levels, part.optics), *core_lines]
    sums = bill_total(lines, instance.objective)
    fault = f"It draws {sums.power_w:,.2f} W, the plan says {claim.power_w:,.2f} W."
    ledger.close("island-power", claim.power_w, sums.power_w, fault)
    check_bill(ledger, lines, sums, claim.cost)
    return BuiltIsland(
        counts_of_island(part.family, part.levels, part.optics, joint), design.racks, joint
    )
