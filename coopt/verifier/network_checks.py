"""Build the network the plan describes, count it, and follow its communication groups."""

from __future__ import annotations

from collections.abc import Sequence

from coopt.plan.schema import Fabric
from coopt.verifier.counting import Count, attached_ends, count_levels, fullest_switch
from coopt.verifier.groups import Places, outside, unconnected
from coopt.verifier.layouts import Level, Ports
from coopt.verifier.ledger import Ledger
from coopt.verifier.placing import Placement
from coopt.verifier.space import Family
from coopt.verifier.spans import reach_of
from coopt.verifier.wiring import Wiring, wire


def check_network(
    ledger: Ledger,
    family: Family,
    ports: Ports,
    fabric: Fabric,
    placements: Sequence[tuple[str, Placement]],
    wiring: Wiring | None = None,
) -> tuple[Level, ...]:
    """Check counts, ports and connections on the graph; what was counted, level by level.

    Parameters
    ----------
    placements
        Workload names with their placements.
    wiring
        The graph, where it is not that of the ports.
    """
    if family.gear is None:
        _totals(ledger, fabric, ())
        return ()
    wiring = wiring or wire(family, ports)
    counts = count_levels(wiring, family, ports)
    _levels(ledger, fabric, counts)
    _totals(ledger, fabric, counts)
    _ports(ledger, family, wiring)
    _groups(ledger, family, ports, wiring, placements)
    return tuple(Level(count.switches, count.links) for count in counts)


def _levels(ledger: Ledger, fabric: Fabric, counts: tuple[Count, ...]) -> None:
    for tier, count in zip(fabric.tier, counts, strict=True):
        where = f"Level {tier.level} of the wiring has"
        why = f"{where} {count.switches} switches, the plan says {tier.switches}."
        ledger.same("tier-switches", tier.switches, count.switches, why)
        claimed = f"{tier.down_ports} down, {tier.uplinks_per_switch} up"
        found = f"{count.down_ports} down, {count.up_ports} up"
        why = f"{where} ports in use on its fullest switch: {found}; the plan says {claimed}."
        ledger.same("tier-ports", claimed, found, why)
        why = f"{where} {count.links} links to the level below, the plan says {tier.links}."
        ledger.same("tier-links", tier.links, count.links, why)


def _totals(ledger: Ledger, fabric: Fabric, counts: tuple[Count, ...]) -> None:
    switches, ends = sum(count.switches for count in counts), 2 * sum(count.links for count in counts)
    why = f"The wiring has {switches} switches, the plan says {fabric.switch_count}."
    ledger.same("switch-count", fabric.switch_count, switches, why)
    why = f"The wiring has {ends} transceivers, two for each link, the plan says {fabric.transceiver_count}."
    ledger.same("transceiver-count", fabric.transceiver_count, ends, why)


def _ports(ledger: Ledger, family: Family, wiring: Wiring) -> None:
    assert family.gear is not None
    radix, used = family.gear.switch.radix, fullest_switch(wiring)
    why = f"A switch of the wiring has {used} links and {radix} ports."
    ledger.holds("radix", used <= radix, radix, used, why)
    ends, found = family.ends * wiring.planes, attached_ends(wiring)
    ledger.same("attached", ends, found, f"{ends} NICs need a link to a leaf, {found} have one.")


def _groups(
    ledger: Ledger, family: Family, ports: Ports, wiring: Wiring, placements: Sequence[tuple[str, Placement]]
) -> None:
    places, reach = Places(family, ports, wiring), reach_of(family, ports)
    for name, place in placements:
        apart = unconnected(places, place)
        why = f"{apart} pairs of GPUs that workload {name!r} makes talk to each other have no path between them."
        ledger.same("connected", 0, apart, why)
        beyond = outside(places, place, reach, ports.tiers)
        why = f"{beyond} pairs of GPUs of workload {name!r} leave the leaf or pod whose rate their group is charged."
        ledger.same("locality", 0, beyond, why)
