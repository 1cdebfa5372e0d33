"""Solve a formulation, recompute what it decided, cut off what does not hold, and repeat."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, replace

import pyomo.environ as pyo

from coopt.columns.context import context_of
from coopt.columns.table import Columns
from coopt.instance.schema import Instance
from coopt.network.limits import within_limits
from coopt.solving.arrays import Problem
from coopt.solving.backend import Backend
from coopt.solving.candidates import Candidate, fastest_of_equal_cost, recomputed
from coopt.solving.effort import Effort
from coopt.solving.highs import Answer
from coopt.solving.watching import OnStanding, rescaled
from formulations.shared import FORMULATIONS, add_limit_cut, add_tangent_cut, add_uplink_cut, build
from formulations.shared_start import cheapest_design, set_design


@dataclass(frozen=True, kw_only=True)
class Search(Effort):
    """How a search ended, and the model with the cuts it took."""

    found: Candidate | None
    answer: Answer
    model: pyo.ConcreteModel


def search(
    instance: Instance,
    problem: Problem,
    table: Columns,
    backend: Backend,
    *,
    deadline: float,
    on_standing: OnStanding | None = None,
) -> Search:
    """The cheapest network, by the formulation of the instance; its search starts from what a pass over families finds.

    Parameters
    ----------
    deadline
        When to stop, on the clock of `time.perf_counter`.
    on_standing
        Hears how far the search is, in objective units.
    """
    started = time.perf_counter()
    model = build(problem.data, FORMULATIONS[instance.solver.formulation])
    first = cheapest_design(problem.data)
    if first is not None:
        set_design(model, *first)
    build_s, start = time.perf_counter() - started, first is not None
    what = (instance, problem, table, backend, model)
    result = settled(*what, deadline=deadline, on_standing=on_standing, build_s=build_s, start=start)
    if result.found is None or result.answer.outcome != "optimal":
        return result
    with contextlib.suppress(KeyboardInterrupt):  # the one found is as good a proof
        return replace(result, found=fastest_of_equal_cost(instance, problem.families, table, result.found))
    return result


def settled(
    instance: Instance,
    problem: Problem,
    table: Columns,
    backend: Backend,
    model: pyo.ConcreteModel,
    *,
    deadline: float,
    on_standing: OnStanding | None,
    build_s: float,
    start: bool = False,
) -> Search:
    """Solve a model of the shared network again and again, until what it decided holds or the search ends.

    With `start` its variables hold a design to start from; `build_s` is what building it took.
    """
    nodes = 0
    handover_s = solve_s = 0.0
    while True:
        left = max(deadline - time.perf_counter(), 0.0)
        known = start and _cuts(model) == 0
        answer = backend.solve(model, left, rescaled(on_standing, problem.scale, nodes), start=known)
        nodes, handover_s, solve_s = nodes + answer.nodes, handover_s + answer.handover_s, solve_s + answer.solve_s
        found = None if answer.value is None else _cut_off(instance, problem, table, model)
        if answer.value is not None and answer.outcome == "optimal" and found is None:
            continue
        return Search(
            found=found,
            answer=answer,
            model=model,
            bound=answer.bound * problem.scale,
            cuts=_cuts(model),
            nodes=nodes,
            build_s=build_s,
            handover_s=handover_s,
            solve_s=solve_s,
        )


def _cut_off(instance: Instance, problem: Problem, table: Columns, model: pyo.ConcreteModel) -> Candidate | None:
    """What the rounded decisions amount to; None, with cuts added, where they break a bound or a limit."""
    f = max(model.F, key=lambda i: model.y[i].value)
    candidate = recomputed(instance, table, problem.families[f], round(model.u[f].value))
    context = context_of(candidate.family)
    late = {w for w, share in enumerate(candidate.shares) if share > 1}
    for c, column in enumerate(problem.columns):
        if column.workload in late and table.contexts[column.context] == context:
            add_uplink_cut(model, c, candidate.uplinks + 1)
    if late and model.component("tangent_cuts") is not None:
        add_tangent_cut(model, f, candidate.uplinks)
    over = not within_limits(instance, candidate.family, candidate.cost)
    if over:
        add_limit_cut(model, f, candidate.uplinks - 1)
    return None if late or over else candidate


def _cuts(model: pyo.ConcreteModel) -> int:
    return sum(len(part) for part in (model.cuts, model.component("tangent_cuts")) if part is not None)
