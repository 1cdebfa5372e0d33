"""The minimiser finds minima inside its box."""

from __future__ import annotations

import numpy as np
import pytest

from coopt.validation.fitting import minimise


def lowest(objective, start, step, low, high, evaluations=200):
    return minimise(objective, *map(np.array, (start, step, low, high)), evaluations)


def test_a_curved_valley_is_followed_to_its_end():
    def valley(x):
        return float((1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2)

    point = lowest(valley, [-1.2, 1.0], [0.5, 0.5], [-2.0, -2.0], [2.0, 2.0], evaluations=600)
    assert point == pytest.approx([1.0, 1.0], abs=1e-2)
    assert valley(point) < 1e-4


def test_parameters_of_very_different_size_are_found_together():
    def bowl(x):
        return float(abs(x[0] - 0.7) + abs(x[1] - 3e-6) * 1e5)

    point = lowest(bowl, [0.5, 0.0], [0.1, 2e-6], [0.4, 0.0], [0.95, 5e-5])
    assert point == pytest.approx([0.7, 3e-6], rel=1e-2)


def test_a_minimum_on_the_edge_is_approached_from_inside():
    asked = []

    def slope(x):
        asked.append(x.copy())
        return float(-x[0] + (x[1] - 0.5) ** 2)

    point = lowest(slope, [0.2, 0.2], [0.1, 0.1], [0.0, 0.0], [1.0, 1.0])
    assert point == pytest.approx([1.0, 0.5], abs=0.02)
    assert all((x >= 0).all() and (x <= 1).all() for x in asked)


def test_a_start_outside_is_moved_in():
    point = lowest(lambda x: float(x[0] ** 2), [5.0], [0.1], [1.0], [2.0])
    assert point == pytest.approx([1.0], abs=1e-2)


def test_it_stops_after_so_many_evaluations():
    asked = []

    def noisy(x):
        asked.append(1)
        return float(np.sin(1e6 * x[0]) + x[0])

    lowest(noisy, [0.5, 0.5], [0.1, 0.1], [0.0, 0.0], [1.0, 1.0], evaluations=40)
    assert len(asked) <= 40
