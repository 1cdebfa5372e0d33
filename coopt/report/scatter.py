"""Predicted against measured iteration times as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from coopt.instance.errors import InstanceError
from coopt.report import words
from coopt.validation.comparison import Comparison, RowResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Petroff's ten colours (arXiv 2107.02270), which colour-blind readers tell apart
COLOURS = (
    "#3f90da", "#ffa90e", "#bd1f01", "#832db6", "#94a4a2", "#e76300", "#a96b59", "#717581", "#b9ac70", "#92dadd",
)  # fmt: skip
MARKERS = "os^Dv"
BAND = 0.10
FORMATS = (".png", ".pdf", ".svg")
INSTALL = "pip install 'coopt[report]'"


def check_picture(path: str) -> None:
    """Refuse a picture that cannot be made, before the work is done.

    Raises
    ------
    InstanceError
        When matplotlib is not installed or the format is not known.
    """
    if find_spec("matplotlib") is None:
        raise InstanceError(f"--plot: matplotlib is not installed, needs `{INSTALL}`")
    if Path(path).suffix.lower() not in FORMATS:
        raise InstanceError(f"{path}: format of the picture not known, needs a name that ends in {', '.join(FORMATS)}")


def draw(found: Comparison, path: str) -> None:
    """Write the picture: one dot a row on logarithmic axes, colours by source, a band of 10%."""
    from matplotlib.figure import Figure

    done = [row for row in found.rows if row.measured_s is not None and row.predicted_s is not None]
    figure = Figure(figsize=(7.4, 5.6), dpi=160, layout="constrained")
    axes = figure.add_subplot()
    ends = _ends(done)
    axes.fill_between(
        ends, [(1 - BAND) * x for x in ends], [(1 + BAND) * x for x in ends], color="#d9d9d9", lw=0, zorder=0,
        label=f"within {100 * BAND:.0f}%",
    )  # fmt: skip
    axes.plot(ends, ends, color="#7f7f7f", lw=0.8, zorder=1)
    for place, group in enumerate(found.groups):
        _dots(axes, [row for row in done if row.group == group.name], place, f"{group.name} ({group.n})")
    _dress(axes, ends)
    if found.overall is not None:
        off = words.percent(found.overall.median_abs_error)
        axes.set_title(f"{words.counted(len(done), 'published run')}, median error {off}", loc="left", fontsize=10)
    try:
        figure.savefig(path)
    except OSError as error:
        raise InstanceError(f"{path}: cannot be written ({error.strerror}), needs a place for a file") from None


def _ends(done: Sequence[RowResult]) -> tuple[float, float]:
    times = [time for row in done for time in (row.measured_s, row.predicted_s) if time is not None]
    return (min(times) / 1.3, max(times) * 1.3) if times else (1.0, 10.0)


def _dots(axes: Axes, rows: Sequence[RowResult], place: int, label: str) -> None:
    axes.scatter(
        [row.measured_s or 0.0 for row in rows], [row.predicted_s or 0.0 for row in rows],
        s=22, alpha=0.75, lw=0.4, edgecolors="white", zorder=2, label=label,
        color=COLOURS[place % len(COLOURS)], marker=MARKERS[place % len(MARKERS)],
    )  # fmt: skip


def _dress(axes: Axes, ends: tuple[float, float]) -> None:
    """Scales, labels, grid and legend."""
    axes.set(
        xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal",
        xlabel="measured iteration time (s)", ylabel="predicted iteration time (s)",
    )  # fmt: skip
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, place: f"{value:g}")
    axes.grid(which="major", color="#e6e6e6", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=8, title="source (rows)")
