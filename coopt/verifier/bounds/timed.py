"""Objectives that weigh a bill by the time of training: their value, and every design that would be
worth less.

Designs that train in time with their interruptions are found by every number of uplinks of every
chain.

Neither time nor goodput decides alone, so that nothing is halved: each number of uplinks that is
cheap enough is timed, and gets the fewest spare domains with which all workloads are in time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from coopt.instance.question import BILLED, ObjectiveKind
from coopt.instance.reserves import Availability
from coopt.instance.schema import Instance
from coopt.instance.texts import both
from coopt.instance.workload import Workload
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import STRICT, TOLERANCE, Ledger
from coopt.verifier.parts.bills import (
    BillTotal,
    SwitchLevel,
    bill,
    bill_total,
    within_limits,
)
from coopt.verifier.parts.enumeration import (
    SURELY,
    FoundDesign,
    design_chains,
)
from coopt.verifier.parts.outages import ALL_PORTS, outages_of, pace_of
from coopt.verifier.parts.part_checks import CountedPart, check_worth
from coopt.verifier.parts.space import DesignFamily, spare_choices
from coopt.verifier.parts.spans import reach_of
from coopt.verifier.parts.stages import GrowthStage
from coopt.verifier.parts.timings import Trainer
from coopt.verifier.parts.uptime import halved, running_of, uptime_of

SECONDS_PER_YEAR, JOULES_PER_KWH = 31_536_000.0, 3_600_000.0


def worth(instance: Instance, kind: ObjectiveKind, sums: BillTotal, calendar_s: float) -> float:
    """The objective (s, USD a token, kg) of a bill and of an iteration with its share of
    interruptions.
    """
    objective, workload = instance.objective, instance.workload[0]
    if kind == "time" or math.isinf(calendar_s):
        return calendar_s
    if kind == "usd_per_token":
        batch, critical = workload.tokens_per_iteration, workload.critical_batch_tokens
        worth_of_batch = batch if critical is None else batch * critical / (critical + batch)
        return sums.tco_usd * calendar_s / (objective.years * SECONDS_PER_YEAR * worth_of_batch)
    kwh = sums.power_w * objective.pue * calendar_s * workload.iterations / JOULES_PER_KWH
    return kwh * (objective.kg_co2_per_kwh or 0.0)


def check_timed(ledger: Ledger, instance: Instance, plan: Plan) -> bool:
    """Whether the objective of a plan is a sum of its bill, or one of those that this question may
    ask for.
    """
    kind = plan.objective.kind
    terms = {
        "one workload on one network": not instance.beyond_one_network
        and len(instance.workload) == 1,
        "objective.years above 0": kind != "usd_per_token" or instance.objective.years > 0,
        "objective.kg_co2_per_kwh and train_tokens": (
            kind != "carbon"
            or (
                instance.objective.kg_co2_per_kwh is not None
                and instance.workload[0].train_tokens is not None
            )
        ),
        "a plan without runners-up": not plan.alternatives and not plan.alternatives_stop,
    }
    unmet = tuple(name for name, is_given in terms.items() if not is_given)
    if kind != BILLED[kind]:
        return ledger.holds(
            "timed-objective",
            not unmet,
            kind,
            unmet,
            f"An objective of {kind} needs {both(unmet)}.",
        )
    return True


def check_timed_value(
    ledger: Ledger, instance: Instance, plan: Plan, part: CountedPart, sums: BillTotal
) -> None:
    """Check that the value is that of the recomputed bill and the time that the plan tells, which
    is checked itself.
    """
    availability, gpu, family = instance.availability, instance.cluster.gpu, part.family
    for run in part.runs:
        network = family, reach_of(family, part.ports), part.levels
        pace = pace_of(availability, run, *network, gpu) if availability else 1.0
        mean_s = run.claim.iteration_time_s / pace if pace else math.inf
        calendar_s = on_calendar_s(instance, run.workload, family, part.levels, mean_s)
        check_worth(ledger, plan, worth(instance, plan.objective.kind, sums, calendar_s))


def on_calendar_s(
    instance: Instance,
    workload: Workload,
    family: DesignFamily,
    switch_levels: Sequence[SwitchLevel],
    iteration_s: float,
) -> float:
    """What an iteration takes with its share of interruptions, where days are bound (s): those in
    which it is done.

    Without them it takes `iteration_s` on average.
    """
    availability = instance.availability
    mean_s = _mean_s(instance, workload, family, switch_levels, iteration_s)
    if availability is None or availability.confidence is None:
        return mean_s
    if not workload.calendar or math.isinf(mean_s):
        return mean_s

    # what is promised takes no less than the mean; doubled until it is kept, then halved
    def is_late(calendar_s: float) -> bool:
        terms = availability, workload, family, switch_levels, iteration_s
        return not _done(*terms, calendar_s)

    high = mean_s
    while is_late(high):
        high *= 2
    return halved(mean_s, high, is_late)[1]


def _mean_s(
    instance: Instance,
    workload: Workload,
    family: DesignFamily,
    switch_levels: Sequence[SwitchLevel],
    iteration_s: float,
) -> float:
    """The same on average."""
    if instance.availability is None or not workload.calendar:
        return iteration_s
    goodput = uptime_of(instance.availability, workload, family, switch_levels).goodput
    return iteration_s / goodput if goodput > TOLERANCE else math.inf


def _done(
    availability: Availability,
    workload: Workload,
    family: DesignFamily,
    switch_levels: Sequence[SwitchLevel],
    iteration_s: float,
    calendar_s: float,
) -> bool:
    """Whether iterations of that time keep the days that iterations of `calendar_s` make, as surely
    as is asked.
    """
    days = (workload.train_days or 0.0) * calendar_s / workload.bound_s
    moved = workload.model_copy(update={"train_days": days})
    return (
        iteration_s <= calendar_s * uptime_of(availability, moved, family, switch_levels).promised
    )


def timed_designs(
    instance: Instance, kind: ObjectiveKind, bound: float, margin: float = STRICT
) -> Iterator[FoundDesign]:
    """Every design within bounds and limits that is worth less than `bound` by more than rounding
    of times.
    """
    availability, trainer, workload = (
        instance.availability,
        Trainer(instance, margin),
        instance.workload[0],
    )
    ceiling = bound * (1 - TOLERANCE) if math.isfinite(bound) else bound

    def found(row: GrowthStage) -> Iterator[FoundDesign]:
        for up in row.uplinks:
            switch_levels = row.by_tier.levels(up)
            least_s = math.inf
            for spares in spare_choices(availability, row.family.spares):
                family = row.family._replace(spares=spares)
                sums = bill_total(
                    bill(instance, family, row.levels(up), row.optics), instance.objective
                )
                # further spare domains cost and draw more
                if not within_limits(instance, family, sums, margin):
                    break
                # first, where the bill is least: worth rises with it and with the time
                if math.isinf(least_s):
                    below_s = _below_s(worth(instance, kind, sums, 1.0), ceiling)
                    fails = availability if workload.calendar else None
                    out = outages_of(fails, family, switch_levels) if fails else ALL_PORTS
                    least_s = trainer.least_s(row.family, row.reach(up), 0, below_s, out)
                if math.isinf(least_s):
                    break
                terms = instance, workload, family, switch_levels, least_s
                mean_s = _mean_s(*terms)
                if mean_s <= trainer.bound_s(0) and worth(instance, kind, sums, mean_s) < ceiling:
                    taken_s = on_calendar_s(*terms)
                    value = worth(instance, kind, sums, taken_s)
                    if taken_s <= trainer.bound_s(0) and value < ceiling:
                        yield FoundDesign(value, family, row.with_up(up), row.optics)
                if availability and running_of(availability, family) >= SURELY:
                    break

    def answers(row: GrowthStage) -> Sequence[int]:
        return list(dict.fromkeys(design.ports.up for design in found(row)))

    for row in design_chains(instance, BILLED[kind], answers=answers):
        yield from found(row)


def _below_s(worth_of_a_second: float, ceiling: float) -> float:
    """Iterations of this or more are worth no less than a ceiling, rounding in their favour (s)."""
    return ceiling / worth_of_a_second * (1 + TOLERANCE) if worth_of_a_second > 0 else math.inf
