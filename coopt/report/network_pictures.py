"""Drawings as SVG with text that can be read aloud and searched."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from math import hypot

from coopt.report.network_drawings import Drawing, Frame, Shape, Stroke
from coopt.report.pictures import COLOURS

INK, PALE, EDGE = "#2b2b2b", "#f3f5f8", "#9aa3ad"
NAMED_COLOURS = {
    "up": "#5b6570",
    "domain": PALE,
    "gpu": "#6f7b87",
    "idle": "#c9ced4",
    "row": COLOURS[0],
    "column": COLOURS[5],
    "inside": "#8d979f",
    "between": COLOURS[2],
    "link": COLOURS[0],
}
RAILS = (*COLOURS[:4], COLOURS[5], COLOURS[6], COLOURS[8], COLOURS[9])
UNIT = 28.0  # pixels of a unit
LEFT, RIGHT, ABOVE, BELOW = 3.7, 0.5, 0.4, 0.4  # room around the parts, in units
MAX_DRAWN_LINKS = 4  # links that are drawn one by one; more get a number
SVG_APART = 0.11


def colour_of(name: str) -> str:
    """The colour of a rail or of what else a legend names."""
    return (
        NAMED_COLOURS[name] if name in NAMED_COLOURS else RAILS[int(name.split()[1]) % len(RAILS)]
    )


def svg(drawing: Drawing, name: str, description: str) -> str:
    """The drawing as one SVG element; `description` says in words what it shows, `name` is its id
    on the page.
    """
    left, low, right, high = _svg_bounds(drawing)
    width, height = (right - left) * UNIT, (high - low) * UNIT
    place = _Places(left, high)
    marks = [
        *(mark for frame in drawing.frames for mark in _svg_frame(frame, place)),
        *(mark for line in drawing.lines for mark in _svg_line(line, place)),
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


def _svg_bounds(drawing: Drawing) -> tuple[float, float, float, float]:
    xs = [
        edge
        for part in drawing.parts
        for edge in (part.x - part.width / 2, part.x + part.width / 2)
    ]
    ys = [y for part in drawing.parts for y in (part.y - part.height / 2, part.y + part.height / 2)]
    ys += [y for line in drawing.lines for y in (line.start[1], line.end[1])]
    xs += [x for frame in drawing.frames for x in (frame.x, frame.x + frame.width)]
    ys += [y for frame in drawing.frames for y in (frame.y - 0.6, frame.y + frame.height)]
    return min(xs) - LEFT, min(ys) - BELOW, max(xs) + RIGHT, max(ys) + ABOVE


def _svg_frame(frame: Frame, place: _Places) -> Iterator[str]:
    x, y = place(frame.x, frame.y + frame.height)
    dashes = ' stroke-dasharray="5 4"' if frame.kind == "pod" else ""
    fill = "none" if frame.kind == "pod" else PALE
    yield (
        f'<rect x="{x}" y="{y}" width="{frame.width * UNIT:.1f}" height="{frame.height * UNIT:.1f}"'
        f' rx="9" fill="{fill}" stroke="{EDGE}"{dashes}/>'
    )
    yield _text(frame.x + 0.2, frame.y - 0.4, frame.label, place, "start", "note")


def _svg_line(line: Stroke, place: _Places) -> Iterator[str]:
    strokes = line.links if line.links <= MAX_DRAWN_LINKS else 1
    width = 1.3 if line.links <= MAX_DRAWN_LINKS else 2.2
    (from_x, from_y), (end_x, end_y) = line.start, line.end
    length = hypot(end_x - from_x, end_y - from_y)
    across, along = (from_y - end_y) / length, (end_x - from_x) / length
    for number in range(strokes):
        off = (number - (strokes - 1) / 2) * SVG_APART
        x, y = place(from_x + across * off, from_y + along * off)
        to_x, to_y = place(end_x + across * off, end_y + along * off)
        look = f'stroke="{colour_of(line.colour)}" stroke-width="{width}"'
        yield f'<line x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}" {look}/>'


def _number(line: Stroke, place: _Places) -> Iterator[str]:
    """How many links a thick line stands for, a third of the way up, where fans of lines are
    apart.
    """
    if line.links > MAX_DRAWN_LINKS:
        x, y = (start + (end - start) / 3 for start, end in zip(line.start, line.end, strict=True))
        yield _text(x, y, f"{line.links:,}", place, "middle", "links")


def _part(part: Shape, place: _Places) -> Iterator[str]:
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
        yield (
            f'<rect x="{x}" y="{y}" {size} rx="5" fill="{fill}" stroke="{colour}"'
            f' stroke-width="{stroke}"/>'
        )
    yield _text(part.x, part.y, part.label, place, "middle", "part")


def _text(x: float, y: float, text: str, place: _Places, anchor: str, look: str) -> str:
    left, top = place(x, y)
    return (
        f'<text class="{look}" x="{left}" y="{top}" text-anchor="{anchor}"'
        f' dominant-baseline="central" fill="{INK}">{escape(text)}</text>'
    )
