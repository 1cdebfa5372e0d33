"""A front as files of one folder: data, spreadsheet, pictures, and a page that loads nothing from anywhere."""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from coopt.instance.errors import InstanceError
from coopt.instance.listings import both
from coopt.instance.schema import Instance
from coopt.instance.texts import write_text
from coopt.plan.front import Front
from coopt.report.csv_files import front_csv
from coopt.report.fronts.chart import BOUND, DOT, LINE, front_chart
from coopt.report.fronts.text import (
    bound_of,
    built_from,
    columns,
    front_headline,
    front_notes,
    points_label,
    row,
    time_label,
    time_of,
    time_words,
    value_of,
    value_scale,
)
from coopt.report.pictures import INSTALL, save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KNEE = "#bd1f01"
LINE_LENGTH = 98
ROOM = 0.65  # of the axis, beyond which a name goes to the left of its knee
NAMES = ("front.json", "front.csv", "front.png", "front.svg", "front.html")
NEEDED = ("jinja2", "matplotlib", "plotly")


def draw_front(front: Front, instance: Instance, path: str) -> None:
    """Write the picture: cost over time in steps, knees named, the bound of the instance.

    Raises
    ------
    InstanceError
        When the file cannot be written.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter

    figure = Figure(figsize=(9.6, 5.4), dpi=160, layout="constrained")
    axes = figure.subplots()
    headline = front_headline(front, instance)
    title = fill(headline, LINE_LENGTH)  # its dollars are no mathematics
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold", parse_math=False)
    size, label = value_scale(front)
    _points(axes, front, instance, size)
    axes.set(xlabel=time_label(instance), ylabel=label)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:,.6g}"))
    axes.grid(color="#e6e6e6", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    save_picture(figure, path, about=f"{instance.name}. {headline}")


def _points(axes: Axes, front: Front, instance: Instance, size: float) -> None:
    """Steps between points, since what is not shown costs no more than the point before it."""
    x = [time_of(point) for point in front.points]
    y = [value_of(front, point) / size for point in front.points]
    axes.plot(x, y, drawstyle="steps-post", color=LINE, lw=1.4, zorder=2)
    axes.scatter(x, y, s=20, color=DOT, zorder=3, label=points_label(front))
    axes.margins(x=0.06, y=0.10)
    bound = bound_of(instance)
    if bound is not None and x and x[0] <= bound <= x[-1]:
        axes.axvline(bound, color=BOUND, lw=1, ls="--", zorder=1, label=f"bound, {time_words(instance, bound)}")
    bends = [point for point in front.points if point.knee]
    if bends:
        at = [time_of(point) for point in bends], [value_of(front, point) / size for point in bends]
        axes.scatter(*at, s=80, marker="D", facecolors="none", edgecolors=KNEE, linewidths=1.6, zorder=4, label="knee")
    for point in bends:
        time, late = time_of(point), time_of(point) > x[0] + ROOM * (x[-1] - x[0])
        axes.annotate(
            built_from(instance, point), (time, value_of(front, point) / size), xytext=(-4 if late else 9, 9),
            textcoords="offset points", ha="right" if late else "left", fontsize=8, color=KNEE, parse_math=False,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
        )  # fmt: skip
    if x:
        axes.legend(loc="upper right", frameon=False, fontsize=9)


def front_page(front: Front, instance: Instance) -> str:
    """The chart with the sentences above it and the table below."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    text = files("coopt").joinpath("report", "fronts", "page.html.j2").read_text("utf-8")
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True)
    return made.from_string(text).render(
        name=instance.name,
        headline=front_headline(front, instance),
        sentences=[*front.explanation, *front_notes(front, instance)],
        chart=Markup(front_chart(front, instance)) if front.points else "",
        columns=columns(front, instance),
        rows=[row(front, instance, point) for point in front.points],
    )


def check_packages(option: str) -> None:
    """Refuse files that cannot be made, before the work is done.

    Raises
    ------
    InstanceError
        When a package that draws is not installed.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        is_ = "are" if len(missing) > 1 else "is"
        raise InstanceError(f"{option}: {both(missing)} {is_} not installed, needs `{INSTALL}`")


def front_json(front: Front) -> str:
    """The front as one JSON document."""
    return front.model_dump_json(by_alias=True, indent=2)


def write_front(front: Front, instance: Instance, folder: str | Path) -> None:
    """Write every file of `NAMES` into a folder, each whole or not at all.

    Raises
    ------
    InstanceError
        When one cannot be written.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InstanceError(f"{folder}: cannot be made ({error.strerror}), needs a place for a folder") from None
    write_text(place / "front.json", front_json(front) + "\n")
    write_text(place / "front.csv", front_csv(front))
    for name in ("front.png", "front.svg"):
        draw_front(front, instance, str(place / name))
    write_text(place / "front.html", front_page(front, instance))
