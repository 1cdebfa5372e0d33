"""Seconds as a function of bandwidths that are not chosen yet.

For one mapping, time is affine in the reciprocal bandwidths between domains. Keeping the coefficients instead of the
number lets one evaluation serve every network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coopt.perf.mapping import Floats, Ints

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
class Overlap:
    r"""What is left of r where a collective sends inside domains and between them at the same time; arrays (n,).

    .. math:: r' = \min(r, \max(q, b\,r - a))

    Seconds of the level inside stay with the fixed ones, so that r itself stands for one level after the other.
    """

    floor: Floats
    slope: Floats
    saved: Floats

    def left(self, r: Any) -> Any:
        """r': seconds per byte; never falls where r rises, and never exceeds r."""
        return np.minimum(r, np.maximum(self.floor, self.slope * r - self.saved))

    def take(self, rows: Ints) -> Overlap:
        """The chosen rows."""
        return Overlap(self.floor[rows], self.slope[rows], self.saved[rows])


@dataclass(frozen=True, kw_only=True)
class Overlaps:
    """The overlap of each kind of traffic; None where no row of it has both levels."""

    tp: Overlap | None = None
    cp: Overlap | None = None
    dp: Overlap | None = None
    ep: Overlap | None = None
    edp: Overlap | None = None

    def left(self, r: Reciprocals) -> Reciprocals:
        """The seconds per byte that rows are charged where the network gives them r."""
        named = self.named
        return replace(r, **{kind: one.left(getattr(r, kind)) for kind, one in named.items()}) if named else r

    @property
    def named(self) -> dict[str, Overlap]:
        """The overlaps that there are, by kinds."""
        return {kind: one for kind, one in vars(self).items() if one is not None}

    @property
    def costs(self) -> list[Floats]:
        """Columns (n,): of two rows with as many domains, that which is nowhere larger is nowhere charged more."""
        return [column for one in self.named.values() for column in (-one.saved, one.floor)]

    def take(self, rows: Ints) -> Overlaps:
        """The chosen rows; what saves none of them anything is absent."""
        taken = {kind: one.take(rows) for kind, one in self.named.items()}
        return Overlaps(**{kind: one for kind, one in taken.items() if one.saved.any()})


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
