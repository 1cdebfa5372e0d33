"""Halls switch by switch and cable by cable, from the graph of a network and the rules of docs/network.md alone."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

from coopt.instance.designs import Hall
from coopt.instance.network import NetworkHallRows
from coopt.instance.schema import Instance
from coopt.network.family import Family, levels
from coopt.network.graphs import whole_graph
from coopt.network.parts import end_modules, racks

SOLD_M = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000)


@dataclass(frozen=True, kw_only=True)
class Standing:
    """Where switches and racks of domains stand, counted along the rows; racks of switches with what each draws (W)."""

    graph: Any
    switches: dict[str, int]
    domains: dict[int, int]
    switch_spots: frozenset[int]
    racks: int
    drawn_w: tuple[float, ...]


def median(places: list[int]) -> int:
    """The middle one of several, the former of two."""
    return sorted(places)[(len(places) - 1) // 2]


def amid(racks: list[int], rows: NetworkHallRows, level: int) -> int:
    """The rack from which the ways to all of some are the shortest; of several the first, of cores the middle one."""
    rows_of, places_of = ([rack // rows.racks_per_row for rack in racks], [rack % rows.racks_per_row for rack in racks])
    best = []
    for spots in (rows_of, places_of):
        ways = {spot: sum(abs(spot - other) for other in spots) for spot in range(max(spots) + 1)}
        nearest = [spot for spot, way in ways.items() if way == min(ways.values())]
        best.append((nearest[0] + nearest[-1]) // 2 if level == 3 else nearest[0])
    return min(best[0] * rows.racks_per_row + best[1], max(racks))


def sold(length_m: float) -> int:
    """The length on sale that is just long enough (m)."""
    return next((one for one in SOLD_M if one >= length_m), 1000 * math.ceil(length_m / 1000))


def between_m(rows: NetworkHallRows, one: tuple[int, int], other: tuple[int, int]) -> float:
    """The way of a cable from a rack to another, each by its row and its place in the row (m)."""
    if one == other:
        return rows.in_rack_m
    along, across = abs(one[1] - other[1]), abs(one[0] - other[0])
    return 2 * rows.rise_m + along * rows.rack_pitch_m + across * rows.row_pitch_m


def places_in(graph: Any, hall: Hall) -> dict[str, int]:
    """The rack of domains amid which each switch of a graph stands: the middle one of what hangs below it."""
    places: dict[str, int] = {}
    for level in (1, 2, 3):
        below: dict[str, list[int]] = {}
        for a, b, edge in graph.edges(data=True):
            if edge["level"] == level:
                lower, upper = (a, b) if graph.nodes[b]["level"] > graph.nodes[a]["level"] else (b, a)
                rack = hall.rack_of(graph.nodes[lower]["domain"]) if level == 1 else places[lower]
                below.setdefault(upper, []).extend([rack] * (edge["links"] if level == 1 else 1))
        places |= {name: amid(racks, hall, level) for name, racks in below.items()}
    return places


def standing(instance: Instance, family: Family, u: int, leaf_w: float = 0.0) -> Standing:
    """A network in its hall; `leaf_w` is what a leaf bears besides, of links into a core."""
    rows, hb = instance.network.hall, family.hb
    hall = Hall(racks_per_domain=hb.racks, **rows.model_dump(include=set(Hall.model_fields)))
    graph, built = whole_graph(family, u), racks(family)
    assert built is not None
    amid = places_in(graph, hall)
    if not all(box.rack_units for box in family.switches):
        at = {rack: rack for rack in range(built)}
        nowhere = frozenset[int]()
        return Standing(graph=graph, switches=amid, domains=at, switch_spots=nowhere, racks=built, drawn_w=())
    held, drawn_w = _filled(
        rows, family, u, sorted((place, *_level(graph, name)) for name, place in amid.items()), leaf_w
    )
    line: list[tuple[float, int]] = [(float(rack), -1) for rack in range(built)]
    line += [(median([place for place, _, _ in one]) + 0.5, n) for n, one in enumerate(held)]
    line.sort()
    in_rack = {n: spot for spot, (_, n) in enumerate(line) if n >= 0}
    racks_of: dict[tuple[int, int], list[int]] = {}
    for n, one in enumerate(held):
        for place, level, _ in one:
            racks_of.setdefault((place, level), []).append(n)
    return Standing(
        graph=graph,
        switches={name: in_rack[median(racks_of[place, _level(graph, name)[0]])] for name, place in amid.items()},
        domains={round(place): spot for spot, (place, n) in enumerate(line) if n < 0},
        switch_spots=frozenset(in_rack.values()),
        racks=built + len(held),
        drawn_w=tuple(drawn_w),
    )


def _level(graph: Any, name: str) -> tuple[int, str]:
    return graph.nodes[name]["level"] - 1, name


def _filled(
    rows: NetworkHallRows, family: Family, u: int, switches: list[tuple[int, int, str]], leaf_w: float
) -> tuple[list[list[tuple[int, int, str]]], list[float]]:
    """One switch after the other into racks, as long as there is room."""
    tiers, counted = levels(family, u), list(zip(end_modules(family, family.chain(u)), family.optics, strict=True))
    above_w = [count.above * ends.above.w for count, ends in counted]
    below_w = [count.below * ends.below.w for count, ends in counted[1:]] + [0.0]
    watts = math.inf if rows.switch_rack_kw is None else 1e3 * rows.switch_rack_kw
    held: list[list[tuple[int, int, str]]] = []
    drawn_w: list[float] = []
    left = (0.0, 0.0)
    for place, level, name in switches:
        box = family.switches[level]
        w = box.w + (above_w[level] + below_w[level]) / tiers[level].switches + (0.0 if level else leaf_w)
        if left[0] + 1e-6 < box.rack_units or left[1] + 1e-6 < w:
            held.append([])
            drawn_w.append(0.0)
            left = (rows.switch_rack_units, watts)
        held[-1].append((place, level, name))
        drawn_w[-1] += w
        left = left[0] - box.rack_units, left[1] - w
    return held, drawn_w


def leaves_of(graph: Any, nic: str) -> list[str]:
    """The leaf switches of a NIC, by their planes."""
    return sorted(
        (leaf for leaf in graph[nic] if graph.nodes[leaf]["level"] == 1), key=lambda leaf: graph.nodes[leaf]["plane"]
    )


def leaf_in(now: Any, end: Any) -> dict[str, str]:
    """Which leaf switch each one of a network is, once the network has grown: that of the same NICs."""
    found: dict[str, str] = {}
    for nic in (name for name, data in now.nodes(data=True) if data["kind"] == "nic"):
        for leaf, then in zip(leaves_of(now, nic), leaves_of(end, nic), strict=True):
            assert found.setdefault(leaf, then) == then
    return found


def lengths_of(rows: NetworkHallRows, ways: list[tuple[tuple[int, int], tuple[int, int]]]) -> Counter[int]:
    """Cables by the length they are sold in (m)."""
    return Counter(sold(between_m(rows, *way)) for way in ways)
