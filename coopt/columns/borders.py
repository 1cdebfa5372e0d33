"""How much slowdown mappings bear: up to which ratio of down-ports to uplinks some row of a pool is in time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from coopt.columns.context import Context, levels_reached, reciprocals
from coopt.columns.pools import Pool
from coopt.perf.mapping import Floats

MARGIN = 1e-9  # of a bound: far above the rounding of times, which is some 1e-16 of them for every unit of slowdown


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


def border_of(found: Pool, context: Context) -> Border:
    """The border of a pool on networks of a context."""
    reaches, surely, never = reach(found, context, np.array([1.0, 1.0 - MARGIN, 1.0 + MARGIN]))
    row = int(np.argmax(reaches))
    return Border(row=row, reach=float(reaches[row]), surely=float(surely.max()), never=float(never.max()))


def reach(found: Pool, context: Context, shares: Floats) -> Floats:
    r"""The largest ratio of down-ports to uplinks each row bears within its bound; infinite for rows that never leave
    their leaf.

    Each of the affine pieces of the iteration time is A + V·\rho in that ratio \rho, so

    .. math:: \rho_{\max} = \min_j (T - A_j) / V_j

    Parameters
    ----------
    shares
        Which shares of the bound T to ask for, shape (s,); the answer has shape (s, n).
    """
    levels = levels_reached(context, found.blocks)
    once, twice = (reciprocals(replace(context, down=down), 1, levels) for down in (1, 2))
    bounds_s = shares[:, None] * found.workload.bound_s
    largest = np.full((len(shares), len(found)), np.inf)
    for piece in found.pieces:
        at_one, at_two = (np.broadcast_to(piece.at(r), (len(found),)) for r in (once, twice))
        slope = at_two - at_one
        with np.errstate(divide="ignore", invalid="ignore"):
            flat = np.where(at_one <= bounds_s, np.inf, -np.inf)
            bears = np.where(slope > 0, 1.0 + (bounds_s - at_one) / slope, flat)
        largest = np.minimum(largest, bears)
    return largest
