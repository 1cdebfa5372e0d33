"""What somebody who builds a network has to know: what does not mate, which modules to order, what else it needs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, zip_longest

from coopt.instance.catalog import box_of, entries, ports_of_modules
from coopt.instance.errors import both
from coopt.instance.hardware import Nic, Optic, Switch, mate
from coopt.instance.schema import Instance
from coopt.network.family import LinkEnds
from coopt.network.halls import NetworkHall, network_hall
from coopt.network.island_halls import placed_part
from coopt.network.optics import first_unmated
from coopt.network.part_networks import families_of_design
from coopt.plan.contents import joint_of
from coopt.plan.couplings import CorePlan
from coopt.plan.schema import Design, Fabric, Plan, Tier
from coopt.report import words

MOST_NAMED = 3  # parts that a note names, where it goes for some of them
PlacedOptics = tuple[NetworkHall, tuple[LinkEnds, ...]]


def building_notes(instance: Instance, design: Design) -> Iterator[str]:
    """What to order otherwise, and what else a design implies."""
    halls = [*_halls(instance, design)]
    yield from _order_notes(instance, design, halls)
    for hall, _ in halls:
        yield from hall_sentences(instance, hall)
    yield from _other_notes(instance, design)


def order_notes_of_parts(instance: Instance, designs: Mapping[str, Design], plan: Plan | None = None) -> Iterator[str]:
    """Which parts are to be ordered otherwise than they are listed, by the names of networks.

    Parameters
    ----------
    plan
        The plan that has them, where there is one.
    """
    joints = {} if plan is None else {part.name: joint_of(plan, part) for part in plan.parts}
    joined = {
        name: (one.links.per_leaf, one.below) for name, one in joints.items() if one is not None and one.links.per_leaf
    }
    halls = {name: [*_halls(instance, design)] for name, design in designs.items()}
    if plan is not None and instance.problem != "shared":
        placed = {part.name: placed_part(instance, plan, part) for part in plan.parts}
        halls |= {name: [(one.hall, one.network.family.optics)] for name, one in placed.items() if one}
    yield from _of_parts(
        {name: _order_notes(instance, design, halls[name], joined.get(name)) for name, design in designs.items()}
    )


def mating_notes(instance: Instance, designs: Mapping[str, Design]) -> Iterator[str]:
    """Which links of parts, by their names, nobody can build of what is listed, as their ends do not mate."""
    yield from _of_parts({name: _lane_notes(instance, design) for name, design in designs.items()})


def _of_parts(notes: Mapping[str, Iterable[str]]) -> Iterator[str]:
    """Notes of parts by their names: once what goes for all of them, else with those it goes for."""
    said: dict[str, list[str]] = {}
    for name, some in notes.items():
        for note in dict.fromkeys(some):
            said.setdefault(note, []).append(name)
    for note, names in said.items():
        several = f"{len(names)} of {len(notes)} parts" if len(names) > MOST_NAMED else both(names)
        yield note if len(names) == len(notes) else f"{several}: {note}"


def _order_notes(
    instance: Instance, design: Design, halls: Sequence[PlacedOptics], to_core: tuple[int, str] | None = None
) -> Iterator[str]:
    yield from _reach_notes(halls)
    yield from _module_notes(instance, design, to_core)
    yield from _splitting_notes(instance, design)


def _module_notes(instance: Instance, design: Design, to_core: tuple[int, str] | None) -> Iterator[str]:
    """Which switches have fewer cages than modules in the bill, and whether modules that fill a cage would fit."""
    fabric, rate = design.fabric, _link_gbit_s(instance, design)
    known, notes = {optic.name: optic for optic in instance.network.optics}, list[str]()
    for tier, above in zip_longest(fabric.tier, fabric.tier[1:]):
        way = _switch_of(instance, fabric, tier, rate)
        optics = [known.get(name) for name in (tier.optic, *(above.ends[:1] if above else ()))]
        if way is None or any(optic is None or not optic.links_of(rate) for optic in optics):
            continue
        used = [_ports_in_use(tier, fabric.tiers) - tier.uplinks_per_switch, tier.uplinks_per_switch]
        ports = [(number, optic) for number, optic in zip(used, optics, strict=False) if optic]
        if to_core is not None and tier.level == 1 and to_core[1] in known:
            ports.append((to_core[0], known[to_core[1]]))
        box = (box_of(way.name) or way).model_copy(update={"name": way.name})  # cages are those of the box
        cages, whole = way.cages or int(way.radix * rate / box.cage_gbit_s), int(box.cage_gbit_s / rate)
        modules = sum(-(-number // optic.links_of(rate)) for number, optic in ports)
        if modules > cages:
            notes.append(too_many_modules(box, tier.level, modules, cages, whole, ports))
    if notes:
        yield f"{' '.join(notes)} With network.switch_cages = 'kept' no switch has more modules than cages."


def core_notes(instance: Instance, cores: Iterable[CorePlan]) -> Iterator[str]:
    """Which cores have more modules to a switch than that has cages."""
    optics = {optic.name: optic for optic in instance.network.optics}
    boxes = {switch.name: switch for switch in instance.network.switches}
    notes: list[str] = []
    for core in cores:
        way, optic = boxes.get(core.switch.name), optics.get(core.optic)
        of_module = 0 if way is None or optic is None else optic.links_of(way.port_gbit_s)
        if way is None or not of_module:
            continue
        modules = -(-sum(-(-one.links // of_module) for one in core.islands) // core.switches)
        if modules > (cages := ports_of_modules(way, 1)):
            notes.append(
                f"The core has {words.count(modules)} modules for each {way.name}, which has room for "
                f"{words.count(cages)}: network.switch_cages = 'kept' plans with no more, and with network.link_ends = "
                "'any' those of several links are taken where the list has them."
            )
    yield from dict.fromkeys(notes)


def _link_gbit_s(instance: Instance, design: Design) -> float:
    """The rate of a link (Gbit/s); 0 where the instance does not list the NIC."""
    name, planes = design.fabric.nic.name, design.fabric.nic.planes
    return next((nic.gbit_s / planes for nic in instance.network.nics if nic.name == name), 0.0)


def _switch_of(instance: Instance, fabric: Fabric, tier: Tier, rate: float) -> Switch | None:
    """The switch of a tier, run with ports of the rate of links; None where the instance lists none."""
    mode = tier.switch or fabric.switch.name, rate
    return next((way for way in instance.network.switch_ways if (way.name, way.port_gbit_s) == mode), None)


def too_many_modules(
    way: Switch, level: int, modules: int, cages: int, whole: int, ports: Sequence[tuple[int, Optic]]
) -> str:
    """What to order in place of modules for which a switch has no room; modules of a cage serve `whole` ports each."""
    of_kind = Counter[str]()
    for number, optic in ports:
        of_kind[optic.name] += number
    filled = sum(-(-number // whole) for number in of_kind.values())
    billed = (
        f"The bill has {words.count(modules)} modules for each {way.name} of tier {level}, which has room for "
        f"{words.count(cages)}"
    )
    larger = f"modules of {way.cage_gbit_s:g} Gbit/s that serve {words.counted(whole, 'port')} each"
    if filled <= cages:
        known = _catalog_modules(way.cage_gbit_s, whole, [optic for _, optic in ports])
        return f"{billed}: order {words.count(filled)} {larger}{known}, whose price may differ."
    return (
        f"{billed}, and {larger} would still be {words.count(filled)}: links of its two sides share no module. "
        "Keep some ports free (margin.ports) to build it."
    )


def _catalog_modules(cage_gbit_s: float, whole: int, optics: Sequence[Optic]) -> str:
    """` (of the catalog: 800g-sr8)`, the modules of a cage for so many links that meet some of these; empty if none."""
    modules = (one for one in entries("optic").values() if isinstance(one, Optic) and one.gbit_s == cage_gbit_s)
    fitting = [one for one in modules if one.links_of(cage_gbit_s / whole) == whole]
    named = [one.name for one in fitting if any(one.meets(optic) and mate(one, optic) for optic in optics)]
    return f" (of the catalog: {words.both(named)})" if named else ""


def _splitting_notes(instance: Instance, design: Design) -> Iterator[str]:
    """That modules which break out take cables or panels which split their fibres, unless each link has a connector."""
    rate, used = _link_gbit_s(instance, design), {name for tier in design.fabric.tier for name in tier.optics}
    carried = {optic.name: optic.links_of(rate) for optic in instance.network.optics if rate and optic.name in used}
    ends = [f"{name} ({words.counted(count, 'link')} each)" for name, count in carried.items() if count > 1]
    if ends:
        yield (
            f"The bill counts no cables or panels that split fibres, which {words.both(ends)} may need, unless each "
            "link has a connector of its own."
        )


def _reach_notes(halls: Sequence[PlacedOptics]) -> Iterator[str]:
    """Which optics do not reach as far as the hall takes their cables."""
    for hall, levels in halls:
        for level, (cables, ends) in enumerate(zip(hall.cables, levels, strict=True), start=1):
            optic = min(ends.products, key=lambda one: one.reach_m)
            count = sum(number for length_m, number in cables.items() if length_m > optic.reach_m)
            if count:
                yield (
                    f"{words.counted(count, 'cable')} below tier {level} are longer than the {optic.reach_m:g} m that "
                    f"{optic.name} reaches: order ends that reach {max(cables):,} m there, or stand racks nearer "
                    "(network.hall)."
                )


def _halls(instance: Instance, design: Design) -> Iterator[PlacedOptics]:
    """The hall of a network that is the only one, and its optics by level."""
    if instance.problem == "shared":
        for family, uplinks in islice(families_of_design(instance, design), 1):
            hall = network_hall(instance, family, uplinks)
            if hall is not None:
                yield hall, family.optics


def hall_sentences(instance: Instance, hall: NetworkHall) -> Iterator[str]:
    """How racks stand and what they draw, and the longest cables of each tier."""
    along, across = hall.sides_m
    pue, racks = instance.objective.pue, words.counted(hall.racks, "rack")
    own = f" and {words.count(hall.switch_racks)} of switches" if hall.switch_racks else ""
    of_first = " of the former" if own else ""
    fullest_kw, kept = hall.switch_rack_w / 1e3, instance.network.hall.switch_rack_kw
    capped = "" if kept is not None else " (network.hall.switch_rack_kw caps that)"
    of_fullest = f" and {fullest_kw:,.3g} kW in the fullest of the latter{capped}" if own else ""
    elsewhere = ", in racks that are not among these" if hall.switch_racks is None else ""
    beside = "servers" if hall.with_hosts else "interconnect"
    yield (
        f"The hall: {racks}{own} in {words.counted(hall.rows, 'row')}, {along:,.0f} m by {across:,.0f} m, with "
        f"{hall.rack_w / 1e3:,.3g} kW of GPUs, {beside} and NICs in each{of_first}{of_fullest}; everything "
        f"together draws {words.power(hall.w)}, {words.power(hall.w * pue)} at a PUE of {pue:g}. Switches and optics "
        f"draw {words.power(hall.w - hall.rack_w * hall.racks)} of it{elsewhere}."
    )
    longest = [f"{max(cables):,} m below tier {level}" for level, cables in enumerate(hall.cables, start=1)]
    yield f"Cables take up to {', '.join(longest)}."


def _lane_notes(instance: Instance, design: Design) -> Iterator[str]:
    """What does not mate on the first tier where that is so: the optic and what its links join."""
    found = first_unmated(instance.network, design.fabric)
    if found is not None:
        level, ends = found
        told = words.both(f"{end.name} ({_lanes(end)})" for end in ends)
        yield (
            f"Links below tier {level} do not mate as they are listed: {told}. Order parts of one rate of "
            "lanes and one protocol; network.tier_switches = 'any' plans with such alone."
        )


def _lanes(end: Nic | Optic | Switch) -> str:
    """`ethernet, lanes of 100 Gbit/s`."""
    protocol, rate = getattr(end, "protocol", None), end.lane_gbit_s
    rates = (
        "" if not rate else f"{rate:g}" if isinstance(rate, float) else words.alternatives(f"{one:g}" for one in rate)
    )
    speaks = protocol if isinstance(protocol, str) else words.alternatives(protocol) if protocol else ""
    return ", ".join(text for text in (speaks, f"lanes of {rates} Gbit/s" if rates else "") if text) or "not known"


def _ports_in_use(tier: Tier, tiers: int) -> int:
    """Ports of a switch in use; those of a single tier may serve several planes."""
    return -(-tier.links // tier.switches) if tiers == 1 else tier.down_ports + tier.uplinks_per_switch


def _other_notes(instance: Instance, design: Design) -> Iterator[str]:
    """What else somebody who builds a design has to know."""
    domain, fabric = design.hb_domain, design.fabric
    fewest = -(-design.gpus // domain.size)
    if instance.network.domain_fill == "even" and fewest < domain.count:
        why = f", as {words.both(instance.even_for)} need them so" if instance.even_for else ""
        less = f"{words.count(fewest)} to {words.count(domain.count)} of them"
        yield f"As many GPUs train in every {domain.name}{why}; " + (
            f"filled unevenly, {less} might do." if why else f"with network.domain_fill = 'any' {less} may do."
        )
    yield from _empty_ports(instance, design)
    yield from _adapter_notes(instance, design)
    if design.spare_domains and fabric.tiers:
        yield (
            "Domains that stand by have no switch ports: each takes the links of the domain that it stands in for, by "
            "a patch panel or by hand, and availability.restart_s has to hold that time."
        )
    if fabric.kind == "rail-only" and fabric.tiers:
        yield (
            "No switch joins two rails: traffic between ranks of a domain passes through that domain, and storage "
            "needs a network of its own."
        )


def _empty_ports(instance: Instance, design: Design) -> Iterator[str]:
    """Which switches above the leaves use less than half of their ports, so that links to all of them are alike."""
    fabric, rate = design.fabric, _link_gbit_s(instance, design)
    for tier in fabric.tier[1:] if instance.network.bundles == "even" else ():
        way, used = _switch_of(instance, fabric, tier, rate), tier.down_ports + tier.uplinks_per_switch
        if way is not None and 2 * used < way.radix and tier.switches > fabric.planes:
            yield (
                f"The {words.counted(tier.switches, 'switch')} of tier {tier.level} use {used} of {way.radix} ports "
                "each, so that every switch below has as many links to each; with network.bundles = 'any' fewer may do."
            )


def _adapter_notes(instance: Instance, design: Design) -> Iterator[str]:
    """Which NICs are not those that servers come with."""
    domain = next((one for one in instance.network.hb_domains if one.name == design.hb_domain.name), None)
    nic = design.fabric.nic.name
    if domain is not None and design.fabric.tiers and domain.nics and nic not in domain.nics:
        yield f"{domain.name} comes with {words.alternatives(domain.nics)}, not with {nic}: ask for such servers first."


def leaf_notes(designs: Sequence[Design]) -> Iterator[str]:
    """What the loss of a leaf means for training, in one line of 80 columns."""
    notes = list(dict.fromkeys(_leaf_note(design) for design in designs if design.fabric.tiers))
    if notes:
        yield notes[0] if len(notes) == 1 else "coopt faults says what each network does without a leaf."


def _leaf_note(design: Design) -> str:
    """What becomes of training without a leaf; a switch of a single tier may serve several rails."""
    fabric = design.fabric
    ports, rails = fabric.nic.planes, fabric.planes // fabric.nic.planes
    taken = -(-rails // (fabric.tier[0].switches // ports)) if fabric.tiers == 1 else 1
    if ports > 1:
        return "If a leaf is lost, NICs keep their other ports: no restart (coopt faults)."
    if fabric.kind != "rail-only":
        nics = design.hb_domain.active * fabric.nic.per_gpu // fabric.nic.shared_by
        leaves = fabric.tier[0].switches
        if nics == 1 or leaves == 1 or (fabric.kind == "clos" and fabric.tier[0].down_ports >= nics):
            return "If a leaf is lost, training stops: it joins whole HB domains (coopt faults)."
        return "If a leaf is lost, training restarts over the other NICs (coopt faults)."
    if rails == 1:
        return "There is a single rail: if a leaf is lost, training stops (coopt faults)."
    if taken == rails:
        return f"All {words.count(rails)} rails share one switch: if it is lost, training stops (coopt faults)."
    if taken > 1:
        return f"If a leaf is lost, training restarts on the other {rails - taken} rails (coopt faults)."
    return f"If a rail is lost, training restarts on the other {words.count(rails - 1)} (coopt faults)."
