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
    cp: Ints
    pp: Ints
    dp: Ints
    ep: Ints
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
    """The part of each degree that lies inside an HB domain; arrays of shape (n,) beside those of `Mappings`.

    Expert groups follow from these: `expert_ranks`.
    """

    tp: Ints
    cp: Ints
    pp: Ints
    dp: Ints

    def __len__(self) -> int:
        return len(self.tp)

    def take(self, rows: Ints | Bools) -> Placements:
        """The chosen rows."""
        return replace(self, **{f.name: getattr(self, f.name)[rows] for f in fields(self)})


def micro_batches(mappings: Mappings, global_batch: int) -> Ints:
    """m: micro-batches one pipeline works through in an iteration."""
    return global_batch // (mappings.dp * mappings.micro_batch)


def expert_ranks(mappings: Mappings, placements: Placements, *, expert_tp: bool) -> tuple[Ints, Ints, Ints, Ints]:
    """Expert groups, and the groups of GPUs that hold the same experts; arrays of shape (n,).

    Returns
    -------
    inside, across, copies_inside, copies_across
        x_h, x_l: ranks of an expert group in an HB domain and domains it spans; the same for the copies of an expert.
    """
    inner = placements.cp * placements.dp * (1 if expert_tp else placements.tp)
    ranks = mappings.cp * mappings.dp * (1 if expert_tp else mappings.tp)
    inside = np.gcd(mappings.ep, inner)
    copies_inside = inner // inside
    return inside, mappings.ep // inside, copies_inside, ranks // mappings.ep // copies_inside


def chunk_layers(layers: int, mappings: Mappings) -> Ints:
    """Layers of a model chunk, the fullest of a stage: ceil(L / (p·v)); shape (n,)."""
    return -(-layers // (mappings.pp * mappings.interleave))


def stage_layers(layers: int, mappings: Mappings) -> tuple[Ints, Ints]:
    r"""Layers of the fullest stage, :math:`\ell`, and how many fewer the last stage has; arrays of shape (n,).

    Layers missing from a full grid of chunks are taken from the first and the last stage, which hold the embedding and
    the logits.
    """
    fullest = chunk_layers(layers, mappings) * mappings.interleave
    missing = mappings.pp * fullest - layers
    return fullest, missing - missing // 2
