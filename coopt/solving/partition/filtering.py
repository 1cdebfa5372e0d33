"""Which options a partition needs."""

from __future__ import annotations

import numpy as np

from coopt.columns.option_dominance import Slopes, needed_options
from coopt.solving.partition.parts import subset
from formulations.partition_data import Ints, PartitionData


def useful(data: PartitionData) -> Ints:
    """Positions of options that hold an optimum whenever there is one, by `coopt.columns.option_dominance`."""
    counted = sorted({int(p) for kind in data.kinds for p in kind.products})
    slopes = Slopes(
        least=np.array([p.slopes[0] for p in data.products]),
        most=np.array([p.slopes[1] for p in data.products]),
    )
    uses = [data.other, *(limit.use for limit in data.limits), *([] if data.core is None else [data.core.up])]
    kept = [np.zeros(0, dtype=np.int64)]
    for w in range(data.workloads):
        mine = np.flatnonzero(data.workload == w)
        if len(mine):
            few = subset(data, mine)
            joins = np.array([few.uses(p) for p in counted], dtype=bool).reshape(len(counted), len(mine)).T
            shown = np.column_stack([use[mine] for use in uses])
            kept.append(mine[needed_options(few.usd, shown, few.quantity, joins, slopes)])
    return np.concatenate(kept)
