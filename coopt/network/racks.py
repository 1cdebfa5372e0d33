"""Where switches stand amid racks of domains, and how long cables between them are
(docs/network.md).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coopt.instance.network import Hall, NetworkHallRows
from coopt.instance.numerics import EQUAL
from coopt.network.chain import TierChain

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
        leaves = [end.spot(0, leaf) for leaf in becomes]
        pod_of = {leaf: n for n, (_, of) in enumerate(end.chain.each_pod()) for leaf in of}
        for leaf, below in self.ends.items():
            for rack, count in below.items():
                length_m = end.sold_m(end.switch_racks.spot(rack), leaves[leaf])
                lengths[0][length_m] += count * chain.networks
        for pod, of_pod in chain.each_pod():
            for leaf in of_pod:
                spine = end.spot(1, pod_of[becomes[leaf]])
                lengths[1][end.sold_m(leaves[leaf], spine)] += chain.uplinks * chain.networks
            if chain.cores:
                spine = end.spot(1, pod_of[becomes[of_pod[0]]])
                up = pod.spines * pod.up * chain.networks
                lengths[2][end.sold_m(spine, end.spot(2, 0))] += up
        return tuple(lengths)


def placed(
    chain: TierChain, hall: Hall, leaf_numbers: NDArray[np.int64], boxes: Sequence[SwitchBox]
) -> Placing:
    """A chain in a hall: a switch stands amid what hangs below it, a leaf amid its end points,
    spines amid the leaves of their pod, cores amid the pods.

    Parameters
    ----------
    leaf_numbers
        The leaf of every end point of one network, as all of them lie alike; shape (end points of a
        domain, domains).
    boxes
        The switch of each tier; none where one domain holds everything.
    """
    if not boxes:
        empty = switch_racks((), hall)
        return Placing(chain=chain, hall=hall, ends={}, amid=[], switch_racks=empty)
    rack = np.array([hall.rack_of(domain) for domain in range(leaf_numbers.shape[1])])
    width = int(rack.max()) + 1
    # Leaf and rack as one number, which is counted at once for all end points.
    pairs, counts = np.unique(leaf_numbers * width + rack, return_counts=True)
    ends: dict[int, Counter[int]] = {}
    for leaf, rack_below, count in zip(*divmod(pairs, width), counts, strict=True):
        ends.setdefault(int(leaf), Counter())[int(rack_below)] += int(count)
    racks = {leaf: median_rack(racks_below) for leaf, racks_below in ends.items()}
    # where leaves stand that no end point needs yet
    amid_all = median_rack(Counter(racks.values()))
    leaves = [racks.get(leaf, amid_all) for leaf in range(chain.leaves)]
    pods = [median_rack(Counter(leaves[leaf] for leaf in of)) for _, of in chain.each_pod()]
    amid = [leaves, pods, [median_rack(Counter(pods))]][: len(boxes)]
    has_heights = all(box.units for box in boxes)
    switches = _switches(chain, boxes, amid) if has_heights else ()
    return Placing(
        chain=chain, hall=hall, ends=ends, amid=amid, switch_racks=switch_racks(switches, hall)
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
    return next((sold for sold in LENGTHS_M if sold >= length_m), math.ceil(length_m / 1000) * 1000)


def median_rack(racks: Counter[int]) -> int:
    """The rack before and after which as many stand."""
    places_before, half = 0, sum(racks.values()) / 2
    for rack in sorted(racks):
        places_before += racks[rack]
        if places_before >= half:
            return rack
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
    after = tuple(median_rack(_by_rack(places)) for places in filled)
    holding = {place: median_rack(count) for place, count in racks_of_places.items()}
    return SwitchRacks(after=after, holding=holding, most_w=max(racks_w, default=0.0))


def _room(switches: Switches, units: float, watts: float) -> int:
    """How many of some switches so many units and watts are enough for."""
    return int(min(units / switches.units, watts / switches.w if switches.w else math.inf) + EQUAL)


def _by_rack(places: Counter[Place]) -> Counter[int]:
    counts = Counter[int]()
    for (rack, _), count in places.items():
        counts[rack] += count
    return counts
