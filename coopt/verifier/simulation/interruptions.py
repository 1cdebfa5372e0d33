"""A training run event by event: failures, lost work, restarts, domains under repair and those that stand by.

It draws what closed forms add up, so that neither can be wrong alone. A failure at any moment, in a checkpoint or a
restart as well, sets training back to the last checkpoint. A lost domain is replaced by one that stands by; where none
does, training waits until one is repaired. While it waits, other domains may be lost and nothing else fails.
"""

from __future__ import annotations

import math
import random
from typing import NamedTuple


class RunTerms(NamedTuple):
    """What a run is made of.

    Failures in a second, those that take a domain away among them; seconds between checkpoints, of a checkpoint and of
    a restart; losses of each domain in a second and seconds of a repair; domains that train, and that stand by.
    """

    per_s: float
    interval_s: float
    checkpoint_s: float
    restart_s: float
    domain_per_s: float = 0.0
    repair_s: float = 1.0
    domains: int = 0
    spares: int = 0


def run_s(terms: RunTerms, work_s: float, draw: random.Random) -> float:
    """How long it takes once to train `work_s` seconds (s); from the start all domains are whole."""
    clock = ready_s = done_s = 0.0
    down, every = 0, terms.domains + terms.spares
    others = terms.per_s - terms.domains * terms.domain_per_s
    while True:
        enough = down <= terms.spares
        fails, lost, repaired = others * enough, (every - down) * terms.domain_per_s, down / terms.repair_s
        total = fails + lost + repaired
        step_s = draw.expovariate(total) if total > 0 else math.inf
        if enough and clock + step_s >= (end_s := ready_s + _span_s(terms, work_s - done_s)):
            return end_s
        clock += step_s
        event = draw.random() * total
        if event < repaired:
            down -= 1
            ready_s = ready_s if enough or down > terms.spares else clock + terms.restart_s
            continue
        is_domain = event < repaired + lost
        stops = enough and (not is_domain or draw.random() * (every - down) < terms.domains)
        down += is_domain
        if stops:
            done_s += max(math.floor((clock - ready_s) / (terms.interval_s + terms.checkpoint_s)), 0) * terms.interval_s
            ready_s = clock + terms.restart_s


def _span_s(terms: RunTerms, work_s: float) -> float:
    """Training without a failure, with a checkpoint after each interval (s)."""
    return work_s + max(math.ceil(work_s / terms.interval_s - 1e-9), 0) * terms.checkpoint_s
