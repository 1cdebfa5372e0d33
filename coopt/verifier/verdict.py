"""What the verifier answers."""

from __future__ import annotations

from coopt.plan.schema import Record

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
