r"""Flows of messages that go neither round a ring nor to everybody: halving and doubling, and two trees.

In round j of halving and doubling each of y members exchanges :math:`\lfloor (\lfloor (y-1)/2^j \rfloor + 1)/2 \rfloor`
of y parts of the data at the distance 2^j: with a partner where y is a power of two, else round the ring as in the
gathers of Bruck et al. (IEEE TPDS 8(11), 1997). So little goes far. On two trees, each of which carries half of the
data up and down, every edge takes a quarter of a NIC each way (Sanders, Speck and Träff, Parallel Computing 35, 2009).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from coopt.columns.flows import Count, Groups, ring, sending
from coopt.perf.affine import Flows
from coopt.perf.mapping import Floats, Ints, distinct_rows

TREE_EDGE = 0.25  # of a NIC's rate: one with a parent in both trees has two children in one of them
ROWS = 1 << 11  # whose trees are cut at once, so that tables stay in the cache


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
