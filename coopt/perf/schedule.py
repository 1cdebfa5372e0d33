"""How many sends the schedules of a pipeline make a stage wait for.

Counts that reproduce a simulation of 1F1B and interleaved 1F1B with rendezvous sends, one message at a time on each
port and direction.
"""

from __future__ import annotations

import numpy as np

from coopt.perf.mapping import Floats, Ints


def stage_hops(p: Ints, v: Ints) -> Floats:
    r"""H: hops of one micro-batch on a middle stage; shape of p and v.

    .. math::
        H = \begin{cases} 1 & p = 2, v = 1 \\ 2v - 1/2 & p = 2, v > 1 \\ 2v & p \text{ even or } v = 1 \\
            2v\,p/(p-1) - 2/p & p \text{ odd}, v > 1 \end{cases}

    Two stages have one neighbour each. The sends of an interleaved schedule run round the ring of stages in both
    directions; an odd ring cannot pair all its members at once.
    """
    odd = 2.0 * v * p / np.maximum(p - 1, 1) - 2.0 / p
    two = np.where(v == 1, 1.0, 2.0 * v - 0.5)
    return np.where(p == 1, 0.0, np.where(p == 2, two, np.where((p % 2 == 1) & (v > 1), odd, 2.0 * v)))


def spared_hops(p: Ints) -> Floats:
    """Hops of a micro-batch that the last stage does not have."""
    return np.where(p > 2, 1.0, 0.0)


def bubble_hops(p: Ints, v: Ints) -> Floats:
    """Q: hops while the pipeline fills and drains."""
    return np.where(p == 2, np.where(v == 1, 1.0, 0.0), np.maximum(2.0 * p - 5.0, 0.0))
