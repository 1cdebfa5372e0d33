"""Cores by bipartite edge colouring: no routing is better where all cores join all leaves alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coopt.instance.errors import InstanceError
from coopt.network.routing.layers import Bools, Flows, Ints, TwoLayer, require_paths

NONE = -1


def split_classes(left: Ints, right: Ints, rounds: int) -> Ints:
    """Split the edges into 2^rounds classes; a vertex of degree d has at most ceil(d / 2^rounds) in each.

    Neighbours share alike: consecutive vertices of one side with n edges in all have at most n / 2^rounds + 2 in each.

    Parameters
    ----------
    left, right
        The vertex of each edge on either side, numbered from 0 on each; shape (edges,).

    Returns
    -------
    Class of each edge, from 0; shape (edges,).
    """
    classes = np.zeros(left.size, dtype=np.int64)
    lefts, rights = (int(side.max(initial=-1)) + 1 for side in (left, right))
    for _ in range(rounds):
        classes = 2 * classes + _halves(classes * lefts + left, classes * rights + right)
    return classes


def _halves(left: Ints, right: Ints) -> Bools:
    """Split the edges in two so that no vertex has more than ceil(degree / 2) in either half.

    With edges added until every degree is even, the edges of a vertex are paired. Pairs on the left and pairs on the
    right then chain all edges into closed walks, along which the halves alternate. Added edges meet at one vertex, in
    the order of their other ends, so that what two neighbouring vertices have left over goes to different halves.
    """
    edges = left.size
    left, right = _even(left, right)
    return alternated(_pairs(left), _pairs(right))[:edges]


def alternated(left: Ints, right: Ints) -> Bools:
    """Halves of edges so that no edge is in the half of its partner, neither of that on the left nor on the right.

    Parameters
    ----------
    left, right
        The edge that each is paired with on either side, where pairs are each other's partners; shape (edges,).
    """
    following = right[left]
    first = np.arange(left.size)
    reached = 1
    while reached < left.size:
        first = np.minimum(first, first[following])
        following = following[following]
        reached *= 2
    return np.asarray(first > first[left])


def _even(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """The edges, and an edge from each vertex of odd degree to one more vertex on the other side."""
    odd_left, odd_right = (np.flatnonzero(np.bincount(side) % 2) for side in (left, right))
    more_left, more_right = (np.array([side.max(initial=-1) + 1]) for side in (left, right))
    rest = odd_left.size % 2
    return (
        np.concatenate([left, odd_left, more_left.repeat(odd_right.size + rest)]),
        np.concatenate([right, more_right.repeat(odd_left.size), odd_right, more_right.repeat(rest)]),
    )


def _pairs(ends: Ints) -> Ints:
    """For each edge the one it is paired with at its vertex; all degrees are even."""
    order = np.argsort(ends, kind="stable")
    partner = np.empty(ends.size, dtype=np.int64)
    partner[order[0::2]] = order[1::2]
    partner[order[1::2]] = order[0::2]
    return partner


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


def completed_colours(left: Ints, right: Ints, colours: int, given: Ints) -> Ints:
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
            state.swap(
                other, _first_bit(state.free[one], edge % colours), _first_bit(state.free[other], edge % colours)
            )
        state.put(edge, _first_bit(state.free[one] & state.free[other], edge % colours))
    found = np.empty(left.size, dtype=np.int64)
    for row in state.at[:start]:
        for colour, edge in enumerate(row):
            if edge != NONE:
                found[edge] = colour
    return found


def _first_bit(bits: int, start: int) -> int:
    """The first bit set from a place on, or else the first of all."""
    assert bits, "a vertex has more edges than colours"
    bits = bits >> start << start or bits
    return (bits & -bits).bit_length() - 1


def coloured_cores(clos: TwoLayer, flows: Flows) -> Ints:
    """A core for each flow so that every bundle of a leaf with d flows carries at most ceil(d / cores) of them.

    Flows are edges from source to destination leaf. A leaf with more flows than cores counts as several vertices of
    `cores` edges at most, so that colours are cores. Edges are split into halves until a class is a matching; the
    smallest classes beyond the number of cores are dissolved into the others.

    Returns
    -------
    Core of each flow, -1 inside a leaf; shape (flows,).

    Raises
    ------
    InstanceError
        When a working core has not the same number of links to every leaf in use; failed cores are left out.
    """
    require_paths(clos, flows)
    cores = np.full(len(flows), -1, dtype=np.int64)
    out = flows.between
    if out.size:
        working = working_cores(clos, flows)
        if working is None:
            raise InstanceError(
                "links: their number differs between leaves and cores; "
                "needs equally many from every leaf to every working core, or another algorithm"
            )
        left, right = (_vertices(ends[out], working.size) for ends in (flows.src, flows.dst))
        cores[out] = working[edge_colours(left, right, working.size)]
    return cores


def working_cores(clos: TwoLayer, flows: Flows) -> Ints | None:
    """The cores that join all leaves in use, None where they do not join them by equally many links."""
    used = np.union1d(flows.src[flows.between], flows.dst[flows.between])
    links = clos.links[used]
    working = np.flatnonzero(links.any(axis=0))
    return working if np.unique(links[:, working]).size <= 1 else None


def edge_colours(left: Ints, right: Ints, colours: int) -> Ints:
    """A proper colouring of a bipartite multigraph; no vertex has more edges than there are colours.

    Parameters
    ----------
    left, right
        Vertex of each edge, numbered from 0 on either side; shape (edges,).

    Returns
    -------
    Colour of each edge, from 0; shape (edges,).
    """
    rounds = (colours - 1).bit_length()  # halving makes powers of two; a class then has at most one edge a vertex
    classes = split_classes(left, right, rounds)
    if colours == 1 << rounds:
        return classes
    # the smallest classes lose their colour: fewest edges are then left to colour one by one
    largest_first = np.argsort(-np.bincount(classes, minlength=1 << rounds), kind="stable")
    renamed = np.full(1 << rounds, NONE, dtype=np.int64)
    renamed[largest_first[:colours]] = np.arange(colours)
    return completed_colours(left, right, colours, renamed[classes])


def _vertices(leaf: Ints, most: int) -> Ints:
    """The flows of each leaf in turn in vertices of at most `most`, numbered from 0."""
    order = np.argsort(leaf, kind="stable")
    ordered = leaf[order]
    first = np.searchsorted(ordered, ordered)
    chunk = np.empty(leaf.size, dtype=np.int64)
    chunk[order] = (np.arange(leaf.size) - first) // most
    vertex: Ints = np.unique(leaf * (leaf.size // most + 1) + chunk, return_inverse=True)[1]
    return vertex
