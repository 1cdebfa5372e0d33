"""The form of a fabric graph: what nodes and edges say, and how one is put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

import networkx as nx

DOMAIN, SWITCH = "domain", "switch"
GBIT_S = 400.0  # of a link whose rate nobody named (Gbit/s)
MOST_DOMAINS = 1024
"""End points of the largest fabric; schedules grow with their square."""


def wired(name: str, domains: Iterable[str], edges: Iterable[tuple[str, str]], *, gbit_s: float = GBIT_S) -> nx.Graph:
    """A graph of domains joined by single links.

    Parameters
    ----------
    name
        Kept as the graph attribute `name`.
    gbit_s
        Rate of every link, each way (Gbit/s).

    Returns
    -------
    nx.Graph
        Node attribute `kind` ("domain" or "switch"; here all domains); edge attributes `links` (parallel links) and
        `gbit_s` (of one link, each way).
    """
    graph = nx.Graph(name=name)
    graph.add_nodes_from(domains, kind=DOMAIN)
    graph.add_edges_from(edges, links=1, gbit_s=float(gbit_s))
    return graph


def domains_of(graph: nx.Graph) -> list[str]:
    """The HB domains, in the order of the graph."""
    return [node for node, data in graph.nodes(data=True) if data["kind"] == DOMAIN]


def switches_of(graph: nx.Graph) -> list[str]:
    """The switches, in the order of the graph."""
    return [node for node, data in graph.nodes(data=True) if data["kind"] == SWITCH]


def link_count(graph: nx.Graph) -> int:
    """Cables: parallel links of an edge count each."""
    return sum(data["links"] for _, _, data in graph.edges(data=True))


def cells(shape: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Coordinates of a grid, the last one fastest."""
    return product(*map(range, shape))


def cell_name(cell: Sequence[int]) -> str:
    """`d3`, `d0.2`, `d1.0.3`."""
    return "d" + ".".join(map(str, cell))


def grid_of(graph: nx.Graph) -> tuple[int, ...] | None:
    """The shape under which the domains are listed row by row (graph attribute `grid`, such as `4x4`), if it fits."""
    text = str(graph.graph.get("grid", ""))
    parts = text.split("x")
    if not all(part.isascii() and part.isdigit() and len(part) < 6 for part in parts):
        return None
    shape = tuple(map(int, parts))
    size = 1
    for extent in shape:
        size *= extent
    return shape if size == len(domains_of(graph)) else None
