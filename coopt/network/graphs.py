"""The network of a family as a graph: every GPU, NIC, switch and link, or one plane that stands for
all.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

import networkx as nx
import numpy as np

from coopt.network.family import Family
from coopt.network.wiring import (
    Ints,
    Wires,
    core_wires,
    leaf_numbers,
    nics_by_leaf,
    pod_wires,
    rails_of,
    spine_wires,
)

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
        _add_switches(graph, family, uplinks, plane)
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
    per_gpu, in_plane = family.nics_per_gpu, rails_of(family) // family.planes
    planes_per_switch = family.planes_together
    # planes of all first ports, or their switches where planes share one
    of_port = -(-family.planes // planes_per_switch)
    for rail, domain in product(range(rails_of(family)), range(family.domains)):
        rank, adapter = divmod(rail * family.gpus_per_nic, per_gpu)
        plane, row = divmod(rail, in_plane)
        nic = f"nic/{domain}/{rank}/{adapter}"
        graph.add_node(nic, kind="nic", level=0, domain=domain, rank=rank)
        for gpu in range(rank, rank + family.gpus_per_nic):
            graph.add_edge(f"gpu/{domain}/{gpu}", nic, level=0, links=1, gbit_s=family.nic.gbit_s)
        for port in range(family.nic_planes):
            # First ports of all NICs lead to the first planes, second ports to the next, so that no
            # NIC has two in one.
            number = port * of_port + plane // planes_per_switch
            leaf = f"leaf/{number}/{leaves[row][domain]}"
            graph.add_node(leaf, kind="leaf", level=1, plane=number)
            graph.add_edge(nic, leaf, level=1, links=1, gbit_s=family.link_gbit_s)


def _add_switches(graph: Graph, family: Family, uplinks: int, plane: int) -> None:
    """The switches above the leaves of one plane."""
    if family.tiers == 2:
        _join_switches(graph, family, plane, 2, ("leaf", "spine"), spine_wires(family, uplinks))
    elif family.tiers == 3:
        _join_switches(
            graph,
            family,
            plane,
            2,
            ("leaf", "aggregation"),
            pod_wires(family, family.slices(uplinks)),
        )
        _join_switches(
            graph,
            family,
            plane,
            3,
            ("aggregation", "core"),
            core_wires(family, family.slices(uplinks)),
        )


def _join_switches(
    graph: Graph, family: Family, plane: int, level: int, kinds: tuple[str, str], wires: Wires
) -> None:
    low_kind, high_kind = kinds
    lower_names, upper_names = (
        _names(low_kind, plane, wires.lower),
        _names(high_kind, plane, wires.upper),
    )
    graph.add_nodes_from(dict.fromkeys(upper_names), kind=high_kind, level=level, plane=plane)
    graph.add_edges_from(
        (lower_name, upper_name, {"level": level, "links": links, "gbit_s": family.link_gbit_s})
        for lower_name, upper_name, links in zip(
            lower_names, upper_names, wires.links.tolist(), strict=True
        )
    )


def _names(kind: str, plane: int, numbers: Ints) -> list[str]:
    return [f"{kind}/{plane}/{number}" for number in np.asarray(numbers).tolist()]


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
    ends = nics_by_leaf(family)
    for leaf, count in enumerate(ends.tolist()):
        graph.add_node(("leaf", leaf), kind="leaf", level=1, copies=family.all_planes, ends=count)
    slices = family.slices(uplinks)
    if family.tiers == 2:
        _join_copies(graph, 2, ("leaf", "spine"), spine_wires(family, uplinks), family.all_planes)
    # Slices are equal, so that one of them stands for all, with as many copies.
    elif family.tiers == 3:
        _join_copies(
            graph, 2, ("leaf", "aggregation"), pod_wires(family, 1), family.all_planes * slices
        )
        _join_copies(
            graph, 3, ("aggregation", "core"), core_wires(family, 1), family.all_planes * slices
        )
    planes_per_switch = family.planes_together
    return PlaneGraph(
        graph=graph, planes=family.all_planes, slices=slices, planes_per_switch=planes_per_switch
    )


def _join_copies(
    graph: Graph, level: int, kinds: tuple[str, str], wires: Wires, copies: int
) -> None:
    lower_kind, upper_kind = kinds
    for switch in range(int(wires.upper.max()) + 1):
        graph.add_node((upper_kind, switch), kind=upper_kind, level=level, copies=copies)
    graph.add_edges_from(
        (
            (lower_kind, lower_number),
            (upper_kind, upper_number),
            {"level": level, "links": links, "copies": copies},
        )
        for lower_number, upper_number, links in zip(
            wires.lower.tolist(), wires.upper.tolist(), wires.links.tolist(), strict=True
        )
    )
