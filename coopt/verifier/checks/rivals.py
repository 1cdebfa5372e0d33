"""Check that nothing is worth less than a bound, and say what a bound rests on."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

from coopt.instance.question import ObjectiveKind
from coopt.instance.texts import exact_amount
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import LENIENT, ROUNDING, SOLVERS_WORD, STRICT, Ledger


class Counterexample(NamedTuple):
    """What is feasible and worth less than a bound, in words, and its value; where it `is_open`
    whether it breaks a limit or is late, it refutes nothing.
    """

    text: str
    value: float
    is_open: bool = False


def counterexample(kind: ObjectiveKind, value: Fraction | float | None) -> Counterexample | None:
    """The one with a value, if there is one."""
    if value is None:
        return None
    return Counterexample(exact_amount(kind, float(value)), float(value))


FindRival = Callable[[float, float], Counterexample | None]
"""The best rival below a bound, with bounds on time taken short by a share."""


def may_check_bound(ledger: Ledger, plan: Plan) -> bool:
    """Whether a plan claims a bound, or that nothing is feasible, and all else holds: such checks
    take longest, and are left out where something is wrong already.
    """
    has_claim = plan.status == "infeasible" or plan.objective.bound is not None
    return has_claim and all(check.ok for check in ledger.checks)


def check_claims(
    ledger: Ledger, plan: Plan, find: FindRival, subject: str = "design", source: str = ""
) -> None:
    """Check that nothing feasible costs less than the bound, and that nothing is feasible where the
    plan says so; what a claim that is decided so rests on is noted if given.
    """
    if plan.status == "infeasible":
        check_no_rival(ledger, plan, "infeasible", math.inf, find, subject, source)
    if plan.objective.bound is not None:
        check_no_rival(ledger, plan, "bound", plan.objective.bound, find, subject, source)


def check_no_rival(
    ledger: Ledger,
    plan: Plan,
    name: str,
    bound: float,
    find: FindRival,
    subject: str,
    source: str = "",
) -> None:
    """Check that nothing is feasible below a bound; what is so by rounding alone is undecided.

    Parameters
    ----------
    name
        Of the check.
    bound
        In the unit of the objective; infinite where the plan says that nothing is feasible.
    subject
        What was looked for.
    """
    # most plans have no rival even with rounding in its favour, which answers both questions at
    # once
    lenient_rival = find(bound, LENIENT)
    is_open = lenient_rival is None or lenient_rival.is_open
    rival = None if is_open else find(bound, STRICT)
    endless = math.isinf(bound)
    nothing = f"no {subject} is feasible" if endless else f"no feasible {subject} has a lower value"
    found = "" if rival is None else rival.text
    fault = f"A feasible {subject} exists at {found}, but the plan says that {nothing}"
    ledger.holds(
        name,
        rival is None,
        nothing if endless else bound,
        nothing if rival is None else rival.value,
        f"{fault}." if endless else f"{fault} than {exact_amount(plan.objective.kind, bound)}.",
        None if endless else ROUNDING,
    )
    if lenient_rival is not None and is_open:
        note_source(ledger, plan, lenient_rival.text, lenient_rival.value)
    elif lenient_rival is not None and rival is None:
        note_undecided(ledger, plan, f"a {subject} at {lenient_rival.text}", lenient_rival.value)
    elif source:
        note_source(ledger, plan, source)


def note_source(ledger: Ledger, plan: Plan, source: str, rival: float | None = None) -> None:
    """Note what a bound rests on, or that nothing is feasible, where the plan claims either.

    Parameters
    ----------
    rival
        In the unit of the objective: what is below the bound, and neither refutes it nor is ruled
        out.
    """
    bound = plan.objective.bound
    if plan.status == "infeasible" or bound is not None:
        ledger.holds(
            "bound-source", True, "nothing is feasible" if bound is None else bound, source, ""
        )
        if rival is not None:
            ledger.note_rival(rival, bound)


def note_undecided(ledger: Ledger, plan: Plan, text: str, rival: float | None = None) -> None:
    """Note that a rival keeps bounds and limits to within rounding, so that it neither refutes nor
    confirms a claim.
    """
    source = (
        f"undecided: {text} meets a bound on time or a limit only within rounding; only"
        f" {SOLVERS_WORD} rules it out"
    )
    note_source(ledger, plan, source, rival)
