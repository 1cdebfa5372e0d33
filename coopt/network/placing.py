"""Where switches stand in a hall, and how long cables are (docs/network.md)."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from coopt.instance.hardware import Optic
from coopt.instance.network import Hall, HallRows, NetworkHallRows
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance, SwitchedKind
from coopt.network.cores import core_optic
from coopt.network.family import Family, Ints, TierChain
from coopt.network.parts import end_modules

LENGTHS_M = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000)
"""Lengths that cables and fibres are sold in; a longer one is cut to whole kilometres."""

Lengths = Counter[int]

Place = tuple[int, int]
"""The rack of domains amid which switches stand, and their tier."""


class Bay(NamedTuple):
    """Where an island stands beside the others that its core joins: its number, of so many."""

    number: int = 0
    of: int = 1


SINGLE_BAY = Bay()
"""Where nothing stands beside it."""


def bay_of(instance: Instance, workload: str) -> Bay:
    """The bay of an island: each workload has its own, in the order of the question."""
    if instance.sharing.mode == "time" or instance.sharing.core is None:
        return SINGLE_BAY
    names = [one.name for one in instance.workload]
    return Bay(names.index(workload), len(names))


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
    """Bundles of `links` from NICs in a rack of domains to a leaf of one network, all of the same
    wave, and the rack amid which each leaf of these, by its `number`, stands.
    """

    leaf: Ints
    rack: Ints
    wave: Ints
    links: Ints
    number: Ints
    amid: Ints


@dataclass(frozen=True, kw_only=True)
class Placing:
    """A chain in its hall: links of NICs below its leaves, the racks amid which the switches of
    each tier stand (leaves, those of a pod, cores), and the racks that switches fill; none where
    some have no height.
    """

    chain: TierChain
    hall: Hall
    below: PlacedLeaves
    amid: Sequence[Ints]
    switch_racks: SwitchRacks

    @cached_property
    def spots(self) -> tuple[Ints, ...]:
        """The spots of the leaves, of the spines of each pod and of the cores."""
        of_level = (np.unique(racks, return_inverse=True) for racks in self.amid)
        return tuple(
            np.array([self.switch_racks.spot_of((rack, level)) for rack in racks.tolist()])[at]
            for level, (racks, at) in enumerate(of_level)
        )

    def spot(self, level: int, number: int) -> int:
        """The spot of a leaf (level 0), of the spines of a pod (1) or of the cores (2)."""
        return int(self.spots[level][number])

    def down_m(self, leaves: Ints, racks: Ints) -> Ints:
        """The lengths of cables from leaves down to NICs in racks of domains (m)."""
        spots = racks + np.searchsorted(self.switch_racks.after, racks)
        return self._sold_m(spots, self.spots[0][leaves])

    def leaf_up_m(self, leaves: Ints, pods: Ints) -> Ints:
        """The lengths of cables from leaves to the spines of pods (m)."""
        return self._sold_m(self.spots[0][leaves], self.spots[1][pods])

    def pod_up_m(self, pods: Ints) -> Ints:
        """The lengths of cables from the spines of pods to the cores (m)."""
        return self._sold_m(self.spots[1][pods], self.spots[2][:1])

    def _sold_m(self, spots: Ints, others: Ints) -> Ints:
        return np.asarray(sold_m(self.hall.cable_m(spots, others)), dtype=np.int64)

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
        chain, grown, below = self.chain, np.array(becomes, dtype=np.int64), self.below
        ways = [(end.down_m(grown[below.leaf], below.rack), below.links)] if self.amid else []
        if chain.pods:
            pods = end.chain.pod_of_leaf[grown]
            ways.append((end.leaf_up_m(grown, pods), np.full(len(grown), chain.uplinks)))
        if chain.cores:
            of_pod = [(leaves.start, pod.spines * pod.up) for pod, leaves in chain.each_pod()]
            first, links = np.array(of_pod).T
            ways.append((end.pod_up_m(pods[first]), links))
        return tuple(_by_length(*way, chain.networks) for way in ways)


def to_core_m(rows: HallRows, spots: Any, bay: Bay) -> Any:
    """The lengths of cables from spots of an island to its core, in the middle of the row before
    all bays (m); numbers or arrays.
    """
    row, place = np.divmod(spots, rows.racks_per_row)
    width = bay.of * rows.racks_per_row
    wide = rows.model_copy(update={"racks_per_row": width})
    spots_of_all = (row + 1) * width + bay.number * rows.racks_per_row + place
    return sold_m(wide.cable_m(spots_of_all, (width - 1) // 2))


def _by_length(lengths_m: Ints, links: Ints, times: int) -> Lengths:
    """So many times as many cables by their length (m)."""
    sold, at = np.unique(lengths_m, return_inverse=True)
    counts = np.zeros(len(sold), dtype=np.int64)
    np.add.at(counts, at, links)
    return Lengths(dict(zip(sold.tolist(), (times * counts).tolist(), strict=True)))


def placed_leaves(
    hall: Hall, leaf_numbers: NDArray[np.int64], waves: Sequence[int] = ()
) -> PlacedLeaves:
    """Leaves amid their end points.

    Parameters
    ----------
    leaf_numbers
        The leaf of every end point of one network, as all of them lie alike; shape (end points of a
        domain, domains).
    waves
        Domains with which each wave but the last ends.
    """
    domains = np.arange(leaf_numbers.shape[1])
    rack = np.array([hall.rack_of(domain) for domain in domains.tolist()])
    width = int(rack.max(initial=0)) + 1
    # Leaf, rack and wave as one number, which is counted at once for all end points.
    wave = np.searchsorted(waves, domains, side="right")
    spots = (leaf_numbers * width + rack) * (len(waves) + 1) + wave
    numbers, links = np.unique(spots, return_counts=True)
    pairs, wave_of_bundle = np.divmod(numbers, len(waves) + 1)
    leaf, racks = np.divmod(pairs, width)
    number, at = np.unique(leaf, return_inverse=True)
    amid = amid_racks(at, racks, links, hall) if len(number) else number
    return PlacedLeaves(leaf, racks, wave_of_bundle, links, number, amid)


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
        return Placing(chain=chain, hall=hall, below=below, amid=[], switch_racks=empty)
    # where leaves stand that no end point needs yet
    amid_all = _amid_all(below.amid, hall)
    leaves = np.full(chain.leaves, amid_all)
    leaves[below.number] = below.amid
    amid = [leaves]
    if chain.pods:
        pods = amid_racks(chain.pod_of_leaf, leaves, np.ones_like(leaves), hall)
        amid += [pods, np.array([_amid_all(pods, hall, first=False)])]
    amid = amid[: len(boxes)]
    has_heights = all(box.units for box in boxes)
    switches = _switches(chain, boxes, amid) if has_heights else ()
    return Placing(
        chain=chain, hall=hall, below=below, amid=amid, switch_racks=switch_racks(switches, hall)
    )


def _amid_all(racks: Ints, hall: Hall, *, first: bool = True) -> int:
    """The rack amid all of some."""
    together = amid_racks(np.zeros_like(racks), racks, np.ones_like(racks), hall, first=first)
    return int(together[0])


def _switches(
    chain: TierChain, boxes: Sequence[SwitchBox], amid: Sequence[Ints]
) -> Iterator[Switches]:
    """The switches of all networks by place."""
    spines = [pods.spines for pods, _ in chain.each_pod()]
    for level, (tier, box, middle) in enumerate(zip(chain.levels, boxes, amid, strict=True)):
        places = np.bincount(middle, weights=spines if level == 1 else None).astype(np.int64)
        assert box.units is not None, "halls without heights have no racks of switches"
        # all networks stand at the same places, so that each has as many switches of each
        per_place = tier.switches // int(places.sum())
        for rack in np.flatnonzero(places).tolist():
            count = per_place * int(places[rack])
            yield Switches(place=(rack, level), count=count, units=box.units, w=box.w)


def sold_m(length_m: Any) -> Any:
    """The shortest length on sale that is long enough (m), whole kilometres beyond the longest;
    numbers or arrays.
    """
    sold = np.array(LENGTHS_M)[np.searchsorted(LENGTHS_M[:-1], length_m)]
    kilometres = np.ceil(np.divide(length_m, 1000)).astype(np.int64)
    return np.where(length_m <= sold, sold, 1000 * kilometres)[()]


def amid_racks(
    group: Ints, racks: Ints, links: Ints, rows: HallRows, *, first: bool = True
) -> Ints:
    """The rack of each group to which cables from its racks are the shortest in all: the middle of
    their rows, and of their places in these; of several the first, or the one in their midst.

    Parameters
    ----------
    group
        The number of the group that each bundle of links belongs to; none is without any.
    """
    row, place = (
        _middles(group, spots, links, first=first) for spots in np.divmod(racks, rows.racks_per_row)
    )
    last_rack = np.zeros_like(row)
    np.maximum.at(last_rack, group, racks)
    # a last row may end before
    return np.asarray(np.minimum(row * rows.racks_per_row + place, last_rack))


def _middles(group: Ints, spots: Ints, links: Ints, *, first: bool) -> Ints:
    """The middle of the spots of each group by the links there; where those before and behind are
    as many, that before or what lies between.
    """
    order = np.lexsort((spots, group))
    spots, passed = spots[order], np.cumsum(links[order])
    last = np.flatnonzero(np.diff(group[order], append=-1))
    before = np.insert(passed[last[:-1]], 0, 0)
    links_of_group = passed[last] - before
    at = np.searchsorted(passed, before + -(-links_of_group // 2))
    if first:
        return np.asarray(spots[at])
    half = 2 * (passed[at] - before) == links_of_group
    return np.asarray((spots[at] + spots[at + half]) // 2)


def _middle(spots: Iterable[tuple[int, int]]) -> int:
    """The middle of spots by how many are at each; the former of two."""
    ordered = sorted(spots)
    half, before = sum(count for _, count in ordered) / 2, 0
    for spot, count in ordered:
        before += count
        if before >= half:
            return spot
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


@lru_cache(maxsize=128)
def _leaves_of(hall: Hall, ends: LeafEnds) -> PlacedLeaves:
    return placed_leaves(hall, ends.leaves, ends.waves)


class PlacedChain(NamedTuple):
    """All that decides where the switches of a network stand in a hall."""

    chain: TierChain
    hall: Hall
    ends: LeafEnds
    boxes: tuple[SwitchBox, ...]

    @classmethod
    def of(cls, instance: Instance, family: Family, uplinks: int) -> PlacedChain:
        """That of a network; a leaf bears the modules of links into a core as well."""
        chain, ends_w = family.chain(uplinks), [*_ends_w(instance, family, uplinks), (0.0, 0.0)]
        tiers = zip(chain.levels, family.switches, pairwise(ends_w), strict=True)
        boxes = tuple(
            SwitchBox(
                units=box.rack_units,
                # Modules are shared out evenly, as the switches of a tier are alike.
                w=box.w
                + (below_w + up_w + (0.0 if level else core_ends_w(instance, family)))
                / tier.switches,
            )
            for level, (tier, box, ((_, below_w), (up_w, _))) in enumerate(tiers)
        )
        return cls(chain, _hall_of(instance, family), LeafEnds.of(family), boxes)

    def placed(self) -> Placing:
        """The network in its hall."""
        return placed(self.chain, self.hall, _leaves_of(self.hall, self.ends), self.boxes)


def placing_of(instance: Instance, family: Family, uplinks: int) -> Placing:
    """A network in its hall."""
    return PlacedChain.of(instance, family, uplinks).placed()


def core_ends_w(instance: Instance, family: Family) -> float:
    """Power of the modules at the lower ends of links into a core (W)."""
    end = family.core_end or core_optic(instance)
    return (
        0.0 if end is None else family.core_modules * hottest_w(instance, end, family.link_gbit_s)
    )


def _ends_w(instance: Instance, family: Family, uplinks: int) -> list[tuple[float, float]]:
    """Power of the modules at the lower and at the upper ends of the links of each level (W)."""
    ends = zip(end_modules(family, family.chain(uplinks)), family.optics, strict=True)
    return [
        (
            count.below * hottest_w(instance, pair.below, family.link_gbit_s),
            count.above * hottest_w(instance, pair.above, family.link_gbit_s),
        )
        for count, pair in ends
    ]


def hottest_w(instance: Instance, optic: Optic, gbit_s: float) -> float:
    """Power of a module for links of a rate (W); where lengths choose cables, which follow from
    where switches stand, of the hottest one listed that carries as many: racks have room for any.
    """
    if instance.network.cables == "tier":
        return optic.w
    carried, optics = optic.links_of(gbit_s), instance.network.optics
    return max(other.w for other in optics if other.links_of(gbit_s) == carried)


class LeafEnds(NamedTuple):
    """What the leaf of an end point depends on: rails of a domain in a plane, domains, and how many
    end points and domains a leaf has; and the `waves` in which domains come.
    """

    fabric: SwitchedKind
    tiers: int
    rails: int
    domains: int
    down: int
    span: int
    waves: tuple[int, ...] = ()

    @classmethod
    def of(cls, family: Family) -> LeafEnds:
        """Those of a family."""
        rails = family.nics_of_domain // family.planes
        counts = family.domains, family.down, family.leaf_span
        return cls(family.fabric, family.tiers, rails, *counts, family.waves)

    @property
    def leaves(self) -> Ints:
        """The leaf of every NIC of one plane; shape (rails, domains)."""
        if not self.tiers:
            return np.empty((0, 0), dtype=np.int64)
        rail, domain = np.indices((self.rails, self.domains))
        if self.fabric == "clos":
            return np.asarray((domain * self.rails + rail) // self.down, dtype=np.int64)
        rails_of_leaf = self.down // self.span
        rail_groups = -(-self.rails // rails_of_leaf)
        # where leaves take turns in the rails of a domain, neighbours are on different ones
        group = rail % rail_groups if self.span < self.domains else rail // rails_of_leaf
        return np.asarray(group * -(-self.domains // self.span) + domain // self.span, np.int64)


def leaf_numbers(family: Family) -> Ints:
    """The leaf of every NIC of one plane; shape (rails of a domain in the plane, HB domains)."""
    return LeafEnds.of(family).leaves
