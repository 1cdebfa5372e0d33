"""The greedy algorithm: its choices, and twice the optimum at most."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from coopt.network.routing.algorithms import greedy_cores
from coopt.network.routing.layers import Flows, TwoLayer, lower_bound
from tests.network.routing.small import between, complete, counted_alpha, enumerated_alpha, routable


def test_the_fullest_leaf_goes_first() -> None:
    flows = between((0, 3), (1, 2), (1, 3), (1, 4))
    # leaf 1 up (3 flows) takes cores 0, 1, 2 in turn, core 1 has leaf 3's flow, so flow 0 takes core 0
    assert greedy_cores(complete(5, 3), flows).tolist() == [0, 0, 1, 2]


def test_a_core_is_as_busy_as_the_busier_of_its_two_bundles() -> None:
    flows = between((0, 1), (0, 1), (2, 1))
    # down into leaf 1 decides: the third flow avoids cores 0 and 1 although its own way up is free
    assert greedy_cores(complete(3, 3), flows).tolist() == [0, 1, 2]


def test_links_share_what_their_bundle_carries() -> None:
    clos = TwoLayer(links=np.array([[1, 3], [1, 3]]))
    cores = greedy_cores(clos, between(*[(0, 1)] * 4))
    assert np.bincount(cores).tolist() == [1, 3]


def test_a_failed_link_is_not_used_in_either_direction() -> None:
    clos = TwoLayer(links=np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1]]))
    assert greedy_cores(clos, between((0, 1), (1, 0), (0, 2), (2, 1))).tolist() == [0, 0, 1, 2]


@settings(max_examples=60)
@given(routable(flows=6, leaves=4, cores=3))
def test_twice_the_optimum_at_most_by_enumeration(case: tuple[TwoLayer, Flows]) -> None:
    assert counted_alpha(*case, greedy_cores(*case)) <= 2 * enumerated_alpha(*case) + 1e-12


@given(routable(flows=120))
def test_twice_the_bound_at_most_where_links_are_equal(case: tuple[TwoLayer, Flows]) -> None:
    assert counted_alpha(*case, greedy_cores(*case)) <= 2 * lower_bound(*case) + 1e-12


def test_unequal_links_may_cost_more_than_twice_the_optimum() -> None:
    pairs = [(0, 1), (2, 3), (4, 5), (6, 7), (0, 2), (4, 6), (0, 4)]  # cores a source reaches; leaf 7 reaches all
    links = np.zeros((8, 8), dtype=np.int64)
    links[7] = 1
    for leaf, reached in enumerate(pairs):
        links[leaf, list(reached)] = 1
    clos, flows = TwoLayer(links=links), between(*[(leaf, 7) for leaf in range(7)])
    assert counted_alpha(clos, flows, greedy_cores(clos, flows)) == 3
    assert enumerated_alpha(clos, flows) == 1
