"""How few uplinks mappings bear: the least with which some row of a pool is in time, for many networks at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from coopt.columns.context import Context
from coopt.columns.layouts import stacked
from coopt.columns.loads import Crossings, crossings
from coopt.columns.pools import Pool
from coopt.perf.affine import KINDS, Reciprocals
from coopt.perf.mapping import Floats, Ints

ENTRIES = 1 << 17  # rows on contexts that are looked at once, so that tables stay small


class Least(NamedTuple):
    """The least uplinks of a leaf with which any row is in time, 0 where leaves have none, and the fastest row then."""

    row: int
    uplinks: int


def borne(found: Pool, contexts: Sequence[Context]) -> list[Least | None]:
    """The least uplinks of each context; None where no row is ever in time."""
    each = max(1, ENTRIES // len(found))
    chunks = (contexts[first : first + each] for first in range(0, len(contexts), each))
    return [pair for some in chunks for pair in _borne(found, some)]


def _borne(found: Pool, contexts: Sequence[Context]) -> list[Least | None]:
    few, position = found.distinct_groups
    k, m = len(contexts), len(few.tp)
    layout = stacked([context.layout for context in contexts])
    every = layout.take(np.repeat(np.arange(k), m)), contexts[0].discipline, few.take(np.tile(np.arange(m), k))
    loads = crossings(*every, found.kinds)
    byte_s = np.array([context.byte_s for context in contexts])
    alone, of = _alike(np.hstack([byte_s[:, None], loads.seen.reshape(-1, k, m).swapaxes(0, 1).reshape(k, -1)]))
    rows = (alone[:, None] * m + np.arange(m)).ravel()
    least = _searched(found, position, loads.take(rows), byte_s[alone])
    flat = [context.layout.is_flat for context in contexts]
    found_least = [least[which] for which in of.tolist()]
    return [one and (one._replace(uplinks=0) if still else one) for one, still in zip(found_least, flat, strict=True)]


def _alike(table: Floats) -> tuple[Ints, Ints]:
    """The first of rows that are equal, and which of them each row equals."""
    seen: dict[bytes, int] = {}
    of = [seen.setdefault(row.tobytes(), len(seen)) for row in table]
    return np.unique(of, return_index=True)[1], np.array(of)


def _searched(found: Pool, position: Ints, loads: Crossings, byte_s: Floats) -> list[Least | None]:
    """The least uplinks on each of k networks, whose loads are listed for one group after the other."""
    k, m = len(byte_s), len(loads.peers) // len(byte_s)

    def times_s(some: Pool, which: Ints, uplinks: Ints) -> Floats:
        """Iteration times of rows at the uplinks of each network; shape (networks, rows)."""
        slow = loads.slowdowns(np.repeat(uplinks, m)) / np.repeat(byte_s, m)
        seen = slow.reshape(len(KINDS), k, m)[:, :, which]
        r = Reciprocals(**dict(zip(KINDS, seen, strict=True)))
        return np.asarray(np.maximum.reduce([np.broadcast_to(piece.at(r), (k, len(some))) for piece in some.pieces]))

    bound_s, high = found.workload.bound_s, loads.enough_uplinks().reshape(k, m).max(axis=1)
    in_time = times_s(found, position, high) <= bound_s
    serves, rows = np.asarray(in_time.any(axis=1)), np.flatnonzero(in_time.any(axis=0))
    if not len(rows):
        return [None] * k
    some, which, low = found.take(rows), position[rows], np.ones_like(high)
    while (low < high).any():
        middle = (low + high) // 2
        enough = (times_s(some, which, middle) <= bound_s).any(axis=1)
        high, low = np.where(enough, middle, high), np.where(enough, low, np.minimum(middle + 1, high))
    best = rows[times_s(some, which, high).argmin(axis=1)]
    return [Least(int(row), int(u)) if one else None for row, u, one in zip(best, high, serves.tolist(), strict=True)]
