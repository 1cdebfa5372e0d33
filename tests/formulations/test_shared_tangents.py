"""Tangents read as written, bind, touch the curve where they should, and never lie above it."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo
import pytest

from coopt.solving.highs import options, solve
from formulations.shared import (
    NETWORK,
    TANGENTS,
    add_bandwidth,
    add_slowdown_bound,
    add_tangent_cut,
    add_tangents,
    build,
)
from tests.formulations.small import best, lazily, model, two_families


def add_unrestrained_bandwidth(m: pyo.ConcreteModel) -> None:
    """The bandwidth without the row that ties it to uplinks."""
    m.B = pyo.Var(domain=pyo.NonNegativeReals, bounds=(0.0, 1.0))


def add_unrestrained_slowdown(m: pyo.ConcreteModel) -> None:
    """The slowdown without tangents."""
    m.r = pyo.Var(domain=pyo.NonNegativeReals, bounds=(0.0, 4.0))


def test_bandwidth_reads_as_written() -> None:
    assert str(model(two_families(), add_bandwidth).bandwidth.expr) == "0.125*u[0] + y[1]  ==  B"


def test_bandwidth_binds() -> None:
    data = two_families(reach=np.array([1.0, 1.0]))
    assert best(data, TANGENTS) == 10 + 2 * 8 + 2
    assert best(data, (*NETWORK, add_unrestrained_bandwidth, add_tangents, add_slowdown_bound)) == 10 + 2 * 2 + 1


def test_tangents_read_as_written() -> None:
    m = model(two_families(least=np.array([8, 0])), add_bandwidth, add_tangents)
    assert [str(row.expr) for row in m.tangents.values()] == ["2.0 - B  <=  r"]
    m = model(two_families(), add_bandwidth, add_tangents)
    assert len(m.tangents) == 24
    assert str(m.tangents[0].expr) == "8.0 - 16.0*B  <=  r"


def test_tangents_bind() -> None:
    assert best(two_families(), TANGENTS) == 10 + 2 * 5 + 2
    assert best(two_families(), (*NETWORK, add_bandwidth, add_unrestrained_slowdown, add_slowdown_bound)) == 15


def test_slowdown_bound_reads_as_written() -> None:
    m = model(two_families(), add_bandwidth, add_tangents, add_slowdown_bound)
    assert str(m.slowdown_bound[0].expr) == "r  <=  1.7*z[0] + z[1]"


def test_slowdown_bound_binds() -> None:
    assert best(two_families(), (*NETWORK, add_bandwidth, add_tangents)) == 10 + 2 * 2 + 1


def test_a_reach_beyond_the_largest_slowdown_says_no_more() -> None:
    m = model(two_families(reach=np.array([np.inf, 1.0])), add_bandwidth, add_tangents, add_slowdown_bound)
    assert str(m.slowdown_bound[0].expr) == "r  <=  4.0*z[0] + z[1]"
    assert best(two_families(reach=np.array([np.inf, 1.0])), TANGENTS) == 10 + 2 * 2 + 1


def test_tangent_cut_reads_as_written() -> None:
    m = build(two_families(), TANGENTS)
    add_tangent_cut(m, 0, 4)
    add_tangent_cut(m, 1, 0)
    assert [str(row.expr) for row in m.tangent_cuts.values()] == ["4.0 - 4.0*B  <=  r", "2.0 - B  <=  r"]


def test_tangent_cut_binds() -> None:
    """A reach just short of a slowdown passes between two tangents, and not through the one at that slowdown."""
    data = two_families(need=np.array([6, 0]), reach=np.array([8 / 5 - 1e-4, 1.0]))
    assert best(data, TANGENTS) == 10 + 2 * 5 + 2
    m = build(data, TANGENTS)
    add_tangent_cut(m, 0, 5)
    assert solve(m, time_limit_s=10, settings=options(gap=0.0, threads=1)).value == 10 + 2 * 6 + 2
    assert lazily(data) == 10 + 2 * 6 + 2


@pytest.mark.parametrize("least", [1, 2, 7, 8])
def test_no_tangent_lies_above_the_slowdown(least: int) -> None:
    m = model(two_families(least=np.array([least, 0])), add_bandwidth, add_tangents)
    m.r.value = 0.0
    gaps = []
    for uplinks in range(least, 9):
        add_tangent_cut(m, 0, uplinks)
        m.B.value = uplinks / 8
        # each row reads tangent <= r with r = 0, so its violation is the tangent itself
        slowdown, rows = 8 / uplinks, [-row.slack() for row in m.tangents.values()]
        assert max(rows) <= slowdown * (1 + 1e-12)
        assert -m.tangent_cuts[len(m.tangent_cuts)].slack() == pytest.approx(slowdown, rel=1e-12)
        gaps.append(1 - max(rows) / slowdown)
    assert max(gaps) < 0.01
