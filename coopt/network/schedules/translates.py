"""Schedules made of one tree and its translates, on fabrics that look alike from every domain."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coopt.network.schedules.board import Board, Path, free_path, take_links
from coopt.network.schedules.schedule_form import Hop, Schedule, schedule_of
from coopt.network.schedules.textbook import ring_order

Ints = NDArray[np.int64]
TRIES = 48  # trees by chance, of which the shortest counts
MOST_LINKS = 64  # of a switched domain that are worth a try


@dataclass(frozen=True, kw_only=True)
class GridGroup:
    """Places of a grid, added coordinate by coordinate, each modulo its extent (row-major
    numbers).
    """

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many places the group has."""
        return int(np.prod(self.shape))

    def add(self, places: Ints, offset: int) -> Ints:
        """Places moved by an offset."""
        coordinates = np.unravel_index(places, self.shape)
        by = np.unravel_index(offset, self.shape)
        moved = [(a + b) % extent for a, b, extent in zip(coordinates, by, self.shape, strict=True)]
        return np.asarray(np.ravel_multi_index(moved, self.shape), dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Branch:
    """An edge of the tree of place 0: in `step`, `parent` sends by link `link` of the list of
    offsets.
    """

    step: int
    parent: int
    link: int


def base_tree(group: GridGroup, offsets: Sequence[int], seed: int) -> list[Branch]:
    """A tree from place 0 to all, no link offset used twice in a step, in few steps.

    Moved to every root, such trees do not contend: in step s, the link from x by offset g carries
    the one chunk whose root is x minus the parent that uses g in step s. Each step matches offsets
    and places not reached yet, as many as can be; the places furthest from 0 come first, ties by
    chance. The shortest of `TRIES` trees is returned.
    """
    everywhere = np.arange(group.size)
    moves = [group.add(everywhere, offset).tolist() for offset in offsets]
    hops_to = _distances(moves, group.size)
    min_steps = max(-(-(group.size - 1) // len(offsets)), max(hops_to))
    shortest: list[Branch] = []
    tries = max(
        1, min(TRIES, 8_000_000 // (group.size * group.size))
    )  # a tree takes time as the square of the size
    for attempt in range(tries):
        tree = _tree(moves, hops_to, random.Random(f"{seed} {attempt}"))
        if not shortest or tree[-1].step < shortest[-1].step:
            shortest = tree
        if shortest[-1].step + 1 == min_steps:
            break
    return shortest


def _tree(moves: list[list[int]], hops_to: list[int], chance: random.Random) -> list[Branch]:
    """A tree that is grown step by step."""
    members = {0}
    tree: list[Branch] = []
    step = 0
    while len(members) < len(hops_to):
        choices_of = [
            [(child, parent) for parent in members if (child := move[parent]) not in members]
            for move in moves
        ]
        for choices in choices_of:
            chance.shuffle(choices)
            choices.sort(key=lambda pair: -hops_to[pair[0]])
        # Links with few choices go first, as they are the hardest to give a place.
        order = sorted(range(len(moves)), key=lambda link: len(choices_of[link]))
        matching: dict[int, tuple[int, int]] = {}
        for link in order:
            _match(link, choices_of, matching, set())
        tree += [Branch(step=step, parent=parent, link=link) for link, parent in matching.values()]
        members |= set(matching)
        step += 1
    return tree


def _match(
    link: int,
    choices_of: list[list[tuple[int, int]]],
    matching: dict[int, tuple[int, int]],
    seen: set[int],
    depth: int = 0,
) -> bool:
    """Give the link a place, moving others to places of their choice if need be (an augmenting
    path).
    """
    for child, parent in choices_of[link]:
        if child not in matching:
            matching[child] = (link, parent)
            return True
    # Augmenting paths are short where a matching is large; a limit keeps recursion from running
    # deep on large grids.
    for child, parent in choices_of[link] if depth < 64 else ():
        if child in seen:
            continue
        seen.add(child)
        if _match(matching[child][0], choices_of, matching, seen, depth + 1):
            matching[child] = (link, parent)
            return True
    return False


def _distances(moves: list[list[int]], size: int) -> list[int]:
    """Hops from place 0."""
    hops_to = [0] + [size] * (size - 1)
    ring = [0]
    while ring:
        after = sorted({move[place] for place in ring for move in moves})
        after = [place for place in after if hops_to[place] == size]
        for place in after:
            hops_to[place] = hops_to[ring[0]] + 1
        ring = after
    assert max(hops_to) < size or size == 1, "the offsets do not lead everywhere"
    return hops_to


def translates_schedule(board: Board, seed: int) -> Schedule | None:
    """The schedule of one tree moved to every root; None where the fabric does not look alike from
    every domain.

    Direct fabrics: the domains are taken as a grid (their own, or a circle in their order) whose
    links are the same everywhere. Switched fabrics: every domain sends p chunks to the domains 1,
    -1, 2, -2, ... further in an order that follows the switches, with p as large as can be routed
    without contention.
    """
    n = board.domains
    if board.direct:
        for shape in dict.fromkeys(shape for shape in (board.grid, (n,)) if shape):
            group = GridGroup(shape=shape)
            offsets = _offsets(board, group)
            if offsets is not None:
                ends = [group.add(np.arange(n), offset).tolist() for offset in offsets]
                routes = [list(enumerate(ends_of_offset)) for ends_of_offset in ends]
                return _moved(board, group, offsets, routes, range(n), seed)
        return None
    order = ring_order(board)
    # From the most shifts down: more of them in a step make a shallower tree, if they can be
    # routed.
    for offsets in _shifts(board):
        shifted = _routes(board, order, offsets)
        if shifted is not None:
            return _moved(board, GridGroup(shape=(n,)), offsets, shifted, order, seed)
    return None


def _offsets(board: Board, group: GridGroup) -> list[int] | None:
    """The links of place 0, if those of every other place are the same."""
    places = np.arange(board.domains)
    offsets = [
        neighbour
        for neighbour in board.neighbours[0]
        for _ in range(min(board.links[0, neighbour], board.domains))
    ]
    for neighbour in board.neighbours[0]:
        ends = group.add(places, neighbour).tolist()
        if any(
            board.links.get((place, end)) != board.links[0, neighbour]
            for place, end in enumerate(ends)
        ):
            return None
    return (
        offsets
        if all(len(neighbours) == len(board.neighbours[0]) for neighbours in board.neighbours)
        else None
    )


def _shifts(board: Board) -> Iterator[list[int]]:
    """1, -1, 2, -2, ... as many as the poorest domain has links, then fewer."""
    n = board.domains
    max_shifts = min(MOST_LINKS, n - 1, min(board.ports(domain) for domain in range(n)))
    steps = list(dict.fromkeys(shift % n for k in range(1, n) for shift in (k, -k)))
    for count in range(max_shifts, 0, -1):
        yield steps[:count]


def _routes(board: Board, order: Sequence[int], offsets: Sequence[int]) -> list[list[Path]] | None:
    """Paths of all shifts together that share no link; None where some flow finds no way."""
    links_left = dict(board.links)
    routes = []
    for offset in offsets:
        paths = []
        for at, start in enumerate(order):
            path = free_path(board, start, order[(at + offset) % len(order)].__eq__, links_left)
            if path is None:
                return None
            take_links(links_left, path)
            paths.append(path)
        routes.append(paths)
    return routes


def _moved(
    board: Board,
    group: GridGroup,
    offsets: Sequence[int],
    routes: Sequence[Sequence[Path]],
    order: Sequence[int],
    seed: int,
) -> Schedule:
    """One tree at every root, where the domain at a place of the group is `order[place]`, and its
    way by each offset is in `routes`.
    """
    places = np.arange(board.domains)
    hops = [
        Hop(branch.step, order[root], routes[branch.link][start])
        for branch in base_tree(group, offsets, seed)
        for root, start in enumerate(group.add(places, branch.parent).tolist())
    ]
    return schedule_of(board, "multitree", hops, found_by="one tree, copied to every root")
