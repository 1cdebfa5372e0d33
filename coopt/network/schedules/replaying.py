"""Doubt a schedule: carry it out on the graph, step by step, and name everything that does not hold.

Nothing here is shared with the builders but the form of a schedule; links are looked up in the graph itself.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import networkx as nx

from coopt.network.schedules.schedule_form import Hop, Schedule

SHOWN = 20  # faults at most: one wrong hop early on makes many later ones


def replay(graph: nx.Graph, schedule: Schedule) -> tuple[str, ...]:
    """What is wrong with a schedule, each fault with phase, step and link; nothing where it holds.

    Both phases are carried out: a domain sends in a step only what it held before the step, in the reduce phase every
    contribution reaches the root of its chunk exactly once, in the gather phase every domain gets every chunk exactly
    once, and no arc carries more than `rounds` times its links in a step.
    """
    names = schedule.names
    phases = (("reduce", schedule.reduction(), schedule.rounds[::-1]), ("gather", schedule.hops, schedule.rounds))
    faults: list[str] = [*_form(graph, schedule)]
    if not faults:
        for phase, hops, rounds in phases:
            faults += (f"{phase} {fault}" for fault in _crowded(graph, names, hops, rounds))
        faults += (f"reduce {fault}" for fault in _reduced(names, schedule))
        faults += (f"gather {fault}" for fault in _gathered(names, schedule))
    return tuple(faults[:SHOWN])


def _form(graph: nx.Graph, schedule: Schedule) -> Iterator[str]:
    """Name steps, chunks, domains and links that do not exist."""
    names, domains = schedule.names, schedule.domains
    there = {node for node, kind in graph.nodes(data="kind") if kind == "domain"}
    if set(names[:domains]) != there or domains != len(there):
        yield f"schedule: its {domains} domains are not the {len(there)} of the graph"
        return
    if any(not 0 <= root < domains for root in schedule.roots):
        yield "schedule: a chunk has its root outside the domains"
    for hop in schedule.hops:
        if not 0 <= hop.step < schedule.steps or not 0 <= hop.chunk < len(schedule.roots):
            yield f"step {hop.step}: chunk {hop.chunk}: no such step or chunk"
        elif not all(0 <= vertex < len(names) for vertex in hop.path) or len(hop.path) < 2:
            yield f"step {hop.step}: chunk {hop.chunk}: no path is {hop.path}"
        elif max(hop.path[0], hop.path[-1]) >= domains:
            yield f"step {hop.step}: chunk {hop.chunk}: a path that does not join two domains"
        else:
            for one, other in pairwise(hop.path):
                if not graph.has_edge(names[one], names[other]):
                    yield f"step {hop.step}: chunk {hop.chunk}: no link {names[one]} -> {names[other]}"


def _crowded(graph: nx.Graph, names: Sequence[str], hops: Iterable[Hop], rounds: tuple[int, ...]) -> Iterator[str]:
    """Name arcs that carry more chunks than fit."""
    used: Counter[tuple[int, int, int]] = Counter(
        (hop.step, one, other) for hop in hops for one, other in pairwise(hop.path)
    )
    for (step, one, other), count in sorted(used.items()):
        links = graph.edges[names[one], names[other]]["links"]
        if count > links * rounds[step]:
            room = f"{links * rounds[step]} fit" + (f" in {rounds[step]} rounds" if rounds[step] > 1 else "")
            yield f"step {step}: link {names[one]} -> {names[other]} carries {count} chunks, {room}"


def _by_step(hops: Iterable[Hop]) -> list[tuple[int, list[Hop]]]:
    found: dict[int, list[Hop]] = defaultdict(list)
    for hop in hops:
        found[hop.step].append(hop)
    return sorted(found.items())


def _reduced(names: Sequence[str], schedule: Schedule) -> Iterator[str]:
    """Contributions as bits: what arrives must be new, since a sender keeps its partial sum in memory."""
    chunks = range(len(schedule.roots))
    partial = [[1 << domain for _ in chunks] for domain in range(schedule.domains)]
    for step, hops in _by_step(schedule.reduction()):
        leaving = [(hop, partial[hop.path[0]][hop.chunk]) for hop in hops]
        for hop, sent in leaving:
            twice = partial[hop.path[-1]][hop.chunk] & sent
            if twice:
                link = f"step {step}: link {names[hop.path[0]]} -> {names[hop.path[-1]]}: chunk {hop.chunk}"
                yield f"{link}: the contribution of {_first(names, twice)} counts twice"
            partial[hop.path[-1]][hop.chunk] |= sent
    everyone = (1 << schedule.domains) - 1
    for chunk, root in enumerate(schedule.roots):
        absent = everyone & ~partial[root][chunk]
        if absent:
            yield f"end: chunk {chunk} at {names[root]} lacks the contribution of {_first(names, absent)}"


def _first(names: Sequence[str], bits: int) -> str:
    """The domain of the lowest bit."""
    return names[(bits & -bits).bit_length() - 1]


def _gathered(names: Sequence[str], schedule: Schedule) -> Iterator[str]:
    """Follow who holds which chunk, and name sends that cannot be or are not needed."""
    holds = [{root} for root in schedule.roots]
    for step, hops in _by_step(schedule.hops):
        before = {hop: hop.path[0] in holds[hop.chunk] for hop in hops}
        for hop in hops:
            link = f"step {step}: link {names[hop.path[0]]} -> {names[hop.path[-1]]}: chunk {hop.chunk}"
            if not before[hop]:
                yield f"{link}: the sender does not hold it"
            if hop.path[-1] in holds[hop.chunk]:
                yield f"{link}: the receiver holds it already"
            holds[hop.chunk].add(hop.path[-1])
    for chunk, holders in enumerate(holds):
        if len(holders) < schedule.domains:
            first = next(domain for domain in range(schedule.domains) if domain not in holders)
            yield f"end: chunk {chunk} never reaches {names[first]}"
