"""Seconds as a function of bandwidths that are not chosen yet.

For one mapping, time is affine in the reciprocal bandwidths between domains. Keeping the
coefficients instead of the number lets one evaluation serve every network.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Literal

import numpy as np

from coopt.perf.mapping import Floats, Ints

KINDS = ("tp", "cp", "dp", "ep", "edp", "pp", "tied")
"""Kinds of traffic between domains: TP collectives, the ring of keys and values, gradients and
parameters, all-to-alls of experts, gradients of experts, hops of the pipeline, the pair that ties
first and last stage.
"""
KNOWN_KINDS = frozenset(KINDS)


@dataclass(frozen=True, kw_only=True)
class Reciprocals:
    """Seconds per byte that each kind of traffic sees between domains; arrays that broadcast.

    `ways` are those of kinds whose messages take another way than round a ring, by kind and way
    (`Way.flows`). None where every way is as fast as the ring.
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
        """The same seconds per byte for every kind of traffic."""
        return cls(**dict.fromkeys(KINDS, s_byte))

    def mapped(self, change: Callable[[Any], Any]) -> Reciprocals:
        """These seconds per byte with a change made to every array."""
        algorithms = (
            None
            if self.algorithms is None
            else {name: change(s_byte) for name, s_byte in self.algorithms.items()}
        )
        kinds = {kind: getattr(self, kind) for kind in KINDS}
        # kinds that see the same share an array
        changed = {
            key: change(s_byte)
            for key, s_byte in {id(s_byte): s_byte for s_byte in kinds.values()}.items()
        }
        return Reciprocals(
            **{kind: changed[id(s_byte)] for kind, s_byte in kinds.items()}, algorithms=algorithms
        )

    def slowed(self, factors: Mapping[str, float]) -> Reciprocals:
        """The same with some kinds slower by a factor, whichever way they go."""
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
        """Seconds per byte that a kind sees whose messages take such flows."""
        return (
            getattr(self, kind)
            if flows == "ring" or self.algorithms is None
            else self.algorithms[kind, flows]
        )


NO_NETWORK = Reciprocals.everywhere(0.0)

Flows = Literal["ring", "halving", "trees"]
"""Who sends to whom between domains: each to the next one, to one at doubled distances in turn,
along two trees.
"""


@dataclass(frozen=True)
class Algorithm:
    r"""What is left of r where a collective takes one of the ways there are; arrays (n,).

    .. math:: r' = \max(q, b\,r - a) + s

    Seconds inside domains stay with the fixed ones, so that r itself stands for a ring between
    domains after what happens inside them. q and a say how far both happen at the same time, s what
    more steps cost a byte; it is infinite where a row has no such way.
    """

    name: str
    flows: Flows
    floor: Floats
    slope: Floats
    saved: Floats
    start: Floats

    def charged(self, r: Any) -> Any:
        """r': seconds per byte; never falls where r rises."""
        return np.maximum(self.floor, self.slope * r - self.saved) + self.start

    def take(self, rows: Ints) -> Algorithm:
        """The chosen rows."""
        return replace(
            self,
            **{name: getattr(self, name)[rows] for name in ("floor", "slope", "saved", "start")},
        )

    @property
    def costs(self) -> list[Floats]:
        """Of two rows with as many domains, that which is nowhere larger in these is nowhere
        charged more.
        """
        return [-self.saved, self.floor, np.minimum(self.start, CLOSED_S)]

    @classmethod
    def plain(cls, name: str, start: Floats) -> Algorithm:
        """A ring between domains after what happens inside them."""
        nothing = np.zeros_like(start)
        return cls(name, "ring", nothing, np.ones_like(start), nothing, start)


CLOSED_S = 1e9  # for a byte: more than any row is charged, to compare rows by that have no such way


@dataclass(frozen=True, kw_only=True)
class Algorithms:
    """The ways that collectives of each kind of traffic may take, of which the fastest is taken;
    none for one alone.
    """

    tp: tuple[Algorithm, ...] = ()
    cp: tuple[Algorithm, ...] = ()
    dp: tuple[Algorithm, ...] = ()
    ep: tuple[Algorithm, ...] = ()
    edp: tuple[Algorithm, ...] = ()

    def charged(self, r: Reciprocals) -> Reciprocals:
        """The seconds per byte that rows are charged where the network gives them r."""
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
        """Of each kind the way of that name; the first one, rings or exchanges, where it has none
        of the name.
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
        """The ways of each kind of traffic that has some."""
        return {kind: algorithms for kind, algorithms in vars(self).items() if algorithms}

    @property
    def flows(self) -> tuple[tuple[str, Flows], ...]:
        """Kinds with the ways that load links otherwise than rings do."""
        pairs = [
            (kind, algorithm.flows)
            for kind, algorithms in self.by_kind.items()
            for algorithm in algorithms
        ]
        return tuple(dict.fromkeys(pair for pair in pairs if pair[1] != "ring"))

    @property
    def costs(self) -> list[Floats]:
        """Columns (n,): of two rows with as many domains, that which is nowhere larger is nowhere
        charged more.
        """
        return [
            column
            for algorithms in self.by_kind.values()
            for algorithm in algorithms
            for column in algorithm.costs
        ]

    def take(self, rows: Ints) -> Algorithms:
        """The chosen rows; what none of them may choose is absent."""
        rows_by_kind = {
            kind: (algorithm.take(rows) for algorithm in algorithms)
            for kind, algorithms in self.by_kind.items()
        }
        return Algorithms(
            **{kind: available_algorithms(algorithms) for kind, algorithms in rows_by_kind.items()}
        )


def available_algorithms(algorithms: Iterable[Algorithm]) -> tuple[Algorithm, ...]:
    """The ways that some row has; none where there is but one."""
    choices = tuple(algorithm for algorithm in algorithms if np.isfinite(algorithm.start).any())
    return choices if len(choices) > 1 else ()


TOGETHER = 1 << 14  # seconds of pieces that are summed at once: a cache holds them


@dataclass(frozen=True, slots=True, init=False)
class AffineSeconds:
    """fixed + sum of the bytes of each kind times its seconds per byte.

    `terms` are `fixed` and bytes by kind, arrays or numbers, without those that are the number 0.
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
        # shares are often one of these for all rows, which then cost no pass over arrays
        if type(factor) is float and factor in (0.0, 1.0):
            return self if factor else AffineSeconds()
        return AffineSeconds(**{name: term * factor for name, term in self.terms.items()})

    @property
    def is_zero(self) -> bool:
        """Whether there is no term, so that nothing has to be computed."""
        return not self.terms

    @property
    def parts(self) -> tuple[Any, ...]:
        """The seconds, then the bytes of each kind in the order of `KINDS`; numbers 0 among
        them.
        """
        return tuple(self.terms.get(name, 0.0) for name in ("fixed", *KINDS))

    def at(self, r: Reciprocals) -> Floats:
        """The number of seconds at given reciprocal bandwidths."""
        seconds = self.terms.get("fixed", 0.0)
        for kind in KINDS:  # in one order, so that sums do not depend on how a function came about
            if kind in self.terms:
                seconds = seconds + self.terms[kind] * getattr(r, kind)
        return np.asarray(seconds, dtype=np.float64)

    def at_least(self, other: AffineSeconds, r: Reciprocals) -> AffineSeconds:
        """The longer of this and another, known where the other is not zero."""
        return self if other.is_zero else AffineSeconds(np.maximum(self.at(r), other.at(r)))


@dataclass(frozen=True)
class Pieces:
    """Affine functions of which the largest counts, row by row.

    `coefficients` (pieces, 1 + kinds, n) are seconds, then the bytes of each of `kinds`, in the
    order of `KINDS`.
    """

    kinds: tuple[str, ...]
    coefficients: Floats

    @classmethod
    def of(cls, kinds: Sequence[str], coefficients: Floats) -> Pieces:
        """Pieces without the kinds of traffic of which no row has any."""
        sent = coefficients[:, 1:].any(axis=(0, 2))
        if sent.all():
            return cls(tuple(kinds), coefficients)
        columns = [0, *(np.flatnonzero(sent) + 1)]
        return cls(tuple(np.array(kinds)[sent].tolist()), coefficients[:, columns])

    @property
    def fixed(self) -> Floats:
        """Seconds of each piece that no network changes; shape (pieces, n)."""
        return self.coefficients[:, 0]

    def take(self, rows: Ints) -> Pieces:
        """The chosen rows."""
        return Pieces(self.kinds, self.coefficients[:, :, rows])

    def each_at(self, r: Reciprocals) -> Floats:
        """Seconds of each piece at given reciprocal bandwidths; shape (pieces, ..., n)."""
        return self._at([np.asarray(getattr(r, kind)) for kind in self.kinds], slice(None))

    def at(self, r: Reciprocals) -> Floats:
        """The largest of the pieces at given reciprocal bandwidths; shape (..., n)."""
        s_byte = [np.asarray(getattr(r, kind)) for kind in self.kinds]
        count, _, n = self.coefficients.shape
        together = max(1, TOGETHER // max([n, 1, *(of_kind.size for of_kind in s_byte)]))
        batches = (
            self._at(s_byte, slice(start, start + together)) for start in range(0, count, together)
        )
        return reduce(np.maximum, map(np.maximum.reduce, batches))

    def _at(self, s_byte: Sequence[Floats], pieces: slice) -> Floats:
        """Seconds of some of the pieces where the kinds that they send see so many seconds per
        byte.
        """
        table = self.coefficients[pieces]
        networks = [1] * (max((of_kind.ndim for of_kind in s_byte), default=1) - 1)
        table = table.reshape(*table.shape[:2], *networks, table.shape[2])
        seconds = table[:, 0]
        for k, of_kind in enumerate(s_byte, 1):
            seconds = seconds + table[:, k] * of_kind
        return seconds


def kinds_of(functions: Collection[AffineSeconds]) -> tuple[str, ...]:
    """The kinds of traffic that some function has bytes of in some row, in the order of `KINDS`."""
    return tuple(
        kind
        for kind in KINDS
        if any(kind in function.terms and np.any(function.terms[kind]) for function in functions)
    )


def _is_zero(part: Any) -> bool:
    """Whether a part is the number 0, which costs no pass over the rows, and not an array of
    zeros.
    """
    return type(part) is float and part == 0.0
