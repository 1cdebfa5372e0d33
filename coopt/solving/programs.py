"""The mixed-integer programs that an instance makes by each formulation of its kind, before any search.

A search may take the same program in parts or in an order of its own, and adds cuts to it; here is what it begins with,
and how tight each formulation is: its optimum with fractions in place of whole numbers.
"""

from __future__ import annotations

import math

from pyomo.core.plugins.transform.discrete_vars import RelaxIntegerVars

from coopt.instance.schema import Instance
from coopt.instance.variants import with_tp
from coopt.solving.answer import method_of
from coopt.solving.backend import backend_of
from coopt.solving.highs import options, solve
from coopt.solving.runs import NamedPrograms, Program, Run

UNHURRIED_S = 1e9
"""Time for what comes before a program; a number, since an answer that there is none states it."""


def formulations_of(instance: Instance) -> tuple[str, ...]:
    """The names of the formulations of an instance."""
    return method_of(instance.problem).formulations(instance)


def programs_of(instance: Instance) -> NamedPrograms:
    """What an instance is made into, however long that takes; all formulations have the same list of what may be.

    TP groups lie inside HB domains where the instance leaves that open: so it is asked first.
    """
    unhurried = instance.solver.model_copy(update={"time_limit_s": UNHURRIED_S})
    instance = with_tp(instance, across=False).model_copy(update={"solver": unhurried})
    run = Run(instance=instance, backend=backend_of(instance.solver), on_progress=None)
    return method_of(instance.problem).programs(run)


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
