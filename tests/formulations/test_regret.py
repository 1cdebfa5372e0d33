"""Equations of regret: each reads as written, binds, and the optimum is that of enumeration."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.solving.highs import options, solve
from formulations.regret import REGRET, RegretData, Scenario, add_least_regret, add_regrets, build
from formulations.shared import SharedData
from tests.conftest import example_count
from tests.formulations.small import problems, two_families


def turned(data: SharedData, prices: list[tuple[list[int], list[int], list[int]]], best: list[float]) -> RegretData:
    """A small problem with the ways its prices may turn out."""
    ways = []
    for (fixed, uplink, spine), least in zip(prices, best, strict=True):
        arrays = [np.resize(np.array(values, dtype=float), len(data.fixed)) for values in (fixed, uplink, spine)]
        ways.append(Scenario(fixed=arrays[0], uplink=arrays[1], spine=arrays[2], min_cost=least))
    plain = {field.name: getattr(data, field.name) for field in fields(data)}
    return RegretData(**plain, scenarios=tuple(ways), max_regret=1e6)


def designs(data: SharedData) -> list[tuple[int, int, int]]:
    """Family, uplinks and spines of every design that serves all workloads within the resources."""
    found = []
    for f in range(len(data.fixed)):
        for u in range(int(data.min_uplinks[f]), int(data.max_uplinks[f]) + 1):
            k, s = int(data.context[f]), math.ceil(int(data.leaves[f]) * u / int(data.radix[f]))
            served = {
                int(w)
                for w, c, n in zip(data.column_workload, data.column_context, data.need, strict=True)
                if int(c) == k and n <= u
            }
            used = (a.fixed[f] + a.uplink[f] * u + a.spine[f] * s <= a.cap + 1e-9 for a in data.resources)
            if len(served) == data.workloads and all(used):
                found.append((f, u, s))
    return found


def optimum(data: RegretData, equations: Any = REGRET) -> float | None:
    """The optimum by HiGHS."""
    answer = solve(build(data, equations), time_limit_s=60, settings=options(gap=0.0, threads=1))
    assert answer.outcome in ("optimal", "infeasible")
    return answer.value


def small() -> RegretData:
    return turned(two_families(), [([10, 30], [5, 1], [2]), ([30, 10], [1, 5], [2])], [10.0, 12.0])


def test_the_objective_is_the_regret() -> None:
    model = build(small(), (add_least_regret,))
    assert str(model.least_regret.expr) == "regret"
    assert model.regret.bounds == (0.0, 1e6)


def test_regrets_read_as_written() -> None:
    model = build(small(), (add_least_regret, add_regrets))
    said = "10.0*y[0] + 5.0*u[0] + 2.0*s[0] + 30.0*y[1] + u[1] + 2.0*s[1] - 10.0  <=  regret"
    assert str(model.regrets[0].expr) == said


def test_regrets_bind() -> None:
    without = tuple(equation for equation in REGRET if equation is not add_regrets)
    assert optimum(small(), without) == 0.0
    assert (optimum(small()) or 0.0) > 0.0


@st.composite
def repriced(draw: st.DrawFn) -> RegretData:
    """Random small problems whose prices may turn out in up to three ways."""
    data, money = draw(problems()), st.lists(st.integers(0, 40), min_size=3, max_size=3)
    prices = [draw(st.tuples(money, money, money)) for _ in range(draw(st.integers(1, 3)))]
    return turned(data, prices, [float(draw(st.integers(0, 60))) for _ in prices])


def enumerated(problem: RegretData) -> float | None:
    """The least of the largest regrets over all designs; None without one."""
    regrets = [
        max(0.0, *(a.fixed[f] + a.uplink[f] * u + a.spine[f] * s - a.min_cost for a in problem.scenarios))
        for f, u, s in designs(problem)
    ]
    return min(regrets, default=None)


@settings(max_examples=example_count(120))
@given(problem=repriced())
def test_the_optimum_is_that_of_enumeration(problem: RegretData) -> None:
    found, expected = optimum(problem), enumerated(problem)
    assert (found is None) == (expected is None)
    if expected is not None:
        assert found == pytest.approx(expected, abs=1e-6)
