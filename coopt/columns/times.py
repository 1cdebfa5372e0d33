"""Iteration times of all mappings on every network without a bound on time, and tolerated delays
under a bound.

With a bound, a mapping can wait for gradients from other sites and still meet it.

Gradients that are summed with other sites take a time w in addition to the data-parallel traffic of
their own site, and overlap with compute as that does. Every affine piece of the iteration time then
grows by a·w with a >= 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from coopt.columns.feasible import FeasibleMappings, feasible_mappings
from coopt.columns.grid import Context, DomainSet, context_of
from coopt.columns.pools import (
    Pool,
    in_orders,
    in_time,
    meeting,
    quick_rows,
    undominated,
    undominated_rows,
)
from coopt.columns.table import Columns, feasible_by_size, full_bandwidth
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.numerics import REORDERED
from coopt.instance.schema import Instance, days_in_turn
from coopt.instance.variants import with_scaled_bounds
from coopt.instance.workload import Workload
from coopt.network.family import Family
from coopt.perf.collectives import AffineSeconds
from coopt.perf.iterations import Iteration
from coopt.perf.mapping import Floats, Ints
from coopt.perf.traffic import OVERLAP_COST

FEW = 64  # rows evaluated first, to find out which others may be faster
COVERED = 1.5  # times a bound: mappings listed at longer ones are listed anew for it
FEW_MAPPINGS = 16  # of which all placements are


def unbounded(
    instance: Instance,
    families: tuple[Family, ...],
    on_site: Callable[[DomainSet], None],
    pace: float = math.inf,
) -> Columns:
    """Return the pools of every site without a bound on time, or with bounds `pace` times as long,
    and no columns, as those belong to a bound.

    Rows are dropped only where others are at least as fast at every number of uplinks, so that
    these pools are valid for every bound up to that.
    """
    without_bound = with_scaled_bounds(instance, pace)
    choices = uplinks_by_context(families)
    feasible = feasible_by_size(without_bound, tuple(choices))
    domains = {domain.name: domain for domain in instance.network.hb_domains}
    pools: dict[tuple[int, DomainSet], Pool] = {}
    gated: Counter[str] = Counter()
    for site, site_choices in of_sites(choices).items():
        on_site(site)
        for w in range(len(instance.workload)):
            source = feasible[w, site.gpus]
            pools[w, site], dropped = fastest_rows(
                source, instance.cluster.gpu, domains[site.hb], site_choices
            )
            gated.update(dropped)
    row_count = sum(map(len, pools.values()))
    return Columns(
        contexts=tuple(choices),
        columns=(),
        pools=pools,
        feasible=feasible,
        enumerated=sum(gated.values()) + row_count,
        kept=row_count,
        gated=dict(gated),
    )


def fastest_rows(
    source: FeasibleMappings, gpu: Gpu, hb: HbDomain, choices: Mapping[Context, Ints]
) -> tuple[Pool, Counter[str]]:
    """Select the rows that are the fastest at some number of uplinks in the contexts of a site, and
    count the dropped rows by cause.

    The result is cached for the next question with the same bound, for example to explain a point
    of a front.
    """
    key = (
        "fastest",
        source.workload.bound_s,
        hb.rates,
        tuple((c, u.tobytes()) for c, u in choices.items()),
    )
    return source.recall(key, lambda: _fastest_rows(source, gpu, hb, choices))


def _fastest_rows(
    source: FeasibleMappings, gpu: Gpu, hb: HbDomain, choices: Mapping[Context, Ints]
) -> tuple[Pool, Counter[str]]:
    contexts = list(choices)
    site, best_case = contexts[0].site, full_bandwidth(contexts)
    quick, gated = quick_rows(source, site)
    bound_s, floors_s = (
        source.workload.bound_s,
        source.lower_bound_s(gpu, hb.gbyte_s, best_case.byte_s),
    )
    few = np.flatnonzero(quick)
    few = few[np.argsort(floors_s[few], kind="stable")[:FEW_MAPPINGS]]
    sample = meeting(source, gpu, hb, site, best_case, few)
    # what is slower at full rate than the sample with the fewest uplinks is dominated
    slowest_s = [
        (byte_s, _slowest_s(sample, some) * (1 + REORDERED)) for byte_s, some in _of_rates(choices)
    ]
    longest_s = min(bound_s, max(most_s for _, most_s in slowest_s))
    rows = meeting(
        source, gpu, hb, site, best_case, np.flatnonzero(quick & (floors_s <= longest_s))
    )
    is_near = np.zeros(len(rows), dtype=np.bool_)
    for byte_s, most_s in slowest_s:
        is_near |= rows.contention_free_s(byte_s) <= most_s
    near_rows = rows.take(np.flatnonzero(is_near))
    survivors, dominated = undominated_rows(near_rows, best_case.discipline)
    _, placement_counts = source.counts_on(site)
    gated["dominated"] += int(placement_counts[quick].sum()) - len(near_rows) + dominated
    return survivors, gated


def _slowest_s(sample: Pool, choices: Mapping[Context, Ints]) -> float:
    """The longest time (s) that the fastest of some rows takes with the fewest uplinks of a
    context.
    """
    fewest = {context: uplinks[:1] for context, uplinks in choices.items()}
    times = _fastest_s(sample, fewest, lambda: None)
    return max(float(context_times.max(initial=0.0)) for context_times in times.values())


class Timed(NamedTuple):
    """Numbers of uplinks of a context, in rising order, with the time of the fastest mapping (s) at
    each.
    """

    uplinks: Ints
    times_s: Floats


@dataclass(frozen=True, kw_only=True)
class FastestTimes:
    """Times of the fastest mapping of a workload (s) for numbers of uplinks of contexts, which hold
    at every bound; computed for those that are asked for.
    """

    workload: Workload
    gpu: Gpu
    known: dict[Hashable, dict[Context, Timed]] = field(default_factory=dict)

    def fewest_uplinks(
        self,
        bound_s: float,
        choices: Mapping[Context, Ints],
        domains: Mapping[str, HbDomain],
        check: Callable[[], None],
    ) -> dict[Context, int]:
        """Return the fewest uplinks of each context with which a bound is met, of its choices and
        those it had before; contexts where none are enough are left out.
        """
        unknown: dict[Context, Ints] = {}
        known = {name: self.known.setdefault(domain.rates, {}) for name, domain in domains.items()}
        for context, uplinks in choices.items():
            listed = known[context.site.hb].get(context)
            if listed is None:
                unknown[context] = uplinks
            elif not np.array_equal(uplinks, listed.uplinks):
                both = np.union1d(uplinks, listed.uplinks)
                unknown |= {context: both} if len(both) > len(listed.uplinks) else {}
        for site, site_choices in of_sites(unknown).items():
            check()
            source = feasible_mappings(self.workload, self.gpu, site.gpus)
            rows, _ = _fastest_rows(source, self.gpu, domains[site.hb], site_choices)
            for context, times in minimum_times_s(rows, site_choices, check).items():
                known[site.hb][context] = Timed(site_choices[context], times)
        fewest: dict[Context, int] = {}
        for context in choices:
            uplinks, times = known[context.site.hb][context]
            # times never rise with uplinks
            enough = len(times) - int(np.count_nonzero(times <= bound_s))
            if enough < len(times):
                fewest[context] = int(uplinks[enough])
        return fewest


def bound_shares(
    instance: Instance,
    families: tuple[Family, ...],
    table: Columns,
    over: Collection[str] | None = None,
) -> tuple[Floats, ...]:
    """For every family and number of uplinks, the maximum over workloads of iteration time divided
    by bound, and that of their days in turn by the limit on these.

    Each workload runs its fastest mapping; the share is infinite where it has none. Shares never
    rise with uplinks. If `over` names workloads, only theirs count, and the share is infinite where
    another workload exceeds its bound.
    """
    choices = uplinks_by_context(families)
    worst = {context: np.zeros(len(uplinks)) for context, uplinks in choices.items()}
    times_s = [table_times_s(table, w, choices) for w in range(len(instance.workload))]
    for workload, by_context in zip(instance.workload, times_s, strict=True):
        moves = over is None or workload.name in over
        for context, seconds in by_context.items():
            share = seconds / workload.bound_s
            np.maximum(
                worst[context],
                share if moves else np.where(share <= 1.0, 0.0, np.inf),
                out=worst[context],
            )
    if (total := instance.limits.train_days_total) is not None:
        for context in choices:
            days = days_in_turn(instance, (by_context[context] for by_context in times_s))
            share = days / total if over is None else np.where(days <= total, 0.0, np.inf)
            np.maximum(worst[context], share, out=worst[context])
    return tuple(of_family(family, choices, worst) for family in families)


def uplinks_by_context(families: Iterable[Family]) -> dict[Context, Ints]:
    """Return the numbers of uplinks of the families in each context, in rising order."""
    numbers: dict[Context, set[int]] = {}
    for family in families:
        numbers.setdefault(context_of(family), set()).update(family.uplink_choices)
    return {context: np.array(sorted(uplinks)) for context, uplinks in numbers.items()}


def of_family(
    family: Family, choices: Mapping[Context, Ints], values: Mapping[Context, Floats]
) -> Floats:
    """Pick the values of a context at the numbers of uplinks of one family."""
    context = context_of(family)
    return values[context][np.searchsorted(choices[context], family.uplink_choices)]


def table_times_s(
    table: Columns,
    w: int,
    choices: Mapping[Context, Ints],
    check: Callable[[], None] = lambda: None,
) -> dict[Context, Floats]:
    """Mean time of the fastest mapping of one workload (s) for every number of uplinks, in all
    contexts of a table.
    """
    times_s: dict[Context, Floats] = {}
    for site, site_choices in of_sites(choices).items():
        times_s |= minimum_times_s(table.pools[w, site], site_choices, check)
    return times_s


def of_sites(choices: Mapping[Context, Ints]) -> dict[DomainSet, dict[Context, Ints]]:
    """Group contexts by site."""
    sites: dict[DomainSet, dict[Context, Ints]] = {}
    for context, uplinks in choices.items():
        sites.setdefault(context.site, {})[context] = uplinks
    return sites


def minimum_times_s(
    pool: Pool, choices: Mapping[Context, Ints], check: Callable[[], None] = lambda: None
) -> dict[Context, Floats]:
    """Time of the fastest mapping (s) for every number of uplinks, in contexts of the pool's
    site.

    No row is faster than with the full rate of its NICs. Rows that are slower at that rate than
    others with the fewest uplinks are therefore never the fastest, and their loads are not
    computed. Contexts that need about as many rows are evaluated together. The pool caches the
    results.

    Parameters
    ----------
    check
        Called between contexts; raises when time is up.
    """
    minimum_s: dict[Context, Floats] = {}
    unknown = {
        context: uplinks
        for context, uplinks in choices.items()
        if (context, uplinks.tobytes()) not in pool.minimum_s
    }
    for byte_s, rate_choices in _of_rates(unknown):
        floors_s = pool.contention_free_s(byte_s)
        order = np.argsort(floors_s, kind="stable")
        sample_s = _fastest_s(pool.take(order[:FEW]), rate_choices, check)
        slowest_s = np.array([times.max(initial=0.0) for times in sample_s.values()])
        counts = np.searchsorted(floors_s[order], slowest_s * (1 + REORDERED), side="right")
        # the sample has all rows that these contexts need
        in_sample = counts <= FEW
        minimum_s |= {
            context: times
            for (context, times), whole in zip(sample_s.items(), in_sample.tolist(), strict=True)
            if whole
        }
        # contexts whose numbers of rows agree within a factor of two are evaluated together
        sizes = np.where(in_sample, 0, np.frexp(counts)[1])
        for size in np.unique(sizes[~in_sample]).tolist():
            size_choices = {
                context: rate_choices[context]
                for context, context_size in zip(rate_choices, sizes.tolist(), strict=True)
                if context_size == size
            }
            minimum_s |= _fastest_s(
                pool.take(order[: counts[sizes == size].max()]), size_choices, check
            )
    pool.minimum_s.update(
        {(context, unknown[context].tobytes()): times for context, times in minimum_s.items()}
    )
    return {
        context: pool.minimum_s[context, uplinks.tobytes()] for context, uplinks in choices.items()
    }


def _of_rates(choices: Mapping[Context, Ints]) -> Iterator[tuple[float, dict[Context, Ints]]]:
    """Group contexts with equal NIC rates and equal charging of flows."""
    for byte_s, discipline in dict.fromkeys(
        (context.byte_s, context.discipline) for context in choices
    ):
        yield (
            byte_s,
            {c: u for c, u in choices.items() if c.byte_s == byte_s and c.discipline == discipline},
        )


def _fastest_s(
    pool: Pool, choices: Mapping[Context, Ints], check: Callable[[], None]
) -> dict[Context, Floats]:
    if not len(pool):
        return {context: np.full(len(uplinks), np.inf) for context, uplinks in choices.items()}
    fastest_s = {}
    for context, times in pool.fastest_s(choices):
        check()
        fastest_s[context] = times
    return {context: fastest_s[context] for context in choices}  # in their order


def waiting(pool: Pool, wait_s: float) -> Pool:
    """Return the pool with gradients delayed by `wait_s` seconds."""
    return replace(pool, iteration=delayed(pool.iteration, wait_s))


def delayed(iteration: Iteration, wait_s: float) -> Iteration:
    """Return the iterations with gradients delayed by `wait_s` seconds."""
    return replace(iteration, dp=iteration.dp + AffineSeconds(wait_s)) if wait_s else iteration


def delay_tolerance(
    source: FeasibleMappings, gpu: Gpu, hb: HbDomain, site: DomainSet, best_case: Context
) -> tuple[DelayTolerance, Counter[str]]:
    """Place feasible mappings on one kind of HB domain and keep those that can meet the bound with
    some delay.

    A row is dropped where another row of its class is no slower, both without a delay and with the
    longest one that any row tolerates; the pieces are affine in the delay, so it is no slower in
    between. No tolerated delay exceeds the bound divided by the minimum share of it that is
    exposed. The result is cached for the next question with the same bound.

    Parameters
    ----------
    best_case
        A network at least as fast as any other for this site.

    Returns
    -------
    tolerance, gated
        The delays that the remaining rows tolerate, and the number of dropped rows by cause.
    """
    key = (
        "delay tolerance",
        source.workload.bound_s,
        hb.rates,
        site,
        best_case.byte_s,
        best_case.discipline,
    )
    return source.recall(key, lambda: _delay_tolerance(source, gpu, hb, site, best_case))


def _delay_tolerance(
    source: FeasibleMappings, gpu: Gpu, hb: HbDomain, site: DomainSet, best_case: Context
) -> tuple[DelayTolerance, Counter[str]]:
    quick, gated = in_time(source, gpu, hb, site, best_case)
    ends = [
        waiting(quick, wait_s).coefficients()
        for wait_s in (0.0, source.workload.bound_s / OVERLAP_COST)
    ]
    survivors = quick.take(np.flatnonzero(undominated(np.hstack(ends), *quick.groups)))
    gated["dominated"] = len(quick) - len(survivors)
    pool = in_orders(survivors, best_case.discipline)
    return DelayTolerance(undelayed=pool, delayed=waiting(pool, 1.0)), gated


@dataclass(frozen=True, kw_only=True, eq=False)
class DelayTolerance:
    """Mappings without delay and with a delay of one second, from which every other delay
    follows.
    """

    undelayed: Pool
    delayed: Pool

    def of(self, workload: Workload) -> DelayTolerance:
        """Return the same mappings for a workload with another name or bound, without the cached
        link loads, which take much memory.
        """
        return replace(
            self,
            undelayed=replace(self.undelayed, workload=workload),
            delayed=replace(self.delayed, workload=workload),
        )

    def covers(self, workload: Workload) -> bool:
        """Whether mappings of a workload with another bound are worth selecting from these."""
        listed_s = self.undelayed.workload.bound_s
        return workload.bound_s <= listed_s <= workload.bound_s * COVERED

    def within(self, workload: Workload, best_case: Context) -> DelayTolerance:
        """Return those that meet a bound that is no longer, on the best network.

        What another mapping dominates up to the longest delay of a bound, it dominates up to
        shorter ones.
        """
        hurried = self.of(workload)
        if workload.bound_s == self.undelayed.workload.bound_s:
            return hurried
        meets = np.flatnonzero(hurried.undelayed.time_s(best_case, 1) <= workload.bound_s)
        return DelayTolerance(
            undelayed=hurried.undelayed.take(meets), delayed=hurried.delayed.take(meets)
        )

    def longest_s(self, context: Context, uplinks: Ints) -> Floats:
        """Longest delay (s) with which some row meets its bound with u uplinks, for k values of u;
        shape (k,).

        It is -inf where no row meets its bound even without a delay.
        """
        r = self.undelayed.reciprocals(context, uplinks[:, None])
        bound_s = self.undelayed.workload.bound_s
        pieces, delayed_pieces = self.undelayed.pieces, self.delayed.pieces
        waits_s = np.full((len(uplinks), len(self.undelayed)), np.inf)
        # a second longer, whatever the network
        slopes = delayed_pieces.fixed - pieces.fixed
        at_once_of_cases = (pieces.each_at(self.undelayed.charged(case)) for case in r.cases())
        for at_once, slope in chain.from_iterable(
            zip(at_once_of_case, slopes, strict=True) for at_once_of_case in at_once_of_cases
        ):
            with np.errstate(divide="ignore", invalid="ignore"):
                bears = np.where(slope > 0, (bound_s - at_once) / slope, np.inf)
            waits_s = np.minimum(waits_s, np.where(at_once <= bound_s, bears, -np.inf))
        return np.asarray(waits_s.max(axis=1, initial=-np.inf))
