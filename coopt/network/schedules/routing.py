"""Ways for pairs of domains, spread over the links."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from heapq import heappop, heappush
from itertools import pairwise

from coopt.network.schedules.board import Arc, Board, Path

Pair = tuple[int, int]


def spread_paths(board: Board, pairs: Iterable[Pair]) -> dict[Pair, Path]:
    """A shortest path for each pair; of equally short ones that with the least loaded links, pair after pair.

    Domains may be passed through only where no way round them exists.
    """
    load: dict[Arc, float] = defaultdict(float)
    found: dict[Pair, Path] = {}
    for pair in pairs:
        path = _best(board, pair, load, through=board.direct) or _best(board, pair, load, through=True)
        assert path is not None, "a fabric is connected"
        for arc in pairwise(path):
            load[arc] += 1 / board.links[arc]
        found[pair] = path
    return found


def _best(board: Board, pair: Pair, load: dict[Arc, float], *, through: bool) -> Path | None:
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
