"""The mappings of a workload that are worth looking at on one kind of HB domain."""

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

ENTRIES = 1 << 17  # groups on networks that are looked at once, so that tables stay small


class LeastUplinks(NamedTuple):
    """The least uplinks of a leaf with which any row is in time, 0 where leaves have none, and the
    fastest row then.
    """

    row: int
    uplinks: int


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Mappings with placements, one row each, and their iteration open in the network's
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
        """Iteration time of every row on a network of that context with u uplinks; shape (n,), or
        (k, n) for k of them in shape (k, 1).

        Summed from the coefficients that rows are compared by, so that no row is late by rounding
        where one that it replaced was in time, nor with more bandwidth where it was in time with
        less.
        """
        return self._slower_s(context, uplinks, 1.0)

    def mean_s(self, context: Context, uplinks: int | Ints) -> Floats:
        """Iteration time of every row as `time_s` has it, the mean where for some of the time a
        port of a NIC is out.

        What is done in a second is a mean of what is done with all ports and without. A bound on
        iterations themselves is one with all ports.
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
        """Iteration time of every row (n,) where all traffic between domains has that rate; kept
        for each rate.
        """
        if byte_s not in self._contention_free_s:
            r = self.charged(Reciprocals.everywhere(np.full(len(self), 1.0 / byte_s)))
            self._contention_free_s[byte_s] = self.pieces.at(r)
        return self._contention_free_s[byte_s]

    def take(self, rows: Ints) -> Pool:
        """The chosen rows."""
        mappings = self.mappings.take(rows)
        iteration = self.iteration.take(rows)
        if not (
            mappings.cp > 1
        ).any():  # what nobody exchanges is absent, so that it makes no piece of its own
            iteration = replace(iteration, cp=AffineSeconds(), cp_left=AffineSeconds())
        if not (mappings.ep > 1).any() and not iteration.ep_left.is_zero:
            iteration = replace(iteration, ep_left=AffineSeconds())
        return replace(
            self, mappings=mappings, placements=self.placements.take(rows), iteration=iteration
        )

    def coefficients(self) -> Floats:
        """The affine pieces of every row, without what is 0 in all, and what ways cost; shape (n,
        columns).
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
        """Where the groups of every row lie; rows alike in all see the same bandwidths."""
        return groups_of(self.workload, self.mappings, self.placements)

    @property
    def distinct_groups(self) -> tuple[Groups, Ints]:
        """The groups that differ, and which of them each row has."""
        return self.rows.distinct_groups

    @cached_property
    def rows(self) -> Rows:
        """What the least uplinks of networks are searched with."""
        return Rows(
            bound_s=self.workload.bound_s,
            site=np.zeros(len(self), dtype=np.int64),
            pieces=self.pieces,
            algorithms=self.iteration.algorithms,
            groups=self.groups,
        )

    def crossings(self, context: Context) -> Crossings:
        """What the groups that differ put on the links of a network."""
        if (context.layout, context.discipline) not in self._crossings:
            self.load([context])
        return self._crossings[context.layout, context.discipline]

    def load(self, contexts: Sequence[Context]) -> None:
        """Work out what rows put on the links of networks, some at a time; they share a
        discipline.
        """
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
        """What the groups that differ put on the links of layouts, for one layout after the
        other.
        """
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
        """The time of the fastest row by networks and numbers of uplinks, as far as it was asked
        for.
        """
        return {}

    @cached_property
    def least_uplinks(self) -> dict[Context, LeastUplinks | None]:
        """The least uplinks of networks with which any row is in time, None where no row ever is,
        as far as they were asked for.
        """
        return {}

    @cached_property
    def _contention_free_s(self) -> dict[float, Floats]:
        return {}

    def charged(self, r: Reciprocals) -> Reciprocals:
        """The seconds per byte that pieces are charged where the network gives rows r."""
        return self.iteration.algorithms.charged(r)

    def reciprocals(
        self, context: Context, uplinks: int | Ints, slower: float = 1.0
    ) -> Reciprocals:
        """Seconds per byte that the network gives every row; so many times as long where NICs are
        slower.
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
    """Place the fitting mappings on one kind of HB domain and keep those that can meet their bound.

    Parameters
    ----------
    best_case
        A network at least as fast as any other for this site: full bandwidth everywhere.

    Returns
    -------
    pool, gated
        The rows left, and how many were dropped by cause.
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
    """The rows that no other one replaces, in every order of ranks that is allowed, and how many
    were dropped.
    """
    keep = np.flatnonzero(undominated(rows.coefficients(), *rows.groups))
    return in_orders(rows.take(keep), discipline), len(rows) - len(keep)


def in_time(
    source: FeasibleMappings, gpu: Gpu, hb: HbDomain, site: DomainSet, best_case: Context
) -> tuple[Pool, Counter[str]]:
    """The rows that meet their bound on the best network, and how many were dropped by cause."""
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
    """Some of the mappings that fit, in all the places in which they meet their bound on the best
    network.
    """
    placed_rows = place(source.workload, gpu, hb, site, source.fit.take(fit))
    # nothing leaves a leaf of the best case, so that the number of uplinks does not matter
    meets = np.flatnonzero(placed_rows.time_s(best_case, 1) <= source.workload.bound_s)
    return placed_rows if len(meets) == len(placed_rows) else placed_rows.take(meets)


def promising(
    source: FeasibleMappings, gpu: Gpu, hb: HbDomain, site: DomainSet
) -> tuple[Pool, Counter[str]]:
    """The rows that fit and whose compute alone meets their bound, and how many were dropped by
    cause.
    """
    quick, gated = _quick(source, site)
    return place(source.workload, gpu, hb, site, source.fit.take(quick)), gated


def _quick(source: FeasibleMappings, site: DomainSet) -> tuple[Bools, Counter[str]]:
    """Which mappings that fit meet their bound by compute alone, and how many placements were
    dropped by cause.
    """
    dropped, placement_counts = source.counts_on(site)
    quick = source.fastest_s <= source.workload.bound_s
    gated = dropped.copy()
    gated["compute"] = int(placement_counts[~quick].sum())
    return quick, gated


def timely_pool(workload: Workload, gpu: Gpu, hb: HbDomain, context: Context) -> Pool:
    """Placed mappings on networks of a context: all that meet the bound on one of them, and some
    others.
    """
    quadruples = degrees(workload, context.site.gpus)
    timely_mappings = possibly_in_time(
        workload, gpu, quadruples, hb_gbyte_s=hb.gbyte_s, byte_s=context.byte_s
    )
    return in_orders(place(workload, gpu, hb, context.site, timely_mappings), context.discipline)


def place(workload: Workload, gpu: Gpu, hb: HbDomain, site: DomainSet, mappings: Mappings) -> Pool:
    """Every placement of the given mappings on one kind of HB domain, stages outermost; GPUs that
    share a NIC are of one stage.
    """
    rows, placements = placed_on(workload, mappings, site)
    return timed(workload, gpu, hb, site, mappings.take(rows), placements)


def in_orders(pool: Pool, discipline: Discipline) -> Pool:
    """Rows with stages outermost, then again those whose stages can lie side by side, as the
    workload allows.

    Their iterations differ in nothing but the links that they load, so that the ratio of a leaf has
    no use for it.
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
    """Mappings with their placements, and the iteration of each."""
    parts = iteration(workload, gpu, hb.gbyte_s, rows, placements)
    return Pool(workload=workload, site=site, mappings=rows, placements=placements, iteration=parts)
