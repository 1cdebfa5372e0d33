"""Collectives that choose their way by the size of messages: optimum against enumeration, and what plans name."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

import coopt
from coopt.instance.schema import Instance
from tests.solving.oracle import enumerated, instances

SLOW_STEP_S = 2e-4
"""So long that rounds count beside bytes among few domains."""


def choosing(instance: Instance) -> Instance:
    """The same question where steps are slow and every workload chooses its ways."""
    gpu = instance.cluster.gpu
    slow = gpu.model_copy(update={"efficiency": gpu.efficiency.model_copy(update={"step_s": SLOW_STEP_S})})
    workloads = tuple(
        one.model_copy(update={"options": one.options.model_copy(update={"collectives": "fastest"})})
        for one in instance.workload
    )
    cluster = instance.cluster.model_copy(update={"gpu": slow})
    return instance.model_copy(update={"cluster": cluster, "workload": workloads})


def test_the_cheapest_network_is_found_with_ways_that_are_chosen() -> None:
    """Of 60 random questions; the verifier counts times, flows and names again."""
    named: Counter[str] = Counter()

    @settings(max_examples=60, deadline=None)
    @given(instances())
    def compare(asked: Instance) -> None:
        instance = choosing(asked)
        expected, plan = enumerated(instance), coopt.solve(instance)
        if plan.objective is None or plan.objective.value is None:
            assert expected == float("inf")
            return
        assert plan.objective.value == pytest.approx(expected, rel=1e-9)
        assert coopt.verify(instance, plan).accepted
        named.update(name for part in plan.parts for run in part.workloads for name in run.collectives.values())

    compare()
    assert named["halving and doubling"] > 3, named
    assert named["rings"] > 3, named
