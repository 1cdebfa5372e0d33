"""N trees that do not contend: several constructions, the shortest counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from coopt.network.schedules.board import (
    Arc,
    Board,
    Path,
    free_bound,
    free_path,
    step_bound,
    take_links,
)
from coopt.network.schedules.schedule_form import Hop, Schedule, schedule_of
from coopt.network.schedules.textbook import ring_schedule
from coopt.network.schedules.translates import translates_schedule

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

TIES = 8.0
"""Weight of chance against rarity, in holders. A pure count of holders floods rings of equally rare
chunks; found on tori and meshes of 9 to 256 domains.
"""
WORK = 300_000_000
"""Chunk choices that restarts may look at; some seconds."""
MOST_TRIES = 64
FREE_TRIES = 8


def trees_in_turn(board: Board) -> Schedule:
    """One tree for each domain; in every step the trees take turns, one attachment each, until no
    free link helps.

    A tree grows from the member that joined first among those that joined before this step. Behind
    switches, the path takes a link of every arc on it.
    """
    grown = _Growth(board)
    step = 0
    while grown.grow(step):
        step += 1
    return schedule_of(board, "multitree", grown.hops, found_by="trees grown in turn")


class _Growth:
    """Members of every tree, and the hops so far."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.join_order = [[root] for root in range(board.domains)]
        self.members = [{root} for root in range(board.domains)]
        self.hops: list[Hop] = []

    def grow(self, step: int) -> bool:
        """Fill one step; False when every tree is complete."""
        links_left = dict(self.board.links)
        ports = [self.board.ports(domain) for domain in range(self.board.domains)]
        # Members that join in this step hold nothing to send before the next one.
        parents_of = [list(members_so_far) for members_so_far in self.join_order]
        growing = [
            root for root, members in enumerate(self.members) if len(members) < self.board.domains
        ]
        if not growing:
            return False
        while growing:
            still = []
            for root in growing:
                path = self._attachment(root, parents_of[root], links_left, ports)
                if path is None:
                    continue  # links only get fewer: this tree is done for the step
                take_links(links_left, path)
                ports[path[0]] -= 1
                self.join_order[root].append(path[-1])
                self.members[root].add(path[-1])
                self.hops.append(Hop(step, root, path))
                still.append(root)
            growing = still
        return True

    def _attachment(
        self, root: int, parents: list[int], links_left: dict[Arc, int], ports: list[int]
    ) -> Path | None:
        """The way to one more member."""
        members, neighbours, domains = self.members[root], self.board.neighbours, self.board.domains
        for parent in parents:
            if not ports[parent]:
                continue
            if self.board.direct:
                for child in neighbours[parent]:
                    if child not in members and links_left[parent, child] > 0:
                        return parent, child
                continue
            path = free_path(
                self.board, parent, lambda end: end < domains and end not in members, links_left
            )
            if path is not None:
                return path
        return None


def rarest_first(board: Board, seed: int, *, roots: Sequence[int] | None = None) -> Schedule:
    """Steps filled one after the other, for direct fabrics.

    In a step, a domain chooses for each link into it a chunk it lacks and the sender held before
    the step, no chunk twice. Links with fewest choices choose first, and take the chunk with fewest
    holders, with noise. Choices of different domains do not touch each other, since every link
    belongs to one receiver. Each domain gets each chunk once, so that the hops of a chunk form a
    tree.

    Parameters
    ----------
    roots
        Domain of each chunk; each domain its own when left out.
    """
    assert board.direct, "links behind switches are shared between receivers"
    chance = np.random.default_rng(seed)
    start = np.arange(board.domains) if roots is None else np.asarray(roots, dtype=np.int64)
    holds = np.zeros((board.domains, len(start)), dtype=bool)
    holds[start, np.arange(len(start))] = True
    senders = _senders(board)
    hops: list[Hop] = []
    step = 0
    while not holds.all():
        receiver, sender, chunk = _filled(holds, senders, chance)
        sends = zip(chunk.tolist(), sender.tolist(), receiver.tolist(), strict=True)
        hops += [Hop(step, c, (tail, head)) for c, tail, head in sends]
        holds[receiver, chunk] = True
        step += 1
    return schedule_of(
        board, "multitree", hops, roots=start.tolist(), found_by="sending the rarest chunk first"
    )


def _senders(board: Board) -> Ints:
    """Neighbours of each domain, once for each link; rows are filled up with the domain itself,
    which has no news.
    """
    rows = [
        [
            neighbour
            for neighbour in board.neighbours[domain]
            for _ in range(min(board.links[neighbour, domain], board.domains))
        ]
        for domain in range(board.domains)
    ]
    width = max(map(len, rows))
    return np.array(
        [row + [domain] * (width - len(row)) for domain, row in enumerate(rows)], dtype=np.int64
    )


def _filled(holds: Bools, senders: Ints, chance: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Receivers, senders and chunks of one step."""
    domains, width = senders.shape
    lacks = ~holds
    # Noise on top of rarity spreads choices: without it all receivers take the same chunk of
    # equally rare ones.
    rarity = TIES * chance.random(holds.shape, dtype=np.float32) - holds.sum(
        axis=0, dtype=np.float32
    )
    choices = np.stack([(holds[senders[:, k]] & lacks).sum(axis=1) for k in range(width)], axis=1)
    # Counts are whole, so that noise below 1 only breaks ties.
    order = np.argsort(choices + 0.5 * chance.random(choices.shape), axis=1)
    rows = np.arange(domains)
    parts = []
    for k in range(width):
        sender = senders[rows, order[:, k]]
        is_news = holds[sender] & lacks
        chunk = np.where(is_news, rarity, -np.inf).argmax(axis=1)
        good = is_news[rows, chunk]
        lacks[rows[good], chunk[good]] = False
        parts.append((rows[good], sender[good], chunk[good]))
    receiver, sender, chunk = (np.concatenate(part) for part in zip(*parts, strict=True))
    return receiver, sender, chunk


def multitree(board: Board, seed: int = 0) -> Schedule:
    """A contention-free schedule with one tree for each domain, in as few steps as were found.

    Constructions are tried in turn until one meets the lower bound: one tree moved to every root
    (fabrics that look alike from every domain), rarest chunk first with restarts (direct fabrics),
    trees grown in turn, and the ring.
    """
    min_steps = step_bound(board).steps
    shortest: Schedule | None = None
    for candidate in _constructions(board, seed, min_steps):
        if shortest is None or candidate.steps < shortest.steps:
            shortest = candidate
        if shortest.steps == min_steps:
            break
    assert shortest is not None
    return shortest


def free_multitree(board: Board, seed: int = 0) -> Schedule:
    """A schedule as of `multitree`, in which domains with few links may reduce more chunks than
    others.

    A corner of a mesh sends and receives less the more chunks it is the root of. For all-reduce
    alone: a reduce-scatter of this form leaves shards of different sizes. Root counts are those a
    number of steps asks for, N - p s of a domain with p links, and the rest spread evenly; some
    numbers of steps from the lower bound up are tried.
    """
    shortest = multitree(board, seed)
    if not board.direct:
        return shortest
    min_steps = free_bound(board).steps
    for steps in range(
        min_steps, shortest.steps, max(1, (shortest.steps - min_steps) // FREE_TRIES)
    ):
        if steps < shortest.steps:
            candidate = rarest_first(board, seed, roots=_roots(board, steps))
            shortest = min(shortest, candidate, key=lambda schedule: schedule.steps)
    return shortest


def _constructions(board: Board, seed: int, fewest: int) -> Iterator[Schedule]:
    moved = translates_schedule(board, seed)
    if moved is not None:
        yield moved
    if board.direct:
        for attempt in range(_tries(board, fewest)):
            yield rarest_first(board, seed + attempt)
    yield trees_in_turn(board)
    yield ring_schedule(board)


def _tries(board: Board, steps: int) -> int:
    """Restarts that fit into the work allowed, at least 2."""
    looks = len(board.links) * board.domains * steps
    return max(2, min(MOST_TRIES, WORK // looks))


def _roots(board: Board, steps: int) -> list[int]:
    """The domain of each chunk: what `steps` asks of each, the rest one by one to whoever receives
    most a link.
    """
    n = board.domains
    ports = [board.ports(domain) for domain in range(n)]
    counts = [max(0, n - p * steps) for p in ports]
    for _ in range(n - sum(counts)):
        counts[max(range(n), key=lambda v: ((n - counts[v]) / ports[v], -v))] += 1
    return [domain for domain in range(n) for _ in range(counts[domain])]
