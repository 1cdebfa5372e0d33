"""Find the cheapest ring of sites: a lower bound for every ring first, then ring by ring while one may be cheaper."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass

import pyomo.environ as pyo

from coopt.instance.schema import Instance
from coopt.solving.backend import Backend
from coopt.solving.effort import Effort
from coopt.solving.highs import Outcome
from coopt.solving.sites.arrays import Problem
from coopt.solving.sites.worth import Built, built
from formulations.sites import FORMULATIONS, add_choice_cut, build

MODEL = FORMULATIONS["ring"]


@dataclass(frozen=True, kw_only=True)
class SitesSearch(Effort):
    """How the search ended; `rings` were possible, `solved` of them needed a search."""

    found: Built | None
    outcome: Outcome
    rings: int
    solved: int


@dataclass(kw_only=True)
class _State:
    best: Built | None = None
    value: float = math.inf
    outcome: Outcome = "optimal"
    nodes: int = 0
    cuts: int = 0
    solved: int = 0
    build_s: float = 0.0
    handover_s: float = 0.0
    solve_s: float = 0.0


def search_rings(instance: Instance, problems: Iterable[Problem], backend: Backend, *, deadline: float) -> SitesSearch:
    """The cheapest choice over all rings.

    Rings are taken by rising relaxation bound; once no bound is below the best value, within the gap, the rest cannot
    win.
    """
    state, bounds = _State(), []
    ordered = sorted(((_relaxed(p, backend, deadline, state), p) for p in problems), key=lambda pair: pair[0])
    for low, problem in ordered:
        if low == math.inf:
            continue
        enough = state.value * (1 - instance.solver.gap)
        if state.outcome != "optimal" or low >= enough:
            bounds.append(low)
            continue
        bounds.append(max(low, _solved(instance, problem, backend, deadline, state)))
    if state.best is None and state.outcome == "optimal":
        state.outcome = "infeasible"
    return SitesSearch(
        found=state.best,
        outcome=state.outcome,
        rings=len(ordered),
        solved=state.solved,
        bound=min(bounds, default=-math.inf),
        cuts=state.cuts,
        nodes=state.nodes,
        build_s=state.build_s,
        handover_s=state.handover_s,
        solve_s=state.solve_s,
    )


def _relaxed(problem: Problem, backend: Backend, deadline: float, state: _State) -> float:
    """A lower bound of a ring in objective units, by fractions of options and channels; inf where not even those do."""
    model = build(problem.data, MODEL)
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
    answer = backend.solve(model, max(deadline - time.perf_counter(), 0.0))
    state.handover_s += answer.handover_s
    state.solve_s += answer.solve_s
    if answer.outcome == "infeasible":
        return math.inf
    return answer.value * problem.scale if answer.outcome == "optimal" and answer.value is not None else -math.inf


def _solved(instance: Instance, problem: Problem, backend: Backend, deadline: float, state: _State) -> float:
    """Solve one ring, keep what is cheaper than the best so far, and return the proven bound in objective units."""
    started = time.perf_counter()
    model = build(problem.data, MODEL)
    state.build_s += time.perf_counter() - started
    state.solved += 1
    while True:
        answer = backend.solve(model, max(deadline - time.perf_counter(), 0.0))
        state.nodes += answer.nodes
        state.handover_s += answer.handover_s
        state.solve_s += answer.solve_s
        if answer.value is not None:
            chosen = tuple(max(options, key=lambda o: model.z[o].value) for options in model.options_of)
            there = built(instance, problem, chosen)
            value = there.whole.of(instance.objective.minimize)
            if not there.over and value < state.value:
                state.best, state.value = there, value
            elif there.over and answer.outcome == "optimal":
                add_choice_cut(model, list(chosen))
                state.cuts += 1
                continue
        if answer.outcome not in ("optimal", "infeasible"):
            state.outcome = answer.outcome
        return math.inf if answer.outcome == "infeasible" else answer.bound * problem.scale
