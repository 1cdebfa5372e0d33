r"""Flows between HB domains that cross the border of a switch: how many, for every kind of traffic.

A switch holds, of each rail that it serves, the domains of an interval [a, b). Members of a group lie `stride` domains
apart, and groups tile the domains, so that what leaves an interval has a closed form. The load of a link is counted in
NIC rates: a domain whose whole traffic of a rail leaves counts 1 (docs/loads.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from coopt.perf.mapping import Bools, Floats, Ints, distinct_rows

INTERVALS = 6  # first, middle and last ones: others hold as much of a pipeline as the middle ones

Count = Callable[..., Any]


def ring(a: Ints, b: Ints, stride: Ints, members: Ints, far: Any = 1) -> Ints:
    """Domains of [a, b) that send outside where each sends to the member `far` further on in its ring."""
    block, step = stride * members, stride * far

    def out(length: Ints) -> Ints:
        """Of a part of a block: all but those whose receiver, ahead or back past the end, lies in it too."""
        return np.asarray(length - np.maximum(length - step, 0) - np.maximum(length - (block - step), 0))

    together = a // block == (b - 1) // block
    return np.asarray(np.where(together, out(b - a), out(-a % block) + out(b % block)))


def exchange(a: Ints, b: Ints, stride: Ints, members: Ints) -> Floats:
    """What the domains of [a, b) send outside in an all-to-all: the share of its peers that each has there, summed."""
    block = stride * members

    def share(length: Ints) -> Floats:
        """Of a part of a block; every group has floor or ceil of length/stride members in it."""
        few, more = length // stride, length % stride
        pairs = (stride - more) * few * (members - few) + more * (few + 1) * (members - few - 1)
        return np.asarray(pairs / np.maximum(members - 1, 1))

    together = a // block == (b - 1) // block
    return np.asarray(np.where(together, share(b - a), share(-a % block) + share(b % block)))


def after(a: Ints, b: Ints, domains: Ints, stage: Ints, closed: Ints) -> Ints:
    """Domains of [a, b) whose next stage lies outside; `closed` pipelines go on from the last stage to the first."""
    return _length(_after(a, b, domains, stage, closed))


def before(a: Ints, b: Ints, domains: Ints, stage: Ints, closed: Ints) -> Ints:
    """Domains of [a, b) whose stage before lies outside."""
    return _length(_before(a, b, domains, stage, closed))


def in_blocks(count: Count) -> Count:
    """A count for pipelines that lie on `line` domains each, from one for pipelines on all domains."""

    def counted(a: Ints, b: Ints, line: Ints, *rest: Ints) -> Any:
        low, high = a - a // line * line, b - a // line * line
        if (high <= line).all():
            return count(low, high, line, *rest)
        parts = count(low, line, line, *rest) + count(0, b % line, line, *rest)
        return np.where(high <= line, count(low, np.minimum(high, line), line, *rest), parts)

    return counted


@in_blocks
def either(a: Ints, b: Ints, domains: Ints, stage: Ints, closed: Ints) -> Ints:
    """Domains of [a, b) with a neighbouring stage outside."""
    later, earlier = _after(a, b, domains, stage, closed), _before(a, b, domains, stage, closed)
    return _length(later) + _length(earlier) - _length(_common(one, two) for one in later for two in earlier)


Interval = tuple[Ints, Ints]


def _common(one: Interval, two: Interval) -> Interval:
    return np.maximum(one[0], two[0]), np.minimum(one[1], two[1])


def _length(intervals: Iterable[Interval]) -> Ints:
    return np.asarray(sum(np.maximum(high - low, 0) for low, high in intervals))


def _after(a: Ints, b: Ints, domains: Ints, stage: Ints, closed: Ints) -> tuple[Interval, Interval]:
    rest = domains - stage
    return (np.maximum(a, b - stage), np.minimum(b, rest)), (np.maximum(a, rest), np.minimum(b, a + rest) * closed)


def _before(a: Ints, b: Ints, domains: Ints, stage: Ints, closed: Ints) -> tuple[Interval, Interval]:
    rest = domains - stage
    return (np.maximum(a, stage), np.minimum(b, a + stage)), (np.maximum(a, b - rest), np.minimum(b, stage) * closed)


def first_stage(a: Ints, b: Ints, domains: Ints, stage: Ints) -> Ints:
    """Domains of [a, b) in the first stage whose partner in the last one lies outside."""
    return _length([(np.maximum(a, b - (domains - stage)), np.minimum(b, stage))])


def last_stage(a: Ints, b: Ints, domains: Ints, stage: Ints) -> Ints:
    """Domains of [a, b) in the last stage whose partner in the first one lies outside."""
    rest = domains - stage
    return _length([(np.maximum(a, rest), np.minimum(b, a + rest))])


BOTH, RAIL, APART = 0, 1, 2
"""How pipelines use NICs: both directions of all stages on each; one end of a domain on a rail, of which the busier
counts; both ends on the rails of a switch.

Stages run through one domain upwards and through the next one downwards, so that a hop between domains keeps to rails:
those of the last stage in a domain after even blocks of domains, of the first stage after odd ones. From an odd number
of blocks back to the first, each direction takes the rails of its receiver."""


class Ends(NamedTuple):
    """Domains that send, and that receive, over the rails of the first and the last stage in a domain."""

    first_out: Any
    last_out: Any
    first_in: Any
    last_in: Any

    @property
    def busiest(self) -> Any:
        """On the busiest rail, in the busier direction."""
        return np.maximum.reduce(np.broadcast_arrays(*self))


def hop_ends(a: Ints, b: Ints, domains: Ints, stage: Ints, closed: Ints) -> Ends:
    """The ends of hops between [a, b) and stages outside, where several stages share a domain."""
    (next_, onward), (before_, back) = (way(a, b, domains, stage, closed) for way in (_after, _before))
    even_next, even_before = _even(next_, stage), _even(before_, stage)
    last = even_next + _length([before_]) - even_before
    first = _length([next_]) - even_next + even_before
    onwards, backwards = _length([onward]), _length([back])
    odd = domains // stage % 2 == 1
    both = onwards + backwards
    return Ends(  # a NIC that sends to both neighbours sends to one after the other
        first_out=first + np.where(odd, onwards - _length([_common(before_, onward)]), both),
        last_out=last + np.where(odd, backwards - _length([_common(next_, back)]), 0),
        first_in=first + np.where(odd, backwards, both),
        last_in=last + np.where(odd, onwards, 0),
    )


def tied_ends(a: Ints, b: Ints, domains: Ints, stage: Ints, closed: Ints) -> Ends:
    """As `hop_ends`, for first and last stages that add up the gradients of an embedding, `closed` or not."""
    first, last = first_stage(a, b, domains, stage), last_stage(a, b, domains, stage)
    odd = domains // stage % 2 == 1
    both = first + last
    return Ends(
        first_out=np.where(odd, last, both),
        last_out=np.where(odd, first, 0),
        first_in=np.where(odd, first, both),
        last_in=np.where(odd, last, 0),
    )


def _even(interval: Interval, stage: Ints) -> Ints:
    """Domains of an interval that lie in even blocks of `stage` domains."""

    def below(end: Ints) -> Ints:
        return np.asarray(end // (2 * stage) * stage + np.minimum(end % (2 * stage), stage))

    low, high = interval
    return np.asarray(np.where(high > low, below(high) - below(low), 0))


def hop(a: Ints, b: Ints, domains: Ints, stage: Ints, closed: Ints, way: Ints) -> Ints:
    """NICs of a rail of [a, b) that send to stages outside, or, `APART`, those of a rail of either end of a domain."""
    line = (a, b, domains, stage, closed)
    busy = np.where(way == RAIL, hop_ends(*line).busiest, after(*line) + before(*line))
    return np.asarray(np.where(way == BOTH, either(*line), busy))


def tied(a: Ints, b: Ints, domains: Ints, stage: Ints, closed: Ints, way: Ints) -> Ints:
    """As `hop`, for first and last stages that add up the gradients of an embedding."""
    line = (a, b, domains, stage, closed)
    return np.asarray(np.where(way == RAIL, tied_ends(*line).busiest, both_ends(*line)))


@in_blocks
def mirrored(a: Ints, b: Ints, domains: Ints, stage: Ints) -> Ints:
    """Domains of [a, b) whose pipeline has the stage as far from its other end outside."""
    blocks = domains // stage
    (low, few), (high, more) = np.divmod(a, stage), np.divmod(b, stage)
    cuts = np.zeros_like(few), np.minimum(few, more), np.maximum(few, more), stage
    staying = np.zeros_like(b)
    for start, end in pairwise(cuts):  # domains of a block that have as many blocks of these inside
        first, last = low + (start < few), high + (start < more)
        both = np.minimum(last, blocks - first) - np.maximum(first, blocks - last)
        staying = staying + (end - start) * np.maximum(both, 0)
    return np.asarray(b - a - staying)


@in_blocks
def both_ends(a: Ints, b: Ints, domains: Ints, stage: Ints, closed: Ints) -> Ints:
    """Domains of [a, b) in the first or last stage whose partner lies outside, `closed` or not."""
    return first_stage(a, b, domains, stage) + last_stage(a, b, domains, stage)


class Groups(NamedTuple):
    """Where the groups of mappings lie across domains; arrays of shape (n,).

    `tp` and `cp` domains hold one rank each of a TP or context group, `stage` domains a pipeline stage, `stages` of
    which follow each other; a domain holds `inner` of them, and `closed` pipelines (1) go on from the last to the
    first. `experts` domains, `apart` from each other, hold an expert group, `copies` of which exist within a stage.
    `filled` GPUs train in the fullest domain, where domains are not filled alike; 1 where they are.
    TP blocks of a stage lie `step` apart: 1, or `stages` where those of a pipeline lie side by side. Of `two_way`
    pipelines (1) stages as far from either end hold the same, and exchange it where others share an embedding.
    """

    tp: Ints
    cp: Ints
    stage: Ints
    stages: Ints
    inner: Ints
    closed: Ints
    experts: Ints
    apart: Ints
    copies: Ints
    filled: Ints
    step: Ints
    two_way: Ints

    def take(self, rows: Any) -> Groups:
        """The chosen ones."""
        return Groups(*(column[rows] for column in self))

    @property
    def have_one_neighbour(self) -> Bools:
        """Whether each stage has a neighbour in one direction only: two stages that are not closed."""
        return np.asarray((self.stages == 2) & (self.closed == 0))

    @property
    def may_turn(self) -> Bools:
        """Whether stages can lie side by side: one in each domain, all filled alike, and no group parted by TP."""
        whole = (self.tp == 1) | (self.apart == self.tp)
        return np.asarray((self.stages > 1) & (self.inner * self.filled == 1) & (self.stage > self.tp) & whole)

    @property
    def hop(self) -> Ints:
        """Domains from a stage to the next one."""
        return np.where(self.step > 1, self.tp, self.stage)

    @property
    def line(self) -> Ints:
        """Domains in a row that pipelines tile."""
        return self.hop * self.stages

    @property
    def cut(self) -> Ints:
        """Domains whose hops an interval cuts at each of its ends, at most."""
        return np.where(self.step > 1, self.tp * (1 + self.closed), self.stage)

    @property
    def rings(self) -> tuple[tuple[str, Ints, Ints], ...]:
        """Kind, stride and members of the groups that pass data round a ring."""
        return (
            ("tp", np.ones_like(self.tp), self.tp),
            ("cp", self.tp * self.step, self.cp),
            ("dp", self.tp * self.step, self.stage // self.tp),
            ("edp", self.experts * self.apart, self.copies),
        )


def busiest(count: Count, domains: Ints, span: Ints, block: Ints | None, *columns: Ints) -> Any:
    """The most that leaves one of the intervals of `span` domains which tile all, for each row; arrays of shape (n,).

    Parameters
    ----------
    count
        Takes a, b and the columns.
    block
        What the pattern repeats after, so that as many intervals differ as it takes to come round; None for what
        depends on the ends, where the first, middle and last intervals tell all.
    """
    own = (domains, span, *(() if block is None else (block,)), *columns)
    few, position = distinct_rows(*own)
    every, wide, *rest = few
    whole, total = every // wide, -(-every // wide)
    if block is None:
        middle = total // 2
        steps = np.arange(INTERVALS)[:, None]
        tried = np.where(steps < 2, steps, np.where(steps < 4, middle + steps - 3, total + steps - 6))
        number = np.clip(tried, 0, total - 1).T.ravel()
        row, starts = np.repeat(np.arange(len(every)), INTERVALS), np.arange(len(every)) * INTERVALS
    else:
        repeats = np.minimum(whole, rest[0] // np.gcd(wide, rest[0])) + 1
        rest = rest[1:]
        row, starts = np.repeat(np.arange(len(every)), repeats), np.cumsum(repeats) - repeats
        number = np.arange(len(row)) - starts[row]
        number = np.where(number == repeats[row] - 1, total[row] - 1, number)
    a = number * wide[row]
    found = count(a, np.minimum(a + wide[row], every[row]), *(column[row] for column in rest))
    return np.maximum.reduceat(found, starts)[position] if len(every) else np.zeros(0)


@cache
def sending(window: int, ends: int, total: int, *ranges: tuple[int, int]) -> int:
    """The most senders among `window` end points that follow each other, windows tiling all of them.

    Parameters
    ----------
    ends
        End points of a domain; those of `ranges` send, in each domain.
    """
    starts = np.arange(min(-(-total // window), ends // int(np.gcd(window, ends)))) * window
    stops = np.minimum(starts + window, total)

    def below(end: Ints, low: int, high: int) -> Ints:
        return end // ends * (high - low) + np.clip(end % ends - low, 0, high - low)

    return int(np.sum([below(stops, *one) - below(starts, *one) for one in ranges], axis=0).max())
