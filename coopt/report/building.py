"""What somebody who builds a network has to know: what does not mate, which modules to order, what
else it needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from coopt.instance.hardware import Nic, Optic, Switch
from coopt.instance.schema import Instance
from coopt.network.halls import NetworkHall
from coopt.network.optics import first_unmated
from coopt.network.orders import link_gbit_s, notes_by_part, order_notes, placed_optics, switch_of
from coopt.plan.schema import Design
from coopt.report import words


def building_notes(instance: Instance, design: Design) -> Iterator[str]:
    """What to order otherwise, and what else a design implies."""
    halls = [*placed_optics(instance, design)]
    yield from order_notes(instance, design, halls)
    for hall, _ in halls:
        yield from hall_sentences(instance, hall)
    yield from _other_notes(instance, design)


def mating_notes(instance: Instance, designs: Mapping[str, Design]) -> Iterator[str]:
    """Which links of parts, by their names, nobody can build of what is listed, as their ends do
    not mate.
    """
    yield from notes_by_part(
        {name: _lane_notes(instance, design) for name, design in designs.items()}
    )


def hall_sentences(instance: Instance, hall: NetworkHall) -> Iterator[str]:
    """How racks stand and what they draw, and the longest cables of each tier."""
    along, across = hall.sides_m
    pue, racks = instance.objective.pue, words.counted(hall.racks, "rack")
    of_switches = f" and {words.count(hall.switch_racks)} of switches" if hall.switch_racks else ""
    of_first = " of the former" if of_switches else ""
    fullest_kw, cap_kw = hall.switch_rack_w / 1e3, instance.network.hall.switch_rack_kw
    capped = "" if cap_kw is not None else " (network.hall.switch_rack_kw caps that)"
    of_fullest = (
        f" and {fullest_kw:,.3g} kW in the fullest of the latter{capped}" if of_switches else ""
    )
    elsewhere = ", in racks that are not among these" if hall.switch_racks is None else ""
    beside = "servers" if hall.with_hosts else "interconnect"
    yield (
        f"The hall: {racks}{of_switches} in {words.counted(hall.rows, 'row')}, {along:,.0f} m by"
        f" {across:,.0f} m, with {hall.rack_w / 1e3:,.3g} kW of GPUs, {beside} and NICs in"
        f" each{of_first}{of_fullest}; everything together draws {words.power(hall.w)},"
        f" {words.power(hall.w * pue)} at a PUE of {pue:g}. Switches and optics draw"
        f" {words.power(hall.w - hall.rack_w * hall.racks)} of it{elsewhere}."
    )
    longest = [
        f"{max(cables):,} m below tier {level}" for level, cables in enumerate(hall.cables, start=1)
    ]
    yield f"Cables take up to {', '.join(longest)}."


def _lane_notes(instance: Instance, design: Design) -> Iterator[str]:
    """What does not mate on the first tier where that is so: the optic and what its links join."""
    mismatch = first_unmated(instance.network, design.fabric)
    if mismatch is not None:
        level, ends = mismatch
        ends_text = words.both(f"{end.name} ({_lanes(end)})" for end in ends)
        yield (
            f"Links below tier {level} do not mate as they are listed: {ends_text}. Order parts of"
            " one rate of lanes and one protocol; network.tier_switches = 'any' plans with such"
            " alone."
        )


def _lanes(end: Nic | Optic | Switch) -> str:
    """`ethernet, lanes of 100 Gbit/s`."""
    protocol, rate = getattr(end, "protocol", None) or (), end.lane_gbit_s or ()
    speaks = words.alternatives((protocol,) if isinstance(protocol, str) else protocol)
    listed = (rate,) if isinstance(rate, float | int) else rate
    rates = words.alternatives(f"{lane_rate:g}" for lane_rate in listed)
    texts = filter(None, (speaks, f"lanes of {rates} Gbit/s" if rates else ""))
    return ", ".join(texts) or "not known"


def _other_notes(instance: Instance, design: Design) -> Iterator[str]:
    """What else somebody who builds a design has to know."""
    domain, fabric = design.hb_domain, design.fabric
    fewest = -(-design.gpus // domain.size)
    if instance.network.domain_fill == "even" and fewest < domain.count:
        fewer = f"{words.count(fewest)} to {words.count(domain.count)} of them"
        needed = (
            f", as {words.both(instance.even_for)} need them so; filled unevenly, {fewer} might do."
        )
        free = f"; with network.domain_fill = 'any' {fewer} may do."
        yield f"As many GPUs train in every {domain.name}{needed if instance.even_for else free}"
    yield from _empty_ports(instance, design)
    yield from _adapter_notes(instance, design)
    if design.spare_domains and fabric.tiers:
        yield (
            "Domains that stand by have no switch ports: each takes the links of the domain that it"
            " stands in for, by a patch panel or by hand, and availability.restart_s has to hold"
            " that time."
        )
    if fabric.kind == "rail-only" and fabric.tiers:
        yield (
            "No switch joins two rails: traffic between ranks of a domain passes through that"
            " domain, and storage needs a network of its own."
        )


def _empty_ports(instance: Instance, design: Design) -> Iterator[str]:
    """Which switches above the leaves use less than half of their ports, so that links to all of
    them are alike.
    """
    fabric, rate = design.fabric, link_gbit_s(instance, design)
    for tier in fabric.tier[1:] if instance.network.bundles == "even" else ():
        way, in_use = (
            switch_of(instance, fabric, tier, rate),
            tier.down_ports + tier.uplinks_per_switch,
        )
        # One switch for each plane is the fewest there can be, however few of its ports are used.
        if way is not None and 2 * in_use < way.radix and tier.switches > fabric.planes:
            yield (
                f"The {words.counted(tier.switches, 'switch')} of tier {tier.level} use {in_use} of"
                f" {way.radix} ports each, so that every switch below has as many links to each;"
                " with network.bundles = 'any' fewer may do."
            )


def _adapter_notes(instance: Instance, design: Design) -> Iterator[str]:
    """Which NICs are not those that servers come with."""
    nic = design.fabric.nic.name
    for domain in instance.network.hb_domains if design.fabric.tiers else ():
        if domain.name == design.hb_domain.name and domain.nics and nic not in domain.nics:
            yield (
                f"{domain.name} comes with {words.alternatives(domain.nics)}, not with {nic}: ask"
                " for such servers first."
            )


def leaf_notes(designs: Sequence[Design]) -> list[str]:
    """What the loss of a leaf means for training, in one line of 80 columns."""
    notes = list(dict.fromkeys(_leaf_note(design) for design in designs if design.fabric.tiers))
    differ = ["coopt faults says what each network does without a leaf."]
    return notes if len(notes) < 2 else differ


def _leaf_note(design: Design) -> str:
    """What becomes of training without a leaf; a switch of a single tier may serve several
    rails.
    """
    fabric = design.fabric
    ports, rails = fabric.nic.planes, fabric.planes // fabric.nic.planes
    rails_taken = -(-rails // (fabric.tier[0].switches // ports)) if fabric.tiers == 1 else 1
    others = rails - rails_taken
    nics = design.hb_domain.active * fabric.nic.per_gpu // fabric.nic.shared_by
    # Where all NICs of a domain hang on one leaf, its loss cuts the whole domain off.
    on_one_leaf = fabric.kind == "clos" and fabric.tier[0].down_ports >= nics
    if ports > 1:
        lost = "If a leaf is lost, NICs keep their other ports: no restart"
    elif fabric.kind != "rail-only" and (on_one_leaf or 1 in (nics, fabric.tier[0].switches)):
        lost = "If a leaf is lost, training stops: it joins whole HB domains"
    elif fabric.kind != "rail-only":
        lost = "If a leaf is lost, training restarts over the other NICs"
    elif rails == 1:
        lost = "There is a single rail: if a leaf is lost, training stops"
    elif not others:
        lost = f"All {words.count(rails)} rails share one switch: if it is lost, training stops"
    elif rails_taken > 1:
        lost = f"If a leaf is lost, training restarts on the other {others} rails"
    else:
        lost = f"If a rail is lost, training restarts on the other {words.count(others)}"
    return f"{lost} (coopt faults)."
