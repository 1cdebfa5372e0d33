"""The least uplinks with which a workload meets its bound, for many sites and networks at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from coopt.columns.context import groups_of
from coopt.columns.flows import Groups
from coopt.columns.grid import whole_mappings
from coopt.columns.islands.shapes import Shapes
from coopt.columns.islands.sieve import unbeaten
from coopt.columns.islands.sizes import Sites
from coopt.columns.layouts import NicLayout
from coopt.columns.loads import crossings
from coopt.columns.placements import placed
from coopt.columns.pools import timely
from coopt.instance.hardware import Gpu
from coopt.instance.question import Discipline
from coopt.instance.schema import Network
from coopt.instance.workload import Workload
from coopt.network.family import next_even
from coopt.perf.affine import KINDS, AffineSeconds, Overlaps, Reciprocals, kinds_of
from coopt.perf.iterations import iteration
from coopt.perf.mapping import Bools, Floats, Ints, Mappings, Placements, distinct_rows, representatives


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Mappings with placements that could meet the bound, in the order of their sites.

    `site` counts within the sites. `pieces` (pieces, 1 + kinds, n) are affine functions whose maximum is the iteration
    time, of the `kinds` of traffic that there are; `groups` say where the groups lie, and `overlaps` how far their
    levels send at the same time.
    """

    bound_s: float
    site: Ints
    kinds: tuple[str, ...]
    pieces: Floats
    overlaps: Overlaps
    groups: Groups

    def times_s(self, rows: Ints, s_byte: Floats) -> Floats:
        """Iteration times of some rows, whose kinds of traffic see so many seconds per byte (all of KINDS, n)."""
        some = self.pieces[:, :, rows]
        r = self.overlaps.take(rows).left(Reciprocals(**dict(zip(KINDS, s_byte, strict=True))))
        seen = [getattr(r, kind) for kind in self.kinds]
        return np.asarray(sum((some[:, k + 1] * r for k, r in enumerate(seen)), some[:, 0]).max(axis=0))

    def take(self, rows: Ints) -> Rows:
        """The chosen rows."""
        return replace(
            self,
            site=self.site[rows],
            pieces=self.pieces[:, :, rows],
            overlaps=self.overlaps.take(rows),
            groups=self.groups.take(rows),
        )


def quick_mappings(workload: Workload, gpu: Gpu, network: Network, degrees: Ints, byte_s: float) -> Mappings:
    """The mappings of some (t, c, p, d) that fit into memory and may meet the bound where a GPU has `byte_s`."""
    whole = whole_mappings(workload, map(tuple, degrees.tolist()))
    fastest = max(hb.gbyte_s for hb in network.hb_domains)
    return timely(workload, gpu, whole, hb_gbyte_s=fastest, byte_s=byte_s)


def rows_of(workload: Workload, gpu: Gpu, network: Network, sites: Sites, whole: Mappings, byte_s: float) -> Rows:
    """The placements of mappings that meet the bound on each site where every GPU has `byte_s` to itself."""
    mappings, placements, site = _placed(whole, sites, tp_across=workload.allow_tp_across)
    hb_gbyte_s = np.array([hb.gbyte_s for hb in network.hb_domains], dtype=np.float64)
    gbyte_s = hb_gbyte_s[sites.hb[site]]
    parts = iteration(workload, gpu, gbyte_s, mappings, placements)
    pieces = parts.pieces()
    kinds = kinds_of(pieces)
    rows = Rows(
        bound_s=workload.bound_s,
        site=site,
        kinds=kinds,
        pieces=np.stack([_dense(piece, kinds, len(site)) for piece in pieces]),
        overlaps=parts.overlaps,
        groups=groups_of(workload, mappings, placements),
    )
    alone = rows.times_s(np.arange(len(site)), np.full((len(KINDS), len(site)), 1.0 / byte_s))
    quick = rows.take(np.flatnonzero(alone <= workload.bound_s))
    values = np.vstack([*quick.pieces, *quick.overlaps.costs])
    rows = quick.take(np.flatnonzero(unbeaten(values, quick.site, *quick.groups)))
    return _in_orders(rows, workload.mapping.outermost, network.discipline)


def _in_orders(rows: Rows, allowed: tuple[str, ...], discipline: Discipline) -> Rows:
    """Rows with stages outermost, and again with stages side by side where they can be, as is allowed."""
    turns = "dp" in allowed and discipline.charge == "loads"
    some = np.flatnonzero(rows.groups.may_turn) if turns else np.zeros(0, dtype=np.int64)
    apart = np.arange(len(rows.site) if "pp" in allowed else 0)
    both = rows.take(np.concatenate([apart, some]))
    step = np.concatenate([rows.groups.step[apart], rows.groups.stages[some]])
    turned = replace(both, groups=both.groups._replace(step=step, apart=both.groups.apart * step))
    return turned.take(np.argsort(turned.site, kind="stable"))


def _placed(whole: Mappings, sites: Sites, *, tp_across: bool) -> tuple[Mappings, Placements, Ints]:
    """Every placement of every mapping on the sites of its size, and the site of each, in rising order."""
    gpus = whole.tp * whole.cp * whole.pp * whole.dp
    rows, inside, where = [np.zeros(0, dtype=np.int64)], [np.zeros((0, 4), dtype=np.int64)], [np.zeros(0, np.int64)]
    possible = np.isin(sites.gpus, gpus)
    for active in np.unique(sites.active[possible]).tolist():
        here = np.flatnonzero(possible & (sites.active == active))
        some = np.flatnonzero(np.isin(gpus, sites.gpus[here]))
        of, placements = placed(whole.take(some), active, tp_across=tp_across)
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


def _dense(piece: AffineSeconds, kinds: tuple[str, ...], count: int) -> Floats:
    """An affine function as its seconds and the bytes of some kinds, of each row."""
    parts = (piece.fixed, *(getattr(piece, kind) for kind in kinds))
    return np.stack([np.broadcast_to(np.asarray(part, dtype=np.float64), (count,)) for part in parts])


def uplinks_needed(rows: Rows, shapes: Shapes, byte_s: Floats, discipline: Discipline) -> Ints:
    """The least uplinks each of the shapes needs, its least choice or more; -1 where none that it has is enough.

    Shapes that differ in nothing a mapping sees but their uplinks are looked at once.

    Parameters
    ----------
    byte_s
        What a GPU moves between domains with all uplinks, in each shape (bytes/s).
    """
    found = np.full(len(shapes), -1)
    if not len(shapes) or not len(rows.site):
        return found
    layout = shapes.layouts(discipline)
    views, view = representatives(shapes.site, shapes.nics_per_gpu, *_numbers(layout))
    first, last = (np.searchsorted(rows.site, shapes.site[views], side=side) for side in ("left", "right"))
    of_view, row = _pairs(first, last)
    least = _least(rows, row, of_view, layout.take(views), byte_s[views], discipline)[view]
    needed = next_even(np.maximum(least, shapes.least), shapes.bundle)
    return np.where((least > 0) & (needed <= shapes.most), needed, np.where((least > 0) & (shapes.down == 0), 0, -1))


def _numbers(layout: NicLayout) -> tuple[Ints, ...]:
    """The fields of layouts as whole numbers; ratios by the place they have among all."""
    columns = {name: np.asarray(value) for name, value in vars(layout).items()}
    columns["ratio"] = np.unique(columns["ratio"], return_inverse=True)[1].reshape(-1)
    del columns["room"]  # nothing is lost here
    return tuple(columns.values())


def _pairs(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Every i with each number from `first[i]` up to `last[i]`."""
    count = last - first
    of = np.repeat(np.arange(len(first)), count)
    return of, np.arange(len(of)) - np.repeat(np.cumsum(count) - count - first, count)


def _least(rows: Rows, row: Ints, view: Ints, layout: NicLayout, byte_s: Floats, discipline: Discipline) -> Ints:
    """The least uplinks with which a row of each view is in time, of pairs sorted by view; 0 where none ever is."""
    (groups, views), position = _distinct(rows.groups, row, view)
    loads = crossings(layout.take(views), discipline, groups, rows.kinds)
    count = len(byte_s)
    most = np.ones(count, dtype=np.int64)
    np.maximum.at(most, views, loads.enough_uplinks())

    def in_time(uplinks: Ints, pairs: Ints) -> Bools:
        s_byte = (loads.slowdowns(uplinks[views]) / byte_s[views])[:, position[pairs]]
        return np.asarray(rows.times_s(row[pairs], s_byte) <= rows.bound_s)

    pairs = np.arange(len(row))
    pairs = pairs[in_time(most, pairs)]
    low, high = np.ones(count, dtype=np.int64), most
    while len(pairs) and (low < high)[view[pairs]].any():
        middle = (low + high) // 2
        quick = in_time(middle, pairs)
        enough = np.zeros(count, dtype=np.bool_)
        enough[view[pairs[quick]]] = True
        low, high = np.where(enough, low, np.minimum(middle + 1, high)), np.where(enough, middle, high)
        pairs = pairs[quick | ~enough[view[pairs]]]  # what is late there is late with fewer uplinks as well
    found = np.zeros(count, dtype=np.int64)
    found[view[pairs]] = high[view[pairs]]
    return found


def _distinct(groups: Groups, row: Ints, view: Ints) -> tuple[tuple[Groups, Ints], Ints]:
    """The groups that differ among the pairs of each view, and which of them each pair has."""
    few, place = distinct_rows(*groups)
    (which, views), position = distinct_rows(place[row], view)
    return (Groups(*few).take(which), views), position
