"""Designs worth less than a bound by their time: those of the whole list, though slow mappings are not timed."""

import math
from typing import Any

import pytest

from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from coopt.verifier.bounds.timed import timed_designs
from coopt.verifier.checks.verdict import TOLERANCE
from coopt.verifier.parts.timings import timings_of
from tests.changes import with_part
from tests.conftest import ask

COSTS = {"include": ["gpu", "host", "hb", "nic", "switch", "optics"]}
CARBON = {"minimize": "carbon", "kg_co2_per_kwh": 0.4}
TRAINED: dict[str, Any] = {
    "workload__0__train_tokens": 1e9,
    "workload__0__train_days": 20.0,
    "workload__0__max_iteration_time_s": None,
}


@pytest.mark.parametrize(
    ("objective", "failing"), [({"minimize": "time"}, True), ({"minimize": "usd_per_token"}, False), (CARBON, True)]
)
def test_a_bound_leaves_out_no_design_that_is_worth_less(objective: dict[str, Any], failing: bool) -> None:
    given: dict[str, Any] = {"objective": COSTS | objective, "cluster__gpus": 16}
    instance = ask(**given | TRAINED, **({"availability": {"rates": "llama-3"}} if failing else {}))
    kind = instance.objective.minimize
    timings_of.cache_clear()
    every = list(timed_designs(instance, kind, math.inf))
    values = sorted({one.value for one in every})
    assert len(values) > 2
    timings_of.cache_clear()  # bounds rise from here on, so that lists are made longer on the way
    for bound in (*values[:: len(values) // 3 + 1], values[-1] * 2):
        less = [one for one in every if one.value < bound * (1 - TOLERANCE)]
        assert list(timed_designs(instance, kind, bound)) == less


@pytest.mark.parametrize(
    ("objective", "iteration_s"), [({"minimize": "time"}, 0.0), ({"minimize": "usd_per_token"}, -1.0), (CARBON, 1e18)]
)
def test_plans_that_train_in_no_time_are_refused_in_words(objective: dict[str, Any], iteration_s: float) -> None:
    instance = ask(objective=COSTS | objective, **TRAINED)
    plan = solve(instance)
    run = plan.workloads[0].model_copy(update={"iteration_time_s": iteration_s})
    names = {check.name for check in verify(instance, with_part(plan, workloads=(run,))).failures}
    assert {"iteration-time", "objective"} <= names
