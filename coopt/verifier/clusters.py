"""Check plans of one cluster: its design, network, cost and workloads, with all that stands beside them."""

from __future__ import annotations

from coopt.instance.schema import Instance
from coopt.plan.schema import Cost, Design, Plan
from coopt.verifier.bounds.designs import check_beside, check_order, check_rivals
from coopt.verifier.bounds.timed import billed, check_timed_value
from coopt.verifier.checks.claims import check_gap
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.couplings.limits import check_limits
from coopt.verifier.couplings.outlooks import certain_question, check_robustness
from coopt.verifier.parts.bill_checks import check_objective
from coopt.verifier.parts.design_checks import check_design
from coopt.verifier.parts.direct_links import check_direct
from coopt.verifier.parts.part_checks import CountedPart, check_part, check_part_bill, check_part_runs
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
    """Check the plan as an answer to the question without intervals, then its losses and its values at other prices."""
    robust = instance.robust
    if robust is not None and plan.design is not None and plan.cost is not None and plan.robust is not None:
        at_worst_prices = robust.aim == "worst-case"
        part = _check_cluster(
            ledger, certain_question(instance, robust), plan, plan.design, plan.cost, objective=at_worst_prices
        )
        if part is not None:
            check_robustness(ledger, instance, plan, part)


def _check_cluster(
    ledger: Ledger, instance: Instance, plan: Plan, design: Design, cost: Cost, *, objective: bool = True
) -> CountedPart | None:
    """Check design, network, cost and workloads; the part they make, None where no network can be built."""
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
    check_part_runs(ledger, part, instance.cluster.gpu, asked=instance.availability)
    if instance.availability is not None:
        check_promises(ledger, instance.availability, part, instance.cluster.gpu)
    return part


def _check_runners_up(ledger: Ledger, instance: Instance, plan: Plan, first: CountedPart | None) -> None:
    """Check each runner-up as the plan itself, and then that they are the next best designs."""
    if not check_beside(ledger, instance, plan) or not plan.alternatives_stop:
        return
    listed = [first]
    for rank, alternative in enumerate(plan.alternatives, start=1):
        ledger.subject = f"Runner-up {rank}: "
        sections = {
            "objective": alternative.objective,
            "design": alternative.design,
            "cost": alternative.cost,
            "workloads": alternative.workloads,
        }
        claim = plan.model_copy(update=sections)
        check_gap(ledger, claim)
        listed.append(_check_cluster(ledger, instance, claim, alternative.design, alternative.cost))
    ledger.subject = ""
    parts = [part for part in listed if part is not None]
    if len(parts) == len(listed):
        check_order(ledger, instance, plan, [(part.family, part.ports) for part in parts])
