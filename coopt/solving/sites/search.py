"""Find the cheapest ring of sites: a lower bound for every ring first, then ring by ring while one may be cheaper."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace

import pyomo.core as pyo
from pyomo.core.plugins.transform.discrete_vars import RelaxIntegerVars

from coopt.instance.schema import Instance
from coopt.solving.backend import Backend
from coopt.solving.driver import Decided, Drive, Subproblem, drive
from coopt.solving.effort import Toll
from coopt.solving.sites.arrays import RingProblem
from coopt.solving.sites.worth import Built, built
from formulations.sites import FORMULATIONS, add_choice_cut, build

MODEL = FORMULATIONS["ring"]


def search_rings(
    instance: Instance, problems: Sequence[RingProblem], backend: Backend, *, deadline: float
) -> Drive[Built]:
    """The cheapest choice over all rings, by rising bound of their relaxations."""
    toll = Toll()
    rings = [_ring(instance, problem, _relaxed(problem, backend, deadline, toll)) for problem in problems]
    found = drive(rings, backend, gap=instance.solver.gap, deadline=deadline)
    taken = {name: value + getattr(found, name) for name, value in toll.taken().items()}
    return replace(found, **taken)


def _relaxed(problem: RingProblem, backend: Backend, deadline: float, toll: Toll) -> float:
    """A lower bound of a ring in objective units, by fractions of options and channels; inf where not even those do."""
    started = time.perf_counter()
    model = build(problem.data, MODEL)
    RelaxIntegerVars().apply_to(model)
    toll.build_s += time.perf_counter() - started
    answer = backend.solve(model, max(deadline - time.perf_counter(), 0.0))
    toll.add(answer)
    if answer.outcome == "infeasible":
        return math.inf
    return answer.bound * problem.scale if answer.outcome == "optimal" else -math.inf


def _ring(instance: Instance, problem: RingProblem, bound: float) -> Subproblem[Built]:
    """One ring by its formulation; a choice whose bills exceed a limit is cut off."""

    def read(model: pyo.ConcreteModel) -> Decided[Built] | None:
        chosen = tuple(max(options, key=lambda o: model.z[o].value) for options in model.options_of)
        whole = built(instance, problem, chosen)
        if whole.over:
            add_choice_cut(model, list(chosen))
            return None
        return Decided(choice=whole, value=whole.whole.of(instance.objective.minimize))

    return Subproblem(build=lambda: (build(problem.data, MODEL), problem.scale), read=read, bound=bound)
