"""Routes around cores that failed, on three tiers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.ring_traffic import random_rings
from coopt.instance.errors import InstanceError
from coopt.network.family import Pods
from coopt.network.routing.tiers import route_tiers
from tests.network.routing.small import plane

PLANE = plane(leaves=16, uplinks=4, radix=8, pods=Pods(l=4, w=4, count=4))  # two cores in each of four groups


@settings(max_examples=60)
@given(st.integers(0, 5), st.integers(0, 50), st.sampled_from(["best", "greedy", "ecmp"]))
def test_flows_between_pods_avoid_what_failed(failed: int, seed: int, name: str) -> None:
    flows = random_rings(16, 4, 4, seed)
    try:
        _, second = PLANE.without_cores(failed, seed)
    except InstanceError:
        return
    found = route_tiers(PLANE, flows, algorithm_name=name, seed=seed, failed_cores=failed)
    for f in np.flatnonzero(found.core >= 0).tolist():
        for end in (flows.src[f], flows.dst[f]):
            row = found.middle[f] * 4 + end // 4
            assert second.links[row, found.core[f]] > 0
    assert found.alpha >= found.bound


def test_a_slice_without_cores_is_left_out() -> None:
    """Of eight core switches two fail; where they are the two of one group, three slices carry all."""
    hit = next(seed for seed in range(100) if (PLANE.without_cores(2, seed)[0].links.sum(axis=0) == 0).any())
    first, _ = PLANE.without_cores(2, hit)
    assert sorted((first.links.sum(axis=0) > 0).tolist()) == [False, True, True, True]
    assert route_tiers(PLANE, random_rings(16, 4, 4, 0), seed=hit, failed_cores=2).alpha > 1


def test_without_any_core_it_is_said() -> None:
    with pytest.raises(InstanceError, match="failed cores: 8"):
        PLANE.without_cores(8, 0)
