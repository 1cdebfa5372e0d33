"""Pictures as files, each written whole or not at all: predicted against measured times, and who
sends to whom.
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from coopt.instance.texts import InstanceError, unwritten, write_bytes
from coopt.report import words
from coopt.report.traffic import COLLECTIVES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

    from coopt.perf.mapping import Floats
    from coopt.traffic.summary import Cells
    from coopt.validation.comparison import Comparison


# Petroff's ten colours (arXiv 2107.02270), which colour-blind readers tell apart
COLOURS = (
    "#3f90da",
    "#ffa90e",
    "#bd1f01",
    "#832db6",
    "#94a4a2",
    "#e76300",
    "#a96b59",
    "#717581",
    "#b9ac70",
    "#92dadd",
)
FORMATS = (".png", ".pdf", ".svg")
FEW_DECADES = 10.0**2.5
INSTALL = "pip install 'coopt[report]'"
NOBODY: dict[
    str, dict[str, str | None]
] = {  # what says when and by which release a picture was drawn
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    ".svg": {"Date": None, "Creator": "coopt"},
}
MARKERS = "os^Dv"
SHADE, RIGHT = "#d9d9d9", "#7f7f7f"
BAND = 0.10
CLASS_COLOURS = dict(
    zip(("tp", "dp", "pp", "ep", "cp", "embedding"), (*COLOURS[:4], *COLOURS[5:7]), strict=True)
)
SILENT = "#f4f4f4"
PALEST = 0.12  # of the colour map, so that the least is seen beside what never talks
LINE = 130


def check_picture(path: str, option: str) -> None:
    """Refuse a picture that cannot be made, before the work is done.

    Raises
    ------
    InstanceError
        When matplotlib is not installed or the format is not known.
    """
    if find_spec("matplotlib") is None:
        raise InstanceError(f"{option}: matplotlib is not installed, needs `{INSTALL}`")
    if Path(path).suffix.lower() not in FORMATS:
        raise InstanceError(
            f"{path}: unknown picture format, needs a name that ends in"
            f" {words.alternatives(FORMATS)}"
        )


def save_picture(figure: Figure, path: str | Path, about: str = "") -> None:
    """Write a picture that is the same each time it is drawn; `about` goes into the data of an
    SVG.
    """
    write_bytes(path, picture(figure, Path(path).suffix.lower(), about))


def made_folder(folder: str | Path) -> Path:
    """A folder to write files into, which is made where it is not there yet.

    Raises
    ------
    InstanceError
        When it cannot be made.
    """
    place = Path(folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritten(folder, error, "another place for the folder", verb="created") from None
    return place


def picture(figure: Figure, ending: str, about: str = "") -> bytes:
    """The content of a picture file of one of the formats.

    A canvas lays a figure out as it draws it, where `savefig` would draw it once more to lay it
    out.
    """
    from matplotlib import rc_context
    from matplotlib.backend_bases import get_registered_canvas_class

    data = NOBODY[ending] | ({"Description": about} if about and ending == ".svg" else {})
    kind, content = ending[1:], BytesIO()
    with rc_context({"svg.hashsalt": "coopt", "svg.fonttype": "path"}):
        getattr(get_registered_canvas_class(kind)(figure), f"print_{kind}")(content, metadata=data)
    return content.getvalue()


def plain_ticks(axis: Axis, ends: tuple[float, float]) -> None:
    """Ticks as plain numbers: decades, with 2 and 5 between them where there are few."""
    from matplotlib.ticker import LogLocator, NullFormatter

    is_short = ends[1] / ends[0] < FEW_DECADES
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if is_short else (1.0,)))
    axis.set_major_formatter(lambda value, place: np.format_float_positional(value, trim="-"))
    axis.set_minor_formatter(NullFormatter())


def plain_axes(axes: Axes) -> None:
    """A pale grid behind, and no frame above and to the right."""
    axes.grid(which="major", color="#e6e6e6", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def draw_scatter(comparison: Comparison, path: str) -> None:
    """Write the picture: times against each other, and their ratio over the measured time.

    Raises
    ------
    InstanceError
        When no row was predicted, or the file cannot be written.
    """
    from matplotlib.figure import Figure

    rows = [
        row for row in comparison.rows if row.measured_s is not None and row.predicted_s is not None
    ]
    if not rows or comparison.overall is None:
        reasons = Counter(row.why for row in comparison.rows)
        ((reason, times),) = reasons.most_common(1)
        count = words.counted(len(comparison.rows), "row")
        why = reason if len(reasons) == 1 else f"{words.count(times)} of them: {reason}"
        raise InstanceError(
            f"--plot: none of {count} could be predicted ({why}), needs at least one predicted row"
        )
    figure = Figure(figsize=(11.6, 5.2), dpi=160, layout="constrained")
    times, ratios = figure.subplots(1, 2)
    taken_s = [time for row in rows for time in (row.measured_s, row.predicted_s) if time]
    _frames(times, ratios, (min(taken_s) / 1.3, max(taken_s) * 1.3))
    for place, group in enumerate(comparison.groups):
        group_rows = [row for row in rows if row.group == group.name]
        measured, predicted = (
            [getattr(row, name) for row in group_rows] for name in ("measured_s", "predicted_s")
        )
        _dots(times, measured, predicted, place, f"{group.name} ({group.n})")
        _dots(ratios, measured, [p / m for p, m in zip(predicted, measured, strict=True)], place)
    error_text = words.percent(comparison.overall.median_abs_error)
    times.set_title(
        f"{words.counted(len(rows), 'run')}, median error {error_text}", loc="left", fontsize=10
    )
    figure.legend(loc="outside right upper", frameon=False, fontsize=8, title="source (rows)")
    save_picture(figure, path)


def _frames(times: Axes, ratios: Axes, ends: tuple[float, float]) -> None:
    """Predicted over measured times, both logarithmic, and their ratio over the measured time, so
    that small errors show as well as large ones; each with a band of 10% around what is right.
    """
    low, high = ([share * x for x in ends] for share in (1 - BAND, 1 + BAND))
    label = f"within {100 * BAND:.0f}%"
    times.fill_between(ends, low, high, color=SHADE, lw=0, zorder=0, label=label)
    times.plot(ends, ends, color=RIGHT, lw=0.8, zorder=1)
    times.set(yscale="log", ylim=ends, aspect="equal", ylabel="predicted iteration time (s)")
    plain_ticks(times.yaxis, ends)
    ratios.axhspan(1 - BAND, 1 + BAND, color=SHADE, lw=0, zorder=0)
    ratios.axhline(1.0, color=RIGHT, lw=0.8, zorder=1)
    ratios.set(ylabel="predicted / measured")
    for axes in (times, ratios):
        axes.set(xscale="log", xlim=ends, xlabel="measured iteration time (s)")
        plain_ticks(axes.xaxis, ends)
        plain_axes(axes)


def _dots(
    axes: Axes, x: Sequence[float], y: Sequence[float], place: int, label: str | None = None
) -> None:
    axes.scatter(
        x,
        y,
        s=22,
        alpha=0.75,
        lw=0.4,
        edgecolors="white",
        zorder=2,
        label=label,
        color=COLOURS[place % len(COLOURS)],
        marker=MARKERS[place % len(MARKERS)],
    )


def draw_heat_map(cells: Cells, title: str, path: str) -> None:
    """Write the picture.

    Raises
    ------
    InstanceError
        When nothing is sent, or the file cannot be written.
    """
    from matplotlib.figure import Figure

    if not cells.size_bytes.any():
        raise InstanceError(
            "--heat-map: the plan sends no traffic between GPUs, needs a plan with traffic"
        )
    figure = Figure(figsize=(14.2, 6.6), dpi=200, layout="constrained")
    bytes_axes, class_axes = figure.subplots(1, 2)
    figure.suptitle(fill(title, LINE), x=0.01, ha="left", fontsize=11, fontweight="bold")
    _bytes(bytes_axes, cells)
    _classes(class_axes, cells)
    save_picture(figure, path)


def narrow_pngs(cells: Cells) -> tuple[str, str]:
    """The bytes alone and the classes alone, for narrow places: PNG in base64, named below."""
    from matplotlib.figure import Figure

    pngs = []
    for draw in (_bytes, _classes):
        figure = Figure(figsize=(5.4, 5.4), dpi=180, layout="constrained")
        draw(figure.subplots(), cells, below=True)
        pngs.append(b64encode(picture(figure, ".png")).decode("ascii"))
    return pngs[0], pngs[1]


def _bytes(axes: Axes, cells: Cells, *, below: bool = False) -> None:
    """The bytes of each cell, with the scale beside the picture or below it."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap, LogNorm

    total_bytes = cells.size_bytes.sum(axis=0)
    scale, unit = words.byte_scale(float(total_bytes.max()))
    seen = np.ma.masked_equal(total_bytes / scale, 0.0)
    min_bytes, max_bytes = float(seen.min()), float(seen.max())
    norm = LogNorm(min_bytes if min_bytes < max_bytes else max_bytes / 10, max_bytes)
    shades = ListedColormap(colormaps["viridis_r"](np.linspace(PALEST, 1.0, 256)))
    image = _image(axes, cells, seen, cmap=shades, norm=norm)
    place = "bottom" if below else "right"
    bar = axes.figure.colorbar(image, ax=axes, location=place, shrink=0.86, pad=0.02, aspect=30)
    bar.set_label(f"{unit} an iteration, from row to column", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    plain_ticks(bar.ax.xaxis if below else bar.ax.yaxis, (float(norm.vmin or min_bytes), max_bytes))
    silent_share = words.percent(1 - np.count_nonzero(total_bytes) / total_bytes.size)
    axes.set_title(f"Bytes sent ({silent_share} of the cells are empty)", loc="left", fontsize=10)


def _classes(axes: Axes, cells: Cells, *, below: bool = False) -> None:
    """The class with most bytes in each cell, named beside the picture or below it."""
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Patch

    silent = cells.size_bytes.sum(axis=0) == 0
    largest_class = np.ma.masked_where(silent, cells.size_bytes.argmax(axis=0))
    colours = [CLASS_COLOURS[kind] for kind in cells.kinds]
    _image(
        axes, cells, largest_class, cmap=ListedColormap(colours), vmin=-0.5, vmax=len(colours) - 0.5
    )
    totals = cells.size_bytes.sum(axis=(1, 2))
    order = np.argsort(-totals, kind="stable")
    classes = [
        Patch(
            color=colours[k],
            label=f"{COLLECTIVES[cells.kinds[k]]}, {words.percent(totals[k] / totals.sum())}",
        )
        for k in order
        if totals[k]
    ]
    axes.legend(
        handles=[*classes, Patch(facecolor=SILENT, edgecolor="#bbbbbb", label="never communicate")],
        loc="upper left",
        bbox_to_anchor=(0.0, -0.14) if below else (1.01, 1.0),
        frameon=False,
        fontsize=9,
        title="traffic class, share of all bytes",
        title_fontsize=9,
        alignment="left",
        ncols=2 if below else 1,
    )
    axes.set_title("Traffic class with the most bytes", loc="left", fontsize=10)


def _image(axes: Axes, cells: Cells, values: Floats, **looks: Any) -> AxesImage:
    """The cells, with what the axes count and how much a cell holds."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    a_cell = "" if cells.per_cell == 1 else f" ({cells.per_cell} to a cell)"
    axes.set_xlabel(f"to {cells.end}{a_cell}", fontsize=9)
    axes.set_ylabel(f"from {cells.end}{a_cell}", fontsize=9)
    axes.set_facecolor(SILENT)
    axes.spines[:].set_color("#bbbbbb")
    edge = values.shape[0] * cells.per_cell
    ends = (-0.5, edge - 0.5, edge - 0.5, -0.5)
    image = axes.imshow(values, extent=ends, interpolation="nearest", **looks)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 4, 5, 8, 10], integer=True))
        axis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:,.0f}"))
        axis.set_tick_params(labelsize=8)
    return image
