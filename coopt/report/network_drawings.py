"""Drawings of networks of any size: one plane, one HB domain, one pod; the first parts of a level
and the last.

Places are in units of the distance between two GPUs, y upwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from coopt.network.cabling import place_name
from coopt.network.family import Family, Ints
from coopt.network.graphs import plane_graph
from coopt.network.placing import leaf_numbers

Key = tuple[str, int]

WIDTH, STOREY, HEIGHT = 27.0, 3.0, 0.95
WIDEST = {"gpu": 1.0, "hb": 2.6}  # of a part; a switch takes what its name needs
SWITCH = 3.9
FILLED = 0.88  # of the room a part has
APART = 1.8  # from a part to the next that is drawn, where some between them are not
UP = "up"
NAMES = {"hb": "HB {:,}", "gpu": "{:,}", "aggregation": "agg. {:,}"}
ROWS = {
    "hb": "HB domains",
    "gpu": "GPUs",
    "leaf": "leaves",
    "aggregation": "aggregation",
    "spine": "spines",
    "core": "cores",
}
Graph = Any  # networkx is untyped
MAX_PARTS = 5  # parts of a level that are drawn; of more the first three and the last
MOST_GPUS, MOST_RACKS = 8, 20
ROW = 1.6  # from one row of racks to the next
STUB = 1.6  # how far links go up that lead out of the drawing


Link = tuple[Key, Key, int, str]
"""Links between two parts: their ends, how many there are, and their colour."""


def _drawing(
    title: str,
    rows: Sequence[Sequence[Key]],
    links: Iterable[Link],
    *,
    colours: Mapping[Key, str],
    names: Mapping[Key, str],
    frames: tuple[Frame, ...] = (),
    upwards: int = 0,
) -> Drawing:
    """The drawing of rows, from the lowest up, with the links between parts that are drawn.

    Dots stand for parts that are left out, and `upwards` counts the links that lead out of the
    drawing from each part of the top row.
    """
    parts: dict[Key, Shape] = {}
    for level, row in enumerate(rows):
        parts |= _row(row, level * STOREY, colours, names)
    lines = [
        _stroke(parts[one], parts[other], count, colour)
        for one, other, count, colour in links
        if count and one in parts and other in parts
    ]
    for top in [parts[key] for key in rows[-1]] if upwards else ():
        lines.append(_stroke(top, replace(top, y=top.y + HEIGHT + STUB), upwards, UP))
    return Drawing(
        title=title,
        parts=tuple(parts.values()),
        frames=frames,
        lines=tuple(lines),
        legend={line.colour: line.colour for line in lines},
        rows=tuple((parts[row[0]].y, ROWS[row[0][0]]) for row in rows),
    )


def _stroke(one: Shape, other: Shape, links: int, colour: str) -> Stroke:
    """Links from the top of a part to the bottom of the one above it."""
    lower, upper = sorted((one, other), key=lambda part: part.y)
    start, end = (lower.x, lower.y + HEIGHT / 2), (upper.x, upper.y - HEIGHT / 2)
    return Stroke(start=start, end=end, links=links, colour=colour)


def _slots(row: Sequence[Key]) -> tuple[list[float], float]:
    """Where the parts of a row stand, in units of the pitch, and the pitch."""
    slots = [0.0]
    for (_, number), (_, follower) in pairwise(row):
        # Where numbers are left out parts stand farther apart, so that the gap can be seen.
        slots.append(slots[-1] + (1.0 if follower == number + 1 else APART))
    return slots, WIDTH / (slots[-1] + 1)


def _row(
    row: Sequence[Key], y: float, colours: Mapping[Key, str], names: Mapping[Key, str]
) -> dict[Key, Shape]:
    """The parts of a row, evenly over the width, and dots where some are not drawn."""
    slots, pitch = _slots(row)
    parts = {
        (kind, number): Shape(
            name=f"{kind}/{number}",
            kind={"hb": "domain", "gpu": "gpu"}.get(kind, "switch"),
            x=(slot + 0.5) * pitch,
            y=y,
            width=min(WIDEST.get(kind, SWITCH), FILLED * pitch),
            height=HEIGHT,
            label=names.get((kind, number), NAMES.get(kind, kind + " {:,}").format(number)),
            colour="domain" if kind == "hb" else colours.get((kind, number), UP),
        )
        for (kind, number), slot in zip(row, slots, strict=True)
    }
    for key, follower in pairwise(row):
        if follower[1] > key[1] + 1:
            amid = replace(parts[key], name=f"after {parts[key].name}", kind="gap", colour=UP)
            x = (parts[key].x + parts[follower].x) / 2
            parts[amid.name, key[1]] = replace(amid, x=x, width=0.6, height=0.5, label="…")
    return parts


def plane_drawing(family: Family, uplinks: int) -> Drawing:
    """One plane from the HB domains up: leaves, spines or pods, and cores, with the links between
    those drawn.
    """
    graph, numbers = plane_graph(family, uplinks).graph, leaf_numbers(family)
    leaf_count = sum(level == 1 for _, level in graph.nodes(data="level"))
    leaves = _pod_leaves(family) if family.pods else excerpt(leaf_count)
    domains = _domains_on(numbers, leaves)
    rows: list[list[Key]] = [[("hb", d) for d in domains], [("leaf", leaf) for leaf in leaves]]
    for level in range(2, 1 + family.tiers):
        nodes = sorted(name for name, its_level in graph.nodes(data="level") if its_level == level)
        if nodes[0][0] == "aggregation":
            rows.append([key for key in nodes if any(leaf in graph[key] for leaf in rows[1])])
        else:
            rows.append([nodes[i] for i in excerpt(len(nodes))])
    colours = {("leaf", leaf): _leaf_colour(family, numbers, leaf) for leaf in leaves}
    links: list[Link] = [
        (domain, leaf, int(np.count_nonzero(numbers[:, domain[1]] == leaf[1])), colours[leaf])
        for domain in rows[0]
        for leaf in rows[1]
    ]
    links += [
        (one, other, count, colours.get(one) or colours.get(other) or UP)
        for one, other, count in graph.edges(data="links")
    ]
    return _drawing("plane", rows, links, colours=colours, names={})


def domain_drawing(family: Family, uplinks: int) -> Drawing:
    """One HB domain: its GPUs by rank, and the switch that each of their NICs hangs on."""
    hung = _nic_switches(family)
    # Switches are numbered anew in their order, as places are drawn by consecutive numbers.
    order = {switch: place for place, switch in enumerate(sorted({s for at in hung for s in at}))}
    ranks = excerpt(family.hb.size, MOST_GPUS)
    names: dict[Key, str] = {
        ("leaf", order[switch]): _switch_name(family, *switch)
        for switch in sorted({switch for rank in ranks for switch in hung[rank]})
    }
    rows: list[list[Key]] = [[("gpu", rank) for rank in ranks], [*names]]
    links: list[Link] = [
        (("gpu", rank), ("leaf", order[switch]), hung[rank].count(switch), f"rail {rank}")
        for rank in ranks
        for switch in dict.fromkeys(hung[rank])
    ]
    colours: dict[Key, str] = {
        ("gpu", r): "idle" if r >= family.training_in(0) else f"rail {r}" for r in ranks
    }
    frame = Frame(
        x=-0.2, y=-1.0, width=WIDTH + 0.4, height=2.0, label=family.hb.name, kind="domain"
    )
    return _drawing(
        "domain",
        rows,
        links,
        colours=colours,
        names=names,
        frames=(frame,),
        upwards=uplinks if family.tiers > 1 else 0,
    )


def pod_drawing(family: Family, uplinks: int) -> Drawing:
    """The first pod of three tiers: its leaves, its aggregation switches, and the cores above
    them.
    """
    assert family.pods is not None
    pod_bundles, cores = family.chain(uplinks).wires()
    switches = excerpt(family.slices(uplinks))
    core_numbers = {
        end
        for switch in switches
        for above in [cores.upper[cores.lower == switch].tolist()]
        for end in (min(above), max(above))
    }
    numbers = {
        "leaf": excerpt(min(family.pods.leaves, family.leaves)),
        "aggregation": switches,
        "core": sorted(core_numbers),
    }
    links = (
        ((lower_kind, lower), (upper_kind, upper), count, UP)
        for (lower_kind, upper_kind), wire in zip(
            pairwise(numbers), (pod_bundles, cores), strict=True
        )
        for lower, upper, count in zip(
            wire.lower.tolist(), wire.upper.tolist(), wire.links.tolist(), strict=True
        )
    )
    frame = Frame(x=-0.2, y=-0.9, width=WIDTH + 0.4, height=STOREY + 1.8, label="pod 0", kind="pod")
    return _drawing(
        "pod",
        [[(kind, number) for number in row] for kind, row in numbers.items()],
        links,
        colours={},
        names={},
        frames=(frame,),
    )


def rack_row(
    line: int, racks: range, amid: Collection[int], longest: int, first_place: int = 0
) -> Iterator[Shape]:
    """The racks of a row on a line of the drawing, `amid` those of switches, from a place on; the
    longest row has so many.
    """
    columns = excerpt(longest, MOST_RACKS)
    slots, pitch = _slots([("rack", column) for column in columns])
    for column, slot in zip(columns, slots, strict=True):
        if column < len(racks):
            kind, colour = ("switch", UP) if racks[column] in amid else ("domain", "domain")
            place = {
                "x": (slot + 0.5) * pitch,
                "y": -line * ROW,
                "width": FILLED * pitch,
                "height": HEIGHT,
            }
            yield Shape(
                name=f"rack/{racks[column]}",
                kind=kind,
                label=place_name(first_place + column),
                colour=colour,
                **place,
            )


def row_names(names: Iterable[str]) -> tuple[tuple[float, str], ...]:
    """What the lines of a drawing of racks are called, where they stand."""
    return tuple((-line * ROW, name) for line, name in enumerate(names))


def excerpt(count: int, max_parts: int = MAX_PARTS) -> list[int]:
    """The numbers of the parts that are drawn: all up to `max_parts`, of more the first three and
    the last.
    """
    return list(range(count)) if count <= max_parts else [0, 1, 2, count - 1]


def _nic_switches(family: Family) -> list[list[tuple[int, int]]]:
    """The plane (with one tier the chassis) and leaf of each NIC of the first HB domain, by
    rank.
    """
    in_plane = family.nics_of_domain // family.planes
    planes_per_switch = family.planes_together
    leaves = leaf_numbers(family)[:, 0].tolist()
    ends = [
        (rail // in_plane // planes_per_switch, leaves[rail % in_plane])
        for rail in range(family.nics_of_domain)
    ]
    per_gpu, gpus_per_nic = family.nics_per_gpu, family.gpus_per_nic
    return [ends[rank * per_gpu // gpus_per_nic :][:per_gpu] for rank in range(family.hb.size)]


def _pod_leaves(family: Family) -> list[int]:
    """The first and the last leaf of the first two pods and of the last one."""
    assert family.pods is not None
    leaves, count = family.pods.leaves, family.pods.count
    return sorted(
        {
            leaf
            for pod in sorted({0, min(1, count - 1), count - 1})
            for leaf in (pod * leaves, min((pod + 1) * leaves, family.leaves) - 1)
        }
    )


def _domains_on(numbers: Ints, leaves: Sequence[int]) -> list[int]:
    """The first HB domain on each of a few leaves and the last; where all hang on the same leaves,
    some of them.
    """
    on_leaf = {leaf: np.flatnonzero((numbers == leaf).any(axis=0)) for leaf in leaves}
    both_ends = leaves if len(leaves) < MAX_PARTS else leaves[-1:]
    domains = {int(on_leaf[leaf][0]) for leaf in leaves}
    domains |= {int(on_leaf[leaf][-1]) for leaf in both_ends}
    return sorted(domains if len(domains) > 2 else domains | set(excerpt(numbers.shape[1])))


def _leaf_colour(family: Family, numbers: Ints, leaf: int) -> str:
    """The rail of a leaf that serves a single rank."""
    ranks = np.unique(np.flatnonzero((numbers == leaf).any(axis=1)) // family.nics_per_gpu)
    return f"rail {ranks[0]}" if len(ranks) == 1 else UP


def _switch_name(family: Family, plane: int, leaf: int) -> str:
    if family.tiers == 1:
        return f"switch {plane:,}"
    return f"leaf {leaf:,}" if family.planes == 1 else f"leaf, rail {plane:,}"


@dataclass(frozen=True, kw_only=True)
class Shape:
    """A GPU (a disc), a switch or an HB domain (a box) around (x, y); `colour` names an entry of
    `Drawing.legend`.
    """

    name: str
    kind: str
    x: float
    y: float
    width: float
    height: float
    label: str
    colour: str


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Around parts that belong together: a box (`domain`), a box of dashes with its name inside
    (`pod`), or a disc.
    """

    x: float
    y: float
    width: float
    height: float
    label: str
    kind: Literal["domain", "pod", "group"]


@dataclass(frozen=True, kw_only=True)
class Stroke:
    """`links` parallel links from one place to another; `bend` is how far their middle lies to the
    left of the way.
    """

    start: tuple[float, float]
    end: tuple[float, float]
    links: int
    colour: str
    bend: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """Everything one sees. `legend` names colours in words, `rows` the levels at their height."""

    title: str
    parts: tuple[Shape, ...]
    frames: tuple[Frame, ...]
    lines: tuple[Stroke, ...]
    legend: dict[str, str]
    rows: tuple[tuple[float, str], ...] = ()
