"""The network of a family as a graph: every GPU, NIC, switch and link, or one plane that stands for
all.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import networkx as nx
import numpy as np

from coopt.network.family import Family, TierChain
from coopt.network.placing import leaf_numbers

Graph = Any  # networkx is untyped


def whole_graph(family: Family, uplinks: int) -> Graph:
    """Every part as a node, every link counted on an edge.

    Nodes have `kind` (hb, gpu, nic, leaf, spine, aggregation, core) and `level` (1 to 3 for
    switches, else 0); GPUs and NICs have `domain` and `rank`, GPUs `idle`, switches `plane`. Edges
    have `level` (0 inside the node, 1 to 3 for the links of a tier), `links` (parallel ones) and
    `gbit_s` (of one link, one way).
    """
    graph = nx.Graph(planes=family.all_planes if family.tiers else 0, tiers=family.tiers)
    _add_domains(graph, family)
    if family.tiers == 0:
        return graph
    _add_nics(graph, family)
    for plane in range(family.all_planes):
        _add_switches(
            graph,
            family.chain(uplinks),
            partial("{1}/{0}/{2}".format, plane),
            switch={"plane": plane},
            link={"gbit_s": family.link_gbit_s},
        )
    return graph


def _add_domains(graph: Graph, family: Family) -> None:
    hb_gbit_s = family.hb.gbyte_s * 8
    for domain in range(family.domains):
        graph.add_node(f"hb/{domain}", kind="hb", level=0, domain=domain)
        for rank in range(family.hb.size):
            gpu = f"gpu/{domain}/{rank}"
            graph.add_node(
                gpu,
                kind="gpu",
                level=0,
                domain=domain,
                rank=rank,
                idle=rank >= family.training_in(domain),
            )
            graph.add_edge(f"hb/{domain}", gpu, level=0, links=1, gbit_s=hb_gbit_s)


def _add_nics(graph: Graph, family: Family) -> None:
    """NICs, the switches that their ports hang on, and the links between; each port has planes of
    its own.
    """
    leaves = leaf_numbers(family).tolist()
    per_gpu, in_plane = family.nics_per_gpu, family.nics_of_domain // family.planes
    planes_per_switch = family.planes_together
    # planes of all first ports, or their switches where planes share one
    of_port = -(-family.planes // planes_per_switch)
    for rail, domain in product(range(family.nics_of_domain), range(family.domains)):
        rank, end = divmod(rail * family.gpus_per_nic, per_gpu)
        adapter = end // family.ports_in_plane
        plane, row = divmod(rail, in_plane)
        nic = f"nic/{domain}/{rank}/{adapter}"
        graph.add_node(nic, kind="nic", level=0, domain=domain, rank=rank)
        for gpu in range(rank, rank + family.gpus_per_nic):
            gbit_s = family.nic.gbit_s * family.ports_in_plane
            graph.add_edge(f"gpu/{domain}/{gpu}", nic, level=0, links=1, gbit_s=gbit_s)
        for port in range(family.nic_planes):
            # First ports of all NICs lead to the first planes, second ports to the next, so that no
            # NIC has two in one, unless several lead to each.
            number = port * of_port + plane // planes_per_switch
            leaf = f"leaf/{number}/{leaves[row][domain]}"
            graph.add_node(leaf, kind="leaf", level=1, plane=number)
            links = graph.edges[nic, leaf]["links"] + 1 if graph.has_edge(nic, leaf) else 1
            graph.add_edge(nic, leaf, level=1, links=links, gbit_s=family.link_gbit_s)


NAMES = {2: ("leaf", "spine"), 3: ("leaf", "aggregation", "core")}
"""Switches of each tier, by the number of tiers."""


def _add_switches(
    graph: Graph,
    chain: TierChain,
    name: Callable[[str, int], Hashable],
    switch: Mapping[str, Any],
    link: Mapping[str, Any],
) -> None:
    """The switches above the leaves of one network, with what goes for each switch and link."""
    wires = chain.wires()
    kinds = NAMES.get(len(wires) + 1, ())
    for level, (lower, upper, links) in enumerate(wires, start=2):
        low_kind, kind = kinds[level - 2 : level]
        graph.add_nodes_from(
            (name(kind, number) for number in range(int(upper.max()) + 1)),
            kind=kind,
            level=level,
            **switch,
        )
        graph.add_edges_from(
            (name(low_kind, low), name(kind, high), {"level": level, "links": count, **link})
            for low, high, count in zip(lower.tolist(), upper.tolist(), links.tolist(), strict=True)
        )


@dataclass(frozen=True, kw_only=True)
class PlaneGraph:
    """The graph of one plane.

    Nodes are `(kind, number)` with the attributes `level`, `copies` (switches of the whole network
    that a node stands for) and, on leaves, `ends` (NICs). Edges have `level`, `links` (parallel
    links) and `copies`.

    `planes` equal planes make the network, `slices` equal networks start at the uplinks of the
    leaves of a plane (1 on two tiers), and `planes_per_switch` fit on one switch where there is a
    single tier.
    """

    graph: Graph
    planes: int
    slices: int
    planes_per_switch: int


def plane_graph(family: Family, uplinks: int) -> PlaneGraph:
    """One plane of a network of at least one tier."""
    assert family.tiers > 0, "one HB domain needs no network"
    graph = nx.Graph()
    ends = np.bincount(leaf_numbers(family).ravel(), minlength=family.leaves)
    for leaf, count in enumerate(ends.tolist()):
        graph.add_node(("leaf", leaf), kind="leaf", level=1, copies=family.all_planes, ends=count)
    # Slices are equal, so that one of them stands for all, with as many copies.
    slices = family.slices(uplinks)
    copies = {"copies": family.all_planes * slices}
    _add_switches(
        graph, family.chain(uplinks).one_slice, lambda *node: node, switch=copies, link=copies
    )
    return PlaneGraph(
        graph=graph,
        planes=family.all_planes,
        slices=slices,
        planes_per_switch=family.planes_together,
    )
