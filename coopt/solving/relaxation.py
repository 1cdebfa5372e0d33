"""How tight a formulation is: its optimum with fractions in place of whole numbers."""

from __future__ import annotations

import pyomo.environ as pyo

from coopt.columns.table import columns
from coopt.instance.schema import Instance
from coopt.network.space import families
from coopt.solving.arrays import assemble, viable
from coopt.solving.highs import options, solve
from formulations.shared import FORMULATIONS, build


def lp_bound(instance: Instance, formulation: str) -> float | None:
    """The optimum of a formulation's linear relaxation (USD or W, as the objective), before any cut.

    None where no family can serve every workload, or where even fractions exceed a limit.
    """
    every = tuple(families(instance))
    if not every:
        return None
    table = columns(instance, every, lambda _: None, lambda: None)
    serving = viable(instance, every, table)
    if not serving:
        return None
    problem = assemble(instance, serving, table)
    model = build(problem.data, FORMULATIONS[formulation])
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
    answer = solve(model, time_limit_s=instance.solver.time_limit_s, settings=options(gap=0.0, threads=1))
    assert answer.outcome in ("optimal", "infeasible"), answer.detail
    return None if answer.value is None else answer.value * problem.scale
