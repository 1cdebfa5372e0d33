"""A network of any size as a small graph: one plane, and of what repeats above its leaves one slice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import networkx as nx

from coopt.network.family import Family
from coopt.network.graphs.numbering import filled
from coopt.network.graphs.wires import Wires, core_wires, pod_wires, spine_wires

Graph = Any  # networkx is untyped


@dataclass(frozen=True, kw_only=True)
class Compressed:
    """The graph of one plane.

    Nodes are `(kind, number)` with the attributes `level`, `copies` (switches of the whole network that a node stands
    for) and, on leaves, `ends` (NICs). Edges have `level`, `links` (parallel links) and `copies`.

    `planes` equal planes make the network, `slices` equal networks start at the uplinks of the leaves of a plane (1 on
    two tiers), and `shared` planes fit on one switch where there is a single tier.
    """

    graph: Graph
    planes: int
    slices: int
    shared: int


def compressed(family: Family, uplinks: int) -> Compressed:
    """One plane of a network of at least one tier."""
    assert family.tiers > 0, "one HB domain needs no network"
    graph = nx.Graph()
    ends = filled(family)
    for leaf, count in enumerate(ends.tolist()):
        graph.add_node(("leaf", leaf), kind="leaf", level=1, copies=family.planes, ends=count)
    slices = uplinks if family.tiers == 3 else 1
    if family.tiers == 2:
        _join(graph, 2, ("leaf", "spine"), spine_wires(family, uplinks), family.planes)
    elif family.tiers == 3:
        _join(graph, 2, ("leaf", "aggregation"), pod_wires(family, 1), family.planes * slices)
        _join(graph, 3, ("aggregation", "core"), core_wires(family, 1), family.planes * slices)
    shared = family.switch.radix // family.down if family.tiers == 1 else 1
    return Compressed(graph=graph, planes=family.planes, slices=slices, shared=shared)


def _join(graph: Graph, level: int, kinds: tuple[str, str], wires: Wires, copies: int) -> None:
    below, above = kinds
    for switch in range(int(wires.upper.max()) + 1):
        graph.add_node((above, switch), kind=above, level=level, copies=copies)
    graph.add_edges_from(
        ((below, low), (above, high), {"level": level, "links": links, "copies": copies})
        for low, high, links in zip(wires.lower.tolist(), wires.upper.tolist(), wires.links.tolist(), strict=True)
    )
