"""Which part of each degree lies inside an HB domain."""

from __future__ import annotations

from functools import cache

import numpy as np

from coopt.columns.grid import divisors
from coopt.perf.mapping import Ints, Mappings, Placements, distinct_rows

Degrees = tuple[int, int, int, int]


@cache
def splits(t: int, c: int, p: int, d: int, active: int) -> tuple[Degrees, ...]:
    """(t_h, c_h, p_h, d_h) that divide the degrees and multiply to the active GPUs of a domain."""
    found = []
    for t_h in divisors(t):
        for c_h in divisors(c):
            for p_h in divisors(p):
                d_h, rest = divmod(active, t_h * c_h * p_h)
                if rest == 0 and d % d_h == 0:
                    found.append((t_h, c_h, p_h, d_h))
    return tuple(found)


def split_counts(mappings: Mappings, active: int) -> Ints:
    """How many placements each mapping has; shape (n,)."""
    keys, position = _degrees(mappings)
    counts = np.array([len(splits(*degrees, active)) for degrees in keys], dtype=np.int64)
    return counts[position] if len(counts) else np.zeros(0, dtype=np.int64)


def placed(mappings: Mappings, active: int) -> tuple[Ints, Placements]:
    """Every placement of every mapping.

    Returns
    -------
    rows, placements
        `rows[i]` is the mapping that placement i belongs to.
    """
    keys, position = _degrees(mappings)
    lists = [np.array(splits(*degrees, active), dtype=np.int64).reshape(-1, 4) for degrees in keys]
    each = np.array([len(one) for one in lists], dtype=np.int64)
    counts, starts = each[position], (np.cumsum(each) - each)[position]
    rows = np.repeat(np.arange(len(mappings)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    table = np.concatenate([np.zeros((0, 4), dtype=np.int64), *lists])[starts[rows] + within]
    return rows, Placements(tp=table[:, 0], cp=table[:, 1], pp=table[:, 2], dp=table[:, 3])


def _degrees(mappings: Mappings) -> tuple[list[Degrees], Ints]:
    columns, position = distinct_rows(mappings.tp, mappings.cp, mappings.pp, mappings.dp)
    return list(zip(*(column.tolist() for column in columns), strict=True)), position
