"""Check a plan of several phases against its instance."""

from __future__ import annotations

import math

from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.verifier.ledger import TOLERANCE, Ledger
from coopt.verifier.phased.growths import Growths
from coopt.verifier.phased.myopic_checks import check_myopic
from coopt.verifier.phased.phase_checks import check_growth, check_running
from coopt.verifier.phased.purchase_checks import check_purchases


def check_phased(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Re-derive what a plan says of its phases, of their cost, and of planning phase by phase."""
    kind = plan.objective.kind
    why = "Phases are planned for capex or tco."
    fine = ledger.holds("phased-objective", kind != "power", kind, ("capex", "tco"), why)
    if not fine or plan.design is None or plan.cost is None:
        return
    growths = Growths(instance, kind)
    grown = check_growth(ledger, growths, plan)
    if grown is not None:
        check_running(ledger, growths, plan, grown)
        check_purchases(ledger, instance, plan, grown)
    check_myopic(ledger, growths, plan)


def check_phased_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Go through all networks: none grows for less than the bound; none at all where the plan says so."""
    growths = Growths(instance, plan.objective.kind)
    bound = plan.objective.bound
    if plan.status == "infeasible":
        value = growths.least_below(math.inf)
        why = f"A network grows through all phases, for {value}, although the plan says that none does."
        shown = "no design is feasible" if value is None else value
        ledger.holds("infeasible", value is None, "no design is feasible", shown, why)
    if bound is not None:
        value = growths.least_below(bound)
        why = f"A network grows through all phases for {value}, less than the bound of {bound:,.2f}."
        shown = "no feasible design costs less" if value is None else value
        ledger.holds("bound", value is None, bound, shown, why, TOLERANCE)
