"""Equations as they read, and optima by HiGHS."""

import math
from typing import Any

import pyomo.environ as pyo

from coopt.solving.highs import options, solve

SETTINGS = options(gap=0.0, threads=1)


def optimum(model: pyo.ConcreteModel) -> float:
    """The optimum by HiGHS; infinity when infeasible."""
    answer = solve(model, time_limit_s=60, settings=SETTINGS)
    assert answer.outcome in ("optimal", "infeasible"), answer.detail
    return math.inf if answer.value is None else answer.value


def relaxed(model: pyo.ConcreteModel) -> float:
    """The optimum with fractions in place of whole numbers."""
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
    return optimum(model)


def texts(model: pyo.ConcreteModel, *names: str) -> dict[str, str]:
    """Rows and objectives as text, by names such as `limits[power]`."""
    return {name: str(model.find_component(name).expr) for name in names}


def without(formulation: tuple[Any, ...], equation: Any) -> tuple[Any, ...]:
    """A formulation less one equation, which it has."""
    assert equation in formulation
    return tuple(add for add in formulation if add is not equation)
