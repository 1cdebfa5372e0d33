"""Evaluate once what many rows share."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from coopt.perf.mapping import Ints

LARGEST_TABLE = 1 << 22


def distinct(*columns: Ints) -> tuple[tuple[Ints, ...], Ints]:
    """The distinct rows of some columns of small whole numbers, without sorting when their range allows.

    Where the range does not, as of powers of two up to a hundred thousand, each column is numbered first: that keeps
    the order of its values, so rows and their order are those of sorting.

    Returns
    -------
    rows, position
        `rows[j][position]` is column j again; rows come in rising order.
    """
    if not len(columns[0]):
        return tuple(column[:0] for column in columns), np.zeros(0, dtype=np.int64)
    sizes = [int(column.max()) + 1 for column in columns]
    if math.prod(sizes) <= LARGEST_TABLE:
        return _looked_up(columns, sizes)
    values, numbers = zip(*(_numbered(column, size) for column, size in zip(columns, sizes, strict=True)), strict=True)
    sizes = [len(present) for present in values]
    if math.prod(sizes) > LARGEST_TABLE:
        table, position = np.unique(np.stack(columns), axis=1, return_inverse=True)
        return tuple(table), position.ravel()
    rows, position = _looked_up(numbers, sizes)
    return tuple(present[row] for present, row in zip(values, rows, strict=True)), position


def _looked_up(columns: Sequence[Ints], sizes: Sequence[int]) -> tuple[tuple[Ints, ...], Ints]:
    """`distinct` by a table of all rows there could be, of columns below the given sizes."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column, size in zip(columns, sizes, strict=True):
        key = key * size + column
    keys, position = _numbered(key, math.prod(sizes))
    return tuple(np.unravel_index(keys, sizes)), position


def _numbered(column: Ints, size: int) -> tuple[Ints, Ints]:
    """The distinct values of a column below `size` in rising order, and the number of each entry among them."""
    if size > LARGEST_TABLE:
        values, position = np.unique(column, return_inverse=True)
        return values, position.ravel()
    present = np.zeros(size, dtype=np.bool_)
    present[column] = True
    values = np.flatnonzero(present)
    number = np.empty(size, dtype=np.int64)
    number[values] = np.arange(len(values))
    return values, number[column]


def representatives(*columns: Ints) -> tuple[Ints, Ints]:
    """One row for each distinct combination of some columns.

    Returns
    -------
    rows, position
        What is computed for `rows` and then indexed by `position` is what all rows would have computed.
    """
    distinct_rows, position = distinct(*columns)
    rows = np.empty(len(distinct_rows[0]), dtype=np.int64)
    rows[position] = np.arange(len(position))
    return rows, position
