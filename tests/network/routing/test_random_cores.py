"""Hashing and annealing: odds, seeds, and what annealing gains."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from benchmarks.ring_traffic import random_rings
from coopt.instance.errors import InstanceError
from coopt.network.routing.algorithms import Cooling, annealed_cores, hashed_cores
from coopt.network.routing.layers import Flows, TwoLayer, link_loads
from tests.network.routing.small import between, complete, counted_alpha, routable

QUICK = Cooling(hot=1.0, cold=0.5, factor=0.7, moves=50)


def test_hashing_follows_the_links_of_the_source_that_lead_on() -> None:
    clos = TwoLayer(links=np.array([[1, 3, 5], [4, 1, 0]]))
    counts = np.bincount(hashed_cores(clos, between(*[(0, 1)] * 8000), seed=1), minlength=3)
    assert counts[2] == 0
    assert counts[1] / counts[0] == pytest.approx(3, rel=0.1)


def test_a_seed_is_a_routing() -> None:
    clos, flows = complete(8, 4), random_rings(8, 8, 4, seed=0)
    for assign in (hashed_cores, annealed_cores):
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


def test_a_host_that_no_single_core_serves_is_refused() -> None:
    clos = TwoLayer(links=np.array([[1, 0], [0, 1], [1, 1]]))
    with pytest.raises(InstanceError, match="leaf 2: no core"):
        annealed_cores(clos, between((0, 2), (1, 2)), 0, host=np.array([0, 0]))


def test_a_schedule_that_never_cools_is_refused() -> None:
    with pytest.raises(InstanceError, match="needs 0 < cold < hot"):
        Cooling(hot=0.1, cold=1.0)
