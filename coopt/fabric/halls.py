"""Cables of a design by length, where it says how its racks stand (docs/designs.md), and the modules at their ends."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from coopt.fabric.chain import Block, TierChain, TierLevel, blocks, levels
from coopt.fabric.designs import chain_of, ends_by_leaf, link_rates
from coopt.instance.designs import Hall, PublishedDesign
from coopt.instance.errors import InstanceError
from coopt.instance.hardware import Optic
from coopt.instance.network import NetworkHallRows

LENGTHS_M = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000)
"""Lengths that cables and fibres are sold in; a longer one is cut to whole kilometres."""
MOST_ENDS = 5_000_000

Lengths = Counter[int]
ROUNDING = 1e-9  # of a switch, so that sums in another order fill the same racks

Place = tuple[int, int]
"""The rack of domains amid which switches stand, and their tier."""


@dataclass(frozen=True, kw_only=True)
class Switches:
    """So many switches of one tier at one place, the rack units of each and the watts, with the optics in it."""

    place: Place
    count: int
    units: float
    w: float


@dataclass(frozen=True, kw_only=True)
class SwitchRacks:
    """Racks of switches: the rack of domains after which each stands, the one in which those of a place are, and what
    the fullest draws with the optics in it (W)."""

    after: tuple[int, ...]
    holding: dict[Place, int]
    most_w: float

    def spot(self, rack: int) -> int:
        """Where a rack of domains stands, counted along the rows."""
        return rack + bisect_left(self.after, rack)

    def spot_of(self, place: Place) -> int:
        """Where the switches of a place stand: in the middle one of their racks, or amid domains without any."""
        if place not in self.holding:
            return self.spot(place[0])
        rack = self.holding[place]
        return self.after[rack] + 1 + rack

    @property
    def spots(self) -> frozenset[int]:
        """Where the racks of switches stand."""
        return frozenset(after + 1 + rack for rack, after in enumerate(self.after))


@dataclass(frozen=True, kw_only=True)
class DesignHall:
    """A design in its hall: cables below each tier over all networks by the length they are bought in (m), and the
    racks that its switches fill; None where some have no height, or no product."""

    cables: tuple[Lengths, ...]
    switch_racks: int | None


def design_hall(design: PublishedDesign, file: str = "design") -> DesignHall | None:
    """Where a design stands; None where it names no hall.

    A switch stands amid what hangs below it: a leaf amid its end points, spines amid the leaves of their pod, cores
    amid the pods. It does so in the middle rack of these, or where all have a height in a rack for switches behind it.

    Raises
    ------
    InstanceError
        Where the design cannot be wired, or has more end points than can be placed.
    """
    chain, uplinks = chain_of(design, file)
    if design.hall is None:
        return None
    if chain.ends > MOST_ENDS:
        raise InstanceError(
            f"{file}: design {design.id!r}: hall: {chain.ends:,} end points are too many to place one by one, needs at "
            f"most {MOST_ENDS:,} or no hall"
        )
    hung = _hung(design, design.hall, chain)
    racks = {leaf: middle(below) for leaf, below in hung.items()}
    amid_all = middle(Counter(racks.values()))  # where leaves stand that no end point needs yet
    leaves = [racks.get(leaf, amid_all) for leaf in range(chain.leaves)]
    pods = list(_pods(chain, uplinks, leaves)) if len(chain.tiers) > 1 else []
    known = all(tier.switch is not None and tier.switch.rack_units for tier in design.tiers)
    switches = _switches(design, chain, uplinks, leaves, pods, file) if known else []
    standing = switch_racks(switches, design.hall)
    spots = _Spots(hall=design.hall, standing=standing, networks=chain.networks)
    first = Lengths()
    for leaf, below in hung.items():
        for rack, ends in below.items():
            first[spots.sold(standing.spot(rack), (leaves[leaf], 0))] += ends * chain.networks
    above = _above(spots, chain, uplinks, leaves, pods)
    return DesignHall(cables=(first, *above), switch_racks=len(standing.after) if known else None)


def sold_m(length_m: float) -> int:
    """The shortest length on sale that is long enough (m)."""
    return next((sold for sold in LENGTHS_M if sold >= length_m), math.ceil(length_m / 1000) * 1000)


def _hung(design: PublishedDesign, hall: Hall, chain: TierChain) -> dict[int, Counter[int]]:
    """What hangs below each leaf of one network: end points by the rack of their domain. One tier is one switch."""
    hung: dict[int, Counter[int]] = {}
    for (_, domain, _, _), leaf in ends_by_leaf(design, chain, 0):
        hung.setdefault(leaf if len(chain.tiers) > 1 else 0, Counter())[hall.rack_of(domain)] += 1
    return hung


def _pods(chain: TierChain, uplinks: int, leaves: list[int]) -> Iterator[tuple[Block, list[int], int]]:
    """Each pod of a network with the racks of its leaves and the one amid them."""
    first = 0
    for part in blocks(chain, uplinks):
        for _ in range(part.count):
            racks = leaves[first : first + part.leaves]
            first += part.leaves
            yield part, racks, middle(Counter(racks))


def _switches(
    design: PublishedDesign,
    chain: TierChain,
    uplinks: int,
    leaves: list[int],
    pods: list[tuple[Block, list[int], int]],
    file: str,
) -> list[Switches]:
    """The switches of all networks by place; each bears its share of the modules at its ends of cables."""
    tiers = levels(chain, uplinks)
    drawn = [0.0] * len(tiers)
    for end in cable_ends(design, tiers, f"{file}: design {design.id!r}"):
        if end.at >= 0 and end.optic is not None:
            drawn[end.at] += end.modules * end.optic.w
    places: list[Counter[int]] = [Counter(leaves)]
    if pods:
        places.append(Counter())
        for part, _, middle_rack in pods:
            places[1][middle_rack] += part.spines
    if len(tiers) == 3:
        places.append(Counter({middle(Counter(middle_rack for _, _, middle_rack in pods)): 1}))
    found = []
    for level, (tier, form, stand) in enumerate(zip(tiers, design.tiers, places, strict=True)):
        assert form.switch is not None
        assert form.switch.rack_units is not None, "halls without heights have no racks of switches"
        each = tier.switches // sum(stand.values())
        w, units = form.switch.w + drawn[level] / tier.switches, form.switch.rack_units
        found += [Switches(place=(rack, level), count=each * count, units=units, w=w) for rack, count in stand.items()]
    return found


@dataclass(frozen=True, kw_only=True)
class _Spots:
    """Where racks of domains and switches stand in a hall, and of how many networks."""

    hall: Hall
    standing: SwitchRacks
    networks: int

    def sold(self, spot: int, place: Place) -> int:
        """The length on sale from a spot to the switches of a place (m)."""
        return sold_m(self.hall.cable_m(spot, self.standing.spot_of(place)))


def _above(
    spots: _Spots, chain: TierChain, uplinks: int, leaves: list[int], pods: list[tuple[Block, list[int], int]]
) -> list[Lengths]:
    """Cables from leaves to spines and from spines to cores, of all networks."""
    low, high = Lengths(), Lengths()
    for _, racks, amid in pods:
        for rack in racks:
            low[spots.sold(spots.standing.spot_of((rack, 0)), (amid, 1))] += uplinks * spots.networks
    if len(chain.tiers) < 3:
        return [low] if pods else []
    core = middle(Counter(amid for _, _, amid in pods))
    for part, _, amid in pods:
        high[spots.sold(spots.standing.spot_of((amid, 1)), (core, 2))] += part.spines * part.up * spots.networks
    return [low, high]


def middle(racks: Counter[int]) -> int:
    """The rack before and after which as many stand."""
    passed, half = 0, sum(racks.values()) / 2
    for rack in sorted(racks):
        passed += racks[rack]
        if passed >= half:
            return rack
    return 0


def switch_racks(switches: Iterable[Switches], rows: NetworkHallRows) -> SwitchRacks:
    """Racks that hold the units and watts of a hall, filled place after place along the rows, from the leaves up.

    A rack takes switches as long as there is room, one in any case, and stands after the middle one of their places.
    """
    watts = math.inf if rows.switch_rack_kw is None else 1e3 * rows.switch_rack_kw
    filled: list[Counter[Place]] = []
    drawn: list[float] = []
    left = 0.0, 0.0
    for some in sorted(switches, key=lambda one: one.place):
        rest = some.count
        while rest:
            if _room(some, *left) < 1:
                filled.append(Counter())
                drawn.append(0.0)
                left = rows.switch_rack_units, watts
            taken = min(rest, max(1, _room(some, *left)))
            filled[-1][some.place] += taken
            drawn[-1] += taken * some.w
            left, rest = (left[0] - taken * some.units, left[1] - taken * some.w), rest - taken
    held: dict[Place, Counter[int]] = {}
    for rack, places in enumerate(filled):
        for place, count in places.items():
            held.setdefault(place, Counter())[rack] += count
    after = tuple(middle(_by_rack(places)) for places in filled)
    holding = {place: middle(count) for place, count in held.items()}
    return SwitchRacks(after=after, holding=holding, most_w=max(drawn, default=0.0))


def _room(some: Switches, units: float, watts: float) -> int:
    """How many of some switches so many units and watts are enough for."""
    return int(min(units / some.units, watts / some.w if some.w else math.inf) + ROUNDING)


def _by_rack(places: Counter[Place]) -> Counter[int]:
    counts = Counter[int]()
    for (rack, _), count in places.items():
        counts[rack] += count
    return counts


@dataclass(frozen=True, kw_only=True)
class CableEnds:
    """One end of all cables below a tier: `links` at so many `holders` (NICs, or the cages that several share, or
    switches), in modules of an optic.

    `upper` ends are at the switches of the tier. `optic` is None where no product is named, `inside` says that holders
    need none. A module takes `in_module` ends.
    """

    tier: int
    upper: bool
    key: str
    optic: Optic | None
    inside: bool
    links: int
    holders: int
    in_module: int

    @property
    def at(self) -> int:
        """The tier of the switches that have these ends; -1 for NICs."""
        return self.tier if self.upper else self.tier - 1

    @property
    def most(self) -> int:
        """Ends at the holder that has the most of them."""
        return -(-self.links // self.holders)

    @property
    def modules(self) -> int:
        """Modules of all holders, over which cables are spread evenly; a module is never shared."""
        if self.inside or self.optic is None:
            return 0
        each, more = divmod(self.links, self.holders)
        least, most = (-(-ends // self.in_module) for ends in (each, each + 1))
        return (self.holders - more) * least + more * most


def cable_ends(design: PublishedDesign, tiers: tuple[TierLevel, ...], where: str) -> Iterator[CableEnds]:
    """Upper and lower ends of the cables below each tier.

    Raises
    ------
    InstanceError
        Where a module at a NIC would hold ends of several.
    """
    shared, rates = design.gpus_per_cage, link_rates(design, where)
    for number, (tier, form) in enumerate(zip(tiers, design.tiers, strict=True)):
        rate, below = rates[number], design.tiers[number - 1].switch if number else None
        lower_key = "optic" if form.optic_below is None else "optic_below"
        lower = form.optic_below or form.optic
        if not number and lower is not None and rate is not None and design.nic_ports * shared % lower.links_of(rate):
            holder = "a NIC has" if shared == 1 else f"{shared} NICs that share a cage have"
            raise InstanceError(
                f"{where}: tiers[0].{lower_key} = {lower.name!r}: holds {lower.links_of(rate)} ends and {holder} "
                f"{design.nic_ports * shared}, needs optic_below, for the ends at NICs, or gpus_per_cage"
            )
        sides = (
            (True, "optic", form.optic, form.switch, tier.switches),
            (False, lower_key, lower, below, tiers[number - 1].switches if number else design.gpus // shared),
        )
        for upper, key, optic, switch, holders in sides:
            yield CableEnds(
                tier=number,
                upper=upper,
                key=key,
                optic=optic,
                inside=switch is not None and switch.optics_inside,
                links=tier.links,
                holders=holders,
                in_module=1 if optic is None or rate is None else optic.links_of(rate),
            )
