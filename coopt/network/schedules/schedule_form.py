"""The form of a schedule; data only."""

from __future__ import annotations

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
        rounds=tuple(max(-(-n // board.links[arc]) for arc, n in load.items()) for load in loads(ordered)),
    )


def loads(hops: Iterable[Hop]) -> list[dict[Arc, int]]:
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
