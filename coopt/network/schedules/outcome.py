"""An all-reduce on a fabric: the schedule, how long it takes, and how far it is from what is
possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import networkx as nx

from coopt.instance.texts import InstanceError
from coopt.network.direct_graphs import link_count
from coopt.network.schedules.board import Board, StepBound, board_of, free_bound, step_bound
from coopt.network.schedules.schedule_form import Schedule, all_reduce_s, replay
from coopt.network.schedules.textbook import (
    double_tree_schedule,
    halving_doubling_schedule,
    ring2d_schedule,
    ring_schedule,
)
from coopt.network.schedules.trees import free_multitree, multitree

ALGORITHMS: dict[str, Callable[[Board, int], Schedule]] = {
    "multitree": multitree,
    "ring": lambda board, seed: ring_schedule(board),
    "ring2d": lambda board, seed: ring2d_schedule(board),
    "double-tree": lambda board, seed: double_tree_schedule(board),
    "halving-doubling": lambda board, seed: halving_doubling_schedule(board),
}
BEST = "best"


@dataclass(frozen=True, kw_only=True)
class CollectiveOutcome:
    """What a planner wants to know about a collective.

    Attributes
    ----------
    nodes, switches, links
        HB domains, switches and cables of the graph.
    slowest_gbit_s, fastest_gbit_s
        Rates of its links, each way (Gbit/s).
    steps
        Steps of one phase; an all-reduce has two.
    work_chunks
        Time on the wire of one phase, in chunks of 1/N of the data; `steps` where whole chunks
        never contend.
    lower_bound_steps, gap
        No schedule of whole chunks, one rooted at each domain and one at a time on a link, has
        fewer steps a phase; gap = `work_chunks` / bound - 1. Data cut finer (ring2d) is measured
        against `lower_bound_work_chunks`.
    bus_gbyte_s
        2 (N-1)/N of the data over the time, the rate one compares collectives by (10^9 bytes/s).
    verified
        The schedule was carried out on the graph and holds.
    """

    graph: str
    nodes: int
    switches: int
    links: int
    slowest_gbit_s: float
    fastest_gbit_s: float
    algorithm: str
    found_by: str
    chunks: int
    steps: int
    work_chunks: float
    contention_free: bool
    lower_bound_steps: int
    lower_bound_work_chunks: float
    lower_bound_by: str
    gap: float
    bytes: float
    latency_s: float
    time_s: float
    ring_time_s: float
    speedup_over_ring: float
    bus_gbyte_s: float
    verified: bool


def collective(
    graph: nx.Graph,
    algorithm: str = BEST,
    *,
    data_bytes: float,
    latency_s: float,
    seed: int = 0,
    free_roots: bool = False,
) -> tuple[CollectiveOutcome, Schedule]:
    """Build a schedule, replay it, time it, and compare it with one ring.

    Parameters
    ----------
    graph
        As `direct.wires.checked_fabric` returns it.
    algorithm
        One of `ALGORITHMS`, or `best`: the fastest of those that exist for this graph, by size and
        start-up time.
    data_bytes
        What every domain contributes (bytes).
    latency_s
        Start-up time of a step (s).
    free_roots
        For multitree: domains may be roots of different numbers of chunks.

    Raises
    ------
    InstanceError
        When the algorithm does not exist for this graph (ring2d off grids, halving-doubling off
        powers of two).
    """
    board = board_of(graph)
    if algorithm == BEST:
        schedules = _schedules(board, seed, free_roots)
        schedule = min(
            schedules, key=lambda candidate: all_reduce_s(board, candidate, data_bytes, latency_s)
        )
    else:
        schedule = _builder(algorithm, free_roots)(board, seed)
    faults = replay(graph, schedule)
    # Builders are not trusted: a schedule is carried out before anybody sees it.
    assert not faults, faults
    return _measured(graph, board, schedule, data_bytes, latency_s), schedule


def _builder(algorithm: str, free_roots: bool) -> Callable[[Board, int], Schedule]:
    return free_multitree if free_roots and algorithm == "multitree" else ALGORITHMS[algorithm]


def _schedules(board: Board, seed: int, free_roots: bool) -> Iterator[Schedule]:
    """The schedules of all algorithms that exist for a graph."""
    for algorithm in ALGORITHMS:
        try:
            yield _builder(algorithm, free_roots)(board, seed)
        except InstanceError:  # it asks for a grid, or for a power of two
            continue


def bound_for(board: Board, schedule: Schedule) -> StepBound:
    """The lower bound that holds for the roots of a schedule: one or equally many at each domain,
    or any.
    """
    counts = {schedule.roots.count(domain) for domain in range(board.domains)}
    return step_bound(board) if len(counts) == 1 else free_bound(board)


def _measured(
    graph: nx.Graph, board: Board, schedule: Schedule, data_bytes: float, latency_s: float
) -> CollectiveOutcome:
    """Times, bounds and counts of a schedule that has been replayed."""
    bound = bound_for(board, schedule)
    # Data cut finer than one chunk for each domain may end within a step: only its work has a
    # bound.
    floor = bound.steps if len(schedule.roots) == board.domains else bound.work
    time_s = all_reduce_s(board, schedule, data_bytes, latency_s)
    ring_time_s = all_reduce_s(board, ring_schedule(board), data_bytes, latency_s)
    n = board.domains
    return CollectiveOutcome(
        graph=board.name,
        nodes=n,
        switches=len(board.names) - n,
        links=link_count(graph),
        slowest_gbit_s=min(board.gbit_s.values()),
        fastest_gbit_s=max(board.gbit_s.values()),
        algorithm=schedule.algorithm,
        found_by=schedule.found_by,
        chunks=len(schedule.roots),
        steps=schedule.steps,
        work_chunks=schedule.work,
        contention_free=schedule.contention_free,
        lower_bound_steps=bound.steps,
        lower_bound_work_chunks=bound.work,
        lower_bound_by=bound.why,
        gap=schedule.work / floor - 1,
        bytes=data_bytes,
        latency_s=latency_s,
        time_s=time_s,
        ring_time_s=ring_time_s,
        speedup_over_ring=ring_time_s / time_s,
        bus_gbyte_s=2 * (n - 1) / n * data_bytes / time_s / 1e9,
        verified=True,
    )
