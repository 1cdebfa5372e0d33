"""Equations of direct links: each reads as written, binds, and the optimum is that of enumeration."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations import links
from formulations.links_data import LinksData, group_of, keeps, on_orbits
from tests.conftest import example_count
from tests.formulations import read
from tests.formulations.links import enumerated, whole, without_symmetry

LATE = 1 + 1e-9


def best(data: LinksData, name: str = "links", without: Any = None) -> float | None:
    """The optimum of a formulation, or of what is left without an equation."""
    model = links.build(data, tuple(equation for equation in links.FORMULATIONS[name] if equation is not without))
    while True:
        value = read.optimum(model)
        if value == math.inf or without is links.add_time:
            return None if value == math.inf else value
        paces = fastest(data, [model.n[p].value for p in model.P]) if without is None else paces_of(model)
        late = [weights for weights in data.weight if (weights / paces).sum() > LATE]
        if not late:
            return value
        for k in np.flatnonzero(np.any(late, axis=0)).tolist():
            links.add_tangent(model, k, float(paces[k]))


def fastest(data: LinksData, counts: list[float]) -> Any:
    """The largest paces of all phases on links that are given; a search may leave them slower than they could be."""
    model = links.build(data, links.FORMULATIONS["pace"])
    for p in model.P:
        model.n[p].fix(counts[p])
    assert read.optimum(model) < math.inf
    return paces_of(model)


def paces_of(model: Any) -> Any:
    return np.array([model.pace[k].value for k in model.K])


def three(**changes: Any) -> LinksData:
    return without_symmetry(whole(**changes))


def ring(count: int, ports: int, pace: float) -> dict[str, Any]:
    """Domains in a circle that send half a unit to each neighbour."""
    demand = np.zeros((1, count, count))
    for i in range(count):
        demand[0, i, (i + 1) % count] += 0.5
        demand[0, i, (i - 1) % count] += 0.5
    return {"ports": np.full(count, ports), "demand": demand, "weight": np.array([[pace]])}


def turned(count: int, step: int = 1) -> Any:
    return group_of(count, [np.roll(np.arange(count), -step)])


READS = {
    links.add_link_count: {"cost": "n[0] + n[1] + n[2]"},
    links.add_port_budget: {"port_budget[0]": "n[0] + n[1]  <=  4"},
    links.add_balance: {"balance[0,0]": "f[0,0] - f[0,2] + f[0,3]  ==  2.0*pace[0]"},
    links.add_capacity: {"capacity[0,0]": "f[0,0] + f[0,8]  <=  n[0]"},
    links.add_time: {"time[0]": "u[0]  <=  1.0", "tangents[1]": "2.0 - pace[0]  <=  u[0]"},
    links.add_whole_ends: {"ends_of_links[0]": "q[0]  <=  n[0] + n[1]", "whole_ends[0,0]": "3.0*pace[0]  <=  q[0]"},
    links.add_pace: {"cost": "- pace[0]"},
}


def test_few_links_carry_what_is_sent() -> None:
    assert best(three()) == 3.0


@pytest.mark.parametrize("equation", [links.add_balance, links.add_capacity])
def test_flows_and_capacities_bind(equation: Any) -> None:
    data = three(ports=np.array([4, 1, 3]))
    assert best(data) is None
    assert best(data, without=equation) == 3.0


def test_port_budget_binds() -> None:
    data = three(ports=np.array([2, 9, 9]))
    assert best(data) is None
    assert best(without_symmetry(whole(ports=np.array([4, 1, 3]))), without=links.add_port_budget) == 3.0


def test_time_binds() -> None:
    demand = np.zeros((2, 2, 2))
    demand[0, 0, 1] = demand[1, 1, 0] = 1.0
    data = without_symmetry({"ports": np.array([9, 9]), "demand": demand, "weight": np.array([[2.0, 2.0]])})
    assert best(data) == pytest.approx(4.0)
    assert best(data, without=links.add_time) == 2.0


def test_whole_ends_bind_on_averages() -> None:
    problem = ring(4, 9, 2.5)
    data = on_orbits(turned(4), **problem)
    assert best(data, "averages") == 6.0
    assert best(data, "averages", without=links.add_whole_ends) == pytest.approx(5.0)


@pytest.mark.parametrize("fastest", [2.5, 10.0, 1e4])
def test_tangents_are_nowhere_far_below_the_time_that_a_phase_takes(fastest: float) -> None:
    slowest = 2.0
    touched = np.array(links.first_paces(slowest, fastest))
    assert touched[0] == slowest
    paces = np.geomspace(slowest, fastest, 5000)
    least = (2 / touched - paces[:, None] / touched**2).max(axis=1).clip(min=0)
    missing = slowest * (1 / paces - least)
    assert missing.min() > -1e-12
    assert missing.max() < 1 / links.TANGENTS**2


def test_links_that_are_given_are_used_as_fast_as_they_go() -> None:
    data = three()
    model = links.build(data, links.FORMULATIONS["pace"])
    for p, count in enumerate((3, 1, 1)):
        model.n[p].fix(count)
    read.optimum(model)
    assert model.pace[0].value == pytest.approx(4 / 3)


def test_a_permutation_that_changes_ports_is_no_symmetry() -> None:
    problem = ring(4, 9, 2.5)
    assert keeps(turned(4)[1], problem["ports"], problem["demand"])
    problem["ports"] = np.array([9, 9, 9, 8])
    assert not keeps(turned(4)[1], problem["ports"], problem["demand"])


@given(st.integers(3, 6), st.integers(1, 8))
@settings(max_examples=example_count(20))
def test_averages_over_orbits_are_no_dearer_than_averages_of_everything(count: int, tenths: int) -> None:
    problem = ring(count, 9, 1 + tenths / 10)
    bare = tuple(equation for equation in links.FORMULATIONS["averages"] if equation is not links.add_whole_ends)
    values = []
    for group in (turned(count), np.arange(count)[None, :]):
        values.append(read.optimum(links.build(on_orbits(group, **problem), bare)))
    assert values[0] == pytest.approx(values[1])


@given(st.integers(4, 6), st.integers(1, 19))
@settings(max_examples=example_count(20))
def test_smaller_groups_need_no_more_links_and_averages_no_more_than_any(count: int, tenths: int) -> None:
    problem = ring(count, 9, 1 + tenths / 10)
    low = best(on_orbits(turned(count), **problem), "averages")
    steps = [best(on_orbits(turned(count, step), **problem)) for step in (1, 2) if count % step == 0]
    exact = best(without_symmetry(problem))
    ladder = [round(value, 6) for value in (*steps, exact) if value is not None]
    assert low <= exact + 1e-6
    assert ladder == sorted(ladder, reverse=True)


def random_problem(seed: int) -> dict[str, Any]:
    """Three to five domains with few ports, one or two phases, whole demands."""
    rng = np.random.default_rng(seed)
    count = int(rng.choice([3, 3, 4, 4, 5]))
    phases = int(rng.integers(1, 3))
    demand = rng.integers(1, 3, (phases, count, count)) * (rng.random((phases, count, count)) < 1.2 / count)
    for k in range(phases):
        np.fill_diagonal(demand[k], 0)
        demand[k, 0, 1] = max(demand[k, 0, 1], 1)
    weight = np.round(rng.uniform(0.2, 0.7 if count < 5 else 0.4, (int(rng.integers(1, 3)), phases)), 2)
    return {
        "ports": rng.integers(2, 5, count) if count < 5 else rng.integers(2, 4, count),
        "demand": demand.astype(np.float64),
        "weight": weight,
    }


def test_the_optimum_is_that_of_enumeration_to_the_dollar() -> None:
    solved = 0
    for seed in range(example_count(72, usual=24)):
        problem, price_usd = random_problem(seed), 100 + seed % 7
        found, counted = best(without_symmetry(problem)), enumerated(problem)
        assert (found is None) == (counted is None), seed
        if found is not None and counted is not None:
            assert round(found) * price_usd == counted * price_usd, seed
            assert found == pytest.approx(round(found), abs=1e-6)
            solved += 1
    assert solved >= 8
