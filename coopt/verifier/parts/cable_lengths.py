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


class Places(NamedTuple):
    """Racks of domains amid which the switches of one network stand, and so many of them at each
    place of a tier.
    """

    leaves: list[int]
    pods: list[int]
    core: int
    spines: int
    cores: int


def lengths_needed(instance: Instance, line: Line, choices: Choices) -> Needs:
    """The cables of each level by the length that they need, in each stage of a network."""
    rows, end = instance.network.hall, line[-1]
    family, ports, racks_each = end.family, end.with_up(end.uplinks[-1]), end.family.hb.racks
    assert racks_each is not None, "the racks of a domain are known where cables follow the hall"
    carried = [family.network.carried(ends[0]) for ends in choices]
    rack_of = [
        int(domain * racks_each + max(0.0, racks_each - 1) / 2) for domain in range(family.domains)
    ]
    domains_below = _domains_below(family, ports)
    below_leaf = [[rack_of[domain] for domain in domains] for domains in domains_below]
    places = _places(family, ports, below_leaf, rows)
    domain_at, switch_at = _line(instance, family, ports, carried, places, max(rack_of) + 1)

    def sold(one: int, other: int) -> int:
        length_m = _between_m(rows, one, other)
        return next((m for m in SOLD_M if m >= length_m), 1000 * ceil(length_m / 1000))

    networked = [stage for stage in line if stage.family.attachment is not None]
    # each domain comes with the first of these that has it
    arrives = [
        next(n for n, stage in enumerate(networked) if domain < stage.family.domains)
        for domain in range(family.domains)
    ]
    leaf_arrives = [min(arrives[domain] for domain in domains) for domains in domains_below]
    down = [
        sorted(
            (arrives[domain], -sold(domain_at[rack_of[domain]], switch_at[0, place]))
            for domain in domains
        )
        for domains, place in zip(domains_below, places.leaves, strict=True)
    ]
    up = list[list[tuple[int, int]]]()
    size = ports.pod_leaves if ports.tiers == 3 else len(below_leaf)
    for number, pod in enumerate(places.pods):
        of_pod = range(number * size, min((number + 1) * size, len(below_leaf)))
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
    for number, stage in enumerate(networked):
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
    family: DesignFamily,
    ports: Ports,
    carried: Sequence[tuple[int, int]],
    places: Places,
    racks: int,
) -> tuple[dict[int, int], dict[tuple[int, int], int]]:
    """The spots of racks of domains along the rows, and of the switches of a tier (from 0) that are
    amid a rack.
    """
    network, rows = family.network, instance.network.hall
    boxes = [network.at(tier) for tier in range(1, ports.tiers + 1)]
    amid = [places.leaves, places.pods, [places.core]][: ports.tiers]
    if not all(box.rack_units for box in boxes):
        spots = {(level, rack): rack for level, of in enumerate(amid) for rack in of}
        return {rack: rack for rack in range(racks)}, spots
    watts = _watts(instance, family, ports, carried)
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


def _watts(
    instance: Instance, family: DesignFamily, ports: Ports, carried: Sequence[tuple[int, int]]
) -> list[float]:
    """What a switch of each tier draws at most with the modules in it (W)."""
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
