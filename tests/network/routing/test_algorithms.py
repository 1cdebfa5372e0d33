"""Routing by greed, hashes and annealing: choices, odds, seeds; and alpha as worked out beforehand."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings

from benchmarks.ring_traffic import random_rings
from coopt.instance.texts import InstanceError
from coopt.network.routing.algorithms import Cooling, algorithm, annealed_cores, greedy_cores, hashed_cores
from coopt.network.routing.layers import Flows, TwoLayer, fail_cores, link_loads, lower_bound
from tests.network.routing.small import QUICK, between, complete, counted_alpha, enumerated_alpha, routable


def test_greed_goes_by_the_fullest_leaf_the_busier_bundle_the_links_and_what_works() -> None:
    # leaf 1 up (3 flows) takes cores 0, 1, 2 in turn, core 1 has leaf 3's flow, so flow 0 takes core 0
    assert greedy_cores(complete(5, 3), between((0, 3), (1, 2), (1, 3), (1, 4))).tolist() == [0, 0, 1, 2]
    # down into leaf 1 decides: the third flow avoids cores 0 and 1 although its own way up is free
    assert greedy_cores(complete(3, 3), between((0, 1), (0, 1), (2, 1))).tolist() == [0, 1, 2]
    bundles = TwoLayer(links=np.array([[1, 3], [1, 3]]))
    assert np.bincount(greedy_cores(bundles, between(*[(0, 1)] * 4))).tolist() == [1, 3]
    # a failed link is not used in either direction
    failed = TwoLayer(links=np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1]]))
    assert greedy_cores(failed, between((0, 1), (1, 0), (0, 2), (2, 1))).tolist() == [0, 0, 1, 2]


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


def test_hashing_follows_the_links_of_the_source_that_lead_on() -> None:
    clos = TwoLayer(links=np.array([[1, 3, 5], [4, 1, 0]]))
    counts = np.bincount(hashed_cores(clos, between(*[(0, 1)] * 8000), seed=1), minlength=3)
    assert counts[2] == 0
    assert counts[1] / counts[0] == pytest.approx(3, rel=0.1)


def test_a_seed_is_a_routing() -> None:
    clos, flows = complete(8, 4), random_rings(8, 8, 4, seed=0)
    for assign in (hashed_cores, partial(annealed_cores, cooling=QUICK)):
        assert (assign(clos, flows, 3) == assign(clos, flows, 3)).all()
        assert (assign(clos, flows, 3) != assign(clos, flows, 4)).any()


@settings(max_examples=30)
@given(routable(equal=False))
def test_annealing_uses_links_that_exist(case: tuple[TwoLayer, Flows]) -> None:
    counted_alpha(*case, annealed_cores(*case, 1, cooling=QUICK))


def test_annealing_evens_loads_out() -> None:
    clos, flows = complete(16, 8), random_rings(16, 16, 8, seed=0)
    hashed, annealed = (
        link_loads(clos, flows, assign(clos, flows, 0)).alpha for assign in (hashed_cores, annealed_cores)
    )
    assert annealed <= 3 < hashed


def test_flows_to_a_host_share_a_core() -> None:
    flows = between((0, 3), (1, 3), (2, 3), (1, 0), (2, 2))
    cores = annealed_cores(complete(4, 3), flows, 0, host=np.array([5, 5, 6, 7, 8]), cooling=QUICK)
    assert cores[0] == cores[1]
    assert cores[4] == -1
    clos = TwoLayer(links=np.array([[1, 0], [0, 1], [1, 1]]))
    with pytest.raises(InstanceError, match=r"leaf 2: .* no core"):
        annealed_cores(clos, between((0, 2), (1, 2)), 0, host=np.array([0, 0]))
    with pytest.raises(InstanceError, match="needs 0 < cold < hot"):
        Cooling(hot=0.1, cold=1.0)


SEEDS = (0, 42, 200, 404, 1234)


def mean_alpha(name: str, hosts: int, failed: int = 0) -> tuple[float, float]:
    """Mean over the seeds of alpha and of the bound."""
    found = []
    for seed in SEEDS:
        clos, flows = fail_cores(complete(64, 32), failed, seed), random_rings(64, hosts, 8, seed)
        alpha = link_loads(clos, flows, algorithm(name)(clos, flows, seed)).alpha
        found.append((alpha, lower_bound(clos, flows)))
    alpha, bound = np.mean(found, axis=0)
    return float(alpha), float(bound)


@pytest.mark.parametrize(
    ("hosts", "hashed", "greedy", "best"), [(16, 4.4, 1, (1, 1)), (32, 6.0, 2, (1, 1)), (64, 8.6, 3, (2, 2))]
)
def test_alpha_of_hashing_of_greed_and_of_the_optimum(hosts, hashed, greedy, best):
    assert mean_alpha("ecmp", hosts)[0] == pytest.approx(hashed, abs=0.8)
    assert mean_alpha("greedy", hosts)[0] <= greedy
    assert mean_alpha("colouring", hosts) == best


@pytest.mark.parametrize("failed", [1, 4, 8])
def test_colouring_stays_the_optimum_when_cores_fail(failed: int) -> None:
    alpha, bound = mean_alpha("colouring", 32, failed)
    assert alpha == bound <= mean_alpha("greedy", 32, failed)[0] <= 2 * bound
