"""The network of a plan as a graph that files can hold: names and attributes that are text and numbers."""

from __future__ import annotations

from typing import Any

import networkx as nx

from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.graphs.every_part import explicit
from coopt.network.graphs.one_plane import compressed
from coopt.network.lookup import built
from coopt.plan.schema import Plan

Graph = Any  # networkx is untyped


def network_graph(instance: Instance, plan: Plan, *, one_plane: bool = False) -> Graph:
    """Every part of a plan's network, or one plane with the number of copies on what it stands for.

    Nodes have `kind` and `level`, edges `level`, `links` (parallel ones) and `gbit_s` (of one link, one way). The graph
    says `planes`, `tiers` and `fabric`; that of one plane also `slices` and `shared` (see `one_plane.Compressed`).

    Raises
    ------
    InstanceError
        When the plan has no design of this instance, or one HB domain and so no network.
    """
    family, uplinks = built(instance, plan, "a graph file of the network")
    if family.tiers == 0:
        raise InstanceError(
            f"{instance.name}: the plan is one HB domain ({family.hb.name}) and has no network, needs one of several "
            "domains"
        )
    graph = _one_plane(family, uplinks) if one_plane else explicit(family, uplinks)
    graph.graph.update(name=instance.name, fabric=family.fabric)
    return graph


def _one_plane(family: Family, uplinks: int) -> Graph:
    """The compressed graph under names such as `leaf/3`, with rates on its links."""
    small = compressed(family, uplinks)
    graph = nx.relabel_nodes(small.graph, {node: "/".join(map(str, node)) for node in small.graph})
    nx.set_edge_attributes(graph, float(family.nic.gbit_s), "gbit_s")
    graph.graph.update(planes=small.planes, tiers=family.tiers, slices=small.slices, shared=small.shared)
    return graph
