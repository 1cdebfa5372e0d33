"""Where a front bends, and which points of it to show when it has more than were asked for."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from coopt.perf.mapping import Floats

DEPTH = 0.05


def knees(pace: Floats, value: Floats) -> list[int]:
    """The knees of a front, deepest first.

    With both axes measured from 0 to 1 over the whole front, the point that lies farthest below the straight line
    between the two ends is a knee where that distance is at least `DEPTH`; each of the two parts it makes is looked at
    in the same way, in the same measure.

    Parameters
    ----------
    pace, value
        Shape (n,); pace rises, value falls.
    """
    if len(pace) < 3:
        return []
    points = np.stack([_measured(pace), _measured(value)], axis=1)
    found: list[tuple[float, int]] = []
    parts = [(0, len(points) - 1)]
    while parts:
        first, last = parts.pop()
        depths = _depths(points, first, last)
        if len(depths) and depths.max() >= DEPTH:
            knee = first + 1 + int(np.argmax(depths))
            found.append((float(depths.max()), knee))
            parts += [(first, knee), (knee, last)]
    return [knee for _, knee in sorted(found, key=lambda pair: (-pair[0], pair[1]))]


def _measured(numbers: Floats) -> Floats:
    """From 0 for the least to 1 for the largest."""
    low, high = numbers.min(), numbers.max()
    return np.asarray((numbers - low) / (high - low), dtype=np.float64)


def _depths(points: Floats, first: int, last: int) -> Floats:
    """How far every point between two lies below the line through them."""
    along = points[last] - points[first]
    off = points[first + 1 : last] - points[first]
    return np.asarray((along[1] * off[:, 0] - along[0] * off[:, 1]) / np.hypot(*along), dtype=np.float64)


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


def evenly(measure: Floats, wanted: int) -> list[int]:
    """Points whose measure is the largest within each of so many equal steps from its least to its most.

    Parameters
    ----------
    measure
        Shape (n,): paces, which rise along the front, or values, which fall.
    """
    places = np.argsort(measure, kind="stable")
    steps = np.linspace(measure.min(), measure.max(), wanted) * (1.0 + 1e-12)
    within = np.searchsorted(measure[places], steps, side="right") - 1
    return list(dict.fromkeys(places[within].tolist()))


def _nearer(away: Floats, pace: Floats, value: Floats, point: int) -> Floats:
    """Distances to what is chosen once a point is chosen too; what is chosen has a negative one."""
    both = [np.abs(axis - axis[point]) / max(float(np.ptp(axis)), 1e-300) for axis in (pace, value)]
    found = np.minimum(away, np.maximum(*both))
    found[point] = -1.0
    return np.asarray(found, dtype=np.float64)
