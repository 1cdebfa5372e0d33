"""Which rows a table or a picture of a suite shows, and what was published beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from coopt.suite.columns import COLUMNS, LATER
from coopt.suite.form import FigureView, View
from coopt.suite.rows import Row
from coopt.suite.study import PublishedRow, Study

UNANSWERED = ("refused", "failed", "infeasible", "unknown")


@dataclass(frozen=True, kw_only=True)
class Line:
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


def chosen(rows: Sequence[Row], view: View) -> list[Row]:
    """The rows of a view, in the order of the suite."""
    return [
        row
        for row in rows
        if row["grid"] == view.grid and all(same(row.get(key), value) for key, value in view.where.items())
    ]


def same(one: object, other: object) -> bool:
    """Whether two values are alike, whichever of the two was read as text."""
    return one == other or str(one) == str(other)


def published_beside(study: Study, view: View, row: Row, axes: Sequence[str]) -> PublishedRow:
    """What was published for a row: the line of the CSV that agrees with it in every axis the line names."""
    for line in study.published.get(view.name, ()):
        keys = [axis for axis in axes if line.get(axis) is not None]
        if keys and all(_equal(row[axis], line[axis]) for axis in keys):
            return line
    return {}


def _equal(one: object, other: object) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return float(one) == float(other)
    return same(one, other) or (isinstance(other, float) and same(one, f"{other:g}"))


def lines(rows: Sequence[Row], view: FigureView) -> list[Line]:
    """The lines of a picture; points without a number are left out."""
    groups: dict[str, list[tuple[float, float]]] = {}
    axes = axes_of(rows, view.grid)
    here = chosen(rows, view)
    for row in here:
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


def published_marks(study: Study, view: FigureView) -> Iterator[tuple[str, Line]]:
    """Published points by series and group, as lines without a knee."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in study.published.get(view.name, ()):
        x, y = row[view.x], row[view.told]
        if isinstance(x, float) and isinstance(y, float):
            found.setdefault((str(row["series"]), group_name(row, view)), []).append((x, y))
    for (series, group), points in found.items():
        yield series, _line(group, sorted(points), view.model_copy(update={"knee": False}))


def _share(row: Row, rows: Sequence[Row], view: FigureView, axes: Sequence[str]) -> float | None:
    """y of the case of reference over y of this one; None for a case of reference itself."""
    if all(same(row[key], value) for key, value in view.share_of.items()):
        return None
    for other in rows:
        if other["grid"] != view.grid or not all(same(other[key], value) for key, value in view.share_of.items()):
            continue
        if all(other[axis] == row[axis] for axis in axes if axis not in view.share_of):
            ours, theirs = row.get(view.y), other.get(view.y)
            return theirs / ours if ours and theirs else None
    return None


def _line(name: str, points: Sequence[tuple[float, float]], view: FigureView) -> Line:
    x, y = (tuple(part) for part in zip(*points, strict=True))
    place = knee(tuple(map(math.log, x)) if view.log_x else x, y) if view.knee else None
    return Line(name=name, x=x, y=y, knee=place)


def knee(x: Sequence[float], y: Sequence[float]) -> int | None:
    """The place of the point that lies furthest from the chord between the first and the last; None on a straight line.

    Both axes are scaled to their range, so that units play no part.
    """
    if len(x) < 3 or x[0] == x[-1] or y[0] == y[-1]:
        return None
    off = [abs((b - y[0]) / (y[-1] - y[0]) - (a - x[0]) / (x[-1] - x[0])) for a, b in zip(x, y, strict=True)]
    most = max(off)
    return off.index(most) if most > 1e-9 else None
