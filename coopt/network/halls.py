"""Where the racks of a network stand, what they draw, and how long its cables are
(docs/network.md).

Switches stand amid racks of domains, or in racks of their own. Islands share a hall with the core
that joins them.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from coopt.instance.hardware import Gpu, Optic
from coopt.instance.network import Hall, NetworkHallRows
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance
from coopt.instance.texts import both, counted
from coopt.network.family import Family, TierChain, levels
from coopt.network.optics import core_optic
from coopt.network.parts import end_modules, racks
from coopt.network.plan_networks import PartNetwork, part_network
from coopt.network.space import leaf_numbers
from coopt.plan.couplings import Part, SharedCore
from coopt.plan.schema import Plan

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
                lengths[2][end.sold_m(spine, end.spot(2, 0))] += (
                    pod.spines * pod.up * chain.networks
                )
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
    return SwitchRacks(
        after=tuple(
            median_rack(
                sum((Counter({rack: n}) for (rack, _), n in places.items()), Counter[int]())
            )
            for places in filled
        ),
        holding={place: median_rack(count) for place, count in racks_of_places.items()},
        most_w=max(racks_w, default=0.0),
    )


def _room(switches: Switches, units: float, watts: float) -> int:
    """How many of some switches so many units and watts are enough for."""
    return int(min(units / switches.units, watts / switches.w if switches.w else math.inf) + EQUAL)


@dataclass(frozen=True, kw_only=True)
class NetworkHall:
    """A network in its hall: racks of domains, W of each (`with_hosts` where those of servers are
    known) and of all, `cables[level]` by the length they are sold in, and where switches stand: in
    `switch_racks` of their own, of which the fullest draws `switch_rack_w`, or amid domains where
    nobody knows how many racks they fill (None). `to_core` are the links that lead into a core by
    the spot where they start.
    """

    hall: Hall
    racks: int
    switch_racks: int | None
    switch_rack_w: float
    rack_w: float
    with_hosts: bool
    w: float
    cables: tuple[Lengths, ...]
    amid: frozenset[int]
    to_core: Counter[int]

    @property
    def all_racks(self) -> int:
        """Racks that stand in the rows."""
        return self.racks + (self.switch_racks or 0)

    @property
    def rows(self) -> int:
        """Rows of racks."""
        return -(-self.all_racks // self.hall.racks_per_row)

    @property
    def sides_m(self) -> tuple[float, float]:
        """Along a row and across the rows (m)."""
        along = min(self.all_racks, self.hall.racks_per_row) * self.hall.rack_pitch_m
        return along, self.rows * self.hall.row_pitch_m


def network_hall(
    instance: Instance, family: Family, uplinks: int, grown: tuple[Family, int] | None = None
) -> NetworkHall | None:
    """The racks of a network in rows, in the order of domains; None without a network, where one
    domain holds everything, and where nobody knows what a domain fills.

    A switch stands amid what hangs below it, as in designs (docs/designs.md), in a rack for
    switches where all have a height. Watts are those of all that is installed, whatever the
    objective counts: GPUs that train and idle ones, domains with their hosts, NICs, switches and
    optics.

    Parameters
    ----------
    grown
        What the network grows into, with its uplinks: cables then lead to where switches stand in
        the end, so that those of a phase are among those of the next.
    """
    return island_hall(instance, family, uplinks, grown) if family.tiers else None


def island_hall(
    instance: Instance, family: Family, uplinks: int, grown: tuple[Family, int] | None = None
) -> NetworkHall | None:
    """The racks of an island in rows, as `network_hall` places them; a single domain has a hall as
    well.
    """
    count, hb = racks(family), family.hb
    if count is None or hb.racks is None:
        return None
    placing = placing_of(instance, family, uplinks)
    # Cables are laid once: they lead to where switches stand when the network has grown, and so
    # keep their lengths.
    end, becomes = placing, list(range(family.leaves))
    if grown is not None:
        end = placing_of(instance, *grown)
        becomes = grown_numbers(family, grown[0]) if family.tiers else []
    has_heights = all(switch.rack_units for switch in family.switches)
    own_racks = placing.switch_racks
    racks_w = _racks_w(instance.cluster.gpu, family)
    return NetworkHall(
        hall=placing.hall,
        racks=count,
        switch_racks=len(own_racks.after) if has_heights else None,
        switch_rack_w=own_racks.most_w,
        rack_w=racks_w / count,
        with_hosts=hb.host_w_per_gpu is not None,
        w=racks_w + _network_w(instance, family, uplinks),
        cables=placing.cables(end, becomes),
        amid=(
            own_racks.spots
            if has_heights
            else frozenset(rack for tier in placing.amid[:2] for rack in tier)
        ),
        to_core=_to_core(family, end, becomes),
    )


def placing_of(instance: Instance, family: Family, uplinks: int) -> Placing:
    """A network in its hall; a leaf bears the modules of links into a core as well."""
    assert family.hb.racks is not None, "the racks of a domain are known"
    rows = instance.network.hall
    hall = Hall(
        racks_per_domain=family.hb.racks,
        **{key: getattr(rows, key) for key in NetworkHallRows.model_fields},
    )
    chain, ends_w = family.chain(uplinks), [*_ends_w(family, uplinks), (0.0, 0.0)]
    tiers = zip(chain.levels, family.switches, pairwise(ends_w), strict=True)
    boxes = [
        SwitchBox(
            units=box.rack_units,
            # Modules are shared out evenly, as the switches of a tier are alike.
            w=box.w
            + (below_w + up_w + (0.0 if level else _core_ends_w(instance, family))) / tier.switches,
        )
        for level, (tier, box, ((_, below_w), (up_w, _))) in enumerate(tiers)
    ]
    numbers = leaf_numbers(family) if family.tiers else np.empty((0, 0), dtype=np.int64)
    return placed(chain, hall, numbers, boxes)


def _racks_w(gpu: Gpu, family: Family) -> float:
    """What all racks of HB domains draw together, those that stand by too."""
    hb, domains = family.hb, family.domains + family.spare_domains
    domain_w = hb.size * (gpu.w + hb.w_per_gpu + (hb.host_w_per_gpu or 0.0))
    return domain_w * domains + (family.nic_count + family.spare_nics) * family.nic.w


def _network_w(instance: Instance, family: Family, uplinks: int) -> float:
    """Switches and optics (W)."""
    boxes = zip(levels(family, uplinks), family.switches, strict=True)
    ends_w = (*map(sum, _ends_w(family, uplinks)), _core_ends_w(instance, family))
    return math.fsum([*(tier.switches * box.w for tier, box in boxes), *ends_w])


def _core_ends_w(instance: Instance, family: Family) -> float:
    """Power of the modules at the lower ends of links into a core (W)."""
    end = family.core_end or core_optic(instance)
    return 0.0 if end is None else family.core_modules * end.w


def _ends_w(family: Family, uplinks: int) -> list[tuple[float, float]]:
    """Power of the modules at the lower and at the upper ends of the links of each level (W)."""
    ends = zip(end_modules(family, family.chain(uplinks)), family.optics, strict=True)
    return [(count.below * optic.below.w, count.above * optic.above.w) for count, optic in ends]


def _to_core(family: Family, end: Placing, becomes: Sequence[int]) -> Counter[int]:
    """Links into a core by the spot where they start: equally many at each leaf switch, or all at a
    single domain.
    """
    if not family.tiers:
        return +Counter({end.switch_racks.spot(end.hall.rack_of(0)): family.lone_links})
    starts = Counter[int]()
    for leaf in becomes:
        starts[end.spot(0, leaf)] += family.chassis // family.leaves * family.core_ports
    # The plus drops spots where no link starts.
    return +starts


def grown_numbers(family: Family, grown: Family) -> list[int]:
    """The number that each leaf has once the network is grown: end points stay at their leaves
    (docs/phased.md).
    """
    numbers, grown_numbers = leaf_numbers(family), leaf_numbers(grown)
    pairs = dict(
        zip(
            numbers.ravel().tolist(),
            grown_numbers[..., : family.domains].ravel().tolist(),
            strict=True,
        )
    )
    assert len(pairs) == len(set(pairs.values())) == family.leaves, (
        "a leaf that grows stays one leaf"
    )
    return [pairs[leaf] for leaf in range(family.leaves)]


@dataclass(frozen=True, kw_only=True)
class PlacedPart:
    """A part with its network, and where that stands: amid what it grows into, `end_hall`, in the
    same hall.
    """

    network: PartNetwork
    hall: NetworkHall
    end_hall: NetworkHall


PlacedParts = Mapping[str, PlacedPart | None]
"""Parts by their names; None for those that direct links join, or whose racks nobody knows."""


@dataclass(frozen=True, kw_only=True)
class HallBlock:
    """Racks that begin a row: those of an island, or of the core; `amid` are those of switches, or
    amid which these stand, and `rack_w` and `switch_rack_w` what the fullest draws that has domains
    or switches.

    `counted` says whether switches have racks of their own, and not in racks that nobody has
    counted.
    """

    name: str
    first_row: int
    racks: int
    amid: frozenset[int]
    rack_w: float = 0.0
    switch_rack_w: float = 0.0
    counted: bool = True
    is_core: bool = False


@dataclass(frozen=True, kw_only=True)
class SiteHall:
    """What stands at a site in the end: `blocks` row by row, of islands and of the core that they
    may share.
    """

    site: str | None
    grows: bool
    rows: NetworkHallRows
    blocks: tuple[HallBlock, ...]


@dataclass(frozen=True, kw_only=True)
class CoreCables:
    """Cables from a part into the core by the length they are sold in (m), and the modules at both
    of their ends.
    """

    part: Part
    cables: Lengths
    below: Optic
    above: Optic


@dataclass(frozen=True, kw_only=True)
class CoreHall(SiteHall):
    """A core with the islands that it joins, as it stands in a phase among what stands in the end.

    Switches of the core stand in `switch_racks` of their own, of which the fullest draws
    `switch_rack_w`, or nobody knows how many they fill (None).
    """

    coupling: SharedCore
    switch_racks: int | None
    switch_rack_w: float
    links: tuple[CoreCables, ...]

    @property
    def cables(self) -> Lengths:
        """Cables into the core from all islands by length (m)."""
        return sum((link.cables for link in self.links), Lengths())


def last_of_slot(plan: Plan, part: Part) -> Part:
    """What a part is once its network has grown."""
    return next(other for other in reversed(plan.parts) if other.slot == part.slot)


def placed_part(instance: Instance, plan: Plan, part: Part) -> PlacedPart | None:
    """Where a part stands; None where direct links join it, or nobody knows its racks."""
    if part.design is None:
        return None
    network = part_network(instance, plan, "bom", part.name)
    last_part = last_of_slot(plan, part)
    end = network if last_part is part else part_network(instance, plan, "bom", last_part.name)
    hall = end_hall = island_hall(end.question, end.family, end.uplinks)
    if end is not network:
        grown = end.family, end.uplinks
        hall = island_hall(network.question, network.family, network.uplinks, grown)
    if hall is None or end_hall is None:
        return None
    return PlacedPart(network=network, hall=hall, end_hall=end_hall)


def placed_parts(instance: Instance, plan: Plan) -> PlacedParts:
    """Where each part stands, by its name."""
    return {part.name: placed_part(instance, plan, part) for part in plan.parts}


def core_halls(instance: Instance, plan: Plan, parts: PlacedParts) -> Iterator[CoreHall]:
    """The hall of each core that islands share; none of one whose islands fill nobody knows how
    many racks.

    Each island begins a row, in the order of the plan, with the places that it takes in the end. So
    does the core, behind the island with which half of its links have started. Its switches fill
    racks as those of networks do, and cables lead to the middle one of these.
    """
    for coupling in plan.couplings.cores:
        at_site = [part for part in plan.parts if part.site == coupling.site]
        parts_here = {part.name: parts[part.name] for part in at_site}
        known_parts = {name: placed for name, placed in parts_here.items() if placed is not None}
        # Where one island fills nobody knows how many racks, nobody knows where the core stands.
        if len(known_parts) == len(parts_here):
            last_coupling = [
                other for other in plan.couplings.cores if other.site == coupling.site
            ][-1]
            yield _core_hall(instance, coupling, last_coupling, at_site, known_parts)


def core_reach_notes(halls: Iterable[CoreHall]) -> Iterator[str]:
    """Which ends do not reach as far as a hall takes the cables into its core."""
    shortfalls: dict[tuple[str, float], dict[str, Counter[int]]] = {}
    for hall in halls:
        for link in hall.links:
            optic = min((link.below, link.above), key=lambda end: end.reach_m)
            beyond = Counter({m: count for m, count in link.cables.items() if m > optic.reach_m})
            if beyond:
                shortfalls.setdefault((optic.name, optic.reach_m), {})[link.part.name] = beyond
    for (name, reach_m), islands in shortfalls.items():
        cables = sum(islands.values(), Counter[int]())
        yield (
            f"The reach of {name} ({reach_m:g} m) is too short for"
            f" {counted(cables.total(), 'cable')} into the core, from {both(islands)}. Buy optics"
            f" that reach {max(cables):,} m there, or move racks closer together (network.hall)."
        )


def site_halls(instance: Instance, plan: Plan) -> Iterator[SiteHall]:
    """The hall of each site in the end, with the core where islands share one, and without what
    fills nobody knows how many racks.
    """
    parts = placed_parts(instance, plan)
    cores = {hall.coupling.site: hall for hall in core_halls(instance, plan, parts)}
    for site in dict.fromkeys(part.site for part in plan.parts):
        at_site = [part for part in plan.parts if part.site == site]
        parts_here = {part.slot: parts[part.name] for part in at_site if site not in cores}
        end_halls = {
            name: placed.end_hall for name, placed in parts_here.items() if placed is not None
        }
        if site in cores:
            yield cores[site]
        elif end_halls:
            yield SiteHall(
                site=site,
                grows=any(part.phase is not None for part in at_site),
                rows=instance.network.hall,
                blocks=tuple(_blocks(end_halls)),
            )


def _blocks(
    islands: Mapping[str, NetworkHall], core: SwitchRacks | None = None
) -> Iterator[HallBlock]:
    """Islands row by row, and among them the racks of their core."""
    row, passed, half = 0, 0, sum(hall.to_core.total() for hall in islands.values()) / 2
    for name, hall in islands.items():
        yield HallBlock(
            name=name,
            first_row=row,
            racks=hall.all_racks,
            amid=hall.amid,
            rack_w=hall.rack_w,
            switch_rack_w=hall.switch_rack_w,
            counted=hall.switch_racks is not None,
        )
        row += hall.rows
        passed_before, passed = passed, passed + hall.to_core.total()
        # The core stands in the middle of its links, which keeps cables into it short.
        if core is not None and passed_before < half <= passed:
            core_racks = max(1, len(core.after))
            yield HallBlock(
                name="core",
                first_row=row,
                racks=core_racks,
                amid=frozenset(range(core_racks)),
                switch_rack_w=core.most_w,
                counted=bool(core.after),
                is_core=True,
            )
            row += -(-core_racks // hall.hall.racks_per_row)


def _core_hall(
    instance: Instance,
    coupling: SharedCore,
    end_coupling: SharedCore,
    parts: Sequence[Part],
    parts_of: dict[str, PlacedPart],
) -> CoreHall:
    """One core in its hall; the second coupling is what it grows into."""
    rows, end_halls = (
        instance.network.hall,
        {part.slot: parts_of[part.name].end_hall for part in parts},
    )
    racks, last_racks = (
        _core_racks(instance, core_coupling) for core_coupling in (coupling, end_coupling)
    )
    blocks = tuple(_blocks(end_halls, last_racks))
    core = next(block for block in blocks if block.is_core)
    to = core.first_row * rows.racks_per_row + next(iter(last_racks.holding.values()), 0)
    origins = {
        block.name: block.first_row * rows.racks_per_row for block in blocks if not block.is_core
    }
    return CoreHall(
        site=coupling.site,
        grows=coupling.phase is not None,
        coupling=coupling,
        rows=rows,
        blocks=blocks,
        switch_racks=len(racks.after) or None,
        switch_rack_w=racks.most_w,
        links=tuple(
            CoreCables(
                part=part,
                cables=_cables(rows, parts_of[part.name].hall.to_core, origins[part.slot], to),
                below=parts_of[part.name].network.family.core_end or _optic(instance, coupling),
                above=_optic(instance, coupling),
            )
            for part in parts
            if part.phase == coupling.phase
        ),
    )


def _cables(rows: NetworkHallRows, starts: Counter[int], origin: int, to: int) -> Lengths:
    """Cables from the spots of an island, whose rows begin at a spot of the hall, to another
    spot.
    """
    lengths = Lengths()
    for spot, links in starts.items():
        lengths[sold_m(rows.cable_m(origin + spot, to))] += links
    return lengths


def _core_racks(instance: Instance, coupling: SharedCore) -> SwitchRacks:
    """The racks of the switches of a core, each with its share of the modules; none where they have
    no height.
    """
    core, optic = coupling.core, _optic(instance, coupling)
    box = next(switch for switch in instance.network.switches if switch.name == core.switch.name)
    in_module = optic.links_of(box.port_gbit_s)
    modules = sum(-(-island.links // in_module) for island in core.islands)
    if not box.rack_units:
        return switch_racks((), instance.network.hall)
    switches = Switches(
        place=(0, 0),
        count=core.switches,
        units=box.rack_units,
        w=box.w + modules * optic.w / core.switches,
    )
    return switch_racks((switches,), instance.network.hall)


def _optic(instance: Instance, coupling: SharedCore) -> Optic:
    """The optic in a core."""
    return next(optic for optic in instance.network.optics if optic.name == coupling.core.optic)
