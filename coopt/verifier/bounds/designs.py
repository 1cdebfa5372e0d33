"""Check the bound of one cluster, its runners-up and its rivals by going through all designs with switches."""

from __future__ import annotations

import math
from collections.abc import Sequence

from coopt.instance.schema import Instance, ObjectiveKind
from coopt.plan.schema import ObjectiveClaim, Plan, Rivals
from coopt.verifier.checks.claims import check_gap, gap_target, note_source
from coopt.verifier.checks.verdict import SOLVERS_WORD, TOLERANCE, Ledger, agree
from coopt.verifier.parts.enumeration import Condition, FoundDesign, cheapest_design_below, designs_below, no_condition
from coopt.verifier.parts.layouts import Ports
from coopt.verifier.parts.space import DesignFamily


def check_bound(ledger: Ledger, instance: Instance, plan: Plan, stands: Condition = no_condition) -> None:
    """Check that no feasible design costs less than the bound, and that none exists where the plan says so."""
    kind = plan.objective.kind
    if plan.status == "infeasible":
        any_design = cheapest_design_below(instance, kind, math.inf, stands)
        value = any_design.value if any_design else "no design is feasible"
        why = f"A design is feasible, at {_words(any_design)}, although the plan says that none is."
        ledger.holds("infeasible", any_design is None, "no design is feasible", value, why)
    bound = plan.objective.bound
    if bound is None:
        return
    cheaper_design = cheapest_design_below(instance, kind, bound, stands)
    value = cheaper_design.value if cheaper_design else "no feasible design costs less"
    why = f"A feasible design costs less than the bound of {bound:,.2f}: {_words(cheaper_design)}."
    ledger.holds("bound", cheaper_design is None, bound, value, why, TOLERANCE)


def _words(design: FoundDesign | None) -> str:
    if design is None:
        return "none"
    family, ports = design.family, design.ports
    fabric = f"{family.gear.kind}, {ports.tiers} tiers, {ports.up} uplinks per leaf" if family.gear else "no network"
    return f"{design.value:,.2f} with {family.domains} x {family.hb.name!r}, {family.active} active GPUs each, {fabric}"


def check_rivals(ledger: Ledger, instance: Instance, plan: Plan, rivals: Rivals) -> None:
    """Check the claims on direct links and on switches, that the plan is the cheaper, and the value of switches."""
    objective, claims = plan.objective, (rivals.direct, rivals.switched)
    for subject, claim in (("Direct links: ", rivals.direct), ("Switches: ", rivals.switched)):
        ledger.subject = subject
        check_gap(ledger, plan.model_copy(update={"objective": claim}))
    ledger.subject = ""
    winner = rivals.direct if plan.direct is not None else rivals.switched
    values = [claim.value for claim in claims if claim.value is not None]
    consistent = winner.value == objective.value == min(values, default=None) and all(
        claim.kind == objective.kind for claim in claims
    )
    ledger.holds(
        "rivals", consistent, objective.value, winner.value, "The plan is not the cheaper of direct links and switches."
    )
    proven = [claim.bound for claim in claims if claim.bound is not None]
    bounds_given = bool(proven) and all(claim.bound is not None or claim.value is None for claim in claims)
    holds = objective.bound is None or (
        bounds_given and agree(objective.bound, min([*proven, objective.value or math.inf]))
    )
    why = f"The bound is {objective.bound}, those of direct links and of switches are {proven}."
    ledger.holds("rivals-bound", holds, objective.bound, min(proven, default=None), why, TOLERANCE)
    value = rivals.switched.value
    if value is not None:
        designs = designs_below(instance, objective.kind, value * (1 + 2 * TOLERANCE))
        exists = any(agree(design.value, value) for design in designs)
        why = f"No feasible cluster with switches costs {value:,.2f}."
        ledger.holds("rival-value", exists, value, exists, why, TOLERANCE)


def check_rival_bounds(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check that no cluster with switches costs less than a bound, and that none is feasible where the plan says so.

    It says so as well with a bound of its own and none on switches. Direct links are not gone through.
    """
    kind, bound, rivals = plan.objective.kind, plan.objective.bound, plan.rivals
    claims = [plan.objective, *([rivals.switched] if rivals else [])]
    bounds = [claim.bound for claim in claims if claim.bound is not None]
    if bounds:
        cheaper_design = cheapest_design_below(instance, kind, max(bounds))
        value = cheaper_design.value if cheaper_design else "no switches cost less"
        why = f"A cluster with switches costs {value}, less than the bound of {max(bounds):,.2f}."
        ledger.holds("rival-bound", cheaper_design is None, max(bounds), value, why, TOLERANCE)
    switches_denied = rivals is not None and (rivals.switched.value, rivals.switched.bound) == (None, None)
    if plan.status == "infeasible" or (switches_denied and bound is not None):
        any_design = cheapest_design_below(instance, kind, math.inf)
        value = any_design.value if any_design else "no switches are feasible"
        why = f"A cluster with switches is feasible, at {value}, although the plan says that none is."
        ledger.holds("rival-none", any_design is None, "no switches are feasible", value, why)
    note_source(ledger, plan, f"switches were gone through; direct links rest on {SOLVERS_WORD}")


def check_beside(ledger: Ledger, instance: Instance, plan: Plan) -> bool:
    """Whether runners-up stand beside an optimum, each with a proof within the gap aimed at."""
    stop = plan.alternatives_stop
    ok = plan.status == "optimal" if stop else not plan.alternatives
    ok = ok and not (stop == "all found" and not plan.alternatives)
    why = "Runners-up need an optimal plan beside them and a word on why there are no more; to find all takes one."
    if not ledger.holds("runner-up-place", ok, len(plan.alternatives), None, why):
        return False
    target, kind = gap_target(instance, plan), plan.objective.kind
    unproven = tuple(
        f"runner-up {rank}"
        for rank, alternative in enumerate(plan.alternatives, start=1)
        if not _proven(alternative.objective, kind, target)
    )
    why = f"No {kind} within the gap of {target:g} that was aimed at is claimed for {', '.join(unproven)}."
    return ledger.holds("runner-up-proof", not unproven, unproven, (), why)


def _proven(claim: ObjectiveClaim, kind: ObjectiveKind, target: float) -> bool:
    """Whether a claim of this kind has a bound, and a gap within the one aimed at."""
    within_gap = claim.gap is not None and claim.gap <= target + TOLERANCE
    return claim.kind == kind and claim.bound is not None and within_gap


def check_order(ledger: Ledger, instance: Instance, plan: Plan, designs: Sequence[tuple[DesignFamily, Ports]]) -> None:
    """Check that the designs differ, and that none that is not listed before costs less than a bound.

    Parameters
    ----------
    listed
        The plan's design, then those of the runners-up.
    """
    names = [built_alike(*design) for design in designs]
    duplicates = tuple(f"runner-up {rank}" for rank, name in enumerate(names) if name in names[:rank])
    why = f"Listed before under this or another name: {', '.join(duplicates)}."
    ledger.holds("runner-up-distinct", not duplicates, duplicates, (), why)
    kind = plan.objective.kind
    proven = [
        alternative.objective.bound for alternative in plan.alternatives if alternative.objective.bound is not None
    ]
    candidates = list(designs_below(instance, kind, max(proven, default=-math.inf)))
    for rank, bound in enumerate(proven, start=1):
        ceiling = bound - abs(bound) * TOLERANCE
        cheaper_designs = [
            design
            for design in candidates
            if design.value < ceiling and built_alike(design.family, design.ports) not in names[:rank]
        ]
        value = min((design.value for design in cheaper_designs), default=None)
        why = f"A feasible design that is not listed before runner-up {rank} costs {value}, less than its bound."
        text = "no other design costs less" if value is None else value
        ledger.holds("runner-up-bound", not cheaper_designs, bound, text, why, TOLERANCE)
    if plan.alternatives_stop == "no other design":
        unlisted_design = next(
            (
                design
                for design in designs_below(instance, kind, math.inf)
                if built_alike(design.family, design.ports) not in names
            ),
            None,
        )
        why = f"A feasible design at {unlisted_design.value if unlisted_design else None} is not listed."
        ledger.holds(
            "runner-up-none-left",
            unlisted_design is None,
            "no other design",
            unlisted_design.value if unlisted_design else None,
            why,
        )


def built_alike(family: DesignFamily, ports: Ports) -> tuple[object, ...]:
    """What two designs share that build the same: a single domain buys no network, and one tier has one shape."""
    place, gear = (family.gpus, family.hb.name, family.active), family.gear
    if gear is None:
        return place
    parts = (*place, gear.nic.name, gear.per_gpu, gear.switch.name, family.planes)
    return parts if ports.tiers == 1 else (*parts, gear.kind, ports)
