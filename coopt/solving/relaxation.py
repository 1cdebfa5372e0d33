"""How tight formulations are: the optimum of each with fractions in place of whole numbers."""

from __future__ import annotations

import math

from pyomo.core.plugins.transform.discrete_vars import RelaxIntegerVars

from coopt.instance.schema import Instance
from coopt.solving.highs import options, solve
from coopt.solving.programs import Program, formulations_of, programs_of


def lp_bounds(instance: Instance) -> dict[str, float | None]:
    """By the name of each formulation the optimum of its linear relaxation, before any cut.

    In USD or W, as the objective. None where nothing can serve every workload, or where even fractions exceed a limit.
    """
    programs = programs_of(instance)
    found = {name: [_relaxed(program) for program in programs(name)] for name in formulations_of(instance)}
    return {name: min((bound for bound in bounds if bound is not None), default=None) for name, bounds in found.items()}


def _relaxed(program: Program) -> float | None:
    RelaxIntegerVars().apply_to(program.model)
    answer = solve(program.model, time_limit_s=math.inf, settings=options(gap=0.0, threads=1))
    assert answer.outcome in ("optimal", "infeasible"), answer.detail
    return None if answer.value is None else program.base + program.unit * answer.value
