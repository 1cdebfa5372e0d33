"""The two forms of table every report is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.table import Table
from rich.text import Text

Cell = str | Text


def facts(title: str, rows: Iterable[tuple[str, Cell]]) -> Table:
    """Names and what they are, one pair a line."""
    table = Table(
        title=Text(title), title_justify="left", title_style="bold", box=None, show_header=False, pad_edge=False
    )
    table.add_column(no_wrap=True, style="cyan")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(f"  {name}", value)
    return table


def figures(
    title: str,
    words: Sequence[str],
    numbers: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    total: Sequence[Cell] | None = None,
) -> Table:
    """A table whose first columns hold words and whose others hold numbers; numbers are never cut."""
    table = Table(
        title=Text(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, show_footer=total is not None
    )
    for index, header in enumerate((*words, *numbers)):
        number = index >= len(words)
        table.add_column(
            header,
            footer=total[index] if total else "",
            justify="right" if number else "left",
            no_wrap=number,
            overflow="fold",
        )
    for row in rows:
        table.add_row(*row)
    return table


def verdict_word(ok: bool) -> Text:
    """`yes` or `NO`, so that it reads without colours."""
    return Text("yes", style="green") if ok else Text("NO", style="bold red")
