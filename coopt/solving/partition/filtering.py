"""Which options a partition needs."""

from __future__ import annotations

import numpy as np

from coopt.columns.option_dominance import Slopes, needed_options
from coopt.solving.partition.parts import subset
from formulations.partition_data import Floats, Ints, PartitionData


def useful(data: PartitionData) -> Ints:
    """Positions of options that hold an optimum whenever there is one, by `coopt.columns.option_dominance`."""
    counted = sorted({int(p) for kind in data.kinds for p in kind.products})
    slopes = slopes_of(data)
    uses = [data.other, *(limit.use for limit in data.limits), *(core.up for core in data.cores)]
    for one in data.outlooks:
        uses += [one.usd, one.other]
    kept = [np.zeros(0, dtype=np.int64)]
    for w in range(data.workloads):
        mine = np.flatnonzero(data.workload == w)
        if len(mine):
            few = subset(data, mine)
            joins = np.array([few.uses(p) for p in counted], dtype=bool).reshape(len(counted), len(mine)).T
            shown = np.column_stack([use[mine] for use in uses])
            kept.append(mine[needed_options(few.usd, shown, few.quantity, joins, slopes)])
    return np.concatenate(kept)


def slopes_of(data: PartitionData) -> Slopes:
    """How much bills rise with a unit of each product, at least and at most, in whichever outlook.

    A unit needed in a phase may be bought in it or before, so it adds no more than the least first price so far. One
    less is needed: of the purchases so far the last can be smaller, which saves no less than the least last price.
    """
    prices = [one.prices for one in data.outlooks] or [tuple(product.usd for product in data.products)]
    least, most = np.full(len(data.products), np.inf), np.zeros(len(data.products))
    for usd in prices:
        for p in range(len(data.products)):
            chain = data.chain(p)
            least[p] = min(least[p], *(_least(data, q, usd[q]) for q in chain))
            most[p] = max(most[p], min(float(usd[q][0]) for q in chain))
    return Slopes(least=least, most=most)


def _least(data: PartitionData, p: int, usd: Floats) -> float:
    spare = data.products[p].discount == "all-units" and len(usd) > 1
    return 0.0 if spare else float(usd[-1])
