"""Drawings as SVG with text that can be read aloud and searched, to stand inside a page."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import hypot

from coopt.report.fabrics.drawing import Drawing, Frame, Line, Part
from coopt.report.fabrics.painting import EDGE, INK, PALE, colour_of

UNIT = 28.0  # pixels of a unit
LEFT, RIGHT, ABOVE, BELOW = 3.7, 0.5, 0.4, 0.4  # room around the parts, in units
FEW = 4  # links that are drawn one by one; more get a number
APART = 0.11


def svg(drawing: Drawing, name: str, description: str) -> str:
    """The drawing as one SVG element; `description` says in words what it shows, `name` is its id on the page."""
    left, low, right, high = _bounds(drawing)
    width, height = (right - left) * UNIT, (high - low) * UNIT
    place = _Places(left, high)
    marks = [
        *(mark for frame in drawing.frames for mark in _frame(frame, place)),
        *(mark for line in drawing.lines for mark in _line(line, place)),
        *(mark for line in drawing.lines for mark in _number(line, place)),
        *(mark for part in drawing.parts for mark in _part(part, place)),
        *(_text(left + 0.1, y, label, place, "start", "row") for y, label in drawing.rows),
    ]
    head = (
        f'<svg id="{name}" class="drawing" role="img" aria-labelledby="{name}-says" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'xmlns="http://www.w3.org/2000/svg"><title id="{name}-says">{escape(description)}</title>'
    )
    return "\n".join([head, *marks, "</svg>"])


class _Places:
    """From units, y upwards, to pixels, y downwards."""

    def __init__(self, left: float, high: float) -> None:
        self.left, self.high = left, high

    def __call__(self, x: float, y: float) -> tuple[str, str]:
        return f"{(x - self.left) * UNIT:.1f}", f"{(self.high - y) * UNIT:.1f}"


def _bounds(drawing: Drawing) -> tuple[float, float, float, float]:
    xs = [edge for part in drawing.parts for edge in (part.x - part.width / 2, part.x + part.width / 2)]
    ys = [y for part in drawing.parts for y in (part.y - part.height / 2, part.y + part.height / 2)]
    ys += [y for line in drawing.lines for y in (line.start[1], line.end[1])]
    xs += [x for frame in drawing.frames for x in (frame.x, frame.x + frame.width)]
    ys += [y for frame in drawing.frames for y in (frame.y - 0.6, frame.y + frame.height)]
    return min(xs) - LEFT, min(ys) - BELOW, max(xs) + RIGHT, max(ys) + ABOVE


def _frame(frame: Frame, place: _Places) -> Iterator[str]:
    x, y = place(frame.x, frame.y + frame.height)
    dashes = ' stroke-dasharray="5 4"' if frame.kind == "pod" else ""
    fill = "none" if frame.kind == "pod" else PALE
    yield (
        f'<rect x="{x}" y="{y}" width="{frame.width * UNIT:.1f}" height="{frame.height * UNIT:.1f}" rx="9" '
        f'fill="{fill}" stroke="{EDGE}"{dashes}/>'
    )
    yield _text(frame.x + 0.2, frame.y - 0.4, frame.label, place, "start", "note")


def _line(line: Line, place: _Places) -> Iterator[str]:
    drawn = line.links if line.links <= FEW else 1
    width = 1.3 if line.links <= FEW else 2.2
    (from_x, from_y), (end_x, end_y) = line.start, line.end
    length = hypot(end_x - from_x, end_y - from_y)
    across, along = (from_y - end_y) / length, (end_x - from_x) / length
    for number in range(drawn):
        off = (number - (drawn - 1) / 2) * APART
        x, y = place(from_x + across * off, from_y + along * off)
        to_x, to_y = place(end_x + across * off, end_y + along * off)
        look = f'stroke="{colour_of(line.colour)}" stroke-width="{width}"'
        yield f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" {look}/>'


def _number(line: Line, place: _Places) -> Iterator[str]:
    """How many links a thick line stands for, a third of the way up, where fans of lines are apart."""
    if line.links > FEW:
        x, y = (start + (end - start) / 3 for start, end in zip(line.start, line.end, strict=True))
        yield _text(x, y, f"{line.links:,}", place, "middle", "links")


def _part(part: Part, place: _Places) -> Iterator[str]:
    if part.kind == "gap":
        yield _text(part.x, part.y, part.label, place, "middle", "gap")
        return
    colour = EDGE if part.kind == "domain" or part.colour == "idle" else colour_of(part.colour)
    if part.kind == "gpu":
        x, y = place(part.x, part.y)
        fill = PALE if part.colour == "idle" else "#ffffff"
        look = f'fill="{fill}" stroke="{colour}" stroke-width="3"'
        yield f'<circle cx="{x}" cy="{y}" r="{part.width * UNIT / 2:.1f}" {look}/>'
    else:
        x, y = place(part.x - part.width / 2, part.y + part.height / 2)
        fill, stroke = (PALE, 1.2) if part.kind == "domain" else ("#ffffff", 2.2)
        size = f'width="{part.width * UNIT:.1f}" height="{part.height * UNIT:.1f}"'
        yield f'<rect x="{x}" y="{y}" {size} rx="5" fill="{fill}" stroke="{colour}" stroke-width="{stroke}"/>'
    yield _text(part.x, part.y, part.label, place, "middle", "part")


def _text(x: float, y: float, text: str, place: _Places, anchor: str, look: str) -> str:
    left, top = place(x, y)
    return (
        f'<text class="{look}" x="{left}" y="{top}" text-anchor="{anchor}" dominant-baseline="central" '
        f'fill="{INK}">{escape(text)}</text>'
    )
