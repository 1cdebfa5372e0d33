"""Where a front bends: points after which more patience buys much less than before."""

from __future__ import annotations

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
