"""N trees that do not contend: several constructions, the shortest counts."""

from __future__ import annotations

from collections.abc import Iterator

from coopt.network.schedules.board import Board
from coopt.network.schedules.bounds import free_bound, step_bound
from coopt.network.schedules.greedy import grown_in_turn
from coopt.network.schedules.rarest import rarest_first
from coopt.network.schedules.rings import ring_schedule
from coopt.network.schedules.schedule_form import Schedule
from coopt.network.schedules.translates import translated

WORK = 300_000_000
"""Chunk choices that restarts may look at; some seconds."""
MOST_TRIES = 64
FREE_TRIES = 8


def multitree(board: Board, seed: int = 0) -> Schedule:
    """A contention-free schedule with one tree for each domain, in as few steps as were found.

    Constructions are tried in turn until one meets the lower bound: one tree moved to every root (fabrics that look
    alike from every domain), rarest chunk first with restarts (direct fabrics), trees grown in turn, and the ring.
    """
    fewest = step_bound(board).steps
    best: Schedule | None = None
    for found in _constructions(board, seed, fewest):
        if best is None or found.steps < best.steps:
            best = found
        if best.steps == fewest:
            break
    assert best is not None
    return best


def free_multitree(board: Board, seed: int = 0) -> Schedule:
    """As `multitree`, but domains with few links may reduce more chunks than others.

    A corner of a mesh sends and receives less the more chunks it is the root of. For all-reduce alone: a reduce-scatter
    of this form leaves shards of different sizes. Root counts are those a number of steps asks for, N - p s of a domain
    with p links, and the rest spread evenly; some numbers of steps from the lower bound up are tried.
    """
    best = multitree(board, seed)
    if not board.direct:
        return best
    fewest = free_bound(board).steps
    for steps in range(fewest, best.steps, max(1, (best.steps - fewest) // FREE_TRIES)):
        if steps < best.steps:
            found = rarest_first(board, seed, roots=_roots(board, steps))
            best = min(best, found, key=lambda schedule: schedule.steps)
    return best


def _constructions(board: Board, seed: int, fewest: int) -> Iterator[Schedule]:
    moved = translated(board, seed)
    if moved is not None:
        yield moved
    if board.direct:
        for attempt in range(_tries(board, fewest)):
            yield rarest_first(board, seed + attempt)
    yield grown_in_turn(board)
    yield ring_schedule(board)


def _tries(board: Board, steps: int) -> int:
    """Restarts that fit into the work allowed, at least 2."""
    looks = len(board.links) * board.domains * steps
    return max(2, min(MOST_TRIES, WORK // looks))


def _roots(board: Board, steps: int) -> list[int]:
    """The domain of each chunk: what `steps` asks of each, the rest one by one to whoever receives most a link."""
    n = board.domains
    ports = [board.ports(domain) for domain in range(n)]
    counts = [max(0, n - p * steps) for p in ports]
    for _ in range(n - sum(counts)):
        counts[max(range(n), key=lambda v: ((n - counts[v]) / ports[v], -v))] += 1
    return [domain for domain in range(n) for _ in range(counts[domain])]
