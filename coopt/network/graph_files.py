"""The network of a plan as the text of a file: GraphML for programs, DOT for Graphviz."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import networkx as nx

from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance
from coopt.network.direct.files import dot_text
from coopt.network.family import Family
from coopt.network.graphs import plane_graph, whole_graph
from coopt.network.part_networks import part_named, part_network, question_of
from coopt.plan.direct_links import DirectLinks
from coopt.plan.schema import Plan

Graph = Any  # networkx is untyped
Keys = dict[tuple[str, str], tuple[str, str]]

HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
    'xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">',
)
TYPES = {bool: "boolean", int: "long", float: "double", str: "string"}


def network_graphml(instance: Instance, plan: Plan, *, compressed: bool = False, part: str | None = None) -> str:
    """The network as GraphML; `networkx.read_graphml` opens it."""
    return "\n".join(graphml_lines(network_graph(instance, plan, one_plane=compressed, part=part))) + "\n"


def network_dot(instance: Instance, plan: Plan, *, compressed: bool = False, part: str | None = None) -> str:
    """The network as DOT: switches as boxes, what holds of the whole as attributes of the graph."""
    graph = network_graph(instance, plan, one_plane=compressed, part=part)
    return dot_text(graph, about={key: value for key, value in graph.graph.items() if key != "name"})


def graphml_lines(graph: Graph) -> Iterator[str]:
    """The lines of a GraphML file; attributes of one name have one type on all nodes, and on all edges."""
    keys: Keys = {}
    for scope, tables in (
        ("graph", (graph.graph,)),
        ("node", (data for _, data in graph.nodes(data=True))),
        ("edge", (data for *_, data in graph.edges(data=True))),
    ):
        for table in tables:
            for name, value in table.items():
                kind = TYPES[type(value)]
                assert keys.setdefault((scope, name), (f"d{len(keys)}", kind))[1] == kind, name
    yield from HEAD
    for (scope, name), (number, kind) in keys.items():
        yield f'  <key id="{number}" for="{scope}" attr.name={quoteattr(name)} attr.type="{kind}" />'
    yield '  <graph edgedefault="undirected">'
    yield f"    {_data(keys, 'graph', graph.graph)}"
    for node, data in graph.nodes(data=True):
        yield f"    <node id={quoteattr(node)}>{_data(keys, 'node', data)}</node>"
    for one, other, data in graph.edges(data=True):
        yield f"    <edge source={quoteattr(one)} target={quoteattr(other)}>{_data(keys, 'edge', data)}</edge>"
    yield "  </graph>"
    yield "</graphml>"


def _data(keys: Keys, scope: str, table: Mapping[str, Any]) -> str:
    return "".join(f'<data key="{keys[scope, name][0]}">{_text(value)}</data>' for name, value in table.items())


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else escape(str(value))


def network_graph(instance: Instance, plan: Plan, *, one_plane: bool = False, part: str | None = None) -> Graph:
    """Everything in the network of a part, or one plane with the number of copies on what it stands for.

    Nodes have `kind` and `level`, edges `level`, `links` (parallel ones) and `gbit_s` (of one link, one way). The graph
    says `planes`, `tiers` and `fabric`; that of one plane also `slices` and `shared` (see `graphs.PlaneGraph`). Direct
    links join HB domains, all in one plane.

    Raises
    ------
    InstanceError
        When the part has no design of this instance, or one HB domain and so no network.
    """
    chosen = part_named(instance, plan, part)
    if chosen.links is not None:
        return _linked_graph(question_of(instance, chosen), chosen.links)
    network = part_network(instance, plan, "a graph file of the network", part)
    family, uplinks = network.family, network.uplinks
    if family.tiers == 0:
        raise InstanceError(
            f"{instance.name}: the plan is one HB domain ({family.hb.name}) and has no network, needs one of several "
            "domains"
        )
    graph = _one_plane_graph(family, uplinks) if one_plane else whole_graph(family, uplinks)
    graph.graph.update(name=instance.name, fabric=family.fabric)
    return graph


def _linked_graph(question: Instance, links: DirectLinks) -> Graph:
    """HB domains with their GPUs, and bundles of direct links between them."""
    graph, name = nx.Graph(planes=1, tiers=0, name=question.name, fabric="direct"), links.hb_domain.name
    hb_gbit_s = next(hb.gbyte_s for hb in question.network.hb_domains if hb.name == name) * 8
    gbit_s = next(float(nic.gbit_s) for nic in question.network.nics if nic.name == links.nic.name)
    for domain in range(links.hb_domain.count):
        graph.add_node(f"hb/{domain}", kind="hb", level=0, domain=domain)
        for rank in range(links.hb_domain.size):
            idle = rank >= links.hb_domain.active
            graph.add_node(f"gpu/{domain}/{rank}", kind="gpu", level=0, domain=domain, rank=rank, idle=idle)
            graph.add_edge(f"hb/{domain}", f"gpu/{domain}/{rank}", level=0, links=1, gbit_s=hb_gbit_s)
    for bundle in links.bundles:
        one, other = (f"hb/{domain}" for domain in bundle.between)
        graph.add_edge(one, other, level=1, links=bundle.links, gbit_s=gbit_s)
    return graph


def _one_plane_graph(family: Family, uplinks: int) -> Graph:
    """The compressed graph under names such as `leaf/3`, with rates on its links."""
    small = plane_graph(family, uplinks)
    graph = nx.relabel_nodes(small.graph, {node: "/".join(map(str, node)) for node in small.graph})
    nx.set_edge_attributes(graph, float(family.link_gbit_s), "gbit_s")
    graph.graph.update(planes=small.planes, tiers=family.tiers, slices=small.slices, shared=small.shared)
    return graph
