"""Flows that keep to one path each: pinned to links so that these are as even as whole flows can
be, or at random.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from itertools import combinations
from random import Random
from typing import Literal

from coopt.verifier.parts.wiring import Graph, Node, WiredGraph
from coopt.verifier.training.caching import kept

WholeRouting = Literal["pinned", "ecmp"]
LeafPair = tuple[int, Node, Node]
"""Copy of the plane, leaf of the sender, leaf of the receiver."""
SingleLink = tuple[int, Node, Node, int]
"""Copy of the plane, from, to, and which of the parallel links."""


Classes = tuple[Hashable, ...]
"""What an edge belongs to at one of its ends, the smallest first: each is part of the next."""


def even_colours(edges: Sequence[tuple[Classes, Classes]], colours: int) -> list[int]:
    """A colour for each edge, so that a class has each as often as any other, give or take one.

    Two colours are made even at once: at either end edges of a class are paired, what is left over
    with what is left over in the next larger class, and every other edge of the paths and rings
    that this makes gets the one colour. No class becomes less even by that, so that going through
    all pairs of colours comes to an end.
    """
    # nearly even to begin with, so that few pairs of colours are left to mend
    colour_of = [number % colours for number in range(len(edges))]
    is_changed = True
    while is_changed:
        is_changed = False
        for colour_a, colour_b in combinations(range(colours), 2):
            members = [
                number for number, colour in enumerate(colour_of) if colour in (colour_a, colour_b)
            ]
            if _is_uneven(edges, members, colour_of, colour_a):
                is_changed = True
                for number, is_first in _halves(edges, members).items():
                    colour_of[number] = colour_a if is_first else colour_b
    return colour_of


def _is_uneven(
    edges: Sequence[tuple[Classes, Classes]], members: list[int], colour_of: list[int], colour: int
) -> bool:
    """Whether some class has one of two colours twice more often than the other, or worse."""
    excess: Counter[tuple[int, Hashable]] = Counter()
    for number in members:
        for side, classes in enumerate(edges[number]):
            for group in classes:
                excess[side, group] += 1 if colour_of[number] == colour else -1
    return any(abs(difference) > 1 for difference in excess.values())


def _halves(edges: Sequence[tuple[Classes, Classes]], members: list[int]) -> dict[int, bool]:
    """Divide edges so that every class is halved, give or take one."""
    mates: defaultdict[int, list[int]] = defaultdict(list)
    for side in (0, 1):
        unpaired = members
        for level in range(len(edges[members[0]][side])):
            waiting: dict[Hashable, int] = {}
            for number in unpaired:
                group = edges[number][side][level]
                if group in waiting:
                    mate = waiting.pop(group)
                    mates[number].append(mate)
                    mates[mate].append(number)
                else:
                    waiting[group] = number
            unpaired = list(waiting.values())
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
    """Single links that flows take; flows of different kinds, which are under way at different
    times, one by one.
    """

    def __init__(self, wiring: WiredGraph, routing: WholeRouting, seed: int = 0) -> None:
        assert wiring.slices == 1, "every uplink of a leaf is drawn"
        self._graph: Graph = wiring.graph
        self._routing, self._draw = routing, Random(seed)

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
        """Paths between switches of one level: up by a link each, on from there if need be, and
        down.
        """
        ups = [self._links_up(switch) for switch, _ in ends]
        links = [
            up[choice] for up, choice in zip(ups, self._choices(ends, map(len, ups)), strict=True)
        ]
        paths: list[tuple[SingleLink, ...]] = [()] * len(ends)
        farther: dict[int, tuple[Node, Node]] = {}
        for number, ((switch, target), (upper_switch, index)) in enumerate(
            zip(ends, links, strict=True)
        ):
            paths[number] = ((plane, switch, upper_switch, index),)
            if upper_switch in self._graph[target]:
                paths[number] += (
                    (plane, upper_switch, target, self._down(upper_switch, target, index)),
                )
            else:
                # the aggregation switch of a slice in the pod of a leaf: of the same level and
                # slice
                peers = (peer for peer in self._graph[target] if peer[::3] == upper_switch[::3])
                farther[number] = (upper_switch, next(peers))
        beyond = self._climb(plane, list(farther.values())) if farther else []
        for (number, (_, upper_switch)), path in zip(farther.items(), beyond, strict=True):
            target = ends[number][1]
            # `network.pod_bundles` is refused where flows keep to one path each
            assert self._graph[upper_switch][target]["links"] == 1, (
                "a leaf has one link to each switch of its pod"
            )
            paths[number] += (*path, (plane, upper_switch, target, 0))
        return paths

    def _choices(self, ends: list[tuple[Node, Node]], counts: Iterable[int]) -> list[int]:
        """Which link up every flow takes; all switches of a level have as many."""
        sizes = set(counts)
        assert len(sizes) == 1
        (size,) = sizes
        if self._routing == "ecmp":
            return [self._draw.randrange(size) for _ in ends]
        return even_colours(
            [(self._classes(switch), self._classes(target)) for switch, target in ends], size
        )

    def _classes(self, switch: Node) -> Classes:
        """A switch, and the pod of a leaf."""
        neighbour = next(neighbour for neighbour, _ in self._links_up(switch))
        return (switch, neighbour[:3]) if switch[0] == 1 and len(neighbour) > 3 else (switch,)

    @kept()
    def _links_up(self, switch: Node) -> list[tuple[Node, int]]:
        """Links up of a switch, in the order of where they lead."""
        edges = self._graph[switch].items()
        counts = sorted((upper, edge["links"]) for upper, edge in edges if upper[0] > switch[0])
        return [(upper, index) for upper, count in counts for index in range(count)]

    def _down(self, upper_switch: Node, target: Node, index: int) -> int:
        """Which of the parallel links down: as on the way up where bundles are even, or at
        random.
        """
        count = int(self._graph[upper_switch][target]["links"])
        return self._draw.randrange(count) if self._routing == "ecmp" else index % count
