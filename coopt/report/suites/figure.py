"""The figures of a suite as pictures: its own results as lines, published ones as marks beside them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from coopt.instance.errors import InstanceError
from coopt.report.pictures import COLOURS, check_picture, save_picture
from coopt.report.suites.selection import Line, lines, published_marks
from coopt.report.suites.tables import SHARES
from coopt.suite.form import FigureView
from coopt.suite.rows import Row
from coopt.suite.study import Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = "Dsv^P*"
INK = "#404040"
TITLE = 64  # characters of a line of the title


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
        drawn = lines(rows, view)
        if not drawn:
            both = f"in both {view.x!r} and {view.y!r}"
            raise InstanceError(f"{view.name}: no case of grid {view.grid!r} has numbers {both}, needs some to draw")
        _draw(study, view, drawn, file)
        yield file


def _draw(study: Study, view: FigureView, drawn: Sequence[Line], file: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 4.8), dpi=160, layout="constrained")
    axes = figure.subplots()
    colours = {line.name: COLOURS[place % len(COLOURS)] for place, line in enumerate(drawn)}
    for line in drawn:
        axes.plot(line.x, line.y, marker="o", ms=4.5, lw=1.6, color=colours[line.name], label=line.name or "coopt")
        if line.knee is not None:
            _ring(axes, line, line.knee)
    _published(axes, study, view, colours)
    _dress(axes, view, drawn)
    axes.set_title(fill(view.title, TITLE), loc="left", fontsize=11)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    save_picture(figure, file)


def _ring(axes: Axes, line: Line, place: int) -> None:
    """The knee, with its x written beside it."""
    point = line.x[place], line.y[place]
    axes.plot(*point, marker="o", ms=11, mfc="none", mec=INK, mew=1.1)
    axes.annotate(
        f"knee at {point[0]:,.10g}", point, xytext=(9, -13), textcoords="offset points", fontsize=8, color=INK
    )


def _published(axes: Axes, study: Study, view: FigureView, colours: dict[str, str]) -> None:
    """Hollow marks in the colour of the line they belong to, in ink where there is none; a mark for each series."""
    marks: dict[str, str] = {}
    for series, points in published_marks(study, view):
        mark = marks.setdefault(series, MARKS[len(marks) % len(MARKS)])
        colour = colours.get(points.name, INK)
        name = f"{series}, {points.name}" if points.name else series
        axes.plot(points.x, points.y, ls="none", marker=mark, ms=6.5, mfc="none", mec=colour, mew=1.2, label=name)


def _dress(axes: Axes, view: FigureView, drawn: Sequence[Line]) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, PercentFormatter

    axes.set(xlabel=view.x_label or view.x.replace("_", " "), ylabel=view.y_label or view.y.replace("_", " "))
    if view.log_x:
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(FixedLocator(sorted({x for line in drawn for x in line.x})))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_major_formatter(lambda value, place: f"{value:,.10g}")
    if view.share_of or view.y in SHARES:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.grid(which="major", color="#e6e6e6", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
