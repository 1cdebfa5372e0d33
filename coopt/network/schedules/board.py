"""A fabric as numbers (domains first, then switches; every edge is two arcs), and shortest paths over it.

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

from coopt.network.direct_graphs import domains_of, grid_of, switches_of

Arc = tuple[int, int]
Path = tuple[int, ...]
Pair = tuple[int, int]


Ints = NDArray[np.int64]
Arcs = tuple[Ints, Ints, Ints]

ALL = "the links into all domains together"


@dataclass(frozen=True, kw_only=True)
class StepBound:
    """No schedule of N chunks takes fewer `steps` in a phase; `why` says what is full.

    `work` is the same for data cut at will: chunks of 1/N of it that the fullest links carry, a fraction.
    """

    steps: int
    work: float
    why: str


def step_bound(board: Board) -> StepBound:
    """The bound for one chunk of 1/N of the data rooted at each domain.

    Every domain receives N - 1 chunks through its own links, and so does, for the chunks from outside, every set S of
    vertices around a domain that the search for cuts looks at (balls of each radius). On direct fabrics a chunk also
    advances one hop a step: those more than d hops away do not enter S before step d.

    .. math:: s \\ge \\lceil N (N-1) / \\sum_v p_v \\rceil, \\qquad
              s \\ge d + \\lceil |\\{u : dist(u, S) > d\\}| / cap(S) \\rceil
    """
    n = board.domains
    ports = sum(board.ports(domain) for domain in range(n))
    bounds = [_full(n * (n - 1), ports, ALL)]
    arcs = _arcs(board)
    near = [sum(1 << other for other in others) for others in board.near]
    for domain in range(n):
        bounds += _balls(board, domain, arcs, near)
    tightest = max(bounds, key=lambda bound: bound.steps)
    return replace(tightest, work=max(bound.work for bound in bounds))


def free_bound(board: Board) -> StepBound:
    """The bound when chunks may be rooted anywhere.

    A domain with p ports that roots k of N chunks needs N - k <= p s, and the k sum to N.

    .. math:: \\sum_v \\max(0, N - p_v s) \\le N
    """
    n = board.domains
    ports = [board.ports(domain) for domain in range(n)]
    whole = _full(n * (n - 1), sum(ports), ALL)
    low, high = whole.work, float(n)
    while high - low > 1e-9 * n:  # bisect; `low` is never above the true bound
        middle = (low + high) / 2
        low, high = (middle, high) if sum(max(0.0, n - p * middle) for p in ports) > n else (low, middle)
    steps = whole.steps
    while sum(max(0, n - p * steps) for p in ports) > n:
        steps += 1
    return whole if steps == whole.steps else StepBound(steps=steps, work=low, why="the domains with few links")


def _full(chunks: int, links: int, why: str) -> StepBound:
    """The bound that follows from links which carry so many chunks between them."""
    return StepBound(steps=-(-chunks // links), work=chunks / links, why=why)


def _balls(board: Board, centre: int, arcs: Arcs, near: Sequence[int]) -> Iterator[StepBound]:
    """The bounds of cuts around a domain: one for each radius, and on direct fabrics for each step to wait for."""
    far = _hops(centre, near)
    deepest = int(far.max())
    domains_at = np.bincount(far[: board.domains], minlength=deepest + 1).tolist()
    tail, head, links = arcs
    inward = far[tail] > far[head]
    entry = np.bincount(far[head[inward]], weights=links[inward], minlength=deepest + 1).astype(int).tolist()
    for radius in range(deepest):
        for wait in range(deepest - radius if board.direct else 1):
            outside = sum(domains_at[radius + wait + 1 :])
            if outside:
                cut = _full(outside, entry[radius], _why(board, centre, radius, wait))
                yield replace(cut, steps=wait + cut.steps)


def _why(board: Board, centre: int, radius: int, wait: int) -> str:
    name = board.names[centre]
    place = f"the links of {name}" if radius == 0 else f"the links into what lies within {radius} hops of {name}"
    return f"{place}, of use to the furthest from step {wait + 1} on" if wait else place


def _arcs(board: Board) -> Arcs:
    """Tails, heads and link counts of all arcs."""
    ends = np.array(list(board.links), dtype=np.int64)
    return ends[:, 0], ends[:, 1], np.array(list(board.links.values()), dtype=np.int64)


def _hops(centre: int, near: Sequence[int]) -> Ints:
    """Hops from a vertex to every other; `near` holds the neighbours of each as bits."""
    far = np.zeros(len(near), dtype=np.int64)
    seen, ring, depth = 1 << centre, [centre], 0
    while ring:
        reached = 0
        for vertex in ring:
            reached |= near[vertex]
        new = reached & ~seen
        seen |= new
        ring, depth = [], depth + 1
        while new:
            low = new & -new
            ring.append(low.bit_length() - 1)
            new ^= low
        far[ring] = depth
    return far


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
