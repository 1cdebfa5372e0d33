"""Designs that train in time with their interruptions, by going through every number of uplinks of every chain.

Neither time nor goodput decides alone, so that nothing is halved: each number of uplinks that is cheap enough is timed,
and gets the fewest spare domains with which all workloads are in time.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from coopt.instance.availability import Availability
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.verifier.checks.verdict import STRICT, below
from coopt.verifier.parts.bills import bill, bill_total, within_limits
from coopt.verifier.parts.enumeration import DesignChain, FoundDesign, Trainer, design_chains
from coopt.verifier.parts.layouts import SwitchLevel, levels
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.parts.spans import reach_of
from coopt.verifier.parts.uptime import interrupted, lost_domain, running_share, uptime_of

SURELY = 1 - 1e-12  # where domains enough are whole for so much of the time, further spares change nothing


def interrupted_designs(
    instance: Instance, kind: ObjectiveKind, bound: float, short: float = STRICT
) -> Iterator[FoundDesign]:
    """Every design worth less than `bound` that is in time with its interruptions; `short` is that of `Trainer`."""
    asked, trainer = instance.availability, Trainer(instance, short)
    assert asked is not None, "asked for with failures only"
    for row in design_chains(instance, kind):
        for up in row.chain.uplinks:
            counted = levels(row.family, row.chain.with_up(up))
            if not below(_value(instance, kind, row, row.family, counted), bound):
                continue
            family = in_time(instance, asked, trainer, row, up, counted)
            if family is None:
                continue
            value = _value(instance, kind, row, family, counted)
            sums = bill_total(bill(instance, family, counted, row.optics), instance.objective)
            if below(value, bound) and within_limits(instance, family, sums, short):
                yield FoundDesign(value, family, row.chain.with_up(up), row.optics)


def cheapest_interrupted(
    instance: Instance, kind: ObjectiveKind, bound: float, short: float = STRICT
) -> FoundDesign | None:
    """The cheapest of them; None where there is none."""
    return min(interrupted_designs(instance, kind, bound, short), key=lambda one: one.value, default=None)


def in_time(
    instance: Instance, asked: Availability, trainer: Trainer, row: DesignChain, up: int, counted: Sequence[SwitchLevel]
) -> DesignFamily | None:
    """The family with the fewest spare domains with which all workloads are in time; None where no number does."""
    reach, needed = reach_of(row.family, row.chain.with_up(up)), 0.0
    for index, workload in enumerate(instance.workload):
        share = trainer.least_s(row.family, reach, index) / trainer.bound_s(index)
        if share > 1.0:
            return None
        if workload.calendar:
            trained = interrupted(asked, workload, row.family, counted).trained
            needed = max(needed, share / trained if trained else math.inf)
    per_gpu = row.family.gear.per_gpu if row.family.gear else 0
    lost = lost_domain(asked, row.family.hb.size, row.family.active, per_gpu)
    offered = asked.spares
    at = bisect_left(offered, True, key=lambda spares: running_share(lost, row.family.domains, spares) >= needed)
    for spares in offered[at:] if needed <= 1.0 else ():
        family = row.family._replace(spares=spares)
        running = running_share(lost, family.domains, spares)
        if asked.confidence is None or all(
            trainer.least_s(family, reach, index)
            <= trainer.bound_s(index) * uptime_of(asked, workload, family, counted).promised
            for index, workload in enumerate(instance.workload)
            if workload.calendar
        ):
            return family
        if running >= SURELY:
            return None
    return None


def _value(
    instance: Instance, kind: ObjectiveKind, row: DesignChain, family: DesignFamily, counted: Sequence[SwitchLevel]
) -> float:
    return bill_total(bill(instance, family, counted, row.optics), instance.objective).of(kind)
