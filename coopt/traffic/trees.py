"""The edges of the two binary trees that an all-reduce takes in place of a ring."""

from __future__ import annotations

import numpy as np

from coopt.network.schedules.textbook import two_trees
from coopt.perf.mapping import Ints


def tree_edges(ranks: int) -> tuple[Ints, Ints]:
    """Child and parent of every edge, the first tree before the second; shape (2·(ranks - 1),)."""
    edges = [(child, parent) for tree in two_trees(ranks) for parent, below in tree.items() for child in below]
    child, parent = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return child, parent
