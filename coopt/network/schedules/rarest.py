"""Every domain fetches, over each of its links, the chunk that fewest others hold: no link idles that could help."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from coopt.network.schedules.board import Board
from coopt.network.schedules.schedule_form import Hop, Schedule, schedule_of

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

TIES = 8.0
"""Weight of chance against rarity, in holders. A pure count of holders floods rings of equally rare chunks; found on
tori and meshes of 9 to 256 domains."""


def rarest_first(board: Board, seed: int, *, roots: Sequence[int] | None = None) -> Schedule:
    """Steps filled one after the other, for direct fabrics.

    In a step, a domain chooses for each link into it a chunk it lacks and the sender held before the step, no chunk
    twice. Links with fewest choices choose first, and take the chunk with fewest holders, with noise. Choices of
    different domains do not touch each other, since every link belongs to one receiver. Each domain gets each chunk
    once, so that the hops of a chunk form a tree.

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
        hops += [Hop(step, what, (here, there)) for what, here, there in sends]
        holds[receiver, chunk] = True
        step += 1
    return schedule_of(board, "multitree", hops, roots=start.tolist(), found_by="rarest chunk first")


def _senders(board: Board) -> Ints:
    """Neighbours of each domain, once for each link; rows are filled up with the domain itself, which has no news."""
    rows = [
        [other for other in board.near[own] for _ in range(min(board.links[other, own], board.domains))]
        for own in range(board.domains)
    ]
    width = max(map(len, rows))
    return np.array([row + [own] * (width - len(row)) for own, row in enumerate(rows)], dtype=np.int64)


def _filled(holds: Bools, senders: Ints, chance: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Receivers, senders and chunks of one step."""
    domains, width = senders.shape
    lacks = ~holds
    rarity = TIES * chance.random(holds.shape, dtype=np.float32) - holds.sum(axis=0, dtype=np.float32)
    choices = np.stack([(holds[senders[:, k]] & lacks).sum(axis=1) for k in range(width)], axis=1)
    order = np.argsort(choices + 0.5 * chance.random(choices.shape), axis=1)
    rows = np.arange(domains)
    found = []
    for k in range(width):
        sender = senders[rows, order[:, k]]
        open_ = holds[sender] & lacks
        chunk = np.where(open_, rarity, -np.inf).argmax(axis=1)
        good = open_[rows, chunk]
        lacks[rows[good], chunk[good]] = False
        found.append((rows[good], sender[good], chunk[good]))
    receiver, sender, chunk = (np.concatenate(part) for part in zip(*found, strict=True))
    return receiver, sender, chunk
