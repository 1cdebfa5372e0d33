"""Why a plan is as it is, as a planner reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from coopt.plan.explanation import Bound, Explanation, NextPlan, PriceRange
from coopt.plan.schema import Design
from coopt.report import words
from coopt.report.comparison import differences
from coopt.report.tables import Cell, FigureTable, figures


def explanation_report(found: Explanation) -> Iterator[RenderableType]:
    """The sentences, then bounds and prices as tables."""
    yield Text(found.sentences[0], style="bold")
    yield _listed(found.sentences[1:])
    if found.bounds:
        yield ""
        yield bounds_table(found)
    if found.prices:
        yield ""
        yield prices_table(found.design, found.prices)


def bounds_table(found: Explanation) -> FigureTable:
    """Every bound with its slack, and what a tighter or a looser one costs."""
    numbers = ("plan", "bound", "slack", f"tighter {_unit(found)}", f"looser {_unit(found)}")
    if any(one.loosest is not None for one in found.bounds):
        rows = [(*_bound_row(one), _extra(one.without)) for one in found.bounds]
        title = "What each bound costs: 1% tighter than the plan takes, 1% looser than it is, and without it"
        return figures(title, ("bound", "binds"), (*numbers, f"without {_unit(found)}"), rows)
    return figures("What each bound costs", ("bound", "binds"), numbers, map(_bound_row, found.bounds))


def rivals_table(found: Explanation) -> FigureTable:
    """The best design with each other choice of a part, what it costs more, and why."""
    title = "The best design with another choice of one part"
    rows = [
        (one.part, one.choice, f"cannot meet every bound: {one.why}", "-")
        if one.extra is None
        else (one.part, one.choice, one.why, f"{one.extra:+,.0f}")
        for one in found.rivals
    ]
    return figures(title, ("part", "choice", "why it loses"), (f"more {_unit(found)}",), rows)


def prices_table(design: Design | None, prices: Sequence[PriceRange]) -> FigureTable:
    """The range of every price within which the design stays optimal, and what comes outside."""
    title = "Prices that keep the plan, each moved alone"
    rows = [_price_row(design, one) for one in prices]
    return figures(title, ("price of", "what comes outside"), ("unit", "from", "now", "to"), rows)


def _listed(sentences: tuple[str, ...]) -> Table:
    """One sentence an entry, indented."""
    table = Table.grid(padding=(0, 1))
    for sentence in sentences:
        table.add_row(" -", sentence)
    return table


def _unit(found: Explanation) -> str:
    return "W" if found.kind == "power" else "$"


def _bound_row(one: Bound) -> tuple[Cell, ...]:
    used, bound = (_number(value) for value in (one.used, one.bound))
    return (
        f"{one.limit}, {one.unit}",
        words.yes_no(one.binds),
        used,
        bound,
        "-" if one.slack is None else words.percent(one.slack),
        _extra(one.tighter),
        _extra(one.looser),
    )


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.6g}" if value < 99_999.5 else f"{value:,.0f}"


def _extra(plan: NextPlan | None) -> str:
    return "-" if plan is None else f"{plan.extra:+,.0f}"


def _price_row(ours: Design | None, one: PriceRange) -> tuple[Cell, ...]:
    outside = [
        f"{way}: {_takes_over(ours, other)}"
        for way, other in (("below", one.below), ("above", one.above))
        if other is not None and ours is not None
    ]
    high = "-" if one.high is None else f"{one.high:,.6g}"
    return one.item, "; ".join(outside) or "-", one.unit, f"{one.low:,.6g}", f"{one.now:,.6g}", high


def _takes_over(ours: Design, other: Design) -> str:
    """What the other design changes; one that differs in nothing else has other optics."""
    text = differences(ours, other)
    return "other optics" if text == "other counts" else text
