"""Check what a plan says of direct links against switches."""

from __future__ import annotations

import math

from coopt.instance.schema import Instance
from coopt.plan.schema import Plan, Rivals
from coopt.verifier.claim_checks import check_gap
from coopt.verifier.enumeration import cheapest_below
from coopt.verifier.ledger import TOLERANCE, Ledger, near


def check_rivals(ledger: Ledger, instance: Instance, plan: Plan, rivals: Rivals) -> None:
    """Both claims by themselves, that the plan is the better one, and those of switches by going through them all."""
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
    fine = mine.bound is None or (bool(proven) and near(mine.bound, min([*proven, mine.value or math.inf])))
    why = f"The bound is {mine.bound}, those of direct links and of switches are {proven}."
    ledger.holds("rivals-bound", fine, mine.bound, min(proven, default=None), why, TOLERANCE)
    claim = rivals.switched
    if claim.bound is not None:
        cheaper = cheapest_below(instance, mine.kind, claim.bound)
        why = f"A cluster with switches costs less than the bound of {claim.bound:,.2f}."
        ledger.holds("rival-bound", cheaper is None, claim.bound, cheaper and cheaper.value, why, TOLERANCE)
    if claim.value is not None:
        there = cheapest_below(instance, mine.kind, claim.value * (1 + 2 * TOLERANCE))
        why = f"No cluster with switches costs as little as {claim.value:,.2f}."
        ledger.holds("rival-value", there is not None, claim.value, there and there.value, why, TOLERANCE)
