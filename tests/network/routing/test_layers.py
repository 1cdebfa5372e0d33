"""Networks, flows and what is refused of them."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings

from benchmarks.ring_traffic import joint, random_rings
from coopt.instance.texts import InstanceError
from coopt.network.routing.algorithms import ALGORITHMS, algorithm
from coopt.network.routing.layers import Flows, TwoLayer, fail_cores, link_loads, lower_bound, striped_clos
from tests.network.routing.small import between, complete, counted_alpha, enumerated_alpha, routable


def test_uplinks_go_round_the_spines_and_failed_cores_have_no_links() -> None:
    assert striped_clos(3, 4, 3).links.tolist() == [[2, 1, 1], [1, 2, 1], [1, 1, 2]]
    assert (striped_clos(5, 4, 4).links == 1).all()
    assert striped_clos(1, 0, 0).links.shape == (1, 0)
    failed, again = (fail_cores(complete(4, 8), 3, seed=1).links for _ in "ab")
    assert sorted(failed.sum(axis=0).tolist()) == [0, 0, 0, 4, 4, 4, 4, 4]
    assert (failed == again).all()


def test_jobs_keep_their_groups_apart_and_rings_pass_every_host_once() -> None:
    all_flows = joint([between((0, 1), (1, 0), group=7), between((2, 3), group=7)])
    assert (all_flows.group.tolist(), all_flows.dst.tolist(), len(joint([]))) == ([0, 0, 1], [1, 0, 3], 0)
    flows = random_rings(6, 5, 4, seed=3)
    assert len(flows) == 30
    assert np.bincount(flows.src).tolist() == np.bincount(flows.dst).tolist() == [5] * 6
    assert np.bincount(flows.group).tolist() == [4] * 7 + [2]


@pytest.mark.parametrize(
    ("clos", "flows", "what"),
    [
        (complete(3, 2), between((0, 3)), "flow 0: dst = 3"),
        (complete(3, 2), between((0, 1), (-1, 2)), "flow 1: src = -1"),
        (TwoLayer(links=np.eye(2, dtype=int)), between((0, 1)), "flow 0: .* leaf 0 "),
    ],
)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_flows_without_a_path_are_refused(clos: TwoLayer, flows: Flows, what: str, name: str) -> None:
    with pytest.raises(InstanceError, match=what):
        algorithm(name)(clos, flows, 0)


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        (lambda: TwoLayer(links=np.array([[1, -1]])), "links: .* -1"),
        (lambda: TwoLayer(links=np.array([1, 2])), "int64 in 1 dimension,"),
        (lambda: TwoLayer(links=np.array([[1.5]])), "float64 in 2"),
        (lambda: TwoLayer(links=np.array([range(1, 50)])), "least common multiple"),
        (lambda: fail_cores(complete(4, 8), 9, seed=0), "failed cores: 9"),
        (lambda: Flows(src=np.array([0, 1]), dst=np.array([1, 0]), group=np.array([0])), "2, 2, 1"),
        (lambda: random_rings(2, 2, 1, seed=0), "ring size: 1"),
        (lambda: algorithm("magic"), "'magic'.* ecmp, greedy"),
    ],
)
def test_what_cannot_be_is_refused(asked: Callable[[], object], what: str) -> None:
    with pytest.raises(InstanceError, match=what):
        asked()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_nothing_to_route_is_no_load(name: str) -> None:
    clos = complete(3, 2)
    for flows in (between(), between((1, 1))):
        cores = algorithm(name)(clos, flows, 0)
        assert (cores == -1).all()
        assert link_loads(clos, flows, cores).alpha == 0


@given(routable(equal=False))
def test_loads_are_what_one_counts(case: tuple[TwoLayer, Flows]) -> None:
    clos, flows = case
    cores = algorithm("ecmp")(clos, flows, 5)
    assert link_loads(clos, flows, cores).alpha == pytest.approx(float(counted_alpha(clos, flows, cores)))


@settings(max_examples=60)
@given(routable(flows=5, equal=False, leaves=4, cores=3))
def test_no_routing_undercuts_the_bound(case: tuple[TwoLayer, Flows]) -> None:
    assert lower_bound(*case) <= enumerated_alpha(*case) + 1e-12


def test_the_bound_counts_whole_flows_per_link() -> None:
    clos = TwoLayer(links=np.array([[2, 1], [2, 1], [2, 1]]))
    # five flows: 3 on two links and 2 on one need t = 2; 4 and 1 also; 3 links alone would give 5/3
    assert lower_bound(clos, between(*[(0, 1)] * 3, *[(0, 2)] * 2)) == 2
    assert lower_bound(clos, between(*[(0, 1)] * 2)) == 1
