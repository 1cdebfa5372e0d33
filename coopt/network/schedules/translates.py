"""Schedules made of one tree and its translates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from coopt.network.schedules.board import Board, Path, free_path, take
from coopt.network.schedules.cayley import Group, base_tree
from coopt.network.schedules.schedule_form import Hop, Schedule, schedule_of
from coopt.network.schedules.tour import ring_order

MOST_LINKS = 64  # of a switched domain that are worth a try


def translated(board: Board, seed: int) -> Schedule | None:
    """The schedule of one tree moved to every root; None where the fabric does not look alike from every domain.

    Direct fabrics: the domains are taken as a grid (their own, or a circle in their order) whose links are the same
    everywhere. Switched fabrics: every domain sends p chunks to the domains 1, -1, 2, -2, ... further in an order that
    follows the switches, with p as large as can be routed without contention.
    """
    if board.direct:
        for shape in dict.fromkeys(shape for shape in (board.grid, (board.domains,)) if shape):
            group = Group(shape=shape)
            offsets = _offsets(board, group)
            if offsets is not None:
                return _moved(board, group, offsets, seed)
        return None
    group = Group(shape=(board.domains,))
    order = ring_order(board)
    for offsets in _shifts(board):
        routes = _routes(board, order, offsets)
        if routes is not None:
            return _routed(board, group, offsets, routes, order, seed)
    return None


def _offsets(board: Board, group: Group) -> list[int] | None:
    """The links of place 0, if those of every other place are the same."""
    places = np.arange(board.domains)
    offsets = [there for there in board.near[0] for _ in range(min(board.links[0, there], board.domains))]
    for there in board.near[0]:
        ends = group.add(places, there).tolist()
        if any(board.links.get((here, end)) != board.links[0, there] for here, end in enumerate(ends)):
            return None
    return offsets if all(len(near) == len(board.near[0]) for near in board.near) else None


def _moved(board: Board, group: Group, offsets: Sequence[int], seed: int) -> Schedule:
    tree = base_tree(group, offsets, seed)
    places = np.arange(board.domains)
    hops: list[Hop] = []
    for branch in tree:
        start = group.add(places, branch.parent)
        end = group.add(start, offsets[branch.link])
        ends = zip(start.tolist(), end.tolist(), strict=True)
        hops += [Hop(branch.step, root, path) for root, path in enumerate(ends)]
    return schedule_of(board, "multitree", hops, found_by="one tree moved to every root")


def _shifts(board: Board) -> Iterator[list[int]]:
    """1, -1, 2, -2, ... as many as the poorest domain has links, then fewer."""
    n = board.domains
    most = min(MOST_LINKS, n - 1, min(board.ports(domain) for domain in range(n)))
    steps = list(dict.fromkeys(shift % n for k in range(1, n) for shift in (k, -k)))
    for count in range(most, 0, -1):
        yield steps[:count]


def _routes(board: Board, order: Sequence[int], offsets: Sequence[int]) -> list[list[Path]] | None:
    """Paths of all shifts together that share no link; None where some flow finds no way."""
    left = dict(board.links)
    routes = []
    for offset in offsets:
        paths = []
        for at, start in enumerate(order):
            end = order[(at + offset) % len(order)]
            path = free_path(board, start, end.__eq__, left)
            if path is None:
                return None
            take(left, path)
            paths.append(path)
        routes.append(paths)
    return routes


def _routed(
    board: Board, group: Group, offsets: Sequence[int], routes: list[list[Path]], order: Sequence[int], seed: int
) -> Schedule:
    n = board.domains
    hops = [
        Hop(branch.step, order[place], routes[branch.link][(place + branch.parent) % n])
        for branch in base_tree(group, offsets, seed)
        for place in range(n)
    ]
    return schedule_of(board, "multitree", hops, found_by="one tree moved to every root")
