"""Build a design's network as an explicit graph.

Nodes are tuples that start with the level: 0 an end point, 1 a leaf (or the only switch), 2 a spine or an aggregation
switch, 3 a core switch. The edge attribute `links` counts parallel links. Where islands share a core, the node
attribute `shared` counts the links of a leaf into it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import networkx as nx

from coopt.verifier.layouts import Ports, core_ports, planes_on_switch, up
from coopt.verifier.numbering import Numbering, numbering_of
from coopt.verifier.space import Family

EXPLICIT = 100_000
"""End points up to which a graph is drawn in full."""

Node = tuple[int, ...]
Graph = Any  # networkx is untyped


class Wiring(NamedTuple):
    """A graph and what it stands for.

    Beyond `EXPLICIT` end points one plane stands for all (`copies`); beyond that many in one plane a leaf carries the
    number of its end points (`ends`) in place of nodes, and of the parallel networks that start at the leaf's
    uplinks one is drawn (`slices` in all).
    """

    graph: Graph
    planes: int
    copies: int
    slices: int
    has_ends: bool


def wire(family: Family, ports: Ports) -> Wiring:
    """The network of a design whose numbers are known to be consistent."""
    drawn = _drawn(family, ports)
    shared = core_ports(family, ports)
    for node in drawn.graph:
        if node[0] == 1:
            drawn.graph.nodes[node]["shared"] = shared
    return drawn


def _drawn(family: Family, ports: Ports) -> Wiring:
    total = family.domains * family.rails
    if ports.tiers == 1:
        return _chassis(family, total <= EXPLICIT)
    planes = family.planes if total <= EXPLICIT else 1
    has_ends = family.ends <= EXPLICIT
    slices = 1 if has_ends or ports.tiers == 2 else ports.up
    graph, order = nx.Graph(), numbering_of(family, ports.down)
    for plane in range(planes):
        _add_leaves(graph, plane, order, has_ends)
        if ports.tiers == 2:
            _join(graph, _spine_links(plane, order.leaves, ports.up, _radix(family)))
        else:
            _join(graph, _pod_links(plane, order.leaves, ports, ports.up // slices))
            _join(graph, _core_links(plane, order.leaves, ports, ports.up // slices, _radix(family)))
    return Wiring(graph, planes, family.planes // planes, slices, has_ends)


def _radix(family: Family) -> int:
    assert family.gear is not None
    return family.gear.switch.radix


def _join(graph: Graph, links: Iterator[tuple[Node, Node]]) -> None:
    """Add links; parallel ones raise the count of their edge."""
    counted = Counter(links)
    graph.add_edges_from((a, b, {"links": count}) for (a, b), count in counted.items())


def _chassis(family: Family, everything: bool) -> Wiring:
    """One tier: as many planes on a switch as fit."""
    shared = planes_on_switch(family)
    planes = family.planes if everything else min(shared, family.planes)
    graph = nx.Graph()
    _join(
        graph,
        (
            ((0, plane, domain, rail), (1, plane // shared))
            for plane in range(planes)
            for domain in range(family.domains)
            for rail in range(family.rails // family.planes)
        ),
    )
    return Wiring(graph, planes, up(family.planes, planes), 1, True)


def _add_leaves(graph: Graph, plane: int, order: Numbering, has_ends: bool) -> None:
    if not has_ends:
        graph.add_nodes_from(((1, plane, leaf), {"ends": ends}) for leaf, ends in enumerate(order.ends()))
        return
    _join(
        graph,
        (
            ((0, plane, domain, rail), (1, plane, order.leaf(domain, rail)))
            for domain in range(order.domains)
            for rail in range(order.rails)
        ),
    )


def _spine_links(plane: int, leaves: int, uplinks: int, radix: int) -> Iterator[tuple[Node, Node]]:
    """Two tiers: uplinks go to the spines in turn."""
    spines = up(leaves * uplinks, radix)
    for leaf in range(leaves):
        for j in range(uplinks):
            yield (1, plane, leaf), (2, plane, (leaf * uplinks + j) % spines)


def _pod_links(plane: int, leaves: int, ports: Ports, drawn: int) -> Iterator[tuple[Node, Node]]:
    """Three tiers: uplink j of a leaf goes to aggregation switch j of its pod."""
    for leaf in range(leaves):
        for j in range(drawn):
            yield (1, plane, leaf), (2, plane, leaf // ports.pod_down, j)


def _core_links(plane: int, leaves: int, ports: Ports, drawn: int, radix: int) -> Iterator[tuple[Node, Node]]:
    """Three tiers: aggregation switch j of every pod goes to the core switches of group j in turn."""
    pods, w = up(leaves, ports.pod_down), ports.pod_up
    group = up(pods * w, radix)
    for pod in range(pods):
        for j in range(drawn):
            for i in range(w):
                yield (2, plane, pod, j), (3, plane, j, (pod * w + i) % group)
