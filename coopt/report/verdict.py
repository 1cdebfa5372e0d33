"""What the verifier found."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from coopt.report import words
from coopt.report.tables import Cell, Figures, figures, verdict_word
from coopt.verifier.verdict import SOLVERS_WORD, Check, Value, Verdict

SHORT = 32
SOURCE = "bound-source"
"""The check that says in words what a bound rests on."""


def verdict_report(verdict: Verdict) -> Iterator[RenderableType]:
    """Accepted or rejected, then every check, those that fail first with the reason."""
    yield Text(verdict_headline(verdict), style="bold green" if verdict.accepted else "bold red")
    yield checks_table(verdict)


def checks_table(verdict: Verdict) -> Figures:
    """Every check, those that fail first; why stands there where some do."""
    columns = ("check", "claimed", "recomputed", "ok", *(() if verdict.accepted else ("why",)))
    rows = [check_row(check)[: len(columns)] for check in sorted(verdict.checks, key=lambda check: check.ok)]
    return figures("Checks", columns, (), rows)


def verdict_headline(verdict: Verdict) -> str:
    """`Rejected: 2 of 54 checks fail: capex, power.`; one that accepts says what it took on trust."""
    made = words.counted(len(verdict.checks), "check")
    if verdict.accepted:
        trusted = f"; {verdict.on_trust} rests on {SOLVERS_WORD}" if verdict.on_trust else ""
        return f"Accepted: {made}, all of them hold{trusted}."
    names = ", ".join(dict.fromkeys(check.name for check in verdict.failures))
    return f"Rejected: {len(verdict.failures)} of {made} fail: {names}."


def check_row(check: Check) -> tuple[Cell, ...]:
    """A check as a line; where it holds long texts are cut, but for what a bound rests on."""
    whole = not check.ok or check.name == SOURCE
    values = (shown(check.claimed, full=not check.ok), shown(check.recomputed, full=whole))
    return check.name, *values, verdict_word(check.ok), check.why


def shown(value: Value, full: bool = False) -> str:
    """A value of a check; `full` keeps every digit and every word."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return words.yes_no(value)
    if isinstance(value, int):
        return words.count(value)
    if isinstance(value, float):
        return repr(value) if full else f"{value:,.10g}"
    text = value if isinstance(value, str) else ", ".join(value)
    return text if full or len(text) <= SHORT else f"{text[: SHORT - 3].rstrip()}..."
