"""Every equation of growth in phases reads as written, binds, and agrees with enumeration."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given, settings

from benchmarks.phased_naive import NAIVE
from coopt.solving.phased_search import line_bounds, of_line
from formulations import phased
from formulations.phased import (
    FORMULATIONS,
    PHASES,
    Equation,
    add_growth,
    add_one_line,
    add_purchases,
    add_spending,
    add_spines_of_phases,
    add_uplinks_of_phases,
)
from tests.conftest import example_count
from tests.formulations.growing import best, clusters, enumerated, model, one_line


def without(equation: Equation) -> tuple[Equation, ...]:
    assert equation in PHASES
    return tuple(add for add in PHASES if add is not equation)


def test_spending_reads_as_written() -> None:
    m = model(one_line(), add_spending)
    assert str(m.spending.expr) == (
        "10.0*x[0,0] + 50.0*x[0,1] + 8.0*x[1,0] + 40.0*x[1,1] + s[0,0] + s[0,1] + 7.0*(2*(u[0,1] - u[0,0]) + u[0,0])"
    )


def test_spending_binds() -> None:
    assert best(one_line(labour=np.array([0.0, 70.0])), PHASES) > best(one_line(), PHASES)


def test_one_line_reads_as_written() -> None:
    assert str(model(one_line(), add_one_line).one_line.expr) == "y[0]  ==  1"


def test_one_line_binds() -> None:
    assert best(one_line(), without(add_one_line)) == 0


def test_uplinks_of_phases_read_as_written() -> None:
    m = model(one_line(), add_uplinks_of_phases)
    assert str(m.least_uplinks[0, 1].expr) == "3*y[0]  <=  u[0,1]"
    assert str(m.most_uplinks[0, 1].expr) == "u[0,1]  <=  4*y[0]"


def test_uplinks_of_phases_bind() -> None:
    assert best(one_line(), without(add_uplinks_of_phases)) < best(one_line(), PHASES)


def test_growth_reads_as_written() -> None:
    m = model(one_line(), add_growth)
    assert str(m.growth[0, 1].expr) == "u[0,0]  <=  u[0,1]"
    assert len(m.growth) == 1


def test_growth_binds() -> None:
    data = one_line(min_uplinks=np.array([[4, 1]]), labour=np.zeros(2))
    assert best(data, without(add_growth)) < best(data, PHASES) == enumerated(data)


def test_spines_of_phases_read_as_written() -> None:
    m = model(one_line(leaves=np.array([[0, 4]])), add_spines_of_phases)
    assert str(m.spines_of_phases[0, 0].expr) == "s[0,0]  ==  0"
    assert str(m.spines_of_phases[0, 1].expr) == "4*u[0,1]  <=  4*s[0,1]"


def test_spines_of_phases_bind() -> None:
    assert best(one_line(), without(add_spines_of_phases)) < best(one_line(), PHASES)


def test_purchases_read_as_written() -> None:
    m = model(one_line(), add_purchases)
    assert str(m.purchases[1, 0].expr) == "9*y[0] + 4*u[0,1]  <=  x[0,0] + x[1,0]"
    assert str(m.purchases[0, 1].expr) == "s[0,0]  <=  x[0,1]"


def test_purchases_bind() -> None:
    assert best(one_line(), without(add_purchases)) < best(one_line(), PHASES)


def test_links_are_built_early_where_labour_costs_more_than_waiting_saves() -> None:
    cheap, dear = one_line(labour=np.zeros(2)), one_line(labour=np.array([0.0, 1000.0]), trunks=np.zeros((1, 2), int))
    assert best(cheap, PHASES) == enumerated(cheap)
    assert best(dear, PHASES) == enumerated(dear)
    early = one_line(min_uplinks=np.array([[3, 3]]), labour=np.zeros(2))
    assert best(dear, PHASES) == enumerated(early) == best(early, PHASES)


def test_units_are_bought_ahead_where_prices_rise() -> None:
    data = one_line(price=np.array([[10.0, 50.0], [18.0, 40.0]]), labour=np.zeros(2))
    items = 9 + 4 * 3  # of the last phase, all at the first price
    assert best(data, PHASES) == enumerated(data) == items * 10 + 50 + 2 * 40 + 1 + 3


@settings(max_examples=example_count(60))
@given(clusters())
def test_the_naive_form_of_the_benchmark_has_the_same_optimum(data: phased.PhasedData) -> None:
    assert round(best(data, NAIVE), 4) == enumerated(data)


@pytest.mark.parametrize("name", FORMULATIONS)
@settings(max_examples=example_count(300))
@given(data=clusters())
def test_the_optimum_equals_plain_enumeration(data: phased.PhasedData, name: str) -> None:
    assert round(best(data, FORMULATIONS[name]), 6) == enumerated(data)


@settings(max_examples=example_count(200))
@given(clusters())
def test_the_bound_of_a_line_is_what_it_costs(data: phased.PhasedData) -> None:
    for f, bound in enumerate(line_bounds(data)):
        cost = enumerated(of_line(data, f))
        assert bound <= cost
        assert bound == pytest.approx(cost, rel=1e-9, abs=1e-9)


def test_every_equation_has_its_tests() -> None:
    names = [name for name, f in vars(phased).items() if name.startswith("add_") and inspect.isfunction(f)]
    tests = [name for name in globals() if name.startswith("test_")]
    for name in names:
        stem = f"test_{name.removeprefix('add_')}_"
        assert any(test.startswith(stem) and "read" in test for test in tests), name
        assert any(test.startswith(stem) and "bind" in test for test in tests), name
