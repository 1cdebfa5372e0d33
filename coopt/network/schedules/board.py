"""A fabric as numbers (domains first, then switches; every edge is two arcs), and shortest paths over it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

import networkx as nx

from coopt.network.direct.wires import domains_of, grid_of, switches_of

Arc = tuple[int, int]
Path = tuple[int, ...]
Pair = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class Board:
    """A fabric as the builders of schedules see it: vertices are numbers, and every edge is two arcs.

    `names` of the vertices, of which the first `domains` are HB domains; `near` holds each vertex's neighbours;
    `links` and `gbit_s` (of one link) belong to arcs, each way; `grid` is the shape of the domains, row by row.
    """

    name: str
    names: tuple[str, ...]
    domains: int
    near: tuple[tuple[int, ...], ...]
    links: dict[Arc, int]
    gbit_s: dict[Arc, float]
    grid: tuple[int, ...] | None

    @property
    def direct(self) -> bool:
        """Whether there are no switches."""
        return len(self.names) == self.domains

    def ports(self, vertex: int) -> int:
        """Links of a vertex, each way."""
        return sum(self.links[vertex, other] for other in self.near[vertex])


def board_of(graph: nx.Graph) -> Board:
    """The numbers of a graph that `direct.wires.checked_fabric` has passed."""
    ends = domains_of(graph)
    names = (*ends, *switches_of(graph))
    number = {name: vertex for vertex, name in enumerate(names)}
    links: dict[Arc, int] = {}
    gbit_s: dict[Arc, float] = {}
    for one, other, data in graph.edges(data=True):
        for arc in ((number[one], number[other]), (number[other], number[one])):
            links[arc], gbit_s[arc] = data["links"], data["gbit_s"]
    return Board(
        name=graph.graph["name"],
        names=names,
        domains=len(ends),
        near=tuple(tuple(number[other] for other in graph.adj[name]) for name in names),
        links=links,
        gbit_s=gbit_s,
        grid=grid_of(graph),
    )


def free_path(
    board: Board, start: int, wanted: Callable[[int], bool], left: dict[Arc, int], *, through: bool = False
) -> Path | None:
    """The first shortest path over arcs with links left, from a domain to a wanted domain.

    Parameters
    ----------
    through
        Whether the path may pass through other domains, and not only through switches.
    """
    before = {start: start}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for there in board.near[here]:
            if there in before or left[here, there] < 1:
                continue
            before[there] = here
            if there < board.domains and wanted(there):
                return _walked(before, there)
            if through or there >= board.domains:
                queue.append(there)
    return None


def take_links(left: dict[Arc, int], path: Path) -> None:
    """Use up one link of every arc on a path."""
    for arc in pairwise(path):
        left[arc] -= 1


def _walked(before: dict[int, int], end: int) -> Path:
    path = [end]
    while before[path[-1]] != path[-1]:
        path.append(before[path[-1]])
    return tuple(reversed(path))


def spread_paths(board: Board, pairs: Iterable[Pair]) -> dict[Pair, Path]:
    """A shortest path for each pair; of equally short ones that with the least loaded links, pair after pair.

    Domains may be passed through only where no way round them exists.
    """
    load: dict[Arc, float] = defaultdict(float)
    found: dict[Pair, Path] = {}
    for pair in pairs:
        path = _lightest_path(board, pair, load, through=board.direct) or _lightest_path(
            board, pair, load, through=True
        )
        assert path is not None, "a fabric is connected"
        for arc in pairwise(path):
            load[arc] += 1 / board.links[arc]
        found[pair] = path
    return found


def _lightest_path(board: Board, pair: Pair, load: dict[Arc, float], *, through: bool) -> Path | None:
    """Fewest hops, then the smallest sum of squared loads (Dijkstra)."""
    start, end = pair
    queue: list[tuple[int, float, Path]] = [(0, 0.0, (start,))]
    settled: set[int] = set()
    while queue:
        hops, cost, path = heappop(queue)
        here = path[-1]
        if here == end:
            return path
        if here in settled or (here != start and here < board.domains and not through):
            continue
        settled.add(here)
        for there in board.near[here]:
            if there not in settled:
                extra = (load[here, there] + 1 / board.links[here, there]) ** 2
                heappush(queue, (hops + 1, cost + extra, (*path, there)))
    return None
