"""Seconds as a function of bandwidths that are not chosen yet.

For one mapping, time is affine in the reciprocal bandwidths between domains. Keeping the coefficients instead of the
number lets one evaluation serve every network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coopt.perf.mapping import Floats

KINDS = ("tp", "cp", "dp", "ep", "edp", "pp", "tied")
"""Kinds of traffic between domains: TP collectives, the ring of keys and values, gradients and parameters, all-to-alls
of experts, gradients of experts, hops of the pipeline, the pair that ties first and last stage."""


@dataclass(frozen=True, kw_only=True)
class Reciprocals:
    """Seconds per byte that each kind of traffic sees between domains; arrays that broadcast."""

    tp: Any
    cp: Any
    dp: Any
    ep: Any
    edp: Any
    pp: Any
    tied: Any

    @classmethod
    def everywhere(cls, s_byte: Any) -> Reciprocals:
        """The same for every kind."""
        return cls(**dict.fromkeys(KINDS, s_byte))

    @classmethod
    def of_grid(cls, *, replicas: Any, stages: Any) -> Reciprocals:
        """Where nothing but replicas and stages lies across domains."""
        return cls(tp=0.0, cp=replicas, dp=replicas, ep=0.0, edp=replicas, pp=stages, tied=stages)


NO_NETWORK = Reciprocals.everywhere(0.0)


@dataclass(frozen=True)
class AffineSeconds:
    """fixed + sum of the bytes of each kind times its seconds per byte; each an array or 0."""

    fixed: Any = 0.0
    tp: Any = 0.0
    cp: Any = 0.0
    dp: Any = 0.0
    ep: Any = 0.0
    edp: Any = 0.0
    pp: Any = 0.0
    tied: Any = 0.0

    def __add__(self, other: AffineSeconds) -> AffineSeconds:
        return AffineSeconds(*(_sum(a, b) for a, b in zip(self.parts, other.parts, strict=True)))

    def __sub__(self, other: AffineSeconds) -> AffineSeconds:
        return self + other * -1.0

    def __mul__(self, factor: Any) -> AffineSeconds:
        return AffineSeconds(*(part if _is_zero(part) else part * factor for part in self.parts))

    @property
    def is_zero(self) -> bool:
        """Whether every part is the number 0, so that nothing has to be computed."""
        return all(_is_zero(part) for part in self.parts)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The seconds, then the bytes of each kind in the order of `KINDS`."""
        return self.fixed, self.tp, self.cp, self.dp, self.ep, self.edp, self.pp, self.tied

    def at(self, r: Reciprocals) -> Floats:
        """The number of seconds at given reciprocal bandwidths."""
        seconds = self.fixed
        for part, kind in zip(self.parts[1:], KINDS, strict=True):
            seconds = seconds if _is_zero(part) else seconds + part * getattr(r, kind)
        return np.asarray(seconds, dtype=np.float64)


def kinds_of(pieces: Sequence[AffineSeconds]) -> tuple[str, ...]:
    """The kinds of traffic that some piece has bytes of in some row, in the order of `KINDS`."""
    bytes_of = zip(*(piece.parts[1:] for piece in pieces), strict=True)
    return tuple(kind for kind, own in zip(KINDS, bytes_of, strict=True) if any(map(np.any, own)))


def _is_zero(part: Any) -> bool:
    """Whether a part is the number 0, which costs no pass over the rows, and not an array of zeros."""
    return isinstance(part, float) and part == 0.0


def _sum(a: Any, b: Any) -> Any:
    return b if _is_zero(a) else a if _is_zero(b) else a + b
