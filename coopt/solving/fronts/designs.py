"""Every design of an instance with its pace and its cost, and those of them that no other design beats in both."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any

import highspy
import numpy as np
import pyomo.core as pyo

from coopt.columns.pace import paces
from coopt.columns.table import Columns
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.parts import cost_of, price, resources, within_limits
from coopt.perf.mapping import Floats, Ints
from coopt.solving.arrays import SharedProblem
from coopt.solving.days import interrupted_paces
from coopt.solving.highs import QuietHighs, linear_program, options, run_apart
from formulations.shared import FRONT, build, spines_at

ROUNDING = 1e-9
"""Paces and costs closer than this share of themselves are equal; sums of prices are off by far less."""


@dataclass(frozen=True, kw_only=True)
class PacedDesigns:
    """PacedDesigns within the limits that run every workload, one entry each, families in turn and uplinks rising.

    `families` have only the uplinks that limits leave them. `value` is the objective (USD or W), up to rounding.
    """

    families: tuple[Family, ...]
    family: Ints
    uplinks: Ints
    pace: Floats
    value: Floats

    def fewest_uplinks(self, pace: float) -> Ints:
        """The fewest uplinks with which each family keeps a pace, one more than its most where it cannot; (F,)."""
        ends = np.searchsorted(self.family, np.arange(len(self.families) + 1))
        first, last = ends[:-1] + np.add.reduceat(self.pace > pace, ends[:-1], dtype=np.int64), ends[1:] - 1
        return np.where(first > last, self.uplinks[last] + 1, self.uplinks[np.minimum(first, last)])

    def least_value(self, pace: float) -> float:
        """The least cost of all designs that keep a pace (objective units); one does."""
        return float(self.value[self.pace <= pace].min())

    def front(self) -> Ints:
        """The designs that no other beats, by rising pace: each is clearly cheaper than all that are as fast."""
        order = np.lexsort((self.value, self.pace))
        least = np.minimum.accumulate(self.value[order])
        cheaper = np.ones(len(order), dtype=np.bool_)
        cheaper[1:] = least[1:] < least[:-1] * (1.0 - ROUNDING)
        best = order[cheaper]
        slower = np.ones(len(best), dtype=np.bool_)
        slower[:-1] = self.pace[best[1:]] > self.pace[best[:-1]] * (1.0 + ROUNDING)
        return np.asarray(best[slower], dtype=np.int64)


def all_designs(
    instance: Instance,
    families: tuple[Family, ...],
    table: Columns,
    check: Callable[[], None],
    over: Collection[str] | None = None,
) -> PacedDesigns | None:
    """The designs of all families; None where no design keeps the limits and runs every workload.

    Parameters
    ----------
    check
        Called between families; raises where time is up.
    over
        Names of the workloads whose pace counts, all if left out; the others keep their bounds.
    """
    kept: list[Family] = []
    pace: list[Floats] = []
    value: list[Floats] = []
    paced = zip(families, paces(instance, families, table, over), strict=True)
    for family, known in interrupted_paces(instance, families, table, check, over) if instance.availability else paced:
        within = _within_limits(instance, family)
        runs = np.isfinite(known[: len(within)])
        choices = tuple(uplinks for uplinks, possible in zip(within, runs, strict=True) if possible)
        if choices:
            check()
            kept.append(replace(family, uplink_choices=choices))
            pace.append(known[: len(within)][runs])
            value.append(_values(instance, kept[-1]))
    if not kept:
        return None
    return PacedDesigns(
        families=tuple(kept),
        family=np.repeat(np.arange(len(kept)), [len(family.uplink_choices) for family in kept]),
        uplinks=np.concatenate([_uplinks(family) for family in kept]),
        pace=np.concatenate(pace),
        value=np.concatenate(value),
    )


def _within_limits(instance: Instance, family: Family) -> tuple[int, ...]:
    """The uplinks with which a family keeps the limits: use never falls with uplinks, so these are the fewest."""
    choices, u = family.uplink_choices, _uplinks(family)
    used = resources(instance, family)
    for name, use in used.items():
        choices = choices[: int((use.at(family, u) <= getattr(instance.limits, name) * (1.0 + ROUNDING)).sum())]
    while used and choices and not within_limits(instance, family, cost_of(instance, family, choices[-1])):
        choices = choices[:-1]
    return choices


def _values(instance: Instance, family: Family) -> Floats:
    cost = price(instance, family, instance.objective.minimize)
    return np.asarray(cost.at(family, _uplinks(family)), dtype=np.float64)


def _uplinks(family: Family) -> Any:
    """The choices as an array, to be put where counts take a number."""
    return np.array(family.uplink_choices)


class Certifier:
    """The formulation `front` without its whole numbers, which its optimum does not need.

    From pace to pace only the fewest uplinks of families change, and which of them keep the pace at all: the simplex
    method goes on from the last optimum.
    """

    def __init__(self, problem: SharedProblem) -> None:
        self._problem = problem
        model = build(problem.data, FRONT)
        lp, variables = linear_program(model)
        lp.integrality_ = []
        rows = {id(row): n for n, row in enumerate(model.component_data_objects(pyo.Constraint, active=True))}
        columns = {id(variable): n for n, variable in enumerate(variables)}
        self._built = np.array([columns[id(model.y[f])] for f in model.F], dtype=np.int32)
        self._uplink_rows = [rows[id(model.least_uplinks[f])] for f in model.F]
        self._spine_rows = {f: rows[id(row)] for f, row in model.least_spines.items()}
        self._least = problem.data.least.copy()
        self._highs = QuietHighs()
        for name, value in options(gap=0.0, threads=1).items():
            self._highs.setOptionValue(name, value)
        self._highs.passModel(lp)
        self.solves = 0

    def bound(self, fewest: Ints) -> float:
        """The least cost (objective units) of all families, each with at least so many uplinks.

        Parameters
        ----------
        fewest
            Shape (F,); a family that has not as many is not built. One has.
        """
        possible = fewest <= self._problem.data.most
        changed = np.flatnonzero(possible & (fewest != self._least))
        for f in changed.tolist():
            self._demand(f, int(fewest[f]))
        self._least[changed] = fewest[changed]
        zeros, upper = np.zeros(len(possible)), possible.astype(np.float64)
        self._highs.changeColsBounds(len(possible), self._built, zeros, upper)
        run_apart(self._highs)
        self.solves += 1
        status = self._highs.getModelStatus()
        assert status == highspy.HighsModelStatus.kOptimal, self._highs.modelStatusToString(status)
        return float(self._highs.getInfo().objective_function_value) * self._problem.scale

    def _demand(self, f: int, uplinks: int) -> None:
        """N2 and N6 of one family, which HiGHS holds as `uplinks y - u <= 0` and `spines y - s <= 0`."""
        column = int(self._built[f])
        self._highs.changeCoeff(self._uplink_rows[f], column, float(uplinks))
        if f in self._spine_rows:
            spines = spines_at(self._problem.data, f, uplinks)
            self._highs.changeCoeff(self._spine_rows[f], column, float(spines))
