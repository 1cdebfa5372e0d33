"""HiGHS as we drive it: every way to stop, told apart."""

from __future__ import annotations

import gzip
import json
import math
import random
import subprocess
import sys
import threading
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import highspy
import numpy as np
import pyomo.environ as pyo
import pytest

from coopt.solving import highs
from coopt.solving.highs import QuietHighs, linear_program, options, safe_bound, solve, solved
from formulations.network import NETWORK, NetworkData, add_uplinks_demanded, build

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
    """A shared network with three families, the third free of cost, so that the optimum is 0.

    The second and the third have four ports down, 1 to 3 uplinks and 1 to 2, and a slowdown of 4 / uplinks from below
    by its chords.
    """
    data = NetworkData(
        workloads=1,
        contexts=3,
        fixed=np.array([1.0, 0.0, 0.0]),
        uplink=np.array([0.0, 1.0, 0.0]),
        spine=np.zeros(3),
        min_uplinks=np.array([0, 1, 1]),
        max_uplinks=np.array([0, 3, 2]),
        leaves=np.zeros(3, dtype=np.int64),
        radix=np.full(3, 4),
        context=np.arange(3),
        column_workload=np.zeros(3, dtype=np.int64),
        column_context=np.arange(3),
        need=np.array([0, 1, 1]),
    )
    m = build(data, tuple(add for add in NETWORK if add is not add_uplinks_demanded))
    m.rho = pyo.Var(m.F, domain=pyo.NonNegativeReals, bounds=lambda _, f: (0.0, 4.0 if f else 1.0))
    m.slowdown = pyo.ConstraintList()
    m.slowdown.add(m.rho[0] >= m.y[0])
    for f, i in ((1, 1), (1, 2), (2, 1)):
        m.slowdown.add(m.rho[f] >= 4 / (i * (i + 1)) * ((2 * i + 1) * m.y[f] - m.u[f]))
    m.time_bound = pyo.Constraint(m.F, rule=lambda m, f: m.rho[f] <= (4.0 if f else 1.0) * m.z[f])
    return m


def test_the_optimum_that_presolve_loses_is_found() -> None:
    assert solve(lost_by_presolve(), time_limit_s=10, settings=SETTINGS).value == 0


def test_a_model_whose_smaller_ones_are_presolved_without_end_is_searched(tmp_path: Path) -> None:
    """A process of its own, as a search that hears nothing can only be killed."""
    search = """
import json, sys
import highspy

h = highspy.Highs()
for name, value in json.loads(sys.argv[2]).items():
    h.setOptionValue(name, value)
h.readModel(sys.argv[1])
h.run()
print(h.modelStatusToString(h.getModelStatus()), h.getInfo().objective_function_value)
"""
    settings = json.dumps(options(gap=1e-4, threads=1))
    packed, plain = Path(__file__).parents[1] / "data" / "endless_presolve.mps.gz", tmp_path / "endless_presolve.mps"
    plain.write_bytes(gzip.decompress(packed.read_bytes()))  # not every build of HiGHS reads what is packed
    ran = subprocess.run(
        [sys.executable, "-c", search, plain, settings], capture_output=True, text=True, timeout=120, check=True
    )
    assert "Optimal 861." in ran.stdout


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_search_that_is_deaf_to_its_limits_is_left_with_its_best_solution(
    monkeypatch: pytest.MonkeyPatch, cancelled: bool
) -> None:
    """HiGHS is held up where it asks whether to stop, as soon as it has a solution."""
    found, released, cancel = threading.Event(), threading.Event(), threading.Event()

    def held_up(event: Any) -> None:
        if found.is_set():
            if cancelled:
                cancel.set()
            released.wait()

    class DeafHighs(QuietHighs):
        def run(self) -> Any:
            self.cbMipImprovingSolution.subscribe(lambda event: found.set())
            self.cbMipInterrupt.subscribe(held_up)
            return super().run()

    monkeypatch.setattr(highs, "DEAF_S", 0.2)
    monkeypatch.setattr(highs, "QuietHighs", DeafHighs)
    m = knapsack(40)
    try:
        answer = solve(m, time_limit_s=60.0 if cancelled else 1.0, settings=SETTINGS, cancel=cancel)
        monkeypatch.undo()
        assert solve(knapsack(4), time_limit_s=10, settings=SETTINGS).outcome == "optimal"  # beside the one left
    finally:
        released.set()
    assert (answer.outcome, answer.detail) == ("interrupted" if cancelled else "time limit", "deaf")
    assert answer.solve_s < 30
    assert answer.value == pytest.approx(pyo.value(m.cost))
    assert pyo.value(m.most.body) <= m.most.upper
    assert answer.bound <= answer.value


@pytest.mark.parametrize("threads", [1, 2])
def test_linear_programs_are_solved_after_somebody_else_ran_highs(threads: int) -> None:
    """HiGHS keeps the number of threads of the first search of a thread; each case runs in one that is new."""
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = 1, 1
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = np.ones(1), np.zeros(1), np.full(1, 9.0)
    lp.row_lower_, lp.row_upper_ = np.full(1, 2.0), np.full(1, np.inf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = np.array([0, 1], dtype=np.int32), np.zeros(1, dtype=np.int32)
    lp.a_matrix_.value_ = np.ones(1)
    found: list[float] = []

    def run() -> None:
        foreign = highspy.Highs()
        for name, value in (("output_flag", False), ("threads", threads)):
            foreign.setOptionValue(name, value)
        foreign.passModel(lp)
        foreign.run()
        found.append(solved(lp).getInfo().objective_function_value)

    alone = threading.Thread(target=run)
    alone.start()
    alone.join()
    assert found == [2.0]


@pytest.mark.parametrize("seed", range(40))
def test_no_multipliers_prove_more_than_the_best_whole_solution(seed: int) -> None:
    """Also such as are far from those of the linear program, or have a sign that their row does not allow."""
    chance = random.Random(seed)
    m, most = pyo.ConcreteModel(), [chance.randint(1, 3) for _ in range(4)]
    m.x = pyo.Var(range(4), bounds=lambda m, i: (0, most[i]))
    cost = [chance.choice([1, -1]) * 10 ** chance.uniform(-6, 6) for _ in range(4)]
    table = [[chance.choice([0, 1]) * 10 ** chance.uniform(-3, 3) for _ in range(4)] for _ in range(3)]
    met = [chance.randint(0, count) for count in most]
    side = [sum(a * n for a, n in zip(row, met, strict=True)) for row in table]
    m.rows = pyo.ConstraintList()
    for number, row in enumerate(table):
        body = sum(a * m.x[i] for i, a in enumerate(row)) + 0.0 * m.x[0]
        m.rows.add([body <= side[0], body >= side[1], pyo.inequality(side[2], body, 2 * side[2])][number])
    m.cost = pyo.Objective(expr=sum(c * m.x[i] for i, c in enumerate(cost)) + 7.0)

    def worth(point: tuple[int, ...]) -> Fraction:
        return sum((Fraction(c) * n for c, n in zip(cost, point, strict=True)), Fraction(7))

    def taken(number: int, point: tuple[int, ...]) -> Fraction:
        return sum((Fraction(a) * n for a, n in zip(table[number], point, strict=True)), Fraction())

    one = Fraction(1, 10**15)  # sides are rounded sums
    inside = [
        worth(point)
        for point in product(*(range(count + 1) for count in most))
        if taken(0, point) <= Fraction(side[0]) * (1 + one)
        and taken(1, point) >= Fraction(side[1]) * (1 - one)
        and Fraction(side[2]) * (1 - one) <= taken(2, point) <= 2 * Fraction(side[2])
    ]
    lp, _ = linear_program(m)
    answer = solve(m, time_limit_s=10, settings=SETTINGS)
    assert answer.bound == pytest.approx(answer.value, rel=1e-6, abs=1e-6 * max(map(abs, cost)))
    assert Fraction(answer.bound) <= min(inside)
    for _ in range(50):
        given = np.array([chance.choice([1, -1]) * 10 ** chance.uniform(-6, 9) for _ in range(3)])
        assert Fraction(safe_bound(lp, given)) <= min(inside)


def test_multipliers_of_a_row_prove_what_they_do_by_hand() -> None:
    m = pyo.ConcreteModel()
    m.x = pyo.Var(range(2), bounds=(0, 10))
    m.least = pyo.Constraint(expr=m.x[0] + 2 * m.x[1] >= 6)
    m.cost = pyo.Objective(expr=3 * m.x[0] + 4 * m.x[1])
    lp, _ = linear_program(m)
    assert safe_bound(lp, np.array([2.0])) == pytest.approx(2 * 6 + 0 + 0, abs=1e-11)
    assert safe_bound(lp, np.array([5.0])) == pytest.approx(5 * 6 - 10 * 2 - 10 * 6, abs=1e-11)
    assert safe_bound(lp, np.array([-1.0])) == pytest.approx(0.0, abs=1e-11)
    m.x[1].setub(None)
    assert safe_bound(linear_program(m)[0], np.array([5.0])) == -math.inf
