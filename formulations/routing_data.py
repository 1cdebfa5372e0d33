"""The numbers of a routing problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class RoutingData:
    """Flows between pairs of leaves, and bundles of links between leaves and cores.

    `src`, `dst` and `flows` have shape (pairs,): leaves of a pair and flows between them, at least 1. `step` has shape
    (leaves, cores): what one flow adds to the load of a bundle, U over its links, 0 where it has none; U is a common
    multiple of the numbers of links, so that loads are whole. `least` and `most` bound the load of the worst bundle.
    """

    src: Ints
    dst: Ints
    flows: Ints
    step: Ints
    least: int
    most: int
