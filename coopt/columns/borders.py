"""How much slowdown mappings bear: up to which ratio of down-ports to uplinks some row of a pool is in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from coopt.columns.context import Context, levels_reached, ratios_of
from coopt.columns.pools import Pool
from coopt.perf.affine import Reciprocals
from coopt.perf.mapping import Floats, distinct_rows

MARGIN = 1e-9  # of a bound: far above the rounding of times, which is some 1e-16 of them for every unit of slowdown
ENTRIES = 1 << 16  # rows on contexts that are looked at at once, so that tables stay small


@dataclass(frozen=True, kw_only=True)
class Border:
    """The largest slowdown that any row bears, `row` among them, and what it lies between whatever the rounding."""

    row: int
    reach: float
    surely: float
    never: float

    def guess(self, down: int) -> int:
        """Uplinks that leave down-ports and uplinks in the ratio `reach`, as far as there are ports; 0 without any."""
        return min(max(math.ceil(down / max(self.reach, 1.0)), 1), down)


def borders_of(found: Pool, contexts: Sequence[Context]) -> dict[Context, Border]:
    """The border of a pool on networks of each context."""
    borders: dict[Context, Border] = {}
    each = max(1, ENTRIES // max(len(found), 1))
    for first in range(0, len(contexts), each):
        some = contexts[first : first + each]
        reaches, surely, never = reach(found, some, np.array([1.0, 1.0 - MARGIN, 1.0 + MARGIN]))
        rows, surely_most, never_most = reaches.argmax(axis=1), surely.max(axis=1), never.max(axis=1)
        for k, context in enumerate(some):
            row = int(rows[k])
            borders[context] = Border(
                row=row, reach=float(reaches[k, row]), surely=float(surely_most[k]), never=float(never_most[k])
            )
    return borders


def reach(found: Pool, contexts: Sequence[Context], shares: Floats) -> Floats:
    r"""The largest ratio of down-ports to uplinks each row bears within its bound; infinite for rows that never leave
    their leaf.

    Each of the affine pieces of the iteration time is A + V·\rho in that ratio \rho, so

    .. math:: \rho_{\max} = \min_j (T - A_j) / V_j

    Parameters
    ----------
    contexts
        k of them, alike but for what groups see.
    shares
        Which shares of the bound T to ask for, shape (s,); the answer has shape (s, k, n).
    """
    once, twice = (_seen(found, contexts, uplinks_share) for uplinks_share in (1, 2))
    bounds_s = shares[:, None, None] * found.workload.bound_s
    largest = np.full((len(shares), len(contexts), len(found)), np.inf)
    for piece in found.pieces:
        at_one, at_two = (np.broadcast_to(piece.at(r), largest.shape[1:]) for r in (once, twice))
        slope = at_two - at_one
        with np.errstate(divide="ignore", invalid="ignore"):
            flat = np.where(at_one <= bounds_s, np.inf, -np.inf)
            bears = np.where(slope > 0, 1.0 + (bounds_s - at_one) / slope, flat)
        largest = np.minimum(largest, bears)
    return largest


def _seen(found: Pool, contexts: Sequence[Context], down: int) -> Reciprocals:
    """Seconds per byte of every row on each context with one uplink for `down` down-ports; shape (k, n)."""
    (tp, dp, ep), position = distinct_rows(*found.blocks)
    levels: dict[tuple[int, int, int | None], Reciprocals] = {}
    for context in contexts:
        spans = (context.leaf_span, context.pod_span, context.room)
        if spans not in levels:
            levels[spans] = levels_reached(context, (tp, dp, ep))
    ratios = np.array([ratios_of(replace(context, down=down), 1) for context in contexts])
    seen = ratios / np.array([[context.byte_s] for context in contexts])
    mine = [levels[context.leaf_span, context.pod_span, context.room] for context in contexts]
    reached = {name: np.stack([getattr(one, name) for one in mine]) for name in ("tp", "pp", "dp", "ep")}
    return Reciprocals(
        **{name: np.take_along_axis(seen, level, axis=1)[:, position] for name, level in reached.items()}
    )
