"""Check the bound of a robust plan by going through all designs that stand the same losses."""

from __future__ import annotations

import math

from coopt.instance.robust import Robust
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.verifier.bounds.designs import check_bound
from coopt.verifier.checks.verdict import TOLERANCE, Ledger
from coopt.verifier.couplings.losses import loss_condition
from coopt.verifier.couplings.outlooks import best_values, certain_question, price_outlooks, regrets


def check_robust_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check that no design that stands all losses costs less, and that none exists where the plan says so."""
    robust = instance.robust
    assert robust is not None
    question = certain_question(instance, robust)
    if robust.aim == "worst-case" or plan.status == "infeasible":
        check_bound(ledger, question, plan, loss_condition(question, robust))
    else:
        _check_least_regret(ledger, instance, robust, plan)


def _check_least_regret(ledger: Ledger, instance: Instance, robust: Robust, plan: Plan) -> None:
    """Check that no design has a regret below the bound."""
    kind, bound = plan.objective.kind, plan.objective.bound
    if bound is None:
        return
    best_by_outlook = best_values(instance, robust, kind, price_outlooks(instance, robust))
    least_regret = min(regrets(instance, robust, kind, best_by_outlook), default=math.inf)
    why = f"A design has a regret of {least_regret:,.2f}, less than the bound of {bound:,.2f}."
    ledger.holds(
        "bound", least_regret >= bound - TOLERANCE * max([*best_by_outlook, bound]), bound, least_regret, why, TOLERANCE
    )
