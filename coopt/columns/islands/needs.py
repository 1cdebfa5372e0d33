"""The least uplinks with which a workload meets its bound, for many sites and networks at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coopt.columns.context import Spans, blocks
from coopt.columns.grid import whole_mappings
from coopt.columns.islands.shapes import Shapes
from coopt.columns.islands.sieve import unbeaten
from coopt.columns.islands.sizes import Sites
from coopt.columns.placements import placed
from coopt.columns.pools import timely
from coopt.instance.hardware import Gpu
from coopt.instance.schema import Network
from coopt.instance.workload import Workload
from coopt.network.family import next_even
from coopt.perf.affine import AffineSeconds
from coopt.perf.iterations import iteration
from coopt.perf.mapping import Floats, Ints, Mappings, Placements, representatives

CLOSE = 1 - 1e-9  # rows whose reach is this near the largest could be the one that is in time


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Mappings with placements that could meet the bound, in the order of their sites.

    `site` counts within the sites. `pieces` (pieces, 5, n) are affine functions whose maximum is the iteration time;
    `groups` the domains that TP, DP and expert groups occupy.
    """

    bound_s: float
    routing: float
    site: Ints
    domains: Ints
    pieces: Floats
    groups: tuple[Ints, Ints, Ints]

    def times_s(self, rows: Ints, spans: Spans, slow: Floats, byte_s: Any) -> Floats:
        """The pieces of some rows on networks of those spans, leaving a leaf slowing down by `slow`; (pieces, n)."""
        tp, dp, ep = (group[rows] for group in self.groups)
        r = spans.reciprocals((tp, dp, ep), slow, byte_s)
        some = self.pieces[:, :, rows]
        return np.asarray(
            some[:, 0] + some[:, 1] * r.tp + some[:, 2] * r.pp + some[:, 3] * r.dp + some[:, 4] * r.of_experts
        )


def quick_mappings(workload: Workload, gpu: Gpu, network: Network, degrees: Ints, byte_s: float) -> Mappings:
    """The mappings of some (t, c, p, d) that fit into memory and may meet the bound where a GPU has `byte_s`."""
    whole = whole_mappings(workload, map(tuple, degrees.tolist()))
    fastest = max(hb.gbyte_s for hb in network.hb_domains)
    return timely(workload, gpu, whole, hb_gbyte_s=fastest, byte_s=byte_s)


def rows_of(workload: Workload, gpu: Gpu, network: Network, sites: Sites, whole: Mappings, byte_s: float) -> Rows:
    """The placements of mappings that meet the bound on each site where every GPU has `byte_s` to itself."""
    mappings, placements, site = _placed(whole, sites)
    hb_gbyte_s = np.array([hb.gbyte_s for hb in network.hb_domains], dtype=np.float64)
    gbyte_s = hb_gbyte_s[sites.hb[site]]
    parts = iteration(workload, gpu, gbyte_s, mappings, placements)
    pieces = np.stack([_dense(piece, len(site)) for piece in parts.pieces()])
    rows = Rows(
        bound_s=workload.bound_s,
        routing=network.routing,
        site=site,
        domains=sites.domains[site],
        pieces=pieces,
        groups=blocks(mappings, placements, expert_tp=workload.options.expert_tp),
    )
    everywhere = Spans(domains=rows.domains, leaf=rows.domains, pod=rows.domains, pod_ratio=1.0)
    alone = rows.times_s(np.arange(len(site)), everywhere, np.ones(len(site)), byte_s).max(axis=0)
    quick = _kept(rows, np.flatnonzero(alone <= workload.bound_s))
    return _kept(quick, np.flatnonzero(unbeaten(quick.pieces, quick.site, *quick.groups)))


def _placed(whole: Mappings, sites: Sites) -> tuple[Mappings, Placements, Ints]:
    """Every placement of every mapping on the sites of its size, and the site of each, in rising order."""
    gpus = whole.tp * whole.cp * whole.pp * whole.dp
    rows, inside, where = [np.zeros(0, dtype=np.int64)], [np.zeros((0, 4), dtype=np.int64)], [np.zeros(0, np.int64)]
    possible = np.isin(sites.gpus, gpus)
    for active in np.unique(sites.active[possible]).tolist():
        here = np.flatnonzero(possible & (sites.active == active))
        some = np.flatnonzero(np.isin(gpus, sites.gpus[here]))
        of, placements = placed(whole.take(some), active)
        table = np.stack([placements.tp, placements.cp, placements.pp, placements.dp], axis=1)
        of = some[of]
        for kind in np.unique(sites.hb[here]).tolist():
            mine = here[sites.hb[here] == kind]
            at = np.minimum(np.searchsorted(sites.gpus[mine], gpus[of]), len(mine) - 1)
            there = sites.gpus[mine][at] == gpus[of]
            rows.append(of[there])
            inside.append(table[there])
            where.append(mine[at[there]])
    site = np.concatenate(where)
    order = np.argsort(site, kind="stable")
    tp, cp, pp, dp = np.concatenate(inside)[order].T
    mappings = whole.take(np.concatenate(rows)[order])
    return mappings, Placements(tp=tp, cp=cp, pp=pp, dp=dp), site[order]


def _dense(piece: AffineSeconds, count: int) -> Floats:
    """An affine function as five coefficients of each row."""
    parts = (piece.fixed, piece.tp, piece.pp, piece.dp, piece.ep)
    return np.stack([np.broadcast_to(np.asarray(part, dtype=np.float64), (count,)) for part in parts])


def _kept(rows: Rows, kept: Ints) -> Rows:
    tp, dp, ep = rows.groups
    return Rows(
        bound_s=rows.bound_s,
        routing=rows.routing,
        site=rows.site[kept],
        domains=rows.domains[kept],
        pieces=rows.pieces[:, :, kept],
        groups=(tp[kept], dp[kept], ep[kept]),
    )


def uplinks_needed(rows: Rows, shapes: Shapes, byte_s: Floats) -> Ints:
    """The least uplinks each of the shapes needs, its least choice or more; -1 where none that it has is enough.

    Shapes that differ in nothing a mapping sees but their uplinks share the rows that bear the largest slowdown.

    Parameters
    ----------
    byte_s
        What a GPU moves between domains with all uplinks, in each shape (bytes/s).
    """
    found = np.full(len(shapes), -1)
    if not len(shapes) or not len(rows.site):
        return found
    seen = (shapes.site, shapes.leaf_span, shapes.pod_span, shapes.pod_down, shapes.pod_up, shapes.nics_per_gpu)
    views, view = representatives(*seen)
    of_view, row = _pairs(np.searchsorted(rows.site, shapes.site[views]), _ends(rows, shapes.site[views]))
    reach = _reach(rows, shapes, row, views[of_view], byte_s)
    starts = np.flatnonzero(np.diff(of_view, prepend=-1))
    largest = np.full(len(views), -np.inf)
    largest[of_view[starts]] = np.maximum.reduceat(reach, starts)
    near = np.flatnonzero(reach >= np.where(largest > 0, largest * CLOSE, largest)[of_view])
    first = np.searchsorted(of_view[near], view)
    shape, which = _pairs(first, np.searchsorted(of_view[near], view, side="right"))
    there = np.unique(shape)
    guess = np.clip(np.ceil(shapes.down / np.maximum(largest[view], 1.0)), shapes.least, shapes.most).astype(np.int64)
    found[there] = _exact(rows, shapes, (row[near][which], shape), there, guess[there], byte_s)
    return found


def _ends(rows: Rows, site: Ints) -> Ints:
    """Where the rows of some sites end."""
    return np.searchsorted(rows.site, site, side="right")


def _pairs(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Every i with each number from `first[i]` up to `last[i]`."""
    count = last - first
    of = np.repeat(np.arange(len(first)), count)
    return of, np.arange(len(of)) - np.repeat(np.cumsum(count) - count - first, count)


def _spans(rows: Rows, shapes: Shapes, row: Ints, shape: Ints) -> Spans:
    """The spans of a shape for each of some rows."""
    ratio = (shapes.pod_down / shapes.pod_up)[shape]
    return Spans(domains=rows.domains[row], leaf=shapes.leaf_span[shape], pod=shapes.pod_span[shape], pod_ratio=ratio)


def _reach(rows: Rows, shapes: Shapes, row: Ints, shape: Ints, byte_s: Floats) -> Floats:
    """The largest ratio of down-ports to uplinks each row bears on a shape, as `coopt.columns.borders.reach` has it."""
    one, spans = np.full(len(row), rows.routing), _spans(rows, shapes, row, shape)
    at_one, at_two = (rows.times_s(row, spans, slow, byte_s[shape]) for slow in (one, 2.0 * one))
    slope = at_two - at_one
    with np.errstate(divide="ignore", invalid="ignore"):
        bears = np.where(
            slope > 0, 1.0 + (rows.bound_s - at_one) / slope, np.where(at_one <= rows.bound_s, np.inf, -np.inf)
        )
    return np.asarray(bears.min(axis=0))


def _exact(rows: Rows, shapes: Shapes, near: tuple[Ints, Ints], there: Ints, guess: Ints, byte_s: Floats) -> Ints:
    """The least uplinks on offer at which the exact time of some row near the largest reach meets the bound, from a
    guess."""
    row, shape = near
    spans = _spans(rows, shapes, row, shape)
    starts = np.flatnonzero(np.diff(shape, prepend=-1))
    position = np.repeat(np.arange(len(there)), np.diff(np.append(starts, len(shape))))
    down, least, most = (values[there] for values in (shapes.down, shapes.least, shapes.most))

    def late(uplinks: Ints) -> Ints:
        ratio = np.where(down > 0, rows.routing * down / np.maximum(uplinks, 1), 1.0)
        times = rows.times_s(row, spans, ratio[position], byte_s[shape]).max(axis=0)
        return np.asarray(np.minimum.reduceat(times, starts) > rows.bound_s)

    uplinks = guess
    while (lower := (uplinks > least) & ~late(np.maximum(uplinks - 1, least))).any():
        uplinks = uplinks - lower
    while (higher := late(uplinks) & (uplinks < most)).any():
        uplinks = uplinks + higher
    return np.where(late(uplinks), -1, next_even(uplinks, shapes.bundle[there]))
