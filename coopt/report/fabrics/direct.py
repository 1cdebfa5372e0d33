"""Direct fabrics: HB domains as boxes of GPUs, on a circle, a grid, or a circle of groups."""

from __future__ import annotations

from collections.abc import Iterator
from math import cos, hypot, pi, sin
from typing import Any

from coopt.network.direct.wires import domains_of, grid_of
from coopt.report.fabrics.drawing import Drawing, Frame, Line, Part

Graph = Any  # networkx is untyped; of `coopt.network.direct.shapes.fabric`
Place = tuple[float, float]

BOX, PITCH = 1.5, 3.6
GPUS = ((-1, 1), (1, 1), (-1, -1), (1, -1))  # a box shows four, in quarters
MEMBERS = 2.5  # from one domain of a group to the next
CLEAR = 1.15  # from the middle of a domain to a link that passes it
BENDS = {1: 0.0, 2: CLEAR, 3: 1.65}
ROW, COLUMN, INSIDE, BETWEEN, ANY = "row", "column", "inside", "between", "link"
NAMES = {ROW: "link along a row", COLUMN: "link along a column", INSIDE: "link inside a group",
         BETWEEN: "link between groups", ANY: "link between HB domains"}  # fmt: skip


def direct_drawing(graph: Graph, title: str) -> Drawing:
    """The drawing of a fabric without switches: flat grids as grids, groups as groups, others on a circle."""
    names, shape = domains_of(graph), grid_of(graph)
    grouped = shape is None and all("." in name for name in names)
    if shape is not None and len(shape) == 2:
        places = _grid(names, shape)
    else:
        places = _groups(names) if grouped else _circle(names)
    lines = tuple(_line(graph, places, one, other) for one, other in graph.edges)
    return Drawing(
        title=title,
        parts=tuple(part for name in names for part in _domain(name, places[name])),
        frames=tuple(_frames(places)) if grouped else (),
        lines=lines,
        legend={colour: NAMES[colour] for colour in NAMES if any(line.colour == colour for line in lines)},
    )


def _grid(names: list[str], shape: tuple[int, ...]) -> dict[str, Place]:
    columns = shape[1]
    return {name: (i % columns * PITCH, -(i // columns) * PITCH) for i, name in enumerate(names)}


def _circle(names: list[str], *, around: Place = (0.0, 0.0), pitch: float = 2.7, turn: float = 0.0) -> dict[str, Place]:
    """Clockwise from the top, or from `turn` (radians); neighbours are `pitch` apart."""
    radius = pitch / (2 * sin(pi / len(names))) if len(names) > 1 else 0.0
    angles = [pi / 2 - turn - 2 * pi * i / len(names) for i in range(len(names))]
    return {
        name: (around[0] + radius * cos(a), around[1] + radius * sin(a)) for name, a in zip(names, angles, strict=True)
    }


def _members(names: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(name.split(".")[0], []).append(name)
    return found


def _groups(names: list[str]) -> dict[str, Place]:
    """Groups on a large circle, their members on small ones, so that links to the next group start beside it."""
    groups = _members(names)
    centres = _circle(list(groups), pitch=2.3 * max(map(_reach, groups.values())))
    found: dict[str, Place] = {}
    for number, (group, members) in enumerate(groups.items()):
        turn = 2 * pi * number / len(groups) + pi / len(members)
        found |= _circle(members, around=centres[group], pitch=MEMBERS, turn=turn)
    return found


def _reach(members: list[str]) -> float:
    """Radius of the disc around a group."""
    return (MEMBERS / (2 * sin(pi / len(members))) if len(members) > 1 else 0.0) + 0.85 * BOX


def _frames(places: dict[str, Place]) -> Iterator[Frame]:
    for group, members in _members(list(places)).items():
        x, y = (sum(places[name][axis] for name in members) / len(members) for axis in (0, 1))
        reach = _reach(members)
        yield Frame(
            x=x - reach, y=y - reach, width=2 * reach, height=2 * reach, label=f"group {group[1:]}", kind="group"
        )


def _domain(name: str, place: Place) -> Iterator[Part]:
    x, y = place
    yield Part(
        name=name, kind="domain", x=x, y=y, width=BOX, height=BOX, label=name[1:].replace(".", ","), colour="domain"
    )
    for number, (right, up) in enumerate(GPUS):
        yield Part(
            name=f"{name}/{number}", kind="gpu", x=x + right * BOX / 3.4, y=y + up * BOX / 3.4, width=0.3 * BOX,
            height=0.3 * BOX, label="", colour="gpu",
        )  # fmt: skip


def _line(graph: Graph, places: dict[str, Place], one: str, other: str) -> Line:
    (x, y), (to_x, to_y) = places[one], places[other]
    colour, bend = ANY, 0.0
    shape = grid_of(graph)
    if shape is not None and len(shape) == 2:
        colour = ROW if y == to_y else COLUMN
        span = round(hypot(to_x - x, to_y - y) / PITCH)
        bend = BENDS.get(span, 0.5 * span)
        if (x, -y) > (to_x, -to_y):
            x, y, to_x, to_y = to_x, to_y, x, y
        bend = bend if colour == ROW else -bend
    elif shape is None and "." in one:
        colour = INSIDE if one.split(".")[0] == other.split(".")[0] else BETWEEN
    else:
        bend = _inwards(places, one, other)
    return Line(start=(x, y), end=(to_x, to_y), links=graph.edges[one, other]["links"], colour=colour, bend=bend)


def _inwards(places: dict[str, Place], one: str, other: str) -> float:
    """The bend that keeps a link of a circle away from the domains it passes."""
    names = list(places)
    steps = (names.index(other) - names.index(one)) % len(names)
    if steps in (1, len(names) - 1):
        return 0.0
    radius = hypot(*places[one])
    depth = radius * (1 - cos(pi * steps / len(names)))
    clockwise = steps <= len(names) / 2
    nearest = min(depth, 2 * radius - depth)
    return max(0.0, CLEAR - nearest) * (-1 if clockwise else 1)
