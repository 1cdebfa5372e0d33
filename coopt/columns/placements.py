"""Which part of each degree lies inside an HB domain."""

from __future__ import annotations

from functools import cache

import numpy as np

from coopt.columns.grid import divisors
from coopt.perf.factor import distinct
from coopt.perf.mapping import Ints, Mappings, Placements


@cache
def splits(t: int, p: int, d: int, active: int) -> tuple[tuple[int, int, int], ...]:
    """(t_h, p_h, d_h) that divide the degrees and multiply to the active GPUs of a domain."""
    found = []
    for t_h in divisors(t):
        for p_h in divisors(p):
            d_h, rest = divmod(active, t_h * p_h)
            if rest == 0 and d % d_h == 0:
                found.append((t_h, p_h, d_h))
    return tuple(found)


def split_counts(mappings: Mappings, active: int) -> Ints:
    """How many placements each mapping has; shape (n,)."""
    keys, position = _degrees(mappings)
    counts = np.array([len(splits(t, p, d, active)) for t, p, d in keys], dtype=np.int64)
    return counts[position] if len(counts) else np.zeros(0, dtype=np.int64)


def placed(mappings: Mappings, active: int) -> tuple[Ints, Placements]:
    """Every placement of every mapping.

    Returns
    -------
    rows, placements
        `rows[i]` is the mapping that placement i belongs to.
    """
    counts = split_counts(mappings, active)
    rows = np.repeat(np.arange(len(mappings)), counts)
    keys, position = _degrees(mappings)
    lists = [np.array(splits(t, p, d, active), dtype=np.int64).reshape(-1, 3) for t, p, d in keys]
    table = np.concatenate([lists[i] for i in position] or [np.zeros((0, 3), dtype=np.int64)])
    return rows, Placements(tp=table[:, 0], pp=table[:, 1], dp=table[:, 2])


def _degrees(mappings: Mappings) -> tuple[list[tuple[int, int, int]], Ints]:
    (t, p, d), position = distinct(mappings.tp, mappings.pp, mappings.dp)
    return list(zip(t.tolist(), p.tolist(), d.tolist(), strict=True)), position
