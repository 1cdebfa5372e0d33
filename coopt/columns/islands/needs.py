"""The least uplinks with which a workload meets its bound, for many sites and networks at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coopt.columns.context import groups_of
from coopt.columns.dominance import undominated
from coopt.columns.feasible import possibly_in_time
from coopt.columns.grid import placements_of
from coopt.columns.islands.shapes import Shapes, Sites
from coopt.columns.layouts import NicLayout
from coopt.columns.least_uplinks import Rows, Trials, layout_numbers
from coopt.columns.loads import MOST_UPLINKS
from coopt.instance.hardware import Gpu
from coopt.instance.network import Discipline
from coopt.instance.schema import Network
from coopt.instance.workload import Workload
from coopt.network.family import next_even
from coopt.perf.affine import Reciprocals
from coopt.perf.iterations import iteration
from coopt.perf.mapping import (
    Floats,
    Ints,
    Mappings,
    Placements,
    representatives,
)

HOPS = ("pp", "tied")  # what stages send each other
ROUNDS = 12  # of the sieve: few more are dropped after them
BLOCK = 32_768  # placements that are timed at once: more do not stay in the cache
ABOVE = 1 + 1e-9  # a bound on time with what sums in another order may differ by


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
    return possibly_in_time(
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
    rows = Rows(
        bound_s=workload.bound_s,
        site=site,
        pieces=parts.pieces(),
        algorithms=parts.algorithms,
        groups=groups_of(workload, mappings, placements),
        outermost=workload.mapping.outermost,
    )
    quick = rows.take(np.flatnonzero(rows.in_time_alone(byte_s)))
    values = np.vstack([*quick.pieces.coefficients, *quick.algorithms.costs])
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
    views, view = representatives(rate, shapes.site, *layout_numbers(layout))
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
    networks = layout.take(views)
    trials = Trials.of(
        rows, row, of_view, layout=networks, byte_s=byte_s[views], discipline=discipline
    )
    least_uplinks = _least_in_orders(trials, networks, np.maximum(fewest, 1), most_uplinks)[view]
    uplinks = next_even(np.maximum(least_uplinks, shapes.fewest_uplinks), shapes.bundle)
    return np.where(
        (least_uplinks > 0) & (uplinks <= shapes.most_uplinks),
        uplinks,
        np.where((least_uplinks > 0) & (shapes.down == 0), 0, -1),
    )


def _pairs(starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Every i with each number from `starts[i]` up to `ends[i]`, the latter left out."""
    count = ends - starts
    number = np.repeat(np.arange(len(starts)), count)
    return number, np.arange(len(number)) - np.repeat(np.cumsum(count) - count - starts, count)


def _least_in_orders(stages_apart: Trials, layout: NicLayout, fewest: Ints, limit: Ints) -> Ints:
    """The least uplinks with which a row of each view is in time, stages outermost or side by side;
    0 where none is.

    With stages side by side hops load links less, and nothing else does. So only what is in time
    with fewer uplinks than stages outermost need, from `fewest` to `limit`, while hops are not
    slowed at all, is tried that way.
    """
    rows, orders = stages_apart.rows, stages_apart.rows.outermost
    discipline = stages_apart.loads.discipline
    uplinks = (
        stages_apart.least_uplinks(stages_apart.enough_uplinks())
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
    fewer = stages_together.least_uplinks(np.maximum(goal, 1))
    return np.where(fewer > 0, fewer, uplinks)
