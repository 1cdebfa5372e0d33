"""The figures of a suite: which rows they show, and how they are drawn beside what was published."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from coopt.instance.errors import InstanceError
from coopt.report.pictures import COLOURS, check_picture, save_picture
from coopt.suite.form import FigureView, PublishedRow, Study, View
from coopt.suite.table import COLUMNS, LATER, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes


SHARES = {"saving", "power_saving", "gap", "mfu", "hfu"}
UNANSWERED = ("refused", "failed", "infeasible", "unknown")
MARKS = "Dsv^P*"
INK = "#404040"
TITLE = 64  # characters of a line of the title


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Points of one line by rising x; `knee` is the place of the point furthest from the chord between the ends."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    knee: int | None = None


def axes_of(rows: Sequence[Row], grid: str) -> list[str]:
    """Columns of the axes that a grid has."""
    mine = [row for row in rows if row["grid"] == grid]
    names = [name for name in (mine[0] if mine else {}) if name not in COLUMNS and name not in LATER]
    return [name for name in names if any(row[name] is not None for row in mine)]


def view_rows(rows: Sequence[Row], view: View) -> list[Row]:
    """The rows of a view, in the order of the suite."""
    return [
        row
        for row in rows
        if row["grid"] == view.grid and all(alike(row.get(key), value) for key, value in view.where.items())
    ]


def alike(value: object, reference: object) -> bool:
    """Whether two values are alike, whichever of the two was read as text."""
    return value == reference or str(value) == str(reference)


def published_beside(study: Study, view: View, row: Row, axes: Sequence[str]) -> PublishedRow:
    """What was published for a row: the line of the CSV that agrees with it in every axis the line names."""
    for line in study.published.get(view.name, ()):
        keys = [axis for axis in axes if line.get(axis) is not None]
        if keys and all(_equal(row[axis], line[axis]) for axis in keys):
            return line
    return {}


def _equal(value: object, reference: object) -> bool:
    if isinstance(value, int | float) and isinstance(reference, int | float):
        return float(value) == float(reference)
    return alike(value, reference) or (isinstance(reference, float) and alike(value, f"{reference:g}"))


def lines(rows: Sequence[Row], view: FigureView) -> list[Curve]:
    """The lines of a picture; points without a number are left out."""
    groups: dict[str, list[tuple[float, float]]] = {}
    axes = axes_of(rows, view.grid)
    shown_rows = view_rows(rows, view)
    for row in shown_rows:
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


def published_marks(study: Study, view: FigureView) -> Iterator[tuple[str, Curve]]:
    """Published points by series and group, as lines without a knee."""
    points_by_series: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in study.published.get(view.name, ()):
        x, y = row[view.x], row[view.published_column]
        if isinstance(x, float) and isinstance(y, float):
            points_by_series.setdefault((str(row["series"]), group_name(row, view)), []).append((x, y))
    for (series, group), points in points_by_series.items():
        yield series, _line(group, sorted(points), view.model_copy(update={"knee": False}))


def _share(row: Row, rows: Sequence[Row], view: FigureView, axes: Sequence[str]) -> float | None:
    """y of the case of reference over y of this one; None for a case of reference itself."""
    if all(alike(row[key], value) for key, value in view.share_of.items()):
        return None
    for candidate in rows:
        if candidate["grid"] != view.grid or not all(
            alike(candidate[key], value) for key, value in view.share_of.items()
        ):
            continue
        if all(candidate[axis] == row[axis] for axis in axes if axis not in view.share_of):
            value, reference = row.get(view.y), candidate.get(view.y)
            return reference / value if value and reference else None
    return None


def _line(name: str, points: Sequence[tuple[float, float]], view: FigureView) -> Curve:
    x, y = (tuple(part) for part in zip(*points, strict=True))
    place = knee(tuple(map(math.log, x)) if view.log_x else x, y) if view.knee else None
    return Curve(name=name, x=x, y=y, knee=place)


def knee(x: Sequence[float], y: Sequence[float]) -> int | None:
    """The place of the point that lies furthest from the chord between the first and the last; None on a straight line.

    Both axes are scaled to their range, so that units play no part.
    """
    if len(x) < 3 or x[0] == x[-1] or y[0] == y[-1]:
        return None
    distances = [abs((b - y[0]) / (y[-1] - y[0]) - (a - x[0]) / (x[-1] - x[0])) for a, b in zip(x, y, strict=True)]
    largest = max(distances)
    return distances.index(largest) if largest > 1e-9 else None


def draw_figures(study: Study, rows: Sequence[Row], folder: str | Path, ending: str) -> Iterator[Path]:
    """Draw every figure of a suite that has points.

    Raises
    ------
    InstanceError
        When matplotlib is missing, the suite has no figures, or the folder cannot be written to.
    """
    if not study.suite.figure:
        raise InstanceError(f"{study.suite.name}: the suite has no [[figure]], needs one to draw")
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InstanceError(f"{folder}: cannot be written ({error.strerror}), needs the name of a folder") from None
    for view in study.suite.figure:
        file = place / f"{view.name}.{ending}"
        check_picture(str(file), "-o")
        curves = lines(rows, view)
        if not curves:
            both = f"in both {view.x!r} and {view.y!r}"
            raise InstanceError(f"{view.name}: no case of grid {view.grid!r} has numbers {both}, needs some to draw")
        _draw(study, view, curves, file)
        yield file


def _draw(study: Study, view: FigureView, curves: Sequence[Curve], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 4.8), dpi=160, layout="constrained")
    axes = figure.subplots()
    colours = {line.name: COLOURS[place % len(COLOURS)] for place, line in enumerate(curves)}
    for line in curves:
        axes.plot(line.x, line.y, marker="o", ms=4.5, lw=1.6, color=colours[line.name], label=line.name or "coopt")
        if line.knee is not None:
            _ring(axes, line, line.knee)
    _draw_published(axes, study, view, colours)
    _style(axes, view, curves)
    axes.set_title(fill(view.title, TITLE), loc="left", fontsize=11)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    save_picture(figure, file)


def _ring(axes: Axes, line: Curve, place: int) -> None:
    """The knee, with its x written beside it."""
    point = line.x[place], line.y[place]
    axes.plot(*point, marker="o", ms=11, mfc="none", mec=INK, mew=1.1)
    axes.annotate(
        f"knee at {point[0]:,.10g}", point, xytext=(9, -13), textcoords="offset points", fontsize=8, color=INK
    )


def _draw_published(axes: Axes, study: Study, view: FigureView, colours: dict[str, str]) -> None:
    """Hollow marks in the colour of the line they belong to, in ink where there is none; a mark for each series."""
    marks: dict[str, str] = {}
    for series, points in published_marks(study, view):
        mark = marks.setdefault(series, MARKS[len(marks) % len(MARKS)])
        colour = colours.get(points.name, INK)
        name = f"{series}, {points.name}" if points.name else series
        axes.plot(points.x, points.y, ls="none", marker=mark, ms=6.5, mfc="none", mec=colour, mew=1.2, label=name)


def _style(axes: Axes, view: FigureView, curves: Sequence[Curve]) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

    axes.set(xlabel=view.x_label or view.x.replace("_", " "), ylabel=view.y_label or view.y.replace("_", " "))
    if view.log_x:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(FixedLocator(sorted({x for line in curves for x in line.x})))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(lambda value, place: f"{value:,.10g}")
    if view.share_of or view.y in SHARES:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.grid(which="major", color="#e6e6e6", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
