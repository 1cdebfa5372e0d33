"""The shared network: solve its formulation, recompute what it decided, cut off what does not hold."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace

import pyomo.core as pyo

from coopt.columns.context import context_of
from coopt.columns.table import Columns
from coopt.instance.schema import Instance
from coopt.network.family import next_even
from coopt.network.parts import within_limits
from coopt.solving.arrays import SharedProblem, in_units_of
from coopt.solving.backend import Backend
from coopt.solving.candidates import Candidate, fastest_of_equal_cost, recomputed
from coopt.solving.driver import Decided, Drive, Subproblem, drive
from coopt.solving.watching import OnStanding
from formulations.shared import UPLINKS, add_limit_cut, add_uplink_cut, build, cheapest_design, set_design


def search(
    instance: Instance,
    problem: SharedProblem,
    table: Columns,
    backend: Backend,
    *,
    deadline: float,
    on_standing: OnStanding | None = None,
) -> Drive[Candidate]:
    """The cheapest network, by the formulation of the instance; its search starts from what a pass over families finds.

    Parameters
    ----------
    deadline
        When to stop, on the clock of `time.perf_counter`.
    on_standing
        Hears how far the search is, in objective units.
    """
    result = drive(
        [_started(instance, problem, table)],
        backend,
        gap=instance.solver.gap,
        deadline=deadline,
        on_standing=on_standing,
    )
    if result.found is None or result.outcome != "optimal":
        return result
    with contextlib.suppress(KeyboardInterrupt):  # the one found is as good a proof
        return replace(result, found=fastest_of_equal_cost(instance, problem.families, table, result.found))
    return result


def _started(instance: Instance, problem: SharedProblem, table: Columns) -> Subproblem[Candidate]:
    """The shared network, which starts from what a pass over families finds."""
    first = cheapest_design(problem.data)

    def build_network() -> tuple[pyo.ConcreteModel, float]:
        model = build(problem.data, UPLINKS)
        if first is not None:
            set_design(model, *first)
        return model, problem.scale

    def closer(value: float) -> Subproblem[Candidate] | None:
        nearer = in_units_of(problem, value)
        return None if nearer is None else _started(instance, nearer, table)

    network = subproblem(instance, problem, table)
    return replace(network, build=build_network, starts=first is not None, closer=closer)


def subproblem(
    instance: Instance,
    problem: SharedProblem,
    table: Columns,
    build_model: Callable[[], tuple[pyo.ConcreteModel, float]] | None = None,
    value: Callable[[Candidate], float] | None = None,
) -> Subproblem[Candidate]:
    """The shared network by a model of its families and columns.

    Parameters
    ----------
    value
        What a network is worth; the objective of its bill where left out.
    """

    def worth(candidate: Candidate) -> float:
        return candidate.cost.of(instance.objective.minimize) if value is None else value(candidate)

    def read(model: pyo.ConcreteModel) -> Decided[Candidate] | None:
        candidate = _cut_off(instance, problem, table, model)
        return None if candidate is None else Decided(choice=candidate, value=worth(candidate))

    def unbuilt() -> tuple[pyo.ConcreteModel, float]:
        return build(problem.data, UPLINKS), problem.scale

    return Subproblem(build=build_model or unbuilt, read=read)


def _cut_off(instance: Instance, problem: SharedProblem, table: Columns, model: pyo.ConcreteModel) -> Candidate | None:
    """What the rounded decisions amount to; None, with cuts added, where they break a bound or a limit."""
    f = max(model.F, key=lambda i: model.y[i].value)
    family = problem.families[f]
    candidate = recomputed(instance, table, family, family.most_offered(round(model.u[f].value)))
    context = context_of(candidate.family)
    late = {w for w, share in enumerate(candidate.shares) if share > 1}
    for c, column in enumerate(problem.columns):
        if column.workload in late and table.contexts[column.context] == context:
            add_uplink_cut(model, c, int(next_even(candidate.uplinks + 1, context.bundle)))
    over = not within_limits(instance, candidate.family, candidate.cost)
    if over:
        add_limit_cut(model, f, candidate.uplinks - 1)
    return None if late or over else candidate
