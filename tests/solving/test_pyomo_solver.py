"""Solvers that Pyomo drives answer as the built-in one does, or are refused in one sentence."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyomo.opt import SolverStatus, TerminationCondition

import coopt
from coopt.instance.base import InstanceError
from coopt.instance.schema import Instance, Solver
from coopt.solving import highs
from coopt.solving import runs as backends
from coopt.solving.runs import backend_of
from tests.conftest import ask, example_count
from tests.formulations.small import two_families
from tests.solving.oracle import instances
from tests.solving.test_highs import knapsack

interfaces = pytest.mark.parametrize("name", ["appsi_highs", "highs"])


@interfaces
def test_a_solver_of_pyomo_answers_as_the_built_in_one(name: str) -> None:
    instance = ask()
    expected, plan = coopt.solve(instance), coopt.solve(instance, solver=name)
    assert (plan.status, plan.design, plan.cost) == (expected.status, expected.design, expected.cost)
    assert (plan.solver.name, plan.solver.version) == (name, highs.version())
    assert coopt.verify(instance, plan).accepted


@settings(max_examples=example_count(25))
@given(instances(), st.sampled_from(["appsi_highs", "highs"]))
def test_solvers_agree_on_random_instances(instance: Instance, name: str) -> None:
    expected, plan = coopt.solve(instance), coopt.solve(instance, solver=name)
    assert (plan.status, plan.design, plan.objective) == (expected.status, expected.design, expected.objective)


@interfaces
def test_the_instance_may_name_its_solver(name: str) -> None:
    assert coopt.solve(ask(solver={"name": name})).solver.name == name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("foo", "Pyomo knows no solver of that name"),
        ("_glpk_shell", "Pyomo knows no solver of that name"),
        ("baron", "not installed or without a licence here"),
    ],
)
def test_other_solvers_are_refused_with_those_there_are(name: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_available", lambda one: one in backends.HIGHS)
    with pytest.raises(InstanceError) as refused:
        coopt.solve(ask(), solver=name)
    need = "needs 'built-in', 'appsi_highs' or 'highs'"
    assert str(refused.value) == f"solver.name = {name!r}: {why}, {need}"


def test_a_solver_for_other_problems_is_refused_with_its_words() -> None:
    with pytest.raises(InstanceError, match=r"solver.name = 'gdpopt': stopped with 'No algorithm was specified"):
        coopt.solve(ask(), solver="gdpopt")


@interfaces
def test_a_time_limit_of_a_foreign_solver_keeps_the_best(name: str) -> None:
    backend = backend_of(Solver(name=name))
    answer = backend.solve(knapsack(60), 0.5)
    assert answer.outcome == "time limit"
    assert answer.bound < answer.value
    assert backend.solve(knapsack(60), 0.0).outcome == "time limit"


@interfaces
def test_infeasible_and_unbounded_are_told_apart(name: str) -> None:
    from formulations.network import NETWORK, build

    impossible = build(two_families(need=two_families().need + 20), NETWORK)
    answer = backend_of(Solver(name=name)).solve(impossible, 10.0)
    assert (answer.outcome, answer.value, answer.bound) == ("infeasible", None, -math.inf)


@interfaces
def test_gap_threads_and_seed_reach_the_solver(name: str) -> None:
    settings_of = backends.settings_of(Solver(name=name, gap=0.25, threads=2, seed=7))
    assert (settings_of["mip_rel_gap"], settings_of["threads"], settings_of["random_seed"]) == (0.25, 2, 7)
    assert backends.settings_of(Solver(name="glpk", gap=0.25, seed=7)) == {"mipgap": 0.25, "seed": 7}
    assert backends.settings_of(Solver(name="mosek_direct", gap=0.25)) == {}


class _Careless:
    """A solver that calls optimal what it has not proven."""

    def solve(self, model: Any, **_: Any) -> Any:
        highs.solve(model, time_limit_s=60, settings=highs.options(gap=0.0, threads=1))
        model.solutions = SimpleNamespace(load_from=lambda _: None)
        return SimpleNamespace(
            solver=SimpleNamespace(termination_condition=TerminationCondition.optimal, status=SolverStatus.ok),
            problem=SimpleNamespace(lower_bound=None),
            solution=[1],
        )


def test_an_optimum_without_a_bound_is_not_called_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "found_here", lambda _: (_Careless(), "1"))
    instance = ask()
    plan = coopt.solve(instance, solver="careless")
    assert (plan.status, plan.stop_reason, plan.objective.bound) == ("feasible", "the solver's own gap", None)
    assert plan.objective.value == coopt.solve(instance).objective.value
    assert coopt.verify(instance, plan).accepted
