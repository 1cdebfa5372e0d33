"""The design a search starts from is the best there is, and one that every formulation accepts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings

from coopt.solving.highs import options, solve
from formulations.shared import FORMULATIONS, UPLINKS, Resource, SharedData, build, cheapest_design, set_design
from tests.conftest import example_count
from tests.formulations.small import enumerated, problems, two_families

SETTINGS = options(gap=0.0, threads=1)


def test_the_cheapest_of_two_families_is_found() -> None:
    data = two_families()
    assert cheapest_design(data) == (0, 5)
    assert cheapest_design(two_families(need=np.array([9, 0]))) == (1, 0)
    assert cheapest_design(two_families(column_context=np.array([0, 0]), need=np.array([9, 9]))) is None
    power = Resource(name="w", fixed=np.array([1.0, 3.0]), uplink=np.array([1.0, 0.0]), spine=np.zeros(2), cap=5.0)
    assert cheapest_design(replace(data, resources=(power,))) == (1, 0)


@settings(max_examples=example_count(300))
@given(problems())
def test_the_pass_over_families_agrees_with_enumeration(data: SharedData) -> None:
    expected, found = enumerated(data), cheapest_design(data)
    assert (found is None) == math.isinf(expected)
    if found is not None:
        f, u = found
        spines = math.ceil(int(data.leaves[f]) * u / int(data.radix[f]))
        assert data.fixed[f] + data.uplink[f] * u + data.spine[f] * spines == pytest.approx(expected, abs=1e-9)


@settings(max_examples=example_count(100))
@given(problems())
def test_every_formulation_holds_the_design_it_starts_from(data: SharedData) -> None:
    found = cheapest_design(data)
    if found is None:
        return
    for equations in FORMULATIONS.values():
        m = build(data, equations)
        set_design(m, *found)
        m.as_found = pyo.Constraint(expr=m.u[found[0]] - m.y[found[0]] == found[1] - 1)
        m.the_family = pyo.Constraint(expr=m.y[found[0]] == 1)
        answer = solve(m, time_limit_s=60, settings=SETTINGS)
        assert answer.value == pytest.approx(enumerated(data), abs=1e-6)


def test_a_start_is_no_proof() -> None:
    """From a dearer design, and from one that breaks a row, the search still ends at the optimum."""
    for family, uplinks in ((1, 0), (0, 8), (0, 2)):
        m = build(two_families(), UPLINKS)
        set_design(m, family, uplinks)
        answer = solve(m, time_limit_s=10, settings=SETTINGS, start=True)
        assert (answer.outcome, answer.value, answer.bound) == ("optimal", 22, pytest.approx(22))


def test_a_search_without_time_keeps_its_start() -> None:
    m = build(two_families(), UPLINKS)
    set_design(m, 0, 8)
    answer = solve(m, time_limit_s=0.0, settings=SETTINGS, start=True)
    assert (answer.outcome, answer.value, answer.bound) == ("time limit", 10 + 2 * 8 + 2, -math.inf)
    assert pyo.value(m.u[0]) == 8
