"""What a run of a suite did, and its results: tables and figures with what was published beside
them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill, wrap
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.texts import InstanceError
from coopt.report import words
from coopt.report.pictures import COLOURS, check_picture, made_folder, plain_axes, save_picture
from coopt.report.words import PIPED_WIDTH, facts, figures, pieces
from coopt.suite.driver import Summary
from coopt.suite.form import CaseGrid, FigureView, PublishedRow, Study, TableView, View
from coopt.suite.table import COLUMNS, LATER, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEFT_OPEN = ("refused", "failed")
USUAL = ("status", "capex_usd", "iteration_time_s", "hb_name", "fabric", "switches", "mfu")
HEADER = 12  # characters of a header's line
GUTTER = 3  # between two columns
LONGEST = 60  # rows of a table
SHOWN = 12  # sentences about cases without an answer
SHARES = {"saving", "power_saving", "gap", "mfu", "hfu", "mfu_causal"}
UNANSWERED = ("refused", "failed", "infeasible", "unknown")
MARKS = "Dsv^P*"
INK = "#404040"
TITLE = 64  # characters of a line of the title


def summary_report(summary: Summary) -> list[RenderableType]:
    """The headline, and where everything is."""
    rows = sum(summary.statuses.values())
    bad = [f", {summary.statuses[name]:,} {name}" for name in LEFT_OPEN if name in summary.statuses]
    headline = f"{words.counted(summary.cases, 'case')} done{''.join(bad)}."
    if summary.stopped:
        headline = (
            f"Stopped ({summary.stopped}): {rows:,} of {words.counted(summary.cases, 'case')}"
            f" {'is' if rows == 1 else 'are'} in the results. Run the same command with --resume"
            " to continue."
        )
    repeated = rows - summary.statuses.get("refused", 0) - summary.kept - summary.worked
    counts = {
        "worked on": summary.worked,
        "answered in an earlier run": summary.kept,
        "answered by an equal case": max(0, repeated),
        "answered anew because of a damaged file": summary.damaged,
    }
    questions = [f"{n:,} {text}" for text, n in counts.items() if n or text == "worked on"]
    outcomes = [f"{count:,} {name}" for name, count in summary.statuses.items()]
    used = f"in which workers used {summary.cpu_s:.1f} s of processor time"
    run = {
        "Results": f"{summary.folder}/results.parquet, a row for each finished case; cases/"
        " beside it has the plans",
        "Outcomes": ", ".join(outcomes) or "none",
        "Questions": ", ".join(questions),
        "Time": f"{summary.wall_s:.1f} s, {used}",
    }
    return [Text(headline, style="bold"), facts("Run", run.items())]


def suite_report(study: Study, rows: Sequence[Row]) -> list[RenderableType]:
    """The headline, every table, every figure in numbers, and why cases have no answer."""
    suite = study.suite
    counts = Counter(row["status"] for row in rows)
    outcomes = ", ".join(f"{number:,} {status}" for status, number in counts.items())
    headline = f"{suite.name}: {words.counted(len(rows), 'case')} ({outcomes})."
    # A suite that names no tables still has its grids to show.
    views = suite.table or tuple(_usual(rows, grid) for grid in suite.grid)
    return pieces(
        Text(headline, style="bold"),
        Text(suite.description.strip()) if suite.description else None,
        *(_table(study, rows, view) for view in views),
        [_numbers(rows, figure) for figure in suite.figure],
        _without_answer(rows),
    )


def _usual(rows: Sequence[Row], grid: CaseGrid) -> TableView:
    """A grid with its axes; with its instances where it has several, with what is minimised where
    that is no price.
    """
    instances = ("instance",) if len(grid.instances) > 1 else ()
    status, *usual = USUAL
    answered = [row for row in rows if row["grid"] == grid.name and row["value"] is not None]
    aims = (
        ("objective", "value") if any(row["value"] != row["capex_usd"] for row in answered) else ()
    )
    return TableView(
        name=grid.name,
        title=grid.name,
        grid=grid.name,
        where={},
        columns=(*instances, *axes_of(rows, grid.name), status, *aims, *usual),
    )


def _table(study: Study, rows: Sequence[Row], view: TableView) -> list[RenderableType]:
    """The columns of a view; one that was published too has a neighbour with what was published."""
    axes, all_rows = axes_of(rows, view.grid), view_rows(rows, view)
    shown_rows = all_rows[:LONGEST]
    published = {name for line in study.published.get(view.name, ()) for name in line} - set(axes)
    published_lines = [published_beside(study, view, row, axes) for row in shown_rows]
    columns: list[list[str]] = []
    for name in view.columns:
        columns.append([header_text(name), *[cell_text(name, row.get(name)) for row in shown_rows]])
        if name in published:
            columns.append(
                ["published", *[_quoted(name, line.get(name)) for line in published_lines]]
            )
    fitting = _fitting(columns)
    headers, *body = zip(*columns[:fitting], strict=True)
    numbers = [
        i
        for i, name in enumerate(view.columns)
        if not all(isinstance(row.get(name), str | None) for row in all_rows)
    ]
    first = numbers[0] if numbers else fitting
    cut = [column[0].replace("\n", " ") for column in columns[fitting:]]
    omitted = [name for name in cut if name != "published"]
    if len(all_rows) > LONGEST:
        omitted.append(words.counted(len(all_rows) - LONGEST, "further row"))
    homes = [f"{', '.join(omitted)} (--json and results.parquet have them)"] if omitted else []
    homes += ["published figures (suite.json has them)"] if "published" in cut else []
    return pieces(
        figures(view.title, headers[:first], headers[first:], body),
        Text(f"Left out for lack of space: {'; '.join(homes)}.") if homes else None,
    )


def _fitting(columns: Sequence[Sequence[str]]) -> int:
    """How many columns find room beside each other; at least one."""
    room = PIPED_WIDTH
    for place, column in enumerate(columns):
        room -= max(len(line) for cell in column for line in cell.split("\n")) + GUTTER
        # A first column that is too wide stays: a table without any would say nothing.
        if room < 0 and place:
            return place
    return len(columns)


def _quoted(column: str, value: float | str | None) -> str:
    """A published value with no more digits than were published."""
    is_share = column in SHARES and isinstance(value, float)
    return f"{100 * float(value or 0):g}%" if is_share else cell_text(column, value)


def _numbers(rows: Sequence[Row], view: FigureView) -> RenderableType:
    """The points that a picture draws, one line of it a column; the knee in brackets."""
    curves = lines(rows, view)
    cells: dict[float, list[str]] = {x: [] for x in sorted({x for line in curves for x in line.x})}
    for line in curves:
        points = dict(zip(line.x, line.y, strict=True))
        # Lines of one figure need not have points at the same places.
        for x, row in cells.items():
            y = points.get(x)
            text = words.percent(y) if view.share_of and y is not None else cell_text(view.y, y)
            knee = "[knee] " if line.knee is not None and line.x[line.knee] == x else ""
            row.append("" if y is None else f"{knee}{text}")
    headers = (view.x_label or view.x, *(line.name or view.y for line in curves))
    return figures(
        view.title,
        (),
        tuple(map(header_text, headers)),
        [[cell_text(view.x, x), *row] for x, row in cells.items()],
    )


def header_text(name: str) -> str:
    """A header on several lines, so that many columns find room beside each other."""
    return "\n".join(wrap(name.replace("_", " "), HEADER, break_long_words=False))


def cell_text(column: str, value: object) -> str:
    """A value as a planner reads it, by the unit that its column names."""
    if value is None or isinstance(value, bool) or not isinstance(value, int | float):
        return "-" if value is None else str(value)
    if column in SHARES:
        return words.percent(value)
    if value == round(value) or column not in COLUMNS:
        return f"{value:,.10g}"
    return words.exact(value) if column.endswith("_usd") else words.digits(value, 4)


def _without_answer(rows: Sequence[Row]) -> RenderableType | None:
    """What is known of cases without an answer, each sentence once."""
    reasons = Counter((row["status"], row["why"]) for row in rows if row["status"] in UNANSWERED)
    body = [
        (status, words.count(number), text or "-")
        for (status, text), number in reasons.most_common(SHOWN)
    ]
    of_all = f", {SHOWN} of {len(reasons)} reasons" if len(reasons) > SHOWN else ""
    title, columns = f"Cases without a plan{of_all}", ("status", "cases", "why")
    return figures(title, columns, (), body) if body else None


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Points of one line by rising x; `knee` is the place of the point furthest from the chord
    between the ends.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    knee: int | None = None


def axes_of(rows: Sequence[Row], grid: str) -> list[str]:
    """Columns of the axes that a grid has."""
    mine = [row for row in rows if row["grid"] == grid]
    names = [name for name in next(iter(mine), {}) if name not in (*COLUMNS, *LATER)]
    return [name for name in names if any(row[name] is not None for row in mine)]


def view_rows(rows: Sequence[Row], view: View) -> list[Row]:
    """The rows of a view, in the order of the suite."""
    return [
        row
        for row in rows
        if row["grid"] == view.grid
        and all(alike(row.get(key), value) for key, value in view.where.items())
    ]


def alike(value: object, reference: object) -> bool:
    """Whether two values are alike, whichever of the two was read as text."""
    return value == reference or str(value) == str(reference)


def published_beside(study: Study, view: View, row: Row, axes: Sequence[str]) -> PublishedRow:
    """What was published for a row: the line of the CSV that agrees with it in every axis the line
    names.
    """
    for line in study.published.get(view.name, ()):
        keys = [axis for axis in axes if line.get(axis) is not None]
        if keys and all(_equal(row[axis], line[axis]) for axis in keys):
            return line
    return {}


def _equal(value: object, reference: object) -> bool:
    """Whether a value is the one that was published, which a CSV holds as a number or a text."""
    if isinstance(value, int | float) and isinstance(reference, int | float):
        return float(value) == float(reference)
    text = f"{reference:g}" if isinstance(reference, float) else reference
    return alike(value, reference) or alike(value, text)


def lines(rows: Sequence[Row], view: FigureView) -> list[Curve]:
    """The lines of a picture; points without a number are left out."""
    groups: dict[str, list[tuple[float, float]]] = {}
    axes = axes_of(rows, view.grid)
    for row in view_rows(rows, view):
        y = _share(row, rows, view, axes) if view.share_of else row.get(view.y)
        x = row.get(view.x)
        if isinstance(x, int | float) and isinstance(y, int | float):
            groups.setdefault(group_name(row, view), []).append((float(x), float(y)))
    return [_line(name, sorted(points), view) for name, points in groups.items()]


def group_name(row: Mapping[str, object], view: FigureView) -> str:
    """What the line that a row belongs to is called."""
    if view.group is None:
        return ""
    value = row.get(view.group)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{view.group_label or view.group.replace('_', ' ')} {value:,.10g}"
    return str(value)


def published_marks(study: Study, view: FigureView) -> list[tuple[str, Curve]]:
    """Published points by series and group, as lines without a knee."""
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in study.published.get(view.name, ()):
        x, y = row[view.x], row[view.published_column]
        if isinstance(x, float) and isinstance(y, float):
            points.setdefault((str(row["series"]), group_name(row, view)), []).append((x, y))
    plain = view.model_copy(update={"knee": False})
    return [(series, _line(group, sorted(of), plain)) for (series, group), of in points.items()]


def _share(row: Row, rows: Sequence[Row], view: FigureView, axes: Sequence[str]) -> float | None:
    """y of the case of reference over y of this one; None for a case of reference itself."""
    if all(alike(row[key], value) for key, value in view.share_of.items()):
        return None
    others = [axis for axis in axes if axis not in view.share_of]
    for candidate in view_rows(rows, view.model_copy(update={"where": view.share_of})):
        if all(candidate[axis] == row[axis] for axis in others):
            value, reference = row.get(view.y), candidate.get(view.y)
            return reference / value if value and reference else None
    return None


def _line(name: str, points: Sequence[tuple[float, float]], view: FigureView) -> Curve:
    x, y = (tuple(part) for part in zip(*points, strict=True))
    place = knee(tuple(map(math.log, x)) if view.log_x else x, y) if view.knee else None
    return Curve(name=name, x=x, y=y, knee=place)


def knee(x: Sequence[float], y: Sequence[float]) -> int | None:
    """The place of the point that lies furthest from the chord between the first and the last; None
    on a straight line.

    Both axes are scaled to their range, so that units play no part.
    """
    if len(x) < 3 or x[0] == x[-1] or y[0] == y[-1]:
        return None
    distances = [
        abs((b - y[0]) / (y[-1] - y[0]) - (a - x[0]) / (x[-1] - x[0]))
        for a, b in zip(x, y, strict=True)
    ]
    return distances.index(max(distances)) if max(distances) > 1e-9 else None


def draw_figures(
    study: Study, rows: Sequence[Row], folder: str | Path, ending: str
) -> Iterator[Path]:
    """Draw every figure of a suite that has points.

    Raises
    ------
    InstanceError
        When matplotlib is missing, the suite has no figures, or the folder cannot be written to.
    """
    if not study.suite.figure:
        raise InstanceError(f"{study.suite.name}: the suite has no [[figure]], needs one to draw")
    place = made_folder(folder)
    for view in study.suite.figure:
        file = place / f"{view.name}.{ending}"
        check_picture(str(file), "-o")
        curves = lines(rows, view)
        if not curves:
            raise InstanceError(
                f"{view.name}: no case of grid {view.grid!r} gives a point, needs one with numbers"
                f" in {view.x!r} and {view.y!r}"
            )
        _draw(study, view, curves, file)
        yield file


def _draw(study: Study, view: FigureView, curves: Sequence[Curve], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 4.8), dpi=160, layout="constrained")
    axes = figure.subplots()
    colours = {line.name: COLOURS[place % len(COLOURS)] for place, line in enumerate(curves)}
    for line in curves:
        colour, label = colours[line.name], line.name or "coopt"
        axes.plot(line.x, line.y, marker="o", ms=4.5, lw=1.6, color=colour, label=label)
        if line.knee is not None:
            point = line.x[line.knee], line.y[line.knee]
            axes.plot(*point, marker="o", ms=11, mfc="none", mec=INK, mew=1.1)
            axes.annotate(
                f"knee at {point[0]:,.10g}",
                point,
                xytext=(9, -13),
                textcoords="offset points",
                fontsize=8,
                color=INK,
            )
    # Hollow marks in the colour of the line they belong to, in ink where there is none; a mark for
    # each series.
    marks: dict[str, str] = {}
    for series, points in published_marks(study, view):
        axes.plot(
            points.x,
            points.y,
            ls="none",
            marker=marks.setdefault(series, MARKS[len(marks) % len(MARKS)]),
            ms=6.5,
            mfc="none",
            mec=colours.get(points.name, INK),
            mew=1.2,
            label=f"{series}, {points.name}" if points.name else series,
        )
    _style(axes, view, curves)
    axes.set_title(fill(view.title, TITLE), loc="left", fontsize=11)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    save_picture(figure, file)


def _style(axes: Axes, view: FigureView, curves: Sequence[Curve]) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

    axes.set(
        xlabel=view.x_label or view.x.replace("_", " "),
        ylabel=view.y_label or view.y.replace("_", " "),
    )
    if view.log_x:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(FixedLocator(sorted({x for line in curves for x in line.x})))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(lambda value, place: f"{value:,.10g}")
    if view.share_of or view.y in SHARES:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    plain_axes(axes)
