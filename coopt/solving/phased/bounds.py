"""What each line costs at least: the length of a shortest path through the uplinks of its phases.

A unit first needed in a phase costs the least price so far. Then the cost of a line is a sum over its phases, each
depending on the uplinks of that phase alone, and uplinks never fall from one to the next.
"""

from __future__ import annotations

import numpy as np

from formulations.phased_data import Floats, PhasedData

ROUNDING = 1e-12  # a bound is this much short, so that sums in another order stay above it


def line_bounds(data: PhasedData) -> Floats:
    """No plan on line f costs less than entry f; shape (F,)."""
    cheapest = np.minimum.accumulate(data.price, axis=0)
    later = np.vstack([cheapest[1:], np.zeros_like(cheapest[:1])])
    weight = cheapest - later + data.run  # of a unit in place in a phase, beside those in place in the next one
    fixed, uplink, spine = ((part * weight).sum(axis=2) for part in (data.fixed, data.uplink, data.spine))
    uplink += data.labour * data.stood
    uplink[:, :-1] += data.labour[1:] * (data.trunks - data.stood)[:, 1:]
    least = fixed.sum(axis=1) + _shortest(uplink, spine, data)
    return np.asarray(least - ROUNDING * np.abs(least), dtype=np.float64)


def _shortest(uplink: Floats, spine: Floats, data: PhasedData) -> Floats:
    """The least cost of uplinks that never fall and of the spines they need; shape (F,)."""
    u = np.arange(int(data.most.max(initial=0)) + 1)
    best = np.zeros((len(uplink), len(u)))
    for t in range(uplink.shape[1]):
        spines = -(-data.leaves[:, t, None] * u // data.ports[:, t, None])
        cost = uplink[:, t, None] * u + spine[:, t, None] * spines
        inside = (u >= data.least[:, t, None]) & (u <= data.most[:, t, None])
        best = np.where(inside, np.minimum.accumulate(best, axis=1) + cost, np.inf)
    return np.asarray(best.min(axis=1), dtype=np.float64)
