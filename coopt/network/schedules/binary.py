"""Two binary trees, each for one half of the data."""

from __future__ import annotations

from collections import defaultdict

from coopt.network.schedules.board import Board
from coopt.network.schedules.routing import spread_paths
from coopt.network.schedules.schedule_form import Hop, Schedule, schedule_of

Tree = dict[int, list[int]]
"""Children of each rank, parents before their children in the order of keys."""


def double_tree_schedule(board: Board) -> Schedule:
    """Chunks flow down two binary trees one behind the other, every second one down the same tree.

    A domain sends and receives one chunk a step; a chunk goes as soon as it can. Where the ways of two tree edges share
    a link, the step takes longer.
    """
    n = board.domains
    tree, other = two_trees(n)
    pairs = [(parent, child) for t in (tree, other) for parent, children in t.items() for child in children]
    paths = spread_paths(board, dict.fromkeys(pairs))
    sending: dict[int, set[int]] = defaultdict(set)
    receiving: dict[int, set[int]] = defaultdict(set)
    hops = []
    roots = []
    for chunk in range(n):
        flows = (tree, other)[chunk % 2]
        root = next(iter(flows))
        roots.append(root)
        ready = {root: 0}
        for parent, children in flows.items():
            for child in children:
                step = ready[parent]
                while step in sending[parent] or step in receiving[child]:
                    step += 1
                sending[parent].add(step)
                receiving[child].add(step)
                ready[child] = step + 1
                hops.append(Hop(step, chunk, paths[parent, child]))
    return schedule_of(board, "double-tree", hops, roots=roots)


def two_trees(ranks: int) -> tuple[Tree, Tree]:
    """A binary tree in which the odd ranks are leaves, and one in which they are not.

    The second is the mirror image of the first (an even number of ranks) or is moved by one (odd).
    """
    tree = in_order_tree(ranks)
    return tree, _renamed(tree, [(ranks - 1 - r) if ranks % 2 == 0 else (r + 1) % ranks for r in range(ranks)])


def in_order_tree(ranks: int) -> Tree:
    """Rank 0 above a balanced tree in which a rank with lowest set bit b has its parent at distance b.

    The parent of rank r has the next higher bit set in place of b, or only r's bits above b where that rank does not
    exist.
    """
    children: Tree = {rank: [] for rank in range(ranks)}
    for rank in range(1, ranks):
        bit = rank & -rank
        upper = (rank - bit) | (bit << 1)
        children[upper if upper < ranks else rank - bit].append(rank)
    order = [0]
    for rank in order:
        order += children[rank]
    assert len(order) == ranks
    return {rank: children[rank] for rank in order}


def _renamed(tree: Tree, names: list[int]) -> Tree:
    return {names[parent]: [names[child] for child in children] for parent, children in tree.items()}
