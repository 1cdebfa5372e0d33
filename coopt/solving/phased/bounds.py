"""A lower bound on what each line costs: spines in fractions, everything else as it is.

Without whole spines the cost of a line is linear in the uplinks of its phases, which rise from phase to phase within
their ranges: a shortest path. A unit first needed in a phase costs the least price so far.
"""

from __future__ import annotations

import numpy as np

from formulations.phased_data import Floats, PhasedData

ROUNDING = 1e-12  # a bound is this much short, so that sums in another order stay above it


def line_bounds(data: PhasedData) -> Floats:
    """No plan on line f costs less than entry f; shape (F,)."""
    cheapest = np.minimum.accumulate(data.price, axis=0)
    later = np.vstack([cheapest[1:], np.zeros_like(cheapest[:1])])
    weight = cheapest - later + data.run  # a unit in place in a phase, beside those in place in the next one
    fixed, uplink, spine = ((part * weight).sum(axis=2) for part in (data.fixed, data.uplink, data.spine))
    slope = uplink + spine * data.leaves / data.ports + data.labour * data.stood
    slope[:, :-1] += data.labour[1:] * (data.trunks - data.stood)[:, 1:]
    least = fixed.sum(axis=1) + _rising(slope, data)
    return np.asarray(least - ROUNDING * np.abs(least), dtype=np.float64)


def _rising(slope: Floats, data: PhasedData) -> Floats:
    """The least of a linear cost over uplinks that never fall; shape (F,)."""
    u = np.arange(int(data.most.max(initial=0)) + 1)
    best = np.zeros((len(slope), len(u)))
    for t in range(slope.shape[1]):
        inside = (u >= data.least[:, t, None]) & (u <= data.most[:, t, None])
        best = np.where(inside, np.minimum.accumulate(best, axis=1) + slope[:, t, None] * u, np.inf)
    return np.asarray(best.min(axis=1), dtype=np.float64)
