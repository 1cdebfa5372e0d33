"""The network of a plan as the text of a file: GraphML for programs, DOT for Graphviz."""

from __future__ import annotations

from coopt.instance.schema import Instance
from coopt.network.direct.dot import dot_text
from coopt.network.graphs.markup import graphml_lines
from coopt.network.graphs.named import network_graph
from coopt.plan.schema import Plan


def network_graphml(instance: Instance, plan: Plan, *, compressed: bool = False) -> str:
    """The network as GraphML; `networkx.read_graphml` opens it."""
    return "\n".join(graphml_lines(network_graph(instance, plan, one_plane=compressed))) + "\n"


def network_dot(instance: Instance, plan: Plan, *, compressed: bool = False) -> str:
    """The network as DOT: switches as boxes, what holds of the whole as attributes of the graph."""
    graph = network_graph(instance, plan, one_plane=compressed)
    return dot_text(graph, about={key: value for key, value in graph.graph.items() if key != "name"})
