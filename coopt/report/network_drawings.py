"""Drawings of networks of any size: one plane, one HB domain, one pod; the first parts of a level
and the last.

Places are in units of the distance between two GPUs, y upwards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from coopt.network.family import Family, Ints
from coopt.network.graphs import plane_graph
from coopt.network.space import leaf_numbers, rails_of

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


def places_of(rows: Sequence[Sequence[Key]]) -> dict[Key, Place]:
    """Every part in its row, evenly over the width, with room where some are not drawn."""
    places: dict[Key, Place] = {}
    for level, row in enumerate(rows):
        slots, pitch = _slots(row)
        places |= {
            key: ((slot + 0.5) * pitch, level * STOREY)
            for key, slot in zip(row, slots, strict=True)
        }
    return places


def link_stroke(start: Place, end: Place, links: int, colour: str) -> Stroke:
    """Links from the top of a part to the bottom of one above it."""
    return Stroke(
        start=(start[0], start[1] + HEIGHT / 2),
        end=(end[0], end[1] - HEIGHT / 2),
        links=links,
        colour=colour,
    )


def rows_drawing(
    title: str,
    rows: Sequence[Sequence[Key]],
    lines: Sequence[Stroke],
    *,
    colours: Mapping[Key, str],
    names: Mapping[Key, str],
    frames: tuple[Frame, ...] = (),
) -> Drawing:
    """The drawing of these rows, from the lowest up; dots stand for parts that are left out."""
    places = places_of(rows)
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
    for (_, number), (_, follower) in pairwise(row):
        # Where numbers are left out parts stand farther apart, so that the gap can be seen.
        slots.append(slots[-1] + (1.0 if follower == number + 1 else APART))
    return slots, WIDTH / (slots[-1] + 1)


def _row(
    row: Sequence[Key],
    places: Mapping[Key, Place],
    colours: Mapping[Key, str],
    names: Mapping[Key, str],
) -> Iterator[Shape]:
    pitch = _slots(row)[1]
    for key in row:
        kind, number = key
        look = {"hb": "domain", "gpu": "gpu"}.get(kind, "switch")
        yield Shape(
            name=f"{kind}/{number}",
            kind=look,
            x=places[key][0],
            y=places[key][1],
            width=min(WIDEST.get(kind, SWITCH), FILLED * pitch),
            height=HEIGHT,
            label=names.get(key, NAMES.get(kind, kind + " {:,}").format(number)),
            colour="domain" if kind == "hb" else colours.get(key, UP),
        )
    for key, follower in pairwise(row):
        if follower[1] > key[1] + 1:
            x, y = (places[key][0] + places[follower][0]) / 2, places[key][1]
            yield Shape(
                name=f"after {key[0]}/{key[1]}",
                kind="gap",
                x=x,
                y=y,
                width=0.6,
                height=0.5,
                label="…",
                colour=UP,
            )


def plane_drawing(family: Family, uplinks: int) -> Drawing:
    """One plane from the HB domains up: leaves, spines or pods, and cores, with the links between
    those drawn.
    """
    small = plane_graph(family, uplinks)
    numbers = leaf_numbers(family)
    levels = [_of_level(small.graph, level) for level in range(1, 1 + family.tiers)]
    leaves = _pod_leaves(family) if family.pods else excerpt(len(levels[0]))
    nodes = {("leaf", leaf) for leaf in leaves}
    domains = _domains_on(numbers, leaves)
    rows: list[list[Key]] = [[("hb", domain) for domain in domains], sorted(nodes)]
    for level in levels[1:]:
        if level[0][0] == "aggregation":
            shown_nodes = sorted(
                {key for leaf in nodes for key in small.graph[leaf] if key[0] == "aggregation"}
            )
        else:
            shown_nodes = [level[i] for i in excerpt(len(level))]
        rows.append(shown_nodes)
    places = places_of(rows)
    colours = {("leaf", leaf): _leaf_colour(family, numbers, leaf) for leaf in leaves}
    lines = [
        *_nic_lines(numbers, domains, leaves, places, colours),
        *_switch_lines(small.graph, places, colours),
    ]
    return rows_drawing("plane", rows, lines, colours=colours, names={})


def domain_drawing(family: Family, uplinks: int) -> Drawing:
    """One HB domain: its GPUs by rank, and the switch that each of their NICs hangs on."""
    hung = _nic_switches(family)
    # Switches are numbered anew in their order, as places are drawn by consecutive numbers.
    order = {
        switch: place
        for place, switch in enumerate(sorted({switch for at in hung for switch in at}))
    }
    ranks = excerpt(family.hb.size, MOST_GPUS)
    switches = sorted({switch for rank in ranks for switch in hung[rank]})
    gpus: list[Key] = [("gpu", rank) for rank in ranks]
    leaves: list[Key] = [("leaf", order[switch]) for switch in switches]
    places = places_of([gpus, leaves])
    lines = [
        link_stroke(
            places["gpu", rank],
            places["leaf", order[switch]],
            hung[rank].count(switch),
            f"rail {rank}",
        )
        for rank in ranks
        for switch in dict.fromkeys(hung[rank])
    ]
    if family.tiers > 1:
        tops = [(places[leaf][0], places[leaf][1] + HEIGHT / 2) for leaf in leaves]
        lines += [
            Stroke(start=(x, y), end=(x, y + STUB), links=uplinks, colour=UP) for x, y in tops
        ]
    colours: dict[Key, str] = {
        ("gpu", r): "idle" if r >= family.training_in(0) else f"rail {r}" for r in ranks
    }
    names = {("leaf", order[switch]): _switch_name(family, *switch) for switch in switches}
    frame = Frame(
        x=-0.2, y=-1.0, width=WIDTH + 0.4, height=2.0, label=family.hb.name, kind="domain"
    )
    return rows_drawing(
        "domain", [gpus, leaves], lines, colours=colours, names=names, frames=(frame,)
    )


def pod_drawing(family: Family, uplinks: int) -> Drawing:
    """The first pod of three tiers: its leaves, its aggregation switches, and the cores above
    them.
    """
    assert family.pods is not None
    leaf_count, slices = min(family.pods.leaves, family.leaves), family.slices(uplinks)
    pod_bundles, cores = family.chain(uplinks).wires()
    leaves, switches = excerpt(leaf_count), excerpt(slices)
    core_numbers = {
        int(core)
        for switch in switches
        for part in [np.sort(cores.upper[cores.lower == switch])]
        for core in (part[0], part[-1])
    }
    rows: list[list[Key]] = [
        [("leaf", leaf) for leaf in leaves],
        [("aggregation", switch) for switch in switches],
        [("core", core) for core in sorted(core_numbers)],
    ]
    places = places_of(rows)
    wires = (("leaf", "aggregation", pod_bundles), ("aggregation", "core", cores))
    lines = [
        link_stroke(
            places[lower_kind, int(lower_number)],
            places[upper_kind, int(upper_number)],
            int(links),
            UP,
        )
        for lower_kind, upper_kind, wire in wires
        for lower_number, upper_number, links in zip(
            wire.lower, wire.upper, wire.links, strict=True
        )
        if (lower_kind, int(lower_number)) in places and (upper_kind, int(upper_number)) in places
    ]
    frame = Frame(x=-0.2, y=-0.9, width=WIDTH + 0.4, height=STOREY + 1.8, label="pod 0", kind="pod")
    return rows_drawing("pod", rows, lines, colours={}, names={}, frames=(frame,))


def rack_row(line: int, racks: range, amid: Collection[int], longest: int) -> Iterator[Shape]:
    """The racks of a row on a line of the drawing, `amid` those of switches; the longest row has so
    many.
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
                name=f"rack/{racks[column]}", kind=kind, label=f"{column}", colour=colour, **place
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
    in_plane = rails_of(family) // family.planes
    planes_per_switch = family.planes_together
    leaves = leaf_numbers(family)[:, 0].tolist()
    ends = [
        (rail // in_plane // planes_per_switch, leaves[rail % in_plane])
        for rail in range(rails_of(family))
    ]
    per_gpu, gpus_per_nic = family.nics_per_gpu, family.gpus_per_nic
    return [ends[rank * per_gpu // gpus_per_nic :][:per_gpu] for rank in range(family.hb.size)]


def _of_level(graph: Graph, level: int) -> list[Key]:
    return sorted(name for name, its_level in graph.nodes(data="level") if its_level == level)


def _pod_leaves(family: Family) -> list[int]:
    """The first and the last leaf of the first two pods and of the last one."""
    assert family.pods is not None
    leaves, count = family.pods.leaves, family.pods.count
    pods = sorted({0, min(1, count - 1), count - 1})
    return sorted(
        {
            leaf
            for pod in pods
            for leaf in (pod * leaves, min((pod + 1) * leaves, family.leaves) - 1)
        }
    )


def _domains_on(numbers: Ints, leaves: Sequence[int]) -> list[int]:
    """The first HB domain on each of a few leaves and the last; where all hang on the same leaves,
    some of them.
    """
    domain_set: set[int] = set()
    for leaf in leaves:
        domains = np.flatnonzero((numbers == leaf).any(axis=0))
        both_ends = len(leaves) < MAX_PARTS or leaf == leaves[-1]
        domain_set |= {int(domains[0]), int(domains[-1])} if both_ends else {int(domains[0])}
    return sorted(
        domain_set if len(domain_set) > 2 else domain_set | set(excerpt(numbers.shape[1]))
    )


def _leaf_colour(family: Family, numbers: Ints, leaf: int) -> str:
    """The rail of a leaf that serves a single rank."""
    ranks = np.unique(np.flatnonzero((numbers == leaf).any(axis=1)) // family.nics_per_gpu)
    return f"rail {ranks[0]}" if len(ranks) == 1 else UP


def _switch_name(family: Family, plane: int, leaf: int) -> str:
    if family.tiers == 1:
        return f"switch {plane:,}"
    return f"leaf {leaf:,}" if family.planes == 1 else f"leaf, rail {plane:,}"


def _nic_lines(
    numbers: Ints,
    domains: Sequence[int],
    leaves: Sequence[int],
    places: Mapping[Key, Place],
    colours: Mapping[Key, str],
) -> Iterator[Stroke]:
    for domain in domains:
        for leaf in leaves:
            links = int(np.count_nonzero(numbers[:, domain] == leaf))
            if links:
                yield link_stroke(
                    places["hb", domain], places["leaf", leaf], links, colours["leaf", leaf]
                )


def _switch_lines(
    graph: Graph, places: Mapping[Key, Place], colours: Mapping[Key, str]
) -> Iterator[Stroke]:
    for start, end, edge in graph.edges(data=True):
        if start in places and end in places:
            lower_key, upper_key = sorted((start, end), key=lambda key: places[key][1])
            yield link_stroke(
                places[lower_key], places[upper_key], edge["links"], colours.get(lower_key, UP)
            )


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
