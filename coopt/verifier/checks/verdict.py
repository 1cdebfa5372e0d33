"""Write down checks as they are made, and the verdict that they add up to."""

from __future__ import annotations

import math
from typing import Any

from coopt.instance.tables import frame, html
from coopt.plan.schema import Record
from coopt.verifier.checks.names import NAMES

SOLVERS_WORD = "the solver's word"
"""What a bound rests on that was not confirmed, or not in whole: words of the check `bound-source`."""

Value = bool | int | float | str | tuple[str, ...] | None


class Check(Record):
    """One claim against its recomputation; `why` says in a sentence what is wrong, and is empty when `ok`.

    `tolerance` is relative; None where the two have to be equal.
    """

    name: str
    claimed: Value
    recomputed: Value
    tolerance: float | None
    ok: bool
    why: str


class Verdict(Record):
    """All checks that were made; `accepted` when every one holds.

    `gap` is that of the plan; `overridden` names the objective and the gap that were asked for in place of those of
    the instance.
    """

    accepted: bool
    checks: tuple[Check, ...]
    gap: float | None = None
    overridden: tuple[str, ...] = ()

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} of them fail" if self.failures else ""
        return f"Verdict({'accepted' if self.accepted else 'rejected'}, {len(self.checks)} checks{failed})"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return html(repr(self), [check.why for check in self.failures], [self._rows()])

    def to_frame(self) -> Any:
        """The checks as a data frame (`coopt.instance.tables.frame`)."""
        return frame(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        """Every check, those that fail first; values of any kind as text."""
        ordered = sorted(self.checks, key=lambda check: check.ok)
        return [
            {"check": one.name, "claimed": str(one.claimed), "recomputed": str(one.recomputed), "ok": one.ok}
            for one in ordered
        ]

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that do not hold."""
        return tuple(check for check in self.checks if not check.ok)

    @property
    def on_trust(self) -> str:
        """What was accepted on the solver's word: a bound, or that nothing is feasible; empty where nothing was."""
        for check in self.checks:
            if check.name == "bound-source" and SOLVERS_WORD in str(check.recomputed):
                return "that nothing is feasible" if isinstance(check.claimed, str) else "the bound"
        return ""


TOLERANCE = 1e-9
"""Relative difference that two evaluations of the same formula may have in floating point."""

ROUNDING = 2.0**-48
"""Relative difference that two sums of the same amounts, none below 0, may have when they are added in another order.

Values are told apart beyond it: a bound is compared with what other designs are worth to the last digits of a float.
"""

STRICT, LENIENT = TOLERANCE, -TOLERANCE
"""By which share bounds of time and memory are taken short when rivals of a plan are looked for.

A rival that keeps every bound by more than rounding refutes a plan. One that keeps them only when rounding is in its
favour refutes nothing: it is undecided, and named. What a plan claims of itself has rounding in its favour.
"""


def agree(claimed: float, recomputed: float, tolerance: float = TOLERANCE) -> bool:
    """Whether two numbers agree up to rounding."""
    return abs(claimed - recomputed) <= tolerance * max(abs(claimed), abs(recomputed))


def below(value: float, bound: float) -> bool:
    """Whether a sum is less than a bound by more than its rounding."""
    return value < (bound - ROUNDING * abs(bound) if math.isfinite(bound) else bound)


def check_value(value: Value) -> Value:
    """The value as a check can carry it: an infinite number turns into a word."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class Ledger:
    """The checks made so far, in order; `subject` leads the reasons of those to come."""

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.overridden: list[str] = []
        self.subject = ""

    def holds(
        self, name: str, ok: bool, claimed: Value, recomputed: Value, why: str, tolerance: float | None = None
    ) -> bool:
        """Note a check; `why` is kept where it fails. Returns `ok`."""
        assert name in NAMES, name
        self.checks.append(
            Check(
                name=name,
                claimed=check_value(claimed),
                recomputed=check_value(recomputed),
                tolerance=tolerance,
                ok=ok,
                why="" if ok else self.subject + why,
            )
        )
        return ok

    def same(self, name: str, claimed: Value, recomputed: Value, why: str) -> bool:
        """Note that two values have to be equal."""
        return self.holds(name, claimed == recomputed, claimed, recomputed, why)

    def close(self, name: str, claimed: float, recomputed: float, why: str) -> bool:
        """Note that two numbers have to agree up to rounding."""
        return self.holds(name, agree(claimed, recomputed), claimed, recomputed, why, TOLERANCE)

    def say_once(self, since: int) -> None:
        """Leave out checks since a number of them that repeat each other, as those of bounds on several choices do."""
        kept: list[Check] = []
        for check in self.checks[since:]:
            if check not in kept:
                kept.append(check)
        self.checks[since:] = kept

    def verdict(self, gap: float | None = None) -> Verdict:
        """The answer on a plan with this gap."""
        accepted = all(check.ok for check in self.checks)
        return Verdict(accepted=accepted, checks=tuple(self.checks), gap=gap, overridden=tuple(self.overridden))
