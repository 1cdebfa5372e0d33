"""An order of the domains in which a ring crosses every link at most once each way."""

from __future__ import annotations

from collections import deque

from coopt.network.schedules.board import Board, Path


def ring_order(board: Board) -> list[int]:
    """Domains in the order of a depth-first walk; see `ring_paths`."""
    return [vertex for vertex in _walk(board)[0] if vertex < board.domains]


def ring_paths(board: Board) -> list[Path]:
    """The way from every domain of `ring_order` to the next, the last to the first.

    The way follows the tree of the walk, or a link of its own where two domains have one. The closed walk around a tree
    crosses each of its links once each way, so the ring never contends, on any connected fabric.
    """
    preorder, parent = _walk(board)
    order = [vertex for vertex in preorder if vertex < board.domains]
    return [
        (start, end) if (start, end) in board.links else _through_tree(parent, start, end)
        for start, end in zip(order, [*order[1:], order[0]], strict=True)
    ]


def _walk(board: Board) -> tuple[list[int], dict[int, int]]:
    """Preorder and parents of a spanning tree, found depth first, fewest exits first.

    Domains behind switches go on only where no switch does, so that the ring passes through few of them.
    """
    parent: dict[int, int] = {}
    children: list[list[int]] = [[] for _ in board.names]
    waiting = deque([(0, 0)])
    exits = [len(near) for near in board.near]
    while waiting:
        here, origin = waiting.pop()
        if here in parent:
            continue
        parent[here] = origin
        children[origin].append(here)
        for there in board.near[here]:
            exits[there] -= 1
        ahead = [there for there in board.near[here] if there not in parent]
        ahead.sort(key=lambda there: (there >= board.domains, exits[there], there))
        if here < board.domains <= origin:
            waiting.extendleft((there, here) for there in ahead)
        else:
            waiting.extend((there, here) for there in reversed(ahead))
    preorder = []
    stack = [0]
    while stack:
        preorder.append(stack.pop())
        stack += [child for child in reversed(children[preorder[-1]]) if child]
    return preorder, parent


def _through_tree(parent: dict[int, int], start: int, end: int) -> Path:
    up = [start]
    while parent[up[-1]] != up[-1]:
        up.append(parent[up[-1]])
    down = [end]
    while down[-1] not in up:
        down.append(parent[down[-1]])
    return (*up[: up.index(down[-1])], *reversed(down))
