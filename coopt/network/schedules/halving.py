"""Exchanges with partners that are powers of two away."""

from __future__ import annotations

from collections.abc import Sequence

from coopt.instance.errors import InstanceError
from coopt.network.schedules.board import Board
from coopt.network.schedules.routing import spread_paths
from coopt.network.schedules.schedule_form import Hop, Schedule, schedule_of


def halving_doubling_schedule(board: Board) -> Schedule:
    """log2 N steps a phase; in step s of the gather phase a domain sends all its 2^s chunks to its partner.

    Partners move away from distance 1 or come closer from N/2; the order that loads the links less is taken. Where
    partners are not neighbours, ways share links and a step takes as long as its busiest link.

    Raises
    ------
    InstanceError
        When the number of domains is no power of two.
    """
    n = board.domains
    if n & (n - 1):
        raise InstanceError(f"{board.name}: algorithm halving-doubling on {n} domains, needs a power of two")
    bits = range(n.bit_length() - 1)
    return min((_doubled(board, order) for order in (bits, bits[::-1])), key=lambda found: found.work)


def _doubled(board: Board, order: Sequence[int]) -> Schedule:
    n = board.domains
    hops = []
    held = [[rank] for rank in range(n)]
    for step, bit in enumerate(order):
        paths = spread_paths(board, [(rank, rank ^ 1 << bit) for rank in range(n)])
        hops += [Hop(step, chunk, path) for (rank, _), path in paths.items() for chunk in held[rank]]
        held = [held[rank] + held[rank ^ 1 << bit] for rank in range(n)]
    return schedule_of(board, "halving-doubling", hops)
