"""A training run event by event: failures, lost work, restarts, domains under repair and those that
stand by.

It draws what closed forms add up, so that neither can be wrong alone. A failure at any moment, in a
checkpoint or a restart as well, sets training back to the last checkpoint. A lost domain is
replaced by one that stands by; where none does, training waits until one is repaired. While it
waits, other domains may be lost and nothing else fails. Ports of NICs that are out slow each run by
as much as on average.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

from coopt.instance.hardware import Gpu
from coopt.instance.reserves import Availability
from coopt.instance.workload import Workload
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.parts.bills import SwitchLevel
from coopt.verifier.parts.outages import DAY_S, HOUR_S, pace_of
from coopt.verifier.parts.part_checks import CountedPart
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.spans import reach_of
from coopt.verifier.parts.uptime import interrupted, lost_of


class RunTerms(NamedTuple):
    """What a run is made of.

    Failures in a second, those that take a domain away among them; seconds between checkpoints, of
    a checkpoint and of a restart; losses of each domain in a second and seconds of a repair;
    domains that train, and that stand by. Where several domains share a host, one failure takes
    `taken` of them on average.
    """

    per_s: float
    interval_s: float
    checkpoint_s: float
    restart_s: float
    domain_per_s: float = 0.0
    repair_s: float = 1.0
    domains: int = 0
    spares: int = 0
    taken: float = 1.0


def run_s(terms: RunTerms, work_s: float, draw: random.Random) -> float:
    """How long it takes once to train `work_s` seconds (s); from the start all domains are
    whole.
    """
    clock = ready_s = done_s = 0.0
    down, domains = 0, terms.domains + terms.spares
    other_per_s = terms.per_s - terms.domains * terms.domain_per_s / terms.taken
    while True:
        trains = down <= terms.spares
        fails, losses, repaired = (
            other_per_s * trains,
            (domains - down) * terms.domain_per_s / terms.taken,
            down / terms.repair_s,
        )
        total = fails + losses + repaired
        step_s = draw.expovariate(total) if total > 0 else math.inf
        if trains and clock + step_s >= (end_s := ready_s + _span_s(terms, work_s - done_s)):
            return end_s
        clock += step_s
        event = draw.random() * total
        if event < repaired:
            down -= 1
            ready_s = ready_s if trains or down > terms.spares else clock + terms.restart_s
            continue
        is_domain = event < repaired + losses
        # one that stands by may be lost as well, which stops nothing
        stops = trains and (not is_domain or draw.random() * (domains - down) < terms.domains)
        if is_domain:
            down = min(down + math.floor(terms.taken + draw.random()), domains)
        if stops:
            done_s += (
                max(math.floor((clock - ready_s) / (terms.interval_s + terms.checkpoint_s)), 0)
                * terms.interval_s
            )
            ready_s = clock + terms.restart_s


def _span_s(terms: RunTerms, work_s: float) -> float:
    """Training without a failure, with a checkpoint after each interval (s)."""
    # less rounding: training that ends with an interval has as many checkpoints as intervals
    return work_s + max(math.ceil(work_s / terms.interval_s - 1e-9), 0) * terms.checkpoint_s


NO_CHECKPOINTS_S = 1e300  # between them: none falls into any run, and its product with 0 is 0
MOST_EVENTS, FEWEST_RUNS, MOST_RUNS = 1_000_000, 50, 400
DEVIATIONS = 4.0  # of a share of drawn runs, within which it is as good as promised
# how far laws of many and of few failures may be from a normal law
MANY_FAILURES, SKEW, ROUGH_SKEW = (
    25,
    0.03,
    0.12,
)


def check_promises(ledger: Ledger, availability: Availability, part: CountedPart, gpu: Gpu) -> None:
    """Check by drawing runs that days are kept as often as promised, where a probability is asked
    for.
    """
    for run in part.runs:
        workload, confidence = run.workload, availability.confidence
        if confidence is None or workload.train_days is None or workload.train_tokens is None:
            continue
        terms = terms_of(availability, workload, part.family, part.levels)
        pace = pace_of(
            availability, run, part.family, reach_of(part.family, part.ports), part.levels, gpu
        )
        if pace == 0.0:
            continue  # no run ever ends, and no bound on days is met
        work_s = workload.iterations * run.claim.iteration_time_s / pace
        span_s, draw = workload.train_days * DAY_S, random.Random(0)
        # a loss and its repair are two
        events = max(work_s * terms.per_s * 2, 1.0)
        count = min(max(int(MOST_EVENTS / events), FEWEST_RUNS), MOST_RUNS)
        kept_share = sum(run_s(terms, work_s, draw) <= span_s for _ in range(count)) / count
        skew = SKEW if work_s * terms.per_s >= MANY_FAILURES else ROUGH_SKEW
        doubt = DEVIATIONS * math.sqrt(confidence * (1 - confidence) / count) + skew
        runs_text = (
            f"Of {count} simulated runs of {workload.name!r}, {kept_share:.1%} finish in time"
        )
        ledger.holds(
            "promise",
            kept_share >= confidence - doubt,
            confidence,
            kept_share,
            f"{runs_text}, but {100 * confidence:.6g}% are promised.",
            doubt,
        )


def terms_of(
    availability: Availability,
    workload: Workload,
    family: DesignFamily,
    levels: Sequence[SwitchLevel],
) -> RunTerms:
    """What a run of a workload on a design is made of."""
    interruptions = interrupted(availability, workload, family, levels)
    lost_share = lost_of(availability, family)
    repair_s = availability.repair_hours * HOUR_S
    loss_per_s = lost_share / (1 - lost_share) / repair_s if repair_s and lost_share < 1 else 0.0
    taken = 1.0
    if loss_per_s and interruptions.per_s:
        # more losses than failures: a host that domains share takes several, and beyond that one
        # that is out stays out for longer than a repair, as more of it fails in the meantime
        excess = max(family.domains * loss_per_s / interruptions.per_s, 1.0)
        taken = min(excess, max(availability.rates.gpus_per_host / family.hb.size, 1.0))
        loss_per_s, repair_s = loss_per_s * taken / excess, repair_s * excess / taken
    return RunTerms(
        per_s=interruptions.per_s,
        interval_s=min(interruptions.interval_s, NO_CHECKPOINTS_S),
        checkpoint_s=interruptions.checkpoint_s,
        restart_s=interruptions.restart_s,
        domain_per_s=loss_per_s,
        repair_s=repair_s or 1.0,
        domains=family.domains,
        spares=family.spares,
        taken=taken,
    )
