"""An order of the domains in which a ring crosses every link at most once each way."""

from __future__ import annotations

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
    """Preorder and parents of a depth-first walk that leaves domains for last and turns to the fewest exits first.

    Domains behind switches end a branch as long as switches lead on, so that the ring does not pass through them.
    """
    parent: dict[int, int] = {0: 0}
    preorder: list[int] = []
    stack = [(0, 0)]
    seen: set[int] = set()
    while stack:
        here, origin = stack.pop()
        if here in seen:
            continue
        seen.add(here)
        parent[here] = origin
        preorder.append(here)
        ahead = [there for there in board.near[here] if there not in seen]
        ahead.sort(key=lambda there: _exits(board, there, seen), reverse=True)
        stack += [(there, here) for there in ahead]
    return preorder, parent


def _exits(board: Board, vertex: int, seen: set[int]) -> tuple[bool, int, int]:
    """Sort key: domains before switches, then few unseen neighbours, then low numbers."""
    return vertex >= board.domains, sum(there not in seen for there in board.near[vertex]), vertex


def _through_tree(parent: dict[int, int], start: int, end: int) -> Path:
    up = [start]
    while parent[up[-1]] != up[-1]:
        up.append(parent[up[-1]])
    down = [end]
    while down[-1] not in up:
        down.append(parent[down[-1]])
    return (*up[: up.index(down[-1])], *reversed(down))
