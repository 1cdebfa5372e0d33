"""Which part of each degree lies inside an HB domain."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from coopt.columns.context import DomainSet
from coopt.columns.grid import divisors
from coopt.instance.workload import Workload
from coopt.perf.mapping import Ints, Mappings, Placements, distinct_rows

Degrees = tuple[int, int, int, int]


@cache
def splits(t: int, c: int, p: int, d: int, active: int, *, tp_across: bool = True) -> tuple[Degrees, ...]:
    """(t_h, c_h, p_h, d_h) that divide the degrees and multiply to the active GPUs of a domain."""
    found = []
    for t_h in divisors(t) if tp_across else (t,):
        for c_h in divisors(c):
            for p_h in divisors(p):
                d_h, rest = divmod(active, t_h * c_h * p_h)
                if rest == 0 and d % d_h == 0:
                    found.append((t_h, c_h, p_h, d_h))
    return tuple(found)


@cache
def uneven_splits(t: int, c: int, p: int, d: int, domains: int, size: int) -> tuple[tuple[int, ...], ...]:
    """(t, c, p_h, d_h, d_l) on domains that are not filled alike: TP and context groups lie inside.

    d_l domains hold the replicas of a stage, floor(d / d_l) or, in the fullest, d_h = ceil(d / d_l) each.
    """
    found = []
    for p_h in divisors(p):
        d_l, rest = divmod(domains * p_h, p)
        if rest == 0 and 0 < d_l <= d and t * c * p_h * -(-d // d_l) <= size:
            found.append((t, c, p_h, -(-d // d_l), d_l))
    return tuple(found)


def placed_on(workload: Workload, mappings: Mappings, site: DomainSet) -> tuple[Ints, Placements]:
    """As `placed`, on domains that may not be filled alike: expert groups then lie inside, whole in every domain."""
    if site.alike:
        rows, placements = placed(mappings, site.active, tp_across=workload.allow_tp_across)
    else:
        whole_degrees = (mappings.tp, mappings.cp, mappings.pp, mappings.dp)
        rows, table = _spread(whole_degrees, 5, lambda *degrees: uneven_splits(*degrees, site.domains, site.size))
        placements = Placements(**dict(zip(("tp", "cp", "pp", "dp", "dp_domains"), table.T, strict=True)))
        of = mappings.take(rows)
        inner = placements.cp * (1 if workload.options.expert_tp else placements.tp)
        whole = (inner * placements.dp % of.ep == 0) & (inner * placements.fewest_dp(of) % of.ep == 0)
        rows, placements = rows[whole], placements.take(whole)
    if site.gpus_per_nic > 1:  # GPUs that share a NIC are of one stage
        kept = np.flatnonzero(site.active // site.gpus_per_nic % placements.pp == 0)
        rows, placements = rows[kept], placements.take(kept)
    return rows, placements


def counts_on(workload: Workload, mappings: Mappings, site: DomainSet) -> Ints:
    """How many placements each mapping has on domains that may not be filled alike; shape (n,)."""
    if site.alike:
        return split_counts(mappings, site.active, tp_across=workload.allow_tp_across)
    rows, _ = placed_on(workload, mappings, site)
    return np.bincount(rows, minlength=len(mappings))


def split_counts(mappings: Mappings, active: int, *, tp_across: bool = True) -> Ints:
    """How many placements each mapping has; shape (n,)."""
    keys, position = _degrees(_within(mappings, active, tp_across=tp_across))
    counts = np.array([len(splits(*degrees, active, tp_across=tp_across)) for degrees in keys], dtype=np.int64)
    return counts[position] if len(counts) else np.zeros(0, dtype=np.int64)


def placed(mappings: Mappings, active: int, *, tp_across: bool = True) -> tuple[Ints, Placements]:
    """Every placement of every mapping; those with TP ranks of one domain alone, where it is not to lie across.

    Returns
    -------
    rows, placements
        `rows[i]` is the mapping that placement i belongs to.
    """
    parts = _within(mappings, active, tp_across=tp_across)
    rows, table = _spread(parts, 4, lambda *degrees: splits(*degrees, active, tp_across=tp_across))
    return rows, Placements(tp=table[:, 0], cp=table[:, 1], pp=table[:, 2], dp=table[:, 3])


def _within(mappings: Mappings, active: int, *, tp_across: bool) -> tuple[Ints, ...]:
    """The degrees (n,) as far as domains of `active` GPUs tell them apart: what lies inside divides these as well."""
    tp, *others = mappings.tp, mappings.cp, mappings.pp, mappings.dp
    return np.gcd(tp, active) if tp_across else tp, *(np.gcd(degree, active) for degree in others)


def _spread(
    degrees: tuple[Ints, ...], width: int, listed: Callable[..., tuple[tuple[int, ...], ...]]
) -> tuple[Ints, Ints]:
    """The row of each of the placements that are listed for the degrees of rows, and its numbers (n, width)."""
    keys, position = _degrees(degrees)
    lists = [np.array(listed(*key), dtype=np.int64).reshape(-1, width) for key in keys]
    each = np.array([len(one) for one in lists], dtype=np.int64)
    counts, starts = each[position], (np.cumsum(each) - each)[position]
    rows = np.repeat(np.arange(len(position)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, np.concatenate([np.zeros((0, width), dtype=np.int64), *lists])[starts[rows] + within]


def _degrees(degrees: tuple[Ints, ...]) -> tuple[list[Degrees], Ints]:
    columns, position = distinct_rows(*degrees)
    return list(zip(*(column.tolist() for column in columns), strict=True)), position
