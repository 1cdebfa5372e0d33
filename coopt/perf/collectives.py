"""Collectives over two levels: ranks inside an HB domain, and domains joined by one rail. Their
seconds are affine functions of bandwidths that are not chosen yet.

For one mapping, the iteration time is affine in the reciprocal bandwidths between HB domains.
Keeping the coefficients instead of the number lets one evaluation serve every network.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import Any, Literal

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
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

    Where flows take random paths, these are seconds that are rarely exceeded, and `mean` has the
    mean ones.
    """

    tp: Any
    cp: Any
    dp: Any
    ep: Any
    edp: Any
    pp: Any
    tied: Any
    algorithms: Mapping[tuple[str, str], Any] | None = None
    mean: Reciprocals | None = None

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
            **{kind: changed[id(s_byte)] for kind, s_byte in kinds.items()},
            algorithms=algorithms,
            mean=None if self.mean is None else self.mean.mapped(change),
        )

    def cases(self) -> Iterator[Reciprocals]:
        """Yield the cases of which the slowest counts: these seconds themselves, or where flows
        take random paths those in which each set of kinds is unlucky and the others have the mean;
        small sets first.

        Of m kinds that are unlucky together each is so by 1/cbrt(m) of what it is alone:
        deviations of independent sums add up as 1/sqrt(m), and whole flows need a little more.
        """
        if self.mean is None:
            yield self
            return
        unlucky, mean = replace(self, mean=None), self.mean
        varying = [
            kind
            for kind in KINDS
            if any(
                np.any(sure != usual)
                for sure, usual in zip(unlucky._of(kind), mean._of(kind), strict=True)
            )
        ]
        yield mean
        for count in range(1, len(varying) + 1):
            for kinds in combinations(varying, count):
                yield mean._towards(unlucky, kinds, 1.0 / math.cbrt(count))

    def _of(self, kind: str) -> list[Any]:
        """The seconds per byte of a kind, by each of its algorithms."""
        algorithms = self.algorithms or {}
        others = [s_byte for (of_kind, _), s_byte in algorithms.items() if of_kind == kind]
        return [getattr(self, kind), *others]

    def _towards(self, other: Reciprocals, kinds: Collection[str], share: float) -> Reciprocals:
        """Move the seconds per byte of some kinds towards others by a share of the distance."""

        def moved(s_byte: Any, goal: Any) -> Any:
            return s_byte + (goal - s_byte) * share

        algorithms = self.algorithms and {
            algorithm: moved(s_byte, (other.algorithms or {})[algorithm])
            if algorithm[0] in kinds
            else s_byte
            for algorithm, s_byte in self.algorithms.items()
        }
        of_kinds = {kind: moved(getattr(self, kind), getattr(other, kind)) for kind in kinds}
        return replace(self, **of_kinds, algorithms=algorithms)

    def at_rate(self, s_byte: Any, kinds: Iterable[str]) -> Reciprocals:
        """Give some kinds other seconds per byte, which are certain."""
        of_kinds: dict[str, Any] = dict.fromkeys(kinds, s_byte)
        mean = None if self.mean is None else replace(self.mean, **of_kinds)
        return replace(self, **of_kinds, mean=mean)

    def at_least(self, s_byte: Any) -> Reciprocals:
        """Charge every kind of traffic at least so many seconds per byte."""
        if not np.any(s_byte):
            return self
        return self.mapped(lambda of_kind: np.maximum(of_kind, s_byte))

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
        mean = None if self.mean is None else self.mean.slowed(factors)
        return Reciprocals(**kinds, algorithms=algorithms, mean=mean)

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
        # the number 0 costs no pass over the rows, as an array of zeros would
        terms = {
            name: term
            for name, term in {"fixed": fixed, **sent}.items()
            if type(term) is not float or term != 0.0
        }
        object.__setattr__(self, "terms", terms)

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

    def slowest(self, r: Reciprocals, charged: Callable[[Reciprocals], Reciprocals]) -> Floats:
        """Evaluate the maximum of the pieces (s) over the cases of r, where a network that offers
        one of them is charged so.
        """
        return reduce(np.maximum, (self.at(charged(case)) for case in r.cases()))

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


RingKind = Literal["tp", "cp", "dp", "edp", "tied"]
GRADIENTS = ("dp", "edp")
# shares of the line rate, for collectives and sends alike (Dai et al., IEEE Micro 44(2), 2024)
TRANSPORT_SHARE = {"ipoib": 0.20, "tcp": 0.90}


@dataclass(frozen=True)
class LinkRates:
    """Rates that a GPU's links reach under a given transport.

    `hb_byte_s` is the one-way bandwidth inside the domain that collectives reach (bytes/s, a number
    or an array) and `sum_byte_s` that of all-reduces there. `rail` and `send` are the shares of the
    bandwidth between domains that collectives and sends reach. `rail_reduces` says whether the
    switches of the network sum gradients. The latencies are in seconds: to start a collective, per
    step of one, and per send. Inside one domain, `own_share` is what a rank copies of its own data
    besides, and `short` the share of the rate that messages reach without starting `long_s` later.
    """

    hb_byte_s: Any
    rail: float
    send: float
    latency_s: float
    step_s: float
    send_s: float
    sum_byte_s: Any = 0.0
    rail_reduces: bool = False
    own_share: float = 0.0
    short: float = 1.0
    long_s: float = 0.0

    def protocol_s(self, moved_s: Any, alone: Any, part: Any = 1.0) -> Any:
        """Return the seconds that a collective, or a part of one, takes to move data inside a
        domain, given those at the full rate, by the faster of two protocols: for short messages,
        and for long ones.

        Parameters
        ----------
        alone
            Whether the group lies in one domain; others always start the long protocol.
        """
        if self.short == 1.0:
            return moved_s
        faster_s = np.minimum(moved_s / self.short, moved_s + self.long_s * part)
        return np.where(alone, faster_s, moved_s)


def links_of(workload: Workload, gpu: Gpu, hb_gbyte_s: Any) -> LinkRates:
    """Return the link rates for a workload.

    Parameters
    ----------
    hb_gbyte_s
        F, one-way bandwidth inside the domain (10^9 bytes/s).
    """
    efficiency, collectives = gpu.efficiency, workload.options.collectives
    # with `collectives = "levels"` no switch sums: the efficiencies were fitted without
    sums = (
        efficiency.hb
        if collectives == "levels"
        else max(efficiency.hb, efficiency.hb_reduce or 0.0)
    )
    share = TRANSPORT_SHARE.get(workload.options.transport)
    rail, send = (efficiency.rail, efficiency.send) if share is None else (share, share)
    byte_s = hb_gbyte_s * 1e9
    latency = efficiency.latency_s, efficiency.step_s, efficiency.send_s
    protocols = efficiency.hb_own, efficiency.hb_short, efficiency.long_s
    is_in_network = collectives == "in-network"
    return LinkRates(
        efficiency.hb * byte_s, rail, send, *latency, sums * byte_s, is_in_network, *protocols
    )


@dataclass(frozen=True)
class GatherRates:
    """Time of an all-gather or reduce-scatter: seconds per byte, and start-up seconds.

    `inside_s_byte` is charged inside domains, by the protocols of `links` where `alone`; `across`
    is the bytes at the full rate of a rail for each byte of data, and `part` the share of a
    collective that this is. All are arrays that broadcast.
    """

    kind: RingKind
    links: LinkRates
    inside_s_byte: Any
    across: Any
    start_s: Any
    alone: Any
    part: Any

    def of(self, data_bytes: Any) -> AffineSeconds:
        """Return the time of the collective for that many bytes."""
        inside_s = self.links.protocol_s(self.inside_s_byte * data_bytes, self.alone, self.part)
        return AffineSeconds(inside_s + self.start_s, **{self.kind: self.across * data_bytes})


def gather(
    links: LinkRates,
    data_bytes: Any,
    x: Any,
    y: Any,
    kind: RingKind,
    *,
    summed: Any = False,
    sized: bool = False,
) -> AffineSeconds:
    """Return the time of an all-gather or reduce-scatter of `data_bytes` (the whole tensor); the
    parameters are those of `gather_rates`.
    """
    return gather_rates(links, x, y, kind, summed=summed, sized=sized).of(data_bytes)


def gather_rates(
    links: LinkRates,
    x: Any,
    y: Any,
    kind: RingKind,
    min_ranks: Any = None,
    *,
    summed: Any = False,
    sized: bool = False,
) -> GatherRates:
    r"""Rates of an all-gather or reduce-scatter over x ranks in a domain and y domains.

    Along the rail each rank moves its 1/x of the data; inside the domain it moves all of it:

    .. math:: \frac{x-1}{x} \frac{D}{e_{nv} F} + \frac{y-1}{y} \frac{D}{x} \frac{r}{e_{ib}}
        + \lambda + \alpha\,n

    In a group that lies in one domain a rank copies a share c of its own data as well, so that the
    first term has x - 1 + c, and is that of the faster protocol (`LinkRates.protocol_s`); others
    start the protocol for long messages. Half of an all-reduce pays half of the start-up where
    protocols are told apart (`LinkRates.short`).

    Parameters
    ----------
    kind
        Kind of traffic whose r the rail part is charged at.
    min_ranks
        Ranks in the domain with the fewest, among which the data are divided along the rail; x if
        omitted.
    summed
        Whether this is half of an all-reduce, which switches can sum: the switches of the domain
        where the group lies in one domain (at bus bandwidth `sum_byte_s`), and those of the network
        for gradients between domains.
    sized
        Whether the algorithm is chosen by message size. Only the minimum number of steps is charged
        here then; `Algorithm.start` charges the others.
    """
    byte_s = links.hb_byte_s
    if summed is not False and np.any(links.sum_byte_s > byte_s):
        # the switches of a domain sum only for groups that lie within it
        byte_s = np.where(summed & (y == 1), links.sum_byte_s, byte_s)
    across = (y - 1) / (y * (x if min_ranks is None else min_ranks) * links.rail)
    if kind in GRADIENTS and links.rail_reduces:
        across = across * switched_share(y, summed)
    count = min_steps(x, y) if sized else steps(x, y)
    part = np.where(summed, 0.5, 1.0) if links.short < 1.0 else 1.0
    latency_s = links.latency_s + links.long_s * (y > 1)
    start = np.where(x * y > 1, latency_s * part + links.step_s * count, 0.0)
    alone = (x > 1) & (y == 1)
    inside = (x - 1 + links.own_share * alone) / (x * byte_s)
    return GatherRates(kind, links, inside, across, start, alone, part)


def switched_share(y: Any, summed: Any) -> Any:
    r"""Bytes that domains send for half of a sum in switches, relative to a ring.

    Each byte is sent once for both halves, :math:`\frac{1}{2} \frac{y}{y-1}`; 1 where nothing is
    summed.
    """
    return np.where(summed & (y > 1), y / (2 * np.maximum(y - 1, 1)), 1.0)


def steps(x: Any, y: Any) -> Any:
    """Return n, the steps of a collective: those of a ring on each level, or of a tree up and down
    where that takes fewer.
    """
    rings = (x - 1) + (y - 1)
    return np.minimum(rings, 2 * min_steps(x, y))


def min_steps(x: Any, y: Any) -> Any:
    """Return the minimum number of steps: each step doubles the data of a rank, inside domains and
    then between them.
    """
    return tree_levels(x) + tree_levels(y)


def tree_levels(ranks: Any) -> Any:
    """Return the levels of a binary tree over that many ranks: ceil(log2 x), the binary digits of x
    - 1.
    """
    return np.frexp(ranks - 1.0)[1]


def send(links: LinkRates, data_bytes: Any, crosses: Any) -> AffineSeconds:
    """Return the time of a pipeline send of `data_bytes`: over the rail where `crosses`, else
    inside the domain.
    """
    inside = links.send_s + np.where(crosses, 0.0, data_bytes / links.hb_byte_s)
    return AffineSeconds(inside, pp=np.where(crosses, data_bytes / links.send, 0.0))
