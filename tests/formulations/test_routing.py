"""Every equation of routing reads as written, binds, and agrees with enumeration."""

from __future__ import annotations

import inspect
import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coopt.solving.highs import options, solve
from formulations import routing
from formulations.routing import (
    ROUTES,
    Equation,
    RoutingData,
    add_every_flow,
    add_load_down,
    add_load_up,
    add_worst_load,
    add_worst_range,
    build,
)
from tests.conftest import example_count


def crossing(**changes: Any) -> RoutingData:
    """Leaves 0 and 1 send one flow each to leaf 2; core 0 has a link to every leaf, core 1 two, none to leaf 1."""
    data = RoutingData(
        src=np.array([0, 1]),
        dst=np.array([2, 2]),
        flows=np.array([1, 1]),
        step=np.array([[2, 1], [2, 0], [2, 1]]),
        min_load=1,
        max_load=9,
    )
    return replace(data, **changes)


def best(data: RoutingData, equations: tuple[Equation, ...] = ROUTES) -> float:
    """The optimum by HiGHS; infinity when infeasible."""
    answer = solve(build(data, equations), time_limit_s=60, settings=options(gap=0.0, threads=1))
    assert answer.outcome in ("optimal", "infeasible"), answer.detail
    return math.inf if answer.value is None else answer.value


def without(equation: Equation) -> tuple[Equation, ...]:
    """The formulation less one equation."""
    return tuple(add for add in ROUTES if add is not equation)


def enumerated(data: RoutingData) -> float:
    """The optimum by trying every core for every flow."""
    pairs = [p for p, n in enumerate(data.flows) for _ in range(int(n))]
    cores = range(data.step.shape[1])
    choices = [[m for m in cores if data.step[data.src[p], m] and data.step[data.dst[p], m]] for p in pairs]
    found = math.inf
    for chosen in product(*choices):
        up, down = np.zeros(data.step.shape, dtype=int), np.zeros(data.step.shape, dtype=int)
        for p, m in zip(pairs, chosen, strict=True):
            up[data.src[p], m] += 1
            down[data.dst[p], m] += 1
        worst = max(int((np.maximum(up, down) * data.step).max()), data.min_load)
        found = min(found, worst if worst <= data.max_load else math.inf)
    return found


def test_the_worst_load_is_minimised() -> None:
    assert str(build(crossing(), (add_worst_load,)).worst_load.expr) == "worst"


def test_every_flow_reads_as_written() -> None:
    m = build(crossing(flows=np.array([3, 1])), (add_every_flow,))
    assert str(m.every_flow[0].expr) == "x[0,0] + x[0,1]  ==  3"
    assert str(m.every_flow[1].expr) == "x[1,0]  ==  1"


def test_load_up_reads_as_written() -> None:
    m = build(crossing(src=np.array([0, 0]), dst=np.array([1, 2])), (add_load_up,))
    assert str(m.load_up[0, 0].expr) == "2*(x[0,0] + x[1,0])  <=  worst"
    assert str(m.load_up[0, 1].expr) == "x[1,1]  <=  worst"
    assert len(m.load_up) == 2


def test_load_down_reads_as_written() -> None:
    m = build(crossing(), (add_load_down,))
    assert str(m.load_down[2, 0].expr) == "2*(x[0,0] + x[1,0])  <=  worst"
    assert str(m.load_down[2, 1].expr) == "x[0,1]  <=  worst"
    assert len(m.load_down) == 2


def test_worst_range_reads_as_written() -> None:
    assert str(build(crossing(), (add_worst_range,)).worst_range.expr) == "1  <=  worst  <=  9"


def test_the_worst_load_is_what_is_sought() -> None:
    m = build(crossing(), ROUTES)
    solve(m, time_limit_s=60, settings=options(gap=0.0, threads=1))
    assert (m.worst.value, m.x[0, 1].value, m.x[1, 0].value) == (2, 1, 1)


def test_every_flow_binds() -> None:
    assert best(crossing(), without(add_every_flow)) == 1 < best(crossing())


def test_load_up_binds() -> None:
    out = crossing(src=np.array([0, 0]), dst=np.array([1, 2]), flows=np.array([1, 4]))
    assert best(out, without(add_load_up)) < best(out)


def test_load_down_binds() -> None:
    into = crossing(flows=np.array([4, 1]))
    assert best(into, without(add_load_down)) < best(into)


def test_worst_range_binds() -> None:
    assert best(crossing(min_load=5)) == 5 > best(crossing(), without(add_worst_range))
    assert best(crossing(max_load=1)) == math.inf


def test_every_equation_is_in_the_formulation_and_tested_here() -> None:
    equations = {function for name, function in inspect.getmembers(routing) if name.startswith("add_")}
    assert equations == set(ROUTES)
    tests = " ".join(name for name in globals() if name.startswith("test_"))
    assert all(equation.__name__.removeprefix("add_") in tests for equation in equations)


@st.composite
def problems(draw: st.DrawFn) -> RoutingData:
    """Up to four pairs between four leaves; core 0 joins all."""
    cores = draw(st.integers(1, 3))
    row = st.lists(st.sampled_from([0, 1, 2, 6]), min_size=cores, max_size=cores)
    step = np.array(draw(st.lists(row, min_size=4, max_size=4)))
    step[:, 0] = np.maximum(step[:, 0], 1)
    leaf = st.integers(0, 3)
    pairs = draw(st.lists(st.tuples(leaf, leaf).filter(lambda p: p[0] != p[1]), min_size=1, max_size=4, unique=True))
    src, dst = np.array(pairs).T
    flows = np.array(draw(st.lists(st.integers(1, 2), min_size=len(pairs), max_size=len(pairs))))
    return RoutingData(src=src, dst=dst, flows=flows, step=step, min_load=draw(st.integers(0, 3)), max_load=20)


@settings(max_examples=example_count(40))
@given(problems())
def test_the_optimum_agrees_with_enumeration(data: RoutingData) -> None:
    assert best(data) == pytest.approx(enumerated(data))


def test_variables_say_their_unit() -> None:
    m = build(crossing(), ROUTES)
    assert {v.name: v.doc for v in m.component_objects(pyo.Var)} == {"x": "[flows]", "worst": "[1/U]"}
