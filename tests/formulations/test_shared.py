"""Every equation reads as written, binds, and agrees with enumeration; a search starts from the best design."""

import math
from dataclasses import replace

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings

from coopt.solving.highs import solve
from formulations import network
from tests.conftest import example_count
from tests.formulations import read
from tests.formulations.read import without
from tests.formulations.small import best, enumerated, problems, two_families

POWER = network.Resource(
    name="power", fixed=np.array([1.0, 9.0]), uplink=np.array([1.0, 0.0]), spine=np.zeros(2), cap=7.0
)
FIVE = two_families(min_uplinks=np.array([5, 0]))
READS: dict[network.Equation, tuple[network.NetworkData, dict[str, str]]] = {
    network.add_cost: (two_families(), {"cost": "10.0*y[0] + 2.0*u[0] + s[0] + 30.0*y[1] + 0.0*u[1] + 0.0*s[1]"}),
    network.add_one_family: (two_families(), {"one_family": "y[0] + y[1]  ==  1"}),
    network.add_uplink_range: (
        two_families(),
        {"least_uplinks[0]": "2*y[0]  <=  u[0]", "most_uplinks[0]": "u[0]  <=  8*y[0]"},
    ),
    network.add_spine_ports: (
        two_families(),
        {"spine_ports[0]": "4*u[0]  <=  16*s[0]", "spine_ports[1]": "s[1]  ==  0"},
    ),
    network.add_least_spines: (FIVE, {"least_spines[0]": "2*y[0]  <=  s[0]"}),
    network.add_mapping: (two_families(), {"mapping[0,1]": "z[1]  ==  y[1]"}),
    network.add_uplinks_demanded: (two_families(), {"uplinks_demanded[0,0]": "5*z[0]  <=  u[0]"}),
    network.add_limits: (
        two_families(resources=(POWER,)),
        {"limits[power]": "y[0] + u[0] + 0.0*s[0] + 9.0*y[1] + 0.0*u[1] + 0.0*s[1]  <=  7.0"},
    ),
}
TIGHT, TIGHT_FOR_ONE = replace(POWER, cap=5.0), replace(POWER, cap=5.0, fixed=np.array([1.0, 5.0]))
BINDS = {  # data, the optimum, and the one that is left without the equation
    network.add_one_family: (two_families(), 22, 0),
    network.add_uplink_range: (two_families(need=np.array([1, 0]), min_uplinks=np.array([6, 0])), 24, 13),
    network.add_spine_ports: (two_families(), 22, 20),
    network.add_mapping: (two_families(), 22, 10 + 2 * 2 + 1),
    network.add_uplinks_demanded: (two_families(), 22, 10 + 2 * 2 + 1),
    network.add_limits: (two_families(resources=(TIGHT_FOR_ONE,)), 30, 22),
}


def test_limits_leave_nothing_where_they_are_tight() -> None:
    assert best(two_families(resources=(POWER,)), network.NETWORK) == 22
    assert best(two_families(resources=(TIGHT,)), network.NETWORK) == math.inf


def test_least_spines_bind_where_fractions_are_allowed() -> None:
    assert len(network.build(FIVE, (network.add_least_spines,)).least_spines) == 1
    assert read.relaxed(network.build(FIVE, network.FRONT)) == 10 + 2 * 5 + 2
    assert read.relaxed(network.build(FIVE, without(network.FRONT, network.add_least_spines))) == 10 + 2 * 5 + 20 / 16


@pytest.mark.parametrize("formulation", network.FORMULATIONS.values(), ids=network.FORMULATIONS)
def test_cuts_read_as_written_and_bind(formulation: tuple[network.Equation, ...]) -> None:
    m = network.build(two_families(), formulation)
    network.add_uplink_cut(m, 0, 7)
    network.add_limit_cut(m, 0, 6)
    assert [str(row.expr) for row in m.cuts.values()] == ["7*z[0]  <=  u[0]", "u[0]  <=  6*y[0]"]
    assert read.optimum(m) == 30


def test_the_cheapest_of_two_families_is_found() -> None:
    data = two_families()
    assert network.cheapest_design(data) == (0, 5)
    assert network.cheapest_design(two_families(need=np.array([9, 0]))) == (1, 0)
    assert network.cheapest_design(two_families(column_context=np.array([0, 0]), need=np.array([9, 9]))) is None
    power = network.Resource(
        name="w", fixed=np.array([1.0, 3.0]), uplink=np.array([1.0, 0.0]), spine=np.zeros(2), cap=5.0
    )
    assert network.cheapest_design(replace(data, resources=(power,))) == (1, 0)


@settings(max_examples=example_count(300))
@given(problems())
def test_the_pass_over_families_agrees_with_enumeration(data: network.NetworkData) -> None:
    expected, found = enumerated(data), network.cheapest_design(data)
    assert (found is None) == math.isinf(expected)
    if found is not None:
        f, u = found
        spines = math.ceil(int(data.leaves[f]) * u / int(data.radix[f]))
        assert data.fixed[f] + data.uplink[f] * u + data.spine[f] * spines == pytest.approx(expected, abs=1e-9)


@settings(max_examples=example_count(100))
@given(problems())
def test_every_formulation_holds_the_design_it_starts_from(data: network.NetworkData) -> None:
    found = network.cheapest_design(data)
    if found is None:
        return
    for equations in network.FORMULATIONS.values():
        m = network.build(data, equations)
        network.set_design(m, *found)
        m.as_found = pyo.Constraint(expr=m.u[found[0]] - m.y[found[0]] == found[1] - 1)
        m.the_family = pyo.Constraint(expr=m.y[found[0]] == 1)
        assert read.optimum(m) == pytest.approx(enumerated(data), abs=1e-6)


def test_a_start_is_no_proof() -> None:
    """From a dearer design, and from one that breaks a row, the search still ends at the optimum."""
    for family, uplinks in ((1, 0), (0, 8), (0, 2)):
        m = network.build(two_families(), network.NETWORK)
        network.set_design(m, family, uplinks)
        answer = solve(m, time_limit_s=10, settings=read.SETTINGS, start=True)
        assert (answer.outcome, answer.value, answer.bound) == ("optimal", 22, pytest.approx(22))


def test_a_search_without_time_keeps_its_start() -> None:
    m = network.build(two_families(), network.NETWORK)
    network.set_design(m, 0, 8)
    answer = solve(m, time_limit_s=0.0, settings=read.SETTINGS, start=True)
    assert (answer.outcome, answer.value, answer.bound) == ("time limit", 10 + 2 * 8 + 2, -math.inf)
    assert pyo.value(m.u[0]) == 8
