"""Kőnig's alternating paths: colour further edges of a bipartite multigraph without a new colour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coopt.network.routing.layers import Ints

NONE = -1


@dataclass(frozen=True, kw_only=True)
class _Colouring:
    """Edge of each colour at each vertex, -1 for none; `free` has a bit for each colour missing at a vertex."""

    ends: list[tuple[int, int]]
    at: list[list[int]]
    free: list[int]

    def put(self, edge: int, colour: int) -> None:
        for vertex in self.ends[edge]:
            self.at[vertex][colour] = edge
            self.free[vertex] &= ~(1 << colour)

    def drop(self, edge: int, colour: int) -> None:
        for vertex in self.ends[edge]:
            self.at[vertex][colour] = NONE
            self.free[vertex] |= 1 << colour

    def swap(self, vertex: int, a: int, b: int) -> None:
        """Exchange colours a and b along the path that leaves a vertex with a, where b is missing."""
        path = []
        colour = a
        while (edge := self.at[vertex][colour]) != NONE:
            path.append((edge, colour))
            one, other = self.ends[edge]
            vertex = other if vertex == one else one
            colour = a + b - colour
        for edge, old in path:
            self.drop(edge, old)
        for edge, old in path:
            self.put(edge, a + b - old)


def completed(left: Ints, right: Ints, colours: int, given: Ints) -> Ints:
    """A colour for every edge, no two alike at a vertex; edges may change the colour they were given.

    A new edge takes a colour missing at both ends, each edge starting to look from another one. Where there is none,
    a is missing at its left end and b at its right end: the path of colours a and b from the right end never comes to
    the left end, which it would enter with a, and exchanging its colours frees a.

    Parameters
    ----------
    left, right
        Vertex of each edge, numbered from 0 on either side, with at most `colours` edges each; shape (edges,).
    given
        A colour from 0 to colours - 1, no two alike at a vertex, or -1 where one is wanted; shape (edges,).
    """
    start = int(left.max(initial=-1)) + 1
    vertices = start + int(right.max(initial=-1)) + 1
    state = _Colouring(
        ends=list(zip(left.tolist(), (right + start).tolist(), strict=True)),
        at=[[NONE] * colours for _ in range(vertices)],
        free=[(1 << colours) - 1] * vertices,
    )
    for edge, colour in enumerate(given.tolist()):
        if colour != NONE:
            state.put(edge, colour)
    for edge in np.flatnonzero(given == NONE).tolist():
        one, other = state.ends[edge]
        if not state.free[one] & state.free[other]:
            state.swap(other, _first(state.free[one], edge % colours), _first(state.free[other], edge % colours))
        state.put(edge, _first(state.free[one] & state.free[other], edge % colours))
    found = np.empty(left.size, dtype=np.int64)
    for row in state.at[:start]:
        for colour, edge in enumerate(row):
            if edge != NONE:
                found[edge] = colour
    return found


def _first(bits: int, start: int) -> int:
    """The first bit set from a place on, or else the first of all."""
    assert bits, "a vertex has more edges than colours"
    bits = bits >> start << start or bits
    return (bits & -bits).bit_length() - 1
