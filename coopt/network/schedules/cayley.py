"""One tree, moved to every root: on fabrics that look alike from every domain."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
TRIES = 48


@dataclass(frozen=True, kw_only=True)
class Group:
    """Places of a grid, added coordinate by coordinate, each modulo its extent (row-major numbers)."""

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Places."""
        return int(np.prod(self.shape))

    def add(self, places: Ints, offset: int) -> Ints:
        """Places moved by an offset."""
        here = np.unravel_index(places, self.shape)
        by = np.unravel_index(offset, self.shape)
        moved = [(a + b) % extent for a, b, extent in zip(here, by, self.shape, strict=True)]
        return np.asarray(np.ravel_multi_index(moved, self.shape), dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Branch:
    """An edge of the tree of place 0: in `step`, `parent` sends by link `link` of the list of offsets."""

    step: int
    parent: int
    link: int


def base_tree(group: Group, offsets: Sequence[int], seed: int) -> list[Branch]:
    """A tree from place 0 to all, no link offset used twice in a step, in few steps.

    Moved to every root, such trees do not contend: in step s, the link from x by offset g carries the one chunk whose
    root is x minus the parent that uses g in step s. Each step matches offsets and places not reached yet, as many as
    can be; the places furthest from 0 come first, ties by chance. The shortest of `TRIES` trees is returned.
    """
    everywhere = np.arange(group.size)
    moves = [group.add(everywhere, offset).tolist() for offset in offsets]
    far = _distances(moves, group.size)
    fewest = max(-(-(group.size - 1) // len(offsets)), max(far))
    best: list[Branch] = []
    tries = max(1, min(TRIES, 8_000_000 // (group.size * group.size)))
    for attempt in range(tries):
        tree = _tree(moves, far, random.Random(f"{seed} {attempt}"))
        if not best or tree[-1].step < best[-1].step:
            best = tree
        if best[-1].step + 1 == fewest:
            break
    return best


def _tree(moves: list[list[int]], far: list[int], chance: random.Random) -> list[Branch]:
    """One tree, step by step."""
    reached = {0}
    tree: list[Branch] = []
    step = 0
    while len(reached) < len(far):
        open_ = [[(child, parent) for parent in reached if (child := move[parent]) not in reached] for move in moves]
        for choices in open_:
            chance.shuffle(choices)
            choices.sort(key=lambda pair: -far[pair[0]])
        order = sorted(range(len(moves)), key=lambda link: len(open_[link]))
        taken: dict[int, tuple[int, int]] = {}
        for link in order:
            _match(link, open_, taken, set())
        tree += [Branch(step=step, parent=parent, link=link) for link, parent in taken.values()]
        reached |= set(taken)
        step += 1
    return tree


def _match(
    link: int, open_: list[list[tuple[int, int]]], taken: dict[int, tuple[int, int]], seen: set[int], depth: int = 0
) -> bool:
    """Give the link a place, moving others to places of their choice if need be (an augmenting path)."""
    for child, parent in open_[link]:
        if child not in taken:
            taken[child] = (link, parent)
            return True
    for child, parent in open_[link] if depth < 64 else ():
        if child in seen:
            continue
        seen.add(child)
        if _match(taken[child][0], open_, taken, seen, depth + 1):
            taken[child] = (link, parent)
            return True
    return False


def _distances(moves: list[list[int]], size: int) -> list[int]:
    """Hops from place 0."""
    far = [0] + [size] * (size - 1)
    ring = [0]
    while ring:
        after = sorted({move[place] for place in ring for move in moves})
        after = [place for place in after if far[place] == size]
        for place in after:
            far[place] = far[ring[0]] + 1
        ring = after
    assert max(far) < size or size == 1, "the offsets do not lead everywhere"
    return far
