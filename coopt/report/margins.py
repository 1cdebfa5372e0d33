"""How far each bound is."""

from __future__ import annotations

from collections.abc import Sequence

from coopt.plan.evaluation import LimitCheck
from coopt.report import words
from coopt.report.tables import Figures, figures, verdict_word


def margins_table(checks: Sequence[LimitCheck]) -> Figures:
    """Bounds with their slack; the tightest has the smallest percentage."""
    return figures(
        "How far each bound is",
        ("bound",),
        ("plan", "limit", "slack", "slack %", "met"),
        [
            (
                check.name,
                measured(check.value, check.unit),
                measured(check.limit, check.unit),
                measured(check.limit - check.value, check.unit),
                words.percent((check.limit - check.value) / check.limit),
                verdict_word(check.ok),
            )
            for check in checks
        ],
    )


def measured(value: float, unit: str) -> str:
    """A value with its unit: dollars and watts in full, everything else with four digits."""
    if unit.lower() in ("usd", "$"):
        return f"${words.exact(value)}" if value >= 0 else f"-${words.exact(-value)}"
    number = words.exact(value) if unit == "W" else words.digits(value, 4)
    return f"{number} {unit}".rstrip()
