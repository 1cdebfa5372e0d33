"""Build the network of a design as an explicit graph, and count its switches, links and ports.

Nodes are tuples that start with the level: 0 an end point, 1 a leaf (or the only switch), 2 a spine
or an aggregation switch, 3 a core switch. The edge attribute `links` counts parallel links. Where
islands share a core, the node attribute `shared` counts the links of a leaf into it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import networkx as nx

from coopt.verifier.parts.layouts import (
    Ports,
    ceil_ratio,
    core_count,
    core_ports,
    leaf_count,
    planes_on_switch,
    spine_count,
)
from coopt.verifier.parts.space import DesignFamily


class Numbering(NamedTuple):
    """How the end points of one plane fill its leaves; `down` as the plan says."""

    kind: str
    domains: int
    rails: int
    """NICs of a domain that this plane holds: 1 for rail-only."""
    down: int
    leaves: int
    leaf_rails: int
    """Rails whose NICs are on one leaf, of so many consecutive domains."""
    leaf_domains: int

    def leaf(self, domain: int, rail: int) -> int:
        """The leaf of a NIC."""
        if self.kind == "clos":
            return (domain * self.rails + rail) // self.down
        leaves_of_rails = ceil_ratio(self.domains, self.leaf_domains)
        groups = ceil_ratio(self.rails, self.leaf_rails)
        # several rails of some domains alone: neighbours are on different leaves
        group = rail % groups if self.leaf_domains < self.domains else rail // self.leaf_rails
        return group * leaves_of_rails + domain // self.leaf_domains

    def ends(self) -> list[int]:
        """End points on each leaf."""
        if self.kind == "clos":
            return _fillings(self.domains * self.rails, self.down)
        return [
            rails * domains
            for rails in _fillings(self.rails, self.leaf_rails)
            for domains in _fillings(self.domains, self.leaf_domains)
        ]


def numbering_of(family: DesignFamily, down: int) -> Numbering:
    """The numbering of a plane."""
    rails = family.rails // family.planes
    leaves = leaf_count(family, down)
    return Numbering(
        family.network.kind, family.domains, rails, down, leaves, *family.leaf_block(down)
    )


def _fillings(total: int, size: int) -> list[int]:
    """End points of each leaf when leaves hold `size` of a total, and the last one the rest."""
    filled, remainder = divmod(total, size)
    return [size] * filled + ([remainder] if remainder else [])


EXPLICIT = 100_000
"""End points up to which a graph is drawn in full."""

Node = tuple[int, ...]
Graph = Any  # networkx is untyped


class WiredGraph(NamedTuple):
    """A graph and what it stands for.

    Beyond `EXPLICIT` end points one plane stands for all (`copies`); beyond that many in one plane
    a leaf carries the number of its end points (`ends`) in place of nodes, and of the parallel
    networks that start at the leaf's uplinks one is drawn (`slices` in all).
    """

    graph: Graph
    planes: int
    copies: int
    slices: int
    has_ends: bool


def wire(family: DesignFamily, ports: Ports) -> WiredGraph:
    """The network of a design whose numbers are known to be consistent."""
    wiring = _graph_of(family, ports)
    core_links = core_ports(family, ports)
    for node in wiring.graph:
        if node[0] == 1:
            wiring.graph.nodes[node]["shared"] = core_links
    return wiring


def _graph_of(family: DesignFamily, ports: Ports) -> WiredGraph:
    total = family.domains * family.rails
    if ports.tiers == 1:
        return _chassis(family, total <= EXPLICIT)
    # large networks are drawn by one plane, and beyond that many ends by one slice of it
    planes = family.planes if total <= EXPLICIT else 1
    has_ends = family.ends <= EXPLICIT
    slices = 1 if has_ends or ports.tiers == 2 else ports.slices
    graph, order = nx.Graph(), numbering_of(family, ports.down)
    for plane in range(planes):
        _add_leaves(graph, plane, order, has_ends)
        if ports.tiers == 2:
            _join(graph, _spine_links(plane, order.leaves, ports, _radix(family, 2)))
        else:
            _join(graph, _pod_links(plane, order.leaves, ports, ports.slices // slices))
            _join(
                graph,
                _core_links(plane, order.leaves, ports, ports.slices // slices, _radix(family, 3)),
            )
    return WiredGraph(graph, planes, family.planes // planes, slices, has_ends)


def _radix(family: DesignFamily, tier: int) -> int:
    return family.network.at(tier).radix


def _join(graph: Graph, links: Iterator[tuple[Node, Node]]) -> None:
    """Add links; parallel ones raise the count of their edge."""
    counts = Counter(links)
    graph.add_edges_from((a, b, {"links": count}) for (a, b), count in counts.items())


def _chassis(family: DesignFamily, explicit: bool) -> WiredGraph:
    """One tier: as many planes on a switch as fit."""
    planes_of_switch = planes_on_switch(family)
    planes = family.planes if explicit else min(planes_of_switch, family.planes)
    graph = nx.Graph()
    _join(
        graph,
        (
            ((0, plane, domain, rail), (1, plane // planes_of_switch))
            for plane in range(planes)
            for domain in range(family.domains)
            for rail in range(family.rails // family.planes)
        ),
    )
    return WiredGraph(graph, planes, ceil_ratio(family.planes, planes), 1, True)


def _add_leaves(graph: Graph, plane: int, order: Numbering, has_ends: bool) -> None:
    if not has_ends:
        graph.add_nodes_from(
            ((1, plane, leaf), {"ends": ends}) for leaf, ends in enumerate(order.ends())
        )
        return
    _join(
        graph,
        (
            ((0, plane, domain, rail), (1, plane, order.leaf(domain, rail)))
            for domain in range(order.domains)
            for rail in range(order.rails)
        ),
    )


def _spine_links(plane: int, leaves: int, ports: Ports, radix: int) -> Iterator[tuple[Node, Node]]:
    """Two tiers: uplinks go to the spines in turn."""
    spines = spine_count(leaves, ports, radix)
    for leaf in range(leaves):
        for j in range(ports.up):
            yield (1, plane, leaf), (2, plane, (leaf * ports.up + j) % spines)


def _pod_links(plane: int, leaves: int, ports: Ports, slices: int) -> Iterator[tuple[Node, Node]]:
    """Three tiers: equally many links of a leaf go to each aggregation switch j of its pod."""
    for leaf in range(leaves):
        for j in range(slices):
            for _ in range(ports.pod_each):
                yield (1, plane, leaf), (2, plane, leaf // ports.pod_leaves, j)


def _core_links(
    plane: int, leaves: int, ports: Ports, slices: int, radix: int
) -> Iterator[tuple[Node, Node]]:
    """Three tiers: aggregation switch j of every pod goes to the core switches of group j in
    turn.
    """
    pods, w = ceil_ratio(leaves, ports.pod_leaves), ports.pod_up
    group = core_count(leaves, ports, radix)
    for pod in range(pods):
        for j in range(slices):
            for i in range(w):
                yield (2, plane, pod, j), (3, plane, j, (pod * w + i) % group)


class LevelCount(NamedTuple):
    """One level of a network: switches and links over all planes, ports of the fullest switch.

    `below` and `above` are what stands at the ends of the links, as `SwitchLevel` has them.
    """

    switches: int
    links: int
    down_ports: int
    up_ports: int
    below: tuple[tuple[int, int], ...] = ()
    above: tuple[tuple[int, int], ...] = ()


def count_levels(wiring: WiredGraph, family: DesignFamily, ports: Ports) -> tuple[LevelCount, ...]:
    """What the graph holds, level by level from the leaves; all networks that the ports of a NIC
    lead to are alike.
    """
    counts, ports_in_use = [], _ports_in_use(wiring)
    for level in range(1, ports.tiers + 1):
        switches = [switch for node, switch in ports_in_use.items() if node[0] == level]
        down_ports = Counter(switch.down for switch in switches)
        # leaves are drawn once for all slices, what stands above them for one
        copies = wiring.copies * family.copies * (wiring.slices if level > 1 else 1)
        links = sum(switch.down for switch in switches) * copies
        upper_ends = Counter({links: count * copies for links, count in down_ports.items()})
        ends = (
            _device_links(_ends_below(wiring, family, level, ports_in_use)),
            _device_links(upper_ends),
        )
        up_ports = max(switch.up for switch in switches)
        counts.append(LevelCount(len(switches) * copies, links, max(down_ports), up_ports, *ends))
    return (_one_tier(wiring, family, counts[0]),) if ports.tiers == 1 else tuple(counts)


def _device_links(ends: Counter[int]) -> tuple[tuple[int, int], ...]:
    """Devices and the links of each, from how many devices have so many."""
    return tuple((count, links) for links, count in sorted(ends.items()) if links)


def _ends_below(
    wiring: WiredGraph, family: DesignFamily, level: int, ports_in_use: Mapping[Node, PortsInUse]
) -> Counter[int]:
    """The lower ends of the links of a level: how many devices have so many; a cage of a NIC is
    one.
    """
    if level == 1:
        cages = family.network.nic.cages
        ports = family.copies * family.network.ports_in_plane
        return Counter({ports // cages: family.domains * family.adapters * cages})
    copies = wiring.copies * family.copies * (wiring.slices if level > 2 else 1)
    lower_ends = Counter(switch.up for node, switch in ports_in_use.items() if node[0] == level - 1)
    return Counter({links: count * copies for links, count in lower_ends.items()})


def _one_tier(wiring: WiredGraph, family: DesignFamily, level_count: LevelCount) -> LevelCount:
    """Chassis hold several planes: ports are those of one of them, and the last chassis may be
    filled less.
    """
    one_plane = sum(1 for node in wiring.graph if node[0] == 0 and node[1] == 0)
    if wiring.copies == 1:
        return level_count._replace(down_ports=one_plane)
    switches = ceil_ratio(family.planes, wiring.planes) * family.copies
    links = one_plane * family.planes * family.copies
    fullest = one_plane * wiring.planes
    full_switches, last_ports = divmod(one_plane * family.planes, fullest)
    upper_ends = Counter({fullest: full_switches * family.copies})
    upper_ends += Counter({last_ports: family.copies if last_ports else 0})
    ends = _device_links(_ends_below(wiring, family, 1, {})), _device_links(upper_ends)
    return LevelCount(switches, links, one_plane, 0, *ends)


class PortsInUse(NamedTuple):
    """Links of a switch to the level below and to the level above."""

    down: int
    up: int


def _ports_in_use(wiring: WiredGraph) -> dict[Node, PortsInUse]:
    """The ports of every switch that have links; a leaf has those above it in every slice."""
    ends = {} if wiring.has_ends else dict(wiring.graph.nodes(data="ends"))
    ports: dict[Node, PortsInUse] = {}
    for node, edges in wiring.graph.adjacency():
        if level := node[0]:
            below = [edge["links"] for neighbour, edge in edges.items() if neighbour[0] < level]
            above = sum([edge["links"] for edge in edges.values()]) - sum(below)
            down = ends.get(node)
            ports[node] = PortsInUse(
                sum(below) if down is None else down, above * (wiring.slices if level == 1 else 1)
            )
    return ports


def fullest_switches(wiring: WiredGraph) -> dict[int, int]:
    """Ports in use of the switch of each tier that uses most, with links of leaves into a core
    shared with others.
    """
    fullest: dict[int, int] = {}
    core_links = dict(wiring.graph.nodes(data="shared", default=0))
    for node, switch in _ports_in_use(wiring).items():
        fullest[node[0]] = max(switch.down + switch.up + core_links[node], fullest.get(node[0], 0))
    return fullest


def uneven_switches(wiring: WiredGraph) -> int:
    """Switches at the top that have not equally many links to each switch of the level below that
    they could join.
    """
    top = max(node[0] for node in wiring.graph)
    switches_below = Counter(_group(node, top) for node in wiring.graph if node[0] == top - 1)
    uneven = 0
    for node, edges in wiring.graph.adjacency():
        if node[0] == top:
            bundles = [edge["links"] for edge in edges.values()]
            uneven += len(bundles) != switches_below[_group(node, top)] or len(set(bundles)) > 1
    return uneven


def _group(node: Node, top: int) -> Node:
    """What switches at the top and the ones they join have in common: the plane, and on three tiers
    the slice.
    """
    level, plane, *place = node
    return (plane, place[level - top]) if top == 3 else (plane,)


def attached_ends(wiring: WiredGraph) -> int:
    """End points that have their one link to a leaf, over all planes that are drawn."""
    if not wiring.has_ends:
        return sum(ends for _, ends in wiring.graph.nodes(data="ends") if ends)
    one_link = [(1, 1)]
    return sum(
        [(neighbour[0], edge["links"]) for neighbour, edge in edges.items()] == one_link
        for node, edges in wiring.graph.adjacency()
        if node[0] == 0
    )


def components(wiring: WiredGraph) -> dict[Node, int]:
    """For each node, the number of the connected part it belongs to."""
    return {
        node: i for i, part in enumerate(nx.connected_components(wiring.graph)) for node in part
    }
