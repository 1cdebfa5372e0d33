"""A second solver that searches the same programs, and whether what it finds goes with the first one's answer."""

from __future__ import annotations

from collections.abc import Callable

from coopt.instance.errors import InstanceError
from coopt.instance.listings import alternatives
from coopt.instance.schema import Instance, Solver
from coopt.plan.effort import Witness
from coopt.plan.schema import Plan
from coopt.solving.pyomo_solver import found_here

WITNESSES = {"scip": ("scip_direct", "pip install 'coopt[witness]'")}
"""Pyomo's interface to each, and what installs it."""

TOLERANCE = 1e-6
"""Share by which a bound of one solver may be above the value of the other: solvers keep rows to about that much."""


def asking_witness(instance: Instance, name: str) -> Instance:
    """The same question to the second solver.

    Raises
    ------
    InstanceError
        When no witness has that name, or it is not installed.
    """
    if name not in WITNESSES:
        raise InstanceError(f"witness = {name!r}: no such witness, needs {alternatives(map(repr, WITNESSES))}")
    interface, remedy = WITNESSES[name]
    try:
        found_here(Solver(name=interface))
    except InstanceError:
        raise InstanceError(f"witness = {name!r}: not installed here, needs {remedy}") from None
    return instance.model_copy(update={"solver": instance.solver.model_copy(update={"name": interface})})


def with_witness(plan: Plan, name: str, search: Callable[[], Plan]) -> Plan:
    """The plan, with what a second search found."""
    second = search()
    found = Witness(
        name=name,
        version=second.solver.version,
        status=second.status,
        value=second.objective.value,
        bound=second.objective.bound,
        agrees=agree(plan, second),
    )
    return plan.model_copy(update={"solver": plan.solver.model_copy(update={"witness": found})})


def agree(plan: Plan, second: Plan) -> bool:
    """Whether neither answer refutes the other, and the second one proves something."""
    if "infeasible" in (plan.status, second.status):
        return plan.status == second.status
    pairs = ((plan.objective, second.objective), (second.objective, plan.objective))
    refuted = any(
        one.value is not None and other.bound is not None and one.value < other.bound * (1 - TOLERANCE)
        for one, other in pairs
    )
    return second.objective.bound is not None and not refuted
