"""Numbers as a planner reads them, and what is told by a few of them in cells of tables.

Every report is made of two forms of table, which a terminal of any width and colours shows. The
progress of a run takes one line.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Literal, TextIO

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment, Segments
from rich.table import Column, Table
from rich.text import Text

from coopt.instance.numerics import EQUAL
from coopt.instance.texts import alternatives as alternatives
from coopt.instance.texts import both as both
from coopt.instance.texts import counted as counted
from coopt.instance.texts import exact as exact
from coopt.instance.texts import exact_usd
from coopt.instance.workload import LONGEST_S, Workload
from coopt.plan.parts import Design, DirectLinks, NearestRun, WorkloadPlan
from coopt.plan.schema import OnProgress, Progress

NO_BOUND = "none"
SCALES = ((1e9, "B"), (1e6, "M"), (1e3, "k"), (1.0, ""))
BYTES = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes"))
HOURS = ((3600.0, "h"), (60.0, "min"))
WATTS = ((1e6, "MW"), (1e3, "kW"), (1.0, "W"))


def count(number: int) -> str:
    """`32,768`."""
    return f"{number:,}"


def kind(name: str) -> str:
    """`HB GPU`, `switch`: the kind of an item of the bill; HB domains are counted by their GPUs."""
    return "HB GPU" if name == "hb" else name


def times(number: int, name: str) -> str:
    """`4,096 x hgx-h100-8`: how many of a product."""
    return f"{count(number)} x {name}"


def money(usd: float) -> str:
    """`$94.3 M`: three digits, for sentences."""
    return f"{'-' if usd < 0 else ''}${scaled(abs(usd), SCALES)}"


def power(w: float) -> str:
    """`2.31 MW`: three digits, for sentences."""
    return f"{'-' if w < 0 else ''}{scaled(abs(w), WATTS)}"


def amount(kind: str, value: float) -> str:
    """A value of the objective `kind` with its unit, for sentences."""
    return {
        "time": f"{seconds(value)} an iteration",
        "usd_per_token": f"${digits(1e6 * value, 4)} per million tokens",
        "carbon": f"{digits(value / 1000, 4)} t of CO2",
        "power": power(value),
    }.get(kind, money(value))


def ratio(oversubscription: float) -> str:
    """`2:1`, `1.67:1`."""
    return f"{oversubscription:.3g}:1"


def with_unit(value: float, unit: str) -> str:
    """A value with its unit, for tables: dollars and watts in full, everything else with four
    digits.
    """
    if unit.lower() in ("usd", "$"):
        return exact_usd(value)
    if unit in ("GPUs", "racks"):
        return f"{exact(value)} {unit[:-1] if value == 1 else unit}"
    return f"{exact(value) if unit == 'W' else digits(value, 4)} {unit}".rstrip()


def byte_scale(size_bytes: float) -> tuple[float, str]:
    """Bytes of the largest unit that goes into a number of bytes, and its name."""
    return next(pair for pair in BYTES if size_bytes >= pair[0] or pair[0] == 1.0)


def seconds(s: float) -> str:
    """`11.82 s`: four digits, never fewer than the whole seconds."""
    return f"{digits(s, 4)} s"


def time(s: float) -> str:
    """`5.68 min`: three digits, in hours or minutes where these are two or more."""
    scale, unit = next(((scale, unit) for scale, unit in HOURS if s >= 2 * scale), (1.0, "s"))
    return f"{digits(s / scale, 3)} {unit}"


def bound(bound_s: float) -> str:
    """`12.00 s`, or `none` where any time will do."""
    return seconds(bound_s) if bound_s < LONGEST_S else NO_BOUND


def nearest_run(run: NearestRun) -> str:
    """A published run, and how it differs from a plan's."""
    return f"{run.id}, {' '.join(run.differs)}" if run.differs else run.id


def allowed(time_s: float, bound_s: float, margin: float) -> str:
    """`11.82 s of at most 12.00 s (13.20 s less the margin)`, or the time alone where any will
    do.
    """
    if bound_s >= LONGEST_S:
        return seconds(time_s)
    less = f" ({seconds(bound_s * (1.0 + margin))} less the margin)" if margin else ""
    return f"{seconds(time_s)} of at most {seconds(bound_s)}{less}"


def free(slack: float, bound_s: float) -> str:
    """How far a time stays within its bound: `1.5%`, or `-` where it has none."""
    if bound_s >= LONGEST_S:
        return "-"
    return "<0.1%" if 0 < slack < 1e-3 else percent(slack)


def digits(number: float, significant: int) -> str:
    """A number in plain notation with that many significant digits."""
    if number == 0 or not math.isfinite(number):
        return f"{number:.0f}"
    # In plain notation so small a number would be mostly zeros.
    if abs(number) < 1e-6:
        return f"{number:.{significant - 1}e}"
    # Rounded first: 9.9996 with four digits is 10.00, which has one digit more before the point.
    magnitude = math.floor(math.log10(float(f"{abs(number):.{significant - 1}e}")))
    return f"{number:,.{max(0, significant - 1 - magnitude)}f}"


def model_utilisation(run: WorkloadPlan) -> str:
    """`MFU 38.3% (39.6% with full attention)`: first as training software counts today."""
    return f"MFU {percent(run.mfu_causal)} ({percent(run.mfu)} with full attention)"


def percent(share: float) -> str:
    """`38.3%`; a share below 0.1% keeps two digits, so that a small gap does not read as none, and
    one near the whole as many as tell it from that.
    """
    value, rest = 100 * share, 1 - share
    if EQUAL <= rest < 5.1e-4:
        return f"{value:.{-math.floor(math.log10(rest * (1 + 1e-9))) - 2}f}%"
    # What is rounding only reads as none, and so never as a gap of 1e-14.
    if abs(share) < EQUAL or abs(value) >= 0.1:
        return f"{value if abs(share) >= EQUAL else 0:.1f}%"
    return f"{digits(value, 2)}%"


def sentence(text: str) -> str:
    """A text with a capital at its beginning, unless it begins with a key of the instance, and a
    full stop.
    """
    first_word, _, _ = text.partition(" ")
    key = first_word.endswith(":") or any(sign in first_word for sign in "._[")
    begun = text if key else f"{text[:1].upper()}{text[1:]}"
    return begun if begun.endswith(".") else f"{begun}."


def yes_no(flag: bool) -> str:
    """A truth value in words."""
    return "yes" if flag else "no"


def domains_built(network: Design | DirectLinks) -> str:
    """`8 x hgx-h100-8 + 1 spare`: the HB domains of a network, and those that stand by."""
    spares = network.spare_domains if isinstance(network, Design) else 0
    spares_text = f" + {counted(spares, 'spare')}" if spares else ""
    return f"{times(network.hb_domain.count, network.hb_domain.name)}{spares_text}"


def design_text(design: Design) -> str:
    """`4,096 x hgx-h100-8 joined by a 2-tier rail-only network, with 3 spare domains`."""
    domains = times(design.hb_domain.count, design.hb_domain.name)
    fabric, spares = design.fabric, counted(design.spare_domains, "spare domain")
    with_spares = f", with {spares}" if design.spare_domains else ""
    if fabric.tiers == 0:
        return f"{domains} without a network{with_spares}"
    blocking = "" if fabric.oversubscription <= 1 else f" at {ratio(fabric.oversubscription)}"
    joined = f"joined by a {fabric.tiers}-tier {fabric.title} network{blocking}"
    return f"{domains} {joined}{with_spares}"


def required_bound(workload: Workload) -> str:
    """`at most 4.000 s an iteration (213,333 tokens/s)`; days, which hold interruptions, come
    first.
    """
    if not workload.bounded:
        return "no bound on its time"
    rate, time = workload.in_own_units(workload.required_s), seconds(workload.required_s)
    if workload.calendar:
        return f"at most {rate} ({time} an iteration, interruptions included)"
    return f"at most {time} an iteration{f' ({rate})' if rate else ''}"


def in_days(days: float) -> str:
    """`65.01 days`, `12,350 days`."""
    return f"{float(f'{days:.4g}'):,.10g} days"


def days_of(run: WorkloadPlan, workload: Workload) -> str:
    """`65.01 of 65.5`: the days of training with interruptions, and those it may take less the
    margin; `-` without such a bound.
    """
    if workload.train_days is None:
        return "-"
    most = workload.train_days / (1.0 + workload.time_margin)
    return f"{workload.days(run.promised_s):.4g} of {most:.4g}"


def scaled(number: float, scales: Sequence[tuple[float, str]], significant: int = 3) -> str:
    """A number with so many digits in the largest of `scales` that leaves 1 or more, else the
    smallest; what rounds up to 1,000 takes the next.
    """
    rounded = float(f"{number:.{significant - 1}e}")
    size, unit = next((pair for pair in scales if rounded >= pair[0]), scales[-1])
    return f"{digits(rounded / size, significant)} {unit}".rstrip()


Cell = str | Text

PIPED_WIDTH = 100
QUIET_S = 5.0


@dataclass(frozen=True, kw_only=True)
class FactTable:
    """Names and what they are, one pair a line."""

    title: str
    rows: tuple[tuple[str, Cell], ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The pairs; names that would take more than half of a line go on in further lines."""
        table = Table(
            title=Text(self.title),
            title_justify="left",
            title_style="bold",
            box=None,
            show_header=False,
            pad_edge=False,
        )
        half = options.max_width // 2
        is_long = max((cell_len(name) + 2 for name, _ in self.rows), default=0) > half
        wide = half if is_long else None
        table.add_column(no_wrap=not is_long, overflow="fold", width=wide, style="cyan")
        table.add_column(overflow="fold")
        for name, value in self.rows:
            table.add_row(Padding(name, (0, 0, 0, 2)), value)
        yield table


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

        Compact columns stand a single space apart where that is enough.
        Where words would break even so, the first cell of each row stands in a line above the
        others.
        """
        unbounded = options.update(width=10**4)
        # Rendered without bounds first: rich would break words silently instead of saying that a
        # table is too wide, and takes three times as long to measure a table and then render it.
        lines = console.render_lines(self._table(self.rows), unbounded, pad=False)
        if max(map(Segment.get_line_length, lines)) <= options.max_width:
            yield Segments([segment for line in lines for segment in (*line, Segment.line())])
            return
        near = self._table(self.rows, near=True)
        if self.compact and console.measure(near, options=unbounded).maximum <= options.max_width:
            yield near
            return
        table = self._table([tuple(map(_in_lines, row)) for row in self.rows])
        breaks = console.measure(table, options=unbounded).minimum > options.max_width
        if breaks and (stacked := self._stacked(console, options)):
            yield from stacked
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
        body = [line for cell, under in pairs for line in (Text.assemble("  ", cell), under)]
        return [*lines[:start], *body, *lines[start + len(names) :]]

    def _table(
        self, rows: Iterable[tuple[Cell, ...]], skipped: int = 0, *, near: bool = False
    ) -> Table:
        """The table without its first columns, if some are skipped; near: with less space between
        columns.
        """
        table = Table(
            title=None if self.compact else Text(self.title),
            title_justify="left",
            title_style="bold",
            box=None if self.compact else box.SIMPLE_HEAD,
            pad_edge=not self.compact,
            collapse_padding=near,
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

    group: Literal["total", "rests", "row", "network", "run"]
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


def pieces(
    *parts: RenderableType | Iterable[RenderableType] | None,
) -> list[RenderableType]:
    """What a report shows, in order: single pieces, several of them, and nothing for None."""
    shown: list[RenderableType] = []
    for part in parts:
        if isinstance(part, Iterable) and not isinstance(part, str):
            shown += part
        elif part is not None:
            shown.append(part)
    return shown


CLOSE = 0.02
"""A slack of an estimate that small is marked."""


def verdict_word(ok: bool, *, close: bool = False) -> Text:
    """`yes`, `close` or `NO`, so that it reads without colours."""
    if ok and close:
        return Text("close", style="yellow")
    return Text("yes", style="green") if ok else Text("NO", style="bold red")


def mark(cell: Text) -> str:
    """What the colour of a verdict says: `good`, `warn` or `bad`."""
    style = str(cell.style)
    return "bad" if "red" in style else "warn" if "yellow" in style else "good"


def rendered(parts: Iterable[RenderableType], stream: TextIO | None = None) -> str:
    """The text of `parts` for a stream (stdout): colours and width of a terminal, 100 plain columns
    elsewhere.
    """
    target = stream or sys.stdout
    terminal = target is not None and target.isatty()
    return _printed(parts, target, None if terminal else PIPED_WIDTH, coloured=terminal)


def columns_of(stream: TextIO | None = None) -> int:
    """The columns of text for a stream (stdout)."""
    target = stream or sys.stdout
    terminal = target is not None and target.isatty()
    return Console(file=target).width if terminal else PIPED_WIDTH


def height(parts: Iterable[RenderableType], columns: int) -> int:
    """The lines that `parts` take in so many columns."""
    return len(_printed(parts, None, columns, coloured=False).splitlines())


def _printed(
    parts: Iterable[RenderableType], target: TextIO | None, columns: int | None, *, coloured: bool
) -> str:
    console = Console(
        file=target,
        width=columns,
        no_color=None if coloured else True,
        force_terminal=coloured,
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

    columns = (
        progress.SpinnerColumn(),
        progress.BarColumn(24),
        progress.TimeElapsedColumn(),
        progress.TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
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
