"""Where the racks of a network stand, what they draw, and how long its cables are
(docs/network.md).

Switches stand amid racks of domains, or in racks of their own. Islands share a hall with the core
that joins them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from coopt.instance.hardware import Gpu, Optic
from coopt.instance.network import Hall, NetworkHallRows
from coopt.instance.schema import Instance
from coopt.instance.texts import both, counted
from coopt.network.family import Family, LinkEnds, TierChain, levels
from coopt.network.parts import kinds_of_ends, racks
from coopt.network.placing import (
    Bay,
    Lengths,
    Placing,
    Switches,
    SwitchRacks,
    bay_of,
    core_ends_w,
    hottest_w,
    leaf_numbers,
    placing_of,
    switch_racks,
    to_core_m,
)
from coopt.network.plan_networks import PartNetwork, last_of_slot, part_network
from coopt.plan.couplings import Part, SharedCore
from coopt.plan.schema import Plan


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


def _bought(family: Family, chain: TierChain) -> tuple[Lengths, ...]:
    """The cables of each level by the length they are bought in, where lengths choose them: those
    of a module are as long as its longest.
    """
    return tuple(Lengths({run.length_m: run.links for run in runs}) for runs in family.runs(chain))


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
        cables=_bought(family, placing.chain) or placing.cables(end, becomes),
        amid=(
            own_racks.spots
            if has_heights
            else frozenset(rack for tier in placing.amid[:2] for rack in tier.tolist())
        ),
        to_core=_to_core(family, end, becomes),
    )


def _racks_w(gpu: Gpu, family: Family) -> float:
    """What all racks of HB domains draw together, those that stand by too."""
    hb, domains = family.hb, family.domains + family.spare_domains
    domain_w = hb.size * (gpu.w + hb.w_per_gpu + (hb.host_w_per_gpu or 0.0))
    return domain_w * domains + family.bought_nics * family.nic.w


def _network_w(instance: Instance, family: Family, uplinks: int) -> float:
    """Switches and optics (W)."""
    boxes = zip(levels(family, uplinks), family.switches, strict=True)
    ends_w = [
        count * optic.w
        for ends, counts in kinds_of_ends(family, family.chain(uplinks))
        for count, optic in zip(counts, ends, strict=True)
    ]
    return math.fsum(
        [*(tier.switches * box.w for tier, box in boxes), *ends_w, core_ends_w(instance, family)]
    )


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
    """Racks of an island, or of the core, in rows of `per_row` from a place on; `amid` are those of
    switches, or amid which these stand, and `rack_w` and `switch_rack_w` what the fullest draws
    that has domains or switches.

    `counted` says whether switches have racks of their own, and not in racks that nobody has
    counted.
    """

    name: str
    first_row: int
    first_place: int = 0
    per_row: int
    racks: int
    amid: frozenset[int]
    rack_w: float = 0.0
    switch_rack_w: float = 0.0
    counted: bool = True
    is_core: bool = False

    @property
    def rows(self) -> int:
        """Rows that it fills."""
        return -(-self.racks // self.per_row)


@dataclass(frozen=True, kw_only=True)
class SiteHall:
    """What stands at a site in the end: blocks of islands row by row, or side by side behind the
    core that they share.
    """

    site: str | None
    grows: bool
    rows: NetworkHallRows
    blocks: tuple[HallBlock, ...]

    @property
    def width(self) -> int:
        """Places of a row, of all blocks that stand side by side."""
        return max(block.per_row for block in self.blocks)


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

    Islands stand side by side, each in its bay, with the places that it takes in the end. The core
    has the row before them, around its middle, to which cables lead.
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


def _blocks(islands: Mapping[str, NetworkHall]) -> Iterator[HallBlock]:
    """Islands row by row."""
    row = 0
    for name, hall in islands.items():
        yield _block(name, hall, row)
        row += hall.rows


def _block(name: str, hall: NetworkHall, first_row: int, first_place: int = 0) -> HallBlock:
    """The racks of an island from a row and a place on."""
    return HallBlock(
        name=name,
        first_row=first_row,
        first_place=first_place,
        per_row=hall.hall.racks_per_row,
        racks=hall.all_racks,
        amid=hall.amid,
        rack_w=hall.rack_w,
        switch_rack_w=hall.switch_rack_w,
        counted=hall.switch_racks is not None,
    )


def _blocks_of_core(
    islands: Mapping[str, NetworkHall], bays: Mapping[str, Bay], core: SwitchRacks
) -> Iterator[HallBlock]:
    """The racks of a core, around the middle of the rows that they fill, and behind these the
    islands side by side.
    """
    per_row = next(iter(islands.values())).hall.racks_per_row
    width, racks = per_row * next(iter(bays.values())).of, max(1, len(core.after))
    block = HallBlock(
        name="core",
        first_row=0,
        first_place=max(0, (width - 1) // 2 - (racks - 1) // 2),
        per_row=width,
        racks=racks,
        amid=frozenset(range(racks)),
        switch_rack_w=core.most_w,
        counted=bool(core.after),
        is_core=True,
    )
    yield block
    for name, hall in islands.items():
        yield _block(name, hall, block.rows, per_row * bays[name].number)


def _core_hall(
    instance: Instance,
    coupling: SharedCore,
    end_coupling: SharedCore,
    parts: Sequence[Part],
    parts_of: dict[str, PlacedPart],
) -> CoreHall:
    """One core in its hall; the second coupling is what it grows into."""
    rows = instance.network.hall
    end_halls = {part.slot: parts_of[part.name].end_hall for part in parts}
    racks, last_racks = (
        _core_racks(instance, core_coupling) for core_coupling in (coupling, end_coupling)
    )
    bays = {slot: bay_of(instance, slot) for slot in end_halls}
    return CoreHall(
        site=coupling.site,
        grows=coupling.phase is not None,
        coupling=coupling,
        rows=rows,
        blocks=tuple(_blocks_of_core(end_halls, bays, last_racks)),
        switch_racks=len(racks.after) or None,
        switch_rack_w=racks.most_w,
        links=tuple(
            _core_cables(instance, coupling, part, parts_of[part.name], bays[part.slot])
            for part in parts
            if part.phase == coupling.phase
        ),
    )


def _core_cables(
    instance: Instance, coupling: SharedCore, part: Part, placed: PlacedPart, bay: Bay
) -> CoreCables:
    """Cables of an island in its bay to the core: as they are bought where lengths choose them, of
    which the longest have some ends.
    """
    family, lengths = placed.network.family, Lengths()
    if family.core_cables:
        ends = family.core_cables[-1].ends
        lengths.update({run.length_m: run.links for run in family.core_cables})
    else:
        above = _optic(instance, coupling)
        ends = LinkEnds(family.core_end or above, above)
        for spot, links in placed.hall.to_core.items():
            lengths[int(to_core_m(instance.network.hall, spot, bay))] += links
    return CoreCables(part=part, cables=lengths, below=ends.below, above=ends.above)


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
        w=box.w + modules * hottest_w(instance, optic, box.port_gbit_s) / core.switches,
    )
    return switch_racks((switches,), instance.network.hall)


def _optic(instance: Instance, coupling: SharedCore) -> Optic:
    """The optic in a core."""
    return next(optic for optic in instance.network.optics if optic.name == coupling.core.optic)
