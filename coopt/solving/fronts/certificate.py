"""A lower bound on the cost at any pace, by one linear program that HiGHS keeps from one pace to the next."""

from __future__ import annotations

import highspy
import numpy as np
import pyomo.environ as pyo

from coopt.perf.mapping import Ints
from coopt.solving.arrays import Problem
from coopt.solving.handover import linear_program
from coopt.solving.highs import options
from formulations.shared import FRONT, build
from formulations.shared_model import spines_at


class Certifier:
    """The formulation `front` without its whole numbers, which its optimum does not need.

    From pace to pace only the fewest uplinks of families change, and which of them keep the pace at all: the simplex
    method goes on from the last optimum.
    """

    def __init__(self, problem: Problem) -> None:
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
        self._highs = highspy.Highs()
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
        self._highs.run()
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
