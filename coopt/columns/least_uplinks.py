"""The least uplinks with which some mapping is in time, on many networks at once.

Time never rises with uplinks, so that all networks are bisected together.
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
    """Mappings with placements that could meet the bound, in the order of their sites.

    `site` counts within the sites. The largest of `pieces` is the iteration time; `groups` say
    where the groups lie, and `ways` how their collectives may run. `outermost` says which orders of
    ranks the workload allows beside that of `groups`.
    """

    bound_s: float
    site: Ints
    pieces: Pieces
    algorithms: Algorithms
    groups: Groups
    outermost: tuple[str, ...] = ("pp",)

    def times_s(self, rows: Ints, s_byte: Reciprocals) -> Floats:
        """Iteration times of some rows, whose kinds of traffic see so many seconds per byte."""
        return np.asarray(self.pieces.take(rows).at(self.algorithms.take(rows).charged(s_byte)))

    def in_time_alone(self, byte_s: float) -> Bools:
        """Rows that are in time where a GPU has so much to itself (bytes/s); on a network it never
        has more.
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
        """The groups that differ, and which of them each row has."""
        columns, position = distinct_rows(*self.groups)
        return Groups(*columns), position

    def take(self, rows: Ints) -> Rows:
        """The chosen rows."""
        return replace(
            self,
            site=self.site[rows],
            pieces=self.pieces.take(rows),
            algorithms=self.algorithms.take(rows),
            groups=self.groups.take(rows),
        )


def layout_numbers(layout: NicLayout) -> tuple[Ints, ...]:
    """The fields of layouts as whole numbers; those that need not be, by the place they have among
    all.
    """
    columns = {name: np.asarray(value) for name, value in vars(layout).items()}
    for name in ("ratio", "pod_up"):
        columns[name] = np.unique(columns[name], return_inverse=True)[1].reshape(-1)
    del columns["room"]  # nothing is lost here
    return tuple(columns.values())


@dataclass(frozen=True, kw_only=True, eq=False)
class Trials:
    """Rows tried on networks: pairs sorted by `view`, of which each has what a GPU moves
    (bytes/s).

    `load` is the place in `loads` of what a pair puts on links, on the network `load_view`.
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
        """Trials on views, of which each has a layout; pairs that load links alike share a load."""
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
        """Whether pairs are in time with so many uplinks in each view, some kinds of traffic at the
        rate of a NIC.
        """
        return np.asarray(self.times_s(uplinks, pairs, unslowed) <= self.rows.bound_s)

    def times_s(self, uplinks: Ints, pairs: Ints, unslowed: Sequence[str] = ()) -> Floats:
        """Iteration times of pairs, as `in_time` has them."""
        views = self.load_view
        r = self.loads.reciprocals(self.byte_s[views], uplinks[views])
        unslowed_s_byte: dict[str, Any] = dict.fromkeys(unslowed, 1.0 / self.byte_s[views])
        s_byte = replace(r, **unslowed_s_byte).mapped(lambda seconds: seconds[self.load[pairs]])
        return self.rows.times_s(self.row[pairs], s_byte)

    def enough_uplinks(self) -> Ints:
        """Uplinks from which on more make nothing faster, in each view."""
        enough = np.ones(len(self.byte_s), dtype=np.int64)
        np.maximum.at(enough, self.load_view, self.loads.enough_uplinks())
        return enough

    def least_uplinks(self, limit: Ints) -> Ints:
        """The least uplinks, up to `limit`, with which a row of each view is in time; 0 where none
        is.

        What the fastest row of a view needs is found first: few of the others are in time with
        less.
        """
        pairs = np.arange(len(self.row))
        times_s = self.times_s(limit, pairs)
        pairs, times_s = pairs[times_s <= self.rows.bound_s], times_s[times_s <= self.rows.bound_s]
        fastest_pairs = pairs[_fastest(self.view[pairs], times_s)]
        uplinks = self._bisected(np.ones_like(limit), limit, fastest_pairs)
        goal = np.maximum(uplinks - 1, 1)
        pairs = pairs[(uplinks > 1)[self.view[pairs]]]
        fewer = self._bisected(np.ones_like(limit), goal, pairs[self.in_time(goal, pairs)])
        return np.where(fewer > 0, fewer, uplinks)

    def fastest_rows(self, uplinks: Ints) -> Ints:
        """The fastest row of each view that has any, at so many uplinks."""
        return self.row[_fastest(self.view, self.times_s(uplinks, np.arange(len(self.row))))]

    def _bisected(self, low: Ints, high: Ints, pairs: Ints) -> Ints:
        """The least uplinks from `low` on with which one of some pairs of each view is in time, as
        all are at `high`; 0 in views without pairs.
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
    """The first of the fastest pairs of each view; pairs are sorted by view."""
    if not len(view):
        return view
    begins = np.flatnonzero(np.diff(view, prepend=-1))
    least_s = np.repeat(np.minimum.reduceat(times_s, begins), np.diff(begins, append=len(view)))
    is_least = np.flatnonzero(times_s == least_s)
    return is_least[np.diff(view[is_least], prepend=-1) > 0]
