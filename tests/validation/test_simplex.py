"""The minimiser finds minima inside its box."""

from __future__ import annotations

import numpy as np
import pytest

from coopt.validation.fitting import BoundedObjective, minimise


def box(objective, low, high):
    return BoundedObjective(objective=objective, low=np.array(low), high=np.array(high))


def test_a_curved_valley_is_followed_to_its_end():
    def valley(x):
        return float((1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2)

    value, point = minimise(
        box(valley, [-2.0, -2.0], [2.0, 2.0]), np.array([-1.2, 1.0]), np.array([0.5, 0.5]), evaluations=600
    )
    assert point == pytest.approx([1.0, 1.0], abs=1e-2)
    assert value < 1e-4


def test_parameters_of_very_different_size_are_found_together():
    def bowl(x):
        return float(abs(x[0] - 0.7) + abs(x[1] - 3e-6) * 1e5)

    _, point = minimise(box(bowl, [0.4, 0.0], [0.95, 5e-5]), np.array([0.5, 0.0]), np.array([0.1, 2e-6]))
    assert point == pytest.approx([0.7, 3e-6], rel=1e-2)


def test_a_minimum_on_the_edge_is_approached_from_inside():
    asked = []

    def slope(x):
        asked.append(x.copy())
        return float(-x[0] + (x[1] - 0.5) ** 2)

    _, point = minimise(box(slope, [0.0, 0.0], [1.0, 1.0]), np.array([0.2, 0.2]), np.array([0.1, 0.1]))
    assert point == pytest.approx([1.0, 0.5], abs=0.02)
    assert all((x >= 0).all() and (x <= 1).all() for x in asked)


def test_a_start_outside_is_moved_in():
    _, point = minimise(box(lambda x: float(x[0] ** 2), [1.0], [2.0]), np.array([5.0]), np.array([0.1]))
    assert point == pytest.approx([1.0], abs=1e-2)


def test_it_stops_after_so_many_evaluations():
    asked = []

    def noisy(x):
        asked.append(1)
        return float(np.sin(1e6 * x[0]) + x[0])

    minimise(box(noisy, [0.0, 0.0], [1.0, 1.0]), np.array([0.5, 0.5]), np.array([0.1, 0.1]), evaluations=40)
    assert len(asked) <= 45
