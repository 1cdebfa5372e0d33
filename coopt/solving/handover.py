"""A linear Pyomo model as the arrays HiGHS takes.

Rows are walked once and handed over without a detour: Pyomo's compiled standard form does the same through scipy, whose
import alone takes longer than most of our solves.
"""

from __future__ import annotations

from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
from pyomo.repn.linear import LinearRepnVisitor
from pyomo.repn.util import OrderedVarRecorder


def linear_program(model: pyo.ConcreteModel) -> tuple[Any, list[Any]]:
    """The model as a `HighsLp`, and its variables in the order of the columns.

    The model minimises one objective; its expressions are linear and no variable is fixed.
    """
    recorder = OrderedVarRecorder({}, {}, None)
    visitor = LinearRepnVisitor({}, var_recorder=recorder)
    (objective,) = model.component_data_objects(pyo.Objective, active=True)
    assert objective.is_minimizing(), "formulations minimise"
    cost = _linear(visitor, objective.expr)
    rows = [_row(visitor, row) for row in model.component_data_objects(pyo.Constraint, active=True)]
    order = recorder.var_order
    variables = list(recorder.var_map.values())
    assert len(variables) == len(order), "a variable is fixed"

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(variables), len(rows)
    lp.offset_ = float(cost.constant)
    lp.col_cost_ = _dense(cost.linear, order)
    lp.col_lower_ = np.array([-np.inf if v.lb is None else v.lb for v in variables], dtype=np.float64)
    lp.col_upper_ = np.array([np.inf if v.ub is None else v.ub for v in variables], dtype=np.float64)
    lp.row_lower_ = np.array([low for low, _, _ in rows], dtype=np.float64)
    lp.row_upper_ = np.array([high for _, high, _ in rows], dtype=np.float64)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.cumsum([0, *(len(terms) for _, _, terms in rows)], dtype=np.int32)
    lp.a_matrix_.index_ = np.array([order[key] for _, _, terms in rows for key in terms], dtype=np.int32)
    lp.a_matrix_.value_ = np.array([value for _, _, terms in rows for value in terms.values()], dtype=np.float64)
    kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
    lp.integrality_ = [kinds[not variable.is_continuous()] for variable in variables]
    return lp, variables


def _linear(visitor: Any, expression: Any) -> Any:
    found = visitor.walk_expression(expression)
    assert found.nonlinear is None, "formulations are linear"
    return found


def _row(visitor: Any, row: Any) -> tuple[float, float, dict[int, float]]:
    """Lower and upper side, and coefficients by variable; the body's constant moves to the sides."""
    low, body, high = row.to_bounded_expression(evaluate_bounds=True)
    found = _linear(visitor, body)
    sides = (-np.inf if low is None else low - found.constant, np.inf if high is None else high - found.constant)
    return *sides, found.linear


def _dense(terms: dict[int, float], order: dict[int, int]) -> Any:
    values = np.zeros(len(order))
    for key, value in terms.items():
        values[order[key]] = value
    return values
