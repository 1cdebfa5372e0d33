"""A front as a picture."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING

from coopt.instance.schema import Instance
from coopt.plan.front import Front
from coopt.report.fronts.measures import (
    bound_of,
    network,
    shown,
    time_label,
    time_of,
    time_words,
    value_of,
    value_scale,
)
from coopt.report.fronts.sentences import front_headline
from coopt.report.pictures import save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE, DOT, KNEE, BOUND = "#9db4cf", "#174f93", "#bd1f01", "#4c5866"
LINE_LENGTH = 98
ROOM = 0.65  # of the axis, beyond which a name goes to the left of its knee


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
    axes.scatter(x, y, s=20, color=DOT, zorder=3, label=shown(front))
    axes.margins(x=0.06, y=0.10)
    bound = bound_of(instance)
    if x and x[0] <= bound <= x[-1]:
        axes.axvline(bound, color=BOUND, lw=1, ls="--", zorder=1, label=f"bound, {time_words(instance, bound)}")
    bends = [point for point in front.points if point.knee]
    if bends:
        at = [time_of(point) for point in bends], [value_of(front, point) / size for point in bends]
        axes.scatter(*at, s=80, marker="D", facecolors="none", edgecolors=KNEE, linewidths=1.6, zorder=4, label="knee")
    for point in bends:
        time, late = time_of(point), time_of(point) > x[0] + ROOM * (x[-1] - x[0])
        axes.annotate(
            network(instance, point.best.design), (time, value_of(front, point) / size), xytext=(-4 if late else 9, 9),
            textcoords="offset points", ha="right" if late else "left", fontsize=8, color=KNEE, parse_math=False,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1},
        )  # fmt: skip
    if x:
        axes.legend(loc="upper right", frameon=False, fontsize=9)
