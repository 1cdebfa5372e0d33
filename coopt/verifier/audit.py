"""Check a plan against its instance, from nothing but the two."""

from __future__ import annotations

from coopt.instance.robust import Robust
from coopt.instance.schema import Instance
from coopt.plan.schema import Cost, Design, Plan
from coopt.verifier.claim_checks import (
    check_bound,
    check_gap,
    check_numbers,
    check_objective,
    check_question,
    check_status,
)
from coopt.verifier.cost_checks import check_cost
from coopt.verifier.design_checks import check_design
from coopt.verifier.direct_links import check_direct
from coopt.verifier.ledger import Ledger
from coopt.verifier.network_checks import check_network
from coopt.verifier.partition.islands import check_partition
from coopt.verifier.phased.audit import check_phased, check_unphased
from coopt.verifier.port_checks import check_ports
from coopt.verifier.rivals import check_rivals
from coopt.verifier.robust import asked, check_robust_bound, check_standing
from coopt.verifier.runner_checks import Built, check_beside, check_order
from coopt.verifier.sites import check_sites
from coopt.verifier.space import Family
from coopt.verifier.spans import reach_of
from coopt.verifier.verdict import Verdict
from coopt.verifier.workload_checks import Run, check_mapping, check_run


def verify(instance: Instance, plan: Plan) -> Verdict:
    """Re-derive all a plan claims.

    Every check appears in the verdict by its name in `coopt.verifier.names`. Where a claim is so wrong that
    others cannot be looked into (an unknown switch, a mapping that does not divide), those are left out: the
    verdict is a rejection anyway.

    Parameters
    ----------
    instance
        The question.
    plan
        The answer, from a file or from `coopt.solve`.

    Examples
    --------
    >>> import coopt
    >>> instance = coopt.load("instances/tiny-64.toml")
    >>> plan = coopt.solve(instance)
    >>> wrong = plan.model_copy(update={"cost": plan.cost.model_copy(update={"capex_usd": 1.0})})
    >>> coopt.verify(instance, plan).accepted, coopt.verify(instance, wrong).accepted
    (True, False)
    """
    ledger = Ledger()
    if not check_numbers(ledger, plan) or not check_question(ledger, instance, plan):
        return ledger.verdict()
    check_status(ledger, instance, plan)
    check_gap(ledger, plan)
    if instance.problem == "sites":
        if plan.together is not None:
            check_sites(ledger, instance, plan, plan.together)
        return ledger.verdict()
    if instance.robust is not None:
        _check_robust(ledger, instance, instance.robust, plan)
        return ledger.verdict()
    if instance.problem == "partition":
        check_partition(ledger, instance, plan)
        return ledger.verdict()
    if instance.problem == "phased":
        check_phased(ledger, instance, plan)
        return ledger.verdict()
    check_unphased(ledger, plan)
    if instance.problem == "direct" and plan.rivals is not None:
        check_rivals(ledger, instance, plan, plan.rivals)
    if plan.direct is not None:
        check_direct(ledger, instance, plan, plan.direct)
    elif plan.design is not None and plan.cost is not None:
        built = _check_plan(ledger, instance, plan, plan.design, plan.cost)
        _check_runners(ledger, instance, plan, built)
    check_bound(ledger, instance, plan)
    return ledger.verdict()


def _check_robust(ledger: Ledger, instance: Instance, robust: Robust, plan: Plan) -> None:
    """Check the plan as one for the question without intervals, then what it stands."""
    if plan.design is not None and plan.cost is not None and plan.robust is not None:
        own = robust.aim == "worst-case"
        built = _check_plan(ledger, asked(instance, robust), plan, plan.design, plan.cost, objective=own)
        if built is not None:
            check_standing(ledger, instance, plan, built.family, built.ports)
    check_robust_bound(ledger, instance, plan)


def _check_plan(
    ledger: Ledger, instance: Instance, plan: Plan, design: Design, cost: Cost, *, objective: bool = True
) -> Built | None:
    """Check design, network, cost and workloads, as far as each can be built on what came before; what is built."""
    kind = plan.objective.kind
    family = check_design(ledger, instance, design)
    runs = _mappings(ledger, instance, plan, family)
    ports = check_ports(ledger, instance, family, design.fabric, kind) if family else None
    if family is None or ports is None:
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


def _mappings(ledger: Ledger, instance: Instance, plan: Plan, family: Family | None) -> list[Run]:
    """Check that the workloads are those of the instance, and the mapping of each."""
    claimed = tuple(claim.name for claim in plan.workloads)
    wanted = tuple(workload.name for workload in instance.workload)
    why = f"The instance asks for workloads {', '.join(wanted)}, the plan runs {', '.join(claimed) or 'none'}."
    if not ledger.same("workloads", claimed, wanted, why) or family is None:
        return []
    pairs = zip(instance.workload, plan.workloads, strict=True)
    runs = [check_mapping(ledger, workload, claim, family) for workload, claim in pairs]
    return [run for run in runs if run is not None]
