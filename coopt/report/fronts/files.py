"""A front as files of one folder: data, spreadsheet, pictures, and a page that loads nothing from
anywhere.

On its chart, point at a design to see it, and click to see all of it.
"""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, both, write_text
from coopt.plan.front import Front, FrontPoint
from coopt.report.csv_files import front_csv
from coopt.report.fronts.text import (
    amount_of,
    answer_to,
    bound_of,
    built_from,
    columns,
    details,
    front_headline,
    front_sentences,
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
NEEDED = ("jinja2", "matplotlib", "plotly")

INK, LINE, DOT, KNEE, BOUND, GRID = "#1b2430", "#9db4cf", "#174f93", "#a31515", "#4c5866", "#e4e8ee"
FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'


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


def front_chart(front: Front, question: Instance, *, plotly_js: bool = True) -> str:
    """An HTML fragment that loads nothing from anywhere.

    Parameters
    ----------
    plotly_js
        Whether to bring the code of plotly along; once on a page, before all charts, is enough.
    """
    from plotly.offline import get_plotlyjs

    folder = files("coopt").joinpath("report", "fronts")
    style, script = (folder.joinpath(name).read_text("utf-8") for name in ("front.css", "front.js"))
    options = "".join(
        f'<option value="{n}">{escape(_point_text(front, question, point))}</option>'
        for n, point in enumerate(front.points)
    )
    code = f"<script>{get_plotlyjs()}</script>\n" if plotly_js else ""
    # JSON that cannot end the script it stands in
    data = json.dumps(_data(front, question)).replace("<", "\\u003c")
    return (
        f"<style>{style}</style>\n"
        '<div class="front-chart">\n'
        '<div class="front-plot" role="img"'
        f' aria-label="{escape(front_headline(front, question))}"></div>\n'
        '<div class="front-point"><label>Point <select class="front-select">'
        f'{options}</select></label><dl class="front-details" aria-live="polite"></dl></div>\n'
        '<script type="application/json"'
        f' class="front-data">{data}</script>\n'
        f"</div>\n{code}<script>{script}</script>\n"
    )


def _point_text(front: Front, question: Instance, point: FrontPoint) -> str:
    knee = ", knee" if point.knee else ""
    return f"{time_words(question, time_of(point))}, {amount_of(front, point)}{knee}"


def _data(front: Front, question: Instance) -> dict[str, Any]:
    """Traces and layout as plotly takes them, the list of every point, and the point that is shown
    first.
    """
    places = range(len(front.points))
    knees = [n for n in places if front.points[n].knee]
    curve = _trace(front, question, list(places), points_label(front))
    curve |= {"mode": "lines+markers", "line": {"shape": "hv", "color": LINE, "width": 2}}
    curve["marker"] = {"size": 8, "color": DOT}
    knee_marks = _trace(front, question, knees, "knee") | {"mode": "markers"}
    knee_marks["marker"] = {
        "size": 15,
        "symbol": "diamond-open",
        "color": KNEE,
        "line": {"width": 2.5},
    }
    return {
        "traces": [curve, knee_marks] if knees else [curve],
        "layout": _layout(front, question),
        "start": front.points.index(answer) if (answer := answer_to(front, question)) else 0,
        "details": [list(details(question, front, point)) for point in front.points],
    }


def _trace(front: Front, question: Instance, places: list[int], name: str) -> dict[str, Any]:
    size, _ = value_scale(front)
    points = [front.points[n] for n in places]
    return {
        "type": "scatter",
        "name": name,
        "x": [time_of(point) for point in points],
        "y": [value_of(front, point) / size for point in points],
        "customdata": places,
        "text": [
            f"<b>{escape(_point_text(front, question, point))}</b><br>"
            f"{escape(built_from(question, point))}"
            for point in points
        ],
        "hovertemplate": "%{text}<extra></extra>",
    }


def _layout(front: Front, question: Instance) -> dict[str, Any]:
    _, label = value_scale(front)
    axis = {
        "gridcolor": GRID,
        "zeroline": False,
        "linecolor": BOUND,
        "ticks": "outside",
        "automargin": True,
    }
    layout: dict[str, Any] = {
        "font": {"family": FONT, "size": 14, "color": INK},
        "margin": {"l": 20, "r": 16, "t": 48, "b": 20},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "hovermode": "closest",
        "hoverlabel": {
            "bgcolor": "#fff",
            "bordercolor": DOT,
            "font": {"color": INK, "family": FONT},
            "align": "left",
        },
        "paper_bgcolor": "#fff",
        "plot_bgcolor": "#fff",
        "xaxis": axis | {"title": {"text": time_label(question)}},
        "yaxis": axis | {"title": {"text": label}, "tickformat": ",~r"},
    }
    if (bound := _bound_inside(front, question)) is not None:
        shape = {"type": "line", "x0": bound, "x1": bound, "yref": "paper", "y0": 0, "y1": 1}
        note = {
            "text": f" bound {time_words(question, bound)}",
            "font": {"color": BOUND},
            "x": bound,
            "yref": "paper",
            "y": 0.98,
            "xanchor": "left",
            "yanchor": "top",
            "showarrow": False,
        }
        layout |= {
            "shapes": [shape | {"line": {"color": BOUND, "dash": "dash", "width": 1.5}}],
            "annotations": [note],
        }
    return layout
