"""The mapping and placement of one workload of a plan as rows for the performance model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coopt.instance.workload import Workload
from coopt.perf.mapping import RECOMPUTE, Mappings, Placements
from coopt.plan.schema import WorkloadPlan

GRID = ("pl", "dl", "cl", "tl", "ph", "dh", "ch", "th")  # slowest first: rank = domain · K + rank in the domain


@dataclass(frozen=True, kw_only=True)
class Split:
    """A workload, its mapping and placement as one row each, and the extents of the grid of ranks (see `GRID`)."""

    workload: Workload
    mapping: Mappings
    placement: Placements
    extents: tuple[int, ...]

    @property
    def ranks(self) -> int:
        """N: GPUs that train."""
        return int(np.prod(self.extents))

    @property
    def active(self) -> int:
        """K: ranks of an HB domain."""
        return int(np.prod(self.extents[4:]))

    def extent(self, name: str) -> int:
        """Extent of one dimension, such as `tl`: TP across domains."""
        return self.extents[GRID.index(name)]


def split_of(workload: Workload, chosen: WorkloadPlan) -> Split:
    """What a plan says of one workload."""
    one, inside = chosen.mapping, {name: parts[0] for name, parts in chosen.placement.items()}
    across = {name: parts[1] for name, parts in chosen.placement.items()}
    extents = tuple((across if name[1] == "l" else inside)[f"{name[0]}p"] for name in GRID)
    return Split(
        workload=workload,
        mapping=Mappings(
            tp=_row(one.tp),
            cp=_row(one.cp),
            pp=_row(one.pp),
            dp=_row(one.dp),
            ep=_row(one.ep),
            micro_batch=_row(one.micro_batch),
            interleave=_row(one.interleave),
            recompute=_row(RECOMPUTE.index(one.recompute)),
            sequence_parallel=np.array([one.sequence_parallel]),
            zero=_row(one.zero),
        ),
        placement=Placements(
            tp=_row(inside["tp"]), cp=_row(inside["cp"]), pp=_row(inside["pp"]), dp=_row(inside["dp"])
        ),
        extents=extents,
    )


def _row(value: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array([value], dtype=np.int64)
