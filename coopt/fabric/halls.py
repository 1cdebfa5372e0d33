"""Cables of a design by length, where it says how its racks stand (docs/designs.md), and the
modules at their ends.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from coopt.fabric.chain import Block, TierChain, TierLevel, blocks, levels
from coopt.fabric.designs import chain_of, ends_by_leaf, link_rates
from coopt.instance.catalog import entries
from coopt.instance.designs import Hall, PublishedDesign
from coopt.instance.errors import InstanceError, both, counted
from coopt.instance.hardware import Optic, Switch, mate
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
class DesignHall:
    """A design in its hall: cables below each tier over all networks by the length they are bought
    in (m), and the racks that its switches fill; None where some have no height, or no product.
    """

    cables: tuple[Lengths, ...]
    switch_racks: int | None


def design_hall(design: PublishedDesign, file: str = "design") -> DesignHall | None:
    """Where a design stands; None where it names no hall.

    A switch stands amid what hangs below it: a leaf amid its end points, spines amid the leaves of
    their pod, cores amid the pods. It does so in the middle rack of these, or where all have a
    height in a rack for switches behind it.

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
            f"{file}: design {design.id!r}: hall: {chain.ends:,} end points are too many to place"
            f" one by one, needs at most {MOST_ENDS:,} or no hall"
        )
    hung = _hung(design, design.hall, chain)
    racks = {leaf: median_rack(rack_ends) for leaf, rack_ends in hung.items()}
    amid_all = median_rack(
        Counter(racks.values())
    )  # where leaves stand that no end point needs yet
    leaves = [racks.get(leaf, amid_all) for leaf in range(chain.leaves)]
    pods = list(_pods(chain, uplinks, leaves)) if len(chain.tiers) > 1 else []
    has_heights = all(tier.switch is not None and tier.switch.rack_units for tier in design.tiers)
    switches = _switches(design, chain, uplinks, leaves, pods, file) if has_heights else []
    racks_of_switches = switch_racks(switches, design.hall)
    spots = _Spots(hall=design.hall, switch_racks=racks_of_switches, networks=chain.networks)
    leaf_cables = Lengths()
    for leaf, rack_ends in hung.items():
        for rack, ends in rack_ends.items():
            # networks lie alike, so that one of them is measured
            leaf_cables[spots.sold(racks_of_switches.spot(rack), (leaves[leaf], 0))] += (
                ends * chain.networks
            )
    upper_cables = _cables_above(spots, chain, uplinks, leaves, pods)
    return DesignHall(
        cables=(leaf_cables, *upper_cables),
        switch_racks=len(racks_of_switches.after) if has_heights else None,
    )


def sold_m(length_m: float) -> int:
    """The shortest length on sale that is long enough (m)."""
    return next((sold for sold in LENGTHS_M if sold >= length_m), math.ceil(length_m / 1000) * 1000)


def _hung(design: PublishedDesign, hall: Hall, chain: TierChain) -> dict[int, Counter[int]]:
    """What hangs below each leaf of one network: end points by the rack of their domain. One tier
    is one switch.
    """
    hung: dict[int, Counter[int]] = {}
    for (_, domain, _, _), leaf in ends_by_leaf(design, chain, 0):
        hung.setdefault(leaf if len(chain.tiers) > 1 else 0, Counter())[hall.rack_of(domain)] += 1
    return hung


def _pods(
    chain: TierChain, uplinks: int, leaves: list[int]
) -> Iterator[tuple[Block, list[int], int]]:
    """Each pod of a network with the racks of its leaves and the one amid them."""
    start = 0
    for part in blocks(chain, uplinks):
        for _ in range(part.count):
            racks = leaves[start : start + part.leaves]
            start += part.leaves
            yield part, racks, median_rack(Counter(racks))


def _switches(
    design: PublishedDesign,
    chain: TierChain,
    uplinks: int,
    leaves: list[int],
    pods: list[tuple[Block, list[int], int]],
    file: str,
) -> list[Switches]:
    """The switches of all networks by place; each bears its share of the modules at its ends of
    cables.
    """
    tiers = levels(chain, uplinks)
    optics_w = [0.0] * len(tiers)
    for end in cable_ends(design, tiers, f"{file}: design {design.id!r}"):
        if end.at >= 0 and end.optic is not None:
            optics_w[end.at] += end.modules * end.optic.w
    places: list[Counter[int]] = [Counter(leaves)]
    if pods:
        places.append(Counter())
        for part, _, middle_rack in pods:
            places[1][middle_rack] += part.spines
    if len(tiers) == 3:
        places.append(Counter({median_rack(Counter(middle_rack for _, _, middle_rack in pods)): 1}))
    switches = []
    for level, (tier, form, stand) in enumerate(zip(tiers, design.tiers, places, strict=True)):
        assert form.switch is not None
        assert form.switch.rack_units is not None, "halls without heights have no racks of switches"
        # all networks stand at the same places, so that each has as many switches of each
        per_place = tier.switches // sum(stand.values())
        w, units = form.switch.w + optics_w[level] / tier.switches, form.switch.rack_units
        switches += [
            Switches(place=(rack, level), count=per_place * count, units=units, w=w)
            for rack, count in stand.items()
        ]
    return switches


@dataclass(frozen=True, kw_only=True)
class _Spots:
    """Where racks of domains and switches stand in a hall, and of how many networks."""

    hall: Hall
    switch_racks: SwitchRacks
    networks: int

    def sold(self, spot: int, place: Place) -> int:
        """The length on sale from a spot to the switches of a place (m)."""
        return sold_m(self.hall.cable_m(spot, self.switch_racks.spot_of(place)))


def _cables_above(
    spots: _Spots,
    chain: TierChain,
    uplinks: int,
    leaves: list[int],
    pods: list[tuple[Block, list[int], int]],
) -> list[Lengths]:
    """Cables from leaves to spines and from spines to cores, of all networks."""
    spine_cables, core_cables = Lengths(), Lengths()
    for _, racks, amid in pods:
        for rack in racks:
            spine_cables[spots.sold(spots.switch_racks.spot_of((rack, 0)), (amid, 1))] += (
                uplinks * spots.networks
            )
    if len(chain.tiers) < 3:
        return [spine_cables] if pods else []
    core = median_rack(Counter(amid for _, _, amid in pods))
    for part, _, amid in pods:
        core_cables[spots.sold(spots.switch_racks.spot_of((amid, 1)), (core, 2))] += (
            part.spines * part.up * spots.networks
        )
    return [spine_cables, core_cables]


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
    return int(
        min(units / switches.units, watts / switches.w if switches.w else math.inf) + ROUNDING
    )


def _by_rack(places: Counter[Place]) -> Counter[int]:
    counts = Counter[int]()
    for (rack, _), count in places.items():
        counts[rack] += count
    return counts


@dataclass(frozen=True, kw_only=True)
class CableEnds:
    """One end of all cables below a tier: `links` at so many `holders` (NICs, or the cages that
    several share, or switches), in modules of an optic.

    Upper ends (`is_upper`) are at the switches of the tier. `optic` is None where no product is
    named, `inside` says that holders need none. A module takes `in_module` ends.
    """

    tier: int
    is_upper: bool
    key: str
    optic: Optic | None
    inside: bool
    links: int
    holders: int
    in_module: int

    @property
    def at(self) -> int:
        """The tier of the switches that have these ends; -1 for NICs."""
        return self.tier if self.is_upper else self.tier - 1

    @property
    def most_ends(self) -> int:
        """Ends at the holder that has the most of them."""
        return -(-self.links // self.holders)

    @property
    def modules(self) -> int:
        """Modules of all holders, over which cables are spread evenly; a module is never shared."""
        if self.inside or self.optic is None:
            return 0
        ends_each, fuller_holders = divmod(self.links, self.holders)
        fewer_modules, more_modules = (
            -(-ends // self.in_module) for ends in (ends_each, ends_each + 1)
        )
        return (self.holders - fuller_holders) * fewer_modules + fuller_holders * more_modules


def cable_ends(
    design: PublishedDesign, tiers: tuple[TierLevel, ...], origin: str
) -> Iterator[CableEnds]:
    """Upper and lower ends of the cables below each tier.

    Raises
    ------
    InstanceError
        Where a module at a NIC would hold ends of several.
    """
    nics_per_cage, rates = design.gpus_per_cage, link_rates(design, origin)
    for number, (tier, form) in enumerate(zip(tiers, design.tiers, strict=True)):
        rate, lower_switch = rates[number], design.tiers[number - 1].switch if number else None
        lower_key = "optic" if form.optic_below is None else "optic_below"
        lower = form.optic_below or form.optic
        if (
            not number
            and lower is not None
            and rate is not None
            and design.nic_ports * nics_per_cage % lower.links_of(rate)
        ):
            holder = (
                "a NIC has"
                if nics_per_cage == 1
                else f"{nics_per_cage} NICs that share a cage have"
            )
            raise InstanceError(
                f"{origin}: tiers[0].{lower_key} = {lower.name!r}: holds {lower.links_of(rate)}"
                f" ends and {holder} {design.nic_ports * nics_per_cage}, needs optic_below, for the"
                " ends at NICs, or gpus_per_cage"
            )
        sides = (
            (True, "optic", form.optic, form.switch, tier.switches),
            (
                False,
                lower_key,
                lower,
                lower_switch,
                tiers[number - 1].switches if number else design.gpus // nics_per_cage,
            ),
        )
        for is_upper, key, optic, switch, holders in sides:
            yield CableEnds(
                tier=number,
                is_upper=is_upper,
                key=key,
                optic=optic,
                inside=switch is not None and switch.optics_inside,
                links=tier.links,
                holders=holders,
                in_module=1 if optic is None or rate is None else optic.links_of(rate),
            )


def too_many_modules(
    way: Switch,
    level: int,
    modules: int,
    cages: int,
    ports_per_module: int,
    ports: Sequence[tuple[int, Optic]],
    free_key: str = "margin.ports",
) -> str:
    """What to order in place of modules for which a switch has no room; modules of a cage serve
    `ports_per_module` ports each, and the key `free_key` keeps ports free.
    """
    of_kind = Counter[str]()
    for number, optic in ports:
        of_kind[optic.name] += number
    cages_filled = sum(-(-number // ports_per_module) for number in of_kind.values())
    opening = (
        f"The bill has {modules:,} modules for each {way.name} of tier {level}, which has room for"
        f" {cages:,}"
    )
    larger = (
        f"modules of {way.cage_gbit_s:g} Gbit/s that serve {counted(ports_per_module, 'port')} each"
    )
    if cages_filled <= cages:
        catalog_hint = _catalog_modules(
            way.cage_gbit_s, ports_per_module, [optic for _, optic in ports]
        )
        return f"{opening}: order {cages_filled:,} {larger}{catalog_hint}, whose price may differ."
    return (
        f"{opening}, and {larger} would still be {cages_filled:,}: links of its two sides share no"
        f" module. Keep some ports free ({free_key}) to build it."
    )


def _catalog_modules(cage_gbit_s: float, ports_per_module: int, optics: Sequence[Optic]) -> str:
    """` (of the catalog: 800g-sr8)`, the modules of a cage for so many links that meet some of
    these; empty if none.
    """
    modules = (
        module
        for module in entries("optic").values()
        if isinstance(module, Optic) and module.gbit_s == cage_gbit_s
    )
    fitting = [
        module
        for module in modules
        if module.links_of(cage_gbit_s / ports_per_module) == ports_per_module
    ]
    names = [
        module.name
        for module in fitting
        if any(module.meets(optic) and mate(module, optic) for optic in optics)
    ]
    return f" (of the catalog: {both(names)})" if names else ""


def splitting_notes(links_of_modules: Mapping[str, int]) -> Iterator[str]:
    """That modules which carry several links take cables or panels which split their fibres, unless
    each link has a connector of its own.
    """
    ends = [
        f"{name} ({counted(count, 'link')} each)"
        for name, count in links_of_modules.items()
        if count > 1
    ]
    if ends:
        yield (
            f"The bill counts no cables or panels that split fibres, which {both(ends)} may need,"
            " unless each link has a connector of its own."
        )
