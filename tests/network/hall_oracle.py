"""Halls switch by switch and cable by cable, from the graph of a network and the rules of docs/network.md alone."""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from coopt.instance.designs import Hall
from coopt.instance.network import NetworkHallRows
from coopt.instance.schema import Instance
from coopt.network.family import Family, LinkEnds, levels
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


Ways = tuple[str, ...]
"""Switches that have the same ones below."""


def cables_as_it_grows(instance: Instance, stages: list[tuple[Family, int]]) -> list[list[dict[int, Counter[str]]]]:
    """Links, and modules below and above, of each level by the length that they need (m), in each stage of a network
    with its uplinks: cable by cable in the hall of the last."""
    (end, uplinks), rows = stages[-1], instance.network.hall
    hall = Hall(racks_per_domain=end.hb.racks, **rows.model_dump(include=set(Hall.model_fields)))
    stood = _in_the_end(instance, end, uplinks)
    nodes, spots, comes = stood.graph.nodes, dict[str, int](stood.switches), dict[str, int]()
    for name, data in nodes(data=True):
        if data["kind"] == "nic":
            spots[name] = stood.domains[hall.rack_of(data["domain"])]
            comes[name] = next(n for n, (one, _) in enumerate(stages) if one.tiers and data["domain"] < one.domains)
    found = [[dict[int, Counter[str]]() for _ in range(one.tiers)] for one, _ in stages]

    def length_m(lower: str, upper: str) -> int:
        return sold(between_m(rows, *(divmod(spots[one], rows.racks_per_row) for one in (lower, upper))))

    for level in range(1, end.tiers + 1):
        below = _below(stood.graph, level)
        for upper, of in below.items():
            comes[upper] = min(comes[lower] for lower in of)
        n_below, n_above = end.per_module[level - 1]
        alike: dict[Ways, list[str]] = {}
        for upper, of in below.items():
            alike.setdefault((upper,) if level == 1 else tuple(sorted(of)), []).append(upper)
        for uppers in alike.values():
            lowers = sorted(below[uppers[0]], key=lambda one: (comes[one], -length_m(one, uppers[0])))
            for some in _of_whole_modules(lowers, [below[upper] for upper in uppers], level, n_above):
                need = max(length_m(lower, uppers[0]) for lower in some)
                for t, (family, u) in enumerate(stages):
                    here = [lower for lower in some if comes[lower] <= t]
                    if level > family.tiers or not here:
                        continue
                    of_upper = [sum(below[upper][lower] for lower in here) for upper in uppers]
                    of_lower = [sum(below[upper][lower] for upper in uppers) for lower in here]
                    share = Fraction(u, uplinks) if level > 1 else 1  # below 1 with modules of a link alone
                    counts = {
                        "links": sum(of_upper) * share,
                        "below": sum(-(-n // n_below) for n in of_lower) * share if level > 1 else 0,
                        "above": sum(-(-n // n_above) for n in of_upper) * share,
                    }
                    found[t][level - 1].setdefault(need, Counter()).update(counts)
        for stage in found:
            for run in stage[0].values() if level == 1 and stage else ():
                run["below"] = run["links"] // n_below
    # a stage with fewer uplinks has whole switches less, so that no length is left with part of a cable
    counters = [run for stage in found for of_level in stage for run in of_level.values()]
    for run in counters:
        assert all(n == int(n) for n in run.values()), run
        run.update({key: int(n) - n for key, n in run.items()})
    return found


def _in_the_end(instance: Instance, end: Family, uplinks: int) -> Standing:
    """A network in a hall whose racks have room for any module, those of links into a core too."""
    bare = replace(end, optics=tuple(LinkEnds(*(_hottest(instance, end, one) for one in of)) for of in end.optics))
    leaf_w = 0.0
    if end.core_ports and end.core_end is not None:
        of_module = end.core_end.links_of(end.link_gbit_s)
        leaf_w = math.ceil(end.core_ports / of_module) * _hottest(instance, end, end.core_end).w
    return standing(instance, bare, uplinks, leaf_w)


def cables_into_core(
    instance: Instance, stages: list[tuple[Family, int]], bay: tuple[int, int]
) -> list[dict[int, Counter[str]]]:
    """The same of links into a core, leaf by leaf: of an island with so many islands at its left, of so many in all."""
    (end, uplinks), rows = stages[-1], instance.network.hall
    hall = Hall(racks_per_domain=end.hb.racks, **rows.model_dump(include=set(Hall.model_fields)))
    each, starts = end.lone_links, [(0, hall.rack_of(0))]
    if end.tiers:
        stood, each = _in_the_end(instance, end, uplinks), end.core_ports
        domain_of = {name: data["domain"] for name, data in stood.graph.nodes(data=True) if data["kind"] == "nic"}
        below = _below(stood.graph, 1)
        first = {leaf: min(domain_of[nic] for nic in of) for leaf, of in below.items()}
        comes = {leaf: next(n for n, (one, _) in enumerate(stages) if first[leaf] < one.domains) for leaf in below}
        starts = [(comes[leaf], stood.switches[leaf]) for leaf in below]
        assert len(starts) * each == end.core_links
    number, of = bay
    middle = (0, (of * rows.racks_per_row - 1) // 2)

    def length_m(spot: int) -> int:
        row, place = divmod(spot, rows.racks_per_row)
        return sold(between_m(rows, (1 + row, number * rows.racks_per_row + place), middle))

    found = [dict[int, Counter[str]]() for _ in stages]
    n_below, n_above = (one.links_of(end.link_gbit_s) for one in end.core_choices[0])
    some = list[tuple[int, int]]()
    ordered = sorted((t, -length_m(spot)) for t, spot in starts)
    for n, start in enumerate(ordered):
        some.append(start)
        if len(some) * each % n_above and n < len(ordered) - 1:
            continue
        for t, stage in enumerate(found):
            here = sum(came <= t for came, _ in some)
            counts = {"links": here * each, "below": here * math.ceil(each / n_below)}
            counts["above"] = math.ceil(here * each / n_above)
            stage.setdefault(-min(m for _, m in some), Counter()).update(counts)
        some = []
    return found


def _hottest(instance: Instance, family: Family, optic: Any) -> Any:
    """The listed module that draws most of those that carry as many links."""
    rate = family.link_gbit_s
    like = [one for one in instance.network.optics if one.links_of(rate) == optic.links_of(rate)]
    return max(like, key=lambda one: one.w)


def _below(graph: Any, level: int) -> dict[str, dict[str, int]]:
    """What has cables to each switch of a level, and how many."""
    found: dict[str, dict[str, int]] = {}
    for a, b, edge in graph.edges(data=True):
        if edge["level"] == level:
            lower, upper = (a, b) if graph.nodes[b]["level"] > graph.nodes[a]["level"] else (b, a)
            found.setdefault(upper, {})[lower] = edge["links"]
    return found


def _of_whole_modules(lowers: list[str], links: list[dict[str, int]], level: int, n_above: int) -> Iterator[list[str]]:
    """As many below, one after the other, as fill whole modules above: all of them where their cables are uneven."""
    each = {n for of in links for n in of.values()}
    size = next((n for n in range(1, n_above + 1) if len(each) == 1 and n * min(each) % n_above == 0), len(lowers))
    size = 1 if n_above == 1 else n_above if level == 1 else size
    return (lowers[start : start + size] for start in range(0, len(lowers), size))
