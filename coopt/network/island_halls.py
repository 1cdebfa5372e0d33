"""Islands and the core that joins them in one hall: who stands where, and their cables to it (docs/network.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from coopt.fabric.halls import Lengths, Switches, SwitchRacks, sold_m, switch_racks
from coopt.instance.errors import both, counted
from coopt.instance.hardware import Optic
from coopt.instance.network import NetworkHallRows
from coopt.instance.schema import Instance
from coopt.network.halls import NetworkHall, island_hall
from coopt.network.part_networks import PartNetwork, part_network
from coopt.plan.couplings import SharedCore
from coopt.plan.schema import Part, Plan


@dataclass(frozen=True, kw_only=True)
class PlacedPart:
    """A part with its network, and where that stands: among what it grows into, `whole`, which is in the same hall."""

    network: PartNetwork
    hall: NetworkHall
    whole: NetworkHall


PlacedParts = Mapping[str, PlacedPart | None]
"""Parts by their names; None for those that direct links join, or whose racks nobody knows."""


@dataclass(frozen=True, kw_only=True)
class HallBlock:
    """Racks that begin a row: those of an island, or of the core; `amid` are those of switches, or amid which these
    stand, and `rack_w` and `switch_rack_w` what the fullest draws that has domains or switches.

    `counted` says whether switches have racks of their own, and not in racks that nobody has counted.
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
    """What stands at a site in the end: `blocks` row by row, of islands and of the core that they may share."""

    site: str | None
    grows: bool
    rows: NetworkHallRows
    blocks: tuple[HallBlock, ...]


@dataclass(frozen=True, kw_only=True)
class CoreCables:
    """Cables from a part into the core by the length they are sold in (m), and the modules at both of their ends."""

    part: Part
    cables: Lengths
    below: Optic
    above: Optic


@dataclass(frozen=True, kw_only=True)
class CoreHall(SiteHall):
    """A core with the islands that it joins, as it stands in a phase among what stands in the end.

    Switches of the core stand in `switch_racks` of their own, of which the fullest draws `switch_rack_w`, or nobody
    knows how many they fill (None).
    """

    shared: SharedCore
    switch_racks: int | None
    switch_rack_w: float
    links: tuple[CoreCables, ...]

    @property
    def cables(self) -> Lengths:
        """Cables into the core from all islands by length (m)."""
        return sum((one.cables for one in self.links), Lengths())


def placed_part(instance: Instance, plan: Plan, part: Part) -> PlacedPart | None:
    """Where a part stands; None where direct links join it, or nobody knows its racks."""
    if part.design is None:
        return None
    found = part_network(instance, plan, "bom", part.name)
    last = next(one for one in reversed(plan.parts) if one.slot == part.slot)
    if last is part:
        hall = island_hall(found.question, found.family, found.uplinks)
        return None if hall is None else PlacedPart(network=found, hall=hall, whole=hall)
    end = part_network(instance, plan, "bom", last.name)
    whole = island_hall(end.question, end.family, end.uplinks)
    hall = island_hall(found.question, found.family, found.uplinks, (end.family, end.uplinks))
    return None if hall is None or whole is None else PlacedPart(network=found, hall=hall, whole=whole)


def placed_parts(instance: Instance, plan: Plan) -> PlacedParts:
    """Where each part stands, by its name."""
    return {part.name: placed_part(instance, plan, part) for part in plan.parts}


def core_halls(instance: Instance, plan: Plan, parts: PlacedParts) -> Iterator[CoreHall]:
    """The hall of each core that islands share; none of one whose islands fill nobody knows how many racks.

    Each island begins a row, in the order of the plan, with the places that it takes in the end. So does the core,
    behind the island with which half of its links have started. Its switches fill racks as those of networks do, and
    cables lead to the middle one of these.
    """
    for shared in plan.couplings.cores:
        at_site = [part for part in plan.parts if part.site == shared.site]
        placed = {part.name: parts[part.name] for part in at_site}
        known = {name: one for name, one in placed.items() if one is not None}
        if len(known) == len(placed):
            last = [one for one in plan.couplings.cores if one.site == shared.site][-1]
            yield _core_hall(instance, shared, last, at_site, known)


def core_reach_notes(halls: Iterable[CoreHall]) -> Iterator[str]:
    """Which ends do not reach as far as a hall takes the cables into its core."""
    short: dict[tuple[str, float], dict[str, Counter[int]]] = {}
    for hall in halls:
        for link in hall.links:
            optic = min((link.below, link.above), key=lambda one: one.reach_m)
            beyond = Counter({m: count for m, count in link.cables.items() if m > optic.reach_m})
            if beyond:
                short.setdefault((optic.name, optic.reach_m), {})[link.part.name] = beyond
    for (name, reach_m), islands in short.items():
        cables = sum(islands.values(), Counter[int]())
        yield (
            f"{counted(cables.total(), 'cable')} into the core, from {both(islands)}, are longer than the "
            f"{reach_m:g} m that {name} reaches: order ends that reach {max(cables):,} m there, or stand racks nearer "
            "(network.hall)."
        )


def site_halls(instance: Instance, plan: Plan) -> Iterator[SiteHall]:
    """The hall of each site in the end, with the core where islands share one, and without what fills nobody knows how
    many racks."""
    parts = placed_parts(instance, plan)
    cores = {hall.shared.site: hall for hall in core_halls(instance, plan, parts)}
    for site in dict.fromkeys(part.site for part in plan.parts):
        at_site = [part for part in plan.parts if part.site == site]
        placed = {part.slot: parts[part.name] for part in at_site if site not in cores}
        whole = {name: one.whole for name, one in placed.items() if one is not None}
        if site in cores:
            yield cores[site]
        elif whole:
            grows = any(part.phase is not None for part in at_site)
            yield SiteHall(site=site, grows=grows, rows=instance.network.hall, blocks=tuple(_blocks(whole)))


def _blocks(islands: Mapping[str, NetworkHall], core: SwitchRacks | None = None) -> Iterator[HallBlock]:
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
        before, passed = passed, passed + hall.to_core.total()
        if core is not None and before < half <= passed:
            own = max(1, len(core.after))
            yield HallBlock(
                name="core",
                first_row=row,
                racks=own,
                amid=frozenset(range(own)),
                switch_rack_w=core.most_w,
                counted=bool(core.after),
                is_core=True,
            )
            row += -(-own // hall.hall.racks_per_row)


def _core_hall(
    instance: Instance, shared: SharedCore, last: SharedCore, parts: Sequence[Part], placed: dict[str, PlacedPart]
) -> CoreHall:
    """One core in its hall; `last` is what it grows into."""
    rows, whole = instance.network.hall, {part.slot: placed[part.name].whole for part in parts}
    racks, last_racks = (_core_racks(instance, one) for one in (shared, last))
    blocks = tuple(_blocks(whole, last_racks))
    core = next(block for block in blocks if block.is_core)
    middle_rack = next(iter(last_racks.holding.values()), 0)
    to = core.first_row * rows.racks_per_row + middle_rack
    first = {block.name: block.first_row * rows.racks_per_row for block in blocks if not block.is_core}
    return CoreHall(
        site=shared.site,
        grows=shared.phase is not None,
        shared=shared,
        rows=rows,
        blocks=blocks,
        switch_racks=len(racks.after) or None,
        switch_rack_w=racks.most_w,
        links=tuple(
            CoreCables(
                part=part,
                cables=_cables(rows, placed[part.name].hall.to_core, first[part.slot], to),
                below=placed[part.name].network.family.core_end or _optic(instance, shared),
                above=_optic(instance, shared),
            )
            for part in parts
            if part.phase == shared.phase
        ),
    )


def _cables(rows: NetworkHallRows, starts: Counter[int], first: int, to: int) -> Lengths:
    """Cables from the spots of an island, whose rows begin at a spot of the hall, to another spot."""
    lengths = Lengths()
    for spot, links in starts.items():
        lengths[sold_m(rows.cable_m(first + spot, to))] += links
    return lengths


def _core_racks(instance: Instance, shared: SharedCore) -> SwitchRacks:
    """The racks of the switches of a core, each with its share of the modules; none where they have no height."""
    core, optic = shared.core, _optic(instance, shared)
    box = next(one for one in instance.network.switches if one.name == core.switch.name)
    in_module = optic.links_of(box.port_gbit_s)
    modules = sum(-(-island.links // in_module) for island in core.islands)
    if not box.rack_units:
        return switch_racks((), instance.network.hall)
    w = box.w + modules * optic.w / core.switches
    switches = Switches(place=(0, 0), count=core.switches, units=box.rack_units, w=w)
    return switch_racks((switches,), instance.network.hall)


def _optic(instance: Instance, shared: SharedCore) -> Optic:
    """The optic in a core."""
    return next(one for one in instance.network.optics if one.name == shared.core.optic)
