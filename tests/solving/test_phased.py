"""What to buy now and what later is what plain enumeration finds, and everything claimed about it holds."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

from coopt.instance.schema import Instance
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from tests.conftest import example_count
from tests.solving.growing import clusters, enumerated


@settings(max_examples=example_count(100))
@given(clusters())
def test_the_optimum_equals_plain_enumeration(instance: Instance) -> None:
    plan, expected = solve(instance), enumerated(instance)
    if math.isinf(expected):
        assert (plan.status, plan.objective.value) == ("infeasible", None)
        assert plan.explanation
        return
    assert plan.status == "optimal"
    assert plan.objective.value is not None
    if instance.objective.minimize == "capex":
        assert plan.objective.value == expected
    assert plan.objective.value == pytest.approx(expected, rel=1e-12)
    assert all(run.iteration_time_s <= run.bound_s for run in plan.runs)


@settings(max_examples=example_count(40))
@given(clusters())
def test_the_verifier_accepts_every_answer(instance: Instance) -> None:
    verdict = verify(instance, solve(instance))
    assert verdict.accepted, verdict.failures


@settings(max_examples=example_count(25))
@given(clusters())
def test_foresight_never_costs_more(instance: Instance) -> None:
    plan = solve(instance)
    if plan.couplings.myopic is not None:
        assert (plan.couplings.myopic.value is None) == (plan.couplings.myopic.dead_end is not None)
        assert plan.couplings.myopic.saving is None or plan.couplings.myopic.saving >= -1e-9 * (
            plan.objective.value or 0.0
        )
