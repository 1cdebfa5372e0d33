"""Who sends how much to whom as a picture of two panels: bytes, and the class most of them belong to."""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from coopt.instance.errors import InstanceError
from coopt.perf.mapping import Floats
from coopt.report import words
from coopt.report.pictures import COLOURS, plain_ticks, save_picture
from coopt.report.routing import COLLECTIVES
from coopt.traffic.summary import Cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

CLASS_COLOURS = dict(zip(("tp", "dp", "pp", "ep", "cp", "embedding"), (*COLOURS[:4], *COLOURS[5:7]), strict=True))
SILENT = "#f4f4f4"
PALEST = 0.12  # of the colour map, so that the least is seen beside what never talks
LINE = 130


def draw_heat_map(cells: Cells, title: str, path: str) -> None:
    """Write the picture.

    Raises
    ------
    InstanceError
        When nothing is sent, or the file cannot be written.
    """
    from matplotlib.figure import Figure

    if not cells.size_bytes.any():
        raise InstanceError("--heat-map: nothing is sent, needs a plan with traffic")
    figure = Figure(figsize=(14.2, 6.6), dpi=200, layout="constrained")
    left, right = figure.subplots(1, 2)
    figure.suptitle(fill(title, LINE), x=0.01, ha="left", fontsize=11, fontweight="bold")
    _bytes(figure, left, cells)
    _classes(right, cells)
    save_picture(figure, path)


def bytes_figure(cells: Cells) -> Figure:
    """The bytes alone, for narrow places."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4, 5.4), dpi=180, layout="constrained")
    _bytes(figure, figure.subplots(), cells, below=True)
    return figure


def classes_figure(cells: Cells) -> Figure:
    """The classes alone, for narrow places, named below."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4, 5.4), dpi=180, layout="constrained")
    _classes(figure.subplots(), cells, below=True)
    return figure


def _bytes(figure: Figure, axes: Axes, cells: Cells, *, below: bool = False) -> None:
    """The bytes of each cell, with the scale beside the picture or below it."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, LogNorm

    whole = cells.size_bytes.sum(axis=0)
    scale, unit = words.byte_scale(float(whole.max()))
    seen = np.ma.masked_equal(whole / scale, 0.0)
    least, most = float(seen.min()), float(seen.max())
    norm = LogNorm(least if least < most else most / 10, most)
    shades = ListedColormap(colormaps["viridis_r"](np.linspace(PALEST, 1.0, 256)))
    image = _image(axes, cells, seen, cmap=shades, norm=norm)
    place = "bottom" if below else "right"
    bar = figure.colorbar(image, ax=axes, location=place, shrink=0.86, pad=0.02, aspect=30)
    bar.set_label(f"{unit} an iteration, from row to column", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    plain_ticks(bar.ax.xaxis if below else bar.ax.yaxis, (float(norm.vmin or least), most))
    empty = words.percent(1 - np.count_nonzero(whole) / whole.size)
    axes.set_title(f"Bytes ({empty} of the cells empty)", loc="left", fontsize=10)
    _dress(axes, cells)


def _classes(axes: Axes, cells: Cells, *, below: bool = False) -> None:
    """The class with most bytes in each cell, named beside the picture or below it."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    silent = cells.size_bytes.sum(axis=0) == 0
    most = np.ma.masked_where(silent, cells.size_bytes.argmax(axis=0))
    colours = [CLASS_COLOURS[kind] for kind in cells.kinds]
    _image(axes, cells, most, cmap=ListedColormap(colours), vmin=-0.5, vmax=len(colours) - 0.5)
    totals = cells.size_bytes.sum(axis=(1, 2))
    order = np.argsort(-totals, kind="stable")
    named = [
        Patch(color=colours[k], label=f"{COLLECTIVES[cells.kinds[k]]}, {words.percent(totals[k] / totals.sum())}")
        for k in order
        if totals[k]
    ]
    axes.legend(
        handles=[*named, Patch(facecolor=SILENT, edgecolor="#bbbbbb", label="never talk")],
        loc="upper left", bbox_to_anchor=(0.0, -0.14) if below else (1.01, 1.0), frameon=False, fontsize=9,
        title="class, share of all bytes", title_fontsize=9, alignment="left", ncols=2 if below else 1,
    )  # fmt: skip
    axes.set_title("Class with most bytes", loc="left", fontsize=10)
    _dress(axes, cells)


def _image(axes: Axes, cells: Cells, values: Floats, **looks: Any) -> AxesImage:
    axes.set_facecolor(SILENT)
    edge = values.shape[0] * cells.per_cell
    ends = (-0.5, edge - 0.5, edge - 0.5, -0.5)
    return axes.imshow(values, extent=ends, interpolation="nearest", **looks)


def _dress(axes: Axes, cells: Cells) -> None:
    """What the axes count, and how much a cell holds."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    a_cell = "" if cells.per_cell == 1 else f" ({cells.per_cell} to a cell)"
    axes.set_xlabel(f"to {cells.end}{a_cell}", fontsize=9)
    axes.set_ylabel(f"from {cells.end}{a_cell}", fontsize=9)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 4, 5, 8, 10], integer=True))
        axis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:,.0f}"))
        axis.set_tick_params(labelsize=8)
    axes.spines[:].set_color("#bbbbbb")
