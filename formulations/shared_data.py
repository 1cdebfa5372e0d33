"""The numbers of a shared-network problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Resource:
    """Use of one limited resource by families, affine as their cost; arrays of shape (F,)."""

    name: str
    fixed: Floats
    uplink: Floats
    spine: Floats
    cap: float


@dataclass(frozen=True, kw_only=True)
class SharedData:
    """One network for workloads that use it in turn.

    Arrays named after families have shape (F,), those of columns (C,). `leaves` is 0 for a family without spines.
    `down` holds the down-ports of each family's leaf, 0 where no uplinks exist.
    """

    workloads: int
    contexts: int
    fixed: Floats
    uplink: Floats
    spine: Floats
    least: Ints
    most: Ints
    leaves: Ints
    radix: Ints
    down: Ints
    context: Ints
    column_workload: Ints
    column_context: Ints
    need: Ints
    reach: Floats
    resources: tuple[Resource, ...] = ()
