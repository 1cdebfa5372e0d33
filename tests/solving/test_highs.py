"""HiGHS as we drive it: every way to stop, told apart."""

from __future__ import annotations

import math

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest

from coopt.solving.highs import PROBING, options, solve
from formulations.shared import CHORDS, build
from formulations.shared_model import SharedData

SETTINGS = options(gap=0.0, threads=1)


def knapsack(n: int) -> pyo.ConcreteModel:
    """An equality knapsack that takes a search."""
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(n), domain=pyo.Binary)
    weights = [(7919 * (i + 3) ** 2) % 9973 + 20000 for i in range(n)]
    m.most = pyo.Constraint(expr=sum(w * m.x[i] for i, w in enumerate(weights)) <= sum(weights) // 2)
    m.also = pyo.Constraint(expr=sum(weights[-1 - i] * m.x[i] for i in range(n)) <= sum(weights) // 2 - 3)
    m.cost = pyo.Objective(expr=-sum((w + i % 3) * m.x[i] for i, w in enumerate(weights)))
    return m


def test_optimal_has_value_bound_and_variables() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(domain=pyo.NonNegativeIntegers)
    m.free = pyo.Var(bounds=(None, 4))
    m.least = pyo.Constraint(expr=2 * m.x >= 3)
    m.same = pyo.Constraint(expr=m.free == m.x - 1)
    m.cost = pyo.Objective(expr=5 * m.x + m.free + 100)
    answer = solve(m, time_limit_s=10, settings=SETTINGS)
    assert (answer.outcome, answer.value, m.x.value, m.free.value) == ("optimal", 111, 2, 1)
    assert answer.bound == pytest.approx(111)


def test_infeasible_claims_no_value_and_no_bound() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(domain=pyo.Integers, bounds=(0, 9))
    m.between = pyo.Constraint(expr=pyo.inequality(2.2, m.x, 2.8))
    m.cost = pyo.Objective(expr=m.x)
    answer = solve(m, time_limit_s=10, settings=SETTINGS)
    assert (answer.outcome, answer.value, answer.bound) == ("infeasible", None, -math.inf)


def test_unbounded_is_told_apart() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(domain=pyo.Integers)
    m.least = pyo.Constraint(expr=m.x <= 5)
    m.cost = pyo.Objective(expr=m.x)
    answer = solve(m, time_limit_s=10, settings=SETTINGS)
    assert answer.outcome == "unbounded"
    assert answer.bound == -math.inf


def test_a_time_limit_is_no_proof() -> None:
    answer = solve(knapsack(60), time_limit_s=0.0, settings=SETTINGS)
    assert answer.outcome == "time limit"
    assert answer.value is None or answer.value > answer.bound


def test_a_misspelled_option_is_refused() -> None:
    with pytest.raises(AssertionError, match="mip_gap"):
        solve(knapsack(3), time_limit_s=1, settings={**SETTINGS, "mip_gap": 0.1})


def test_repeated_runs_agree() -> None:
    first, second = (solve(knapsack(12), time_limit_s=60, settings=SETTINGS) for _ in range(2))
    assert (first.value, first.nodes) == (second.value, second.nodes)


def lost_by_presolve() -> pyo.ConcreteModel:
    """A shared network with three families, the third free of cost: the optimum is 0."""

    def ints(*values: int) -> np.ndarray:
        return np.array(values)

    data = SharedData(
        workloads=1,
        contexts=3,
        fixed=np.array([1.0, 0.0, 0.0]),
        uplink=np.array([0.0, 1.0, 0.0]),
        spine=np.zeros(3),
        least=ints(0, 1, 1),
        most=ints(0, 3, 2),
        leaves=ints(0, 0, 0),
        radix=ints(4, 4, 4),
        down=ints(0, 4, 4),
        context=ints(0, 1, 2),
        column_workload=ints(0, 0, 0),
        column_context=ints(0, 1, 2),
        need=ints(0, 1, 1),
        reach=np.array([1.0, 4.0, 4.0]),
    )
    return build(data, CHORDS)


def lost_without_bounds() -> pyo.ConcreteModel:
    """A shared network with three contexts: four uplinks of the third family, at 1 each, serve both workloads."""
    zeros = np.zeros(5)
    data = SharedData(
        workloads=2,
        contexts=3,
        fixed=zeros,
        uplink=np.array([0.0, 0.0, 1.0, 0.0, 0.0]),
        spine=zeros,
        least=np.array([1, 0, 1, 1, 1]),
        most=np.array([4, 0, 6, 4, 4]),
        leaves=np.zeros(5, dtype=np.int64),
        radix=np.full(5, 4),
        down=np.array([8, 0, 8, 8, 8]),
        context=np.array([0, 1, 2, 0, 0]),
        column_workload=np.array([0, 0, 0, 1, 1, 0, 0]),
        column_context=np.array([0, 1, 2, 0, 2, 2, 2]),
        need=np.array([1, 0, 5, 5, 4, 1, 5]),
        reach=np.array([8.0, 1.0, 1.6, 1.6, 2.0, 8.0, 1.6]),
    )
    return build(data, CHORDS)


def test_the_optimum_that_an_unbounded_slowdown_loses_is_found() -> None:
    assert solve(lost_without_bounds(), time_limit_s=10, settings=SETTINGS).value == pytest.approx(4)


@pytest.mark.skipif(highspy.Highs().version() != "1.15.1", reason="documents a fault of one version of HiGHS")
def test_an_unbounded_slowdown_still_loses_it() -> None:
    m = lost_without_bounds()
    m.rho.setub(None)
    assert solve(m, time_limit_s=10, settings=SETTINGS).value == pytest.approx(5)


def test_the_optimum_that_presolve_loses_is_found() -> None:
    assert solve(lost_by_presolve(), time_limit_s=10, settings=SETTINGS).value == 0


@pytest.mark.skipif(highspy.Highs().version() != "1.15.1", reason="documents a fault of one version of HiGHS")
@pytest.mark.parametrize("rules_off", [0, PROBING])
def test_presolve_still_loses_it_with_and_without_probing(rules_off: int) -> None:
    asked = {**SETTINGS, "presolve": "on", "presolve_rule_off": rules_off}
    assert solve(lost_by_presolve(), time_limit_s=10, settings=asked).value == 1
