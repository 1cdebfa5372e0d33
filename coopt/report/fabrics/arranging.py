"""Rows of parts, of which some are left out, as drawings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from coopt.report.fabrics.drawing import Drawing, Frame, Line, Part

Key = tuple[str, int]
Place = tuple[float, float]

WIDTH, STOREY, HEIGHT = 27.0, 3.0, 0.95
WIDEST = {"gpu": 1.0, "hb": 2.6}  # of a part; a switch takes what its name needs
SWITCH = 3.9
FILLED = 0.88  # of the room a part has
APART = 1.8  # from a part to the next that is drawn, where some between them are not
UP = "up"
NAMES = {"hb": "HB {:,}", "gpu": "{:,}", "aggregation": "agg. {:,}"}
ROWS = {
    "hb": "HB domains", "gpu": "GPUs", "leaf": "leaves", "aggregation": "aggregation", "spine": "spines",
    "core": "cores",
}  # fmt: skip


def placed(rows: Sequence[Sequence[Key]]) -> dict[Key, Place]:
    """Every part in its row, evenly over the width, with room where some are not drawn."""
    places: dict[Key, Place] = {}
    for level, row in enumerate(rows):
        slots, pitch = _slots(row)
        places |= {key: ((slot + 0.5) * pitch, level * STOREY) for key, slot in zip(row, slots, strict=True)}
    return places


def joined(low: Place, high: Place, links: int, colour: str) -> Line:
    """Links from the top of a part to the bottom of one above it."""
    return Line(start=(low[0], low[1] + HEIGHT / 2), end=(high[0], high[1] - HEIGHT / 2), links=links, colour=colour)


def arranged(
    title: str,
    rows: Sequence[Sequence[Key]],
    lines: Sequence[Line],
    *,
    colours: Mapping[Key, str],
    names: Mapping[Key, str],
    frames: tuple[Frame, ...] = (),
) -> Drawing:
    """The drawing of these rows, from the lowest up; dots stand for parts that are left out."""
    places = placed(rows)
    parts = [part for row in rows for part in _row(row, places, colours, names)]
    return Drawing(
        title=title,
        parts=tuple(parts),
        frames=frames,
        lines=tuple(lines),
        legend={line.colour: line.colour for line in lines},
        rows=tuple((places[row[0]][1], ROWS[row[0][0]]) for row in rows),
    )


def _slots(row: Sequence[Key]) -> tuple[list[float], float]:
    """Where the parts of a row stand, in units of the pitch, and the pitch."""
    slots = [0.0]
    for (_, one), (_, other) in pairwise(row):
        slots.append(slots[-1] + (1.0 if other == one + 1 else APART))
    return slots, WIDTH / (slots[-1] + 1)


def _row(
    row: Sequence[Key], places: Mapping[Key, Place], colours: Mapping[Key, str], names: Mapping[Key, str]
) -> Iterator[Part]:
    pitch = _slots(row)[1]
    for key in row:
        kind, number = key
        look = {"hb": "domain", "gpu": "gpu"}.get(kind, "switch")
        yield Part(
            name=f"{kind}/{number}",
            kind=look,
            x=places[key][0],
            y=places[key][1],
            width=min(WIDEST.get(kind, SWITCH), FILLED * pitch),
            height=HEIGHT,
            label=names.get(key, NAMES.get(kind, kind + " {:,}").format(number)),
            colour="domain" if kind == "hb" else colours.get(key, UP),
        )
    for one, other in pairwise(row):
        if other[1] > one[1] + 1:
            x, y = (places[one][0] + places[other][0]) / 2, places[one][1]
            yield Part(
                name=f"after {one[0]}/{one[1]}", kind="gap", x=x, y=y, width=0.6, height=0.5, label="…", colour=UP
            )
