"""Drop rows that another row beats in every respect."""

from __future__ import annotations

import numpy as np

from coopt.perf.mapping import Bools, Floats, Ints, distinct_rows

ROUNDS = 40


def undominated(values: Floats, *classes: Ints, rounds: int = ROUNDS) -> Bools:
    """Rows to keep: of the dropped ones, each has a kept row of its class that is nowhere larger.

    A sieve, exact in what it drops but not in what it keeps: each round takes the undecided row of least sum
    of every class, keeps it and drops every row it dominates; what is undecided after the last round is kept.

    Parameters
    ----------
    values
        Shape (n, k); less is better in every column.
    classes
        Columns of shape (n,); only rows equal in all of them compare.
    rounds
        After how many the rest is kept.
    """
    keep = np.ones(len(values), dtype=np.bool_)
    if not len(values):
        return keep
    scale = values.max(axis=0)
    sums = (values / np.where(scale > 0, scale, 1.0)).sum(axis=1)
    _, position = distinct_rows(*classes)
    undecided = np.lexsort((sums, position))
    for _ in range(rounds):
        if not len(undecided):
            break
        begins = np.diff(position[undecided], prepend=-1) > 0
        best = undecided[begins][np.cumsum(begins) - 1]
        beaten = (values[undecided] >= values[best]).all(axis=1)
        keep[undecided[beaten & ~begins]] = False
        undecided = undecided[~beaten]
    return keep
