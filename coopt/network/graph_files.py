"""Graphs of fabrics and of the network of a plan as files: GraphML in and out for programs, DOT for
Graphviz.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError, fromstring

import networkx as nx
from networkx.readwrite.graphml import GraphMLWriter

from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, read_text
from coopt.network.family import Family
from coopt.network.graphs import plane_graph, whole_graph
from coopt.network.plan_networks import part_named, part_network, question_of
from coopt.plan.parts import DirectLinks
from coopt.plan.schema import Plan

Graph = Any  # networkx is untyped
SWITCHES = ("switch", "leaf", "spine", "aggregation", "core")
NEEDS = "needs a GraphML file (networkx.write_graphml writes them)"


def network_graphml(
    instance: Instance, plan: Plan, *, compressed: bool = False, part: str | None = None
) -> str:
    """The network as GraphML; `networkx.read_graphml` opens it."""
    return graphml_text(network_graph(instance, plan, one_plane=compressed, part=part))


def network_dot(
    instance: Instance, plan: Plan, *, compressed: bool = False, part: str | None = None
) -> str:
    """The network as DOT: switches as boxes, what holds of the whole as attributes of the graph."""
    graph = network_graph(instance, plan, one_plane=compressed, part=part)
    return dot_text(
        graph, about={key: value for key, value in graph.graph.items() if key != "name"}
    )


def network_graph(
    instance: Instance, plan: Plan, *, one_plane: bool = False, part: str | None = None
) -> Graph:
    """Everything in the network of a part, or one plane with the number of copies on what it stands
    for.

    Nodes have `kind` and `level`, edges `level`, `links` (parallel ones) and `gbit_s` (of one link,
    one way). The graph says `planes`, `tiers` and `fabric`; that of one plane also `slices` and
    `shared` (see `graphs.PlaneGraph`). Direct links join HB domains, all in one plane.

    Raises
    ------
    InstanceError
        When the part has no design of this instance, or one HB domain and so no network.
    """
    chosen_part = part_named(instance, plan, part)
    if chosen_part.links is not None:
        return _linked_graph(question_of(instance, chosen_part), chosen_part.links)
    network = part_network(instance, plan, "a graph file of the network", part)
    family, uplinks = network.family, network.uplinks
    if family.tiers == 0:
        raise InstanceError(
            f"{instance.place}: {chosen_part.text} has one HB domain ({family.hb.name}) and so no"
            " switches, needs several domains"
        )
    graph = _one_plane_graph(family, uplinks) if one_plane else whole_graph(family, uplinks)
    graph.graph.update(name=instance.name, fabric=family.fabric)
    return graph


def _linked_graph(question: Instance, links: DirectLinks) -> Graph:
    """HB domains with their GPUs, and bundles of direct links between them."""
    graph, name = (
        nx.Graph(planes=1, tiers=0, name=question.name, fabric="direct"),
        links.hb_domain.name,
    )
    hb_gbit_s = next(hb.gbyte_s for hb in question.network.hb_domains if hb.name == name) * 8
    gbit_s = next(float(nic.gbit_s) for nic in question.network.nics if nic.name == links.nic.name)
    for domain in range(links.hb_domain.count):
        graph.add_node(f"hb/{domain}", kind="hb", level=0, domain=domain)
        for rank in range(links.hb_domain.size):
            idle = rank >= links.hb_domain.active
            graph.add_node(
                f"gpu/{domain}/{rank}", kind="gpu", level=0, domain=domain, rank=rank, idle=idle
            )
            graph.add_edge(
                f"hb/{domain}", f"gpu/{domain}/{rank}", level=0, links=1, gbit_s=hb_gbit_s
            )
    for bundle in links.bundles:
        tail, head = (f"hb/{domain}" for domain in bundle.between)
        graph.add_edge(tail, head, level=1, links=bundle.links, gbit_s=gbit_s)
    return graph


def _one_plane_graph(family: Family, uplinks: int) -> Graph:
    """The compressed graph under names such as `leaf/3`, with rates on its links."""
    small = plane_graph(family, uplinks)
    graph = nx.relabel_nodes(small.graph, {node: "/".join(map(str, node)) for node in small.graph})
    nx.set_edge_attributes(graph, float(family.link_gbit_s), "gbit_s")
    graph.graph.update(
        planes=small.planes, tiers=family.tiers, slices=small.slices, shared=small.planes_per_switch
    )
    return graph


def dot_text(graph: nx.Graph, *, about: Mapping[str, Any] | None = None) -> str:
    """The graph as DOT: every name and value in quotes, switches as boxes, `about` as attributes of
    the whole.
    """
    lines = [f"graph {dot_string(graph.graph.get('name', ''))} {{"]
    if about:
        lines.append(f"  graph [{_attributes(about)}];")
    for node, data in graph.nodes(data=True):
        looks = {"shape": "box"} if data["kind"] in SWITCHES else {}
        lines.append(f"  {dot_string(node)} [{_attributes(data | looks)}];")
    for tail, head, data in graph.edges(data=True):
        lines.append(f"  {dot_string(tail)} -- {dot_string(head)} [{_attributes(data)}];")
    return "\n".join([*lines, "}"]) + "\n"


def dot_string(value: object) -> str:
    r"""A DOT string: `\` and `"` escaped, line breaks as `\n`."""
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return '"' + text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\\n") + '"'


def _attributes(data: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{key if key.isidentifier() else dot_string(key)}={dot_string(value)}"
        for key, value in data.items()
    )


def read_graphml(path: str | Path) -> nx.Graph:
    """The graph of a GraphML file as it stands there; `checked_fabric` looks at what it says.

    Raises
    ------
    InstanceError
        When the file cannot be read, is no GraphML, or declares a document type: entities can make
        a small file fill the memory, so none is read.
    """
    file = Path(path)
    text = read_text(file, "a GraphML file", "the path of a GraphML file")
    if re.search(r"<!\s*(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        raise InstanceError(
            f"{file.name}: declares a document type, needs GraphML without DOCTYPE and entities"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # what networkx finds odd is refused below, or of no importance
            graph = nx.parse_graphml(text)
        declared = {
            element.get("id") for element in fromstring(text).iter() if element.tag.endswith("node")
        }
    except ParseError as error:
        raise InstanceError(f"{file.name}: not XML ({error}), {NEEDS}") from None
    except (
        nx.NetworkXException,
        KeyError,
        ValueError,
        TypeError,
        AttributeError,
        IndexError,
        RecursionError,
    ) as error:
        raise InstanceError(f"{file.name}: not GraphML ({error}), {NEEDS}") from None
    # The reader adds nodes that an edge names and nobody declared, and mistyped names would go
    # unseen.
    for tail, head in graph.edges():
        if not {tail, head} <= declared:
            unknown_node = tail if tail not in declared else head
            raise InstanceError(
                f"{file.name}: an edge ends at node {unknown_node!r}, which the file does not"
                " define, needs a node of the file"
            )
    return graph


def graphml_text(graph: nx.Graph) -> str:
    """The graph as GraphML; `read_graphml` gives it back."""
    return f"{str(_GraphmlWriter(graph=graph, prettyprint=True)).rstrip()}\n"


class _GraphmlWriter(GraphMLWriter):  # type: ignore[misc]  # networkx is untyped
    """Writes truth values in small letters, as XML has them."""

    def add_data(self, name: str, element_type: type, value: Any, *rest: Any, **more: Any) -> Any:
        element = super().add_data(name, element_type, value, *rest, **more)
        element.text = element.text.lower() if element_type is bool else element.text
        return element


WRITERS = {".graphml": graphml_text, ".dot": dot_text}


def graph_text(graph: nx.Graph, path: str) -> str:
    """The text of a graph in the form its file name asks for.

    Raises
    ------
    InstanceError
        When the ending is neither .graphml nor .dot.
    """
    ending = Path(path).suffix.lower()
    if ending not in WRITERS:
        end = f"ends in {ending!r}" if ending else "has no ending"
        raise InstanceError(f"{path}: {end}, needs .graphml or .dot")
    return WRITERS[ending](graph)
