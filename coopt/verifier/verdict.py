"""What the verifier answers."""

from __future__ import annotations

from coopt.plan.schema import Record

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
    """All checks that were made; `accepted` when every one holds."""

    accepted: bool
    checks: tuple[Check, ...]

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
