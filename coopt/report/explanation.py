"""Why a plan is as it is, as a planner reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from coopt.instance.listings import with_names
from coopt.instance.question import ObjectiveKind
from coopt.plan.explanation import Bound, Explanation, NextPlan, PriceRange
from coopt.plan.schema import Design
from coopt.report import words
from coopt.report.comparison import differences
from coopt.report.tables import Cell, FigureTable, figures

UNITS: dict[ObjectiveKind, tuple[str, float, str]] = {
    "capex": ("$", 1.0, "+,.0f"),
    "tco": ("$", 1.0, "+,.0f"),
    "power": ("W", 1.0, "+,.0f"),
    "time": ("s", 1.0, "+,.4g"),
    "usd_per_token": ("$ / M tokens", 1e6, "+,.4g"),
    "carbon": ("t of CO2", 1e-3, "+,.4g"),
}
"""What tables show of each objective: the unit, how many of it are one of the objective's own, and digits."""


def explanation_report(explanation: Explanation) -> Iterator[RenderableType]:
    """The sentences, then bounds and prices as tables."""
    yield Text(explanation.sentences[0], style="bold")
    yield _sentence_list(explanation.sentences[1:])
    if explanation.bounds:
        yield ""
        yield bounds_table(explanation)
    if explanation.prices:
        yield ""
        yield prices_table(explanation.design, explanation.prices)


def bounds_table(explanation: Explanation) -> FigureTable:
    """Every bound with its slack, and what a tighter or a looser one costs."""
    numbers = ("plan", "bound", "slack", f"tighter {_unit(explanation)}", f"looser {_unit(explanation)}")
    rows = [_bound_row(explanation, bound) for bound in explanation.bounds]
    if all(bound.loosest is None for bound in explanation.bounds):
        return figures("What each bound costs", ("bound", "binds"), numbers, rows)
    without = [_extra(explanation, bound.without, asked=not bound.binds) for bound in explanation.bounds]
    title = "What each bound costs: 1% tighter than what the plan takes, 1% looser than now, and without it"
    more = [(*row, last) for row, last in zip(rows, without, strict=True)]
    return figures(title, ("bound", "binds"), (*numbers, f"without {_unit(explanation)}"), more)


def rivals_table(explanation: Explanation) -> FigureTable:
    """The best design with each other choice of a part, what it costs more, and why."""
    title = "The best design with another choice of one part"
    rows = [
        (
            rival.part,
            f"without {rival.choice}" if rival.excluded else rival.choice,
            f"no design keeps every limit; {rival.why}" if rival.extra is None else rival.why,
            "-" if rival.extra is None else _more(explanation, rival.extra),
        )
        for rival in explanation.rivals
    ]
    return figures(title, ("part", "choice", "why it loses"), (f"more {_unit(explanation)}",), rows)


def prices_table(design: Design | None, prices: Sequence[PriceRange]) -> FigureTable:
    """The range of every price within which the design stays optimal, and what comes outside."""
    moved = next((f" from {low / one.now:g} to {high / one.now:g} times" for one in prices
                  if one.tried is not None for low, high in (one.tried,)), "")  # fmt: skip
    title = f"Prices that keep the plan, each moved alone{moved}"
    rows = [_price_row(design, price) for price in prices]
    return figures(title, ("price of", "outside the range"), ("unit", "from", "now", "to"), rows)


def _sentence_list(sentences: tuple[str, ...]) -> Table:
    """One sentence an entry, indented."""
    table = Table.grid(padding=(0, 1))
    for sentence in sentences:
        table.add_row(" -", words.sentence(sentence))
    return table


def _unit(explanation: Explanation) -> str:
    unit, *_ = UNITS[explanation.kind]
    return unit


def _bound_row(explanation: Explanation, bound: Bound) -> tuple[Cell, ...]:
    asked = bound.loosest is None or bound.step is not None
    value_text, bound_text = (_number(value) for value in (bound.used, bound.bound))
    return (
        f"{with_names(bound.limit, explanation.rows)}, {bound.unit}",
        words.yes_no(bound.binds),
        value_text,
        bound_text,
        "-" if bound.slack is None else words.percent(bound.slack),
        "no plan" if bound.tighter is None and asked else _extra(explanation, bound.tighter, asked=asked),
        _extra(explanation, bound.looser, asked=not bound.binds),
    )


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.6g}" if value < 99_999.5 else f"{value:,.0f}"


def _extra(explanation: Explanation, plan: NextPlan | None, *, asked: bool) -> str:
    """What the next plan costs more: nothing where it was asked for and none is cheaper."""
    if plan is None:
        return "+0" if asked else "not asked"
    return _more(explanation, plan.extra)


def _more(explanation: Explanation, extra: float) -> str:
    """What a plan is worth more, in the unit of the table."""
    _, units, form = UNITS[explanation.kind]
    return f"{extra * units:{form}}" if extra else "+0"


def _price_row(design: Design | None, price: PriceRange) -> tuple[Cell, ...]:
    neighbours = [
        f"{way}: {_takes_over(design, other)}"
        for way, other in (("below", price.below), ("above", price.above))
        if other is not None and design is not None
    ]
    lowest, highest = price.tried or (0.0, None)
    ends = price.low > lowest or price.high is not None
    outside = "; ".join(neighbours) or (
        "no change" if not ends else "another plan" if price.tried else "a limit missed"
    )
    high = highest if price.high is None else price.high
    last = "any" if high is None else f"{high:,.6g}"
    return price.item, outside, price.unit, f"{price.low:,.6g}", f"{price.now:,.6g}", last


def _takes_over(design: Design, other: Design) -> str:
    """What the other design changes: of switches or optics alone, what stands in place of what."""
    text = differences(design, other)
    if text == f"switches {other.fabric.switch_text}":
        return f"{text} in place of {design.fabric.switch_text}"
    return _other_optics(design, other) if text == "other counts" else text


def _other_optics(design: Design, other: Design) -> str:
    """Optics that come and go, by name; of the same ones, there are other numbers."""
    had, has = (dict.fromkeys(name for tier in one.fabric.tier for name in tier.optics) for one in (design, other))
    come, gone = ([name for name in some if name not in rest] for some, rest in ((has, had), (had, has)))
    if come and gone:
        return f"{words.both(come)} in place of {words.both(gone)}"
    return f"{words.both(come)} as well" if come else f"without {words.both(gone)}" if gone else "other optics"
