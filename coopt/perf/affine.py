"""Seconds that depend on bandwidths nobody has chosen yet.

For one mapping, time is affine in the reciprocal bandwidths between domains. Keeping the coefficients instead of the
number lets one evaluation serve every network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coopt.perf.mapping import Floats


@dataclass(frozen=True, kw_only=True)
class Reciprocals:
    """Seconds per byte that the groups of each dimension see between domains; arrays that broadcast."""

    tp: Any
    pp: Any
    dp: Any


@dataclass(frozen=True)
class AffineSeconds:
    """fixed + tp·r_tp + pp·r_pp + dp·r_dp: `fixed` in seconds, the others in bytes; each an array or 0."""

    fixed: Any = 0.0
    tp: Any = 0.0
    pp: Any = 0.0
    dp: Any = 0.0

    def __add__(self, other: AffineSeconds) -> AffineSeconds:
        return AffineSeconds(self.fixed + other.fixed, self.tp + other.tp, self.pp + other.pp, self.dp + other.dp)

    def __sub__(self, other: AffineSeconds) -> AffineSeconds:
        return AffineSeconds(self.fixed - other.fixed, self.tp - other.tp, self.pp - other.pp, self.dp - other.dp)

    def __mul__(self, factor: Any) -> AffineSeconds:
        return AffineSeconds(self.fixed * factor, self.tp * factor, self.pp * factor, self.dp * factor)

    def at(self, r: Reciprocals) -> Floats:
        """The number of seconds at given reciprocal bandwidths."""
        return np.asarray(self.fixed + self.tp * r.tp + self.pp * r.pp + self.dp * r.dp, dtype=np.float64)
