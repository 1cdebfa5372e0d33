r"""Candidate mappings of a workload on one kind of HB domain, without dominated ones: rows that
another row beats in every column, and options of a workload.

For every removed option another option of the same workload is kept that is never worse, whatever
the other workloads choose.

Options of a workload are coupled to the rest by what they use: limited resources, ports of a shared
core, products of which few may be in use, and the quantity of each product, whose bill :math:`B_p`
depends on the total over workloads. For any totals :math:`q' \le q` and prices as in
`formulations.choice_data.Product`,

.. math:: \underline{s}_p (q - q') \le B_p(q) - B_p(q') \le \overline{s}_p (q - q')

with :math:`\overline{s}_p` the first price, and :math:`\underline{s}_p` the last one of an
incremental discount, or 0 for an all-units discount: a bill is the minimum of functions with slopes
between these, and continuous.

Option a **dominates** b of the same workload when

1. it uses no more of each resource and of the core, and adds no more to the objective besides
   capex;
2. each product that it uses of a kind with a limit is used by b as well;
3. its capex is no larger for any totals of the others:

   .. math:: k_a - k_b
       + \sum_{p} \overline{s}_p (q_{ap} - q_{bp})^+ - \underline{s}_p (q_{bp} - q_{ap})^+ \le 0

**Optima are kept.** In a solution with b, replace b by a. By 1 every limit holds, and the core
needs no more switches, so neither its bill nor its use grows. By 2 no kind has a further product in
use. By 3 the sum of the bills of all products and :math:`k` does not grow, so the budget holds;
with 1 and a non-negative weight of capex the objective does not grow. Fewer units of every product
at no more capex besides them are the simplest case of 3. The relation is transitive, as increments
of bills add up: what is removed is therefore dominated by something kept, and repeating the
argument for each workload leads to a solution of kept options that costs no more.

Spare units matter: where an all-units discount may not be obtained by buying more than needed,
bills fall at thresholds, :math:`\underline{s}_p` is negative without bound and an option with fewer
units dominates nothing.

Minimum number of uplinks with which some mapping meets its bound, for many networks at once.

Time never rises with uplinks, so all networks are bisected simultaneously.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from coopt.columns.feasible import FeasibleMappings, keep, possibly_in_time, recalled
from coopt.columns.flows import Groups, NicLayout, stacked
from coopt.columns.grid import Context, DomainSet, degrees, groups_of, placed_on
from coopt.columns.loads import Crossings, crossings
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.network import Discipline
from coopt.instance.workload import Workload
from coopt.network.family import SlowTime
from coopt.perf.collectives import AffineSeconds, Algorithms, Pieces, Reciprocals
from coopt.perf.iterations import Iteration, iteration
from coopt.perf.mapping import (
    STAGES_APART,
    STAGES_TOGETHER,
    Bools,
    Floats,
    Ints,
    Mappings,
    Placements,
    distinct_rows,
    representatives,
)

ROUNDS = 40  # any number is exact, since undecided rows are kept

MOST_PLACED = 1 << 11  # rows of a site that are kept for shorter bounds, of some 600 bytes each

PAIRS = 1 << 18  # pairs of options compared at once, so that tables stay small


def undominated(values: Floats, *classes: Ints, rounds: int = ROUNDS) -> Bools:
    """Return which rows to keep: every dropped row is dominated by a kept row of its class.

    A sieve that never drops an undominated row but may keep dominated ones: each round keeps the
    undecided row with the smallest sum in every class and drops the rows that it dominates; rows
    undecided after the last round are kept.

    Parameters
    ----------
    values
        Shape (n, k); smaller is better in every column.
    classes
        Columns of shape (n,); only rows equal in all of them are compared.
    rounds
        Number of rounds.
    """
    keep = np.ones(len(values), dtype=np.bool_)
    if not len(values):
        return keep
    # a dominating row has no larger sum, so the row with the smallest sum of its class is
    # dominated by equal rows only
    scale = values.max(axis=0)
    sums = (values / np.where(scale > 0, scale, 1.0)).sum(axis=1)
    _, position = distinct_rows(*classes)
    undecided = np.lexsort((sums, position))
    for _ in range(rounds):
        if not len(undecided):
            break
        begins = np.diff(position[undecided], prepend=-1) > 0
        leaders = undecided[begins][np.cumsum(begins) - 1]
        beaten = (values[undecided] >= values[leaders]).all(axis=1)
        keep[undecided[beaten & ~begins]] = False
        undecided = undecided[~beaten]
    return keep


@dataclass(frozen=True, kw_only=True)
class Slopes:
    """Minimum and maximum increase of the bill of each product per unit (USD); shape (P,) each."""

    min_usd: Floats
    max_usd: Floats


def needed_options(
    usd: Floats, uses: Floats, quantity: Floats, joins: Bools, slopes: Slopes
) -> Ints:
    """Return the positions of options of one workload that together dominate all others, in the
    order given.

    Options are processed in rising order of their capex at the highest prices: no later option
    dominates an earlier one, except for ties, of which more than needed may be kept.

    Parameters
    ----------
    usd
        Capex besides the products (n,).
    uses
        Everything that must not grow: objective besides capex, resources, core ports (n, r).
    quantity
        Units of each product (n, P).
    joins
        Whether each option uses each product of a limited kind (n, products of limited kinds).
    """
    remaining = np.lexsort((uses.sum(axis=1), usd + quantity @ slopes.max_usd))
    products = np.flatnonzero(quantity.any(axis=0))
    units, min_usd, max_usd = (
        quantity.T[products],
        slopes.min_usd[products],
        slopes.max_usd[products],
    )
    needed, size = list[int](), 1
    while len(remaining):
        # where few options are needed the first ones drop most others; where many are, more and
        # more are compared at once
        heads = remaining[:size]
        dominates = _at_most(uses[heads], uses[remaining]) & _within(joins[heads], joins[remaining])
        number, place = np.nonzero(dominates)
        head, option = heads[number], remaining[place]
        extra_units = units[:, head] - units[:, option]
        unit_usd = np.where(extra_units > 0, max_usd[:, None], min_usd[:, None])
        dominates[number, place] = (
            usd[head] - usd[option] + (unit_usd * extra_units).sum(axis=0) <= 0
        )
        beaten = np.zeros(len(remaining), dtype=np.bool_)
        for head_number, head_dominates in enumerate(dominates):
            if not beaten[head_number]:
                beaten |= head_dominates
                needed.append(int(heads[head_number]))
        remaining = remaining[size:][~beaten[size:]]
        size = max(1, min(2 * size, PAIRS // max(1, len(remaining))))
    return np.sort(np.array(needed, dtype=np.int64))


def beaten_options(
    rivals: tuple[Floats, Floats, Bools],
    options: tuple[Floats, Floats, Bools],
    slopes: Slopes,
    *,
    cheaper: bool = False,
) -> Bools:
    """Return which options are dominated by a kept rival; both are (uses, quantity, joins), without
    capex besides products.

    A lower bound on what an option uses may stand for it: a larger quantity only lowers the left
    side of condition 3.

    Parameters
    ----------
    cheaper
        Whether the left side of condition 3 must be below 0.
    """
    rival_uses, rival_units, rival_joins = rivals
    uses, quantity, joins = options
    beaten = np.zeros(len(uses), dtype=np.bool_)
    start = 0
    while start < len(rival_uses) and not beaten.all():
        unbeaten = np.flatnonzero(~beaten)
        batch = slice(start, start + max(1, PAIRS // len(unbeaten)))
        maybe = _at_most(rival_uses[batch], uses[unbeaten]) & _within(
            rival_joins[batch], joins[unbeaten]
        )
        rival, option = np.nonzero(maybe)
        extra_units = rival_units[batch][rival] - quantity[unbeaten[option]]
        rise = np.where(
            extra_units > 0, slopes.max_usd * extra_units, slopes.min_usd * extra_units
        ).sum(axis=1)
        beaten[unbeaten[option[rise < 0 if cheaper else rise <= 0]]] = True
        start = batch.stop
    return beaten


def _at_most(rivals: Floats, options: Floats) -> Bools:
    """For each pair of rival and option: whether the rival is at most as large in every column."""
    no_larger = np.ones((len(rivals), len(options)), dtype=np.bool_)
    for rival_column, option_column in zip(rivals.T, options.T, strict=True):
        no_larger &= rival_column[:, None] <= option_column
    return no_larger


def _within(rivals: Bools, options: Bools) -> Bools:
    """For each pair of rival and option: whether the option has every column that the rival has."""
    within = np.ones((len(rivals), len(options)), dtype=np.bool_)
    for rival_column, option_column in zip(
        np.packbits(rivals, axis=1).T, np.packbits(~options, axis=1).T, strict=True
    ):
        within &= (rival_column[:, None] & option_column) == 0
    return within


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Placed mappings that could meet the bound, ordered by site.

    `site` is the index of the site. The maximum of `pieces` is the iteration time; `groups` locates
    the groups of ranks, and `algorithms` are those available to their collectives.
    `to_nics_s_byte` is the least that a byte to or from NICs takes (s). `outermost` lists the
    orders of ranks that the workload allows.
    """

    bound_s: float
    site: Ints
    pieces: Pieces
    algorithms: Algorithms
    groups: Groups
    to_nics_s_byte: Floats
    outermost: tuple[str, ...] = ("pp",)

    def times_s(self, rows: Ints, s_byte: Reciprocals) -> Floats:
        """Iteration times (s) of some rows at given seconds per byte."""
        algorithms, to_nics_s_byte = self.algorithms.take(rows), self.to_nics_s_byte[rows]
        return self.pieces.take(rows).slowest(
            s_byte, lambda r: algorithms.charged(r.at_least(to_nics_s_byte))
        )

    def charged(self, r: Reciprocals) -> Reciprocals:
        """Return the seconds per byte charged to all rows where the network offers r."""
        return self.algorithms.charged(r.at_least(self.to_nics_s_byte))

    def in_time_alone(self, byte_s: float) -> Bools:
        """Whether rows meet their bound where each GPU has this bandwidth to itself (bytes/s); a
        network never offers more.
        """
        return self.alone_s(byte_s) <= self.bound_s

    def alone_s(self, byte_s: float) -> Floats:
        """Iteration time of every row (s) where all traffic between domains has this rate; shape
        (n,), cached per rate.
        """
        rates = np.full(len(self.site), 1.0 / byte_s)
        return recalled(
            self._alone_s,
            byte_s,
            lambda: self.pieces.at(self.charged(Reciprocals.everywhere(rates))),
        )

    @cached_property
    def _alone_s(self) -> dict[float, Floats]:
        return {}

    def within(self, bound_s: float, byte_s: float) -> Rows:
        """Return the rows that meet a shorter bound where each GPU has this bandwidth to itself;
        the same ones for the same figures.
        """

        def make() -> Rows:
            hurried = replace(self, bound_s=bound_s)
            return hurried.take(np.flatnonzero(hurried.in_time_alone(byte_s)))

        return recalled(self._within, (bound_s, byte_s), make)

    @cached_property
    def _within(self) -> dict[tuple[float, float], Rows]:
        return {}

    @cached_property
    def minimum_uplinks(self) -> dict[bytes, int]:
        """Cache of the minimum number of uplinks, by site and network."""
        return {}

    @cached_property
    def distinct_groups(self) -> tuple[Groups, Ints]:
        """The distinct groups, and the index of each row's groups among them."""
        columns, position = distinct_rows(*self.groups)
        return Groups(*columns), position

    def take(self, rows: Ints) -> Rows:
        """Select rows."""
        return replace(
            self,
            site=self.site[rows],
            pieces=self.pieces.take(rows),
            algorithms=self.algorithms.take(rows),
            groups=self.groups.take(rows),
            to_nics_s_byte=self.to_nics_s_byte[rows],
        )


def layout_numbers(layout: NicLayout) -> tuple[Ints, ...]:
    """Return the fields of layouts as integers; fields that need not be integers are replaced by
    their rank.
    """
    columns = {name: np.asarray(value) for name, value in vars(layout).items()}
    for name in ("ratio", "pod_up"):
        columns[name] = np.unique(columns[name], return_inverse=True)[1].reshape(-1)
    del columns["room"]  # nothing is lost here
    return tuple(columns.values())


@dataclass(frozen=True, kw_only=True, eq=False)
class Trials:
    """Rows tried on networks ("views"): pairs sorted by `view`, with the bandwidth of a GPU in each
    view (bytes/s).

    `load` is the index in `loads` of the link loads of a pair, which belong to view `load_view`.
    """

    rows: Rows
    row: Ints
    view: Ints
    byte_s: Floats
    loads: Crossings
    load: Ints
    load_view: Ints

    @classmethod
    def of(
        cls,
        rows: Rows,
        row: Ints,
        view: Ints,
        *,
        layout: NicLayout,
        byte_s: Floats,
        discipline: Discipline,
    ) -> Trials:
        """Build trials on views with a layout each; pairs with equal link loads share them."""
        distinct_groups, place = rows.distinct_groups
        (pair_groups, load_view), load = distinct_rows(place[row], view)
        # views that differ in rates are loaded alike
        layout_views, layout_number = representatives(*layout_numbers(layout))
        (group, group_layout), number = distinct_rows(pair_groups, layout_number[load_view])
        layouts, groups = layout.take(layout_views[group_layout]), distinct_groups.take(group)
        loads = crossings(layouts, discipline, groups, rows.pieces.kinds, rows.algorithms.flows)
        return cls(
            rows=rows,
            row=row,
            view=view,
            byte_s=byte_s,
            loads=loads.take(number),
            load=load,
            load_view=load_view,
        )

    def in_time(self, uplinks: Ints, pairs: Ints, unslowed: Sequence[str] = ()) -> Bools:
        """Whether pairs meet the bound with that many uplinks per view, with the kinds in
        `unslowed` at the full NIC rate.
        """
        return np.asarray(self.times_s(uplinks, pairs, unslowed) <= self.rows.bound_s)

    def times_s(self, uplinks: Ints, pairs: Ints, unslowed: Sequence[str] = ()) -> Floats:
        """Iteration times (s) of pairs; the parameters are those of `in_time`."""
        views = self.load_view
        r = self.loads.reciprocals(self.byte_s[views], uplinks[views])
        r = r.at_rate(1.0 / self.byte_s[views], unslowed)
        s_byte = r.mapped(lambda seconds: seconds[self.load[pairs]])
        return self.rows.times_s(self.row[pairs], s_byte)

    def all_times_s(self, uplinks: Ints) -> Floats:
        """Iteration times (s) of all pairs with that many uplinks per view."""
        k, n = len(self.byte_s), len(self.rows.site)
        if len(self.row) != k * n:
            return self.times_s(uplinks, np.arange(len(self.row)))
        # every row is tried on every view, so that no row is copied for each of them
        r = self.loads.reciprocals(self.byte_s[self.load_view], uplinks[self.load_view])
        s_byte = r.mapped(lambda seconds: seconds[self.load].reshape(k, n))
        times_s = self.rows.pieces.slowest(s_byte, self.rows.charged)
        return np.broadcast_to(times_s, (k, n)).ravel()

    def enough_uplinks(self) -> Ints:
        """Number of uplinks in each view beyond which more uplinks make nothing faster."""
        enough = np.ones(len(self.byte_s), dtype=np.int64)
        np.maximum.at(enough, self.load_view, self.loads.enough_uplinks())
        return enough

    def minimum_uplinks(self, limit: Ints) -> Ints:
        """Minimum number of uplinks, up to `limit`, with which some row of each view meets its
        bound; 0 if none does.

        The number that the fastest row of a view needs is found first: few other rows meet the
        bound with less.
        """
        pairs = np.arange(len(self.row))
        times_s = self.all_times_s(limit)
        pairs, times_s = pairs[times_s <= self.rows.bound_s], times_s[times_s <= self.rows.bound_s]
        fastest_pairs = pairs[_fastest(self.view[pairs], times_s)]
        uplinks = self._bisected(np.ones_like(limit), limit, fastest_pairs)
        goal = np.maximum(uplinks - 1, 1)
        early = self.all_times_s(goal) <= self.rows.bound_s
        fewer = self._bisected(
            np.ones_like(limit), goal, np.flatnonzero(early & (uplinks > 1)[self.view])
        )
        return np.where(fewer > 0, fewer, uplinks)

    def fastest_rows(self, uplinks: Ints) -> Ints:
        """Return the fastest row of each non-empty view with that many uplinks."""
        return self.row[_fastest(self.view, self.all_times_s(uplinks))]

    def _bisected(self, low: Ints, high: Ints, pairs: Ints) -> Ints:
        """Minimum number of uplinks from `low` on with which one of the pairs of each view meets
        its bound; 0 in views without pairs.

        All pairs must meet their bound at `high`.
        """
        view, views = self.view, np.unique(self.view[pairs])
        while len(pairs) and (low < high)[view[pairs]].any():
            probe = (low + high) // 2
            quick = self.in_time(probe, pairs)
            enough = np.zeros(len(high), dtype=np.bool_)
            enough[view[pairs[quick]]] = True
            low, high = (
                np.where(enough, low, np.minimum(probe + 1, high)),
                np.where(enough, probe, high),
            )
            pairs = pairs[
                quick | ~enough[view[pairs]]
            ]  # what is late there is late with fewer uplinks as well
        uplinks = np.zeros_like(high)
        uplinks[views] = high[views]
        return uplinks


def _fastest(view: Ints, times_s: Floats) -> Ints:
    """Return the first of the fastest pairs of each view; pairs are sorted by view."""
    if not len(view):
        return view
    begins = np.flatnonzero(np.diff(view, prepend=-1))
    min_s = np.repeat(np.minimum.reduceat(times_s, begins), np.diff(begins, append=len(view)))
    is_least = np.flatnonzero(times_s == min_s)
    return is_least[np.diff(view[is_least], prepend=-1) > 0]


ENTRIES = 1 << 17  # pairs of groups and networks evaluated at once, so that tables stay small


class MinimumUplinks(NamedTuple):
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
        return self._mean_s(
            context.slow_times, lambda slower: self._slower_s(context, uplinks, slower)
        )

    def _mean_s(
        self, slow_times: tuple[SlowTime, ...], slower_s: Callable[[float], Floats]
    ) -> Floats:
        whole_s = slower_s(1.0)
        if not slow_times or not self.workload.calendar:
            return whole_s
        per_second = (1.0 - sum(share for share, _ in slow_times)) / whole_s
        for share, slower in slow_times:
            if math.isfinite(slower):
                per_second = per_second + share / slower_s(slower)
        return np.divide(1.0, per_second, out=np.full_like(whole_s, np.inf), where=per_second > 0.0)

    def _slower_s(self, context: Context, uplinks: int | Ints, slower: float) -> Floats:
        r = self.reciprocals(context, uplinks, slower)
        shape = np.broadcast_shapes(np.shape(uplinks), (len(self),))
        return np.broadcast_to(self.pieces.slowest(r, self.charged), shape)

    def fastest_s(self, choices: Mapping[Context, Ints]) -> Iterator[tuple[Context, Floats]]:
        """Mean time of the fastest row (s) for numbers of uplinks of networks with a common rate
        and discipline, many networks at once; the pool has rows.
        """
        width = max(len(self.distinct_groups[0].tp), len(self))
        alike: dict[tuple[SlowTime, ...], list[Context]] = {}
        for context, uplinks in choices.items():
            if context.layout.is_flat:
                yield context, self.mean_s(context, uplinks[:, None]).min(axis=1)
            else:
                alike.setdefault(context.slow_times, []).append(context)
        for contexts in alike.values():
            ends = np.cumsum([len(choices[context]) for context in contexts])
            starts = np.flatnonzero(np.diff(ends * width // ENTRIES)) + 1
            for batch in np.split(np.arange(len(contexts)), starts):
                some = [contexts[n] for n in batch.tolist()]
                times = self._fastest_of_all_s(some, [choices[context] for context in some])
                yield from zip(some, times, strict=True)

    def _fastest_of_all_s(
        self, contexts: Sequence[Context], uplinks: Sequence[Ints]
    ) -> list[Floats]:
        groups, position = self.distinct_groups
        m, first, counts = len(groups.tp), contexts[0], list(map(len, uplinks))
        layouts = {layout: n for n, layout in enumerate({one.layout: None for one in contexts})}
        network = np.repeat([layouts[context.layout] for context in contexts], counts)
        loads = self.stacked(list(layouts), first.discipline)
        loads = loads.take((network[:, None] * m + np.arange(m)).ravel())
        row_uplinks = np.repeat(np.concatenate(uplinks), m)

        def slower_s(slower: float) -> Floats:
            r = loads.reciprocals(first.byte_s / slower, row_uplinks)
            s_byte = r.mapped(lambda seconds: seconds.reshape(-1, m)[:, position])
            return self.pieces.slowest(s_byte, self.charged)

        fastest_s = self._mean_s(first.slow_times, slower_s).min(axis=1)
        return np.split(fastest_s, np.cumsum(counts)[:-1])

    def contention_free_s(self, byte_s: float) -> Floats:
        """Iteration time of every row (s) where all traffic between domains has this rate; shape
        (n,), cached per rate.
        """
        return self.rows.alone_s(byte_s)

    def of(self, workload: Workload) -> Pool:
        """Return the pool of a workload with an equal bound; the same one, with all that was worked
        out on it, where it is the same workload.
        """
        return self if workload == self.workload else replace(self, workload=workload)

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
            to_nics_s_byte=np.full(len(self), self.iteration.to_nics_s_byte),
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
    def minimum_s(self) -> dict[tuple[Context, bytes], Floats]:
        """Cache of the time of the fastest row (s), by network and numbers of uplinks."""
        return {}

    @cached_property
    def minimum_uplinks(self) -> dict[Context, MinimumUplinks | None]:
        """Cache of the minimum number of uplinks of networks; None where no row meets its bound."""
        return {}

    def charged(self, r: Reciprocals) -> Reciprocals:
        """Return the seconds per byte charged to pieces where the network offers r."""
        return self.iteration.charged(r)

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

    def make() -> tuple[Pool, Counter[str]]:
        timely_rows, gated = in_time(source, gpu, hb, site, best_case)
        survivors, dominated = undominated_rows(timely_rows, best_case.discipline)
        gated["dominated"] += dominated
        return survivors, gated

    key = source.workload.bound_s, site, hb.rates, best_case.byte_s, best_case.discipline
    return source.recall(key, make)


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
    quick, gated = quick_rows(source, site)
    timely_rows = _placed_in_time(source, gpu, hb, site, best_case, quick)
    _, placement_counts = source.counts_on(site)
    gated["communication"] = int(placement_counts[quick].sum()) - len(timely_rows)
    return timely_rows, gated


class _PlacedRows(NamedTuple):
    """Rows that meet a bound on the best network of a bandwidth, among which are all that meet a
    shorter one or have less of it.
    """

    bound_s: float
    byte_s: float
    rows: Pool


def _placed_in_time(
    source: FeasibleMappings,
    gpu: Gpu,
    hb: HbDomain,
    site: DomainSet,
    best_case: Context,
    quick: Bools,
) -> Pool:
    bound_s, key = source.workload.bound_s, (site, hb.rates)
    known: _PlacedRows | None = source.placed.get(key)
    if known and bound_s <= known.bound_s and best_case.byte_s <= known.byte_s:
        return _in_time(replace(known.rows, workload=source.workload), best_case)
    may_meet = quick & (source.lower_bound_s(gpu, hb.gbyte_s, best_case.byte_s) <= bound_s)
    rows = meeting(source, gpu, hb, site, best_case, np.flatnonzero(may_meet))
    if len(rows) <= MOST_PLACED:
        keep(source.placed, key, _PlacedRows(bound_s, best_case.byte_s, rows))
    return rows


def meeting(
    source: FeasibleMappings, gpu: Gpu, hb: HbDomain, site: DomainSet, best_case: Context, fit: Ints
) -> Pool:
    """Return all placements of some feasible mappings that meet their bound on the best network."""
    return _in_time(place(source.workload, gpu, hb, site, source.fit.take(fit)), best_case)


def _in_time(placed_rows: Pool, best_case: Context) -> Pool:
    """Return the rows that meet their bound on the best network."""
    # nothing leaves a leaf of the best case, so that the number of uplinks does not matter
    meets = np.flatnonzero(placed_rows.time_s(best_case, 1) <= placed_rows.workload.bound_s)
    return placed_rows if len(meets) == len(placed_rows) else placed_rows.take(meets)


def promising(
    source: FeasibleMappings, gpu: Gpu, hb: HbDomain, site: DomainSet
) -> tuple[Pool, Counter[str]]:
    """Return the feasible rows whose compute alone meets their bound, and the number of dropped
    rows by cause.
    """
    quick, gated = quick_rows(source, site)
    return place(source.workload, gpu, hb, site, source.fit.take(quick)), gated


def quick_rows(source: FeasibleMappings, site: DomainSet) -> tuple[Bools, Counter[str]]:
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
    parts = iteration(
        workload, gpu, hb.gbyte_s, rows, placements, to_nics_gbyte_s=hb.to_nics_gbyte_s
    )
    return Pool(workload=workload, site=site, mappings=rows, placements=placements, iteration=parts)
