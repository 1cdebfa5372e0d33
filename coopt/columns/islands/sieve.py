"""Drop mappings that another of the same site beats on every network, all sites at once."""

from __future__ import annotations

import numpy as np

from coopt.perf.mapping import Bools, Floats, Ints, distinct_rows

ROUNDS = 12


def unbeaten(values: Floats, *classes: Ints) -> Bools:
    """Rows to keep: each dropped one has a kept row of its class with no larger value.

    As `coopt.columns.dominance.undominated`, with a round of all classes at a time: each takes its undecided row of
    least sum and drops what that row beats.

    Parameters
    ----------
    values
        Shape (k, n); less is better in every one.
    classes
        Columns of shape (n,); rows equal in all of them see the same bandwidths.
    """
    keep = np.ones(values.shape[1], dtype=np.bool_)
    if not len(keep):
        return keep
    scale = values.max(axis=1, keepdims=True)
    sums = (values / np.where(scale > 0, scale, 1.0)).sum(axis=0)
    _, position = distinct_rows(*classes)
    undecided = np.lexsort((sums, position))
    for _ in range(ROUNDS):
        if not len(undecided):
            break
        mine = position[undecided]
        begins = np.diff(mine, prepend=-1) > 0
        best = undecided[begins][np.cumsum(begins) - 1]
        beaten = (values[:, undecided] >= values[:, best]).all(axis=0)
        keep[undecided[beaten & ~begins]] = False
        undecided = undecided[~beaten]
    return keep
