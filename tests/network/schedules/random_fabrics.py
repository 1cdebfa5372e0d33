"""Random fabrics for hypothesis."""

import networkx as nx
from hypothesis import strategies as st

from coopt.network.direct_graphs import checked_fabric


@st.composite
def fabrics(draw, *, switched: bool) -> nx.Graph:
    """A random connected graph of 2 to 14 domains with up to 3 parallel links, some behind switches."""
    n = draw(st.integers(2, 14))
    graph = nx.random_labeled_tree(n, seed=draw(st.integers(0, 10**6)))
    ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda pair: pair[0] != pair[1])
    graph.add_edges_from(draw(st.lists(ends, max_size=2 * n)))
    for edge in graph.edges:
        graph.edges[edge]["links"] = draw(st.integers(1, 3))
    if switched:
        inner = [node for node in graph if draw(st.booleans())]
        nx.set_node_attributes(graph, dict.fromkeys(inner, "switch"), "kind")
        for node in inner:
            graph.add_edge(f"d{node}", node)
        graph.add_edges_from([("dx", 0), ("dy", 0)])
    return checked_fabric(graph, "random", gbit_s=100)
