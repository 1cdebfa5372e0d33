"""Predicted against measured iteration times as a picture of two panels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from coopt.instance.errors import InstanceError
from coopt.report import words
from coopt.report.pictures import COLOURS, plain_ticks, save_picture
from coopt.validation.comparison import Comparison, RowResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKERS = "os^Dv"
SHADE, RIGHT = "#d9d9d9", "#7f7f7f"
BAND = 0.10


def draw(found: Comparison, path: str) -> None:
    """Write the picture: times against each other, and their ratio over the measured time.

    Raises
    ------
    InstanceError
        When no row was predicted, or the file cannot be written.
    """
    from matplotlib.figure import Figure

    done = [row for row in found.rows if row.measured_s is not None and row.predicted_s is not None]
    if not done or found.overall is None:
        raise InstanceError(f"--plot: {_nothing(found)}, needs a row that can be predicted")
    figure = Figure(figsize=(11.6, 5.2), dpi=160, layout="constrained")
    times, ratios = figure.subplots(1, 2)
    ends = _ends(done)
    _times(times, ends)
    _ratios(ratios, ends)
    for place, group in enumerate(found.groups):
        rows = [row for row in done if row.group == group.name]
        measured, predicted = ([getattr(row, name) for row in rows] for name in ("measured_s", "predicted_s"))
        _dots(times, measured, predicted, place, f"{group.name} ({group.n})")
        _dots(ratios, measured, [p / m for p, m in zip(predicted, measured, strict=True)], place)
    off = words.percent(found.overall.median_abs_error)
    times.set_title(f"{words.counted(len(done), 'run')}, median error {off}", loc="left", fontsize=10)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8, title="source (rows)")
    save_picture(figure, path)


def _nothing(found: Comparison) -> str:
    """`none of 11 rows could be predicted (accelerator TPU7x is not in the catalog)`."""
    ((why, _),) = Counter(row.why for row in found.rows).most_common(1)
    return f"none of {words.counted(len(found.rows), 'row')} could be predicted ({why})"


def _ends(done: Sequence[RowResult]) -> tuple[float, float]:
    times = [time for row in done for time in (row.measured_s, row.predicted_s) if time is not None]
    return min(times) / 1.3, max(times) * 1.3


def _times(axes: Axes, ends: tuple[float, float]) -> None:
    """Predicted over measured times, both logarithmic, with a band of 10% around what is right."""
    axes.fill_between(
        ends, [(1 - BAND) * x for x in ends], [(1 + BAND) * x for x in ends], color=SHADE, lw=0, zorder=0,
        label=f"within {100 * BAND:.0f}%",
    )  # fmt: skip
    axes.plot(ends, ends, color=RIGHT, lw=0.8, zorder=1)
    axes.set(yscale="log", ylim=ends, aspect="equal", ylabel="predicted iteration time (s)")
    plain_ticks(axes.yaxis, ends)
    _dress(axes, ends)


def _ratios(axes: Axes, ends: tuple[float, float]) -> None:
    """Predicted over measured against the measured time, so that small errors show as well as large ones."""
    axes.axhspan(1 - BAND, 1 + BAND, color=SHADE, lw=0, zorder=0)
    axes.axhline(1.0, color=RIGHT, lw=0.8, zorder=1)
    axes.set(ylabel="predicted / measured")
    _dress(axes, ends)


def _dots(axes: Axes, x: Sequence[float], y: Sequence[float], place: int, label: str | None = None) -> None:
    axes.scatter(
        x, y, s=22, alpha=0.75, lw=0.4, edgecolors="white", zorder=2, label=label,
        color=COLOURS[place % len(COLOURS)], marker=MARKERS[place % len(MARKERS)],
    )  # fmt: skip


def _dress(axes: Axes, ends: tuple[float, float]) -> None:
    """Measured times below, a grid behind."""
    axes.set(xscale="log", xlim=ends, xlabel="measured iteration time (s)")
    plain_ticks(axes.xaxis, ends)
    axes.grid(which="major", color="#e6e6e6", lw=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
