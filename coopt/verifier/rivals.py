"""Check what a plan says of direct links against switches."""

from __future__ import annotations

import math

from coopt.instance.schema import Instance
from coopt.plan.schema import Plan, Rivals
from coopt.verifier.claim_checks import check_gap, note_source
from coopt.verifier.enumeration import all_below, cheapest_below
from coopt.verifier.ledger import TOLERANCE, Ledger, near
from coopt.verifier.verdict import SOLVERS_WORD


def check_rivals(ledger: Ledger, instance: Instance, plan: Plan, rivals: Rivals) -> None:
    """Both claims by themselves, that the plan is the better one, and the value of switches by going through them."""
    mine, others = plan.objective, (rivals.direct, rivals.switched)
    for subject, claim in (("Direct links: ", rivals.direct), ("Switches: ", rivals.switched)):
        ledger.subject = subject
        check_gap(ledger, plan.model_copy(update={"objective": claim}))
    ledger.subject = ""
    best = rivals.direct if plan.direct is not None else rivals.switched
    values = [claim.value for claim in others if claim.value is not None]
    sound = best.value == mine.value == min(values, default=None) and all(claim.kind == mine.kind for claim in others)
    ledger.holds("rivals", sound, mine.value, best.value, "The plan is not the cheaper of direct links and switches.")
    proven = [claim.bound for claim in others if claim.bound is not None]
    known = bool(proven) and all(claim.bound is not None or claim.value is None for claim in others)
    fine = mine.bound is None or (known and near(mine.bound, min([*proven, mine.value or math.inf])))
    why = f"The bound is {mine.bound}, those of direct links and of switches are {proven}."
    ledger.holds("rivals-bound", fine, mine.bound, min(proven, default=None), why, TOLERANCE)
    value = rivals.switched.value
    if value is not None:
        designs = all_below(instance, mine.kind, value * (1 + 2 * TOLERANCE))
        there = any(near(found.value, value) for found in designs)
        why = f"No feasible cluster with switches costs {value:,.2f}."
        ledger.holds("rival-value", there, value, there, why, TOLERANCE)


def check_rival_bounds(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Go through all switches: none cost less than a bound, none are feasible where the plan says so.

    It says so as well with a bound of its own and none on switches. Direct links are not gone through.
    """
    kind, bound, rivals = plan.objective.kind, plan.objective.bound, plan.rivals
    claims = [plan.objective, *([rivals.switched] if rivals else [])]
    bounds = [claim.bound for claim in claims if claim.bound is not None]
    if bounds:
        cheaper = cheapest_below(instance, kind, max(bounds))
        value = cheaper.value if cheaper else "no switches cost less"
        why = f"A cluster with switches costs {value}, less than the bound of {max(bounds):,.2f}."
        ledger.holds("rival-bound", cheaper is None, max(bounds), value, why, TOLERANCE)
    empty = rivals is not None and (rivals.switched.value, rivals.switched.bound) == (None, None)
    if plan.status == "infeasible" or (empty and bound is not None):
        there = cheapest_below(instance, kind, math.inf)
        value = there.value if there else "no switches are feasible"
        why = f"A cluster with switches is feasible, at {value}, although the plan says that none is."
        ledger.holds("rival-none", there is None, "no switches are feasible", value, why)
    note_source(ledger, plan, f"switches were gone through; direct links rest on {SOLVERS_WORD}")
