"""Euler splitting: the edges of a bipartite multigraph in equal shares at every vertex, on whole arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coopt.network.routing.layers import Ints


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


def _halves(left: Ints, right: Ints) -> NDArray[np.bool_]:
    """Split the edges in two so that no vertex has more than ceil(degree / 2) in either half.

    With edges added until every degree is even, the edges of a vertex are paired. Pairs on the left and pairs on the
    right then chain all edges into closed walks, along which the halves alternate. Added edges meet at one vertex, in
    the order of their other ends, so that what two neighbouring vertices have left over goes to different halves.
    """
    edges = left.size
    left, right = _even(left, right)
    partner = _pairs(left)
    following = _pairs(right)[partner]
    first = np.arange(left.size)
    reached = 1
    while reached < left.size:
        first = np.minimum(first, first[following])
        following = following[following]
        reached *= 2
    return (first > first[partner])[:edges]


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
