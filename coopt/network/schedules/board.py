"""A fabric as numbers (domains first, then switches; every edge is two arcs), and shortest paths
over it.

They bound how few steps a schedule can take; each bound names what it comes from.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import pairwise

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from coopt.instance.texts import counted
from coopt.network.direct_graphs import domains_of, grid_of, switches_of

Arc = tuple[int, int]
Path = tuple[int, ...]
Pair = tuple[int, int]


Ints = NDArray[np.int64]
Arcs = tuple[Ints, Ints, Ints]

ALL_LINKS = "the links into all domains together"


@dataclass(frozen=True, kw_only=True)
class StepBound:
    """No schedule of N chunks takes fewer `steps` in a phase; `why` says what is full.

    `work` is the same for data cut at will: chunks of 1/N of it that the fullest links carry, a
    fraction.
    """

    steps: int
    work: float
    why: str


def step_bound(board: Board) -> StepBound:
    """The bound for one chunk of 1/N of the data rooted at each domain.

    Every domain receives N - 1 chunks through its own links, and so does, for the chunks from
    outside, every set S of vertices around a domain that the search for cuts looks at (balls of
    each radius). On direct fabrics a chunk also advances one hop a step: those more than d hops
    away do not enter S before step d.

    .. math:: s \\ge \\lceil N (N-1) / \\sum_v p_v \\rceil, \\qquad
              s \\ge d + \\lceil |\\{u : dist(u, S) > d\\}| / cap(S) \\rceil
    """
    n = board.domains
    ports = sum(board.ports(domain) for domain in range(n))
    bounds = [_link_bound(n * (n - 1), ports, ALL_LINKS)]
    ends = np.array(list(board.links), dtype=np.int64)
    arcs = ends[:, 0], ends[:, 1], np.array(list(board.links.values()), dtype=np.int64)
    # Sets of vertices as bits of one number: a ring of a breadth-first search is a few operations
    # on them.
    neighbours = [sum(1 << neighbour for neighbour in adjacent) for adjacent in board.neighbours]
    for domain in range(n):
        bounds += _balls(board, domain, arcs, neighbours)
    tightest = max(bounds, key=lambda bound: bound.steps)
    return replace(tightest, work=max(bound.work for bound in bounds))


def free_bound(board: Board) -> StepBound:
    """The bound when chunks may be rooted anywhere.

    A domain with p ports that roots k of N chunks needs N - k <= p s, and the k sum to N.

    .. math:: \\sum_v \\max(0, N - p_v s) \\le N
    """
    n = board.domains
    ports = [board.ports(domain) for domain in range(n)]
    link_bound = _link_bound(n * (n - 1), sum(ports), ALL_LINKS)
    low, high = link_bound.work, float(n)
    while high - low > 1e-9 * n:  # bisect; `low` is never above the true bound
        middle = (low + high) / 2
        low, high = (
            (middle, high) if sum(max(0.0, n - p * middle) for p in ports) > n else (low, middle)
        )
    steps = link_bound.steps
    while sum(max(0, n - p * steps) for p in ports) > n:
        steps += 1
    return (
        link_bound
        if steps == link_bound.steps
        else StepBound(steps=steps, work=low, why="the domains with the fewest links")
    )


def _link_bound(chunks: int, links: int, reason: str) -> StepBound:
    """The bound that follows from links which carry so many chunks between them."""
    return StepBound(steps=-(-chunks // links), work=chunks / links, why=reason)


def _balls(board: Board, centre: int, arcs: Arcs, neighbours: Sequence[int]) -> Iterator[StepBound]:
    """The bounds of cuts around a domain: one for each radius, and on direct fabrics for each step
    to wait for.
    """
    hops_to = _hops(centre, neighbours)
    deepest = int(hops_to.max())
    domains_at = np.bincount(hops_to[: board.domains], minlength=deepest + 1).tolist()
    tail, head, links = arcs
    inward = hops_to[tail] > hops_to[head]
    entry = (
        np.bincount(hops_to[head[inward]], weights=links[inward], minlength=deepest + 1)
        .astype(int)
        .tolist()
    )
    for radius in range(deepest):
        for wait in range(deepest - radius if board.direct else 1):
            outside = sum(domains_at[radius + wait + 1 :])
            if outside:
                cut = _link_bound(outside, entry[radius], _reason(board, centre, radius, wait))
                yield replace(cut, steps=wait + cut.steps)


def _reason(board: Board, centre: int, radius: int, wait: int) -> str:
    name = board.names[centre]
    place = (
        f"the links of {name}"
        if radius == 0
        else f"the links into the {radius}-hop neighbourhood of {name}"
    )
    return (
        f"{place} (chunks from more than {counted(radius + wait, 'hop')} away reach them at step"
        f" {wait + 1} or later)"
        if wait
        else place
    )


def _hops(centre: int, neighbours: Sequence[int]) -> Ints:
    """Hops from a vertex to every other; `neighbours` holds those of each as bits."""
    hops_to = np.zeros(len(neighbours), dtype=np.int64)
    seen, ring, depth = 1 << centre, [centre], 0
    while ring:
        frontier = 0
        for vertex in ring:
            frontier |= neighbours[vertex]
        new = frontier & ~seen
        seen |= new
        ring, depth = [], depth + 1
        while new:
            lowest_bit = new & -new
            ring.append(lowest_bit.bit_length() - 1)
            new ^= lowest_bit
        hops_to[ring] = depth
    return hops_to


@dataclass(frozen=True, kw_only=True)
class Board:
    """A fabric as the builders of schedules see it: vertices are numbers, and every edge is two
    arcs.

    `names` of the vertices, of which the first `domains` are HB domains; `neighbours` of each
    vertex; `links` and `gbit_s` (of one link) belong to arcs, each way; `grid` is the shape of the
    domains, row by row.
    """

    name: str
    names: tuple[str, ...]
    domains: int
    neighbours: tuple[tuple[int, ...], ...]
    links: dict[Arc, int]
    gbit_s: dict[Arc, float]
    grid: tuple[int, ...] | None

    @property
    def direct(self) -> bool:
        """Whether there are no switches."""
        return len(self.names) == self.domains

    def ports(self, vertex: int) -> int:
        """Links of a vertex, each way."""
        return sum(self.links[vertex, neighbour] for neighbour in self.neighbours[vertex])


def board_of(graph: nx.Graph) -> Board:
    """The numbers of a graph that `direct.wires.checked_fabric` has passed."""
    ends = domains_of(graph)
    names = (*ends, *switches_of(graph))
    number = {name: vertex for vertex, name in enumerate(names)}
    links: dict[Arc, int] = {}
    gbit_s: dict[Arc, float] = {}
    for tail, head, data in graph.edges(data=True):
        for arc in ((number[tail], number[head]), (number[head], number[tail])):
            links[arc], gbit_s[arc] = data["links"], data["gbit_s"]
    return Board(
        name=graph.graph["name"],
        names=names,
        domains=len(ends),
        neighbours=tuple(tuple(number[head] for head in graph.adj[name]) for name in names),
        links=links,
        gbit_s=gbit_s,
        grid=grid_of(graph),
    )


def free_path(
    board: Board,
    start: int,
    is_target: Callable[[int], bool],
    links_left: dict[Arc, int],
    *,
    through: bool = False,
) -> Path | None:
    """The first shortest path over arcs with links left, from a domain to a wanted domain.

    Parameters
    ----------
    through
        Whether the path may pass through other domains, and not only through switches.
    """
    predecessor = {start: start}
    queue = deque([start])
    while queue:
        vertex = queue.popleft()
        for neighbour in board.neighbours[vertex]:
            if neighbour in predecessor or links_left[vertex, neighbour] < 1:
                continue
            predecessor[neighbour] = vertex
            if neighbour < board.domains and is_target(neighbour):
                return walked(predecessor, neighbour)
            # Domains relay only where they may: a path through switches takes none of their ports.
            if through or neighbour >= board.domains:
                queue.append(neighbour)
    return None


def take_links(links_left: dict[Arc, int], path: Path) -> None:
    """Use up one link of every arc on a path."""
    for arc in pairwise(path):
        links_left[arc] -= 1


def walked(predecessor: dict[int, int], end: int) -> Path:
    """The way to a vertex from the one that precedes itself."""
    path = [end]
    while predecessor[path[-1]] != path[-1]:
        path.append(predecessor[path[-1]])
    return tuple(reversed(path))


def spread_paths(board: Board, pairs: Iterable[Pair]) -> dict[Pair, Path]:
    """A shortest path for each pair; of equally short ones that with the least loaded links, pair
    after pair.

    Domains may be passed through only where no way round them exists.
    """
    load: dict[Arc, float] = defaultdict(float)
    paths: dict[Pair, Path] = {}
    for pair in pairs:
        path = _lightest_path(board, pair, load, through=board.direct) or _lightest_path(
            board, pair, load, through=True
        )
        assert path is not None, "a fabric is connected"
        for arc in pairwise(path):
            load[arc] += 1 / board.links[arc]
        paths[pair] = path
    return paths


def _lightest_path(
    board: Board, pair: Pair, load: dict[Arc, float], *, through: bool
) -> Path | None:
    """Fewest hops, then the smallest sum of squared loads (Dijkstra)."""
    start, end = pair
    queue: list[tuple[int, float, Path]] = [(0, 0.0, (start,))]
    finished: set[int] = set()
    while queue:
        hops, cost, path = heappop(queue)
        vertex = path[-1]
        if vertex == end:
            return path
        if vertex in finished or (vertex != start and vertex < board.domains and not through):
            continue
        finished.add(vertex)
        for neighbour in board.neighbours[vertex]:
            if neighbour not in finished:
                # Squares punish a link that is loaded already more than two that are not.
                extra = (load[vertex, neighbour] + 1 / board.links[vertex, neighbour]) ** 2
                heappush(queue, (hops + 1, cost + extra, (*path, neighbour)))
    return None
