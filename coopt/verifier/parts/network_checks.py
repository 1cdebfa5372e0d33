"""Build the network the plan describes, count it, and follow its communication groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from coopt.instance.texts import counted
from coopt.plan.parts import Fabric
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree
from coopt.verifier.parts.bills import SwitchLevel
from coopt.verifier.parts.layouts import Ports
from coopt.verifier.parts.link_loads import busiest_links, is_even
from coopt.verifier.parts.loads import Pattern, patterns_of
from coopt.verifier.parts.space import DesignFamily, OpticPair
from coopt.verifier.parts.spans import Reach, kept_inside, mean_loads, reach_of
from coopt.verifier.parts.wiring import (
    LevelCount,
    Node,
    Numbering,
    WiredGraph,
    attached_ends,
    components,
    count_levels,
    fullest_switches,
    numbering_of,
    uneven_switches,
    wire,
)
from coopt.verifier.parts.workload_checks import ClaimedRun
from coopt.verifier.training.caching import kept
from coopt.verifier.training.placing import Placement


def groups_across(place: Placement) -> dict[str, Pattern]:
    """The groups of a placement that cross domains, by their kind of traffic."""
    patterns = patterns_of(place, looped=False)._replace(tied=Pattern("pair", 1, 1))._asdict()
    return {kind: pattern for kind, pattern in patterns.items() if pattern.members > 1}


def neighbours(group: Pattern, domains: int) -> Iterator[tuple[int, int]]:
    """Each domain with the next one of its group, the last with the first."""
    for domain in range(domains):
        is_last = domain // group.stride % group.members == group.members - 1
        yield domain, domain + group.stride - group.block * is_last


class GpuPlaces:
    """Where the active GPUs of a design are on its graph.

    One plane is walked where all of them are alike; rails of spare GPUs are left out.
    """

    def __init__(self, family: DesignFamily, ports: Ports, wiring: WiredGraph) -> None:
        self._wiring = wiring
        self._tiers = ports.tiers
        self._order: Numbering = numbering_of(family, ports.down)
        self._parts = components(wiring)
        self._split_planes = family.planes > 1
        self._family, self.domains = family, family.domains

    def leaf(self, plane: int, domain: int, rail: int) -> Node:
        """The leaf a NIC is attached to, read off the graph."""
        if not self._wiring.has_ends:
            return 1, plane, self._order.leaf(domain, rail)
        node: Node = next(self._wiring.graph.neighbors((0, plane, domain, rail)))
        return node

    @kept()
    def leaves(self, plane: int, rail: int) -> list[Node]:
        """The leaf of every domain on a rail, in turn; read once for all groups that are
        followed.
        """
        return [self.leaf(plane, domain, rail) for domain in range(self.domains)]

    def part(self, leaf: Node) -> int:
        """The connected part of the graph a leaf belongs to."""
        return self._parts[leaf]

    def pod(self, leaf: Node) -> int:
        """The pod whose aggregation switches a leaf is joined to."""
        return next(int(node[2]) for node in self._wiring.graph.neighbors(leaf) if node[0] == 2)

    def parted(self, group: Pattern, key: Callable[[Node], object], place: Placement) -> int:
        """How many neighbours in groups have leaves that differ in `key`."""
        count, nics = 0, self._family.nics_of(place.filled)
        # of planes that are drawn, those on which NICs of GPUs in training send
        for plane in range(min(self._wiring.planes, nics) if self._split_planes else 1):
            for rail in range(1 if self._split_planes else nics):
                leaves = self.leaves(plane, rail)
                keys = {leaf: key(leaf) for leaf in set(leaves)}
                of = [keys[leaf] for leaf in leaves]
                # on one leaf, in one pod or part nobody is parted
                if len(set(keys.values())) > 1:
                    count += sum(of[a] != of[b] for a, b in neighbours(group, self.domains))
        return count


def unconnected_pairs(places: GpuPlaces, place: Placement) -> int:
    """How many pairs of GPUs next to each other in the ring of their group have no path between
    them.
    """
    return sum(places.parted(group, places.part, place) for group in groups_across(place).values())


def pairs_outside(places: GpuPlaces, place: Placement, reach: Reach, tiers: int) -> int:
    """How many pairs leave the leaf or the pod which their kind of traffic is charged for not to
    leave.
    """
    if tiers == 1:
        return 0
    limits, count = kept_inside(reach, place.filled, place)._asdict(), 0
    for kind, group in groups_across(place).items():
        if limits[kind] == "leaf":
            count += places.parted(group, lambda leaf: leaf, place)
        elif tiers == 3 and limits[kind] == "pod":
            count += places.parted(group, places.pod, place)
    return count


def check_network(
    ledger: Ledger,
    family: DesignFamily,
    ports: Ports,
    fabric: Fabric,
    runs: Sequence[ClaimedRun],
    wiring: WiredGraph | None = None,
    optics: Sequence[OpticPair] | None = None,
) -> tuple[SwitchLevel, ...]:
    """Check counts, ports and connections on the graph; what was counted, level by level.

    Parameters
    ----------
    runs
        What trains on the network.
    wiring
        The graph, where it is not that of the ports.
    optics
        Those of the levels, which say how many links a module carries; one where left out.
    """
    if family.attachment is None:
        _totals(ledger, fabric, (), ())
        return ()
    wiring = wiring or _wired(family, ports)
    counts = count_levels(wiring, family, ports)
    _levels(ledger, fabric, counts)
    switch_levels = tuple(
        SwitchLevel(count.switches, count.links, count.below, count.above) for count in counts
    )
    carried = (
        [family.attachment.carried(ends) for ends in optics] if optics else [(1, 1)] * len(counts)
    )
    _totals(ledger, fabric, switch_levels, carried)
    _ports(ledger, family, wiring)
    if ports.bundle:
        uneven = uneven_switches(wiring)
        ledger.same(
            "bundles",
            0,
            uneven,
            f"On {counted(uneven, 'top switch')} of the network graph, the downlinks are not spread"
            " evenly over the switches below.",
        )
    _groups(ledger, family, ports, wiring, runs)
    return switch_levels


def _levels(ledger: Ledger, fabric: Fabric, counts: tuple[LevelCount, ...]) -> None:
    for tier, count in zip(fabric.tier, counts, strict=True):
        subject = f"Level {tier.level} of the network graph has"
        ledger.same(
            "tier-switches",
            tier.switches,
            count.switches,
            f"{subject} {counted(count.switches, 'switch')}, but the plan says {tier.switches}.",
        )
        claimed_ports = f"{tier.down_ports} down, {tier.uplinks_per_switch} up"
        counted_ports = f"{count.down_ports} down, {count.up_ports} up"
        ledger.same(
            "tier-ports",
            claimed_ports,
            counted_ports,
            f"On the fullest switch of level {tier.level} the ports in use are {counted_ports}, but"
            f" the plan says {claimed_ports}.",
        )
        ledger.same(
            "tier-links",
            tier.links,
            count.links,
            f"{subject} {counted(count.links, 'link')} to the level below, but the plan says"
            f" {tier.links}.",
        )


def _totals(
    ledger: Ledger,
    fabric: Fabric,
    counts: Sequence[SwitchLevel],
    carried: Sequence[tuple[int, int]],
) -> None:
    switches = sum(count.switches for count in counts)
    ends = sum(sum(count.modules(links)) for count, links in zip(counts, carried, strict=True))
    ledger.same(
        "switch-count",
        fabric.switch_count,
        switches,
        f"The network graph has {counted(switches, 'switch')}, but the plan says"
        f" {fabric.switch_count}.",
    )
    ledger.same(
        "transceiver-count",
        fabric.transceiver_count,
        ends,
        f"The network graph has {counted(ends, 'transceiver')} at the ends of its links, but the"
        f" plan says {fabric.transceiver_count}.",
    )


def _ports(ledger: Ledger, family: DesignFamily, wiring: WiredGraph) -> None:
    attachment = family.network
    excesses = [
        (links - attachment.at(tier).radix, links, attachment.at(tier).radix)
        for tier, links in fullest_switches(wiring).items()
    ]
    over, used_ports, radix = max(excesses)
    ledger.holds(
        "radix",
        over <= 0,
        radix,
        used_ports,
        f"A switch of the network graph has {counted(used_ports, 'link')} but only"
        f" {counted(radix, 'port')}.",
    )
    ends, attached = family.ends * wiring.planes, attached_ends(wiring)
    ledger.same(
        "attached",
        ends,
        attached,
        f"Of {counted(ends, 'NIC port')} that have to lead to a leaf, {attached} do.",
    )


def _groups(
    ledger: Ledger,
    family: DesignFamily,
    ports: Ports,
    wiring: WiredGraph,
    runs: Sequence[ClaimedRun],
) -> None:
    places, reach = GpuPlaces(family, ports, wiring), reach_of(family, ports)
    # on uneven bundles flows are charged for links in common: routed, they may load the busiest one
    # less; the first and last rail run on planes of their own
    routable = (
        reach.layout is not None
        and wiring.has_ends
        and wiring.copies == 1
        and len(wiring.graph) <= ROUTED
        and is_even(wiring)
    )
    for run in runs:
        name, place = run.workload.name, run.place
        pairs = unconnected_pairs(places, place)
        ledger.same(
            "connected",
            0,
            pairs,
            f"Pairs of NICs between which workload {name!r} communicates, but no path leads:"
            f" {pairs}.",
        )
        pairs = pairs_outside(places, place, reach, ports.tiers)
        ledger.same(
            "locality",
            0,
            pairs,
            f"Pairs of NICs whose traffic for workload {name!r} is timed as staying on a leaf or in"
            f" a pod, but leaves it: {pairs}.",
        )
        if routable:
            # what further uplinks would have in common may be charged, which is less
            _loads(ledger, run, family, reach, wiring, exact=reach.links.leaf == ports.up)


ROUTED = 1024
"""Nodes of a graph on which every flow is routed."""

_wired, _routed = lru_cache(maxsize=1)(wire), lru_cache(maxsize=8)(busiest_links)
"""The last graph and the loads on it, for parts and plans that are alike; nothing here changes a
graph.
"""


def _loads(
    ledger: Ledger,
    run: ClaimedRun,
    family: DesignFamily,
    reach: Reach,
    wiring: WiredGraph,
    *,
    exact: bool,
) -> None:
    """Check that each kind of traffic is charged what it loads the busiest link with; no less where
    that is not exact.
    """
    charged = mean_loads(reach, run.place.filled, run.place, looped=run.looped)._asdict()
    expert_tp = run.workload.options.expert_tp is True
    routed = _routed(wiring, family, run.place, looped=run.looped, expert_tp=expert_tp)
    texts = [tuple(f"{kind} {loads[kind]:.9g}" for kind in loads) for loads in (charged, routed)]
    is_as_charged = all(
        agree(charged[kind], routed[kind]) or (charged[kind] > routed[kind] and not exact)
        for kind in routed
    )
    ledger.holds(
        "link-loads",
        is_as_charged,
        texts[0],
        texts[1],
        f"The times of workload {run.workload.name!r} assume link loads of {', '.join(texts[0])},"
        f" but routing its flows gives {', '.join(texts[1])}.",
        TOLERANCE,
    )
