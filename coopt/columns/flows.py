r"""Flows between HB domains that cross the border of a switch: how many, for every kind of traffic.

A switch holds, of each rail that it serves, the domains of an interval [a, b). Members of a group
lie `stride` domains apart, and groups tile the domains, so that what leaves an interval has a
closed form. The load of a link is counted in NIC rates: a domain whose whole traffic of a rail
leaves counts 1 (docs/loads.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from coopt.perf.mapping import Bools, Floats, Ints, distinct_rows

INTERVALS = 6  # first, middle and last ones: others hold as much of a pipeline as the middle ones

Count = Callable[..., Any]


def ring(a: Ints, b: Ints, stride: Ints, members: Ints, far: Any = 1) -> Ints:
    """Domains of [a, b) that send outside where each sends to the member `far` further on in its
    ring.
    """
    block, step = stride * members, stride * far

    def out(length: Ints) -> Ints:
        """Of a part of a block: all but those whose receiver, ahead or back past the end, lies in
        it too.
        """
        return np.asarray(
            length - np.maximum(length - step, 0) - np.maximum(length - (block - step), 0)
        )

    head, tail = _cut_lengths(a, b, block)
    return out(head) + out(tail)


def exchange(a: Ints, b: Ints, stride: Ints, members: Ints) -> Floats:
    """What the domains of [a, b) send outside in an all-to-all: the share of its peers that each
    has there, summed.
    """
    block = stride * members

    def share(length: Ints) -> Floats:
        """Of a part of a block; every group has floor or ceil of length/stride members in it."""
        members_inside, fuller_groups = length // stride, length % stride
        # a group with i of its members inside sends i * (members - i) shares outside, whichever
        # these are
        pairs = (stride - fuller_groups) * members_inside * (
            members - members_inside
        ) + fuller_groups * (members_inside + 1) * (members - members_inside - 1)
        return np.asarray(pairs / np.maximum(members - 1, 1))

    head, tail = _cut_lengths(a, b, block)
    return share(head) + share(tail)


def _cut_lengths(a: Ints, b: Ints, block: Ints) -> tuple[Ints, Ints]:
    """How much [a, b) holds of the block that it begins in, and of the one that it ends in, 0 where
    both are one.
    """
    first_block, last_block = a // block, (b - 1) // block
    in_one_block = first_block == last_block
    return np.where(in_one_block, b, (first_block + 1) * block) - a, np.where(
        in_one_block, 0, b - last_block * block
    )


def hops_ahead(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints) -> Ints:
    """Domains of [a, b) whose next stage lies outside; a pipeline that `closes` goes on from the
    last to the first.
    """
    return _length(_links(a, b, domains, stage, closes)[0])


def hops_behind(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints) -> Ints:
    """Domains of [a, b) whose previous stage lies outside."""
    return _length(_links(a, b, domains, stage, closes)[1])


def in_blocks(count: Count) -> Count:
    """A count for pipelines that lie on `line` domains each, from one for pipelines on all
    domains.
    """

    def counted(a: Ints, b: Ints, line: Ints, *columns: Ints) -> Any:
        start = a % line
        end = start + b - a
        if (end <= line).all():
            return count(start, end, line, *columns)
        # whole lines in between send nothing outside, so that the line cut at either end tells all
        tail = np.where(end <= line, 0, b % line)
        head = count(start, np.minimum(end, line), line, *columns)
        return head + count(np.zeros_like(tail), tail, line, *columns)

    return counted


@in_blocks
def either(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints) -> Ints:
    """Domains of [a, b) with a neighbouring stage outside."""
    ahead, behind = _links(a, b, domains, stage, closes)
    return (
        _length(ahead)
        + _length(behind)
        - _length(_common(forward, backward) for forward in ahead for backward in behind)
    )


Interval = tuple[Ints, Ints]


def _common(interval: Interval, second_interval: Interval) -> Interval:
    return np.maximum(interval[0], second_interval[0]), np.minimum(interval[1], second_interval[1])


def _length(intervals: Iterable[Interval]) -> Ints:
    return np.asarray(sum(np.maximum(end - start, 0) for start, end in intervals))


def _links(
    a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints
) -> tuple[list[Interval], list[Interval]]:
    """The domains of [a, b) whose next stage lies outside, and those whose previous one does."""
    ahead, behind = [_ahead(a, b, domains, stage)], [_behind(a, b, stage)]
    if closes.any():
        ahead.append(_onward(a, b, domains, stage, closes))
        behind.append(_back(a, b, domains, stage, closes))
    return ahead, behind


def _ahead(a: Ints, b: Ints, domains: Ints, stage: Ints) -> Interval:
    """The next stage lies one stage ahead, of all but the last one."""
    return np.maximum(a, b - stage), np.minimum(b, domains - stage)


def _onward(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints) -> Interval:
    """That of the last one is the first, as far back as the last one begins."""
    last_start = domains - stage
    return np.maximum(a, last_start), np.minimum(b, a + last_start) * closes


def _behind(a: Ints, b: Ints, stage: Ints) -> Interval:
    """The previous stage lies one stage behind, of all but the first one."""
    return np.maximum(a, stage), np.minimum(b, a + stage)


def _back(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints) -> Interval:
    """That of the first one is the last."""
    return np.maximum(a, b - (domains - stage)), np.minimum(b, stage) * closes


def first_stage(a: Ints, b: Ints, domains: Ints, stage: Ints) -> Ints:
    """Domains of [a, b) in the first stage whose partner in the last one lies outside."""
    return _length([(np.maximum(a, b - (domains - stage)), np.minimum(b, stage))])


def last_stage(a: Ints, b: Ints, domains: Ints, stage: Ints) -> Ints:
    """Domains of [a, b) in the last stage whose partner in the first one lies outside."""
    last_start = domains - stage
    return _length([(np.maximum(a, last_start), np.minimum(b, a + last_start))])


BOTH, RAIL, APART = 0, 1, 2
"""How pipelines use NICs: both directions of all stages on each; one end of a domain on a rail, of
which the busier counts; both ends on the rails of a switch.

Stages run through one domain upwards and through the next one downwards, so that a hop between
domains keeps to rails: those of the last stage in a domain after even blocks of domains, of the
first stage after odd ones. From an odd number of blocks back to the first, each direction takes the
rails of its receiver.
"""


class Ends(NamedTuple):
    """Domains that send, and that receive, over the rails of the first and the last stage in a
    domain.
    """

    first_out: Any
    last_out: Any
    first_in: Any
    last_in: Any

    @property
    def busiest(self) -> Any:
        """Domains that send, or receive, over the busiest of these rails."""
        return np.maximum.reduce(np.broadcast_arrays(*self))


def hop_ends(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints) -> Ends:
    """The ends of hops between [a, b) and stages outside, where several stages share a domain."""
    ahead, behind = _ahead(a, b, domains, stage), _behind(a, b, stage)
    onward, back = (direction(a, b, domains, stage, closes) for direction in (_onward, _back))
    even_ahead, even_behind = _even(ahead, stage), _even(behind, stage)
    last_rails = even_ahead + _length([behind]) - even_behind
    first_rails = _length([ahead]) - even_ahead + even_behind
    onwards, backwards = _length([onward]), _length([back])
    odd = domains // stage % 2 == 1
    wraps = onwards + backwards
    return Ends(  # a NIC that sends to both neighbours sends to one after the other
        first_out=first_rails + np.where(odd, onwards - _length([_common(behind, onward)]), wraps),
        last_out=last_rails + np.where(odd, backwards - _length([_common(ahead, back)]), 0),
        first_in=first_rails + np.where(odd, backwards, wraps),
        last_in=last_rails + np.where(odd, onwards, 0),
    )


def tied_ends(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints) -> Ends:
    """As `hop_ends`, for first and last stages that add up the gradients of an embedding, whatever
    `closes` says.
    """
    first_senders, last_senders = (
        first_stage(a, b, domains, stage),
        last_stage(a, b, domains, stage),
    )
    odd = domains // stage % 2 == 1
    both_stages = first_senders + last_senders
    return Ends(
        first_out=np.where(odd, last_senders, both_stages),
        last_out=np.where(odd, first_senders, 0),
        first_in=np.where(odd, first_senders, both_stages),
        last_in=np.where(odd, last_senders, 0),
    )


def _even(interval: Interval, stage: Ints) -> Ints:
    """Domains of an interval that lie in even blocks of `stage` domains."""

    def even_up_to(end: Ints) -> Ints:
        return np.asarray(end // (2 * stage) * stage + np.minimum(end % (2 * stage), stage))

    start, stop = interval
    return np.asarray(np.where(stop > start, even_up_to(stop) - even_up_to(start), 0))


def hop(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints, nic_use: Ints) -> Ints:
    """NICs of a rail of [a, b) that send to stages outside, or, `APART`, those of a rail of either
    end of a domain.
    """

    def of_rail(*line: Ints) -> Any:
        return hop_ends(*line).busiest

    def apart(*line: Ints) -> Ints:
        return hops_ahead(*line) + hops_behind(*line)

    return _by_nic_use(
        nic_use, {BOTH: either, RAIL: of_rail, APART: apart}, a, b, domains, stage, closes
    )


def tied(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints, nic_use: Ints) -> Ints:
    """As `hop`, for first and last stages that add up the gradients of an embedding."""

    def of_rail(*line: Ints) -> Any:
        return tied_ends(*line).busiest

    return _by_nic_use(
        nic_use, {BOTH: both_ends, RAIL: of_rail, APART: both_ends}, a, b, domains, stage, closes
    )


def _by_nic_use(nic_use: Ints, counts: Mapping[int, Count], *line: Ints) -> Ints:
    """What each row counts that uses NICs in some way."""
    leaving = np.zeros(len(nic_use), dtype=np.int64)
    for number, count in counts.items():
        at = np.flatnonzero(nic_use == number)
        if len(at):
            leaving[at] = count(*(column[at] for column in line))
    return leaving


@in_blocks
def mirrored(a: Ints, b: Ints, domains: Ints, stage: Ints) -> Ints:
    """Domains of [a, b) whose pipeline has the stage as far from its other end outside."""
    blocks = domains // stage
    (a_block, a_offset), (b_block, b_offset) = np.divmod(a, stage), np.divmod(b, stage)
    cuts = (
        np.zeros_like(a_offset),
        np.minimum(a_offset, b_offset),
        np.maximum(a_offset, b_offset),
        stage,
    )
    staying = np.zeros_like(b)
    for start, end in pairwise(cuts):  # domains of a block that have as many blocks of these inside
        first_block, last_block = a_block + (start < a_offset), b_block + (start < b_offset)
        overlap = np.minimum(last_block, blocks - first_block) - np.maximum(
            first_block, blocks - last_block
        )
        staying = staying + (end - start) * np.maximum(overlap, 0)
    return np.asarray(b - a - staying)


@in_blocks
def both_ends(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints) -> Ints:
    """Domains of [a, b) in the first or last stage whose partner lies outside, whether pipelines
    close or not.
    """
    return first_stage(a, b, domains, stage) + last_stage(a, b, domains, stage)


class Groups(NamedTuple):
    """Where the groups of mappings lie across domains; arrays of shape (n,).

    `tp` and `cp` domains hold one rank each of a TP or context group, `stage` domains a pipeline
    stage, `stages` of which follow each other; a domain holds `stages_inside` of them, and a
    pipeline that `closes` (1) goes on from the last to the first. `experts` domains, `apart` from
    each other, hold an expert group, `copies` of which exist within a stage. `filled` GPUs train in
    the fullest domain, where domains are not filled alike; 1 where they are. TP blocks of a stage
    lie `step` apart: 1, or `stages` where those of a pipeline lie side by side. Of `two_way`
    pipelines (1) stages as far from either end hold the same, and exchange it where others share an
    embedding.
    """

    tp: Ints
    cp: Ints
    stage: Ints
    stages: Ints
    stages_inside: Ints
    closes: Ints
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
        """Whether each stage has a neighbour in one direction only: two stages that are not
        closed.
        """
        return np.asarray((self.stages == 2) & (self.closes == 0))

    @property
    def stages_can_adjoin(self) -> Bools:
        """Whether stages can lie side by side: one in each domain, all filled alike, and no group
        parted by TP.
        """
        is_unparted = (self.tp == 1) | (self.apart == self.tp)
        return np.asarray(
            (self.stages > 1)
            & (self.stages_inside * self.filled == 1)
            & (self.stage > self.tp)
            & is_unparted
        )

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
        return np.where(self.step > 1, self.tp * (1 + self.closes), self.stage)

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
    """The most that leaves one of the intervals of `span` domains which tile all, for each row;
    arrays of shape (n,).

    Parameters
    ----------
    count
        Takes a, b and the columns.
    block
        What the pattern repeats after, so that as many intervals differ as it takes to come round;
        None for what depends on the ends, where the first, middle and last intervals tell all.
    """
    keys = (domains, span, *(() if block is None else (block,)), *columns)
    distinct_keys, position = distinct_rows(*keys)
    all_domains, width, *arguments = distinct_keys
    full_intervals, total = all_domains // width, -(-all_domains // width)
    if block is None:
        middle_interval = total // 2
        steps = np.arange(INTERVALS)[:, None]
        probes = np.where(
            steps < 2, steps, np.where(steps < 4, middle_interval + steps - 3, total + steps - 6)
        )
        number = np.minimum(np.maximum(probes, 0), total - 1).T.ravel()
        row, starts = (
            np.repeat(np.arange(len(all_domains)), INTERVALS),
            np.arange(len(all_domains)) * INTERVALS,
        )
    else:
        # one more than differ: the last interval, which may hold fewer domains, takes the place of
        # the one too many
        repeats = np.minimum(full_intervals, arguments[0] // np.gcd(width, arguments[0])) + 1
        arguments = arguments[1:]
        row, starts = np.repeat(np.arange(len(all_domains)), repeats), np.cumsum(repeats) - repeats
        number = np.arange(len(row)) - starts[row]
        number = np.where(number == repeats[row] - 1, total[row] - 1, number)
    a = number * width[row]
    leaving = count(
        a, np.minimum(a + width[row], all_domains[row]), *(column[row] for column in arguments)
    )
    return np.maximum.reduceat(leaving, starts)[position] if len(all_domains) else np.zeros(0)


@cache
def sending(window: int, ends: int, total: int, *ranges: tuple[int, int]) -> int:
    """The most senders among `window` end points that follow each other, windows tiling all of
    them.

    Parameters
    ----------
    ends
        End points of a domain; those of `ranges` send, in each domain.
    """
    # after ends / gcd(window, ends) windows their ends lie in a domain as those of the first do
    starts = np.arange(min(-(-total // window), ends // int(np.gcd(window, ends)))) * window
    stops = np.minimum(starts + window, total)

    def below(end: Ints, range_start: int, range_end: int) -> Ints:
        return end // ends * (range_end - range_start) + np.clip(
            end % ends - range_start, 0, range_end - range_start
        )

    return int(
        np.sum(
            [below(stops, *sender_range) - below(starts, *sender_range) for sender_range in ranges],
            axis=0,
        ).max()
    )
