"""Plans whose flows are pinned to paths: routes are found for them, and networks whose routes miss a bound ruled out.

No routing undercuts what pinned flows are charged, so that the bound of the first search is one on all plans with
routes. Where those found for its plan are slower and miss a bound, the search goes on among networks with more uplinks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace

from coopt.instance.schema import Instance
from coopt.plan.schema import Part, Plan
from coopt.plan.traffic import CollectiveRoutes
from coopt.solving.outcome import claim_of, identity, unknown, within_gap
from coopt.solving.plan_routes import CHARGED_AS, route_plan
from coopt.solving.runs import Run

LESS_SHARE = 1e-6
"""By what share a ratio has to be lower, so that a network is ruled out that has it."""
MISSED = "routes that miss a bound"


def with_routes(run: Run, answer: Callable[[Run], Plan]) -> Plan:
    """The answer to a question, with the slowdowns of the routes that were found for it.

    It is optimal where routes for the first plan meet all bounds. Another one is compared with the bound of the first.
    """
    first_plan = plan = answer(run)
    question = run.instance
    while plan.parts and not run.backend.cancel.is_set():
        plan, missed = _routed(question, plan, run)
        if not missed:
            break
        run.tell("routes", f"{MISSED} in {', '.join(part.name for part in missed)}")
        tighter = _with_more_uplinks(question, missed)
        if tighter is None:
            return _unmet(run, first_plan)
        question, plan = tighter, answer(replace(run, instance=tighter))
    return plan if question is run.instance else _beside(run, plan, first_plan)


def _routed(question: Instance, plan: Plan, run: Run) -> tuple[Plan, list[Part]]:
    """The plan with slowdowns of routes, and the parts in which a workload misses its bound by them."""
    parts, missed = [], []
    for part in plan.parts:
        if part.design is None or part.design.fabric.tiers < 2:
            parts.append(part)
            continue
        run.tell("routes", f"paths of the flows of {part.name}")
        routing = route_plan(question, plan, part=part.name, with_links=False)
        slow = slowed_by(routing.collectives)
        runs = tuple(workload.model_copy(update={"routes": slow.get(workload.name, {})}) for workload in part.workloads)
        parts.append(part.model_copy(update={"workloads": runs}))
        if not all(workload.within_bound for workload in routing.workloads):
            missed.append(part)
    top = parts[0].workloads if plan.workloads else ()
    return plan.model_copy(update={"parts": tuple(parts), "workloads": top}), missed


def slowed_by(collectives: Iterable[CollectiveRoutes]) -> dict[str, dict[str, float]]:
    """How far routes slow each kind of traffic of each workload: the slowest collective, over all of its rounds."""
    means: dict[tuple[str, str, str], float] = {}
    for routes in collectives:
        name = routes.workload, routes.kind, CHARGED_AS.get(routes.collective, routes.collective)
        means[name] = means.get(name, 0.0) + routes.share * max(1.0, routes.stretch, routes.charged)
    slow: dict[str, dict[str, float]] = {}
    for (workload, _, kind), mean in means.items():
        kinds = slow.setdefault(workload, {})
        kinds[kind] = max(kinds.get(kind, 1.0), mean)
    return slow


def _with_more_uplinks(question: Instance, missed: Iterable[Part]) -> Instance | None:
    """The question without networks as tapered as these; None where none is left."""
    tiers = [tier for part in missed if part.design for tier in part.design.fabric.tier if tier.uplinks_per_switch]
    # a network as tapered as the worst of these may have the routes that miss: the limit goes just below its ratio
    ratio = max(tier.down_ports / tier.uplinks_per_switch for tier in tiers) * (1 - LESS_SHARE)
    ratios = question.network.oversubscription
    if isinstance(ratios, tuple):
        lower: tuple[float, ...] | float = tuple(value for value in ratios if value <= ratio)
    else:
        lower = min(ratios, ratio) if ratio >= 1 else ()
    if lower == ():
        return None
    return question.model_copy(update={"network": question.network.model_copy(update={"oversubscription": lower})})


def _beside(run: Run, plan: Plan, first_plan: Plan) -> Plan:
    """A plan of fewer networks as an answer to the whole question, whose bound is that of the first search."""
    if plan.objective.value is None or first_plan.objective.bound is None:
        return _unmet(run, first_plan)
    claim = claim_of(plan.objective.kind, plan.objective.value, first_plan.objective.bound)
    proven = within_gap(run, claim)
    return plan.model_copy(
        update={
            "instance": identity(run.instance),
            "objective": claim,
            "status": "optimal" if proven else "feasible",
            "stop_reason": "optimal" if proven else MISSED,
            "alternatives": (),
            "alternatives_stop": plan.alternatives_stop and "not proven",
            "timing_s": plan.timing_s.model_copy(update={"total": run.elapsed_s()}),
        }
    )


def _unmet(run: Run, first_plan: Plan) -> Plan:
    """The answer that no plan was found whose routes meet all bounds, with what the first search proved."""
    bound = first_plan.objective.bound
    return unknown(run, MISSED, -math.inf if bound is None else bound)
