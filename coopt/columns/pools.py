"""Candidate mappings of a workload on one kind of HB domain."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from coopt.columns.context import Context, DomainSet, groups_of
from coopt.columns.dominance import undominated
from coopt.columns.feasible import FeasibleMappings, possibly_in_time
from coopt.columns.flows import Groups
from coopt.columns.grid import degrees, placed_on
from coopt.columns.layouts import NicLayout, stacked
from coopt.columns.least_uplinks import Rows
from coopt.columns.loads import Crossings, crossings
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.network import Discipline
from coopt.instance.workload import Workload
from coopt.perf.affine import AffineSeconds, Pieces, Reciprocals
from coopt.perf.iteration_parts import Iteration
from coopt.perf.iterations import iteration
from coopt.perf.mapping import (
    STAGES_APART,
    STAGES_TOGETHER,
    Bools,
    Floats,
    Ints,
    Mappings,
    Placements,
)

ENTRIES = 1 << 17  # pairs of groups and networks evaluated at once, so that tables stay small


class LeastUplinks(NamedTuple):
    """Minimum number of uplinks of a leaf with which some row meets its bound (0 without leaves),
    and the fastest row then.
    """

    row: int
    uplinks: int


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Placed mappings, one per row, with their iteration times as functions of the network's
    bandwidth.
    """

    workload: Workload
    site: DomainSet
    mappings: Mappings
    placements: Placements
    iteration: Iteration

    def __len__(self) -> int:
        return len(self.mappings)

    @cached_property
    def pieces(self) -> Pieces:
        """Affine functions of the network's bandwidth whose maximum is the iteration time."""
        return self.iteration.pieces()

    def time_s(self, context: Context, uplinks: int | Ints) -> Floats:
        """Iteration time of every row (s) on a network of the context with u uplinks; shape (n,),
        or (k, n) for u of shape (k, 1).

        It is summed from the coefficients that dominance is checked with, so that rounding cannot
        make a row late where a row that it dominated was in time, or where it was in time with less
        bandwidth.
        """
        return self._slower_s(context, uplinks, 1.0)

    def mean_s(self, context: Context, uplinks: int | Ints) -> Floats:
        """Iteration time of every row (s) as in `time_s`, averaged over the time in which NIC ports
        fail.

        The throughput is the mean of the throughputs with and without failed ports. Where the bound
        is on single iterations, no port has failed.
        """
        whole_s = self.time_s(context, uplinks)
        if not context.slow_times or not self.workload.calendar:
            return whole_s
        per_second = (1.0 - sum(share for share, _ in context.slow_times)) / whole_s
        for share, slower in context.slow_times:
            if math.isfinite(slower):
                per_second = per_second + share / self._slower_s(context, uplinks, slower)
        return np.divide(1.0, per_second, out=np.full_like(whole_s, np.inf), where=per_second > 0.0)

    def _slower_s(self, context: Context, uplinks: int | Ints, slower: float) -> Floats:
        r = self.charged(self.reciprocals(context, uplinks, slower))
        shape = np.broadcast_shapes(np.shape(uplinks), (len(self),))
        return np.broadcast_to(self.pieces.at(r), shape)

    def contention_free_s(self, byte_s: float) -> Floats:
        """Iteration time of every row (s) where all traffic between domains has this rate; shape
        (n,), cached per rate.
        """
        if byte_s not in self._contention_free_s:
            r = self.charged(Reciprocals.everywhere(np.full(len(self), 1.0 / byte_s)))
            self._contention_free_s[byte_s] = self.pieces.at(r)
        return self._contention_free_s[byte_s]

    def take(self, rows: Ints) -> Pool:
        """Select rows."""
        mappings = self.mappings.take(rows)
        iteration = self.iteration.take(rows)
        # without context parallelism there is no overlap that needs a piece of its own
        if not (mappings.cp > 1).any():
            iteration = replace(iteration, cp=AffineSeconds(), cp_left=AffineSeconds())
        if not (mappings.ep > 1).any() and not iteration.ep_left.is_zero:
            iteration = replace(iteration, ep_left=AffineSeconds())
        return replace(
            self, mappings=mappings, placements=self.placements.take(rows), iteration=iteration
        )

    def coefficients(self) -> Floats:
        """Affine pieces of every row, without columns that are 0 everywhere, and costs of
        algorithms; shape (n, columns).
        """
        columns = np.concatenate(self.pieces.coefficients)
        return np.ascontiguousarray(
            np.vstack([columns[columns.any(axis=1)], *self.iteration.algorithms.costs]).T
        )

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of traffic that some row has."""
        return self.pieces.kinds

    @cached_property
    def groups(self) -> Groups:
        """Location of the groups of every row; rows with equal groups have equal bandwidths."""
        return groups_of(self.workload, self.mappings, self.placements)

    @property
    def distinct_groups(self) -> tuple[Groups, Ints]:
        """The distinct groups, and the index of each row's groups among them."""
        return self.rows.distinct_groups

    @cached_property
    def rows(self) -> Rows:
        """The rows as the search for the minimum number of uplinks needs them."""
        return Rows(
            bound_s=self.workload.bound_s,
            site=np.zeros(len(self), dtype=np.int64),
            pieces=self.pieces,
            algorithms=self.iteration.algorithms,
            groups=self.groups,
        )

    def crossings(self, context: Context) -> Crossings:
        """Return the link loads of the distinct groups on a network."""
        if (context.layout, context.discipline) not in self._crossings:
            self.load([context])
        return self._crossings[context.layout, context.discipline]

    def load(self, contexts: Sequence[Context]) -> None:
        """Compute and cache the link loads on networks with a common discipline, some at a time."""
        if not contexts:
            return
        count, discipline = len(self.distinct_groups[0].tp), contexts[0].discipline
        layouts = dict.fromkeys(context.layout for context in contexts)
        unloaded = [layout for layout in layouts if (layout, discipline) not in self._crossings]
        batch_size = max(1, ENTRIES // max(count, 1))
        for start in range(0, len(unloaded), batch_size):
            batch = unloaded[start : start + batch_size]
            loads = self.stacked(batch, discipline)
            for n, layout in enumerate(batch):
                self._crossings[layout, discipline] = loads.take(slice(n * count, (n + 1) * count))

    def stacked(self, layouts: Sequence[NicLayout], discipline: Discipline) -> Crossings:
        """Compute the link loads of the distinct groups on layouts, concatenated by layout."""
        groups, _ = self.distinct_groups
        k, m = len(layouts), len(groups.tp)
        rows = stacked(layouts).take(np.repeat(np.arange(k), m))
        return crossings(
            rows,
            discipline,
            groups.take(np.tile(np.arange(m), k)),
            self.kinds,
            self.iteration.algorithms.flows,
        )

    @cached_property
    def _crossings(self) -> dict[tuple[NicLayout, Discipline], Crossings]:
        return {}

    @cached_property
    def least_s(self) -> dict[tuple[Context, bytes], Floats]:
        """Cache of the time of the fastest row (s), by network and numbers of uplinks."""
        return {}

    @cached_property
    def least_uplinks(self) -> dict[Context, LeastUplinks | None]:
        """Cache of the minimum number of uplinks of networks; None where no row meets its bound."""
        return {}

    @cached_property
    def _contention_free_s(self) -> dict[float, Floats]:
        return {}

    def charged(self, r: Reciprocals) -> Reciprocals:
        """Return the seconds per byte charged to pieces where the network offers r."""
        return self.iteration.algorithms.charged(r)

    def reciprocals(
        self, context: Context, uplinks: int | Ints, slower: float = 1.0
    ) -> Reciprocals:
        """Seconds per byte that the network offers to every row; `slower` multiplies them where NIC
        ports have failed.
        """
        byte_s = context.byte_s / slower
        if context.layout.is_flat:
            return Reciprocals.everywhere(np.full(len(self), 1.0 / byte_s))
        _, position = self.distinct_groups
        s_byte_of_groups = self.crossings(context).reciprocals(byte_s, uplinks)
        return s_byte_of_groups.mapped(lambda s_byte: s_byte[..., position])


def pool(
    source: FeasibleMappings,
    gpu: Gpu,
    hb: HbDomain,
    site: DomainSet,
    best_case: Context,
) -> tuple[Pool, Counter[str]]:
    """Place feasible mappings on one kind of HB domain and keep those that can meet their bound.

    Parameters
    ----------
    best_case
        A network at least as fast as any other for this site: full bandwidth everywhere.

    Returns
    -------
    pool, gated
        The remaining rows, and the number of dropped rows by cause.
    """
    key = source.workload.bound_s, site, hb.gbyte_s, best_case.byte_s, best_case.discipline
    if (answer := source.pools.get(key)) is None:
        timely_rows, gated = in_time(source, gpu, hb, site, best_case)
        survivors, dominated = undominated_rows(timely_rows, best_case.discipline)
        gated["dominated"] += dominated
        answer = survivors, gated
        source.keep(key, answer)
    is_same = (
        answer[0].workload == source.workload
    )  # the pool itself knows what was worked out on it
    return answer[0] if is_same else replace(answer[0], workload=source.workload), answer[1].copy()


def undominated_rows(rows: Pool, discipline: Discipline) -> tuple[Pool, int]:
    """Return the undominated rows in every allowed order of ranks, and the number of dropped
    rows.
    """
    keep = np.flatnonzero(undominated(rows.coefficients(), *rows.groups))
    return in_orders(rows.take(keep), discipline), len(rows) - len(keep)


def in_time(
    source: FeasibleMappings, gpu: Gpu, hb: HbDomain, site: DomainSet, best_case: Context
) -> tuple[Pool, Counter[str]]:
    """Return the rows that meet their bound on the best network, and the number of dropped rows by
    cause.
    """
    quick, gated = _quick(source, site)
    may_meet = quick & (
        source.least_s(gpu, hb.gbyte_s, best_case.byte_s) <= source.workload.bound_s
    )
    timely_rows = meeting(source, gpu, hb, site, best_case, np.flatnonzero(may_meet))
    _, placement_counts = source.counts_on(site)
    gated["communication"] = int(placement_counts[quick].sum()) - len(timely_rows)
    return timely_rows, gated


def meeting(
    source: FeasibleMappings, gpu: Gpu, hb: HbDomain, site: DomainSet, best_case: Context, fit: Ints
) -> Pool:
    """Return all placements of some feasible mappings that meet their bound on the best network."""
    placed_rows = place(source.workload, gpu, hb, site, source.fit.take(fit))
    # nothing leaves a leaf of the best case, so that the number of uplinks does not matter
    meets = np.flatnonzero(placed_rows.time_s(best_case, 1) <= source.workload.bound_s)
    return placed_rows if len(meets) == len(placed_rows) else placed_rows.take(meets)


def promising(
    source: FeasibleMappings, gpu: Gpu, hb: HbDomain, site: DomainSet
) -> tuple[Pool, Counter[str]]:
    """Return the feasible rows whose compute alone meets their bound, and the number of dropped
    rows by cause.
    """
    quick, gated = _quick(source, site)
    return place(source.workload, gpu, hb, site, source.fit.take(quick)), gated


def _quick(source: FeasibleMappings, site: DomainSet) -> tuple[Bools, Counter[str]]:
    """Return which feasible mappings meet their bound by compute alone, and the number of dropped
    placements by cause.
    """
    dropped, placement_counts = source.counts_on(site)
    quick = source.fastest_s <= source.workload.bound_s
    gated = dropped.copy()
    gated["compute"] = int(placement_counts[~quick].sum())
    return quick, gated


def timely_pool(workload: Workload, gpu: Gpu, hb: HbDomain, context: Context) -> Pool:
    """Return placed mappings that include all that meet the bound on some network of a context."""
    quadruples = degrees(workload, context.site.gpus)
    timely_mappings = possibly_in_time(
        workload, gpu, quadruples, hb_gbyte_s=hb.gbyte_s, byte_s=context.byte_s
    )
    return in_orders(place(workload, gpu, hb, context.site, timely_mappings), context.discipline)


def place(workload: Workload, gpu: Gpu, hb: HbDomain, site: DomainSet, mappings: Mappings) -> Pool:
    """Return every placement of the given mappings, with stages outermost; GPUs that share a NIC
    belong to one stage.
    """
    rows, placements = placed_on(workload, mappings, site)
    return timed(workload, gpu, hb, site, mappings.take(rows), placements)


def in_orders(pool: Pool, discipline: Discipline) -> Pool:
    """Return rows with stages outermost, and again those whose stages can be adjacent, as the
    workload allows.

    Their iterations differ only in the links that they load, so the second order is not used where
    links are charged by the ratio of a leaf.
    """
    orders = pool.workload.mapping.outermost
    stages_apart = np.arange(len(pool) if "pp" in orders else 0)
    turns = "dp" in orders and discipline.charge == "loads"
    stages_together = np.flatnonzero(pool.groups.stages_can_adjoin) if turns else stages_apart[:0]
    if len(stages_apart) == len(pool) and not len(stages_together):
        return pool
    both_orders = pool.take(np.concatenate([stages_apart, stages_together]))
    outermost = np.repeat(
        [STAGES_APART, STAGES_TOGETHER], [len(stages_apart), len(stages_together)]
    )
    return replace(both_orders, mappings=replace(both_orders.mappings, outermost=outermost))


def timed(
    workload: Workload,
    gpu: Gpu,
    hb: HbDomain,
    site: DomainSet,
    rows: Mappings,
    placements: Placements,
) -> Pool:
    """Build the pool of placed mappings with their iterations."""
    parts = iteration(workload, gpu, hb.gbyte_s, rows, placements)
    return Pool(workload=workload, site=site, mappings=rows, placements=placements, iteration=parts)
