"""The two forms of table every report is made of, and how a terminal of some width and colours
shows them.

The progress of a run takes one line.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Literal, TextIO

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment, Segments
from rich.table import Column, Table
from rich.text import Text

from coopt.plan.claims import OnProgress, Progress
from coopt.report.words import with_unit

Cell = str | Text

PIPED_WIDTH = 100
QUIET_S = 5.0


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
        """The table; where it is too wide, long keys go on in a second line after a bracket, where
        they read best.

        Where words would break even so, the first cell of each row stands in a line above the
        others.
        """
        unbounded = options.update(width=10**4)
        table = self._table(self.rows)
        # Measured without bounds first: rich would break words silently instead of saying that a
        # table is too wide.
        if console.measure(table, options=unbounded).maximum > options.max_width:
            table = self._table([tuple(map(_in_lines, row)) for row in self.rows])
            breaks = console.measure(table, options=unbounded).minimum > options.max_width
            if breaks and (lines := self._stacked(console, options)):
                yield from lines
                return
        yield table

    def _stacked(self, console: Console, options: ConsoleOptions) -> list[RenderableType]:
        """The lines of the table with first cells above; none where another cell takes several
        lines, or for a sum.
        """
        names, *columns = zip(*self.rows, strict=True) if self.rows else [()]
        if self.total is not None or not columns:
            return []
        lower_table = self._table(list(zip(*columns, strict=True)), skipped=1)
        rendered = console.render_lines(lower_table, options, pad=False)
        rules = [
            number
            for number, line in enumerate(rendered)
            if any("─" in segment.text for segment in line)
        ]
        start, edges = (
            (1, 0) if self.compact else (rules[0] + 1, 1)
        )  # below the header; the last line is an edge
        # Another number of lines means that some cell takes several, so that names could not be put
        # above their rows.
        if len(rendered) != start + len(names) + edges:
            return []
        lines: list[RenderableType] = [Segments([*line, Segment.line()]) for line in rendered]
        pairs = zip(names, lines[start : start + len(names)], strict=True)
        body = [
            line
            for cell, under in pairs
            for line in (Text("  ").append_text(_as_text(cell)), under)
        ]
        return [*lines[:start], *body, *lines[start + len(names) :]]

    def _table(self, rows: Iterable[tuple[Cell, ...]], skipped: int = 0) -> Table:
        """The table without its first columns, if some are skipped."""
        table = Table(
            title=None if self.compact else Text(self.title),
            title_justify="left",
            title_style="bold",
            box=None if self.compact else box.SIMPLE_HEAD,
            pad_edge=not self.compact,
            show_footer=self.total is not None,
        )
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
    """Columns of words, then of numbers, and a last line where there is a total; compact: without
    title and rules.
    """
    return FigureTable(
        title=title,
        words=tuple(words),
        numbers=tuple(numbers),
        rows=tuple(map(tuple, rows)),
        total=None if total is None else tuple(total),
        compact=compact,
    )


@dataclass(frozen=True)
class PlanFact:
    """One thing that holds of a plan.

    `of` names the part or the run that has it, and is empty where the whole plan does. `value` is a
    number in `unit`, or words; `text` is how it reads where number and unit alone do not say it,
    and `note` what it is measured against.
    """

    group: Literal["total", "row", "network", "run"]
    of: str
    name: str
    value: float | str
    unit: str = ""
    text: str = ""
    note: str = ""

    @property
    def shown(self) -> str:
        """How it reads."""
        if self.text or isinstance(self.value, str):
            return self.text or str(self.value)
        return with_unit(self.value, self.unit)


def of_group(plan_facts: Iterable[PlanFact], group: str, of: str | None = None) -> list[PlanFact]:
    """The facts of a group, of all things or of one."""
    return [fact for fact in plan_facts if fact.group == group and of in (None, fact.of)]


def listed(title: str, facts_of_one: Iterable[PlanFact]) -> FactTable:
    """Facts of one thing, a line each."""
    return facts(title, [(fact.name, fact.shown) for fact in facts_of_one])


def compared(
    title: str, column: str, facts_of_all: Iterable[PlanFact], *, compact: bool = False
) -> FigureTable:
    """Facts of several things, a row each with a column for each name, words before numbers."""
    cells = {(fact.of, fact.name): fact for fact in facts_of_all}
    is_words = {fact.name: isinstance(fact.value, str) for fact in cells.values()}
    names = sorted(is_words, key=lambda name: not is_words[name])
    rows = [
        (of, *(cells[of, name].shown if (of, name) in cells else "-" for name in names))
        for of in dict.fromkeys(of for of, _ in cells)
    ]
    split = sum(is_words.values())
    return figures(title, (column, *names[:split]), names[split:], rows, compact=compact)


def verdict_word(ok: bool) -> Text:
    """`yes` or `NO`, so that it reads without colours."""
    return Text("yes", style="green") if ok else Text("NO", style="bold red")


def rendered(parts: Iterable[RenderableType], stream: TextIO | None = None) -> str:
    """The text of `parts` for a stream (stdout): colours and width of a terminal, 100 plain columns
    elsewhere.
    """
    target = stream or sys.stdout
    terminal = target is not None and target.isatty()
    console = Console(
        file=target,
        width=None if terminal else PIPED_WIDTH,
        no_color=None if terminal else True,
        force_terminal=terminal,
        markup=False,
        emoji=False,
        highlight=False,
    )
    with console.capture() as captured:
        for part in parts:
            if isinstance(part, FactTable | FigureTable):
                console.print()  # a table stands apart from what is above it
            console.print(part)
    # Trailing blanks and runs of empty lines come from columns and captions that are empty in this
    # report.
    lines = "\n".join(line.rstrip() for line in captured.get().splitlines())
    return re.sub(r"\n{3,}", "\n\n", lines).lstrip("\n") + "\n"


@contextmanager
def progress_shown(note: Callable[[str], None]) -> Iterator[OnProgress]:
    """A callback that keeps a bar with the time that passed up to date on a terminal, and elsewhere
    notes the stages.

    Parameters
    ----------
    note
        Writes one line to stderr; used where stderr is no terminal.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield throttled(lambda step: note(progress_line(step)))
        return
    from rich import progress

    task_column = progress.TextColumn(
        "{task.description}", markup=False, table_column=Column(no_wrap=True)
    )
    columns = (
        progress.SpinnerColumn(),
        progress.BarColumn(24),
        progress.TimeElapsedColumn(),
        task_column,
    )
    with progress.Progress(*columns, console=Console(stderr=True), transient=True) as display:
        task = display.add_task("starting", total=None)

        def tell(step: Progress) -> None:
            done, total = step.done or (0, None)
            display.update(task, completed=done, total=total, description=progress_text(step))

        yield tell


def throttled(
    hear: Callable[[Progress], None],
    quiet_s: float = QUIET_S,
    clock: Callable[[], float] = monotonic,
) -> OnProgress:
    """A listener that hears every new stage at once, and news within a stage now and then.

    Parameters
    ----------
    quiet_s
        Least seconds between two news of a stage.
    """
    last_stage, last_time = "", -quiet_s

    def tell(step: Progress) -> None:
        nonlocal last_stage, last_time
        time_s = clock()
        if step.stage != last_stage or time_s - last_time >= quiet_s:
            last_stage, last_time = step.stage, time_s
            hear(step)

    return tell


def progress_line(step: Progress) -> str:
    """`solve: 12 nodes, gap 1.5% [3.4 s]`."""
    return f"{progress_text(step)} [{step.elapsed_s:.1f} s]"


def progress_text(step: Progress) -> str:
    """`solve: 12 nodes, gap 1.5%`."""
    gap = "" if step.gap is None else f", gap {100 * step.gap:.2g}%"
    return f"{step.stage}: {step.message}{gap}"
