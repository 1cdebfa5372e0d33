"""A knee is where a front bends, wherever it lies and whatever it is measured in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coopt.solving.fronts.tracing import DEPTH, knees, most_telling


def front(*points: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
    pace, value = zip(*points, strict=True)
    return np.array(pace, dtype=float), np.array(value, dtype=float)


fronts = st.lists(
    st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)), min_size=2, max_size=30
).map(lambda steps: (np.cumsum([a for a, _ in steps]), np.cumsum([b for _, b in steps])[::-1].copy()))  # fmt: skip


def test_the_corner_of_a_bent_front_is_its_knee() -> None:
    assert knees(*front((1, 100), (2, 60), (3, 20), (6, 15), (9, 10))) == [2]


def test_two_corners_are_two_knees_the_deeper_first() -> None:
    points = (0, 100), (1, 70), (5, 65), (6, 10), (10, 0)
    assert knees(*front(*points)) == [3, 1]


def test_a_straight_front_and_one_that_bends_outwards_have_no_knee() -> None:
    assert knees(*front((1, 4), (2, 3), (3, 2), (4, 1))) == []
    assert knees(*front((1, 10), (2, 9.5), (3, 8), (4, 0))) == []


@pytest.mark.parametrize(("share", "found"), [(0.98, []), (1.02, [1])])
def test_a_bend_counts_from_its_depth_on(share: float, found: list[int]) -> None:
    below = DEPTH * share * np.sqrt(2)  # straight down to the line between the ends
    assert knees(*front((0, 1), (0.5, 0.5 - below), (1, 0))) == found


@given(fronts, st.floats(0.1, 10), st.floats(1e3, 1e9))
def test_knees_do_not_depend_on_units(points: tuple[np.ndarray, np.ndarray], seconds: float, usd: float) -> None:
    pace, value = points
    assert all(0 < knee < len(pace) - 1 for knee in knees(pace, value))
    scaled = np.round(np.log2([seconds, usd]))  # powers of two, which change no digit
    assert knees(pace * 2 ** scaled[0], value * 2 ** scaled[1]) == knees(pace, value)


@given(fronts)
def test_every_knee_lies_below_the_line_between_its_neighbouring_knees(points: tuple[np.ndarray, np.ndarray]) -> None:
    pace, value = points
    stops = sorted([0, *knees(pace, value), len(pace) - 1])
    for before, knee, after in zip(stops, stops[1:], stops[2:], strict=False):
        share = (pace[knee] - pace[before]) / (pace[after] - pace[before])
        assert value[knee] < value[before] + share * (value[after] - value[before])


def test_points_are_chosen_by_what_is_farthest_from_the_others() -> None:
    pace, value = front((0, 100), (1, 99), (2, 50), (3, 49), (10, 0))
    assert most_telling(pace, value, [0, 4], 3) == [0, 4, 3]
    assert most_telling(pace, value, [0, 4, 0], 9) == [0, 4, 3, 1, 2]


@given(fronts, st.integers(2, 40))
def test_no_point_is_chosen_twice_and_as_many_as_there_are(points: tuple[np.ndarray, np.ndarray], wanted: int) -> None:
    pace, value = points
    found = most_telling(pace, value, [0, len(pace) - 1], wanted)
    assert len(set(found)) == len(found) == min(wanted, len(pace))
    assert found[:2] == [0, len(pace) - 1]


def test_a_single_point_is_a_front() -> None:
    pace, value = front((1, 5))
    assert most_telling(pace, value, [0, 0], 5) == [0]
    assert knees(pace, value) == []
