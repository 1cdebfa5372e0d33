"""Mappings and placements as columns of arrays: row i of every array belongs to mapping i."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

RECOMPUTE = ("none", "selective", "full")
NONE, SELECTIVE, FULL = range(3)


@dataclass(frozen=True, kw_only=True)
class Mappings:
    """How a workload is split, one row each.

    All arrays have shape (n,). `recompute` holds indices into `RECOMPUTE`.
    """

    tp: Ints
    pp: Ints
    dp: Ints
    micro_batch: Ints
    interleave: Ints
    recompute: Ints
    sequence_parallel: Bools
    zero: Ints

    def __len__(self) -> int:
        return len(self.tp)

    def take(self, rows: Ints | Bools) -> Mappings:
        """The chosen rows."""
        return replace(self, **{f.name: getattr(self, f.name)[rows] for f in fields(self)})


@dataclass(frozen=True, kw_only=True)
class Placements:
    """The part of each degree that lies inside an HB domain; arrays of shape (n,) beside those of `Mappings`."""

    tp: Ints
    pp: Ints
    dp: Ints

    def __len__(self) -> int:
        return len(self.tp)

    def take(self, rows: Ints | Bools) -> Placements:
        """The chosen rows."""
        return Placements(tp=self.tp[rows], pp=self.pp[rows], dp=self.dp[rows])


def micro_batches(mappings: Mappings, global_batch: int) -> Ints:
    """m: micro-batches one pipeline works through in an iteration."""
    return global_batch // (mappings.dp * mappings.micro_batch)
