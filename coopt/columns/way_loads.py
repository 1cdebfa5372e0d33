r"""Messages that go by halving and doubling or on two trees: their flows, and what links carry of them round by round.

Loads are in NIC rates.

In round j of halving and doubling each of y members exchanges :math:`\lfloor (\lfloor (y-1)/2^j \rfloor + 1)/2 \rfloor`
of y parts of the data at the distance 2^j: with a partner where y is a power of two, else round the ring as in the
gathers of Bruck et al. (IEEE TPDS 8(11), 1997). So little goes far. On two trees, each of which carries half of the
data up and down, every edge takes a quarter of a NIC each way (Sanders, Speck and Träff, Parallel Computing 35, 2009).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from coopt.columns.flows import Count, Groups, busiest, ring, sending
from coopt.columns.layouts import NicLayout, PodParts, most_senders, pod_parts
from coopt.perf.affine import Flows
from coopt.perf.mapping import Bools, Floats, Ints, distinct_rows

TREE_EDGE = 0.25  # of a NIC's rate: one with a parent in both trees has two children in one of them
ROWS = 1 << 11  # whose trees are cut at once, so that tables stay in the cache


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
        counts = [self.shares[[way == one for way in self.ways]].astype(bool).sum(axis=0) for one in self.ways]
        return np.array(counts).reshape(self.shares.shape)  # where nothing is summed there are no rounds

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


class WayPattern(NamedTuple):
    """Flows of one kind of traffic that are under way together; columns of shape (n,).

    `share` is that of the bytes between domains that they carry, 0 where a row has no such flows; `count` takes an
    interval of domains and the `columns`, the first two of which multiply to the block after which all repeats.
    """

    kind: str
    flows: Flows
    share: Floats
    count: Count
    columns: tuple[Ints, ...]

    @property
    def block(self) -> Ints:
        """Domains of a group from the first to the last, with those of others between them."""
        return self.columns[0] * self.columns[1]

    @property
    def most_at_an_end(self) -> Floats:
        """What a part of a block sends outside over one of its ends, wherever that lies, in rates of a NIC."""
        if self.flows == "trees":
            stride, members = self.columns
            several, position = np.unique(members, return_inverse=True)
            cut = np.array([TREE_EDGE * _widest_cut(one) for one in several.tolist()])
            return np.asarray(stride * cut[position])
        stride, _, far = self.columns
        return np.asarray(stride * far, dtype=np.float64)


def way_patterns(groups: Groups, ways: tuple[tuple[str, Flows], ...]) -> Iterator[WayPattern]:
    """The flows of some kinds by some ways, in the order in which they follow each other."""
    rings = {kind: (stride, members) for kind, stride, members in groups.rings}
    for kind, flows in ways:
        stride, members = rings[kind]
        if flows == "trees":
            yield WayPattern(kind, flows, np.where(members > 1, 1.0, 0.0), trees, (stride, members))
            continue
        pairs = members & (members - 1) == 0
        for j in range(int(members.max(initial=1) - 1).bit_length()):
            share: Floats = ((members - 1) // 2**j + 1) // 2 / np.maximum(members - 1, 1).astype(np.float64)
            apart, count = np.where(pairs, stride << j, stride), np.where(pairs, 2, members)
            there = share > 0
            columns = (apart, np.where(there, count, 1), np.where(there & ~pairs, 2**j, 1))
            yield WayPattern(kind, flows, share, ring, columns)


def trees(a: Ints, b: Ints, stride: Ints, members: Ints) -> Floats:
    """What [a, b) sends outside on two trees over each group, in rates of a NIC; some rows at a time."""
    pieces = [slice(at, at + ROWS) for at in range(0, max(len(a), 1), ROWS)]
    return np.concatenate([_cut_of_blocks(*(column[rows] for column in (a, b, stride, members))) for rows in pieces])


def _cut_of_blocks(a: Ints, b: Ints, stride: Ints, members: Ints) -> Floats:
    """What [a, b) sends outside: the part of the first block that it meets, and that of the last."""
    block = stride * members
    together = a // block == (b - 1) // block
    first, last = a % block, b - (b - 1) // block * block
    low, high = np.stack([first, np.zeros_like(first)]), np.stack([np.where(together, last, block), last])
    (begin, past), (end, beyond) = np.divmod(low, stride), np.divmod(high, stride)
    few, more = np.minimum(past, beyond), np.maximum(past, beyond)
    # each of the strides has its edges, as its members begin one earlier or later
    lows, highs = (
        np.stack([where + 1, where + (rest == more), where]) for where, rest in ((begin, past), (end, beyond))
    )
    one, other = (np.stack([few, more - few, stride - more]) * _cut(lows, highs, members)).sum(axis=0)
    return np.asarray(TREE_EDGE * (one + np.where(together, 0, other)))


def most_edges(rows: Any, stride: Ints, members: Ints) -> Floats:
    """What two trees send out of the busiest of leaves that hold parts of domains, in rates of a NIC.

    No two members of a group share such a leaf, so that all edges of its members leave it.

    Parameters
    ----------
    rows
        Layouts of the leaves.
    """
    columns = (rows.down, rows.ends, rows.domains * rows.ends, rows.nics, stride, members)
    few, position = distinct_rows(*columns)
    each = [_edges_of_parts(*one) for one in zip(*(column.tolist() for column in few), strict=True)]
    return TREE_EDGE * np.array(each, dtype=np.float64)[position]


@cache
def _edges_of_parts(window: int, ends: int, total: int, nics: int, stride: int, members: int) -> int:
    """The most edges of the senders among `window` end points that follow each other, windows tiling all of them.

    A window is no larger than the `ends` of a domain, the first `nics` of which send. All but four members at most have
    as many edges as any, so that most windows are not looked at.
    """
    edges = _edges_of_each(members)
    most = int(edges.max()) * sending(window, ends, total, (0, nics))
    count = min(-(-total // window), ends * stride * members // math.gcd(window, ends * stride * members))
    found = 0
    for first in range(0, count, ROWS):
        domain, rail = np.divmod(np.arange(first, min(first + ROWS, count)) * window, ends)
        here = np.clip(nics - rail, 0, np.minimum(window, ends - rail))
        over = np.where((domain + 1) * ends < total, np.clip(rail + window - ends, 0, nics), 0)
        own, following = (edges[number // stride % members] for number in (domain, domain + 1))
        found = max(found, int((here * own + over * following).max()))
        if found == most:
            break
    return found


@cache
def _edges_of_each(members: int) -> Ints:
    """Edges of both trees that each member has."""
    first = np.arange(members)
    return _cut(first, first + 1, np.full_like(first, members))


@cache
def _widest_cut(members: int) -> int:
    """Edges of both trees between the first of some members and the others, for the number of these with most."""
    first = np.arange(members)
    return int(_cut(np.zeros_like(first), first, np.full_like(first, members)).max(initial=0))


def _cut(low: Ints, high: Ints, members: Ints) -> Ints:
    """Edges of both trees between members [low, high) and others: the second is the first mirrored, or moved by 1."""
    even, wraps = members % 2 == 0, low == 0
    start = np.where(even, members - high, np.where(wraps, high - 1, low - 1))
    stop = np.where(even, members - low, np.where(wraps, members - 1, high - 1))
    lows, highs = np.stack([low, start]), np.stack([high, stop])
    below, above, both = _over(np.stack([lows, highs, lows]), np.stack([lows, highs, highs]), members)
    return np.asarray(np.where(high > low, (below + above - 2 * both).sum(axis=0), 0))


def _over(low: Ints, high: Ints, members: Ints) -> Ints:
    """Edges of the first tree from below `low` to `high` or beyond.

    A member whose lowest set bit is b has its parent b further on where this clears the next higher bit's place, if
    there is such a member, and else b before it.
    """
    total = np.zeros_like(low)
    for bit in (2**k for k in range(int(members.max(initial=1) - 1).bit_length())):
        last, behind = members - 1, np.minimum(low + bit - 1, members - 1)
        total = total + _numbered(np.maximum(high - bit, 0), np.minimum(low - 1, last - bit), bit, 4 * bit)
        total = total + _numbered(np.maximum(high, members - bit), behind, bit, 4 * bit)
        total = total + _numbered(high, behind, 3 * bit, 4 * bit)
    return total


def _numbered(low: Ints, high: Ints, rest: int, modulus: int) -> Ints:
    """How many numbers from `low` up to `high`, both included, leave that rest."""
    return np.asarray(np.maximum((high - rest) // modulus - (low - 1 - rest) // modulus, 0))
