"""Where switches stand in a hall, and how long cables are (docs/network.md)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from coopt.instance.hardware import Optic
from coopt.instance.network import Hall, HallRows, NetworkHallRows
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance
from coopt.network.family import Family, Ints, TierChain
from coopt.network.optics import core_optic
from coopt.network.parts import end_modules

LENGTHS_M = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000)
"""Lengths that cables and fibres are sold in; a longer one is cut to whole kilometres."""

Lengths = Counter[int]

Place = tuple[int, int]
"""The rack of domains amid which switches stand, and their tier."""


@dataclass(frozen=True, kw_only=True)
class Switches:
    """So many switches of one tier at one place, the rack units of each and the watts, with the
    optics in it.
    """

    place: Place
    count: int
    units: float
    w: float


@dataclass(frozen=True, kw_only=True)
class SwitchRacks:
    """Racks of switches: the rack of domains after which each stands, the one in which those of a
    place are, and what the fullest draws with the optics in it (W).
    """

    after: tuple[int, ...]
    holding: dict[Place, int]
    most_w: float

    def spot(self, rack: int) -> int:
        """Where a rack of domains stands, counted along the rows."""
        return rack + bisect_left(self.after, rack)

    def spot_of(self, place: Place) -> int:
        """Where the switches of a place stand: in the middle one of their racks, or amid domains
        without any.
        """
        if place not in self.holding:
            return self.spot(place[0])
        rack = self.holding[place]
        return self.after[rack] + 1 + rack

    @property
    def spots(self) -> frozenset[int]:
        """Where the racks of switches stand."""
        return frozenset(after + 1 + rack for rack, after in enumerate(self.after))


@dataclass(frozen=True, kw_only=True)
class SwitchBox:
    """Rack units of a switch, None where nobody knows them, and its watts with the optics in it."""

    units: float | None
    w: float


class PlacedLeaves(NamedTuple):
    """Links of NICs by leaf of a network and by the rack of their domain, and the rack amid which
    each of these leaves stands.
    """

    ends: Mapping[int, Counter[int]]
    amid: Mapping[int, int]


@dataclass(frozen=True, kw_only=True)
class Placing:
    """A chain in its hall: links of NICs by leaf of a network and by the rack of their domain, the
    racks amid which the switches of each tier stand (leaves, those of a pod, cores), and the racks
    that switches fill; none where some have no height.
    """

    chain: TierChain
    hall: Hall
    ends: Mapping[int, Counter[int]]
    amid: Sequence[Sequence[int]]
    switch_racks: SwitchRacks

    def spot(self, level: int, number: int) -> int:
        """The spot of a leaf (level 0), of the spines of a pod (1) or of the cores (2)."""
        return self.switch_racks.spot_of((self.amid[level][number], level))

    def sold_m(self, spot: int, other: int) -> int:
        """The length on sale of a cable between two spots (m)."""
        return sold_m(self.hall.cable_m(spot, other))

    def leaf_lengths(self, leaf: int, ends: Mapping[int, int]) -> Lengths:
        """Cables of a leaf down to so many end points in each rack by length (m)."""
        to, lengths = self.spot(0, leaf), Lengths()
        for rack, links in ends.items():
            lengths[self.sold_m(self.switch_racks.spot(rack), to)] += links
        return lengths

    def leaf_up_m(self, leaf: int, pod: int) -> int:
        """The length of the cables from a leaf to the spines of a pod (m)."""
        return self.sold_m(self.spot(0, leaf), self.spot(1, pod))

    def pod_up_m(self, pod: int) -> int:
        """The length of the cables from the spines of a pod to the cores (m)."""
        return self.sold_m(self.spot(1, pod), self.spot(2, 0))

    def cables(self, end: Placing, becomes: Sequence[int]) -> tuple[Lengths, ...]:
        """Cables of each tier over all networks by the length they are sold in (m).

        Parameters
        ----------
        end
            What the chain grows into, where its switches stand already; itself where it does not
            grow.
        becomes
            The number of each leaf there.
        """
        chain, lengths = self.chain, [Lengths() for _ in self.amid]
        pod_of = {leaf: n for n, (_, of) in enumerate(end.chain.each_pod()) for leaf in of}
        for leaf, ends in self.ends.items():
            for length_m, count in end.leaf_lengths(becomes[leaf], ends).items():
                lengths[0][length_m] += count * chain.networks
        for pod, of_pod in chain.each_pod():
            for leaf in (becomes[one] for one in of_pod):
                lengths[1][end.leaf_up_m(leaf, pod_of[leaf])] += chain.uplinks * chain.networks
            if chain.cores:
                length_m = end.pod_up_m(pod_of[becomes[of_pod[0]]])
                lengths[2][length_m] += pod.spines * pod.up * chain.networks
        return tuple(lengths)


def placed_leaves(hall: Hall, leaf_numbers: NDArray[np.int64]) -> PlacedLeaves:
    """Leaves amid their end points.

    Parameters
    ----------
    leaf_numbers
        The leaf of every end point of one network, as all of them lie alike; shape (end points of a
        domain, domains).
    """
    rack = np.array([hall.rack_of(domain) for domain in range(leaf_numbers.shape[1])])
    width = int(rack.max(initial=0)) + 1
    # Leaf and rack as one number, which is counted at once for all end points.
    pairs, counts = np.unique(leaf_numbers * width + rack, return_counts=True)
    ends: dict[int, Counter[int]] = {}
    for leaf, rack_below, count in zip(*divmod(pairs, width), counts, strict=True):
        ends.setdefault(int(leaf), Counter())[int(rack_below)] += int(count)
    return PlacedLeaves(ends, {leaf: amid_rack(racks, hall) for leaf, racks in ends.items()})


def placed(
    chain: TierChain, hall: Hall, below: PlacedLeaves, boxes: Sequence[SwitchBox]
) -> Placing:
    """A chain in a hall: a switch stands amid what hangs below it, spines amid the leaves of their
    pod, cores amid the pods.

    Parameters
    ----------
    boxes
        The switch of each tier; none where one domain holds everything.
    """
    if not boxes:
        empty = switch_racks((), hall)
        return Placing(chain=chain, hall=hall, ends={}, amid=[], switch_racks=empty)
    # where leaves stand that no end point needs yet
    amid_all = amid_rack(Counter(below.amid.values()), hall)
    leaves = [below.amid.get(leaf, amid_all) for leaf in range(chain.leaves)]
    pods = [amid_rack(Counter(leaves[leaf] for leaf in of), hall) for _, of in chain.each_pod()]
    cores = [amid_rack(Counter(pods), hall, first=False)] if pods else []
    amid = [leaves, pods, cores][: len(boxes)]
    has_heights = all(box.units for box in boxes)
    switches = _switches(chain, boxes, amid) if has_heights else ()
    return Placing(
        chain=chain,
        hall=hall,
        ends=below.ends,
        amid=amid,
        switch_racks=switch_racks(switches, hall),
    )


def _switches(
    chain: TierChain, boxes: Sequence[SwitchBox], amid: Sequence[Sequence[int]]
) -> Iterator[Switches]:
    """The switches of all networks by place."""
    spines = [pods.spines for pods, _ in chain.each_pod()]
    for level, (tier, box, middle) in enumerate(zip(chain.levels, boxes, amid, strict=True)):
        places = Counter[int]()
        for rack, count in zip(middle, spines if level == 1 else [1] * len(middle), strict=True):
            places[rack] += count
        assert box.units is not None, "halls without heights have no racks of switches"
        # all networks stand at the same places, so that each has as many switches of each
        per_place = tier.switches // places.total()
        for rack, count in places.items():
            yield Switches(place=(rack, level), count=per_place * count, units=box.units, w=box.w)


def sold_m(length_m: float) -> int:
    """The shortest length on sale that is long enough (m)."""
    place = bisect_left(LENGTHS_M, length_m)
    return LENGTHS_M[place] if place < len(LENGTHS_M) else math.ceil(length_m / 1000) * 1000


def amid_rack(racks: Counter[int], rows: HallRows, *, first: bool = True) -> int:
    """The rack to which cables from racks are the shortest in all: the middle of their rows, and of
    their places in these; of several the first, or the one in their midst.
    """
    row_of, place_of = Counter[int](), Counter[int]()
    for rack, links in racks.items():
        row, place = divmod(rack, rows.racks_per_row)
        row_of[row] += links
        place_of[place] += links
    row, place = (_middle(spots.items(), first=first) for spots in (row_of, place_of))
    return min(row * rows.racks_per_row + place, max(racks))  # a last row may end before


def _middle(spots: Iterable[tuple[int, int]], *, first: bool = True) -> int:
    """The middle of spots by how many are at each; where those before and behind are as many, that
    before or what lies between.
    """
    ordered = sorted(spots)
    half, before = sum(count for _, count in ordered) / 2, 0
    for (spot, count), (behind, _) in zip(ordered, [*ordered[1:], (0, 0)], strict=True):
        before += count
        if before >= half:
            return spot if first or before > half else (spot + behind) // 2
    return 0


def switch_racks(switches: Iterable[Switches], rows: NetworkHallRows) -> SwitchRacks:
    """Racks that hold the units and watts of a hall, filled place after place along the rows, from
    the leaves up.

    A rack takes switches as long as there is room, one in any case, and stands after the middle one
    of their places.
    """
    watts = math.inf if rows.switch_rack_kw is None else 1e3 * rows.switch_rack_kw
    filled: list[Counter[Place]] = []
    racks_w: list[float] = []
    # no rack is open yet
    room = 0.0, 0.0
    for group in sorted(switches, key=lambda switch: switch.place):
        remaining = group.count
        while remaining:
            if _room(group, *room) < 1:
                filled.append(Counter())
                racks_w.append(0.0)
                room = rows.switch_rack_units, watts
            number = min(remaining, max(1, _room(group, *room)))
            filled[-1][group.place] += number
            racks_w[-1] += number * group.w
            room, remaining = (
                (room[0] - number * group.units, room[1] - number * group.w),
                remaining - number,
            )
    racks_of_places: dict[Place, Counter[int]] = {}
    for rack, places in enumerate(filled):
        for place, count in places.items():
            racks_of_places.setdefault(place, Counter())[rack] += count
    return SwitchRacks(
        after=tuple(
            _middle((rack, count) for (rack, _), count in places.items()) for places in filled
        ),
        holding={place: _middle(count.items()) for place, count in racks_of_places.items()},
        most_w=max(racks_w, default=0.0),
    )


def _room(switches: Switches, units: float, watts: float) -> int:
    """How many of some switches so many units and watts are enough for."""
    return int(min(units / switches.units, watts / switches.w if switches.w else math.inf) + EQUAL)


def _hall_of(instance: Instance, family: Family) -> Hall:
    """The hall of a network, with the racks of its domains."""
    assert family.hb.racks is not None, "the racks of a domain are known"
    rows = instance.network.hall
    return Hall(
        racks_per_domain=family.hb.racks,
        **{key: getattr(rows, key) for key in NetworkHallRows.model_fields},
    )


def leaves_of(instance: Instance, family: Family) -> PlacedLeaves:
    """Where the leaves of a network stand, whatever their uplinks."""
    numbers = leaf_numbers(family) if family.tiers else np.empty((0, 0), dtype=np.int64)
    return placed_leaves(_hall_of(instance, family), numbers)


def placing_of(
    instance: Instance, family: Family, uplinks: int, below: PlacedLeaves | None = None
) -> Placing:
    """A network in its hall; a leaf bears the modules of links into a core as well.

    Parameters
    ----------
    below
        Its `leaves_of`, where these are known already.
    """
    chain, ends_w = family.chain(uplinks), [*_ends_w(instance, family, uplinks), (0.0, 0.0)]
    tiers = zip(chain.levels, family.switches, pairwise(ends_w), strict=True)
    boxes = [
        SwitchBox(
            units=box.rack_units,
            # Modules are shared out evenly, as the switches of a tier are alike.
            w=box.w
            + (below_w + up_w + (0.0 if level else core_ends_w(instance, family))) / tier.switches,
        )
        for level, (tier, box, ((_, below_w), (up_w, _))) in enumerate(tiers)
    ]
    below = below or leaves_of(instance, family)
    return placed(chain, _hall_of(instance, family), below, boxes)


def core_ends_w(instance: Instance, family: Family) -> float:
    """Power of the modules at the lower ends of links into a core (W)."""
    end = family.core_end or core_optic(instance)
    return 0.0 if end is None else family.core_modules * end.w


def _ends_w(instance: Instance, family: Family, uplinks: int) -> list[tuple[float, float]]:
    """Power of the modules at the lower and at the upper ends of the links of each level (W)."""
    ends = zip(end_modules(family, family.chain(uplinks)), family.optics, strict=True)
    return [
        (
            count.below * _end_w(instance, family, pair.below),
            count.above * _end_w(instance, family, pair.above),
        )
        for count, pair in ends
    ]


def _end_w(instance: Instance, family: Family, optic: Optic) -> float:
    """Power of a module (W); where lengths choose cables, which follow from where switches stand,
    of the hottest one listed that carries as many links: racks have room for any.
    """
    if instance.network.cables == "tier":
        return optic.w
    carried = optic.links_of(family.link_gbit_s)
    optics = instance.network.optics
    return max(other.w for other in optics if other.links_of(family.link_gbit_s) == carried)


def leaf_numbers(family: Family) -> Ints:
    """The leaf of every NIC of one plane; shape (rails of a domain in the plane, HB domains)."""
    rails, domains = family.nics_of_domain // family.planes, family.domains
    rail, domain = np.indices((rails, domains))
    if family.fabric == "clos":
        return np.asarray((domain * rails + rail) // family.down, dtype=np.int64)
    rails_of_leaf, span = family.leaf_block
    # where leaves take turns in the rails of a domain, neighbours are on different ones
    group = rail % family.rail_groups if span < domains else rail // rails_of_leaf
    return np.asarray(group * -(-domains // span) + domain // span, dtype=np.int64)
