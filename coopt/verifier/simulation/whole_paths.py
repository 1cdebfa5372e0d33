"""Flows that keep to one path each: pinned to links so that these are as even as whole flows can be, or at random."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from random import Random
from typing import Literal

from coopt.verifier.parts.wiring import Graph, Node, WiredGraph

WholeRouting = Literal["pinned", "ecmp"]
LeafPair = tuple[int, Node, Node]
"""Copy of the plane, leaf of the sender, leaf of the receiver."""
SingleLink = tuple[int, Node, Node, int]
"""Copy of the plane, from, to, and which of the parallel links."""


def even_colours(edges: Sequence[tuple[Hashable, Hashable]], colours: int) -> list[int]:
    """A colour for each edge from left to right, of which a vertex has each as often as any other, up to rounding up.

    Vertices are taken apart into some with as many edges as there are colours, which Kőnig's theorem colours properly:
    where an edge finds no colour free at both ends, two colours change places along the path that starts there.
    """
    seen: Counter[Hashable] = Counter()
    at: defaultdict[Hashable, dict[int, int]] = defaultdict(dict)  # colours of a vertex, and on which edge they are
    ends: list[tuple[Hashable, Hashable]] = []
    found: list[int] = []
    for number, pair in enumerate(edges):
        left, right = ((side, vertex, seen[side, vertex] // colours) for side, vertex in enumerate(pair))
        seen.update((side, vertex) for side, vertex in enumerate(pair))
        ends.append((left, right))
        here, there = (next(c for c in range(colours) if c not in at[vertex]) for vertex in (left, right))
        if here in at[right]:
            _swap(right, here, there, at, ends, found)
        found.append(here)
        at[left][here] = at[right][here] = number
    return found


def _swap(
    start: Hashable,
    first: int,
    second: int,
    at: defaultdict[Hashable, dict[int, int]],
    ends: list[tuple[Hashable, Hashable]],
    found: list[int],
) -> None:
    """Exchange two colours along the path from a vertex that lacks the second."""
    path, vertex, colour = list[int](), start, first
    while colour in at[vertex]:
        edge = at[vertex][colour]
        path.append(edge)
        left, right = ends[edge]
        vertex, colour = (right if vertex == left else left), first + second - colour
    for edge in path:
        for vertex in ends[edge]:
            if at[vertex].get(found[edge]) == edge:
                del at[vertex][found[edge]]
    for edge in path:
        found[edge] = first + second - found[edge]
        for vertex in ends[edge]:
            at[vertex][found[edge]] = edge


class WholePaths:
    """Single links that flows take; flows of different kinds, which are under way at different times, one by one."""

    def __init__(self, wiring: WiredGraph, routing: WholeRouting, seed: int = 0) -> None:
        assert wiring.slices == 1, "every uplink of a leaf is drawn"
        self._graph: Graph = wiring.graph
        self._routing, self._draw = routing, Random(seed)
        self._links: dict[tuple[Node, int], list[tuple[Node, int]]] = {}

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
        return even_colours(ends, size)

    def _above(self, low: Node) -> list[tuple[Node, int]]:
        """Links up of a switch, in the order of where they lead."""
        key = (low, 1)
        if key not in self._links:
            upper = sorted((other, data["links"]) for other, data in self._graph[low].items() if other[0] > low[0])
            self._links[key] = [(other, index) for other, count in upper for index in range(count)]
        return self._links[key]

    def _down(self, high: Node, target: Node, index: int) -> int:
        """Which of the parallel links down: as on the way up where bundles are even, or at random."""
        count = int(self._graph[high][target]["links"])
        return self._draw.randrange(count) if self._routing == "ecmp" else index % count

    def _counterpart(self, high: Node, target: Node) -> Node:
        """The aggregation switch of a slice in the pod of a leaf."""
        return next(other for other in self._graph[target] if other[0] == high[0] and other[3] == high[3])
