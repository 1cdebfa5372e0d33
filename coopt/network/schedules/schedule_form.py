"""The form of a schedule, how long it takes, and the file that holds it."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from coopt.network.schedules.board import Arc, Board, Path


class Hop(NamedTuple):
    """A chunk goes in a step (from 0) along a path of vertices, from its first domain to its last."""

    step: int
    chunk: int
    path: Path


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """An all-reduce in two phases: trees gather to all, and the same trees in reverse reduce before that.

    Vertices are numbered as in `names`, the first `domains` of which are HB domains. The data is cut into
    `len(roots)` chunks of one size; `roots[c]` is the domain where chunk c is reduced and from where it spreads along
    the tree that its hops form. `hops` holds the gather phase, by step. In the reduce phase, of as many steps, every
    hop goes the other way at step `steps - 1 - step`.

    `rounds[s]` is how often the busiest arc is filled in step s: 1 where nothing contends. `found_by` says which
    construction won where several compete.
    """

    algorithm: str
    found_by: str
    names: tuple[str, ...]
    domains: int
    roots: tuple[int, ...]
    hops: tuple[Hop, ...]
    rounds: tuple[int, ...]

    @property
    def steps(self) -> int:
        """Steps of one phase."""
        return len(self.rounds)

    @property
    def work(self) -> float:
        """Time on the wire of one phase, in chunks of 1/N of the data."""
        return sum(self.rounds) * self.domains / len(self.roots)

    @property
    def contention_free(self) -> bool:
        """Whether no link carries two chunks in one step."""
        return max(self.rounds, default=1) == 1

    def reduction(self) -> list[Hop]:
        """The hops of the reduce phase, by step."""
        last = self.steps - 1
        return [Hop(last - hop.step, hop.chunk, hop.path[::-1]) for hop in reversed(self.hops)]


def schedule_of(
    board: Board, algorithm: str, hops: Iterable[Hop], *, roots: Iterable[int] | None = None, found_by: str = ""
) -> Schedule:
    """Order the hops and count what contends; without `roots`, chunk c is that of domain c."""
    ordered = tuple(sorted(hops))
    return Schedule(
        algorithm=algorithm,
        found_by=found_by or algorithm,
        names=board.names,
        domains=board.domains,
        roots=tuple(range(board.domains) if roots is None else roots),
        hops=ordered,
        rounds=tuple(max(-(-n // board.links[arc]) for arc, n in load.items()) for load in arc_loads(ordered)),
    )


def arc_loads(hops: Iterable[Hop]) -> list[dict[Arc, int]]:
    """Chunks on every arc in use, step by step."""
    found: list[dict[Arc, int]] = []
    for step, _, path in hops:
        while len(found) <= step:
            found.append(defaultdict(int))
        load = found[step]
        for arc in pairwise(path):
            load[arc] += 1
    assert all(found), "a step in which nothing is sent"
    return found


def all_reduce_s(board: Board, schedule: Schedule, data_bytes: float, latency_s: float) -> float:
    """Both phases of an all-reduce (s).

    A step lasts its start-up time and as long as its busiest link sends; the reduce phase mirrors the gather phase.
    With one rate and without contention this is 2 steps (D/N / rate + latency).

    .. math:: T = 2 \\sum_s \\left( \\alpha + \\max_l \\lceil n_{ls} / k_l \\rceil \\frac{D / C}{r_l} \\right)

    Parameters
    ----------
    data_bytes
        D: what every domain contributes and gets (bytes).
    latency_s
        alpha: start-up time of a step (s).
    """
    chunk_bits = 8 * data_bytes / len(schedule.roots)
    return 2 * math.fsum(
        latency_s + max(-(-n // board.links[arc]) * chunk_bits / (1e9 * board.gbit_s[arc]) for arc, n in load.items())
        for load in arc_loads(schedule.hops)
    )


def schedule_json(board: Board, schedule: Schedule) -> str:
    """One JSON document, a send a line: step, chunk, and the vertices it passes from sender to receiver.

    Steps count from 0 in each phase; every gather step comes after the last reduce step.
    """
    roots = [board.names[root] for root in schedule.roots]
    head = {
        "format": 1,
        "graph": board.name,
        "algorithm": schedule.algorithm,
        "found_by": schedule.found_by,
        "domains": list(board.names[: board.domains]),
        "chunks": len(roots),
        "roots": roots,
        "steps": schedule.steps,
        "rounds": list(schedule.rounds),
    }
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    lines += [
        f'"reduce": {_sends(board, schedule.reduction())}',
        f'"gather": {_sends(board, schedule.hops)}',
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _sends(board: Board, hops: Iterable[Hop]) -> str:
    rows = (json.dumps([hop.step, hop.chunk, [board.names[v] for v in hop.path]]) for hop in hops)
    return "[\n" + ",\n".join(rows) + "\n]"
