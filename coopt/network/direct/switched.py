"""Small switched fabrics, for collectives that direct ones are compared with."""

from __future__ import annotations

import networkx as nx

from coopt.network.direct.wires import GBIT_S, SWITCH, wired


def clos(name: str, leaves: int, nodes: int, spines: int) -> nx.Graph:
    """Leaves with `nodes` domains each, one link from every leaf to every spine; one leaf needs no spine."""
    domains = [f"d{leaf}.{node}" for leaf in range(leaves) for node in range(nodes)]
    graph = wired(name, domains, [])
    leaf_names = [f"leaf{leaf}" for leaf in range(leaves)]
    spine_names = [f"spine{spine}" for spine in range(spines)] if leaves > 1 else []
    graph.add_nodes_from([*leaf_names, *spine_names], kind=SWITCH)
    down = [(f"d{leaf}.{node}", f"leaf{leaf}") for leaf in range(leaves) for node in range(nodes)]
    up = [(leaf, spine) for leaf in leaf_names for spine in spine_names]
    return _linked(graph, [*down, *up])


def fat_tree(name: str, radix: int) -> nx.Graph:
    """The three-level fat tree of switches with `radix` ports: radix^3 / 4 domains, full bisection."""
    half = radix // 2
    pods = [(pod, switch) for pod in range(radix) for switch in range(half)]
    graph = wired(name, [f"d{pod}.{edge}.{port}" for pod, edge in pods for port in range(half)], [])
    graph.add_nodes_from([f"edge{pod}.{edge}" for pod, edge in pods], kind=SWITCH)
    graph.add_nodes_from([f"agg{pod}.{agg}" for pod, agg in pods], kind=SWITCH)
    graph.add_nodes_from([f"core{agg}.{core}" for agg in range(half) for core in range(half)], kind=SWITCH)
    down = [(f"d{pod}.{edge}.{port}", f"edge{pod}.{edge}") for pod, edge in pods for port in range(half)]
    middle = [(f"edge{pod}.{edge}", f"agg{pod}.{agg}") for pod, edge in pods for agg in range(half)]
    up = [(f"agg{pod}.{agg}", f"core{agg}.{core}") for pod, agg in pods for core in range(half)]
    return _linked(graph, [*down, *middle, *up])


def _linked(graph: nx.Graph, edges: list[tuple[str, str]]) -> nx.Graph:
    graph.add_edges_from(edges, links=1, gbit_s=GBIT_S)
    return graph
