"""Write down checks as they are made, and the verdict that they add up to."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from coopt.instance.texts import frame, html
from coopt.plan.parts import Record
from coopt.plan.schema import ObjectiveClaim
from coopt.verifier.checks.names import NAMES

SOLVERS_WORD = "the solver's word"
"""What a bound rests on that was not confirmed, or not in whole: words of the check `bound-source`.
"""

Value = bool | int | float | str | tuple[str, ...] | None


class Check(Record):
    """One claim against its recomputation; `why` says in a sentence what is wrong, and is empty
    when `ok`.

    `tolerance` is relative; None where the two have to be equal. `subject` is what of the plan the
    claim is about, such as a part or a phase, and `part` the name of the part where it is one; both
    are empty where it is the whole.
    """

    name: str
    claimed: Value
    recomputed: Value
    tolerance: float | None
    ok: bool
    why: str
    subject: str = ""
    part: str = ""


class UndecidedRival(Record):
    """The least that a rival below the bound may be worth, where none is found and none is ruled
    out.

    `value` is in the unit of the objective `kind`; `gap` is that of the plan if the rival counts,
    None where there is no plan.
    """

    kind: str
    value: float
    gap: float | None


class Verdict(Record):
    """All checks that were made; `accepted` when every one holds.

    `gap` is that of the plan, which is proven where no rival is `undecided`; `overridden` names the
    objective and the gap that were asked for in place of those of the instance.
    """

    accepted: bool
    checks: tuple[Check, ...]
    gap: float | None = None
    overridden: tuple[str, ...] = ()
    undecided: UndecidedRival | None = None

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} of them failed" if self.failures else ""
        return (
            f"Verdict({'accepted' if self.accepted else 'rejected'}, {len(self.checks)}"
            f" checks{failed})"
        )

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return html(repr(self), [check.why for check in self.failures], [self._rows()])

    def to_frame(self) -> Any:
        """The checks as a data frame (`coopt.instance.texts.frame`)."""
        return frame(self._rows())

    def _rows(self) -> list[dict[str, Any]]:
        """Every check, those that fail first; values of any kind as text."""
        ordered = sorted(self.checks, key=lambda check: check.ok)
        return [
            {
                "check": check.name,
                "claimed": str(check.claimed),
                "recomputed": str(check.recomputed),
                "ok": check.ok,
            }
            for check in ordered
        ]

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that do not hold."""
        return tuple(check for check in self.checks if not check.ok)

    @property
    def on_trust(self) -> str:
        """What was accepted on the solver's word: a bound, or that nothing is feasible; empty where
        nothing was.
        """
        # Checks that rest on the solver's word hold, and say so where others say what was
        # recomputed.
        unconfirmed = [check for check in self.checks if SOLVERS_WORD in str(check.recomputed)]
        for check in unconfirmed:
            if check.name == "bound-source":
                return "that nothing is feasible" if isinstance(check.claimed, str) else "the bound"
        inside = any(check.name == "tp-inside-source" for check in unconfirmed)
        return "that nothing is feasible with TP groups inside HB domains" if inside else ""


TOLERANCE = 1e-9
"""Relative difference that two evaluations of the same formula may have in floating point."""

ROUNDING = 2.0**-48
"""Relative difference that two sums of the same amounts, none below 0, may have when they are added
in another order.

Values are told apart beyond it: a bound is compared with what other designs are worth to the last
digits of a float.
"""

STRICT, LENIENT = TOLERANCE, -TOLERANCE
"""By which share bounds of time and memory are taken short when rivals of a plan are looked for.

A rival that keeps every bound by more than rounding refutes a plan. One that keeps them only when
rounding is in its favour refutes nothing: it is undecided, and named. What a plan claims of itself
has rounding in its favour.
"""


def agree(claim: float | None, recomputed: float | None, tolerance: float = TOLERANCE) -> bool:
    """Whether two numbers agree up to rounding, or both are none."""
    if claim is None or recomputed is None:
        return claim is recomputed
    return abs(claim - recomputed) <= tolerance * max(abs(claim), abs(recomputed))


def is_below(value: float, bound: float) -> bool:
    """Whether a sum is less than a bound by more than its rounding."""
    return value < (bound - ROUNDING * abs(bound) if math.isfinite(bound) else bound)


def check_value(value: Value) -> Value:
    """The value as a check can carry it: an infinite number turns into a word."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


class UnsoundError(Exception):
    """A check has failed that those to come build on; the ledger tells which."""


class Ledger:
    """The checks made so far, in order, and those `of_plan` itself; `turn_to` says what those to
    come are about.
    """

    def __init__(self) -> None:
        self.checks: list[Check] = []
        self.of_plan: list[Check] = []
        self.overridden: list[str] = []
        self.undecided: list[float] = []
        self.turn_to()

    def turn_to(self, subject: str = "", *, part: str = "", aside: bool = False) -> None:
        """Say what the checks to come are about: a subject that leads their reasons, and which part
        of the plan it is; those of what the plan stands beside, or of what it becomes, are `aside`.
        """
        self.subject, self.part, self.aside = (
            subject or (f"Part {part!r}" if part else ""),
            part,
            aside,
        )

    def holds(
        self,
        name: str,
        ok: bool,
        claim: Value,
        recomputed: Value,
        fault: str,
        tolerance: float | None = None,
    ) -> bool:
        """Note a check; `fault` is kept where it fails. Returns `ok`."""
        assert name in NAMES, name
        check = Check(
            name=name,
            claimed=check_value(claim),
            recomputed=check_value(recomputed),
            tolerance=tolerance,
            ok=ok,
            why="" if ok else f"{self.subject}: {fault}" if self.subject else fault,
            subject=self.subject,
            part=self.part,
        )
        self.checks.append(check)
        if not self.aside:
            self.of_plan.append(check)
        return ok

    def require(self, name: str, ok: bool, claim: Value, recomputed: Value, fault: str) -> None:
        """Note a check without which those to come mean nothing."""
        if not self.holds(name, ok, claim, recomputed, fault):
            raise UnsoundError(name)

    def among(self, name: str, claim: Value, allowed: Iterable[object], fault: str) -> bool:
        """Note that a value has to be one of some."""
        choices = tuple(allowed)
        return self.holds(name, claim in choices, claim, tuple(map(str, choices)), fault)

    def same(self, name: str, claim: Value, recomputed: Value, fault: str) -> bool:
        """Note that two values have to be equal."""
        return self.holds(name, claim == recomputed, claim, recomputed, fault)

    def close(self, name: str, claim: float, recomputed: float, fault: str) -> bool:
        """Note that two numbers have to agree up to rounding."""
        return self.holds(name, agree(claim, recomputed), claim, recomputed, fault, TOLERANCE)

    def take(self, checks: Iterable[Check]) -> None:
        """Note checks that were made apart."""
        for check in checks:
            self.holds(
                check.name, check.ok, check.claimed, check.recomputed, check.why, check.tolerance
            )

    def note_rival(self, value: float, bound: float | None) -> None:
        """Note what an undecided rival may be worth, as a share of the bound where there is one:
        questions that a plan chose among have bounds of their own.
        """
        if bound is None or bound > 0:
            self.undecided.append(value if bound is None else value / bound)

    def verdict(self, claim: ObjectiveClaim | None = None) -> Verdict:
        """The answer on a plan that claims that of its objective."""
        return Verdict(
            accepted=all(check.ok for check in self.checks),
            checks=tuple(self.checks),
            gap=None if claim is None else claim.gap,
            overridden=tuple(self.overridden),
            undecided=None if claim is None else self._undecided_rival(claim),
        )

    def _undecided_rival(self, claim: ObjectiveClaim) -> UndecidedRival | None:
        """The cheapest of the undecided rivals that are below the bound of a claim."""
        # Rivals are shares of the bounds of their own questions, and count as such shares of the
        # bound claimed.
        least_share, bound, value = min(self.undecided, default=math.inf), claim.bound, claim.value
        if bound is None or math.isinf(least_share):
            return (
                None
                if math.isinf(least_share)
                else UndecidedRival(kind=claim.kind, value=least_share, gap=None)
            )
        rival = least_share * bound
        gap = None if value is None else (value - rival) / value
        return (
            UndecidedRival(kind=claim.kind, value=rival, gap=gap)
            if is_below(rival, bound)
            else None
        )
