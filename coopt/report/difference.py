"""What changes from one plan to another, as a planner reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.console import RenderableType
from rich.text import Text

from coopt.plan.difference import Difference, Value, ValueChange
from coopt.report import words
from coopt.report.tables import Cell, figures


def difference_report(found: Difference) -> Iterator[RenderableType]:
    """A sentence, then every value and every line of the bill that changes."""
    yield Text(difference_headline(found), style="bold")
    if found.before.sha256 != found.after.sha256:
        before, after = found.before.name, found.after.name
        named = f", both named {before}" if before == after else f": {before} and {after}"
        yield f"The plans answer different questions{named}."
    if any(one.key == "robust.aim" and "worst-case" in (one.before, one.after) for one in found.changes):
        yield "The bill of a plan that aims at the worst case is at the worst prices, another at those of its instance."
    if _one_builds_nothing(found):
        return
    if found.changes:
        yield ""
        yield figures("What changes", ("value",), ("before", "after", "change"), map(_row, found.changes))
    if found.bill:
        yield ""
        lines = [
            (one.item, one.kind, words.count(one.before), words.count(one.after), _signed(one.usd), _signed(one.w))
            for one in found.bill
        ]
        totals = (_signed(sum(one.usd for one in found.bill)), _signed(sum(one.w for one in found.bill)))
        numbers = ("before", "after", "change $", "change W")
        yield figures("Bill of materials", ("item", "kind"), numbers, lines, total=("total", "", "", "", *totals))


def difference_headline(found: Difference) -> str:
    """`The second plan costs $66.8 M less and draws 1.20 MW less.`"""
    if not found.changes and not found.bill:
        return "The plans do not differ."
    changed = {one.key: one for one in found.changes}
    parts = [
        text
        for key, verb, shown in (("cost.capex_usd", "costs", words.money), ("cost.power_w", "draws", words.power))
        if (one := changed.get(key)) and (text := _moved(one, verb, shown))
    ]
    if parts:
        return f"The second plan {' and '.join(parts)}."
    if "status" in changed:
        nothing = "; one of them builds nothing" if _one_builds_nothing(found) else ""
        return f"The first plan is {changed['status'].before}, the second {changed['status'].after}{nothing}."
    return "The plans cost the same and differ otherwise."


def _one_builds_nothing(found: Difference) -> bool:
    return any(one.key == "cost.capex_usd" and None in (one.before, one.after) for one in found.changes)


def _moved(one: ValueChange, verb: str, shown: Callable[[float], str]) -> str:
    if not isinstance(one.before, float) or not isinstance(one.after, float):
        return ""
    more = one.after - one.before
    return f"{verb} {shown(abs(more))} {'more' if more > 0 else 'less'}"


def _row(one: ValueChange) -> tuple[Cell, ...]:
    return one.key, _shown(one.before), _shown(one.after), _change(one.before, one.after)


def _shown(value: Value) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return words.yes_no(value)
    if isinstance(value, int):
        return words.count(value)
    return f"{value:,.6g}" if isinstance(value, float) and abs(value) < 1e6 else _long(value)


def _long(value: float | str) -> str:
    return f"{value:,.0f}" if isinstance(value, float) else value


def _change(before: Value, after: Value) -> str:
    """`+4` for counts, `-17.8%` for what is measured."""
    if isinstance(before, bool | str | None) or isinstance(after, bool | str | None):
        return ""
    if isinstance(before, int) and isinstance(after, int):
        return f"{after - before:+,}"
    return f"{after / before - 1:+.1%}" if before else ""


def _signed(value: float) -> str:
    return f"{value:+,.0f}" if value else "0"
