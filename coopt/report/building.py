"""What somebody who builds a network has to know of its parts and cables: what does not mate,
which modules to order, what else it needs, and what other cables would save.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from coopt.instance.hardware import HbDomain, Nic, Optic, Switch
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance, question_on
from coopt.instance.texts import that_hold
from coopt.network.halls import NetworkHall
from coopt.network.optics import first_unmated
from coopt.network.orders import (
    Networks,
    costs_by_length,
    is_rewired,
    link_gbit_s,
    networks_of_design,
    notes_by_part,
    order_notes,
    placed_optics,
    switch_of,
)
from coopt.plan.couplings import Part
from coopt.plan.parts import Design, Fabric, NicChoice
from coopt.report import words

LEAST_SAVED = 0.001
"""Of the bill, which a note is worth."""


def building_notes(instance: Instance, design: Design, *, ordered: bool = False) -> list[str]:
    """What to order otherwise, unless that is told of the whole plan, and what else a design
    implies.
    """
    halls = [*placed_optics(instance, design)]
    return [
        *(() if ordered else order_notes(instance, design, halls)),
        *length_notes(instance, networks_of_design(instance, design)),
        *(sentence for placed in halls for sentence in hall_sentences(instance, placed.hall)),
        *_other_notes(instance, design),
    ]


def mating_notes(instance: Instance, designs: Mapping[str, Design]) -> Iterator[str]:
    """Which links of parts, by their names, nobody can build as planned, as their ends do not mate:
    the first tier of each where that is so, with what its links join.
    """
    given = instance.network.given
    cure = (
        "Check protocol and lane_gbit_s of these parts."
        if given
        else "Buy parts of one protocol and one lane rate (network.buildable = true plans with"
        " those only)."
    )
    notes: dict[str, list[str]] = {name: [] for name in designs}
    for name, design in designs.items():
        if (mismatch := first_unmated(instance.network, design.fabric)) is not None:
            ends = words.both(f"{end.name} ({_lanes(end)})" for end in mismatch[1])
            what = "do not mate" if given else "cannot be built as planned, as they do not mate"
            notes[name].append(f"The ends of links below tier {mismatch[0]} {what}: {ends}. {cure}")
    yield from notes_by_part(notes)


def hall_sentences(instance: Instance, hall: NetworkHall) -> list[str]:
    """How racks stand and what they draw, and the longest cables of each tier."""
    (along, across), pue = hall.sides_m, instance.objective.pue
    of_switches = fullest = ""
    if hall.switch_racks:
        cap_kw = instance.network.hall.switch_rack_kw
        capped = " (network.hall.switch_rack_kw would cap it)" if cap_kw is None else ""
        if cap_kw is not None and hall.switch_rack_w > 1e3 * cap_kw * (1 + EQUAL):
            key = f"network.hall.switch_rack_kw = {cap_kw:g}"
            capped = f", more than {key}: one switch with its optics draws that"
        of_switches = f" of GPUs and {words.count(hall.switch_racks)} of switches"
        fullest = f"; the fullest rack of switches draws {hall.switch_rack_w / 1e3:,.3g} kW{capped}"
    elsewhere = " (their racks are not counted)" if hall.switch_racks is None else ""
    longest = [
        f"{max(cables):,} m long below tier {level}"
        for level, cables in enumerate(hall.cables, start=1)
    ]
    return [
        f"The hall has {words.counted(hall.racks, 'rack')}{of_switches} in"
        f" {words.counted(hall.rows, 'row')}, {along:,.0f} m by {across:,.0f} m. A rack of GPUs,"
        f" {'servers' if hall.with_hosts else 'interconnect'} and NICs draws"
        f" {hall.rack_w / 1e3:,.3g} kW{fullest}. The hall draws {words.power(hall.w)}, of which"
        f" switches and optics take {words.power(hall.w - hall.rack_w * hall.racks)}{elsewhere};"
        f" with cooling (PUE {pue:g}) it draws {words.power(hall.w * pue)}.",
        f"Cables are up to {words.both(longest)}.",
    ]


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
    fewest = -(-design.gpus // max(1, domain.size))
    # What divides evenly among the fewest domains was tried on them.
    uneven_only = design.gpus % max(1, fewest) > 0 and not instance.network.given
    if instance.network.domain_fill == "even" and fewest < domain.count and uneven_only:
        uneven = (
            f", but uneven filling is not supported with {words.both(instance.even_for)}"
            if instance.even_for
            else " (network.domain_fill = 'any' tries uneven filling)"
        )
        yield (
            f"The same number of GPUs trains in each of the {words.count(domain.count)}"
            f" {domain.name}; {words.count(fewest)} could hold all GPUs that train{uneven}."
        )
    yield from _empty_ports(instance, design)
    yield from sold_notes(instance, design)
    yield from reach_notes(instance, design)
    yield from _leaves_of_domain(instance, design)
    if design.spare_domains and fabric.tiers:
        within = "; availability.restart_s has to include that time"
        yield (
            "Spare domains have no switch ports. When one replaces a failed domain, the links of"
            " the failed one are moved over at a patch panel or by hand"
            f"{within if instance.availability else ''}."
        )
    if fabric.kind == "rail-only" and fabric.tiers and fabric.planes > fabric.nic.planes:
        rails = _rails_on_leaf(fabric)
        forwarded = "forwarded inside an HB domain"
        yield (
            f"Up to {words.count(rails)} rails share a switch, but the plan sends nothing over it"
            f" from rail to rail: such traffic is {forwarded}."
            if rails > 1
            else "Only the core can connect rails to each other, and the plan sends nothing over"
            f" it from rail to rail: such traffic is {forwarded}."
            if instance.sharing.core is not None
            else "The network does not connect rails to each other: traffic between rails is"
            f" {forwarded}, and storage needs its own network."
        )


MOST_LEAVES = 16
"""That a domain is cabled to without a note: as many as a server has NICs, or twice."""


def _leaves_of_domain(instance: Instance, design: Design) -> Iterator[str]:
    """That the cables of a large domain go to as many switches as it has rails."""
    domain, fabric = design.hb_domain, design.fabric
    if fabric.tiers < 2 or fabric.kind == "clos" or instance.network.given:
        return
    rails = domain.size * fabric.nic.per_gpu // fabric.nic.shared_by
    joined = fabric.tier[0].down_ports // domain.count if fabric.kind != "rail-only" else 1
    leaves, planes = -(-rails // max(joined, 1)), fabric.nic.planes
    if leaves > MOST_LEAVES:
        yield (
            f"Each {domain.name} is cabled to {leaves * planes} leaf switches, as each of its"
            f" {rails} NICs has a rail of its own{f' on each of {planes} planes' * (planes > 1)}."
            " Racks can also be wired with one rail for each NIC of a tray."
            " Plans do not try that; docs/designs.md shows how to count and bill such a network."
        )


def sold_notes(instance: Instance, design: Design) -> Iterator[str]:
    """Whether servers come with the NICs of a design."""
    for _, sold, choice in _servers_of(instance, design):
        if not sold.nics or choice.name in sold.nics or instance.network.given:
            continue
        own = words.alternatives(sold.nics)
        if sold.nics_on_board:
            yield f"{sold.name} has {own} on its boards, and cannot be had with {choice.name}."
        else:
            yield (
                f"{sold.name} comes with {own}, not with {choice.name}: ask the vendor whether such"
                " servers exist."
            )


def reach_notes(instance: Instance, design: Design) -> Iterator[str]:
    """How much of the NICs of a design their GPUs reach."""
    for question, sold, choice in _servers_of(instance, design):
        nic = next(nic for nic in question.network.nics if nic.name == choice.name)
        sent_gbit_s, reached_gbit_s = (
            nic.gbit_s * choice.per_gpu / choice.shared_by,
            sold.to_nics_gbyte_s * 8,
        )
        if sent_gbit_s > reached_gbit_s:
            key = "nic_gbyte_s of the HB domain" if sold.nic_gbyte_s else "host_gbyte_s of the GPU"
            yield (
                f"A GPU of {sold.name} reaches its NICs at only {reached_gbit_s:g} Gbit/s ({key}),"
                f" of the {sent_gbit_s:g} Gbit/s that {nic.name} gives it; predicted times account"
                " for that."
            )


def _servers_of(
    instance: Instance, design: Design
) -> Iterator[tuple[Instance, HbDomain, NicChoice]]:
    """The HB domain of a network with its NICs, and the question for its GPUs."""
    question = question_on(instance, design.hb_domain.name)
    for sold in question.network.hb_domains if design.fabric.tiers else ():
        if sold.name == design.hb_domain.name:
            yield question, sold, design.fabric.nic


def _empty_ports(instance: Instance, design: Design) -> Iterator[str]:
    """Which switches above the leaves use less than half of their ports, so that links to all of
    them are alike.
    """
    fabric, rate = design.fabric, link_gbit_s(instance, design)
    uneven = (
        "pinned flows need that (network.routing)"
        if instance.network.routing == "pinned"
        else "uneven numbers might need fewer switches (network.bundles = 'any')"
    )
    has_choice = instance.network.bundles == "even" and not instance.network.given
    # those of a pod are as many as each of its leaves reaches, and cores one for each of these
    groups = fabric.tier[0].uplinks_per_switch // fabric.pod_bundle if fabric.tiers == 3 else 1
    for tier in fabric.tier[1:][-1:] if has_choice else ():
        way, in_use = switch_of(instance, fabric, tier, rate), tier.down_ports
        if way is not None and 2 * in_use < way.radix and tier.switches > fabric.planes * groups:
            yield (
                f"The {words.counted(tier.switches, 'switch')} of tier {tier.level} use only"
                f" {in_use} of their {way.radix} ports each. Every switch below has the same number"
                f" of links to each switch it reaches; {uneven}."
            )


def leaf_notes(designs: Sequence[Design]) -> list[str]:
    """What the loss of a leaf means for training, in one line of 80 columns."""
    notes = list(dict.fromkeys(_leaf_note(design) for design in designs if design.fabric.tiers))
    return (
        notes
        if len(notes) < 2
        else ["Losing a leaf affects the networks differently (see coopt faults)."]
    )


def _rails_on_leaf(fabric: Fabric) -> int:
    """The most rails on one leaf: a switch of a single tier may serve several."""
    ports = fabric.nic.planes
    rails = fabric.planes // ports
    return -(-rails // (fabric.tier[0].switches // ports)) if fabric.tiers == 1 else 1


def _leaf_note(design: Design) -> str:
    """What becomes of training without a leaf."""
    fabric = design.fabric
    ports, rails = fabric.nic.planes, fabric.planes // fabric.nic.planes
    rails_taken = _rails_on_leaf(fabric)
    others, joined = rails - rails_taken, fabric.kind != "rail-only"
    left = words.counted(others, "rail")
    nics = design.hb_domain.active * fabric.nic.per_gpu // fabric.nic.shared_by
    ends = design.hb_domain.size * fabric.nic.per_gpu * fabric.nic.ports_in_plane
    # Where each port of a domain has leaves of its own, or ports take turns in those of some
    # domains, those of a NIC lead to several of them.
    of_rail = ends * ports * -(-design.hb_domain.count // fabric.tier[0].down_ports)
    apart = (
        fabric.nic.ports_in_plane > 1
        and fabric.tiers > 1
        and fabric.kind != "clos"
        and (fabric.leaf_domains > 0 or fabric.tier[0].switches == of_rail)
    )
    # Where all NICs of a domain hang on one leaf, its loss cuts the whole domain off.
    on_one_leaf = (
        fabric.kind == "clos" and fabric.tier[0].down_ports >= nics * fabric.nic.ports_in_plane
    )
    cut_off = on_one_leaf or 1 in (nics, fabric.tier[0].switches)
    # The first that holds is said.
    outcomes = {
        "Losing a leaf needs no restart: NICs have ports on other leaves": ports > 1 or apart,
        "Losing a leaf stops training: every NIC of a domain is on it": joined and cut_off,
        "After losing a leaf, training restarts without the NICs on it": joined,
        "Losing a leaf stops training: there is only one rail": rails == 1,
        f"Losing the only switch stops training: all {words.count(rails)} rails use it": not others,
        f"After losing a leaf, training restarts on the other {left}": rails_taken > 1,
        f"After losing a rail, training restarts on the other {left}": True,
    }
    return f"{that_hold(outcomes)[0]} (coopt faults)."


def length_notes(instance: Instance, networks: Networks) -> Iterator[str]:
    """What cables as long as in the hall would save."""
    costs, kind = costs_by_length(instance, networks), instance.objective.billed
    if costs is None:
        return
    saved = costs.saved(kind)
    if saved > LEAST_SAVED * sum(cost.of(kind) for cost in costs.now):
        change = f"draw {words.power(saved)}" if kind == "power" else f"cost {words.money(saved)}"
        counted = " with electricity" if kind == "tco" else ""
        yield (
            "Some cables of the hall are shorter than network.link_reach_m. Chosen by their"
            f" lengths, all cables {change} less{counted} (network.{costs.change})."
        )


def standing_notes(instance: Instance, parts: Sequence[Part]) -> Iterator[str]:
    """What no bill has of what stands."""
    if is_rewired(instance, parts):
        (stands,) = instance.existing
        fibre = " All of its fibre counts as bought anew." if instance.network.fibre else ""
        yield (
            f"The existing network ({words.counted(len(stands.tiers), 'tier')},"
            f" {stands.joined_as}) is rewired: moving its cables, and the days without it, are not"
            f" in the bill.{fibre}"
        )
