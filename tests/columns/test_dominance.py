"""The sieve drops only what something kept beats."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.columns.dominance import undominated
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
