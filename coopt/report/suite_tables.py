"""What a run of a suite did, and its results as tables with published figures beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.console import RenderableType
from rich.text import Text

from coopt.report import words
from coopt.report.suite_figures import SHARES, UNANSWERED, Curve, axes_of, lines, published_beside, view_rows
from coopt.report.tables import PIPED_WIDTH, facts, figures
from coopt.suite.driver import Summary
from coopt.suite.form import CaseGrid, FigureView, Study, TableView
from coopt.suite.table import COLUMNS, Row

LEFT_OPEN = ("refused", "failed")
USUAL = ("status", "capex_usd", "iteration_time_s", "hb_name", "fabric", "switches", "mfu")
HEADER = 12  # characters of a header's line
GUTTER = 3  # between two columns
LONGEST = 60  # rows of a table
SHOWN = 12  # sentences about cases without an answer


def summary_report(summary: Summary) -> Iterator[RenderableType]:
    """The headline, and where everything is."""
    yield Text(_headline(summary), style="bold")
    yield ""
    yield facts("Run", _facts(summary))


def _headline(summary: Summary) -> str:
    rows = sum(summary.statuses.values())
    if summary.stopped:
        return (
            f"Stopped, {summary.stopped}: {rows:,} of {words.counted(summary.cases, 'case')} have a row; "
            "the same command with --resume goes on."
        )
    bad = [f"{summary.statuses[name]:,} {name}" for name in LEFT_OPEN if name in summary.statuses]
    return f"{words.counted(summary.cases, 'case')} done{''.join(f', {text}' for text in bad)}."


def _facts(summary: Summary) -> Iterator[tuple[str, str]]:
    yield "Results", f"{summary.folder}/results.parquet, a row for each case; cases/ beside it has the plans"
    yield "Outcomes", ", ".join(f"{count:,} {name}" for name, count in summary.statuses.items()) or "none"
    repeated = summary.cases - summary.asked - summary.statuses.get("refused", 0)
    parts = [f"{summary.worked:,} worked on"]
    parts += [f"{summary.kept:,} known from before"] if summary.kept else []
    parts += [f"{repeated:,} asked by another case as well"] if repeated > 0 else []
    parts += [f"{summary.damaged:,} with a file that was damaged, so asked again"] if summary.damaged else []
    yield "Questions", ", ".join(parts)
    yield "Time", f"{summary.wall_s:.1f} s, in which workers used {summary.cpu_s:.1f} s of processor time"


def suite_report(study: Study, rows: Sequence[Row]) -> Iterator[RenderableType]:
    """The headline, every table, every figure in numbers, and why cases have no answer."""
    suite = study.suite
    counts = Counter(row["status"] for row in rows)
    outcomes = ", ".join(f"{number:,} {status}" for status, number in counts.items())
    yield Text(f"{suite.name}: {words.counted(len(rows), 'case')} ({outcomes}).", style="bold")
    if suite.description:
        yield Text(suite.description.strip())
    views = suite.table or tuple(_usual(rows, grid) for grid in suite.grid)
    for view in views:
        yield ""
        yield from _table(study, rows, view)
    for figure in suite.figure:
        yield ""
        yield _numbers(rows, figure)
    yield from _without_answer(rows)


def _usual(rows: Sequence[Row], grid: CaseGrid) -> TableView:
    """A grid with its axes; with its instances where it has several."""
    instances = ("instance",) if len(grid.instances) > 1 else ()
    columns = (*instances, *axes_of(rows, grid.name), *USUAL)
    return TableView(name=grid.name, title=grid.name, grid=grid.name, where={}, columns=columns)


def _table(study: Study, rows: Sequence[Row], view: TableView) -> Iterator[RenderableType]:
    """The columns of a view; one that was published too has a neighbour with what was published."""
    axes = axes_of(rows, view.grid)
    published = {name for line in study.published.get(view.name, ()) for name in line} - set(axes)
    shown_rows = view_rows(rows, view)
    published_lines = [published_beside(study, view, row, axes) for row in shown_rows[:LONGEST]]
    columns: list[list[str]] = []
    for name in view.columns:
        columns.append([header_text(name), *(cell_text(name, row.get(name)) for row in shown_rows[:LONGEST])])
        if name in published:
            columns.append(["published", *(_quoted(name, line.get(name)) for line in published_lines)])
    fitting = _fitting(columns)
    headers, *body = zip(*columns[:fitting], strict=True)
    words_first = next((i for i, name in enumerate(view.columns) if not _is_text(shown_rows, name)), fitting)
    yield figures(view.title, headers[:words_first], headers[words_first:], body)
    omitted = [column[0].replace("\n", " ") for column in columns[fitting:]]
    if omitted or len(shown_rows) > LONGEST:
        further = [f"{words.count(len(shown_rows) - LONGEST)} further rows"] if len(shown_rows) > LONGEST else []
        yield Text(
            f"Left out for want of room: {', '.join([*omitted, *further])}; --json and results.parquet have them."
        )


def _is_text(rows: Sequence[Row], name: str) -> bool:
    return all(isinstance(row.get(name), str | None) for row in rows)


def _fitting(columns: Sequence[Sequence[str]]) -> int:
    """How many columns find room beside each other; at least one."""
    room = PIPED_WIDTH
    for place, column in enumerate(columns):
        room -= max(len(line) for cell in column for line in cell.split("\n")) + GUTTER
        if room < 0 and place:
            return place
    return len(columns)


def _quoted(column: str, value: float | str | None) -> str:
    """A published value with no more digits than were published."""
    if column in SHARES and isinstance(value, float):
        return f"{100 * value:g}%"
    return cell_text(column, value)


def _numbers(rows: Sequence[Row], view: FigureView) -> RenderableType:
    """The points that a picture draws, one line of it a column; the knee in brackets."""
    curves = lines(rows, view)
    places = sorted({x for line in curves for x in line.x})
    body = [[cell_text(view.x, x), *(_point(view, line, x) for line in curves)] for x in places]
    return figures(
        view.title,
        (),
        (header_text(view.x_label or view.x), *(header_text(line.name or view.y) for line in curves)),
        body,
    )


def _point(view: FigureView, curve: Curve, x: float) -> str:
    if x not in curve.x:
        return ""
    place = curve.x.index(x)
    text = words.percent(curve.y[place]) if view.share_of else cell_text(view.y, curve.y[place])
    return f"[knee] {text}" if place == curve.knee else text


def header_text(name: str) -> str:
    """A header on several lines, so that many columns find room beside each other."""
    return "\n".join(wrap(name.replace("_", " "), HEADER, break_long_words=False))


def cell_text(column: str, value: object) -> str:
    """A value as a planner reads it, by the unit that its column names."""
    if value is None:
        return "-"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if column in SHARES:
        return words.percent(value)
    if value == round(value) or column not in COLUMNS:
        return f"{value:,.10g}"
    return words.exact(value) if column.endswith("_usd") else words.digits(value, 4)


def _without_answer(rows: Sequence[Row]) -> Iterator[RenderableType]:
    """What is known of cases without an answer, each sentence once."""
    reasons = Counter((row["status"], row["why"]) for row in rows if row["status"] in UNANSWERED)
    if reasons:
        body = [(status, words.count(number), text or "-") for (status, text), number in reasons.most_common(SHOWN)]
        title = (
            "Cases without an answer"
            if len(reasons) <= SHOWN
            else f"Cases without an answer, {SHOWN} of {len(reasons)}"
        )
        yield ""
        yield figures(title, ("status", "cases", "why"), (), body)
