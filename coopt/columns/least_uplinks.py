"""Minimum number of uplinks with which some mapping meets its bound, for many networks at once.

Time never rises with uplinks, so all networks are bisected simultaneously.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from coopt.columns.flows import Groups
from coopt.columns.layouts import NicLayout
from coopt.columns.loads import Crossings, crossings
from coopt.instance.network import Discipline
from coopt.perf.affine import Algorithms, Pieces, Reciprocals
from coopt.perf.mapping import Bools, Floats, Ints, distinct_rows, representatives


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Placed mappings that could meet the bound, ordered by site.

    `site` is the index of the site. The maximum of `pieces` is the iteration time; `groups` locates
    the groups of ranks, and `algorithms` are those available to their collectives. `outermost`
    lists the orders of ranks that the workload allows.
    """

    bound_s: float
    site: Ints
    pieces: Pieces
    algorithms: Algorithms
    groups: Groups
    outermost: tuple[str, ...] = ("pp",)

    def times_s(self, rows: Ints, s_byte: Reciprocals) -> Floats:
        """Iteration times (s) of some rows at given seconds per byte."""
        return np.asarray(self.pieces.take(rows).at(self.algorithms.take(rows).charged(s_byte)))

    def in_time_alone(self, byte_s: float) -> Bools:
        """Whether rows meet their bound where each GPU has this bandwidth to itself (bytes/s); a
        network never offers more.
        """
        if byte_s not in self._in_time_alone:
            r = Reciprocals.everywhere(np.full(len(self.site), 1.0 / byte_s))
            self._in_time_alone[byte_s] = self.times_s(np.arange(len(self.site)), r) <= self.bound_s
        return self._in_time_alone[byte_s]

    @cached_property
    def _in_time_alone(self) -> dict[float, Bools]:
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
        unslowed_s_byte: dict[str, Any] = dict.fromkeys(unslowed, 1.0 / self.byte_s[views])
        s_byte = replace(r, **unslowed_s_byte).mapped(lambda seconds: seconds[self.load[pairs]])
        return self.rows.times_s(self.row[pairs], s_byte)

    def all_times_s(self, uplinks: Ints) -> Floats:
        """Iteration times (s) of all pairs with that many uplinks per view."""
        k, n = len(self.byte_s), len(self.rows.site)
        if len(self.row) != k * n:
            return self.times_s(uplinks, np.arange(len(self.row)))
        # every row is tried on every view, so that no row is copied for each of them
        r = self.loads.reciprocals(self.byte_s[self.load_view], uplinks[self.load_view])
        s_byte = r.mapped(lambda seconds: seconds[self.load].reshape(k, n))
        times_s = self.rows.pieces.at(self.rows.algorithms.charged(s_byte))
        return np.broadcast_to(times_s, (k, n)).ravel()

    def enough_uplinks(self) -> Ints:
        """Number of uplinks in each view beyond which more uplinks make nothing faster."""
        enough = np.ones(len(self.byte_s), dtype=np.int64)
        np.maximum.at(enough, self.load_view, self.loads.enough_uplinks())
        return enough

    def least_uplinks(self, limit: Ints) -> Ints:
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
    least_s = np.repeat(np.minimum.reduceat(times_s, begins), np.diff(begins, append=len(view)))
    is_least = np.flatnonzero(times_s == least_s)
    return is_least[np.diff(view[is_least], prepend=-1) > 0]
