"""A front as files of one folder: data, spreadsheet, pictures, and a page that loads nothing from
anywhere.

On its chart, point at a design to see it.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, both, write_text
from coopt.plan.front import Front
from coopt.report import words
from coopt.report.csv_files import front_csv
from coopt.report.fronts.text import (
    amount_of,
    bound_of,
    built_from,
    columns,
    details,
    front_headline,
    front_sentences,
    in_days,
    in_seconds,
    points_label,
    row,
    time_label,
    time_of,
    time_words,
    value_of,
    value_scale,
)
from coopt.report.pictures import INSTALL, made_folder, plain_axes, save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BEND = "#bd1f01"
LINE_LENGTH = 98
ROOM = 0.65  # of the axis, beyond which a name goes to the left of its knee
NAMES = ("front.json", "front.csv", "front.png", "front.svg", "front.html")
NEEDED = ("jinja2", "matplotlib")
CHART = ("dom", "chart", "charts")
IMPORTED = re.compile(r"^import .*\n|^export ", re.MULTILINE)

LINE, DOT, BOUND = "#9db4cf", "#174f93", "#4c5866"


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
    plain_axes(axes)
    save_picture(figure, path, about=f"{instance.name}. {headline}")


def _points(axes: Axes, front: Front, instance: Instance, size: float) -> None:
    """Steps between points, since what is not shown costs no more than the point before it."""
    x = [time_of(point) for point in front.points]
    y = [value_of(front, point) / size for point in front.points]
    if (band := band_of(instance))["says"]:
        low, high = ([band[end] * time for time in x] for end in ("from", "to"))
        axes.fill_betweenx(y, low, high, step="pre", color=LINE, alpha=0.3, lw=0, label="margin")
    axes.plot(x, y, drawstyle="steps-post", color=LINE, lw=1.4, zorder=2)
    axes.scatter(x, y, s=20, color=DOT, zorder=3, label=points_label(front))
    axes.margins(x=0.06, y=0.10)
    if (bound := _bound_inside(front, instance)) is not None:
        label = f"bound, {time_words(instance, bound)}"
        axes.axvline(bound, color=BOUND, lw=1, ls="--", zorder=1, label=label)
    bends = [n for n, point in enumerate(front.points) if point.knee]
    if bends:
        axes.scatter(
            [x[n] for n in bends],
            [y[n] for n in bends],
            s=80,
            marker="D",
            facecolors="none",
            edgecolors=BEND,
            linewidths=1.6,
            zorder=4,
            label="knee",
        )
    for n in bends:
        # Names of knees at the right end would leave the picture, so they stand to the left.
        is_late = x[n] > x[0] + ROOM * (x[-1] - x[0])
        axes.annotate(
            built_from(instance, front.points[n]),
            (x[n], y[n]),
            xytext=(-4 if is_late else 9, 9),
            textcoords="offset points",
            ha="right" if is_late else "left",
            fontsize=8,
            color=BEND,
            parse_math=False,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
        )
    if x:
        axes.legend(loc="upper right", frameon=False, fontsize=9)


def _bound_inside(front: Front, instance: Instance) -> float | None:
    """The bound of the instance, where points lie on both sides of it."""
    bound, points = bound_of(instance), front.points
    is_inside = bound is not None and points and time_of(points[0]) <= bound <= time_of(points[-1])
    return bound if is_inside else None


def front_page(front: Front, instance: Instance) -> str:
    """The chart with the sentences above it and the table below."""
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    headline, *sentences = front_sentences(front, instance)
    text = files("coopt").joinpath("report", "fronts", "page.html.j2").read_text("utf-8")
    made = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    return made.from_string(text).render(
        name=instance.name,
        headline=headline,
        sentences=sentences,
        chart=Markup(front_chart(front, instance)) if front.points else "",
        style=Markup(browser_style()),
        script=Markup(browser_script(*CHART)),
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
    absent_packages = [name for name in NEEDED if find_spec(name) is None]
    if absent_packages:
        is_ = "are" if len(absent_packages) > 1 else "is"
        raise InstanceError(
            f"{option}: {both(absent_packages)} {is_} not installed, needs `{INSTALL}`"
        )


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
    place = made_folder(folder)
    write_text(place / "front.json", front_json(front) + "\n")
    write_text(place / "front.csv", front_csv(front))
    for name in ("front.png", "front.svg"):
        draw_front(front, instance, str(place / name))
    write_text(place / "front.html", front_page(front, instance))


def front_chart(front: Front, question: Instance) -> str:
    """An HTML element that `browser/charts.js` draws, with the data that it draws."""
    # JSON that cannot end the script it stands in
    data = json.dumps(front_contents(question, front)).replace("<", "\\u003c")
    return (
        '<div class="front-chart"><div class="chart"></div>'
        '<div class="point" aria-live="polite"></div>'
        f'<script type="application/json">{data}</script></div>'
    )


def front_contents(instance: Instance, front: Front) -> dict[str, Any]:
    """Cost against time: points in order, each with its pace, from which the page reckons
    bounds.
    """
    size, label = value_scale(front)
    return {
        "sentences": front_sentences(front, instance),
        "complete": front.complete,
        "time_label": time_label(instance),
        "value_label": label,
        "kind": front.kind,
        "bound": bound_of(instance),
        "band": band_of(instance),
        "points": [
            {
                "pace": point.pace,
                "knee": point.knee,
                "time": time_of(point),
                "value": value_of(front, point) / size,
                "words": f"{time_words(instance, time_of(point))}, {amount_of(front, point)}",
                "built": built_from(instance, point),
                "details": list(details(instance, front, point)),
            }
            for point in front.points
        ],
    }


def band_of(instance: Instance) -> dict[str, Any]:
    """The factors on times between which a run may end: the model's own, and with the margin.

    Iterations are the model's own, and days and shares of bounds have the margin already.
    """
    share = max(workload.time_margin for workload in instance.workload)
    plain = in_seconds(instance) and not in_days(instance)
    low, high = (1.0, 1.0 + share) if plain else (1.0 / (1.0 + share), 1.0)
    says = f"from the predicted time to that time plus the margin of {words.percent(share)}"
    return {"from": low, "to": high, "says": says if share else ""}


def browser_script(*modules: str) -> str:
    """Modules of `coopt/report/browser` as one that imports nothing."""
    folder = files("coopt").joinpath("report", "browser")
    texts = [folder.joinpath(f"{name}.js").read_text("utf-8") for name in modules]
    return IMPORTED.sub("", "".join(texts))


def browser_style() -> str:
    """How charts and drawings look on every page."""
    return files("coopt").joinpath("report", "browser", "drawings.css").read_text("utf-8")
