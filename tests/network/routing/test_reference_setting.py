"""64 leaves, 32 cores, random rings, five seeds: alpha as worked out beforehand for 16, 32 and 64 hosts of a leaf."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.ring_traffic import random_rings
from coopt.network.routing.algorithms import algorithm
from coopt.network.routing.layers import fail_cores, link_loads, lower_bound
from tests.network.routing.small import complete

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


@pytest.mark.parametrize(("hosts", "alpha"), [(16, 4.4), (32, 6.0), (64, 8.6)])
def test_hashing(hosts: int, alpha: float) -> None:
    assert mean_alpha("ecmp", hosts)[0] == pytest.approx(alpha, abs=0.8)


@pytest.mark.parametrize(("hosts", "alpha"), [(16, 1), (32, 2), (64, 3)])
def test_greedy(hosts: int, alpha: int) -> None:
    assert mean_alpha("greedy", hosts)[0] <= alpha


@pytest.mark.parametrize(("hosts", "alpha"), [(16, 1), (32, 1), (64, 2)])
def test_colouring_is_the_optimum(hosts: int, alpha: int) -> None:
    assert mean_alpha("colouring", hosts) == (alpha, alpha)


@pytest.mark.parametrize("failed", [1, 4, 8])
def test_colouring_stays_the_optimum_when_cores_fail(failed: int) -> None:
    alpha, bound = mean_alpha("colouring", 32, failed)
    assert alpha == bound <= mean_alpha("greedy", 32, failed)[0] <= 2 * bound
