"""Prove of a part that no choice of it is worth less than a value, by cases and without the word of a solver.

Multipliers of a linear program bound each case from below whatever the solver's tolerances. Sums are of floats: every
addend is taken short by more than the rounding of all sums that it is in. That is far less than values of one choice
may differ by when it is billed in another order, so that a bound that only rounding keeps from the best value reaches
it. What multipliers leave open is billed choice by choice, as answers are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from coopt.solving.proofs.tree import Prover
from formulations.partition_data import Ints, PartitionData

HAIR = 5e-13
"""By which share a choice has to be worth less than a value to be another one's: by less, both round to it."""

ROUNDED = 2.0**-52
"""For each addend: twice what a sum of floats, or of their products, is off by at most, as a share of its addends."""

SPARE = 8
"""Addends that every sum may have besides."""

COSTS = 2.0**-48
"""The same as a share of costs, where a value is a difference of two."""

WORK, FEWEST, MOST = 4_000, 20, 250
"""Cases times the options that each looks at: a few per cent of what it takes to list the options. And how many cases
these are at least, and at most."""

MOST_OPEN, MOST_BILLED = 500, 12
"""Options that are looked at on the way to the choices that a case leaves open, and choices that are billed then."""


class Closed(NamedTuple):
    """A bound below every choice of a part, and a choice that is worth less than was to be shown, if one was found."""

    bound: float
    better: Ints | None


def closed(data: PartitionData, value: float, deadline: float, worth_of: Callable[[Ints, float], float]) -> Closed:
    """Show that no choice is worth less than a value, as far as `WORK` and the time do.

    Parameters
    ----------
    value
        In units of the objective.
    deadline
        On the clock of `time.perf_counter`.
    worth_of
        What a choice, the option of each workload, is worth once it is billed; infinite where it is worth less than a
        floor and keeps not all limits, which are not looked at otherwise.
    """
    if data.outlooks and value <= 0:  # no regret is below 0
        return Closed(bound=value, better=None)
    better: list[Ints] = []
    floor = value - HAIR * abs(value) - COSTS * max((abs(one.best) for one in data.outlooks), default=0.0)
    addends = data.workloads + len(data.products) + len(data.limits) + len(data.cores) + len(data.outlooks)

    def settled(chosen: list[int]) -> bool:
        choice = np.array(chosen)
        if worth_of(choice, floor) >= floor:
            return True
        better.append(choice)
        return False

    whole = [n for n, one in enumerate(data.limits) if not any(one.core) and (one.use == np.floor(one.use)).all()]
    prover = Prover(
        data,
        floor,
        deadline,
        whole,
        settled=settled,
        leeway=(addends + SPARE) * ROUNDED,
        most_cases=max(FEWEST, min(WORK // len(data.usd), MOST)),
        most_open=MOST_OPEN,
        most_billed=MOST_BILLED,
    )
    prover.tree()
    found = min(better, key=lambda choice: worth_of(choice, floor), default=None)
    shown = found is None and prover.proven >= floor
    return Closed(bound=value if shown else -math.inf, better=found)
