"""How long a schedule takes."""

from __future__ import annotations

import math

from coopt.network.schedules.board import Board
from coopt.network.schedules.schedule_form import Schedule, loads


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
        for load in loads(schedule.hops)
    )
