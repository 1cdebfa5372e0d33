"""Distribution of a job's NICs over leaves and pods, and flows out of pods that hold parts of rails
or domains.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from coopt.columns.flows import (
    Groups,
    both_ends,
    either,
    exchange,
    hop_ends,
    mirrored,
    ring,
    sending,
    tied_ends,
)
from coopt.perf.mapping import Floats, Ints, distinct_rows


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


def mixed_pods(rows: NicLayout, groups: Groups, kinds: Sequence[str]) -> Floats:
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
    for kind, count, count_ends in (("pp", either, hop_ends), ("tied", both_ends, tied_ends)):
        if kind in kinds:
            own, joint = (
                [column[at] for column in (row_layouts, rows.nics, *line)] for at in (alone, shared)
            )
            flows[kind] = np.zeros(len(row_layouts))
            flows[kind][alone] = parts.busiest(count, *own)
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
        row, segment = self._spread(layout)
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
        row, segment = self._spread(layout)
        nic, single = send[row], (send // stages)[row]
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

    def _spread(self, layout: Ints) -> tuple[Ints, Ints]:
        """Pair every row with each segment of its layout; return the indices of rows and
        segments.
        """
        count = self.count[layout]
        row = np.repeat(np.arange(len(layout)), count)
        return row, np.arange(len(row)) - np.repeat(
            np.cumsum(count) - count - self.start[layout], count
        )

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
    for low_rail, high_rail in pairwise(sorted({0, x, y, ends})):
        yield RailSegment(pod, d + (low_rail < x), e + (low_rail < y), low_rail, high_rail)
