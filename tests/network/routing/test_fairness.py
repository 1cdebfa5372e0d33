"""Max-min fair rates, checked by what defines them and by linear programs."""

import numpy as np
import pyomo.environ as pyo
import pytest
from hypothesis import given, settings

from coopt.network.routing.algorithms import hashed_cores
from coopt.network.routing.layers import (
    Flows,
    Hops,
    TwoLayer,
    efficiency,
    fairness_key,
    flow_rates,
    group_rates,
    hops,
    link_loads,
)
from coopt.solving.highs import options, solve
from tests.network.routing.small import between, complete, routable


def rates_by_programs(routes: Hops) -> list[float]:
    """Raise the least rate of all flows, fix those that cannot go higher, and repeat: a linear program each time."""
    fixed: dict[int, float] = {}
    flows = range(len(routes.bundles))
    while len(fixed) < len(routes.bundles):
        level = -_least(routes, fixed, None)
        stuck = {f: level for f in flows if f not in fixed and -_least(routes, fixed, (f, level)) < level + 1e-6}
        fixed |= stuck
    return [fixed[f] for f in flows]


def _least(routes: Hops, fixed: dict[int, float], raised: tuple[int, float] | None) -> float:
    """Minus the largest common rate of the open flows, or of one of them while the others keep the level."""
    m = pyo.ConcreteModel()
    m.F = pyo.RangeSet(0, len(routes.bundles) - 1)
    m.rate = pyo.Var(m.F, bounds=(0, 1))
    m.level = pyo.Var()
    m.rows = pyo.ConstraintList()
    for f in m.F:
        if f in fixed:
            m.rows.add(m.rate[f] == fixed[f])
        elif raised is None or f == raised[0]:
            m.rows.add(m.rate[f] >= m.level)
        else:
            m.rows.add(m.rate[f] >= raised[1] - 1e-9)
    for bundle, links in enumerate(routes.capacity.tolist()):
        users = [f for f in m.F if bundle in routes.bundles[f]]
        if users:
            m.rows.add(sum(m.rate[f] for f in users) <= links + 1e-9)
    m.best = pyo.Objective(expr=-m.level)
    answer = solve(m, time_limit_s=10, settings=options(gap=0.0, threads=1))
    assert answer.value is not None
    return answer.value


@settings(max_examples=20)
@given(routable(flows=8, equal=False, leaves=4, cores=2))
def test_rates_agree_with_linear_programs(case: tuple[TwoLayer, Flows]) -> None:
    routes = hops(*case, hashed_cores(*case, 0))
    assert flow_rates(routes) == pytest.approx(rates_by_programs(routes), abs=1e-5)


@given(routable(flows=80, equal=False))
def test_every_flow_has_a_full_bundle_on_which_none_is_faster(case: tuple[TwoLayer, Flows]) -> None:
    routes = hops(*case, hashed_cores(*case, 0))
    rates = flow_rates(routes)
    crossing = [np.flatnonzero((routes.bundles == b).any(axis=1)) for b in range(routes.capacity.size)]
    used = np.array([rates[flows].sum() for flows in crossing])
    assert (used <= routes.capacity + 1e-9).all()
    for flow, bundles in enumerate(routes.bundles.tolist()):
        held = [
            used[b] >= routes.capacity[b] - 1e-9 and rates[flow] >= rates[crossing[b]].max() - 1e-9
            for b in bundles
            if b >= 0
        ]
        assert rates[flow] == 1 or any(held)


@given(routable(flows=80, equal=False))
def test_the_slowest_flow_has_one_over_alpha_of_a_link(case: tuple[TwoLayer, Flows]) -> None:
    cores = hashed_cores(*case, 0)
    slowest = flow_rates(hops(*case, cores)).min(initial=1)
    assert slowest == pytest.approx(1 / max(1, link_loads(*case, cores).alpha))


def test_flows_of_a_link_share_it_equally_and_others_take_what_is_left() -> None:
    shared = between((0, 1), (0, 1), (0, 2), (3, 2), (3, 3))
    rates = flow_rates(hops(complete(4, 2), shared, np.array([0, 0, 0, 1, -1])))
    assert rates.tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1, 1])
    # three share leaf 0's link; leaf 2's link then has two thirds left for flow 2
    rates = flow_rates(hops(complete(4, 1), between((0, 1), (0, 2), (3, 2), (0, 1)), np.zeros(4, dtype=int)))
    assert rates.tolist() == pytest.approx([1 / 3, 1 / 3, 2 / 3, 1 / 3])
    # no flow is faster than its NIC
    assert flow_rates(hops(complete(2, 1, links=5), between((0, 1)), np.array([0]))).tolist() == [1]


def test_a_group_is_as_fast_as_its_slowest_flow_and_the_worst_is_compared_first() -> None:
    slowest = group_rates(np.array([7, 3, 7]), np.array([0.5, 1.0, 0.25]))
    assert slowest.tolist() == [1.0, 0.25]
    assert efficiency(slowest) == 0.625
    assert efficiency(group_rates(np.zeros(0, dtype=int), np.zeros(0))) == 1
    assert fairness_key(np.array([1.0, 0.4, 0.4])) > fairness_key(np.array([0.3, 1.0, 1.0]))
    assert fairness_key(np.array([0.4, 1.0])) > fairness_key(np.array([0.5, 0.4]))
