"""Splits as the arrays the performance model works on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coopt.perf.mapping import Mappings, Placements
from coopt.validation.splits import Split

DEGREES = ("tp", "cp", "pp", "dp", "ep", "micro_batch", "interleave", "recompute", "zero")


def mappings_of(splits: Sequence[Split]) -> Mappings:
    """One mapping a split."""
    columns = {name: np.array([getattr(split, name) for split in splits], dtype=np.int64) for name in DEGREES}
    sequence = np.array([split.sequence_parallel for split in splits], dtype=np.bool_)
    return Mappings(**columns, sequence_parallel=sequence)


def placements_of(splits: Sequence[Split]) -> Placements:
    """One placement a split."""
    inside = np.array([split.inside for split in splits], dtype=np.int64)
    return Placements(tp=inside[:, 0], cp=inside[:, 1], dp=inside[:, 2], pp=inside[:, 3])
