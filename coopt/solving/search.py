"""Solve a formulation, recompute what it decided, cut off what does not hold, and repeat."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pyomo.environ as pyo

from coopt.columns.context import context_of
from coopt.columns.table import Columns
from coopt.instance.schema import Instance
from coopt.network.bill import bill, total
from coopt.network.limits import within_limits
from coopt.solving.assemble import SCALE, Problem
from coopt.solving.highs import Answer, options, solve
from coopt.solving.ties import Found, fastest_of_equal_cost
from coopt.solving.workloads import fastest_row
from formulations.shared import FORMULATIONS, add_cut, add_limit_cut, build


@dataclass(frozen=True, kw_only=True)
class Search:
    """How a search ended. `bound` is in objective units."""

    found: Found | None
    answer: Answer
    bound: float
    cuts: int
    nodes: int
    build_s: float
    handover_s: float
    solve_s: float


def search(
    instance: Instance, problem: Problem, table: Columns, *, formulation: str, gap: float, threads: int, deadline: float
) -> Search:
    """The cheapest network by one formulation.

    Parameters
    ----------
    deadline
        When to stop, on the clock of `time.perf_counter`.
    """
    started = time.perf_counter()
    model = build(problem.data, FORMULATIONS[formulation])
    build_s = time.perf_counter() - started
    settings = options(gap=gap, threads=threads)
    cuts = nodes = 0
    handover_s = solve_s = 0.0
    while True:
        left = max(deadline - time.perf_counter(), 0.0)
        answer = solve(model, time_limit_s=left, settings=settings)
        nodes, handover_s, solve_s = nodes + answer.nodes, handover_s + answer.handover_s, solve_s + answer.solve_s
        found = None
        if answer.value is not None:
            found = _recomputed(instance, problem, table, model)
            if found is None:
                cuts += 1
                if answer.outcome == "optimal":
                    continue
            elif answer.outcome == "optimal":
                found = fastest_of_equal_cost(instance, problem.families, table, found)
        return Search(
            found=found,
            answer=answer,
            bound=answer.bound * SCALE,
            cuts=cuts,
            nodes=nodes,
            build_s=build_s,
            handover_s=handover_s,
            solve_s=solve_s,
        )


def _recomputed(instance: Instance, problem: Problem, table: Columns, model: pyo.ConcreteModel) -> Found | None:
    """What the rounded decisions amount to; None, with cuts added, where they break a bound or a limit."""
    f = max(model.F, key=lambda i: model.y[i].value)
    family, uplinks = problem.families[f], round(model.u[f].value)
    context = context_of(family)
    broken, rows = False, []
    for w, workload in enumerate(instance.workload):
        row, time_s = fastest_row(table.pools[w, context.site], context, uplinks)
        rows.append(row)
        if time_s > workload.bound_s:
            broken = True
            for c, column in enumerate(problem.columns):
                if column.workload == w and table.contexts[column.context] == context:
                    add_cut(model, c, uplinks + 1)
    cost = total(instance.objective, bill(instance, family, uplinks))
    if not within_limits(instance, family, cost):
        broken = True
        add_limit_cut(model, f, uplinks - 1)
    return None if broken else Found(family=family, uplinks=uplinks, cost=cost, rows=tuple(rows))
