"""Evaluate once what many rows share."""

from __future__ import annotations

import numpy as np

from coopt.perf.mapping import Ints

LARGEST_TABLE = 1 << 22


def distinct(*columns: Ints) -> tuple[tuple[Ints, ...], Ints]:
    """The distinct rows of some columns of small whole numbers, without sorting when their range allows.

    Returns
    -------
    rows, position
        `rows[j][position]` is column j again; rows come in rising order.
    """
    if not len(columns[0]):
        return tuple(column[:0] for column in columns), np.zeros(0, dtype=np.int64)
    sizes = [int(column.max()) + 1 for column in columns]
    span = 1
    for size in sizes:
        span *= size
    if span > LARGEST_TABLE:
        table, position = np.unique(np.stack(columns), axis=1, return_inverse=True)
        return tuple(table), position.ravel()
    key = np.zeros(len(columns[0]), dtype=np.int64)
    for column, size in zip(columns, sizes, strict=True):
        key = key * size + column
    present = np.zeros(span, dtype=np.bool_)
    present[key] = True
    keys = np.flatnonzero(present)
    number = np.empty(span, dtype=np.int64)
    number[keys] = np.arange(len(keys))
    return tuple(np.unravel_index(keys, sizes)), number[key]


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
