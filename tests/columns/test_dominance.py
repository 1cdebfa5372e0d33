"""The sieves drop only what something kept beats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.columns.pools import Slopes, needed_options, undominated
from coopt.perf.mapping import distinct_rows
from tests.conftest import example_count


@settings(max_examples=example_count(200))
@given(st.lists(st.tuples(*[st.integers(0, 4)] * 3, st.integers(0, 2)), max_size=120))
def test_every_dropped_row_has_a_kept_one_that_is_nowhere_larger(rows: list[tuple[int, int, int, int]]) -> None:
    table = np.array(rows, dtype=np.float64).reshape(-1, 4)
    values, classes = table[:, :3], table[:, 3].astype(np.int64)
    keep = undominated(values, classes)
    for i in np.flatnonzero(~keep):
        assert ((values[keep] <= values[i]).all(axis=1) & (classes[keep] == classes[i])).any()
    for i in np.flatnonzero(keep):
        better = keep & (classes == classes[i]) & (values <= values[i]).all(axis=1)
        assert better.sum() == 1  # few enough rows for the sieve to finish


@settings(max_examples=example_count(100))
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3000), st.integers(0, 3000)), min_size=1, max_size=60),
    st.sampled_from([1, 1 << 20, 1 << 30]),
)
def test_distinct_rows_bring_every_row_back(rows: list[tuple[int, int, int]], unit: int) -> None:
    columns = np.array(rows, dtype=np.int64).T
    # looked up in a table, sorted by one number, or column by column, and by all where one number is too small
    for used in (columns[:2], columns * unit, np.tile(columns * unit, 100), np.tile(columns, (6, 1))):
        found, position = distinct_rows(*used)
        np.testing.assert_array_equal(np.stack(found)[:, position], used)
        assert [*zip(*found, strict=True)] == sorted({*zip(*used, strict=True)})


def test_no_rows_are_fine() -> None:
    assert len(undominated(np.zeros((0, 3)), np.zeros(0, dtype=np.int64))) == 0


FLAT = Slopes(least_usd=np.array([5.0, 7.0]), most_usd=np.array([5.0, 7.0]))
ALL_UNITS = Slopes(least_usd=np.array([0.0, 7.0]), most_usd=np.array([5.0, 7.0]))
APART = np.array([[True, False], [False, True]])


NO_JOINS, BOTH_JOIN, ONE_JOINS = None, [[True, True], [True, False]], [[True, False], [True, True]]
OPTIONS = {  # USD, use of the one resource, units of two products, slopes, limited kinds joined; what is kept
    "of more everything": ([1, 1, 2], [3, 4, 3], [[1, 0], [1, 0], [2, 0]], FLAT, NO_JOINS, [0]),
    "equal, of which the first is kept": ([1, 1], [3, 3], [[1, 0], [1, 0]], FLAT, NO_JOINS, [0]),
    "less of one resource": ([1, 9], [4, 3], [[1, 0], [1, 0]], FLAT, NO_JOINS, [0, 1]),
    "units of another product that pay": ([0, 0], [3, 3], [[2, 0], [0, 2]], FLAT, NO_JOINS, [0]),
    "another product of a limited kind": ([0, 0], [3, 3], [[2, 0], [0, 2]], FLAT, APART, [0, 1]),
    "fewer products of a limited kind, later": ([0, 0], [3, 3], [[2, 0], [2, 0]], FLAT, BOTH_JOIN, [0, 1]),
    "fewer products of a limited kind, first": ([0, 0], [3, 3], [[2, 0], [2, 0]], FLAT, ONE_JOINS, [0]),
    "units that cost": ([10, 9], [3, 3], [[1, 0], [2, 0]], FLAT, NO_JOINS, [0]),
    "units that may be free": ([10, 9], [3, 3], [[1, 0], [2, 0]], ALL_UNITS, NO_JOINS, [0, 1]),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options_are_dropped_for_those_that_are_nowhere_worse(case: str) -> None:
    usd, uses, quantity, slopes, joins, kept = OPTIONS[case]
    sets = np.zeros((len(usd), 0), dtype=bool) if joins is None else np.asarray(joins)
    rows = np.array(uses, dtype=float).reshape(-1, 1)
    assert needed_options(np.array(usd), rows, np.array(quantity, dtype=float), sets, slopes).tolist() == kept


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
