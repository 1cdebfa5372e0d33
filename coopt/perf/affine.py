"""Seconds as a function of bandwidths that are not chosen yet.

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
    """Seconds per byte that the groups of each dimension see between domains; arrays that broadcast.

    `ep` is that of `dp` where it is left out.
    """

    tp: Any
    pp: Any
    dp: Any
    ep: Any = None

    @property
    def of_experts(self) -> Any:
        """Seconds per byte that all-to-alls of experts see."""
        return self.dp if self.ep is None else self.ep


@dataclass(frozen=True)
class AffineSeconds:
    """fixed + tp·r_tp + pp·r_pp + dp·r_dp + ep·r_ep: `fixed` in seconds, the others in bytes; each an array or 0."""

    fixed: Any = 0.0
    tp: Any = 0.0
    pp: Any = 0.0
    dp: Any = 0.0
    ep: Any = 0.0

    def __add__(self, other: AffineSeconds) -> AffineSeconds:
        return AffineSeconds(*(_sum(a, b) for a, b in zip(self._parts, other._parts, strict=True)))

    def __sub__(self, other: AffineSeconds) -> AffineSeconds:
        return self + other * -1.0

    def __mul__(self, factor: Any) -> AffineSeconds:
        return AffineSeconds(*(part if _is_zero(part) else part * factor for part in self._parts))

    @property
    def is_zero(self) -> bool:
        """Whether every part is the number 0, so that nothing has to be computed."""
        return all(_is_zero(part) for part in self._parts)

    @property
    def _parts(self) -> tuple[Any, Any, Any, Any, Any]:
        return self.fixed, self.tp, self.pp, self.dp, self.ep

    def at(self, r: Reciprocals) -> Floats:
        """The number of seconds at given reciprocal bandwidths."""
        seconds = self.fixed
        for part, reciprocal in ((self.tp, r.tp), (self.pp, r.pp), (self.dp, r.dp), (self.ep, r.of_experts)):
            seconds = seconds if _is_zero(part) else seconds + part * reciprocal
        return np.asarray(seconds, dtype=np.float64)


def _is_zero(part: Any) -> bool:
    """Whether a part is the number 0, which costs no pass over the rows, and not an array of zeros."""
    return isinstance(part, float) and part == 0.0


def _sum(a: Any, b: Any) -> Any:
    return b if _is_zero(a) else a if _is_zero(b) else a + b
