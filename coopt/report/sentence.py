"""The decision in one sentence."""

from __future__ import annotations

from coopt.plan.schema import Cost, Design, ObjectiveClaim, Plan
from coopt.report import words


def headline(plan: Plan) -> str:
    """What to build and what is proven about it, or why there is nothing to build."""
    if plan.status == "infeasible":
        return "No design meets the bounds; proven infeasible."
    searched = f"{plan.timing_s.total:.1f} s of search"
    if plan.design is None or plan.cost is None:
        bound = plan.objective.bound
        proven = "nothing is proven" if bound is None else f"proven: none is below {amount(plan.objective.kind, bound)}"
        return f"Stopped early ({plan.stop_reason}) before any design was found, {searched}; {proven}."
    if plan.status == "optimal":
        return f"{_verb(plan)} {built(plan.design)}, {price(plan.objective.kind, plan.cost)}; {_proof(plan.objective)}."
    gap = "unknown" if plan.objective.gap is None else words.percent(plan.objective.gap)
    value = amount(plan.objective.kind, plan.cost.of(plan.objective.kind))
    early = f"stopped early ({plan.stop_reason}), best so far: {value}, gap {gap}, {searched}"
    return f"{_verb(plan)} {built(plan.design)}; {early}."


def _verb(plan: Plan) -> str:
    return f"Grow in {len(plan.phases)} phases to" if plan.phases else "Build"


def built(design: Design) -> str:
    """`4,096 x hgx-h100-8 joined by a 2-tier rail-only network`."""
    domains = f"{words.count(design.hb_domain.count)} x {design.hb_domain.name}"
    fabric = design.fabric
    if fabric.tiers == 0:
        return f"{domains} without a network"
    ratio = "" if fabric.oversubscription <= 1 else f" at {ratio_of(fabric.oversubscription)}"
    return f"{domains} joined by a {fabric.tiers}-tier {fabric.kind} network{ratio}"


def price(kind: str, cost: Cost) -> str:
    """The objective's value as it stands in a sentence."""
    if kind == "power":
        return f"which draws {words.power(cost.power_w)}"
    gpus = "" if any(item.kind == "gpu" for item in cost.items) else " without the GPUs"
    if kind == "tco":
        return f"for {words.money(cost.tco_usd)} in purchase and electricity{gpus}"
    return f"for {words.money(cost.capex_usd)}{gpus}"


def amount(kind: str, value: float) -> str:
    """A value of the objective with its unit."""
    return words.power(value) if kind == "power" else words.money(value)


def ratio_of(oversubscription: float) -> str:
    """`2:1`, `1.67:1`."""
    return f"{oversubscription:.3g}:1"


def _proof(claim: ObjectiveClaim) -> str:
    if claim.gap is None or claim.gap < words.ROUNDING:
        return "proven optimal"
    return f"proven within {words.percent(claim.gap)} of the optimum"
