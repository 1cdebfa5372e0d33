r"""Link loads of collectives that use halving and doubling or two trees, round by round.

Loads are measured in NIC rates.

In round j of halving and doubling each of y members exchanges :math:`\lfloor (\lfloor (y-1)/2^j
\rfloor + 1)/2 \rfloor` of y parts of the data at the distance 2^j: with a partner where y is a
power of two, else round the ring as in the gathers of Bruck et al. (IEEE TPDS 8(11), 1997). So
little data goes far. On two trees, each of which carries half of the data up and down, every edge
takes a quarter of a NIC in each direction (Sanders, Speck and Träff, Parallel Computing 35, 2009).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from coopt.columns.flows import (
    Count,
    Groups,
    NicLayout,
    busiest,
    most_senders,
    pod_parts,
    ring,
    sending,
)
from coopt.perf.collectives import Flows
from coopt.perf.mapping import Bools, Floats, Ints, distinct_rows

TREE_EDGE = 0.25  # of a NIC's rate: one with a parent in both trees has two children in one of them
ROWS = 1 << 11  # whose trees are cut at once, so that tables stay in the cache


@dataclass(frozen=True, kw_only=True)
class AlgorithmLoads:
    """Flows out of the busiest leaf and pod, round by round; arrays of shape (rounds, n).

    `algorithms` holds the kind of traffic and the flow pattern of each round; `shares` is its share
    of the bytes.
    """

    algorithms: tuple[tuple[str, Flows], ...]
    leaf: Floats
    pod: Floats
    shares: Floats

    def take(self, rows: Any) -> AlgorithmLoads:
        """Select rows."""
        leaf, pod, shares = (table[:, rows] for table in (self.leaf, self.pod, self.shares))
        return AlgorithmLoads(algorithms=self.algorithms, leaf=leaf, pod=pod, shares=shares)

    @property
    def paths(self) -> Floats:
        """Number of flows, each with its own path, that share one NIC rate; shape (rounds, n)."""
        paths_per_rate = np.array(
            [1 / TREE_EDGE if flows == "trees" else 1.0 for _, flows in self.algorithms]
        )
        return np.broadcast_to(paths_per_rate[:, None], self.shares.shape)

    def means(self, slowdowns: Floats) -> dict[tuple[str, Flows], Any]:
        """Average slowdowns of shape (rounds, ...) over the bytes of each algorithm."""
        means: dict[tuple[str, Flows], Any] = {}
        for algorithm, slowdown, share in zip(self.algorithms, slowdowns, self.shares, strict=True):
            means[algorithm] = (
                means.get(algorithm, 0.0) + np.where(share > 0, slowdown, 0.0) * share
            )
        return means


def loads_by_algorithms(
    rows: NicLayout, groups: Groups, algorithms: tuple[tuple[str, Flows], ...]
) -> AlgorithmLoads:
    """Compute the loads of kinds of traffic with given algorithms; layouts and groups have equally
    many rows.
    """
    patterns = list(algorithm_patterns(groups, algorithms))
    leaf, pod = (np.zeros((len(patterns), len(groups.tp))) for _ in range(2))
    rails, cut = np.where(rows.ends > 1, rows.nics, 1), np.flatnonzero(rows.span == 0)
    cut_rows, steady = rows.take(cut), cut[~rows.after_loss[cut]]
    all_senders = (
        most_senders(cut_rows, (np.zeros_like(cut_rows.nics), cut_rows.nics)) if len(cut) else 0
    )
    for k, pattern in enumerate(patterns):
        for table, span, applies in rows.switches(leaf, pod):
            _fill(table[k], pattern, rows.domains, span, rails, applies & ~rows.after_loss)
            if rows.after_loss.any():
                anywhere = _of_windows(rows, groups, pattern, span, rails)
                table[k] = np.where(applies & rows.after_loss, anywhere, table[k])
        leaf[k, cut] = all_senders
        # after a loss groups begin anywhere: all senders may have all edges
        if pattern.flows == "trees" and len(steady):
            leaf[k, steady] = most_edges(
                rows.take(steady), *(column[steady] for column in pattern.columns)
            )
    if len(mixed := rows.fill_unlike(leaf, pod)):
        parts, row_layouts = pod_parts(rows.take(mixed))
        for k, pattern in enumerate(patterns):
            columns = (column[mixed] for column in pattern.columns)
            pod[k, mixed] = parts.busiest(pattern.count, row_layouts, rows.nics[mixed], *columns)
    shares = np.array([pattern.share for pattern in patterns]).reshape(leaf.shape)
    leaf[shares == 0], pod[shares == 0] = 0.0, 0.0
    return AlgorithmLoads(
        algorithms=tuple((pattern.kind, pattern.flows) for pattern in patterns),
        leaf=leaf,
        pod=pod,
        shares=shares,
    )


def _fill(
    table: Floats, pattern: AlgorithmPattern, domains: Ints, span: Ints, rails: Ints, applies: Bools
) -> None:
    at = np.flatnonzero(applies)
    if len(at):
        columns = [column[at] for column in pattern.columns]
        table[at] = rails[at] * busiest(
            pattern.count, domains[at], span[at], pattern.block[at], *columns
        )


def _of_windows(
    rows: NicLayout, groups: Groups, pattern: AlgorithmPattern, span: Ints, rails: Ints
) -> Floats:
    """Flows out of any `span` consecutive domains after the loss of a domain, as for rings.

    A block stays whole where an interval holds it whole and there is room to shift it.
    """
    shift = groups.tp if pattern.kind == "tp" else groups.stage * groups.step
    holds = (span >= rows.domains) | (span % pattern.block == 0)
    still = (span > rows.domains) | ((shift <= rows.room) & holds) | (pattern.columns[1] == 1)
    return np.where(still, 0.0, rails * np.minimum(span, 2 * pattern.most_at_an_end))


class AlgorithmPattern(NamedTuple):
    """Simultaneous flows of one kind of traffic; columns of shape (n,).

    `share` is their share of the bytes between domains, 0 where a row has no such flows. `count`
    takes an interval of domains and the `columns`; the product of the first two columns is the
    period of the pattern.
    """

    kind: str
    flows: Flows
    share: Floats
    count: Count
    columns: tuple[Ints, ...]

    @property
    def block(self) -> Ints:
        """Number of domains from the first to the last of a group, including those of other groups
        between them.
        """
        return self.columns[0] * self.columns[1]

    @property
    def most_at_an_end(self) -> Floats:
        """Maximum load (in NIC rates) that part of a block sends across one of its ends, wherever
        that lies.
        """
        if self.flows == "trees":
            stride, members = self.columns
            sizes, position = np.unique(members, return_inverse=True)
            cut = np.array([TREE_EDGE * _widest_cut(size) for size in sizes.tolist()])
            return np.asarray(stride * cut[position])
        stride, _, far = self.columns
        return np.asarray(stride * far, dtype=np.float64)


def algorithm_patterns(
    groups: Groups, algorithms: tuple[tuple[str, Flows], ...]
) -> Iterator[AlgorithmPattern]:
    """Yield the flows of kinds of traffic with given algorithms, in the order of their rounds."""
    rings = {kind: (stride, members) for kind, stride, members in groups.rings}
    for kind, flows in algorithms:
        stride, members = rings[kind]
        if flows == "trees":
            yield AlgorithmPattern(
                kind, flows, np.where(members > 1, 1.0, 0.0), trees, (stride, members)
            )
            continue
        pairs = members & (members - 1) == 0
        for j in range(int(members.max(initial=1) - 1).bit_length()):
            share: Floats = (
                ((members - 1) // 2**j + 1) // 2 / np.maximum(members - 1, 1).astype(np.float64)
            )
            distance, count = np.where(pairs, stride << j, stride), np.where(pairs, 2, members)
            sends = share > 0
            columns = (distance, np.where(sends, count, 1), np.where(sends & ~pairs, 2**j, 1))
            yield AlgorithmPattern(kind, flows, share, ring, columns)


def trees(a: Ints, b: Ints, stride: Ints, members: Ints) -> Floats:
    """Load (in NIC rates) that [a, b) sends outside on two trees over each group, computed for some
    rows at a time.
    """
    pieces = [slice(at, at + ROWS) for at in range(0, max(len(a), 1), ROWS)]
    return np.concatenate(
        [_cut_of_blocks(*(column[rows] for column in (a, b, stride, members))) for rows in pieces]
    )


def _cut_of_blocks(a: Ints, b: Ints, stride: Ints, members: Ints) -> Floats:
    """Load that [a, b) sends outside: from its part of the first block, and from its part of the
    last.
    """
    block = stride * members
    in_one_block = a // block == (b - 1) // block
    head_start, tail_end = a % block, b - (b - 1) // block * block
    starts = np.stack([head_start, np.zeros_like(head_start)])
    stops = np.stack([np.where(in_one_block, tail_end, block), tail_end])
    (begin, past), (end, beyond) = np.divmod(starts, stride), np.divmod(stops, stride)
    low_offset, high_offset = np.minimum(past, beyond), np.maximum(past, beyond)
    # each of the strides has its edges, as its members begin one earlier or later
    lows, highs = (
        np.stack([member + 1, member + (offset == high_offset), member])
        for member, offset in ((begin, past), (end, beyond))
    )
    head_edges, tail_edges = (
        np.stack([low_offset, high_offset - low_offset, stride - high_offset])
        * _cut(lows, highs, members)
    ).sum(axis=0)
    return np.asarray(TREE_EDGE * (head_edges + np.where(in_one_block, 0, tail_edges)))


def most_edges(rows: Any, stride: Ints, members: Ints) -> Floats:
    """Load (in NIC rates) of two trees out of the busiest leaf that holds part of a domain.

    No two members of a group share such a leaf, so all edges of its members leave it.

    Parameters
    ----------
    rows
        Layouts of the leaves.
    """
    columns = (rows.down, rows.ends, rows.domains * rows.ends, rows.nics, stride, members)
    leaves, position = distinct_rows(*columns)
    edges = [
        _edges_of_parts(*leaf) for leaf in zip(*(column.tolist() for column in leaves), strict=True)
    ]
    return TREE_EDGE * np.array(edges, dtype=np.float64)[position]


@cache
def _edges_of_parts(
    window: int, ends: int, total: int, nics: int, stride: int, members: int
) -> int:
    """Maximum number of edges of the senders among `window` consecutive end points, over the
    windows that tile all of them.

    A window is no larger than the `ends` of a domain, the first `nics` of which send. All but at
    most four members have the maximum number of edges, so the search usually stops early.
    """
    edges = _edges_of_each(members)
    bound = int(edges.max()) * sending(window, ends, total, (0, nics))
    count = min(
        -(-total // window), ends * stride * members // math.gcd(window, ends * stride * members)
    )
    busiest_edges = 0
    for start in range(0, count, ROWS):
        domain, rail = np.divmod(np.arange(start, min(start + ROWS, count)) * window, ends)
        senders = np.clip(nics - rail, 0, np.minimum(window, ends - rail))
        next_senders = np.where(
            (domain + 1) * ends < total, np.clip(rail + window - ends, 0, nics), 0
        )
        domain_edges, following = (
            edges[number // stride % members] for number in (domain, domain + 1)
        )
        busiest_edges = max(
            busiest_edges, int((senders * domain_edges + next_senders * following).max())
        )
        if busiest_edges == bound:
            break
    return busiest_edges


@cache
def _edges_of_each(members: int) -> Ints:
    """Number of edges of each member in both trees."""
    member = np.arange(members)
    return _cut(member, member + 1, np.full_like(member, members))


@cache
def _widest_cut(members: int) -> int:
    """Maximum over k of the number of edges of both trees between the first k members and the
    others.
    """
    size = np.arange(members)
    return int(_cut(np.zeros_like(size), size, np.full_like(size, members)).max(initial=0))


def _cut(low: Ints, high: Ints, members: Ints) -> Ints:
    """Number of edges of both trees between members [low, high) and others.

    The second tree is the first one mirrored, or shifted by 1.
    """
    even, wraps = members % 2 == 0, low == 0
    start = np.where(even, members - high, np.where(wraps, high - 1, low - 1))
    stop = np.where(even, members - low, np.where(wraps, members - 1, high - 1))
    lows, highs = np.stack([low, start]), np.stack([high, stop])
    over_low, over_high, over_both = _over(
        np.stack([lows, highs, lows]), np.stack([lows, highs, highs]), members
    )
    return np.asarray(np.where(high > low, (over_low + over_high - 2 * over_both).sum(axis=0), 0))


def _over(low: Ints, high: Ints, members: Ints) -> Ints:
    """Number of edges of the first tree from below `low` to `high` or beyond.

    A member whose lowest set bit is b has its parent b places ahead if the next higher bit is clear
    and such a member exists, and b places behind otherwise.
    """
    total = np.zeros_like(low)
    for bit in (2**k for k in range(int(members.max(initial=1) - 1).bit_length())):
        # Children below `low` with their parent ahead; then those from `high` on with their parent
        # behind: as the member ahead does not exist, or as the next higher bit is set.
        last_member, behind = members - 1, np.minimum(low + bit - 1, members - 1)
        total = total + _numbered(
            np.maximum(high - bit, 0), np.minimum(low - 1, last_member - bit), bit, 4 * bit
        )
        total = total + _numbered(np.maximum(high, members - bit), behind, bit, 4 * bit)
        total = total + _numbered(high, behind, 3 * bit, 4 * bit)
    return total


def _numbered(low: Ints, high: Ints, remainder: int, modulus: int) -> Ints:
    """Count the integers from `low` to `high`, both included, with this remainder."""
    return np.asarray(
        np.maximum((high - remainder) // modulus - (low - 1 - remainder) // modulus, 0)
    )
