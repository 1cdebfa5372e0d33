"""What the filter drops is dominated by something it keeps."""

from __future__ import annotations

import numpy as np
import pytest

from coopt.columns.dominance import Slopes, needed_options

FLAT = Slopes(least_usd=np.array([5.0, 7.0]), most_usd=np.array([5.0, 7.0]))
ALL_UNITS = Slopes(least_usd=np.array([0.0, 7.0]), most_usd=np.array([5.0, 7.0]))
APART = np.array([[True, False], [False, True]])


def kept(
    usd: list[float], uses: list[float], quantity: list[list[float]], slopes: Slopes = FLAT, joins: object = None
) -> list[int]:
    count = len(usd)
    sets = np.zeros((count, 0), dtype=bool) if joins is None else np.asarray(joins)
    rows = np.array(uses, dtype=float).reshape(count, 1)
    return needed_options(np.array(usd), rows, np.array(quantity, dtype=float), sets, slopes).tolist()


def test_an_option_of_more_everything_is_dropped() -> None:
    assert kept([1, 1, 2], [3, 4, 3], [[1, 0], [1, 0], [2, 0]]) == [0]


def test_of_equal_options_the_first_is_kept() -> None:
    assert kept([1, 1], [3, 3], [[1, 0], [1, 0]]) == [0]


def test_an_option_that_uses_less_of_one_resource_is_kept() -> None:
    assert kept([1, 9], [4, 3], [[1, 0], [1, 0]]) == [0, 1]


def test_units_of_another_product_may_pay_for_those_of_one() -> None:
    assert kept([0, 0], [3, 3], [[2, 0], [0, 2]]) == [0]


def test_a_product_of_a_limited_kind_is_not_exchanged_for_another() -> None:
    assert kept([0, 0], [3, 3], [[2, 0], [0, 2]], joins=APART) == [0, 1]


def test_fewer_products_of_a_limited_kind_dominate_more() -> None:
    assert kept([0, 0], [3, 3], [[2, 0], [2, 0]], joins=[[True, True], [True, False]]) == [0, 1]
    assert kept([0, 0], [3, 3], [[2, 0], [2, 0]], joins=[[True, False], [True, True]]) == [0]


def test_units_that_may_be_free_save_nothing() -> None:
    assert kept([10, 9], [3, 3], [[1, 0], [2, 0]]) == [0]
    assert kept([10, 9], [3, 3], [[1, 0], [2, 0]], ALL_UNITS) == [0, 1]


@pytest.mark.parametrize("slopes", [FLAT, ALL_UNITS])
def test_every_dropped_option_has_a_kept_one_that_dominates_it(slopes: Slopes) -> None:
    rng = np.random.default_rng(0)
    usd, uses = rng.integers(0, 9, 400).astype(float), rng.integers(0, 5, (400, 2)).astype(float)
    quantity, joins = rng.integers(0, 4, (400, 2)).astype(float), rng.random((400, 2)) < 0.5
    found = needed_options(usd, uses, quantity, joins, slopes)
    for b in np.setdiff1d(np.arange(400), found):
        more, less = np.maximum(quantity[found] - quantity[b], 0), np.maximum(quantity[b] - quantity[found], 0)
        dearer = usd[found] - usd[b] + more @ slopes.most_usd - less @ slopes.least_usd
        fits = (uses[found] <= uses[b]).all(axis=1) & ~(joins[found] & ~joins[b]).any(axis=1)
        assert (fits & (dearer <= 0)).any()
