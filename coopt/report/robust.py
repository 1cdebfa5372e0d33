"""What a plan stands: losses, and prices that turn out otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from coopt.plan.robust import Standing, Turn
from coopt.report.sentence import amount
from coopt.report.tables import facts, figures


def robust_tables(kind: str, standing: Standing) -> Iterator[RenderableType]:
    """Terms and losses, and for regret every way prices may turn out."""
    yield facts("What it stands", list(_rows(kind, standing)))
    if standing.turns:
        yield ""
        yield figures(
            "However prices turn out",
            ("factors on prices",),
            ("this plan", "best plan", "regret"),
            [
                (_factors(turn), *(amount(kind, value) for value in (turn.value, turn.best, turn.value - turn.best)))
                for turn in standing.turns
            ],
        )


def _rows(kind: str, standing: Standing) -> Iterator[tuple[str, str]]:
    low, high = standing.efficiency
    if (low, high) != (1.0, 1.0):
        yield "Efficiency", f"{low:g} to {high:g} times that of the catalog; bounds are met at {low:g}"
    for loss in standing.survived:
        yield (
            "Loss",
            f"any one {loss.part} lost: traffic of a domain takes {loss.slowdown:.3g} times as long, "
            f"bounds are met {standing.slower:g} times as long",
        )
    aim = "least cost at the worst prices" if standing.aim == "worst-case" else "least regret over all prices"
    yield "Aim", aim
    yield "Objective", f"{amount(kind, standing.list_value)} at list prices"


def _factors(turn: Turn) -> str:
    changed = [f"{kind} {factor:g}" for kind, factor in turn.factors.items() if factor != 1.0]
    return ", ".join(changed) or "as listed"
