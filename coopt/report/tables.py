"""The two forms of table every report is made of: what stands in them, and how a terminal shows it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

Cell = str | Text


@dataclass(frozen=True, kw_only=True)
class FactTable:
    """Names and what they are, one pair a line."""

    title: str
    rows: tuple[tuple[str, Cell], ...]

    def __rich__(self) -> Table:
        table = Table(
            title=Text(self.title),
            title_justify="left",
            title_style="bold",
            box=None,
            show_header=False,
            pad_edge=False,
        )
        table.add_column(no_wrap=True, style="cyan")
        table.add_column(overflow="fold")
        for name, value in self.rows:
            table.add_row(f"  {name}", value)
        return table


@dataclass(frozen=True, kw_only=True)
class FigureTable:
    """A table whose first columns hold words and whose others hold numbers, which are never cut."""

    title: str
    words: tuple[str, ...]
    numbers: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: tuple[Cell, ...] | None
    compact: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table; where it is too wide, long keys go on in a second line after a bracket, where they read best.

        Where words would break even so, the first cell of each row stands in a line above the others.
        """
        unbounded = options.update(width=10**4)
        table = self._table(self.rows)
        if console.measure(table, options=unbounded).maximum > options.max_width:
            table = self._table([tuple(map(_in_lines, row)) for row in self.rows])
            breaks = console.measure(table, options=unbounded).minimum > options.max_width
            if breaks and (lines := self._stacked(console, options)):
                yield from lines
                return
        yield table

    def _stacked(self, console: Console, options: ConsoleOptions) -> list[RenderableType]:
        """The lines of the table with first cells above; none where another cell takes several lines, or for a sum."""
        first, *others = zip(*self.rows, strict=True) if self.rows else [()]
        if self.total is not None or not others:
            return []
        below = self._table(list(zip(*others, strict=True)), skipped=1)
        rendered = console.render_lines(below, options, pad=False)
        rules = [number for number, line in enumerate(rendered) if any("─" in segment.text for segment in line)]
        start, edges = (1, 0) if self.compact else (rules[0] + 1, 1)  # below the header; the last line is an edge
        if len(rendered) != start + len(first) + edges:
            return []
        lines: list[RenderableType] = [Segments([*line, Segment.line()]) for line in rendered]
        pairs = zip(first, lines[start : start + len(first)], strict=True)
        body = [line for cell, under in pairs for line in (Text("  ").append_text(_as_text(cell)), under)]
        return [*lines[:start], *body, *lines[start + len(first) :]]

    def _table(self, rows: Iterable[tuple[Cell, ...]], skipped: int = 0) -> Table:
        """The table without its first columns, if some are skipped."""
        table = Table(
            title=None if self.compact else Text(self.title), title_justify="left", title_style="bold",
            box=None if self.compact else box.SIMPLE_HEAD, pad_edge=not self.compact,
            show_footer=self.total is not None,
        )  # fmt: skip
        for index, header in list(enumerate((*self.words, *self.numbers)))[skipped:]:
            number = index >= len(self.words)
            table.add_column(
                header,
                footer=self.total[index] if self.total else "",
                justify="right" if number else "left",
                no_wrap=number,
                overflow="fold",
            )
        for row in rows:
            table.add_row(*row)
        return table


def _as_text(cell: Cell) -> Text:
    return cell if isinstance(cell, Text) else Text(cell)


def _in_lines(cell: Cell) -> Cell:
    """`workload[0].` and `max_iteration_time_s` each on a line of its own."""
    return re.sub(r"\]\.(?=[a-z_]+\b[^\]]*$)", "].\n", cell) if isinstance(cell, str) else cell


def facts(title: str, rows: Iterable[tuple[str, Cell]]) -> FactTable:
    """Names and what they are."""
    return FactTable(title=title, rows=tuple(rows))


def figures(
    title: str,
    words: Sequence[str],
    numbers: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    total: Sequence[Cell] | None = None,
    *,
    compact: bool = False,
) -> FigureTable:
    """Columns of words, then of numbers, and a last line where there is a total; compact: without title and rules."""
    return FigureTable(
        title=title,
        words=tuple(words),
        numbers=tuple(numbers),
        rows=tuple(map(tuple, rows)),
        total=None if total is None else tuple(total),
        compact=compact,
    )


def verdict_word(ok: bool) -> Text:
    """`yes` or `NO`, so that it reads without colours."""
    return Text("yes", style="green") if ok else Text("NO", style="bold red")
