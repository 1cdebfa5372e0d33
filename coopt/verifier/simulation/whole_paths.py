"""Flows that keep to one path each: pinned to links so that these are as even as whole flows can be, or at random."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from random import Random
from typing import Literal

from coopt.verifier.parts.wiring import Graph, Node, WiredGraph

WholeRouting = Literal["pinned", "ecmp"]
LeafPair = tuple[int, Node, Node]
"""Copy of the plane, leaf of the sender, leaf of the receiver."""
SingleLink = tuple[int, Node, Node, int]
"""Copy of the plane, from, to, and which of the parallel links."""


Classes = tuple[Hashable, ...]
"""What an edge belongs to at one of its ends, the smallest first: each is part of the next."""


def even_colours(edges: Sequence[tuple[Classes, Classes]], colours: int) -> list[int]:
    """A colour for each edge, so that a class has each as often as any other, give or take one.

    Two colours are made even at once: at either end edges of a class are paired, what is left over with what is left
    over in the next larger class, and every other edge of the paths and rings that this makes gets the one colour. No
    class becomes less even by that, so that going through all pairs of colours comes to an end.
    """
    found = [number % colours for number in range(len(edges))]
    changed = True
    while changed:
        changed = False
        for one, other in combinations(range(colours), 2):
            members = [number for number, colour in enumerate(found) if colour in (one, other)]
            if _is_uneven(edges, members, found, one):
                changed = True
                for number, is_first in _halves(edges, members).items():
                    found[number] = one if is_first else other
    return found


def _is_uneven(edges: Sequence[tuple[Classes, Classes]], members: list[int], found: list[int], one: int) -> bool:
    """Whether some class has one of two colours twice more often than the other, or worse."""
    excess: Counter[tuple[int, Hashable]] = Counter()
    for number in members:
        for side, classes in enumerate(edges[number]):
            for group in classes:
                excess[side, group] += 1 if found[number] == one else -1
    return any(abs(difference) > 1 for difference in excess.values())


def _halves(edges: Sequence[tuple[Classes, Classes]], members: list[int]) -> dict[int, bool]:
    """Divide edges so that every class is halved, give or take one."""
    mates: defaultdict[int, list[int]] = defaultdict(list)
    for side in (0, 1):
        single = members
        for level in range(len(edges[members[0]][side])):
            waiting: dict[Hashable, int] = {}
            for number in single:
                group = edges[number][side][level]
                if group in waiting:
                    mate = waiting.pop(group)
                    mates[number].append(mate)
                    mates[mate].append(number)
                else:
                    waiting[group] = number
            single = list(waiting.values())
    halves: dict[int, bool] = {}
    for start in members:
        ahead = [(start, True)] if start not in halves else []
        while ahead:
            number, is_first = ahead.pop()
            if number not in halves:
                halves[number] = is_first
                ahead += [(mate, not is_first) for mate in mates[number]]
    return halves


class WholePaths:
    """Single links that flows take; flows of different kinds, which are under way at different times, one by one."""

    def __init__(self, wiring: WiredGraph, routing: WholeRouting, seed: int = 0) -> None:
        assert wiring.slices == 1, "every uplink of a leaf is drawn"
        self._graph: Graph = wiring.graph
        self._routing, self._draw = routing, Random(seed)
        self._links: dict[Node, list[tuple[Node, int]]] = {}

    def of_kind(self, pairs: Sequence[LeafPair]) -> list[tuple[SingleLink, ...]]:
        """The links of flows between leaves that differ, for all flows of a kind."""
        paths: list[tuple[SingleLink, ...]] = [()] * len(pairs)
        by_plane: defaultdict[int, list[int]] = defaultdict(list)
        for number, pair in enumerate(pairs):
            by_plane[pair[0]].append(number)
        for plane, numbers in by_plane.items():
            ends = [(pairs[number][1], pairs[number][2]) for number in numbers]
            for number, path in zip(numbers, self._climb(plane, ends), strict=True):
                paths[number] = path
        return paths

    def _climb(self, plane: int, ends: list[tuple[Node, Node]]) -> list[tuple[SingleLink, ...]]:
        """Paths between switches of one level: up by a link each, on from there if need be, and down."""
        ups = [self._above(low) for low, _ in ends]
        chosen = [up[choice] for up, choice in zip(ups, self._choices(ends, map(len, ups)), strict=True)]
        paths: list[tuple[SingleLink, ...]] = [()] * len(ends)
        farther: dict[int, tuple[Node, Node]] = {}
        for number, ((low, target), (high, index)) in enumerate(zip(ends, chosen, strict=True)):
            paths[number] = ((plane, low, high, index),)
            if high in self._graph[target]:
                paths[number] += ((plane, high, target, self._down(high, target, index)),)
            else:
                farther[number] = (high, self._counterpart(high, target))
        beyond = self._climb(plane, list(farther.values())) if farther else []
        for (number, (_, high)), path in zip(farther.items(), beyond, strict=True):
            paths[number] += (*path, (plane, high, ends[number][1], 0))
        return paths

    def _choices(self, ends: list[tuple[Node, Node]], counts: Iterable[int]) -> list[int]:
        """Which link up every flow takes; all switches of a level have as many."""
        sizes = set(counts)
        assert len(sizes) == 1
        (size,) = sizes
        if self._routing == "ecmp":
            return [self._draw.randrange(size) for _ in ends]
        return even_colours([(self._classes(low), self._classes(target)) for low, target in ends], size)

    def _classes(self, low: Node) -> Classes:
        """A switch, and the pod of a leaf."""
        upper = next(other for other, _ in self._above(low))
        return (low, upper[:3]) if low[0] == 1 and len(upper) > 3 else (low,)

    def _above(self, low: Node) -> list[tuple[Node, int]]:
        """Links up of a switch, in the order of where they lead."""
        if low not in self._links:
            upper = sorted((other, data["links"]) for other, data in self._graph[low].items() if other[0] > low[0])
            self._links[low] = [(other, index) for other, count in upper for index in range(count)]
        return self._links[low]

    def _down(self, high: Node, target: Node, index: int) -> int:
        """Which of the parallel links down: as on the way up where bundles are even, or at random."""
        count = int(self._graph[high][target]["links"])
        return self._draw.randrange(count) if self._routing == "ecmp" else index % count

    def _counterpart(self, high: Node, target: Node) -> Node:
        """The aggregation switch of a slice in the pod of a leaf."""
        return next(other for other in self._graph[target] if other[0] == high[0] and other[3] == high[3])
