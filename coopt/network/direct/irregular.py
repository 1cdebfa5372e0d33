"""Direct fabrics without a grid: Dragonfly and random regular graphs."""

from __future__ import annotations

import networkx as nx

from coopt.network.direct.wires import cell_name, wired

TRIES = 200


def dragonfly(name: str, groups: int, size: int) -> nx.Graph:
    """Groups that are full meshes, one link between every two groups, spread evenly over the members.

    Link k of a group, k = 0 .. groups - 2, leads k + 1 groups further and starts at member floor(k / h), with
    h = ceil((groups - 1) / size) links a member.
    """
    domains = [cell_name((group, member)) for group in range(groups) for member in range(size)]
    inside = [
        (cell_name((group, one)), cell_name((group, other)))
        for group in range(groups)
        for one in range(size)
        for other in range(one + 1, size)
    ]
    share = -(-(groups - 1) // size)
    between = [
        (cell_name((one, (other - one - 1) // share)), cell_name((other, (one - other - 1) % groups // share)))
        for one in range(groups)
        for other in range(one + 1, groups)
    ]
    return wired(name, domains, [*inside, *between])


def regular(name: str, domains: int, degree: int, seed: int) -> nx.Graph | None:
    """A random graph in which every domain has `degree` links; None where no connected one was found.

    The first connected graph of the seeds `seed`, `seed` + 1, ... is taken.
    """
    for attempt in range(TRIES):
        graph = nx.random_regular_graph(degree, domains, seed=seed + attempt)
        if nx.is_connected(graph):
            edges = sorted((min(edge), max(edge)) for edge in graph.edges)
            return wired(name, [f"d{i}" for i in range(domains)], [(f"d{a}", f"d{b}") for a, b in edges])
    return None
