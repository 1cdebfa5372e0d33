"""Drawings of networks painted by matplotlib, for the pictures of docs/network.md."""

from __future__ import annotations

import json
from dataclasses import asdict
from hashlib import sha256
from math import hypot
from pathlib import Path
from typing import TYPE_CHECKING

from coopt.report.network_drawings import Drawing, Frame, Shape, Stroke
from coopt.report.network_pictures import EDGE, INK, NAMED_COLOURS, PALE, colour_of
from coopt.report.pictures import save_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INCH = 0.36  # of a unit  # of a unit
APART = 0.13  # of parallel links  # of parallel links
DIGITS = 3  # of a place that count
NARROWEST = 16.0  # so that the legend fits  # so that the legend fits


def paint(drawing: Drawing, path: str | Path) -> None:
    """Write the picture; an SVG carries the fingerprint of the drawing.

    Raises
    ------
    InstanceError
        When the file cannot be written.
    """
    from matplotlib.figure import Figure

    left, low, right, high = _bounds(drawing)
    figure = Figure(figsize=((right - left) * INCH, (high - low) * INCH), dpi=150)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(left, right), ylim=(low, high), aspect="equal")
    axes.axis("off")
    for frame in drawing.frames:
        _frame(axes, frame)
    for line in drawing.lines:
        _line(axes, line)
    _gpus(axes, [part for part in drawing.parts if part.kind == "gpu"])
    for part in drawing.parts:
        if part.kind != "gpu":
            _box(axes, part)
        if part.label:
            _label(axes, part)
    for y, name in drawing.rows:
        axes.text(
            left + 0.2, y, name, ha="left", va="center", fontsize=8.5, color=INK, fontstyle="italic"
        )
    axes.text(
        left + 0.2,
        high - 0.25,
        drawing.title,
        ha="left",
        va="top",
        fontsize=11,
        fontweight="bold",
        color=INK,
    )
    _legend(axes, drawing, left, low)
    save_picture(figure, path, about=fingerprint(drawing))


def _bounds(drawing: Drawing) -> tuple[float, float, float, float]:
    """Left, low, right, high, with room for the title, the names of rows and the legend."""
    boxes = [
        *(
            (p.x - p.width / 2, p.y - p.height / 2, p.x + p.width / 2, p.y + p.height / 2)
            for p in drawing.parts
        ),
        *((f.x, f.y - 0.5, f.x + f.width, f.y + f.height) for f in drawing.frames),
        *(
            (min(x, x - up), min(y, y + up), x, max(y, y + up))
            for x, y, up in map(_bulge, drawing.lines)
        ),
    ]
    left, low, right, high = (
        min(b[0] for b in boxes),
        min(b[1] for b in boxes),
        max(b[2] for b in boxes),
        max(b[3] for b in boxes),
    )
    names = 2.9 if drawing.rows else 0.5
    # A legend has a width of its own, whatever the drawing needs.
    side = max(0.0, (NARROWEST - (right - left)) / 2 - 0.5)
    return left - names - side, low - 1.5, right + 0.5 + side, high + 1.5


def _bulge(line: Stroke) -> tuple[float, float, float]:
    return (line.start[0] + line.end[0]) / 2, (line.start[1] + line.end[1]) / 2, abs(line.bend)


def _frame(axes: Axes, frame: Frame) -> None:
    from matplotlib.patches import Circle, FancyBboxPatch, Patch

    pod, centre = frame.kind == "pod", (frame.x + frame.width / 2, frame.y + frame.height / 2)
    shape: Patch = Circle(centre, frame.width / 2)
    if frame.kind != "group":
        corner = (frame.x + 0.15, frame.y + 0.15)
        shape = FancyBboxPatch(
            corner,
            frame.width - 0.3,
            frame.height - 0.3,
            boxstyle="round,pad=0.15,rounding_size=0.25",
        )
    look = {"facecolor": "none" if pod else PALE, "linestyle": (0, (4, 3)) if pod else "-"}
    shape.set(edgecolor=EDGE, linewidth=0.9, zorder=0, clip_on=False, **look)
    axes.add_patch(shape)
    y = frame.y + frame.height - 1.18 if pod else frame.y - 0.12
    axes.text(
        frame.x + frame.width / 2,
        y,
        frame.label,
        ha="center",
        va="top",
        fontsize=7.5,
        color=INK,
        zorder=5,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85},
    )


def _line(axes: Axes, line: Stroke) -> None:
    """Each of the parallel links beside the other."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    (x, y), (to_x, to_y) = line.start, line.end
    length = hypot(to_x - x, to_y - y) or 1.0
    across, along = -(to_y - y) / length, (to_x - x) / length
    for number in range(line.links):
        shift, push = (number - (line.links - 1) / 2) * APART, 4 / 3 * line.bend
        places = [
            (
                x + (to_x - x) * part + across * (shift + out),
                y + (to_y - y) * part + along * (shift + out),
            )
            for part, out in ((0.0, 0.0), (0.15, push), (0.85, push), (1.0, 0.0))
        ]
        curve = Curve([places[0], places[3]])
        if line.bend:
            curve = Curve(places, [Curve.MOVETO, Curve.CURVE4, Curve.CURVE4, Curve.CURVE4])
        look = {
            "edgecolor": colour_of(line.colour),
            "linewidth": 1.1,
            "alpha": 0.85,
            "zorder": 1,
            "clip_on": False,
        }
        axes.add_patch(PathPatch(curve, facecolor="none", **look))


def _gpus(axes: Axes, gpus: list[Shape]) -> None:
    """All discs of one colour and size at once, which keeps files small."""
    for colour, width in dict.fromkeys((part.colour, part.width) for part in gpus):
        places = [(part.x, part.y) for part in gpus if (part.colour, part.width) == (colour, width)]
        axes.plot(
            *zip(*places, strict=True),
            ls="",
            marker="o",
            ms=width * INCH * 72,
            mfc=colour_of(colour),
            mec="white",
            mew=0.7,
            zorder=3,
            clip_on=False,
        )


def _box(axes: Axes, part: Shape) -> None:
    from matplotlib.patches import FancyBboxPatch

    corner = (part.x - part.width / 2 + 0.1, part.y - part.height / 2 + 0.1)
    edge = EDGE if part.kind == "domain" else "white"
    axes.add_patch(
        FancyBboxPatch(
            corner,
            part.width - 0.2,
            part.height - 0.2,
            boxstyle="round,pad=0.1,rounding_size=0.14",
            facecolor=colour_of(part.colour),
            edgecolor=edge,
            linewidth=0.9,
            zorder=2,
            clip_on=False,
        )
    )


def _label(axes: Axes, part: Shape) -> None:
    dark = part.kind == "domain"
    axes.text(
        part.x,
        part.y,
        part.label,
        ha="center",
        va="center_baseline",
        fontsize=6.5 if dark else 7,
        color=INK if dark else "white",
        fontweight="bold",
        zorder=6,
    )


def _legend(axes: Axes, drawing: Drawing, left: float, low: float) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    switched = any(part.kind == "switch" for part in drawing.parts)
    looks = [Patch(facecolor=PALE, edgecolor=EDGE, label="HB domain")]
    points = [
        Line2D([], [], marker="o", ls="", ms=6, mec="white", mfc=NAMED_COLOURS["gpu"], label="GPU"),
        *(
            [
                Line2D(
                    [],
                    [],
                    marker="s",
                    ls="",
                    ms=7,
                    mec="white",
                    mfc=NAMED_COLOURS["up"],
                    label="switch",
                )
            ]
            if switched
            else []
        ),
        *(
            Line2D([], [], color=colour_of(key), lw=2, label=label)
            for key, label in drawing.legend.items()
        ),
    ]
    axes.legend(
        handles=[*looks, *points],
        loc="lower left",
        bbox_to_anchor=(left + 0.05, low),
        frameon=False,
        fontsize=8,
        bbox_transform=axes.transData,
        ncols=9,
        handlelength=1.4,
        columnspacing=1.3,
        borderaxespad=0.2,
    )


def fingerprint(drawing: Drawing) -> str:
    """A hash of all of it: a picture that carries the same one shows the same."""
    # Rounded, so that the last bits of a sum on another machine make no other picture.
    table = json.dumps(_rounded(asdict(drawing)), sort_keys=True)
    return "sha256:" + sha256(table.encode("utf-8")).hexdigest()


def _rounded(part: object) -> object:
    if isinstance(part, float):
        return round(part, DIGITS) + 0.0
    if isinstance(part, dict):
        return {key: _rounded(value) for key, value in part.items()}
    return [_rounded(element) for element in part] if isinstance(part, list | tuple) else part
