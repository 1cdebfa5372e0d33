"""Exact routes: as good as enumeration finds, proven or said not to be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from benchmarks.ring_traffic import random_rings
from coopt.instance.base import InstanceError
from coopt.network.routing.algorithms import greedy_cores
from coopt.network.routing.colouring import coloured_cores
from coopt.network.routing.layers import Flows, TwoLayer, fail_cores, link_loads
from coopt.solving.flow_routes import route_exactly
from tests.conftest import example_count
from tests.network.routing.small import between, complete, counted_alpha, enumerated_alpha, routable


@settings(max_examples=example_count(60))
@given(routable(flows=6, leaves=4, cores=3))
def test_exact_routes_agree_with_enumeration_when_cores_failed(case: tuple[TwoLayer, Flows]) -> None:
    found = route_exactly(*case)
    assert found.proven
    assert float(counted_alpha(*case, found.cores)) == found.alpha == pytest.approx(enumerated_alpha(*case))


@settings(max_examples=example_count(60))
@given(routable(flows=6, equal=False, leaves=4, cores=3))
def test_exact_routes_agree_with_enumeration_on_unequal_links(case: tuple[TwoLayer, Flows]) -> None:
    found = route_exactly(*case)
    assert found.proven
    assert float(counted_alpha(*case, found.cores)) == pytest.approx(found.alpha)
    assert found.alpha == pytest.approx(enumerated_alpha(*case))


@settings(max_examples=example_count(30))
@given(routable(flows=40, equal=False))
def test_greedy_is_never_better(case: tuple[TwoLayer, Flows]) -> None:
    found = route_exactly(*case, time_limit_s=5)
    assert found.bound <= found.alpha <= link_loads(*case, greedy_cores(*case)).alpha


@pytest.mark.parametrize("failed", [0, 2])
def test_exact_routes_agree_with_colouring(failed: int) -> None:
    clos, flows = fail_cores(complete(16, 8), failed, seed=0), random_rings(16, 8, 8, seed=0)
    found = route_exactly(clos, flows)
    assert found.proven
    assert found.alpha == link_loads(clos, flows, coloured_cores(clos, flows)).alpha
    assert found.alpha < link_loads(clos, flows, greedy_cores(clos, flows)).alpha or failed


def test_an_optimum_above_the_bound_is_proven() -> None:
    """Each leaf could send its flows over two cores, but each pair shares one core only."""
    clos = TwoLayer(links=np.array([[1, 1, 0], [1, 0, 1], [0, 1, 1]]))
    found = route_exactly(clos, between((0, 1), (0, 1), (1, 2)))
    assert (found.alpha, found.bound, found.proven) == (2, 2, True)


def test_without_time_the_greedy_routes_remain_unproven() -> None:
    clos, flows = complete(16, 8), random_rings(16, 8, 8, seed=0)
    found = route_exactly(clos, flows, time_limit_s=0)
    assert (found.cores == greedy_cores(clos, flows)).all()
    assert (found.alpha, found.bound, found.proven) == (2, 1, False)


def test_routes_at_the_bound_need_no_search() -> None:
    found = route_exactly(complete(4, 4), between((0, 1), (1, 1)))
    assert (found.alpha, found.proven, found.nodes) == (1, True, 0)


def test_flows_without_a_path_are_refused() -> None:
    with pytest.raises(InstanceError, match="needs a core with links to both"):
        route_exactly(TwoLayer(links=np.eye(2, dtype=int)), between((0, 1)))
