"""The least uplinks with which a workload meets its bound, for many sites and networks at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from coopt.columns.context import groups_of
from coopt.columns.dominance import undominated
from coopt.columns.fittings import timely
from coopt.columns.flows import Groups
from coopt.columns.grid import placements_of
from coopt.columns.islands.shapes import Shapes, Sites
from coopt.columns.layouts import NicLayout
from coopt.columns.loads import MOST_UPLINKS, Crossings, crossings
from coopt.instance.hardware import Gpu
from coopt.instance.network import Discipline
from coopt.instance.schema import Network
from coopt.instance.workload import Workload
from coopt.network.family import next_even
from coopt.perf.affine import Reciprocals, Ways
from coopt.perf.iterations import iteration
from coopt.perf.mapping import (
    Bools,
    Floats,
    Ints,
    Mappings,
    Placements,
    distinct_rows,
    representatives,
)

HOPS = ("pp", "tied")  # what stages send each other
ROUNDS = 12  # of the sieve: few more are dropped after them
BLOCK = 32_768  # placements that are timed at once: more do not stay in the cache
ABOVE = 1 + 1e-9  # a bound on time with what sums in another order may differ by


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Mappings with placements that could meet the bound, in the order of their sites.

    `site` counts within the sites. `pieces` (pieces, 1 + kinds, n) are affine functions whose
    maximum is the iteration time, of the `kinds` of traffic that there are; `groups` say where the
    groups lie, and `ways` how their collectives may run. Groups lie with stages outermost;
    `outermost` says what the workload allows.
    """

    bound_s: float
    site: Ints
    kinds: tuple[str, ...]
    pieces: Floats
    ways: Ways
    groups: Groups
    outermost: tuple[str, ...] = ("pp",)

    def times_s(self, rows: Ints, s_byte: Reciprocals) -> Floats:
        """Iteration times of some rows, whose kinds of traffic see so many seconds per byte."""
        pieces = self.pieces[:, :, rows]
        r = self.ways.take(rows).charged(s_byte)
        s_byte_of_kinds = [getattr(r, kind) for kind in self.kinds]
        return np.asarray(
            sum((pieces[:, k + 1] * r for k, r in enumerate(s_byte_of_kinds)), pieces[:, 0]).max(
                axis=0
            )
        )

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

    def take(self, rows: Ints) -> Rows:
        """The chosen rows."""
        return replace(
            self,
            site=self.site[rows],
            pieces=self.pieces[:, :, rows],
            ways=self.ways.take(rows),
            groups=self.groups.take(rows),
        )


def fastest_byte_s(network: Network) -> float:
    """What a GPU gets of its NICs at most (bytes/s)."""
    return max(nic.gbit_s for nic in network.nics) * max(network.nics_per_gpu) * 1e9 / 8


def quick_mappings(
    workload: Workload, gpu: Gpu, network: Network, degrees: Ints, byte_s: float
) -> Mappings:
    """The mappings of some (t, c, p, d) that fit into memory and may meet the bound where a GPU has
    `byte_s`.
    """
    fastest_gbyte_s = max(hb.gbyte_s for hb in network.hb_domains)
    return timely(
        workload, gpu, map(tuple, degrees.tolist()), hb_gbyte_s=fastest_gbyte_s, byte_s=byte_s
    )


def rows_of(
    workload: Workload,
    gpu: Gpu,
    network: Network,
    sites: Sites,
    candidates: Mappings,
    byte_s: float,
) -> Rows:
    """The placements of mappings that meet the bound on each site where every GPU has `byte_s` to
    itself.
    """
    mappings, placements, site = _placements_on(candidates, sites, tp_across=not workload.tp_inside)
    hb_gbyte_s = np.array([hb.gbyte_s for hb in network.hb_domains], dtype=np.float64)
    if len(site) > BLOCK:
        near_rows = _nearly_in_time(
            workload, gpu, hb_gbyte_s[sites.hb[site]], mappings, placements, byte_s
        )
        mappings, placements, site = (
            mappings.take(near_rows),
            placements.take(near_rows),
            site[near_rows],
        )
    gbyte_s = hb_gbyte_s[sites.hb[site]]
    parts = iteration(workload, gpu, gbyte_s, mappings, placements)
    pieces = parts.pieces()
    rows = Rows(
        bound_s=workload.bound_s,
        site=site,
        kinds=pieces.kinds,
        pieces=pieces.coefficients,
        ways=parts.ways,
        groups=groups_of(workload, mappings, placements),
        outermost=workload.mapping.outermost,
    )
    quick = rows.take(np.flatnonzero(rows.in_time_alone(byte_s)))
    values = np.vstack([*quick.pieces, *quick.ways.costs])
    return quick.take(
        np.flatnonzero(undominated(values.T, quick.site, *quick.groups, rounds=ROUNDS))
    )


def _nearly_in_time(
    workload: Workload,
    gpu: Gpu,
    gbyte_s: Floats,
    mappings: Mappings,
    placements: Placements,
    byte_s: float,
) -> Ints:
    """The rows that meet the bound where every GPU has `byte_s` to itself, and those that rounding
    may bring there.
    """
    near_rows = []
    for start in range(0, len(mappings), BLOCK):
        block = np.arange(start, min(start + BLOCK, len(mappings)))
        parts = iteration(
            workload, gpu, gbyte_s[block], mappings.take(block), placements.take(block)
        )
        s_byte = Reciprocals.everywhere(np.full(len(block), 1.0 / byte_s))
        near_rows.append(block[parts.time_s(s_byte) <= workload.bound_s * ABOVE])
    return np.concatenate(near_rows)


def _placements_on(
    candidates: Mappings, sites: Sites, *, tp_across: bool
) -> tuple[Mappings, Placements, Ints]:
    """Every placement of every mapping on the sites of its size, and the site of each, in rising
    order.
    """
    gpus = candidates.tp * candidates.cp * candidates.pp * candidates.dp
    rows, inside, site_rows = (
        [np.zeros(0, dtype=np.int64)],
        [np.zeros((0, 4), dtype=np.int64)],
        [np.zeros(0, np.int64)],
    )
    possible = np.isin(sites.gpus, gpus)
    for active_gpus in np.unique(sites.active[possible]).tolist():
        active_sites = np.flatnonzero(possible & (sites.active == active_gpus))
        fitting_mappings = np.flatnonzero(np.isin(gpus, sites.gpus[active_sites]))
        mapping, placements = placements_of(
            candidates.take(fitting_mappings), active_gpus, tp_across=tp_across
        )
        table = np.stack([placements.tp, placements.cp, placements.pp, placements.dp], axis=1)
        mapping = fitting_mappings[mapping]
        for kind in np.unique(sites.hb[active_sites]).tolist():
            kind_sites = active_sites[sites.hb[active_sites] == kind]
            at = np.minimum(
                np.searchsorted(sites.gpus[kind_sites], gpus[mapping]), len(kind_sites) - 1
            )
            matches = sites.gpus[kind_sites][at] == gpus[mapping]
            rows.append(mapping[matches])
            inside.append(table[matches])
            site_rows.append(kind_sites[at[matches]])
    site = np.concatenate(site_rows)
    order = np.argsort(site, kind="stable")
    tp, cp, pp, dp = np.concatenate(inside)[order].T
    mappings = candidates.take(np.concatenate(rows)[order])
    return mappings, Placements(tp=tp, cp=cp, pp=pp, dp=dp), site[order]


def uplinks_needed(rows: Rows, shapes: Shapes, byte_s: Floats, discipline: Discipline) -> Ints:
    """The least uplinks each of the shapes needs, its least choice or more; -1 where none that it
    has is enough.

    Shapes that differ in nothing a mapping sees but their uplinks are looked at once.

    Parameters
    ----------
    byte_s
        What a GPU moves between domains with all uplinks, in each shape (bytes/s).
    """
    no_uplinks = np.full(len(shapes), -1)
    if not len(shapes) or not len(rows.site):
        return no_uplinks
    layout = shapes.layouts(discipline)
    rates, rate = np.unique(byte_s, return_inverse=True)
    rate = rate.reshape(-1)
    views, view = representatives(rate, shapes.site, *_numbers(layout))
    starts, ends = (
        np.searchsorted(rows.site, shapes.site[views], side=side) for side in ("left", "right")
    )
    of_view, row = _pairs(starts, ends)
    is_in_time = np.stack([rows.in_time_alone(byte_rate) for byte_rate in rates.tolist()])[
        rate[views][of_view], row
    ]
    of_view, row = of_view[is_in_time], row[is_in_time]
    # one search for a view covers the choices of all its shapes; each takes its own of them after
    # it
    fewest, most_uplinks = np.full(len(views), MOST_UPLINKS), np.ones(len(views), dtype=np.int64)
    np.minimum.at(fewest, view, shapes.fewest_uplinks)
    # a single tier has none, and needs none
    np.maximum.at(most_uplinks, view, np.where(shapes.down > 0, shapes.most_uplinks, 1))
    trials = Trials(
        rows=rows,
        row=row,
        view=of_view,
        layout=layout.take(views),
        byte_s=byte_s[views],
        discipline=discipline,
    )
    least_uplinks = _least_in_orders(trials, np.maximum(fewest, 1), most_uplinks)[view]
    uplinks = next_even(np.maximum(least_uplinks, shapes.fewest_uplinks), shapes.bundle)
    return np.where(
        (least_uplinks > 0) & (uplinks <= shapes.most_uplinks),
        uplinks,
        np.where((least_uplinks > 0) & (shapes.down == 0), 0, -1),
    )


def _numbers(layout: NicLayout) -> tuple[Ints, ...]:
    """The fields of layouts as whole numbers; those that need not be, by the place they have among
    all.
    """
    columns = {name: np.asarray(value) for name, value in vars(layout).items()}
    for name in ("ratio", "pod_up"):
        columns[name] = np.unique(columns[name], return_inverse=True)[1].reshape(-1)
    del columns["room"]  # nothing is lost here
    return tuple(columns.values())


def _pairs(starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Every i with each number from `starts[i]` up to `ends[i]`, the latter left out."""
    count = ends - starts
    number = np.repeat(np.arange(len(starts)), count)
    return number, np.arange(len(number)) - np.repeat(np.cumsum(count) - count - starts, count)


@dataclass(frozen=True, kw_only=True, eq=False)
class Trials:
    """Rows tried on networks: pairs sorted by `view`, of which each has a layout and what a GPU
    moves (bytes/s).
    """

    rows: Rows
    row: Ints
    view: Ints
    layout: NicLayout
    byte_s: Floats
    discipline: Discipline

    @cached_property
    def _distinct(self) -> tuple[Ints, Ints, Crossings]:
        """Of pairs that load links alike one stands for all: its number for each pair, their views,
        and their loads.
        """
        distinct_groups, place = distinct_rows(*self.rows.groups)
        (pair_groups, views), position = distinct_rows(place[self.row], self.view)
        layout_views, layout = representatives(
            *_numbers(self.layout)
        )  # views that differ in rates are loaded alike
        (group, group_layout), number = distinct_rows(pair_groups, layout[views])
        layouts, groups = (
            self.layout.take(layout_views[group_layout]),
            Groups(*distinct_groups).take(group),
        )
        loads = crossings(layouts, self.discipline, groups, self.rows.kinds, self.rows.ways.flows)
        return position, views, loads.take(number)

    def in_time(self, uplinks: Ints, pairs: Ints, unslowed: Sequence[str] = ()) -> Bools:
        """Whether pairs are in time with so many uplinks in each view, some kinds of traffic at the
        rate of a NIC.
        """
        return np.asarray(self.times_s(uplinks, pairs, unslowed) <= self.rows.bound_s)

    def times_s(self, uplinks: Ints, pairs: Ints, unslowed: Sequence[str] = ()) -> Floats:
        """Iteration times of pairs, as `in_time` has them."""
        position, views, loads = self._distinct
        r = loads.reciprocals(self.byte_s[views], uplinks[views])
        unslowed_s_byte: dict[str, Any] = dict.fromkeys(unslowed, 1.0 / self.byte_s[views])
        s_byte = replace(r, **unslowed_s_byte).mapped(lambda seconds: seconds[position[pairs]])
        return self.rows.times_s(self.row[pairs], s_byte)

    def enough_uplinks(self) -> Ints:
        """Uplinks from which on more make nothing faster, in each view."""
        _, views, loads = self._distinct
        enough = np.ones(len(self.byte_s), dtype=np.int64)
        np.maximum.at(enough, views, loads.enough_uplinks())
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
        order = np.lexsort((times_s, self.view[pairs]))
        fastest_pairs = pairs[order[np.unique(self.view[pairs][order], return_index=True)[1]]]
        uplinks = self._bisected(np.ones_like(limit), limit, fastest_pairs)
        goal = np.maximum(uplinks - 1, 1)
        pairs = pairs[(uplinks > 1)[self.view[pairs]]]
        fewer = self._bisected(np.ones_like(limit), goal, pairs[self.in_time(goal, pairs)])
        return np.where(fewer > 0, fewer, uplinks)

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


def _least_in_orders(stages_apart: Trials, fewest: Ints, limit: Ints) -> Ints:
    """The least uplinks with which a row of each view is in time, stages outermost or side by side;
    0 where none is.

    With stages side by side hops load links less, and nothing else does. So only what is in time
    with fewer uplinks than stages outermost need, from `fewest` to `limit`, while hops are not
    slowed at all, is tried that way.
    """
    rows, orders = stages_apart.rows, stages_apart.rows.outermost
    uplinks = (
        stages_apart.least_uplinks(stages_apart.enough_uplinks())
        if "pp" in orders
        else np.zeros_like(limit)
    )
    if "dp" not in orders or stages_apart.discipline.charge == "ratio":
        return uplinks
    goal = np.where(uplinks > 0, np.minimum(uplinks - 1, limit), limit)
    pairs = np.flatnonzero(
        (goal >= fewest)[stages_apart.view] & rows.groups.may_turn[stages_apart.row]
    )
    pairs = pairs[stages_apart.in_time(np.maximum(goal, 1), pairs, HOPS)]
    if not len(pairs):
        return uplinks
    groups = rows.groups._replace(
        step=rows.groups.stages, apart=rows.groups.apart * rows.groups.stages
    )
    stages_together = replace(
        stages_apart,
        rows=replace(rows, groups=groups),
        row=stages_apart.row[pairs],
        view=stages_apart.view[pairs],
    )
    fewer = stages_together.least_uplinks(np.maximum(goal, 1))
    return np.where(fewer > 0, fewer, uplinks)
