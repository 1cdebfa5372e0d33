"""Islands and the core that joins them in one hall: who stands where, and their cables to it
(docs/network.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from coopt.instance.errors import both, counted
from coopt.instance.hardware import Optic
from coopt.instance.network import NetworkHallRows
from coopt.instance.schema import Instance
from coopt.network.halls import NetworkHall, island_hall
from coopt.network.part_networks import PartNetwork, part_network
from coopt.network.racks import Lengths, Switches, SwitchRacks, sold_m, switch_racks
from coopt.plan.couplings import SharedCore
from coopt.plan.schema import Part, Plan


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


def placed_part(instance: Instance, plan: Plan, part: Part) -> PlacedPart | None:
    """Where a part stands; None where direct links join it, or nobody knows its racks."""
    if part.design is None:
        return None
    network = part_network(instance, plan, "bom", part.name)
    last_part = next(
        other_part for other_part in reversed(plan.parts) if other_part.slot == part.slot
    )
    if last_part is part:
        hall = island_hall(network.question, network.family, network.uplinks)
        return None if hall is None else PlacedPart(network=network, hall=hall, end_hall=hall)
    end = part_network(instance, plan, "bom", last_part.name)
    end_hall = island_hall(end.question, end.family, end.uplinks)
    hall = island_hall(network.question, network.family, network.uplinks, (end.family, end.uplinks))
    return (
        None
        if hall is None or end_hall is None
        else PlacedPart(network=network, hall=hall, end_hall=end_hall)
    )


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
            f"{counted(cables.total(), 'cable')} into the core, from {both(islands)}, are longer"
            f" than the {reach_m:g} m that {name} reaches: order ends that reach {max(cables):,} m"
            " there, or stand racks nearer (network.hall)."
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
            grows = any(part.phase is not None for part in at_site)
            yield SiteHall(
                site=site, grows=grows, rows=instance.network.hall, blocks=tuple(_blocks(end_halls))
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
    middle_rack = next(iter(last_racks.holding.values()), 0)
    to = core.first_row * rows.racks_per_row + middle_rack
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
    w = box.w + modules * optic.w / core.switches
    switches = Switches(place=(0, 0), count=core.switches, units=box.rack_units, w=w)
    return switch_racks((switches,), instance.network.hall)


def _optic(instance: Instance, coupling: SharedCore) -> Optic:
    """The optic in a core."""
    return next(optic for optic in instance.network.optics if optic.name == coupling.core.optic)
