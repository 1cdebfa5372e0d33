"""How few uplinks mappings bear: the least with which some row of a pool is in time, for many networks at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from coopt.columns.context import Context
from coopt.columns.loads import Crossings
from coopt.columns.pools import ENTRIES, Pool
from coopt.perf.mapping import Floats, Ints


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
    place = {layout: i for i, layout in enumerate(dict.fromkeys(context.layout for context in contexts))}
    k, m = len(place), len(few.tp)
    loads = found.stacked(list(place), contexts[0].discipline)
    same = _numbered(row.tobytes() for row in loads.identity.reshape(-1, k, m).swapaxes(0, 1))
    number = dict(zip(place, same, strict=True))
    networks = {(number[context.layout], context.byte_s): context.layout for context in contexts}
    rows = np.array([place[layout] for layout in networks.values()])
    byte_s = np.array([byte_s for _, byte_s in networks])
    least = _searched(found, position, loads.take((rows[:, None] * m + np.arange(m)).ravel()), byte_s)
    of_network = dict(zip(networks, least, strict=True))
    answers = [of_network[number[context.layout], context.byte_s] for context in contexts]
    flat = [context.layout.is_flat for context in contexts]
    return [one and (one._replace(uplinks=0) if still else one) for one, still in zip(answers, flat, strict=True)]


def _numbered(keys: Iterable[bytes]) -> list[int]:
    """A number for each key, the same for equal ones."""
    seen: dict[bytes, int] = {}
    return [seen.setdefault(key, len(seen)) for key in keys]


def _searched(found: Pool, position: Ints, loads: Crossings, byte_s: Floats) -> list[Least | None]:
    """The least uplinks on each of k networks, whose loads are listed for one group after the other."""
    k, m = len(byte_s), len(loads.peers) // len(byte_s)

    def times_s(some: Pool, which: Ints, uplinks: Ints) -> Floats:
        """Iteration times of rows at the uplinks of each network; shape (networks, rows)."""
        seen = loads.reciprocals(np.repeat(byte_s, m), np.repeat(uplinks, m))
        r = some.charged(seen.each(lambda s_byte: s_byte.reshape(k, m)[:, which]))
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
