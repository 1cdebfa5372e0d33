"""The search cut into parts: one for every set of products that may be in use at the same time.

Where few products of a kind may be in use, a choice of islands uses some set of them. For each set the options that
use nothing else are a problem of their own, without products to count, and every choice lies in one of them. They are
small, their quantities vary little, so that few brackets are left, and most have a bound above the best choice known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, product
from math import comb, prod

import numpy as np

from coopt.solving.partition.narrowing import narrowed
from formulations.partition_data import Bools, Ints, PartitionData

MOST_SETS = 2_000


def product_sets(data: PartitionData) -> list[Ints]:
    """The options of every largest set of products; none that lies within another, and none without a choice.

    With too many sets, or nothing to count, all options are the one part, and products are counted in the search.
    """
    if data.outlooks:  # bounds of single sets are those of one price, not of the largest regret
        return [np.arange(len(data.workload))]
    used = np.stack([data.uses(p) for p in range(len(data.products))], axis=1)
    kinds = [(kind, [int(p) for p in kind.products if used[:, p].any()]) for kind in data.kinds]
    kinds = [(kind, there) for kind, there in kinds if len(there) > kind.most]
    if not kinds or prod(comb(len(there), kind.most) for kind, there in kinds) > MOST_SETS:
        return [np.arange(len(data.workload))]
    found: list[Bools] = []
    for chosen in product(*(combinations(there, kind.most) for kind, there in kinds)):
        barred = [p for (_, there), few in zip(kinds, chosen, strict=True) for p in there if p not in few]
        found.append(np.asarray(~used[:, barred].any(axis=1)))
    whole = [rows for rows in found if len(np.unique(data.workload[rows])) == data.workloads]
    return [np.flatnonzero(rows) for rows in _largest(whole)]


def _largest(sets: list[Bools]) -> Iterator[Bools]:
    """Those that lie within no other; of equal ones the first."""
    kept: list[Bools] = []
    for rows in sorted(sets, key=lambda one: -int(one.sum())):
        if not any((rows <= other).all() for other in kept):
            kept.append(rows)
            yield rows


def part_of(data: PartitionData, rows: Ints) -> PartitionData:
    """The problem of some options, with the brackets they may buy in and the kinds that still have to be counted."""
    few = subset(data, rows)
    used = [bool(few.uses(p).any()) for p in range(len(few.products))]
    kinds = tuple(kind for kind in few.kinds if sum(used[p] for p in kind.products) > kind.most)
    return narrowed(replace(few, kinds=kinds))


def subset(data: PartitionData, kept: Ints) -> PartitionData:
    """The same problem with some of its options."""
    return replace(
        data,
        workload=data.workload[kept],
        usd=data.usd[kept],
        other=data.other[kept],
        quantity=data.quantity[kept],
        limits=tuple(replace(limit, use=limit.use[kept]) for limit in data.limits),
        cores=tuple(replace(core, up=core.up[kept]) for core in data.cores),
        outlooks=tuple(replace(one, usd=one.usd[kept], other=one.other[kept]) for one in data.outlooks),
    )
