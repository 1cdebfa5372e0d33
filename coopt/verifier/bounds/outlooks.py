"""Check the bound of a robust plan by going through all designs that stand the same losses."""

from __future__ import annotations

import math

from coopt.instance.robust import Robust
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.verifier.bounds.designs import check_bound
from coopt.verifier.checks.claims import note_undecided
from coopt.verifier.checks.verdict import LENIENT, ROUNDING, STRICT, Ledger
from coopt.verifier.couplings.losses import loss_condition
from coopt.verifier.couplings.outlooks import best_values, certain_question, price_outlooks, regrets


def check_robust_bound(ledger: Ledger, instance: Instance, plan: Plan) -> None:
    """Check that no design that stands all losses costs less, and that none exists where the plan says so."""
    robust = instance.robust
    assert robust is not None
    question = certain_question(instance, robust)
    if robust.aim == "worst-case" or plan.status == "infeasible":
        check_bound(ledger, question, plan, lambda short: loss_condition(question, robust, short))
    else:
        _check_least_regret(ledger, instance, robust, plan)


def _check_least_regret(ledger: Ledger, instance: Instance, robust: Robust, plan: Plan) -> None:
    """Check that no design has a regret below the bound, measured from the best values that the plan claims."""
    bound, kind = plan.objective.bound, plan.objective.kind
    if bound is None:
        return
    outlooks = price_outlooks(instance, robust)
    claimed = plan.robust.turns if plan.robust is not None else ()
    best = [turn.best for turn in claimed]
    if len(best) != len(outlooks):
        best = best_values(instance, robust, kind, outlooks, LENIENT)
    floor = bound - ROUNDING * max([*best, bound])
    near = min(regrets(instance, robust, kind, best, LENIENT), default=math.inf)
    found = min(regrets(instance, robust, kind, best, STRICT), default=math.inf) if near < floor else near
    why = f"A design has a regret of {found:,.2f}, less than the bound of {bound:,.2f}."
    ledger.holds("bound", found >= floor, bound, found, why, ROUNDING)
    if near < floor <= found:
        note_undecided(ledger, plan, f"a design with a regret of {near:,.10g}")
