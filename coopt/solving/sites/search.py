"""Find the cheapest ring of sites: a lower bound for every ring first, then ring by ring while one may be cheaper."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass

import pyomo.environ as pyo

from coopt.instance.schema import Instance
from coopt.solving.backend import Backend
from coopt.solving.effort import Effort, Toll
from coopt.solving.highs import Answer, Outcome
from coopt.solving.sites.arrays import Problem
from coopt.solving.sites.worth import Built, built
from formulations.sites import FORMULATIONS, add_choice_cut, build

MODEL = FORMULATIONS["ring"]


@dataclass(frozen=True, kw_only=True)
class SitesSearch(Effort):
    """How the search over all rings ended."""

    found: Built | None
    outcome: Outcome


@dataclass(kw_only=True)
class _State(Toll):
    """The best choice so far, why the search stops early if it does, and what it took."""

    instance: Instance
    backend: Backend
    deadline: float
    best: Built | None = None
    value: float = math.inf
    outcome: Outcome = "optimal"

    def model(self, problem: Problem) -> pyo.ConcreteModel:
        """The model of one ring."""
        started = time.perf_counter()
        model = build(problem.data, MODEL)
        self.build_s += time.perf_counter() - started
        return model

    def solve(self, model: pyo.ConcreteModel) -> Answer:
        """Solve a model in the time that is left."""
        answer = self.backend.solve(model, max(self.deadline - time.perf_counter(), 0.0))
        self.add(answer)
        if answer.outcome not in ("optimal", "infeasible"):
            self.outcome = answer.outcome
        return answer


def search_rings(instance: Instance, problems: Iterable[Problem], backend: Backend, *, deadline: float) -> SitesSearch:
    """The cheapest choice over all rings.

    Rings are taken by rising relaxation bound; once no bound is below the best value, within the gap, the rest cannot
    win.
    """
    state, bounds = _State(instance=instance, backend=backend, deadline=deadline), []
    for low, problem in sorted(((_relaxed(state, p), p) for p in problems), key=lambda pair: pair[0]):
        if state.outcome != "optimal" or low >= state.value * (1 - instance.solver.gap):
            bounds.append(low)
        else:
            bounds.append(max(low, _solved(state, problem)))
    if state.best is None and state.outcome == "optimal":
        state.outcome = "infeasible"
    return SitesSearch(
        found=state.best,
        outcome=state.outcome,
        bound=min(bounds, default=-math.inf),
        **state.taken(),
    )


def _relaxed(state: _State, problem: Problem) -> float:
    """A lower bound of a ring in objective units, by fractions of options and channels; inf where not even those do."""
    if state.outcome != "optimal":
        return -math.inf
    model = state.model(problem)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
    answer = state.solve(model)
    if answer.outcome == "infeasible":
        return math.inf
    return answer.value * problem.scale if answer.outcome == "optimal" and answer.value is not None else -math.inf


def _solved(state: _State, problem: Problem) -> float:
    """Solve one ring, keep what is cheaper than the best so far, and return the proven bound in objective units."""
    model = state.model(problem)
    while True:
        answer = state.solve(model)
        if answer.outcome == "infeasible":
            return math.inf
        if answer.value is not None:
            chosen = tuple(max(options, key=lambda o: model.z[o].value) for options in model.options_of)
            there = built(state.instance, problem, chosen)
            value = there.whole.of(state.instance.objective.minimize)
            if there.over and answer.outcome == "optimal":
                add_choice_cut(model, list(chosen))
                state.cuts += 1
                continue
            if not there.over and value < state.value:
                state.best, state.value = there, value
        return answer.bound * problem.scale
