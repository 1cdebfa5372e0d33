"""Networks on which training is done in time with its interruptions: least spares, and what an
iteration may take.

A bound on days leaves an iteration less time the more often training is interrupted, and a network
with more uplinks has more optics and switches that fail. So what an iteration takes and what it may
take both fall with uplinks, and neither rules the other: every number of uplinks is looked at, and
those that are in time are the choices that are left. Domains that stand by cost something and
change nothing but how long training waits for repairs, so that each network has as few of them as
it takes. The search for the cheapest network then goes on as without failures (docs/days.md).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from coopt.columns.feasible import recalled, without_bound
from coopt.columns.grid import Context, context_of
from coopt.columns.pools import Pool, timely_pool
from coopt.columns.table import Columns
from coopt.columns.times import of_family, table_times_s, uplinks_by_context
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.reserves import Availability
from coopt.instance.schema import Instance, days_in_turn
from coopt.instance.workload import Workload
from coopt.network.family import Family, levels
from coopt.perf.mapping import Floats
from coopt.perf.uptime import (
    DAY_S,
    HOUR_S,
    NEVER,
    Interruptions,
    PartCounts,
    domain_lost,
    enough_domains,
    interruptions,
    promise,
    waiting_variance_s,
)
from coopt.plan.parts import Uptime, WorkloadPlan
from coopt.solving.arrays import fastest_row, pace_of, workload_plan

KEPT = 256  # islands with what trains on them that are kept for the next plan of a process
ROUNDED = (
    1.0 + 1e-12
)  # so much more has to run, so that products in another order still are in time


def part_counts(family: Family, uplinks: Any) -> PartCounts:
    """The parts of a network whose failure ends a run, at a number of uplinks or at each of an
    array.

    Where NICs keep ports on other leaves, what a link or a switch carried goes over these.
    """
    tiers = [levels(family, int(each)) for each in np.atleast_1d(uplinks)]
    ends_runs = not family.keeps_ports
    optics = [sum(2 * level.links for level in each) if ends_runs else 0 for each in tiers]
    switches = [sum(level.switches for level in each) if ends_runs else 0 for each in tiers]
    whole = np.ndim(uplinks) > 0
    return PartCounts(
        gpus=family.gpus,
        nics=family.gpus * family.bought_per_gpu // family.gpus_per_nic if family.tiers else 0,
        optics=np.array(optics) if whole else optics[0],
        switches=np.array(switches) if whole else switches[0],
        domains=family.domains,
    )


def family_domain_lost(availability: Availability, family: Family) -> float:
    """Probability that a domain of a family has too few working GPUs."""
    nics = family.bought_per_gpu if family.tiers else 0
    sharing = {"nics_per_gpu": nics, "gpus_per_nic": family.gpus_per_nic if family.tiers else 1}
    return domain_lost(availability, size=family.hb.size, active=family.active, **sharing)


def uptime_of(
    instance: Instance, family: Family, uplinks: int, workload: Workload, pace: float = 1.0
) -> Uptime | None:
    """What interrupts a workload on a network; None where the instance has no word on failures.

    Parameters
    ----------
    pace
        An iteration with all ports of NICs over what it takes on average.
    """
    availability = instance.availability
    if availability is None:
        return None
    stops = interruptions(availability, workload, part_counts(family, uplinks))
    running = enough_domains(
        family_domain_lost(availability, family), family.domains, family.spare_domains
    )
    waits_s = waiting(
        availability, family_domain_lost(availability, family), family.domains, family.spare_domains
    )
    return uptime_told(
        stops,
        running=running,
        pace=pace,
        port_out=sum(share for share, _ in family.slow_times),
        promised=float(promise(availability, workload, stops, running, waits_s)) * pace,
    )


def uptime_told(
    stops: Interruptions, *, running: float, pace: float, port_out: float, promised: float
) -> Uptime:
    """What a plan tells of its interruptions."""
    per_s, interval_s = float(stops.per_s), float(stops.interval_s)
    return Uptime(
        failure_s=1 / per_s if per_s else None,
        checkpoint_s=stops.checkpoint_s,
        interval_s=interval_s if np.isfinite(interval_s) else None,
        restart_s=stops.restart_s,
        running=running,
        goodput=running * float(stops.trained) * pace,
        promised=promised,
        port_out=port_out,
        pace=pace,
    )


def waiting(availability: Availability, loss: float, domains: int, spares: int) -> float:
    """How far the time with domains enough spreads (s); 0 where nobody asks."""
    return (
        0.0
        if availability.confidence is None
        else waiting_variance_s(loss, domains, spares, availability.repair_hours * HOUR_S)
    )


def allowed_s(
    instance: Instance,
    family: Family,
    uplinks: int,
    workload: Workload,
    run: WorkloadPlan | None = None,
) -> float:
    """What an iteration may take on a network: less than the bound where days are bound and
    training is interrupted.

    On average; with all ports of NICs where a run is given that says how much longer it takes on
    average.
    """
    if run and run.uptime and instance.availability is None:
        return run.bound_s  # of all sites together, which the plan says
    pace = run.uptime.pace if run and run.uptime else 1.0
    uptime = uptime_of(instance, family, uplinks, workload, pace) if workload.calendar else None
    return workload.bound_s if uptime is None else workload.bound_s * uptime.promised


def taken_share(
    availability: Availability,
    workload: Workload,
    stops: Interruptions,
    shares: Floats,
    running: float,
    waits_s: float,
) -> Floats:
    """What share of its days a workload takes, with those of its bound that iterations take without
    interruptions.
    """
    # NEVER keeps the division finite; the last line then says that what never trains takes forever
    mean = 1.0 / np.maximum(stops.trained * running, NEVER)
    days_share = mean * shares
    if availability.confidence is not None and workload.train_days is not None:
        spread = (stops.variance_s + waits_s * mean) * shares / (workload.train_days * DAY_S)
        days_share = days_share + availability.deviations / max(running, NEVER) * np.sqrt(spread)
    return np.asarray(np.where(stops.trained * running < NEVER, np.inf, days_share))


def run_on(
    instance: Instance, family: Family, uplinks: int, workload: Workload, pool: Pool, row: int
) -> WorkloadPlan:
    """One row of a pool, written out for a network with what interrupts it there."""
    context = context_of(family)
    run = workload_plan(pool, instance.cluster.gpu, context, uplinks, row)
    pace = pace_of(pool, context, uplinks, row)
    return with_uptime(run, workload, uptime_of(instance, family, uplinks, workload, pace))


def fastest_on(
    instance: Instance, family: Family, uplinks: int, workload: Workload
) -> WorkloadPlan:
    """The fastest mapping of a workload on its island, recomputed from what was decided; the same
    one at every bound of a kind, and kept for the next plan with that island.
    """
    gpu, context = instance.cluster.gpu.unpriced, context_of(family)
    runs = _known_runs(without_bound(workload), gpu, family.hb.unpriced, context)

    def fastest() -> tuple[WorkloadPlan, float, float]:
        pool = timely_pool(workload, gpu, family.hb.unpriced, context)
        row, time_s = fastest_row(pool, context, uplinks)
        run = workload_plan(pool, gpu, context, uplinks, row)
        return run, pace_of(pool, context, uplinks, row), time_s

    # only days count the time in which ports of NICs fail
    run, pace, time_s = recalled(runs, (uplinks, workload.calendar), fastest)
    assert time_s <= workload.bound_s, f"workload {workload.name!r} is late on its island"
    named = run.model_copy(update={"name": workload.name, "bound_s": workload.bound_s})
    return with_uptime(named, workload, uptime_of(instance, family, uplinks, workload, pace))


@lru_cache(maxsize=KEPT)
def _known_runs(
    workload: Workload, gpu: Gpu, hb: HbDomain, context: Context
) -> dict[tuple[int, bool], tuple[WorkloadPlan, float, float]]:
    """The fastest mappings of a workload on networks of a context that are known, by uplinks and by
    whether days are bounded, each with its pace and its mean seconds; callers add to them.
    """
    return {}


def with_uptime(run: WorkloadPlan, workload: Workload, uptime: Uptime | None) -> WorkloadPlan:
    """A run with what interrupts it, where failures count."""
    if uptime is None:
        return run
    bound_s = workload.bound_s * uptime.promised if workload.calendar else run.bound_s
    return run.model_copy(update={"uptime": uptime, "bound_s": bound_s})


@dataclass(frozen=True, kw_only=True)
class RunningShare:
    """What share of the time has to run, by number of uplinks, so that every workload is in time;
    above 1 for never.

    `bounded` are the workloads with days, each with its least times (s) and its interruptions by
    number of uplinks.
    """

    running: Floats
    bounded: tuple[tuple[Workload, Floats, Interruptions], ...]


def demand(
    instance: Instance,
    family: Family,
    uplinks: Sequence[int],
    timed: Iterable[tuple[Workload, Floats]],
) -> RunningShare:
    """The demand of one family at some numbers of uplinks, with every workload and its least times
    there (s), where failures count.
    """
    availability, choices = instance.availability, np.array(uplinks)
    assert availability is not None, "asked for with failures only"
    counts, share, bounded = part_counts(family, choices), np.zeros(len(choices)), []
    days_of_all = np.zeros(len(choices))
    for workload, seconds in timed:
        need = seconds / workload.bound_s
        if workload.calendar:
            broken = interruptions(availability, workload, counts)
            # infinite, and so never in time, where interruptions leave no time to train
            need = np.divide(
                need, broken.trained, out=np.full(len(choices), np.inf), where=broken.trained > 0
            )
            bounded.append((workload, seconds, broken))
            days_of_all += need * (workload.train_days or 0.0)
        else:
            need = np.where(need <= 1.0, 0.0, np.inf)
        share = np.maximum(share, need)
    if instance.limits.train_days_total is not None:
        share = np.maximum(share, days_of_all / instance.limits.train_days_total)
    return RunningShare(running=share, bounded=tuple(bounded))


def _times_s(
    instance: Instance, families: tuple[Family, ...], table: Columns, check: Callable[[], None]
) -> Iterator[list[Floats]]:
    """The least times of every workload (s), by number of uplinks, for every family."""
    choices = uplinks_by_context(families)
    times = [table_times_s(table, w, choices, check) for w in range(len(instance.workload))]
    for family in families:
        yield [of_family(family, choices, seconds) for seconds in times]


def interrupted_paces(
    instance: Instance,
    families: tuple[Family, ...],
    table: Columns,
    check: Callable[[], None],
    over: Collection[str] | None = None,
) -> Iterator[tuple[Family, Floats]]:
    """Every family with every number of spares that makes a difference, and its paces by number of
    uplinks.

    A pace is the largest share that a workload takes of its days, interruptions included, or of its
    bound on an iteration; of `over` alone where these are named, and infinite then where another
    workload breaks its bound.
    """
    availability = instance.availability
    assert availability is not None, "asked for with failures only"
    for family, times in zip(families, _times_s(instance, families, table, check), strict=True):
        loss, counts = (
            family_domain_lost(availability, family),
            part_counts(family, np.array(family.uplink_choices)),
        )
        broken = [
            interruptions(availability, workload, counts) if workload.calendar else None
            for workload in instance.workload
        ]
        for spares in availability.spares_with(family.spare_domains):
            running = enough_domains(loss, family.domains, spares)
            waits_s = waiting(availability, loss, family.domains, spares)
            worst = np.zeros(len(family.uplink_choices))
            days_of_all = np.zeros(len(family.uplink_choices))
            for workload, seconds, stops in zip(instance.workload, times, broken, strict=True):
                share = seconds / workload.bound_s
                if stops is not None:
                    share = taken_share(availability, workload, stops, share, running, waits_s)
                moves = over is None or workload.name in over
                worst = np.maximum(
                    worst, share if moves else np.where(share <= ROUNDED, 0.0, np.inf)
                )
                days_of_all += share * (workload.train_days or 0.0)
            if (total := instance.limits.train_days_total) is not None:
                share = days_of_all / total
                worst = np.maximum(
                    worst, share if over is None else np.where(share <= ROUNDED, 0.0, np.inf)
                )
            yield replace(family, spare_domains=spares), worst
            if (
                running >= 1.0 / ROUNDED
            ):  # nothing waits any more: further spares cost and change nothing
                break


def counts_days(instance: Instance) -> bool:
    """Whether more than the bound of each workload by itself says what is in time."""
    return instance.availability is not None or instance.limits.train_days_total is not None


def in_days(
    instance: Instance, families: tuple[Family, ...], table: Columns, check: Callable[[], None]
) -> tuple[Family, ...]:
    """The families with those of their uplinks with which all workloads are in time, one after the
    other as well, and the fewest spares each takes.

    A family whose uplinks take different numbers of spares is several.
    """
    availability, total = instance.availability, instance.limits.train_days_total
    if not counts_days(instance):
        return families
    timely = []
    for family, times in zip(families, _times_s(instance, families, table, check), strict=True):
        if availability is None:
            is_timely = days_in_turn(instance, times) <= total
            choices = tuple(np.array(family.uplink_choices)[is_timely].tolist())
            timely += [replace(family, uplink_choices=choices)] if choices else []
            continue
        timed = zip(instance.workload, times, strict=True)
        target = demand(instance, family, family.uplink_choices, timed)
        uplinks_by_spares: dict[int, list[int]] = {}
        loss = family_domain_lost(availability, family)
        for i, uplinks in enumerate(family.uplink_choices):
            spares = fewest_spares(availability, loss, family, target, i)
            if spares is not None:
                uplinks_by_spares.setdefault(spares, []).append(uplinks)
        timely += [
            replace(family, spare_domains=spares, uplink_choices=tuple(uplinks))
            for spares, uplinks in uplinks_by_spares.items()
        ]
    return tuple(timely)


def fewest_spares(
    availability: Availability, loss: float, family: Family, target: RunningShare, i: int
) -> int | None:
    """The fewest spares, of those to choose from, with which all workloads are in time at one
    number of uplinks.

    With one more spare no more domains are lost than before, and one more stands by: the share of
    the time in which domains enough are whole never falls, and the fewest for the mean follow by
    halving. Days that are kept with a probability take no fewer; from there on each number is
    tried, until nothing ever waits.
    """
    choices, domains = availability.spares_with(family.spare_domains), family.domains
    threshold = float(target.running[i]) * ROUNDED
    if threshold > 1.0:
        return None
    at = bisect_left(
        choices, True, key=lambda spares: enough_domains(loss, domains, spares) >= threshold
    )
    for spares in choices[at:]:
        running = enough_domains(loss, domains, spares)
        if availability.confidence is None or all(
            times_s[i] * ROUNDED
            <= workload.bound_s
            * promise(
                availability, workload, stops, running, waiting(availability, loss, domains, spares)
            )[i]
            for workload, times_s, stops in target.bounded
        ):
            return spares
        if running >= 1.0 / ROUNDED:
            return None
    return None
