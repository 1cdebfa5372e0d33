"""Minimum number of uplinks with which a workload meets its bound, for many sites and networks at
once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from coopt.columns.feasible import possibly_in_time
from coopt.columns.flows import NicLayout, ranges
from coopt.columns.grid import groups_of, keeping_groups, placements_of
from coopt.columns.islands.shapes import Shapes, Sites
from coopt.columns.loads import MAX_UPLINKS
from coopt.columns.pools import Rows, Trials, layout_numbers, undominated
from coopt.instance.hardware import Gpu
from coopt.instance.network import Discipline
from coopt.instance.schema import Network
from coopt.instance.workload import Workload
from coopt.network.family import next_even
from coopt.perf.collectives import Reciprocals
from coopt.perf.iterations import iteration
from coopt.perf.mapping import (
    Bools,
    Floats,
    Ints,
    Mappings,
    Placements,
    representatives,
)

HOPS = ("pp", "tied")  # what stages send each other
ROUNDS = 12  # of the sieve, after which few more rows are dropped
BLOCK = 32_768  # placements timed at once, so that they fit into the cache
MOST_ROWS = 4 * BLOCK  # of several sites in one list, so that memory stays small
ABOVE = 1 + 1e-9  # tolerance for sums in another order


def fastest_byte_s(network: Network) -> float:
    """Maximum bandwidth that a GPU's NICs offer (bytes/s)."""
    return max(nic.gbit_s for nic in network.nics) * max(network.nics_per_gpu) * 1e9 / 8


def quick_mappings(
    workload: Workload, gpu: Gpu, network: Network, degrees: Ints, byte_s: float
) -> Mappings:
    """Return the feasible mappings of some (t, c, p, d) that may meet the bound at a bandwidth of
    `byte_s` per GPU.
    """
    fastest_gbyte_s = max(hb.gbyte_s for hb in network.hb_domains)
    return possibly_in_time(
        workload, gpu, map(tuple, degrees.tolist()), hb_gbyte_s=fastest_gbyte_s, byte_s=byte_s
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class RowsOnSites:
    """Placed mappings that meet a bound on some sites (n,): the list that holds those of each site,
    -1 where none is in time, and the number that the site has there.
    """

    lists: tuple[Rows, ...]
    of: Ints
    number: Ints

    def take(self, sites: Ints) -> RowsOnSites:
        """Select sites."""
        return replace(self, of=self.of[sites], number=self.number[sites])

    def with_bound(self, bound_s: float) -> RowsOnSites:
        """Return the rows with a shorter bound, those included that are late then."""
        return replace(self, lists=tuple(replace(rows, bound_s=bound_s) for rows in self.lists))

    def in_reach(self, byte_s: float) -> Bools:
        """Whether some row of each site meets the bound at a bandwidth of `byte_s` per GPU (n,)."""
        in_reach = np.zeros(len(self.of), dtype=np.bool_)
        for rows, here in self._by_list(self.of):
            served = rows.site[rows.in_time_alone(byte_s)]
            in_reach[here] = np.isin(self.number[here], served)
        return in_reach

    def uplinks_needed(self, shapes: Shapes, byte_s: Floats, discipline: Discipline) -> Ints:
        """Minimum number of uplinks that each shape needs, as `uplinks_needed` has it."""
        uplinks = np.full(len(shapes), -1)
        for rows, here in self._by_list(self.of[shapes.site]):
            numbered = replace(shapes.take(here), site=self.number[shapes.site[here]])
            uplinks[here] = uplinks_needed(rows, numbered, byte_s[here], discipline)
        return uplinks

    def _by_list(self, of: Ints) -> Iterator[tuple[Rows, Ints]]:
        """Each list with the positions that have it."""
        for number in np.unique(of[of >= 0]).tolist():
            yield self.lists[number], np.flatnonzero(of == number)


def rows_of(
    workload: Workload,
    gpu: Gpu,
    network: Network,
    sites: Sites,
    candidates: Mappings,
    byte_s: float,
) -> Iterator[Rows]:
    """Yield the placed mappings that meet the bound on each site at a bandwidth of `byte_s` per
    GPU, those of some sites after the other.
    """
    every, placements, site = _placements_on(candidates, sites, tp_across=not workload.tp_inside)
    keeping, placements = keeping_groups(workload, every, np.arange(len(site)), placements)
    mappings, site = every.take(keeping), site[keeping]
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
    to_nics = np.array([hb.to_nics_gbyte_s for hb in network.hb_domains], dtype=np.float64)
    start = 0
    while start < len(site):
        # up to where another site begins
        end = max(
            int(np.searchsorted(site, site[min(start + MOST_ROWS, len(site)) - 1])),
            int(np.searchsorted(site, site[start], side="right")),
        )
        end = len(site) if start + MOST_ROWS >= len(site) else end
        some = np.arange(start, end)
        hb = sites.hb[site[some]]
        placed = mappings.take(some), placements.take(some)
        parts = iteration(workload, gpu, hb_gbyte_s[hb], *placed, to_nics_gbyte_s=to_nics[hb])
        rows = Rows(
            bound_s=workload.bound_s,
            site=site[some],
            pieces=parts.pieces(),
            algorithms=parts.algorithms,
            groups=groups_of(workload, *placed),
            to_nics_s_byte=parts.to_nics_s_byte,
            outermost=workload.mapping.outermost,
        )
        quick = rows.take(np.flatnonzero(rows.in_time_alone(byte_s)))
        values = np.vstack([*quick.pieces.coefficients, *quick.algorithms.costs])
        yield quick.take(
            np.flatnonzero(undominated(values.T, quick.site, *quick.groups, rounds=ROUNDS))
        )
        start = end


def _nearly_in_time(
    workload: Workload,
    gpu: Gpu,
    gbyte_s: Floats,
    mappings: Mappings,
    placements: Placements,
    byte_s: float,
) -> Ints:
    """Return the rows that meet the bound at a bandwidth of `byte_s` per GPU, or miss it by
    rounding only.
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
    """Return every placement of every mapping on the sites of its size, in rising order of sites,
    with the site of each.
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
    """Minimum number of uplinks that each shape needs, at least its own minimum; -1 where its
    maximum does not suffice.

    Shapes that mappings can distinguish only by their uplinks are searched once.

    Parameters
    ----------
    byte_s
        Bandwidth of a GPU between domains with all uplinks, for each shape (bytes/s).
    """
    if not len(shapes) or not len(rows.site):
        return np.full(len(shapes), -1)
    layout = shapes.layouts(discipline)
    rate = np.unique(byte_s, return_inverse=True)[1].reshape(-1)
    views, view = representatives(rate, shapes.site, *layout_numbers(layout))
    # one search per view covers all its shapes, which then restrict the result to their own range
    fewest, max_uplinks = np.full(len(views), MAX_UPLINKS), np.ones(len(views), dtype=np.int64)
    np.minimum.at(fewest, view, shapes.min_uplinks)
    # a single tier neither has nor needs uplinks
    np.maximum.at(max_uplinks, view, np.where(shapes.down > 0, shapes.max_uplinks, 1))
    networks, site = layout.take(views), shapes.site[views]
    numbers = (byte_s[views], site, *vars(networks).values(), fewest, max_uplinks)
    keys = [row.tobytes() for row in np.column_stack(numbers).astype(np.float64)]
    known = rows.minimum_uplinks
    fresh = np.array([n for n, key in enumerate(keys) if key not in known], dtype=np.int64)
    if len(fresh):
        found = _least_on(
            rows,
            site[fresh],
            byte_s[views][fresh],
            networks.take(fresh),
            (np.maximum(fewest, 1)[fresh], max_uplinks[fresh]),
            discipline,
        )
        known.update(zip([keys[n] for n in fresh], found.tolist(), strict=True))
    minimum_uplinks = np.array([known[key] for key in keys], dtype=np.int64)[view]
    uplinks = _next_offered(np.maximum(minimum_uplinks, shapes.min_uplinks), shapes)
    return np.where(
        (minimum_uplinks > 0) & (uplinks <= shapes.max_uplinks),
        uplinks,
        np.where((minimum_uplinks > 0) & (shapes.down == 0), 0, -1),
    )


def _least_on(
    rows: Rows,
    site: Ints,
    byte_s: Floats,
    layout: NicLayout,
    limits: tuple[Ints, Ints],
    discipline: Discipline,
) -> Ints:
    """Minimum number of uplinks with which some row meets its bound on each network of a site; 0
    where none does. It need not be exact outside the `limits`.
    """
    starts, ends = (np.searchsorted(rows.site, site, side=side) for side in ("left", "right"))
    of_view, row = ranges(ends - starts, starts)
    rates, rate = np.unique(byte_s, return_inverse=True)
    is_in_time = np.stack([rows.in_time_alone(byte_rate) for byte_rate in rates.tolist()])[
        rate.reshape(-1)[of_view], row
    ]
    trials = Trials.of(
        rows,
        row[is_in_time],
        of_view[is_in_time],
        layout=layout,
        byte_s=byte_s,
        discipline=discipline,
    )
    return _least_in_orders(trials, layout, *limits)


def _next_offered(uplinks: Ints, shapes: Shapes) -> Ints:
    """The least uplinks from so many on that fill whole cages and go round the spines evenly."""
    while True:
        filled = -(-uplinks // shapes.step) * shapes.step
        even = next_even(filled, shapes.bundle)
        if np.array_equal(even, uplinks):
            return uplinks
        uplinks = even


def _least_in_orders(stages_apart: Trials, layout: NicLayout, fewest: Ints, limit: Ints) -> Ints:
    """Minimum number of uplinks with which some row of each view meets its bound, in either order
    of ranks; 0 if none does.

    With adjacent stages hops load fewer links, and nothing else improves. So that order is tried
    only for rows that would meet the bound with fewer uplinks than stages outermost need, between
    `fewest` and `limit`, if hops were not slowed at all.
    """
    rows, orders = stages_apart.rows, stages_apart.rows.outermost
    discipline = stages_apart.loads.discipline
    uplinks = (
        stages_apart.minimum_uplinks(stages_apart.enough_uplinks())
        if "pp" in orders
        else np.zeros_like(limit)
    )
    if "dp" not in orders or discipline.charge == "ratio":
        return uplinks
    goal = np.where(uplinks > 0, np.minimum(uplinks - 1, limit), limit)
    pairs = np.flatnonzero(
        (goal >= fewest)[stages_apart.view] & rows.groups.stages_can_adjoin[stages_apart.row]
    )
    pairs = pairs[stages_apart.in_time(np.maximum(goal, 1), pairs, HOPS)]
    if not len(pairs):
        return uplinks
    groups = rows.groups._replace(
        step=rows.groups.stages, apart=rows.groups.apart * rows.groups.stages
    )
    stages_together = Trials.of(
        replace(rows, groups=groups),
        stages_apart.row[pairs],
        stages_apart.view[pairs],
        layout=layout,
        byte_s=stages_apart.byte_s,
        discipline=discipline,
    )
    fewer = stages_together.minimum_uplinks(np.maximum(goal, 1))
    return np.where(fewer > 0, fewer, uplinks)
