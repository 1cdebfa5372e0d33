"""Check plans of one cluster: its design, network, cost and workloads, with all that stands beside them."""

from __future__ import annotations

from coopt.instance.schema import Instance
from coopt.plan.schema import Cost, Design, Plan
from coopt.verifier.claim_checks import check_gap, check_objective
from coopt.verifier.cost_checks import check_cost
from coopt.verifier.design_checks import check_design
from coopt.verifier.direct_links import check_direct
from coopt.verifier.ledger import Ledger
from coopt.verifier.network_checks import check_network
from coopt.verifier.port_checks import check_ports
from coopt.verifier.rivals import check_rivals
from coopt.verifier.robust import asked, check_standing
from coopt.verifier.runner_checks import Built, check_beside, check_order
from coopt.verifier.spans import reach_of
from coopt.verifier.workload_checks import check_mappings, check_run, same_workloads


def check_shared(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check a cluster that all workloads have in turn, and its runners-up."""
    if plan.design is not None and plan.cost is not None:
        built = _check_plan(ledger, instance, plan, plan.design, plan.cost)
        _check_runners(ledger, instance, plan, built)


def check_on_links(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check a cluster with direct links or with switches, and what it says of the other."""
    if plan.rivals is not None:
        check_rivals(ledger, instance, plan, plan.rivals)
    if plan.direct is not None:
        check_direct(ledger, instance, plan, plan.direct)
    elif plan.design is not None and plan.cost is not None:
        _check_plan(ledger, instance, plan, plan.design, plan.cost)


def check_robust(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check the plan as one for the question without intervals, then what it stands."""
    robust = instance.robust
    if robust is not None and plan.design is not None and plan.cost is not None and plan.robust is not None:
        own = robust.aim == "worst-case"
        built = _check_plan(ledger, asked(instance, robust), plan, plan.design, plan.cost, objective=own)
        if built is not None:
            check_standing(ledger, instance, plan, built.family, built.ports)


def _check_plan(
    ledger: Ledger, instance: Instance, plan: Plan, design: Design, cost: Cost, *, objective: bool = True
) -> Built | None:
    """Check design, network, cost and workloads, as far as each can be built on what came before; what is built."""
    kind = plan.objective.kind
    family = check_design(ledger, instance, design)
    if family is None:
        same_workloads(ledger, instance.workload, plan.workloads)
        return None
    runs = check_mappings(ledger, instance.workload, plan.workloads, family)
    ports = check_ports(ledger, instance, family, design.fabric, kind)
    if ports is None:
        return None
    levels = check_network(ledger, family, ports, design.fabric, [(run.workload.name, run.place) for run in runs])
    sums = check_cost(ledger, instance, family, levels, cost, kind, design)
    if sums is not None and objective:
        check_objective(ledger, plan, sums)
    for run in runs:
        check_run(ledger, run, family, reach_of(family, ports), instance.cluster.gpu)
    return Built(family, ports)


def _check_runners(ledger: Ledger, instance: Instance, plan: Plan, first: Built | None) -> None:
    """Check each runner-up as the plan itself, and then that they are the next best designs."""
    if not check_beside(ledger, instance, plan) or not plan.alternatives_stop:
        return
    listed = [first]
    for rank, one in enumerate(plan.alternatives, start=1):
        ledger.subject = f"Runner-up {rank}: "
        alone = {"objective": one.objective, "design": one.design, "cost": one.cost, "workloads": one.workloads}
        claim = plan.model_copy(update=alone)
        check_gap(ledger, claim)
        listed.append(_check_plan(ledger, instance, claim, one.design, one.cost))
    ledger.subject = ""
    whole = [one for one in listed if one is not None]
    if len(whole) == len(listed):
        check_order(ledger, instance, plan, whole)
