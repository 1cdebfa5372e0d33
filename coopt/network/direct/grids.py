"""Direct fabrics on a grid of domains: ring, torus, mesh, full mesh, HyperX."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import networkx as nx

from coopt.network.direct.wires import cell_name, cells, wired

Steps = Callable[[int, int], list[int]]
"""Places one may go to in one dimension, from a place and the extent; each link is named from one end at least."""


def ring(name: str, shape: Sequence[int]) -> nx.Graph:
    """N domains in a circle; two domains share one link."""
    return torus(name, shape)


def torus(name: str, shape: Sequence[int]) -> nx.Graph:
    """A grid whose rows close to rings; along an extent of 2 there is one link and not two."""
    return _grid(name, shape, lambda at, extent: [(at + 1) % extent] if extent > 1 else [])


def mesh(name: str, shape: Sequence[int]) -> nx.Graph:
    """A grid whose rows end."""
    return _grid(name, shape, lambda at, extent: [at + 1] if at + 1 < extent else [])


def hyperx(name: str, shape: Sequence[int]) -> nx.Graph:
    """A grid whose rows are full meshes."""
    return _grid(name, shape, lambda at, extent: list(range(at + 1, extent)))


def full(name: str, shape: Sequence[int]) -> nx.Graph:
    """Every domain linked to every other."""
    return hyperx(name, shape)


def _grid(name: str, shape: Sequence[int], steps: Steps) -> nx.Graph:
    graph = wired(name, map(cell_name, cells(shape)), _edges(shape, steps))
    graph.graph["grid"] = "x".join(map(str, shape))
    return graph


def _edges(shape: Sequence[int], steps: Steps) -> Iterator[tuple[str, str]]:
    for cell in cells(shape):
        for axis, extent in enumerate(shape):
            for place in steps(cell[axis], extent):
                yield cell_name(cell), cell_name((*cell[:axis], place, *cell[axis + 1 :]))
