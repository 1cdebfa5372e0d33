"""Where switches stand in a hall and how long cables are: rack by rack, switch by switch and cable
by cable (docs/network.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import ceil, inf
from typing import NamedTuple

from coopt.instance.network import NetworkHallRows
from coopt.instance.schema import Instance
from coopt.verifier.parts.bills import levels
from coopt.verifier.parts.layouts import (
    Ports,
    ceil_ratio,
    core_count,
    planes_on_switch,
    spine_count,
)
from coopt.verifier.parts.space import DesignFamily, OpticPair
from coopt.verifier.parts.stages import GrowthStage
from coopt.verifier.parts.wiring import numbering_of

SOLD_M = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000)
"""Lengths on sale (m); farther ones are cut to whole kilometres."""

NEARLY = 1e-9
"""By which share of a switch the rest of a rack may be too small by rounding."""

Choices = Sequence[Sequence[OpticPair]]
"""The ends that cables of each level may have, of as many links to a module."""

Line = Sequence[GrowthStage]
"""A network in each stage of its growth; of the last one uplinks are decided."""


class Need(NamedTuple):
    """Modules that need one length: links in a module at either end, and how many of those."""

    length_m: int
    links: int
    below: int
    above: int


Needs = Sequence[Sequence[Sequence[Need]]]
"""What each length of each level needs in each stage, from the shortest on; in the stages before
nothing where none of them stands yet.
"""


class CoreBay(NamedTuple):
    """Which of so many bays side by side an island has behind the row of its core."""

    number: int
    bays: int


def bay_of(instance: Instance, workload: str) -> CoreBay:
    """The bay of an island: that of its workload, at every site; one of all that take turns."""
    names = [one.name for one in instance.workload]
    partition = instance.sharing.mode == "partition"
    return CoreBay(names.index(workload), len(names)) if partition else CoreBay(0, 1)


class Places(NamedTuple):
    """Racks of domains amid which the switches of one network stand, and so many of them at each
    place of a tier.
    """

    leaves: list[int]
    pods: list[int]
    core: int
    spines: int
    cores: int


def _sold_m(length_m: float) -> int:
    """The shortest length on sale that is as long (m)."""
    return next((m for m in SOLD_M if m >= length_m), 1000 * ceil(length_m / 1000))


class Drawn(NamedTuple):
    """A network in its hall: its stages with switches, the rack of each domain and the domains
    below each leaf, where the switches stand, the spots of racks and of switches, and in which of
    the stages domains and leaves come.
    """

    stages: Line
    rack_of: list[int]
    below: list[list[int]]
    places: Places
    domain_at: dict[int, int]
    switch_at: dict[tuple[int, int], int]
    arrives: list[int]
    leaf_arrives: list[int]


def _rack_of(family: DesignFamily, domain: int) -> int:
    """The rack of a domain, the middle one of several."""
    racks_each = family.hb.racks
    assert racks_each is not None, "the racks of a domain are known where cables follow the hall"
    return int(domain * racks_each + max(0.0, racks_each - 1) / 2)


def _drawn(instance: Instance, line: Line, carried: Sequence[tuple[int, int]]) -> Drawn:
    """A network drawn as it stands in the end."""
    end = line[-1]
    family, ports = end.family, end.with_up(end.uplinks[-1])
    rack_of = [_rack_of(family, domain) for domain in range(family.domains)]
    below = _domains_below(family, ports)
    below_leaf = [[rack_of[domain] for domain in domains] for domains in below]
    places = _places(family, ports, below_leaf, instance.network.hall)
    spots = _line(instance, end, carried, places, max(rack_of) + 1)
    networked = [stage for stage in line if stage.family.attachment is not None]
    # each domain comes with the first of these that has it
    arrives = [
        next(n for n, stage in enumerate(networked) if domain < stage.family.domains)
        for domain in range(family.domains)
    ]
    leaf_arrives = [min(arrives[domain] for domain in domains) for domains in below]
    return Drawn(networked, rack_of, below, places, *spots, arrives, leaf_arrives)


def core_needs(instance: Instance, line: Line, bay: CoreBay, above: int) -> Needs:
    """The cables from leaves into a core, from the first rack where there is no leaf, by the length
    that they need in each stage, with so many to a module of the core: as many leaves as fill whole
    modules there, stage by stage from the farthest on, have the kind of the farthest of them.
    """
    rows, end = instance.network.hall, line[-1]
    family, per_row = end.family, rows.racks_per_row
    spots, each, times = [(0, _rack_of(family, 0))], family.to_core, 1
    if family.attachment is not None:
        carried = list(end.by_tier.per_module)
        drawn = _drawn(instance, line, carried)
        leaves = zip(drawn.leaf_arrives, drawn.places.leaves, strict=True)
        spots = [(comes, drawn.switch_at[0, place]) for comes, place in leaves]
        single = end.ports.tiers == 1
        each, times = end.to_core, end.chassis if single else family.planes * family.copies
    ways = list[tuple[int, int]]()
    for comes, spot in spots:
        row, place = divmod(spot, per_row)
        along = abs(bay.number * per_row + place - (bay.bays * per_row - 1) // 2)
        way_m = 2 * rows.rise_m + along * rows.rack_pitch_m + (row + 1) * rows.row_pitch_m
        ways += [(comes, -_sold_m(way_m))] * times
    ways.sort()
    together = next(n for n in range(1, above + 1) if n * each % above == 0)
    stages = [[Counter[int](), Counter[int](), Counter[int]()] for _ in line]
    for start in range(0, len(ways), together):
        alike = ways[start : start + together]
        longest_m = -min(way_m for _, way_m in alike)
        for number, (links, below, modules) in enumerate(stages):
            starts = sum(comes <= number for comes, _ in alike)
            links[longest_m] += starts * each
            below[longest_m] += starts * ceil_ratio(each, family.core_module)
            modules[longest_m] += ceil_ratio(starts * each, above)
    return [[[Need(m, *(of[m] for of in counts)) for m in sorted(counts[0])]] for counts in stages]


def lengths_needed(instance: Instance, line: Line, choices: Choices) -> Needs:
    """The cables of each level by the length that they need, in each stage of a network."""
    rows, end = instance.network.hall, line[-1]
    family, ports = end.family, end.with_up(end.uplinks[-1])
    carried = [family.network.carried(ends[0]) for ends in choices]
    drawn = _drawn(instance, line, carried)
    places, switch_at, leaf_arrives = drawn.places, drawn.switch_at, drawn.leaf_arrives

    def sold(one: int, other: int) -> int:
        return _sold_m(_between_m(rows, one, other))

    spots = [drawn.domain_at[rack] for rack in drawn.rack_of]
    down = [
        sorted(
            (drawn.arrives[domain], -sold(spots[domain], switch_at[0, place])) for domain in domains
        )
        for domains, place in zip(drawn.below, places.leaves, strict=True)
    ]
    up = list[list[tuple[int, int]]]()
    size = ports.pod_leaves if ports.tiers == 3 else len(drawn.below)
    for number, pod in enumerate(places.pods):
        of_pod = range(number * size, min((number + 1) * size, len(drawn.below)))
        up.append(
            sorted(
                (leaf_arrives[n], -sold(switch_at[0, places.leaves[n]], switch_at[1, pod]))
                for n in of_pod
            )
        )
    trunks = sorted(
        (min(leaf_arrives[n * size : (n + 1) * size]), -sold(switch_at[1, pod], switch_at[2, core]))
        for n, (pod, core) in enumerate((pod, places.core) for pod in places.pods)
        if ports.tiers == 3
    )
    stages = list[list[list[Need]]]()
    for number, stage in enumerate(drawn.stages):
        there = stage.with_up(ports.up)
        found = [_down_needs(family, ports, carried[0], down, number)]
        networks, leaves = family.planes * family.copies, stage.leaves
        spines = places.spines
        if ports.tiers == 2 and there.tiers == 2:
            spines = spine_count(leaves, there, family.network.at(2).radix)
        if there.tiers > 1:
            found.append(
                [
                    need
                    for ways in up
                    for need in _up_needs(
                        ways, number, ports.up, (places.spines, spines), carried[1], networks
                    )
                ]
            )
        if there.tiers > 2:
            group, radix = places.cores // places.spines, family.network.at(3).radix
            groups = group, core_count(leaves, there, radix)
            found.append(
                _up_needs(
                    trunks, number, ports.pod_up, groups, carried[2], networks * places.spines
                )
            )
        stages.append(found)
    lengths = [sorted({need.length_m for need in level}) for level in stages[-1]]
    counted = iter(stages)
    return [
        [
            [_summed(m, of_stage[level] if level < len(of_stage) else []) for m in of_level]
            for level, of_level in enumerate(lengths)
        ]
        for stage in line
        for of_stage in [[] if stage.family.attachment is None else next(counted)]
    ]


def _summed(length_m: int, needs: Iterable[Need]) -> Need:
    """All that is needed of one length."""
    of = [need for need in needs if need.length_m == length_m]
    counts = (sum(column) for column in zip(*((0, 0, 0), *(need[1:] for need in of)), strict=True))
    return Need(length_m, *counts)


def _domains_below(family: DesignFamily, ports: Ports) -> list[list[int]]:
    """The domains of all end points of each leaf of one network."""
    domains = range(family.domains)
    if ports.tiers == 1:
        return [[domain for domain in domains for _ in range(family.rails // family.planes)]]
    order = numbering_of(family, ports.down)
    below: list[list[int]] = [[] for _ in range(order.leaves)]
    for domain in domains:
        for rail in range(order.rails):
            below[order.leaf(domain, rail)].append(domain)
    return below


def _places(
    family: DesignFamily,
    ports: Ports,
    below_leaf: Sequence[Sequence[int]],
    rows: NetworkHallRows,
) -> Places:
    """Amid what the switches of one network stand: a leaf amid its end points, spines amid the
    leaves of their pod, cores amid the pods.
    """
    leaves, count = [_amid(racks, rows) for racks in below_leaf], len(below_leaf)
    if ports.tiers == 1:
        return Places(leaves, [], 0, 0, 0)
    if ports.tiers == 2:
        return Places(
            leaves,
            [_amid(leaves, rows)],
            0,
            spine_count(count, ports, family.network.at(2).radix),
            0,
        )
    pods = [
        _amid(leaves[start : start + ports.pod_leaves], rows)
        for start in range(0, count, ports.pod_leaves)
    ]
    cores = ports.slices * core_count(count, ports, family.network.at(3).radix)
    return Places(leaves, pods, _amid(pods, rows, between=True), ports.slices, cores)


def _amid(racks: Sequence[int], rows: NetworkHallRows, *, between: bool = False) -> int:
    """The rack from which the ways to all of some are the shortest: amid their rows and places; of
    several the first, or the one between.
    """
    across, along = zip(*(divmod(rack, rows.racks_per_row) for rack in racks), strict=True)
    row, place = (
        (ordered[(len(ordered) - 1) // 2] + ordered[(len(ordered) - (not between)) // 2]) // 2
        for ordered in (sorted(across), sorted(along))
    )
    return int(min(row * rows.racks_per_row + place, max(racks)))


def _middle(racks: Sequence[int]) -> int:
    """The middle one of several racks, the former of two."""
    return sorted(racks)[(len(racks) - 1) // 2]


def _line(
    instance: Instance,
    end: GrowthStage,
    carried: Sequence[tuple[int, int]],
    places: Places,
    racks: int,
) -> tuple[dict[int, int], dict[tuple[int, int], int]]:
    """The spots of racks of domains along the rows, and of the switches of a tier (from 0) that are
    amid a rack.
    """
    family, ports = end.family, end.with_up(end.uplinks[-1])
    network, rows = family.network, instance.network.hall
    boxes = [network.at(tier) for tier in range(1, ports.tiers + 1)]
    amid = [places.leaves, places.pods, [places.core]][: ports.tiers]
    if not all(box.rack_units for box in boxes):
        spots = {(level, rack): rack for level, of in enumerate(amid) for rack in of}
        return {rack: rack for rack in range(racks)}, spots
    watts = _watts(instance, end, carried)
    counts = levels(family, ports)
    queue: list[tuple[int, int]] = []
    for level, of in enumerate(amid):
        queue += [(rack, level) for rack in of for _ in range(counts[level].switches // len(of))]
    held: list[list[tuple[int, int]]] = []
    most_w = inf if rows.switch_rack_kw is None else 1e3 * rows.switch_rack_kw
    units_left = w_left = 0.0
    for rack, level in sorted(queue):
        units, w = boxes[level].rack_units or 0.0, watts[level]
        if not held or units_left < units * (1 - NEARLY) or w_left < w * (1 - NEARLY):
            held.append([])
            units_left, w_left = rows.switch_rack_units, most_w
        held[-1].append((rack, level))
        units_left, w_left = units_left - units, w_left - w
    standing = [(float(rack), -1) for rack in range(racks)]
    standing += [(_middle([rack for rack, _ in of]) + 0.5, n) for n, of in enumerate(held)]
    spot_of_rack, spot_of_held = dict[int, int](), dict[int, int]()
    for spot, (where, number) in enumerate(sorted(standing)):
        if number < 0:
            spot_of_rack[int(where)] = spot
        else:
            spot_of_held[number] = spot
    holding: dict[tuple[int, int], list[int]] = {}
    for number, switches in enumerate(held):
        for rack, level in switches:
            holding.setdefault((level, rack), []).append(number)
    return spot_of_rack, {place: spot_of_held[_middle(of)] for place, of in holding.items()}


def _watts(instance: Instance, end: GrowthStage, carried: Sequence[tuple[int, int]]) -> list[float]:
    """What a switch of each tier draws at most with the modules in it, those of links into a core
    too (W).
    """
    family, ports = end.family, end.with_up(end.uplinks[-1])
    network, counts = family.network, levels(family, ports)

    def hottest(links: int) -> float:
        return max(optic.w for optic in instance.network.optics if network.links_of(optic) == links)

    modules = [level.modules(of) for level, of in zip(counts, carried, strict=True)]
    drawn = [network.at(tier).w * level.switches for tier, level in enumerate(counts, start=1)]
    for level, ((n_below, n_above), (below, above)) in enumerate(
        zip(carried, modules, strict=True)
    ):
        drawn[level] += above * hottest(n_above)
        if level:
            drawn[level - 1] += below * hottest(n_below)
    if end.to_core:
        of_leaf = ceil_ratio(end.to_core, family.core_module)
        drawn[0] += counts[0].switches * of_leaf * hottest(family.core_module)
    return [w / level.switches for w, level in zip(drawn, counts, strict=True)]


def _between_m(rows: NetworkHallRows, one: int, other: int) -> float:
    """The way of a cable from a spot to another (m)."""
    if one == other:
        return rows.in_rack_m
    (row, place), (far_row, far_place) = (divmod(spot, rows.racks_per_row) for spot in (one, other))
    along, across = abs(place - far_place), abs(row - far_row)
    return 2 * rows.rise_m + along * rows.rack_pitch_m + across * rows.row_pitch_m


Way = tuple[int, int]
"""In which stage a cable or a switch comes, and the length of the way, below zero."""


def _down_needs(
    family: DesignFamily,
    ports: Ports,
    carried: tuple[int, int],
    ways: Sequence[Sequence[Way]],
    stage: int,
) -> list[Need]:
    """The cables of NICs in a stage: modules of a leaf are filled stage by stage, from the longest
    cable on.
    """
    n_below, n_above = carried
    switches = [(family.planes * family.copies, 1)]
    if ports.tiers == 1:
        together = planes_on_switch(family)
        switches = [
            (family.copies * (family.planes // together), together),
            (family.copies, family.planes % together),
        ]
    links, modules = Counter[int](), Counter[int]()
    for times, planes in switches:
        for way in ways:
            cables = [one for one in way for _ in range(planes)]
            for start in range(0, len(cables), n_above):
                module = cables[start : start + n_above]
                longest_m = -min(way_m for _, way_m in module)
                standing = sum(comes <= stage for comes, _ in module)
                if standing and times:
                    links[longest_m] += times * standing
                    modules[longest_m] += times
    return [Need(m, links[m], links[m] // n_below, modules[m]) for m in links]


def _up_needs(
    ways: Sequence[Way],
    stage: int,
    links: int,
    above: tuple[int, int],
    carried: tuple[int, int],
    times: int,
) -> list[Need]:
    """The cables of switches to the same ones above, so many in the end and in a stage, dealt in
    turn: as many switches have the kind of the longest of them as fill whole modules above.
    """
    n_below, n_above = carried
    in_end, there = above
    together = next(
        (
            n
            for n in range(1, n_above + 1)
            if links % in_end == 0 and n * links // in_end % n_above == 0
        ),
        1 if n_above == 1 else len(ways),
    )
    counts = Counter[int]()
    for start in range(0, len(ways), together):
        alike = ways[start : start + together]
        counts[-min(way_m for _, way_m in alike)] += sum(comes <= stage for comes, _ in alike)
    needs = []
    for length_m, number in (+counts).items():
        quotient, rest = divmod(number * links, there)
        modules = (there - rest) * ceil_ratio(quotient, n_above) + rest * ceil_ratio(
            quotient + 1, n_above
        )
        needs.append(
            Need(
                length_m,
                times * number * links,
                times * number * ceil_ratio(links, n_below),
                times * modules,
            )
        )
    return needs
