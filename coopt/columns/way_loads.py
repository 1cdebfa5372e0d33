"""What links carry where messages go by halving and doubling or on trees: round by round, in NIC rates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coopt.columns.flows import Groups, busiest
from coopt.columns.layouts import NicLayout, PodParts, most_senders, pod_parts
from coopt.columns.way_flows import TREE_EDGE, WayPattern, most_edges, way_patterns
from coopt.perf.affine import Flows
from coopt.perf.mapping import Bools, Floats, Ints


@dataclass(frozen=True, kw_only=True)
class WayLoads:
    """Flows out of the busiest leaf and pod, round by round; arrays of shape (rounds, n).

    `ways` name kind and way of each round, which has the share `shares` of the bytes.
    """

    ways: tuple[tuple[str, Flows], ...]
    leaf: Floats
    pod: Floats
    shares: Floats

    def take(self, rows: Any) -> WayLoads:
        """The chosen rows."""
        leaf, pod, shares = (table[:, rows] for table in (self.leaf, self.pod, self.shares))
        return WayLoads(ways=self.ways, leaf=leaf, pod=pod, shares=shares)

    @property
    def paths(self) -> Floats:
        """Flows that a NIC rate is divided among, each with a path of its own; shape (rounds, n)."""
        each = np.array([1 / TREE_EDGE if flows == "trees" else 1.0 for _, flows in self.ways])
        return np.broadcast_to(each[:, None], self.shares.shape)

    @property
    def rounds(self) -> Floats:
        """How many rounds the way of each round has; shape (rounds, n)."""
        return np.stack([self.shares[[way == one for way in self.ways]].astype(bool).sum(axis=0) for one in self.ways])

    def means(self, slowdowns: Floats) -> dict[tuple[str, Flows], Any]:
        """The mean over the bytes of each way, of slowdowns of each round in shape (rounds, ...)."""
        found: dict[tuple[str, Flows], Any] = {}
        for way, busy, share in zip(self.ways, slowdowns, self.shares, strict=True):
            found[way] = found.get(way, 0.0) + np.where(share > 0, busy, 0.0) * share
        return found


def loads_by_ways(rows: NicLayout, groups: Groups, ways: tuple[tuple[str, Flows], ...]) -> WayLoads:
    """The loads of some kinds of traffic by some ways; layouts and groups of as many rows."""
    patterns = list(way_patterns(groups, ways))
    leaf, pod = (np.zeros((len(patterns), len(groups.tp))) for _ in range(2))
    lost = rows.room >= 0
    most = rows.domains + lost
    leaves = (rows.span > 0) & (rows.span < most)
    podded = (rows.pods > 1) & (rows.pod_span < most)
    rails = np.where(rows.ends > 1, rows.nics, 1)
    mixed = np.flatnonzero(podded & (rows.pod_span == 0) & ~lost)
    parts, cut = pod_parts(rows.take(mixed)) if len(mixed) else None, np.flatnonzero(rows.span == 0)
    some, steady = rows.take(cut), cut[~lost[cut]]
    every = most_senders(some, (np.zeros_like(some.nics), some.nics)) if len(cut) else 0
    for k, one in enumerate(patterns):
        for table, span, there in ((leaf, rows.span, leaves), (pod, rows.pod_span, podded & (rows.pod_span > 0))):
            _fill(table[k], one, rows.domains, span, rails, there & ~lost)
            if lost.any():
                anywhere = _of_windows(rows, groups, one, span, rails)
                table[k] = np.where(there & lost, anywhere, table[k])
        leaf[k, cut] = every
        if one.flows == "trees" and len(steady):  # after a loss groups begin anywhere: all senders may have all edges
            leaf[k, steady] = most_edges(rows.take(steady), *(column[steady] for column in one.columns))
        if parts is not None:
            pod[k, mixed] = _of_mixed_pods(parts, one, rows.nics[mixed], mixed)
    unlike = podded & (rows.pod_span == 0) & lost
    pod[:, unlike] = leaf[:, unlike] * rows.pod_leaves[unlike]
    shares = np.array([one.share for one in patterns]).reshape(leaf.shape)
    leaf[shares == 0], pod[shares == 0] = 0.0, 0.0
    return WayLoads(ways=tuple((one.kind, one.flows) for one in patterns), leaf=leaf, pod=pod, shares=shares)


def _fill(table: Floats, one: WayPattern, domains: Ints, span: Ints, rails: Ints, there: Bools) -> None:
    at = np.flatnonzero(there)
    if len(at):
        columns = [column[at] for column in one.columns]
        table[at] = rails[at] * busiest(one.count, domains[at], span[at], one.block[at], *columns)


def _of_windows(rows: NicLayout, groups: Groups, one: WayPattern, span: Ints, rails: Ints) -> Floats:
    """After the loss of a domain, flows out of any `span` domains that follow each other, as rings are counted.

    Blocks stay whole that an interval holds whole, if there is room to shift those that hold them.
    """
    shift = groups.tp if one.kind == "tp" else groups.stage * groups.step
    holds = (span >= rows.domains) | (span % one.block == 0)
    still = (span > rows.domains) | ((shift <= rows.room) & holds) | (one.columns[1] == 1)
    return np.where(still, 0.0, rails * np.minimum(span, 2 * one.most_at_an_end))


def _of_mixed_pods(parts: tuple[PodParts, Ints], one: WayPattern, nics: Ints, at: Ints) -> Floats:
    return parts[0].most(one.count, parts[1], nics, *(column[at] for column in one.columns))
