"""The form of a schedule, how long it takes, and the file that holds it.

A schedule is doubted by carrying it out on the graph, step by step, and naming everything that does
not hold.

Nothing here is shared with the builders but the form of a schedule; links are looked up in the
graph itself.
"""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import networkx as nx

from coopt.network.schedules.board import Arc, Board, Path

MAX_FAULTS = 20  # faults at most: one wrong hop early on makes many later ones


def replay(graph: nx.Graph, schedule: Schedule) -> tuple[str, ...]:
    """What is wrong with a schedule, each fault with phase, step and link; nothing where it holds.

    Both phases are carried out: a domain sends in a step only what it held before the step, in the
    reduce phase every contribution reaches the root of its chunk exactly once, in the gather phase
    every domain gets every chunk exactly once, and no arc carries more than `rounds` times its
    links in a step.
    """
    names = schedule.names
    phases = (
        ("reduce", schedule.reduction(), schedule.rounds[::-1]),
        ("gather", schedule.hops, schedule.rounds),
    )
    faults: list[str] = [*_form(graph, schedule)]
    # What names vertices or links that do not exist cannot be carried out.
    if not faults:
        for phase, hops, rounds in phases:
            faults += (f"{phase} {fault}" for fault in _crowded(graph, names, hops, rounds))
        faults += (f"reduce {fault}" for fault in _reduced(names, schedule))
        faults += (f"gather {fault}" for fault in _gathered(names, schedule))
    return tuple(faults[:MAX_FAULTS])


def _form(graph: nx.Graph, schedule: Schedule) -> Iterator[str]:
    """Name steps, chunks, domains and links that do not exist."""
    names, domains = schedule.names, schedule.domains
    graph_domains = {node for node, kind in graph.nodes(data="kind") if kind == "domain"}
    if set(names[:domains]) != graph_domains or domains != len(graph_domains):
        yield (
            f"schedule: its {domains} domains differ from the {len(graph_domains)} domains of the"
            " graph"
        )
        return
    if any(not 0 <= root < domains for root in schedule.roots):
        yield "schedule: the root of a chunk is not a domain"
    for hop in schedule.hops:
        if not 0 <= hop.step < schedule.steps or not 0 <= hop.chunk < len(schedule.roots):
            yield f"step {hop.step}: chunk {hop.chunk}: this step or chunk does not exist"
        elif not all(0 <= vertex < len(names) for vertex in hop.path) or len(hop.path) < 2:
            yield f"step {hop.step}: chunk {hop.chunk}: {hop.path} is not a path"
        elif max(hop.path[0], hop.path[-1]) >= domains:
            yield f"step {hop.step}: chunk {hop.chunk}: its path does not join two domains"
        else:
            for tail, head in pairwise(hop.path):
                if not graph.has_edge(names[tail], names[head]):
                    yield (
                        f"step {hop.step}: chunk {hop.chunk}: its path needs the link"
                        f" {names[tail]} -> {names[head]}, which does not exist"
                    )


def _crowded(
    graph: nx.Graph, names: Sequence[str], hops: Iterable[Hop], rounds: tuple[int, ...]
) -> Iterator[str]:
    """Name arcs that carry more chunks than fit."""
    loads: Counter[tuple[int, int, int]] = Counter(
        (hop.step, tail, head) for hop in hops for tail, head in pairwise(hop.path)
    )
    for (step, tail, head), count in sorted(loads.items()):
        links = graph.edges[names[tail], names[head]]["links"]
        if count > links * rounds[step]:
            room = f"{links * rounds[step]}" + (
                f" in {rounds[step]} rounds" if rounds[step] > 1 else ""
            )
            yield (
                f"step {step}: link {names[tail]} -> {names[head]} carries {count} chunks, but"
                f" has room for only {room}"
            )


def _by_step(hops: Iterable[Hop]) -> list[tuple[int, list[Hop]]]:
    by_step: dict[int, list[Hop]] = defaultdict(list)
    for hop in hops:
        by_step[hop.step].append(hop)
    return sorted(by_step.items())


def _reduced(names: Sequence[str], schedule: Schedule) -> Iterator[str]:
    """Contributions as bits: what arrives must be new, since a sender keeps its partial sum in
    memory.
    """
    chunks = range(len(schedule.roots))
    partial = [[1 << domain for _ in chunks] for domain in range(schedule.domains)]
    for step, hops in _by_step(schedule.reduction()):
        leaving = [(hop, partial[hop.path[0]][hop.chunk]) for hop in hops]
        for hop, contributions in leaving:
            twice = partial[hop.path[-1]][hop.chunk] & contributions
            if twice:
                link = (
                    f"step {step}: link {names[hop.path[0]]} -> {names[hop.path[-1]]}: chunk"
                    f" {hop.chunk}"
                )
                yield f"{link}: the contribution of {_lowest_domain(names, twice)} counts twice"
            partial[hop.path[-1]][hop.chunk] |= contributions
    everyone = (1 << schedule.domains) - 1
    for chunk, root in enumerate(schedule.roots):
        absent = everyone & ~partial[root][chunk]
        if absent:
            yield (
                f"after the last step: chunk {chunk} at {names[root]} lacks the contribution of"
                f" {_lowest_domain(names, absent)}"
            )


def _lowest_domain(names: Sequence[str], bits: int) -> str:
    """The domain of the lowest bit."""
    return names[(bits & -bits).bit_length() - 1]


def _gathered(names: Sequence[str], schedule: Schedule) -> Iterator[str]:
    """Follow who holds which chunk, and name sends that cannot be or are not needed."""
    holds = [{root} for root in schedule.roots]
    for step, hops in _by_step(schedule.hops):
        # Read before the step changes anything: what arrives in a step can be passed on in the next
        # one only.
        is_ready = {hop: hop.path[0] in holds[hop.chunk] for hop in hops}
        for hop in hops:
            link = (
                f"step {step}: link {names[hop.path[0]]} -> {names[hop.path[-1]]}: chunk"
                f" {hop.chunk}"
            )
            if not is_ready[hop]:
                yield f"{link}: the sender does not have it"
            if hop.path[-1] in holds[hop.chunk]:
                yield f"{link}: the receiver has it already"
            holds[hop.chunk].add(hop.path[-1])
    for chunk, holders in enumerate(holds):
        if len(holders) < schedule.domains:
            domain_without = next(
                domain for domain in range(schedule.domains) if domain not in holders
            )
            yield f"after the last step: chunk {chunk} has not reached {names[domain_without]}"


class Hop(NamedTuple):
    """A chunk goes in a step (from 0) along a path of vertices, from its first domain to its
    last.
    """

    step: int
    chunk: int
    path: Path


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """An all-reduce in two phases: trees gather to all, and the same trees in reverse reduce before
    that.

    Vertices are numbered as in `names`, the first `domains` of which are HB domains. The data is
    cut into `len(roots)` chunks of one size; `roots[c]` is the domain where chunk c is reduced and
    from where it spreads along the tree that its hops form. `hops` holds the gather phase, by step.
    In the reduce phase, of as many steps, every hop goes the other way at step `steps - 1 - step`.

    `rounds[s]` is how often the busiest arc is filled in step s: 1 where nothing contends.
    `found_by` says which construction won where several compete.
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
        last_step = self.steps - 1
        return [Hop(last_step - hop.step, hop.chunk, hop.path[::-1]) for hop in reversed(self.hops)]


def schedule_of(
    board: Board,
    algorithm: str,
    hops: Iterable[Hop],
    *,
    roots: Iterable[int] | None = None,
    found_by: str = "",
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
        rounds=tuple(
            max(-(-n // board.links[arc]) for arc, n in load.items()) for load in arc_loads(ordered)
        ),
    )


def arc_loads(hops: Iterable[Hop]) -> list[dict[Arc, int]]:
    """Chunks on every arc in use, step by step."""
    loads: list[dict[Arc, int]] = []
    for step, _, path in hops:
        while len(loads) <= step:
            loads.append(defaultdict(int))
        load = loads[step]
        for arc in pairwise(path):
            load[arc] += 1
    assert all(loads), "a step in which nothing is sent"
    return loads


def all_reduce_s(board: Board, schedule: Schedule, data_bytes: float, latency_s: float) -> float:
    """Both phases of an all-reduce (s).

    A step lasts its start-up time and as long as its busiest link sends; the reduce phase mirrors
    the gather phase. With one rate and without contention this is 2 steps (D/N / rate + latency).

    .. math:: T
        = 2 \\sum_s \\left( \\alpha + \\max_l \\lceil n_{ls} / k_l \\rceil
        \\frac{D / C}{r_l} \\right)

    Parameters
    ----------
    data_bytes
        D: what every domain contributes and gets (bytes).
    latency_s
        alpha: start-up time of a step (s).
    """
    chunk_bits = 8 * data_bytes / len(schedule.roots)
    return 2 * math.fsum(
        latency_s
        + max(
            -(-n // board.links[arc]) * chunk_bits / (1e9 * board.gbit_s[arc])
            for arc, n in load.items()
        )
        for load in arc_loads(schedule.hops)
    )


def schedule_json(board: Board, schedule: Schedule) -> str:
    """One JSON document, a send a line: step, chunk, and the vertices it passes from sender to
    receiver.

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
