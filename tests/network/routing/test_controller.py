"""Jobs and cores that come and go."""

from __future__ import annotations

import numpy as np
import pytest

from coopt.instance.errors import InstanceError
from coopt.network.routing.algorithms import ALGORITHMS
from coopt.network.routing.controller import Controller
from coopt.network.routing.layers import TwoLayer
from coopt.network.routing.rings import random_rings
from tests.network.routing.small import between, complete


@pytest.mark.parametrize("name", ALGORITHMS)
def test_all_jobs_are_routed_together(name: str) -> None:
    controller = Controller(complete(8, 4), algorithm_name=name)
    first = controller.arrive("a", random_rings(8, 2, 4, seed=0))
    both = controller.arrive("b", random_rings(8, 2, 4, seed=1))
    assert {job: cores.size for job, cores in both.cores.items()} == {"a": 16, "b": 16}
    assert first.bound <= both.bound <= both.alpha
    assert both.moved == (first.cores["a"] != both.cores["a"]).sum()
    assert controller.leave("b").cores.keys() == {"a"}
    assert controller.leave("a").alpha == 0


def test_a_failed_core_carries_nothing_until_it_works_again() -> None:
    controller = Controller(complete(6, 3))
    flows = between(*[(0, 1)] * 3)
    assert controller.arrive("a", flows).alpha == 1
    failed = controller.fail(1)
    assert failed.alpha == failed.bound == 2
    assert 1 not in failed.cores["a"]
    assert failed.moved >= 1
    assert controller.restore(1).alpha == 1


def test_an_event_that_cannot_be_served_changes_nothing() -> None:
    controller = Controller(TwoLayer(links=np.array([[1, 0], [1, 1], [1, 1]])))
    controller.arrive("a", between((0, 1)))
    with pytest.raises(InstanceError, match="leaf 0 to leaf 1, needs a core"):
        controller.fail(0)
    assert controller.arrive("b", between((1, 2))).cores["a"].tolist() == [0]


def test_unknown_jobs_and_cores_are_refused() -> None:
    controller = Controller(complete(2, 2))
    controller.arrive("a", between((0, 1)))
    with pytest.raises(InstanceError, match="job 'a': runs already"):
        controller.arrive("a", between())
    with pytest.raises(InstanceError, match="job 'b': does not run, needs one of a"):
        controller.leave("b")
    with pytest.raises(InstanceError, match="core 2: needs one that works, of 0 to 1"):
        controller.fail(2)
    with pytest.raises(InstanceError, match="core 0: needs one that failed"):
        controller.restore(0)
