"""Number of flows between HB domains that leave a switch, for every kind of traffic.

A switch holds an interval [a, b) of the domains of each rail that it serves. Members of a group lie
`stride` domains apart, and groups tile the domains, so that the number of flows out of an interval
has a closed form. Link loads are measured in NIC rates: a domain whose whole traffic on a rail
leaves the switch counts as 1 (docs/loads.md).

A layout distributes the NICs of a job over leaves and pods; pods may hold parts of rails or
domains.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from coopt.perf.mapping import Bools, Floats, Ints, distinct_rows

INTERVALS = 6  # first, middle and last ones: others hold as much of a pipeline as the middle ones

Count = Callable[..., Any]


def ranges(count: Ints, start: Any = 0) -> tuple[Ints, Ints]:
    """Pair every i with each of `count[i]` numbers from its `start` on."""
    row = np.repeat(np.arange(len(count)), count)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(count) - count - start, count)


def ring(a: Ints, b: Ints, stride: Ints, members: Ints, far: Any = 1) -> Ints:
    """Number of domains in [a, b) that send outside, where each sends to the member `far` places
    ahead in its ring.
    """
    block, step = stride * members, stride * far

    def out(length: Ints) -> Ints:
        """Domains of part of a block whose receiver, ahead or wrapped around, lies outside that
        part.
        """
        return np.asarray(
            length - np.maximum(length - step, 0) - np.maximum(length - (block - step), 0)
        )

    head, tail = _cut_lengths(a, b, block)
    return out(head) + out(tail)


def exchange(a: Ints, b: Ints, stride: Ints, members: Ints) -> Floats:
    """Traffic that the domains in [a, b) send outside in an all-to-all: for each the share of its
    peers outside, summed.
    """
    block = stride * members

    def share(length: Ints) -> Floats:
        """For part of a block, in which every group has floor or ceil of length/stride members."""
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
    """Lengths of [a, b) in its first block and in its last block; the latter is 0 if both are the
    same.
    """
    first_block, last_block = a // block, (b - 1) // block
    in_one_block = first_block == last_block
    return np.where(in_one_block, b, (first_block + 1) * block) - a, np.where(
        in_one_block, 0, b - last_block * block
    )


def hops_ahead(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints) -> Ints:
    """Number of domains in [a, b) whose next stage lies outside; where `closes`, the last stage
    sends to the first.
    """
    return _length(_links(a, b, domains, stage, closes)[0])


def hops_behind(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints) -> Ints:
    """Number of domains in [a, b) whose previous stage lies outside."""
    return _length(_links(a, b, domains, stage, closes)[1])


def in_blocks(count: Count) -> Count:
    """Turn a count for pipelines on all domains into one for pipelines on `line` domains each."""

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
    """Number of domains in [a, b) with a neighbouring stage outside."""
    ahead, behind = _links(a, b, domains, stage, closes)
    return (
        _length(ahead)
        + _length(behind)
        - _length(_common(forward, backward) for forward in ahead for backward in behind)
    )


@in_blocks
def half_hops(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints) -> Floats:
    """Load of the hops out of [a, b), each of which takes half of a NIC."""
    ahead, behind = _links(a, b, domains, stage, closes)
    return np.asarray((_length(ahead) + _length(behind)) / 2)


Interval = tuple[Ints, Ints]


def _common(interval: Interval, second_interval: Interval) -> Interval:
    return np.maximum(interval[0], second_interval[0]), np.minimum(interval[1], second_interval[1])


def _length(intervals: Iterable[Interval]) -> Ints:
    return np.asarray(sum(np.maximum(end - start, 0) for start, end in intervals))


def _links(
    a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints
) -> tuple[list[Interval], list[Interval]]:
    """Intervals of domains in [a, b) whose next stage lies outside, and of those whose previous
    stage does.
    """
    ahead, behind = [_ahead(a, b, domains, stage)], [_behind(a, b, stage)]
    if closes.any():
        ahead.append(_onward(a, b, domains, stage, closes))
        behind.append(_back(a, b, domains, stage, closes))
    return ahead, behind


def _ahead(a: Ints, b: Ints, domains: Ints, stage: Ints) -> Interval:
    """Domains with the next stage outside, which lies one stage ahead of all but the last stage."""
    return np.maximum(a, b - stage), np.minimum(b, domains - stage)


def _onward(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints) -> Interval:
    """Domains of the last stage whose next stage, the first one, lies outside."""
    last_start = domains - stage
    return np.maximum(a, last_start), np.minimum(b, a + last_start) * closes


def _behind(a: Ints, b: Ints, stage: Ints) -> Interval:
    """Domains with the previous stage outside, which lies one stage behind all but the first
    stage.
    """
    return np.maximum(a, stage), np.minimum(b, a + stage)


def _back(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints) -> Interval:
    """Domains of the first stage whose previous stage, the last one, lies outside."""
    return np.maximum(a, b - (domains - stage)), np.minimum(b, stage) * closes


def first_stage(a: Ints, b: Ints, domains: Ints, stage: Ints) -> Ints:
    """Number of domains of the first stage in [a, b) whose partner in the last stage lies
    outside.
    """
    return _length([(np.maximum(a, b - (domains - stage)), np.minimum(b, stage))])


def last_stage(a: Ints, b: Ints, domains: Ints, stage: Ints) -> Ints:
    """Number of domains of the last stage in [a, b) whose partner in the first stage lies
    outside.
    """
    last_start = domains - stage
    return _length([(np.maximum(a, last_start), np.minimum(b, a + last_start))])


BOTH, RAIL, APART, PATHS = 0, 1, 2, 3
"""How pipelines use NICs. `BOTH`: each NIC carries both directions of all stages. `RAIL`: per rail,
one end of each domain, of which the busier direction counts. `APART`: both ends on the rails of a
switch. `PATHS`: as `BOTH`, where either direction takes a path of its own at half the rate.

Stages run upwards through one domain and downwards through the next one, so that a hop between
domains stays on its rails: those of the last stage in a domain after even blocks of domains, and
those of the first stage after odd ones. From the last of an odd number of blocks back to the first,
each direction uses the rails of its receiver.
"""


class Ends(NamedTuple):
    """Number of domains that send and receive over the rails of the first and the last stage in a
    domain.
    """

    first_out: Any
    last_out: Any
    first_in: Any
    last_in: Any

    @property
    def busiest(self) -> Any:
        """Number of domains that send, or receive, over the busiest of these rails."""
        return np.maximum.reduce(np.broadcast_arrays(*self))


def hop_ends(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints) -> Ends:
    """Count hops between [a, b) and stages outside, by rail end, where several stages share a
    domain.
    """
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
    """As `hop_ends`, for first and last stages that sum the gradients of a tied embedding; `closes`
    has no effect.
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
    """Number of domains of an interval that lie in even blocks of `stage` domains."""

    def even_up_to(end: Ints) -> Ints:
        return np.asarray(end // (2 * stage) * stage + np.minimum(end % (2 * stage), stage))

    start, stop = interval
    return np.asarray(np.where(stop > start, even_up_to(stop) - even_up_to(start), 0))


def hop(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints, nic_use: Ints) -> Floats:
    """Number of NICs per rail in [a, b) that send to stages outside; with `APART`, counted at both
    ends of a domain.
    """
    counts: dict[int, Count] = {
        BOTH: either,
        RAIL: lambda *line: hop_ends(*line).busiest,
        APART: lambda *line: hops_ahead(*line) + hops_behind(*line),
        PATHS: half_hops,
    }
    return _by_nic_use(nic_use, counts, a, b, domains, stage, closes)


def tied(a: Ints, b: Ints, domains: Ints, stage: Ints, closes: Ints, nic_use: Ints) -> Floats:
    """As `hop`, for first and last stages that sum the gradients of a tied embedding."""
    counts: dict[int, Count] = {
        BOTH: both_ends,
        RAIL: lambda *line: tied_ends(*line).busiest,
        APART: both_ends,
        PATHS: both_ends,
    }
    return _by_nic_use(nic_use, counts, a, b, domains, stage, closes)


def _by_nic_use(nic_use: Ints, counts: Mapping[int, Count], *line: Ints) -> Floats:
    """Apply to each row the count that belongs to its use of NICs."""
    leaving = np.zeros(len(nic_use))
    for number, count in counts.items():
        at = np.flatnonzero(nic_use == number)
        if len(at):
            leaving[at] = count(*(column[at] for column in line))
    return leaving


@in_blocks
def mirrored(a: Ints, b: Ints, domains: Ints, stage: Ints) -> Ints:
    """Number of domains in [a, b) whose mirrored stage (equally far from the other end of the
    pipeline) lies outside.
    """
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
    """Number of domains in [a, b) in the first or last stage whose partner lies outside; `closes`
    has no effect.
    """
    return first_stage(a, b, domains, stage) + last_stage(a, b, domains, stage)


class Groups(NamedTuple):
    """Location of the groups of mappings across domains; arrays of shape (n,).

    `tp` and `cp` domains hold the ranks of a TP or context group, and `stage` domains hold a
    pipeline stage. A pipeline has `stages` of them, `stages_inside` of which share a domain; where
    it `closes` (1), the last one sends to the first. `experts` domains, `apart` from each other,
    hold an expert group, of which a stage has `copies`. `filled` is the number of active GPUs in
    the fullest domain where domains differ, else 1. TP blocks of a stage lie `step` apart: 1, or
    `stages` where the stages of a pipeline are adjacent. In `two_way` pipelines (1), stages equally
    far from either end hold the same parameters and exchange gradients, in place of a tied
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
        """Select rows."""
        return Groups(*(column[rows] for column in self))

    @property
    def have_one_neighbour(self) -> Bools:
        """Whether each stage has only one neighbour: two stages in a pipeline that does not
        close.
        """
        return np.asarray((self.stages == 2) & (self.closes == 0))

    @property
    def have_two_neighbours(self) -> Bools:
        """Whether the NICs of some stage send to the next one and to the one before, which may be
        the same.
        """
        sends = (self.stages > 1) & (self.stages_inside == 1)
        return np.asarray(sends & ~self.have_one_neighbour)

    @property
    def stages_can_adjoin(self) -> Bools:
        """Whether stages can be adjacent: one per domain, with equal numbers of active GPUs, and no
        group split by TP.
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
        """Distance in domains between consecutive stages."""
        return np.where(self.step > 1, self.tp, self.stage)

    @property
    def line(self) -> Ints:
        """Number of consecutive domains of the pipelines that lie next to each other."""
        return self.hop * self.stages

    @property
    def cut(self) -> Ints:
        """Maximum number of domains whose hops cross one end of an interval."""
        return np.where(self.step > 1, self.tp * (1 + self.closes), self.stage)

    @property
    def rings(self) -> tuple[tuple[str, Ints, Ints], ...]:
        """Kind, stride and members of the groups that send data round a ring."""
        return (
            ("tp", np.ones_like(self.tp), self.tp),
            ("cp", self.tp * self.step, self.cp),
            ("dp", self.tp * self.step, self.stage // self.tp),
            ("edp", self.experts * self.apart, self.copies),
        )


def busiest(count: Count, domains: Ints, span: Ints, block: Ints | None, *columns: Ints) -> Any:
    """Maximum over the intervals of `span` domains that tile all domains, for each row; shape
    (n,).

    Parameters
    ----------
    count
        Function of a, b and the columns that is maximised.
    block
        Period of the pattern in domains, which limits the number of distinct intervals; None for
        patterns that depend on the distance to the ends, where the first, middle and last intervals
        suffice.
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
        starts, (row, number) = np.cumsum(repeats) - repeats, ranges(repeats)
        number = np.where(number == repeats[row] - 1, total[row] - 1, number)
    a = number * width[row]
    leaving = count(
        a, np.minimum(a + width[row], all_domains[row]), *(column[row] for column in arguments)
    )
    return np.maximum.reduceat(leaving, starts)[position] if len(all_domains) else np.zeros(0)


@cache
def sending(window: int, ends: int, total: int, *ranges: tuple[int, int]) -> int:
    """Maximum number of senders among `window` consecutive end points, over the windows that tile
    all of them.

    Parameters
    ----------
    ends
        End points per domain; those in `ranges` of each domain send.
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


@dataclass(frozen=True, kw_only=True)
class NicLayout:
    """Distribution of the NICs of `domains` domains over leaves and pods: numbers, or arrays
    (n,).

    A leaf holds `span` domains of each rail that it serves: all of them where nothing leaves a
    leaf, 0 where a domain is larger than a leaf. `nics` NICs of a domain send. They are all
    connected to one leaf where leaves hold whole domains with their `ends`, including idle ones;
    `ends` is 1 where each leaf serves single rails. A pod holds `pod_span` domains, or 0 where pods
    hold parts of rails or domains and have to be examined one by one; each of `pods` has
    `pod_leaves` leaves, whose switches have `pod_up` uplinks in common. `leaves` counts those of
    one of `planes`; `down` is the number of ports of a leaf below, and `ratio` the factor that a
    pod adds to their ratio to uplinks. After the loss of a domain `room` domains are spare,
    including the lost one; -1 before it. Where the bundles of two tiers can differ, `joined_leaves`
    leaves distribute their uplinks over spines of `spine_ports` ports each, and no leaf has more
    than `most_up`; these are 0 where bundles are even.
    """

    domains: Any
    span: Any
    nics: Any = 1
    ends: Any = 1
    down: Any = 0
    ratio: Any = 1.0
    leaves: Any = 0
    planes: Any = 0
    pods: Any = 0
    pod_span: Any = 0
    pod_leaves: Any = 0
    pod_up: Any = 1
    room: Any = -1
    joined_leaves: Any = 0
    spine_ports: Any = 0
    most_up: Any = 0

    @property
    def is_flat(self) -> bool:
        """Whether no traffic leaves a leaf; for a layout of numbers only."""
        return bool(self.span >= self.domains + (self.room >= 0) and not self.pods)

    @property
    def after_loss(self) -> Bools:
        """Whether a domain is lost; for a layout of arrays."""
        return np.asarray(self.room >= 0)

    @property
    def podded(self) -> Bools:
        """Whether traffic leaves pods."""
        # a job that fills all that its pod holds does not fit there any more after a loss
        return np.asarray((self.pods > 1) & (self.pod_span < self.domains + self.after_loss))

    def switches(self, leaf: Floats, pod: Floats) -> Iterator[tuple[Floats, Ints, Bools]]:
        """The table of leaves and that of pods, each with the domains that one holds of a rail, and
        whether traffic leaves it.
        """
        leaves = (self.span > 0) & (self.span < self.domains + self.after_loss)
        yield leaf, self.span, leaves
        yield pod, self.pod_span, self.podded & (self.pod_span > 0)

    def fill_unlike(self, leaf: Floats, pod: Floats) -> Ints:
        """Fill in pods that hold parts of rails or domains after a loss: no more leaves one than
        leaves its leaves. The rows of such pods before one are returned.
        """
        mixed = self.podded & (self.pod_span == 0)
        unlike = mixed & self.after_loss
        pod[:, unlike] = leaf[:, unlike] * self.pod_leaves[unlike]
        return np.flatnonzero(mixed & ~self.after_loss)

    def take(self, rows: Any) -> NicLayout:
        """Select rows of a layout of arrays."""
        return NicLayout(**{f.name: getattr(self, f.name)[rows] for f in fields(self)})


def stacked(layouts: Collection[NicLayout]) -> NicLayout:
    """Combine layouts into one layout of arrays."""
    return NicLayout(
        **{
            f.name: np.array([getattr(layout, f.name) for layout in layouts])
            for f in fields(NicLayout)
        }
    )


def most_of_mixed_pods(
    rows: NicLayout, groups: Groups, kinds: Sequence[str], leaf: Floats
) -> Floats:
    """Upper bound on the flows out of any pod that holds parts of rails or domains; shape (kinds,
    n).

    A pod holds parts of two rails, or an interval of domains of each rail; at most one stride
    crosses each end of an interval.
    """
    pod_ports, rails = rows.pod_leaves * rows.down, np.where(rows.ends > 1, rows.nics, 2)
    strides = {kind: stride for kind, stride, _ in groups.rings} | {"pp": groups.cut}
    strides["tied"] = np.where(groups.two_way, rows.domains, groups.cut)
    strides["ep"] = groups.apart * (groups.experts // 2 + 1)
    bound = np.array([rails * 2 * strides[kind] for kind in kinds])
    # every port of a pod may send where the flows out of leaves are not counted yet
    return np.asarray(
        np.minimum(bound, np.where(leaf > 0, rows.pod_leaves * leaf, rails * pod_ports))
    )


def mixed_pods(rows: NicLayout, groups: Groups, kinds: Sequence[str], nic_use: Ints) -> Floats:
    """Flows out of the busiest pod that holds parts of several rails or domains; shape (kinds,
    n).
    """
    parts, row_layouts = pod_parts(rows)
    flows: dict[str, Floats] = {}
    for kind, stride, members in groups.rings:
        if kind in kinds:
            flows[kind] = parts.busiest(ring, row_layouts, rows.nics, stride, members)
    if "ep" in kinds:
        flows["ep"] = parts.busiest(exchange, row_layouts, rows.nics, groups.apart, groups.experts)
    line = groups.line, groups.hop, groups.closes
    # stages that share a domain use the rails of its first and its last
    alone, shared = (
        np.flatnonzero(groups.stages_inside == 1),
        np.flatnonzero(groups.stages_inside > 1),
    )
    for kind, count, count_ends in (("pp", hop, hop_ends), ("tied", tied, tied_ends)):
        if kind in kinds:
            own, joint = (
                [column[at] for column in (row_layouts, rows.nics, *line)] for at in (alone, shared)
            )
            flows[kind] = np.zeros(len(row_layouts))
            flows[kind][alone] = parts.busiest(count, *own, nic_use[alone])
            flows[kind][shared] = parts.busiest_of_ends(
                count_ends, groups.stages_inside[shared], *joint
            )
    if "tied" in kinds and groups.two_way.any():
        twins = parts.busiest(mirrored, row_layouts, rows.nics, groups.line, groups.hop)
        flows["tied"] = np.where(groups.two_way, twins, flows["tied"])
    return np.array([flows[kind] for kind in kinds])


class RailSegment(NamedTuple):
    """The domains [a, b) of the rails [low_rail, high_rail) in a pod."""

    pod: int
    a: int
    b: int
    low_rail: int
    high_rail: int


@dataclass(frozen=True, kw_only=True)
class PodParts:
    """Rail segments of the pods of several layouts, concatenated; `start` and `count` locate those
    of each layout.
    """

    pod: Ints
    a: Ints
    b: Ints
    low_rail: Ints
    high_rail: Ints
    start: Ints
    count: Ints

    @classmethod
    def of_layouts(cls, layouts: list[tuple[RailSegment, ...]]) -> PodParts:
        """Concatenate the segments of layouts, each of which has at least one."""
        columns = np.array([segment for parts in layouts for segment in parts], dtype=np.int64).T
        count = np.array([len(parts) for parts in layouts])
        return cls(
            **dict(zip(RailSegment._fields, columns, strict=True)),
            start=np.cumsum(count) - count,
            count=count,
        )

    def busiest(self, count: Any, row_layouts: Ints, nics: Ints, *columns: Ints) -> Floats:
        """Maximum flows of all sending rails out of a pod, for rows with a layout each."""
        (layout, send, *arguments), position = distinct_rows(row_layouts, nics, *columns)
        row, segment = ranges(self.count[layout], self.start[layout])
        flows = self._rails(segment, 0, send[row]) * count(
            self.a[segment], self.b[segment], *(column[row] for column in arguments)
        )
        return self._busiest(row, segment, flows)[position]

    def busiest_of_ends(
        self, count_ends: Any, inside: Ints, row_layouts: Ints, nics: Ints, *line: Ints
    ) -> Floats:
        """As `busiest`, for pipelines with `inside` stages per domain; the busier direction
        counts.
        """
        (layout, send, stages, *arguments), position = distinct_rows(
            row_layouts, nics, inside, *line
        )
        row, segment = ranges(self.count[layout], self.start[layout])
        nic, single = send[row], -(-send // stages)[row]
        ends = count_ends(self.a[segment], self.b[segment], *(column[row] for column in arguments))
        first_rails, last_rails = (
            self._rails(segment, 0, single),
            self._rails(segment, nic - single, nic),
        )
        out = first_rails * ends.first_out + last_rails * ends.last_out
        into = first_rails * ends.first_in + last_rails * ends.last_in
        return np.maximum(self._busiest(row, segment, out), self._busiest(row, segment, into))[
            position
        ]

    def _rails(self, segment: Ints, start: Any, stop: Any) -> Ints:
        return np.asarray(
            np.maximum(
                np.minimum(self.high_rail[segment], stop)
                - np.maximum(self.low_rail[segment], start),
                0,
            )
        )

    def _busiest(self, row: Ints, segment: Ints, flows: Any) -> Floats:
        """Maximum over the pods of each row of the flows summed over the pod's segments."""
        # rows follow each other and the pods of each as well, so that a sum ends where either
        # changes
        pods = np.flatnonzero(np.diff(row, prepend=-1) | np.diff(self.pod[segment], prepend=-1))
        sums = np.add.reduceat(flows, pods)
        return np.asarray(
            np.maximum.reduceat(sums, np.flatnonzero(np.diff(row[pods], prepend=-1))),
            dtype=np.float64,
        )


def pod_parts(rows: NicLayout) -> tuple[PodParts, Ints]:
    """Return the rail segments of the pods of distinct layouts, and the index of each row's
    layout.
    """
    names = ("domains", "nics", "ends", "down", "leaves", "pods", "pod_leaves")
    distinct_layouts, row_layouts = distinct_rows(*(getattr(rows, name) for name in names))
    return (
        PodParts.of_layouts(
            [
                segments(*layout)
                for layout in zip(*(column.tolist() for column in distinct_layouts), strict=True)
            ]
        ),
        row_layouts,
    )


def most_senders(rows: NicLayout, *ranges: tuple[Ints, Ints]) -> Ints:
    """Maximum number of senders on a leaf that holds part of a domain; the NICs in `ranges` of each
    domain send.
    """
    flat = (column for sender_range in ranges for column in sender_range)
    leaves, position = distinct_rows(rows.down, rows.ends, rows.domains * rows.ends, *flat)
    table = zip(*(column.tolist() for column in leaves), strict=True)
    senders = [sending(*leaf[:3], *zip(leaf[3::2], leaf[4::2], strict=True)) for leaf in table]
    return np.array(senders, dtype=np.int64)[position]


@cache
def segments(
    domains: int, nics: int, ends: int, down: int, leaves: int, pods: int, pod_leaves: int
) -> tuple[RailSegment, ...]:
    """Return the rail segments of pods, without whole rails and rails that do not send."""
    rail_segments = []
    for pod in range(pods):
        if ends == 1:
            parts = _rail_parts(
                pod, domains, down, (pod * pod_leaves, min((pod + 1) * pod_leaves, leaves))
            )
        else:
            pod_ends = pod_leaves * down
            parts = _domain_parts(
                pod, ends, (pod * pod_ends, min((pod + 1) * pod_ends, domains * ends))
            )
        rail_segments += [part for part in parts if part.low_rail < nics]
    # a layout whose pods send nothing keeps one segment without rails, as sums need one for each
    # row
    return tuple(rail_segments) or (RailSegment(0, 0, domains, 0, 0),)


def _rail_parts(
    pod: int, domains: int, down: int, leaves: tuple[int, int]
) -> Iterator[RailSegment]:
    """Yield the rail segments on consecutive leaves: those of one rail, then those of the next."""
    of_a_rail = -(-domains // down)
    for rail in sorted({leaves[0] // of_a_rail, (leaves[1] - 1) // of_a_rail}):
        a = max(leaves[0] - rail * of_a_rail, 0) * down
        b = min((leaves[1] - rail * of_a_rail) * down, domains)
        # a whole rail sends nothing out of its pod
        if (a, b) != (0, domains):
            yield RailSegment(pod, a, b, rail, rail + 1)


def _domain_parts(pod: int, ends: int, window: tuple[int, int]) -> Iterator[RailSegment]:
    """Yield groups of rails that have the same domains among consecutive end points."""
    (d, x), (e, y) = (divmod(end, ends) for end in window)
    bounds = (0, min(x, y), max(x, y), ends)
    for low_rail, high_rail in pairwise(bounds):
        if low_rail < high_rail:
            yield RailSegment(pod, d + (low_rail < x), e + (low_rail < y), low_rail, high_rail)
