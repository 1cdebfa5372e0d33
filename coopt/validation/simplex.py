"""Minimise a function of a few numbers without its gradient (Nelder and Mead 1965)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Corner = tuple[float, Vector]

NARROW = 1e-4  # of the first step: the simplex counts as a point
FLAT = 1e-9  # between best and worst value: nothing is left to gain
GAIN = 1e-3  # share of the value that makes another descent worth while


@dataclass(kw_only=True)
class Box:
    """The function, where it may be asked, and how often it was."""

    objective: Callable[[Vector], float]
    low: Vector
    high: Vector
    asked: int = field(default=0, init=False)

    def corner(self, point: Vector) -> Corner:
        """The value at a point, infinite outside the box."""
        self.asked += 1
        inside = bool(np.all((self.low <= point) & (point <= self.high)))
        return (self.objective(point) if inside else np.inf), point


def minimise(box: Box, start: Vector, step: Vector, evaluations: int = 200) -> Corner:
    """The smallest value found and where.

    Where the simplex has shrunk to nothing, a new one is laid around the best point, until that gains nothing.

    Parameters
    ----------
    step
        How far the first points lie from `start`, one number for each direction.
    evaluations
        When to stop at the latest.
    """
    found = _descended(box, np.clip(start, box.low, box.high), step, evaluations)
    while box.asked < evaluations:
        again = _descended(box, found[1], -step / 2.0, evaluations)
        if again[0] > found[0] * (1.0 - GAIN):
            break
        found = again
    return found


def _descended(box: Box, start: Vector, step: Vector, evaluations: int) -> Corner:
    """One descent from a simplex around `start`."""
    simplex = [box.corner(start), *(box.corner(_beside(box, start, step, i)) for i in range(len(start)))]
    while True:
        simplex.sort(key=lambda corner: corner[0])
        if box.asked >= evaluations or _settled(simplex, step):
            return simplex[0]
        better = _improved(box, simplex)
        if better is not None:
            simplex[-1] = better
        else:
            best = simplex[0][1]
            simplex[1:] = [box.corner((best + point) / 2.0) for _, point in simplex[1:]]


def _improved(box: Box, simplex: list[Corner]) -> Corner | None:
    """A corner to take the place of the worst: mirrored at the others, further out, or nearer in."""
    centre = np.mean([point for _, point in simplex[:-1]], axis=0)
    worst = simplex[-1]
    mirrored = box.corner(2.0 * centre - worst[1])
    if mirrored[0] < simplex[0][0]:
        further = box.corner(3.0 * centre - 2.0 * worst[1])
        return further if further[0] < mirrored[0] else mirrored
    if mirrored[0] < simplex[-2][0]:
        return mirrored
    nearer = box.corner((centre + (mirrored if mirrored[0] < worst[0] else worst)[1]) / 2.0)
    return nearer if nearer[0] < min(mirrored[0], worst[0]) else None


def _beside(box: Box, start: Vector, step: Vector, direction: int) -> Vector:
    """A corner next to the start, on the other side where the box ends."""
    point = start.astype(np.float64)
    there = point[direction] + step[direction]
    point[direction] += step[direction] * (1.0 if box.low[direction] <= there <= box.high[direction] else -1.0)
    return point


def _settled(simplex: list[Corner], step: Vector) -> bool:
    points = np.array([point for _, point in simplex])
    width = float(np.max(np.abs((points - points[0]) / step)))
    return width < NARROW or simplex[-1][0] - simplex[0][0] < FLAT
