"""Which points of a front to show when it has more than were asked for."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from coopt.perf.mapping import Floats


def chosen(pace: Floats, value: Floats, first: Iterable[int], wanted: int) -> list[int]:
    """At most so many points, most telling first: the given ones, then always the one farthest from those chosen.

    Distance is the larger of the two differences, with both axes measured from 0 to 1: no step of the front that is
    long in time or in cost stays unseen for long.

    Parameters
    ----------
    pace, value
        Shape (n,).
    first
        Points to take before all others, with repeats.
    """
    taken = list(dict.fromkeys(first))[:wanted]
    away = np.full(len(pace), np.inf)
    for point in taken:
        away = _nearer(away, pace, value, point)
    while len(taken) < min(wanted, len(pace)):
        taken.append(int(np.argmax(away)))
        away = _nearer(away, pace, value, taken[-1])
    return taken


def _nearer(away: Floats, pace: Floats, value: Floats, point: int) -> Floats:
    """Distances to what is chosen once a point is chosen too; what is chosen has a negative one."""
    both = [np.abs(axis - axis[point]) / max(float(np.ptp(axis)), 1e-300) for axis in (pace, value)]
    found = np.minimum(away, np.maximum(*both))
    found[point] = -1.0
    return np.asarray(found, dtype=np.float64)
