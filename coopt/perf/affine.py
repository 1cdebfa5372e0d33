"""Seconds as affine functions of bandwidths that are not chosen yet.

For one mapping, the iteration time is affine in the reciprocal bandwidths between HB domains.
Keeping the coefficients instead of the number lets one evaluation serve every network.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

import numpy as np

from coopt.perf.mapping import Floats, Ints

KINDS = ("tp", "cp", "dp", "ep", "edp", "pp", "tied")
"""Kinds of traffic between HB domains: TP collectives, the ring of keys and values (`cp`),
gradients and parameters (`dp`), all-to-alls of experts (`ep`), gradients of experts (`edp`),
pipeline sends (`pp`), and the exchange between the first and the last stage, which share a tied
embedding (`tied`).
"""
KNOWN_KINDS = frozenset(KINDS)


@dataclass(frozen=True, kw_only=True)
class Reciprocals:
    """Seconds per byte between HB domains for each kind of traffic; arrays that broadcast.

    `algorithms` holds the seconds per byte of collectives that do not use a ring, by kind of
    traffic and flow pattern (`Algorithm.flows`). It is None where every algorithm runs at the rate
    of the ring.
    """

    tp: Any
    cp: Any
    dp: Any
    ep: Any
    edp: Any
    pp: Any
    tied: Any
    algorithms: Mapping[tuple[str, str], Any] | None = None

    @classmethod
    def everywhere(cls, s_byte: Any) -> Reciprocals:
        """Use the same seconds per byte for every kind of traffic."""
        return cls(**dict.fromkeys(KINDS, s_byte))

    def mapped(self, change: Callable[[Any], Any]) -> Reciprocals:
        """Apply a function to every array."""
        algorithms = (
            None
            if self.algorithms is None
            else {name: change(s_byte) for name, s_byte in self.algorithms.items()}
        )
        kinds = {kind: getattr(self, kind) for kind in KINDS}
        # kinds with equal values share one array
        changed = {
            key: change(s_byte)
            for key, s_byte in {id(s_byte): s_byte for s_byte in kinds.values()}.items()
        }
        return Reciprocals(
            **{kind: changed[id(s_byte)] for kind, s_byte in kinds.items()}, algorithms=algorithms
        )

    def slowed(self, factors: Mapping[str, float]) -> Reciprocals:
        """Multiply the seconds per byte of some kinds by a factor, for all their algorithms."""
        kinds = {kind: getattr(self, kind) * factors.get(kind, 1.0) for kind in KINDS}
        algorithms = (
            None
            if self.algorithms is None
            else {
                algorithm: s_byte * factors.get(algorithm[0], 1.0)
                for algorithm, s_byte in self.algorithms.items()
            }
        )
        return Reciprocals(**kinds, algorithms=algorithms)

    def by(self, kind: str, flows: str) -> Any:
        """Return the seconds per byte of a kind of traffic whose algorithm has the given flow
        pattern.
        """
        return (
            getattr(self, kind)
            if flows == "ring" or self.algorithms is None
            else self.algorithms[kind, flows]
        )


NO_NETWORK = Reciprocals.everywhere(0.0)

Flows = Literal["ring", "halving", "trees"]
"""Flow pattern of a collective between HB domains: each rank sends to the next one (`ring`), to
ranks at doubling distances (`halving`), or along two binary trees (`trees`).
"""


@dataclass(frozen=True)
class Algorithm:
    r"""An algorithm of a collective, as a charge r' for the seconds per byte r; arrays of shape
    (n,).

    .. math:: r' = \max(q, b\,r - a) + s

    The seconds inside domains belong to the fixed term, so that r' = r is a ring between the
    domains that starts after the transfers inside them. q (`floor`) and a (`saved`) describe how
    far the transfers on both levels overlap, b (`slope`) is the number of bytes relative to a ring,
    and s (`start`) charges the additional steps per byte; s is infinite in rows that cannot use the
    algorithm.
    """

    name: str
    flows: Flows
    floor: Floats
    slope: Floats
    saved: Floats
    start: Floats

    def charged(self, r: Any) -> Any:
        """Return r' (s/byte), which never falls where r rises."""
        return np.maximum(self.floor, self.slope * r - self.saved) + self.start

    def take(self, rows: Ints) -> Algorithm:
        """Select rows."""
        return replace(
            self,
            **{name: getattr(self, name)[rows] for name in ("floor", "slope", "saved", "start")},
        )

    @property
    def costs(self) -> list[Floats]:
        """Columns (n,) to compare rows with equally many domains: a row that is larger in none of
        them is never charged more.
        """
        return [-self.saved, self.floor, np.minimum(self.start, CLOSED_S)]

    @classmethod
    def plain(cls, name: str, start: Floats) -> Algorithm:
        """Return the ring between domains that starts after the transfers inside them."""
        nothing = np.zeros_like(start)
        return cls(name, "ring", nothing, np.ones_like(start), nothing, start)


CLOSED_S = 1e9  # per byte, above any charge: compares rows without an algorithm to others


@dataclass(frozen=True, kw_only=True)
class Algorithms:
    """The algorithms available to the collectives of each kind of traffic; the fastest one is
    charged.

    A kind with a single algorithm has an empty tuple.
    """

    tp: tuple[Algorithm, ...] = ()
    cp: tuple[Algorithm, ...] = ()
    dp: tuple[Algorithm, ...] = ()
    ep: tuple[Algorithm, ...] = ()
    edp: tuple[Algorithm, ...] = ()

    def charged(self, r: Reciprocals) -> Reciprocals:
        """Return the seconds per byte charged where the network offers r: the least over all
        algorithms.
        """
        algorithms_by_kind = self.by_kind
        if not algorithms_by_kind:
            return r
        charges = {
            kind: [algorithm.charged(r.by(kind, algorithm.flows)) for algorithm in algorithms]
            for kind, algorithms in algorithms_by_kind.items()
        }
        return replace(
            r, **{kind: reduce(np.minimum, of_kind) for kind, of_kind in charges.items()}
        )

    def of_names(self, names: Mapping[str, str]) -> Algorithms:
        """Select the named algorithm of each kind; where a kind has no algorithm of that name, its
        first one (rings or plain exchanges).
        """
        return Algorithms(
            **{
                kind: next(
                    ((algorithm,) for algorithm in algorithms if algorithm.name == names.get(kind)),
                    algorithms[:1],
                )
                for kind, algorithms in self.by_kind.items()
            }
        )

    @property
    def by_kind(self) -> dict[str, tuple[Algorithm, ...]]:
        """The algorithms by kind of traffic, for the kinds that have a choice."""
        return {kind: algorithms for kind, algorithms in vars(self).items() if algorithms}

    @property
    def flows(self) -> tuple[tuple[str, Flows], ...]:
        """Pairs of kind and flow pattern that load links differently from rings."""
        pairs = [
            (kind, algorithm.flows)
            for kind, algorithms in self.by_kind.items()
            for algorithm in algorithms
        ]
        return tuple(dict.fromkeys(pair for pair in pairs if pair[1] != "ring"))

    @property
    def costs(self) -> list[Floats]:
        """Columns (n,) to compare rows with equally many domains: a row that is larger in none of
        them is never charged more.
        """
        return [
            column
            for algorithms in self.by_kind.values()
            for algorithm in algorithms
            for column in algorithm.costs
        ]

    def take(self, rows: Ints) -> Algorithms:
        """Select rows, without the algorithms that none of these rows can use."""
        rows_by_kind = {
            kind: (algorithm.take(rows) for algorithm in algorithms)
            for kind, algorithms in self.by_kind.items()
        }
        return Algorithms(
            **{kind: available_algorithms(algorithms) for kind, algorithms in rows_by_kind.items()}
        )


def available_algorithms(algorithms: Iterable[Algorithm]) -> tuple[Algorithm, ...]:
    """Return the algorithms that some row can use; none where only one is left."""
    choices = tuple(algorithm for algorithm in algorithms if np.isfinite(algorithm.start).any())
    return choices if len(choices) > 1 else ()


TOGETHER = 1 << 14  # entries summed at a time, so that they fit into a cache


@dataclass(frozen=True, slots=True, init=False)
class AffineSeconds:
    """An affine function: fixed seconds plus, for each kind, bytes times the seconds per byte.

    `terms` maps `fixed` and the kinds of traffic to arrays or numbers; terms equal to the number 0
    are left out.
    """

    terms: Mapping[str, Any]

    def __init__(self, fixed: Any = 0.0, **sent: Any) -> None:
        assert sent.keys() <= KNOWN_KINDS, sent.keys()
        terms = {"fixed": fixed, **sent}
        object.__setattr__(
            self, "terms", {name: term for name, term in terms.items() if not _is_zero(term)}
        )

    def __getattr__(self, name: str) -> Any:
        if name != "fixed" and name not in KINDS:
            raise AttributeError(name)
        return self.terms.get(name, 0.0)

    def __add__(self, other: AffineSeconds) -> AffineSeconds:
        terms = dict(self.terms)
        for name, term in other.terms.items():
            terms[name] = terms[name] + term if name in terms else term
        return AffineSeconds(**terms)

    def __sub__(self, other: AffineSeconds) -> AffineSeconds:
        return self + other * -1.0

    def __mul__(self, factor: Any) -> AffineSeconds:
        # factors are often 0 or 1 for all rows, which needs no pass over arrays
        if type(factor) is float and factor in (0.0, 1.0):
            return self if factor else AffineSeconds()
        return AffineSeconds(**{name: term * factor for name, term in self.terms.items()})

    @property
    def is_zero(self) -> bool:
        """Whether the function has no term, so that nothing needs to be computed."""
        return not self.terms

    @property
    def parts(self) -> tuple[Any, ...]:
        """The fixed seconds and then the bytes of each kind in the order of `KINDS`; 0 for absent
        terms.
        """
        return tuple(self.terms.get(name, 0.0) for name in ("fixed", *KINDS))

    def at(self, r: Reciprocals) -> Floats:
        """Evaluate the function (s) at given reciprocal bandwidths."""
        seconds = self.terms.get("fixed", 0.0)
        for kind in KINDS:  # in one order, so that sums do not depend on how a function came about
            if kind in self.terms:
                seconds = seconds + self.terms[kind] * getattr(r, kind)
        return np.asarray(seconds, dtype=np.float64)

    def at_least(self, other: AffineSeconds, r: Reciprocals) -> AffineSeconds:
        """Return the maximum of this function and another, evaluated at r; this function itself
        where the other is zero.
        """
        return self if other.is_zero else AffineSeconds(np.maximum(self.at(r), other.at(r)))


@dataclass(frozen=True)
class Pieces:
    """Affine functions whose pointwise maximum is the iteration time, row by row.

    `coefficients` has shape (pieces, 1 + kinds, n): the fixed seconds, then the bytes of each of
    `kinds` in the order of `KINDS`.
    """

    kinds: tuple[str, ...]
    coefficients: Floats

    @classmethod
    def of(cls, kinds: Sequence[str], coefficients: Floats) -> Pieces:
        """Build the pieces without the kinds of traffic that no row has."""
        sent = coefficients[:, 1:].any(axis=(0, 2))
        if sent.all():
            return cls(tuple(kinds), coefficients)
        columns = [0, *(np.flatnonzero(sent) + 1)]
        return cls(tuple(np.array(kinds)[sent].tolist()), coefficients[:, columns])

    @property
    def fixed(self) -> Floats:
        """Seconds of each piece that do not depend on the network; shape (pieces, n)."""
        return self.coefficients[:, 0]

    def take(self, rows: Ints) -> Pieces:
        """Select rows."""
        return Pieces(self.kinds, self.coefficients[:, :, rows])

    def each_at(self, r: Reciprocals) -> Floats:
        """Evaluate each piece (s) at given reciprocal bandwidths; shape (pieces, ..., n)."""
        return self._at([np.asarray(getattr(r, kind)) for kind in self.kinds], slice(None))

    def at(self, r: Reciprocals) -> Floats:
        """Evaluate the maximum of the pieces (s) at given reciprocal bandwidths; shape (..., n)."""
        s_byte = [np.asarray(getattr(r, kind)) for kind in self.kinds]
        count, _, n = self.coefficients.shape
        together = max(1, TOGETHER // max([n, 1, *(of_kind.size for of_kind in s_byte)]))
        batches = (
            self._at(s_byte, slice(start, start + together)) for start in range(0, count, together)
        )
        return reduce(np.maximum, map(np.maximum.reduce, batches))

    def _at(self, s_byte: Sequence[Floats], pieces: slice) -> Floats:
        """Evaluate some of the pieces, given the seconds per byte of each of `kinds`."""
        table = self.coefficients[pieces]
        networks = [1] * (max((of_kind.ndim for of_kind in s_byte), default=1) - 1)
        table = table.reshape(*table.shape[:2], *networks, table.shape[2])
        seconds = table[:, 0]
        for k, of_kind in enumerate(s_byte, 1):
            seconds = seconds + table[:, k] * of_kind
        return seconds


def kinds_of(functions: Collection[AffineSeconds]) -> tuple[str, ...]:
    """Return the kinds of traffic that have bytes in some row of some function, in the order of
    `KINDS`.
    """
    return tuple(
        kind
        for kind in KINDS
        if any(kind in function.terms and np.any(function.terms[kind]) for function in functions)
    )


def _is_zero(part: Any) -> bool:
    """Whether a term is the number 0, which costs no pass over the rows, rather than an array of
    zeros.
    """
    return type(part) is float and part == 0.0
