"""Networks on which training is done in time with its interruptions: least spares, and what an iteration may take.

A bound on days leaves an iteration less time the more often training is interrupted, and a network with more uplinks
has more optics and switches that fail. So what an iteration takes and what it may take both fall with uplinks, and
neither rules the other: every number of uplinks is looked at, and those that are in time are the choices that are left.
Domains that stand by cost something and change nothing but how long training waits for repairs, so that each network
has as few of them as it takes. The search for the cheapest network then goes on as without failures (docs/days.md).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coopt.availability.uptime import (
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
from coopt.columns.context import context_of
from coopt.columns.pace import of_family, table_times_s, uplinks_asked
from coopt.columns.pools import Pool, timely_pool
from coopt.columns.table import Columns
from coopt.instance.reserves import Availability
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.network.family import Family, levels
from coopt.perf.mapping import Floats
from coopt.plan.parts import Uptime, WorkloadPlan
from coopt.solving.arrays import fastest_row, pace_of, workload_plan

ROUNDED = 1.0 + 1e-12  # so much more has to run, so that products in another order still are in time


def part_counts(family: Family, uplinks: Any) -> PartCounts:
    """The parts of a network whose failure ends a run, at a number of uplinks or at each of an array.

    Where NICs have ports on several planes, what a link or a switch carried goes over the others.
    """
    tiers, alone = levels(family, uplinks), family.nic_planes == 1
    return PartCounts(
        gpus=family.gpus,
        nics=family.gpus * family.nics_per_gpu // family.gpus_per_nic if tiers else 0,
        optics=(sum(2 * level.links for level in tiers) if alone else 0) + 0 * uplinks,
        switches=(sum(level.switches for level in tiers) if alone else 0) + 0 * uplinks,
        domains=family.domains,
    )


def family_domain_lost(asked: Availability, family: Family) -> float:
    """Probability that a domain of a family has too few working GPUs."""
    nics = family.nics_per_gpu if family.tiers else 0
    shared = {"nics_per_gpu": nics, "gpus_per_nic": family.gpus_per_nic if family.tiers else 1}
    return domain_lost(asked, size=family.hb.size, active=family.active, **shared)


def running_share(asked: Availability, family: Family) -> float:
    """Share of the time in which domains enough of a family are whole."""
    return enough_domains(family_domain_lost(asked, family), family.domains, family.spare_domains)


def uptime_of(instance: Instance, family: Family, uplinks: int, workload: Workload, pace: float = 1.0) -> Uptime | None:
    """What interrupts a workload on a network; None where the instance has no word on failures.

    Parameters
    ----------
    pace
        An iteration with all ports of NICs over what it takes on average.
    """
    asked = instance.availability
    if asked is None:
        return None
    found = interruptions(asked, workload, part_counts(family, uplinks))
    running, per_s, interval_s = running_share(asked, family), float(found.per_s), float(found.interval_s)
    waits_s = waiting(asked, family_domain_lost(asked, family), family.domains, family.spare_domains)
    return Uptime(
        failure_s=1 / per_s if per_s else None,
        checkpoint_s=found.checkpoint_s,
        interval_s=interval_s if np.isfinite(interval_s) else None,
        restart_s=found.restart_s,
        running=running,
        goodput=running * float(found.trained) * pace,
        promised=float(promise(asked, workload, found, running, waits_s)) * pace,
        port_out=sum(share for share, _ in family.slow_times),
        pace=pace,
    )


def waiting(asked: Availability, lost: float, domains: int, spares: int) -> float:
    """How far the time with domains enough spreads (s); 0 where nobody asks."""
    repair_s = asked.repair_hours * HOUR_S
    return 0.0 if asked.confidence is None else waiting_variance_s(lost, domains, spares, repair_s)


def allowed_s(
    instance: Instance, family: Family, uplinks: int, workload: Workload, run: WorkloadPlan | None = None
) -> float:
    """What an iteration may take on a network: less than the bound where days are bound and training is interrupted.

    On average; with all ports of NICs where a run is given that says how much longer it takes on average.
    """
    pace = run.uptime.pace if run and run.uptime else 1.0
    uptime = uptime_of(instance, family, uplinks, workload, pace) if workload.calendar else None
    return workload.bound_s if uptime is None else workload.bound_s * uptime.promised


def taken_share(
    asked: Availability, workload: Workload, found: Interruptions, shares: Floats, running: float, waits_s: float
) -> Floats:
    """What share of its days a workload takes, with those of its bound that iterations take without interruptions."""
    mean = 1.0 / np.maximum(found.trained * running, NEVER)
    taken = mean * shares
    if asked.confidence is not None and workload.train_days is not None:
        spread = (found.variance_s + waits_s * mean) * shares / (workload.train_days * DAY_S)
        taken = taken + asked.deviations / max(running, NEVER) * np.sqrt(spread)
    return np.asarray(np.where(found.trained * running < NEVER, np.inf, taken))


def run_on(instance: Instance, family: Family, uplinks: int, workload: Workload, pool: Pool, row: int) -> WorkloadPlan:
    """One row of a pool, written out for a network with what interrupts it there."""
    context = context_of(family)
    run = workload_plan(pool, instance.cluster.gpu, context, uplinks, row)
    uptime = uptime_of(instance, family, uplinks, workload, pace_of(pool, context, uplinks, row))
    if uptime is None:
        return run
    bound_s = run.bound_s * uptime.promised if workload.calendar else run.bound_s
    return run.model_copy(update={"uptime": uptime, "bound_s": bound_s})


def fastest_on(instance: Instance, family: Family, uplinks: int, workload: Workload) -> WorkloadPlan:
    """The fastest mapping of a workload on its island, recomputed from what was decided."""
    context = context_of(family)
    pool = timely_pool(workload, instance.cluster.gpu, family.hb, context)
    row, time_s = fastest_row(pool, context, uplinks)
    assert time_s <= workload.bound_s, f"workload {workload.name!r} is late on its island"
    return run_on(instance, family, uplinks, workload, pool, row)


@dataclass(frozen=True, kw_only=True)
class RunningShare:
    """What share of the time has to run, by number of uplinks, so that every workload is in time; above 1 for never.

    `bounded` are the workloads with days, each with its least times (s) and its interruptions by number of uplinks.
    """

    running: Floats
    bounded: tuple[tuple[Workload, Floats, Interruptions], ...]


def demands(
    instance: Instance, asked: Availability, families: tuple[Family, ...], table: Columns, check: Callable[[], None]
) -> list[RunningShare]:
    """The demand of every family."""
    return [
        demand(asked, family, family.uplink_choices, zip(instance.workload, times, strict=True))
        for family, times in zip(families, _times_s(instance, families, table, check), strict=True)
    ]


def demand(
    asked: Availability, family: Family, uplinks: Sequence[int], timed: Iterable[tuple[Workload, Floats]]
) -> RunningShare:
    """The demand of one family at some numbers of uplinks, with every workload and its least times there (s)."""
    own = np.array(uplinks)
    counts, share, bounded = part_counts(family, own), np.zeros(len(own)), []
    for workload, seconds in timed:
        least = seconds / workload.bound_s
        if workload.calendar:
            broken = interruptions(asked, workload, counts)
            least = np.divide(least, broken.trained, out=np.full(len(own), np.inf), where=broken.trained > 0)
            bounded.append((workload, seconds, broken))
        else:
            least = np.where(least <= 1.0, 0.0, np.inf)
        share = np.maximum(share, least)
    return RunningShare(running=share, bounded=tuple(bounded))


def _times_s(
    instance: Instance, families: tuple[Family, ...], table: Columns, check: Callable[[], None]
) -> Iterator[list[Floats]]:
    """The least times of every workload (s), by number of uplinks, for every family."""
    choices = uplinks_asked(families)
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
    """Every family with every number of spares that makes a difference, and its paces by number of uplinks.

    A pace is the largest share that a workload takes of its days, interruptions included, or of its bound on an
    iteration; of `over` alone where these are named, and infinite then where another workload breaks its bound.
    """
    asked = instance.availability
    assert asked is not None, "asked for with failures only"
    for family, times in zip(families, _times_s(instance, families, table, check), strict=True):
        lost, counts = family_domain_lost(asked, family), part_counts(family, np.array(family.uplink_choices))
        broken = [interruptions(asked, one, counts) if one.calendar else None for one in instance.workload]
        for spares in asked.spares:
            running = enough_domains(lost, family.domains, spares)
            waits_s = waiting(asked, lost, family.domains, spares)
            worst = np.zeros(len(family.uplink_choices))
            for workload, seconds, found in zip(instance.workload, times, broken, strict=True):
                share = seconds / workload.bound_s
                if found is not None:
                    share = taken_share(asked, workload, found, share, running, waits_s)
                moves = over is None or workload.name in over
                worst = np.maximum(worst, share if moves else np.where(share <= ROUNDED, 0.0, np.inf))
            yield replace(family, spare_domains=spares), worst
            if running >= 1.0 / ROUNDED:
                break


def in_days(
    instance: Instance, families: tuple[Family, ...], table: Columns, check: Callable[[], None]
) -> tuple[Family, ...]:
    """The families with those of their uplinks with which all workloads are in time, and the fewest spares each takes.

    A family whose uplinks take different numbers of spares is several.
    """
    asked = instance.availability
    if asked is None:
        return families
    kept = []
    for family, wanted in zip(families, demands(instance, asked, families, table, check), strict=True):
        taken: dict[int, list[int]] = {}
        lost = family_domain_lost(asked, family)
        for i, uplinks in enumerate(family.uplink_choices):
            spares = fewest_spares(asked, lost, family.domains, wanted, i)
            if spares is not None:
                taken.setdefault(spares, []).append(uplinks)
        kept += [replace(family, spare_domains=one, uplink_choices=tuple(some)) for one, some in taken.items()]
    return tuple(kept)


def fewest_spares(asked: Availability, lost: float, domains: int, wanted: RunningShare, i: int) -> int | None:
    """The fewest spares, of those to choose from, with which all workloads are in time at one number of uplinks.

    With one more spare no more domains are lost than before, and one more stands by: the share of the time in which
    domains enough are whole never falls, and the fewest for the mean follow by halving. Days that are kept with a
    probability take no fewer; from there on each number is tried, until nothing ever waits.
    """
    listed, needed = asked.spares, float(wanted.running[i]) * ROUNDED
    if needed > 1.0:
        return None
    at = bisect_left(listed, True, key=lambda spares: enough_domains(lost, domains, spares) >= needed)
    for spares in listed[at:]:
        running = enough_domains(lost, domains, spares)
        if asked.confidence is None or _promised(asked, wanted, i, running, waiting(asked, lost, domains, spares)):
            return spares
        if running >= 1.0 / ROUNDED:
            return None
    return None


def _promised(asked: Availability, wanted: RunningShare, i: int, running: float, waits_s: float) -> bool:
    """Whether all workloads keep their days with the probability that is asked for."""
    return all(
        times_s[i] * ROUNDED <= workload.bound_s * promise(asked, workload, found, running, waits_s)[i]
        for workload, times_s, found in wanted.bounded
    )
