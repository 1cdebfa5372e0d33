"""Count switches, links and ports of a graph, and look up what it joins."""

from __future__ import annotations

from typing import NamedTuple

import networkx as nx

from coopt.verifier.layouts import Ports, up
from coopt.verifier.space import Family
from coopt.verifier.wiring import Node, Wiring


class Count(NamedTuple):
    """One level of a network: switches and links over all planes, ports of the fullest switch."""

    switches: int
    links: int
    down_ports: int
    up_ports: int


def count_levels(wiring: Wiring, family: Family, ports: Ports) -> tuple[Count, ...]:
    """What the graph holds, level by level from the leaves."""
    found = []
    for level in range(1, ports.tiers + 1):
        switches = [node for node in wiring.graph if node[0] == level]
        down = {node: _down_ports(wiring, node) for node in switches}
        ups = max(_up_ports(wiring, node) for node in switches)
        copies = wiring.copies * (wiring.slices if level > 1 else 1)
        links = sum(down.values()) * copies
        found.append(Count(len(switches) * copies, links, max(down.values()), ups))
    if ports.tiers == 1:
        return (_one_tier(wiring, family, found[0]),)
    return tuple(found)


def _one_tier(wiring: Wiring, family: Family, found: Count) -> Count:
    """Chassis hold several planes: ports are those of one of them, and the last chassis may be filled less."""
    one_plane = sum(1 for node in wiring.graph if node[0] == 0 and node[1] == 0)
    if wiring.copies == 1:
        return found._replace(down_ports=one_plane)
    return Count(up(family.planes, wiring.planes), one_plane * family.planes, one_plane, 0)


def _down_ports(wiring: Wiring, node: Node) -> int:
    """Links of a switch to the level below."""
    data = wiring.graph.nodes[node]
    if "ends" in data:
        return int(data["ends"])
    return sum(edge["links"] for other, edge in wiring.graph[node].items() if other[0] < node[0])


def _up_ports(wiring: Wiring, node: Node) -> int:
    """Links of a switch to the level above; a leaf has one in every slice."""
    drawn = sum(edge["links"] for other, edge in wiring.graph[node].items() if other[0] > node[0])
    return int(drawn) * (wiring.slices if node[0] == 1 else 1)


def fullest_switch(wiring: Wiring) -> int:
    """Ports in use of the switch that uses most, with links of leaves into a core shared with others."""
    return max(
        _down_ports(wiring, node) + _up_ports(wiring, node) + int(wiring.graph.nodes[node].get("shared", 0))
        for node in wiring.graph
        if node[0]
    )


def attached_ends(wiring: Wiring) -> int:
    """End points that have their one link to a leaf, over all planes that are drawn."""
    if not wiring.has_ends:
        return sum(ends for _, ends in wiring.graph.nodes(data="ends") if ends)
    return sum(
        1
        for node in wiring.graph
        if node[0] == 0 and [(other[0], edge["links"]) for other, edge in wiring.graph[node].items()] == [(1, 1)]
    )


def components(wiring: Wiring) -> dict[Node, int]:
    """For each node, the number of the connected part it belongs to."""
    return {node: i for i, part in enumerate(nx.connected_components(wiring.graph)) for node in part}
