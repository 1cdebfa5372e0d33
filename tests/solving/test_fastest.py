"""The fastest design is the one below whose times nothing is left."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from coopt.instance.schema import Instance
from coopt.plan.store import Evaluation
from coopt.solving.answer import solve
from coopt.solving.fastest import fastest_design
from tests.conftest import ask, example_count
from tests.solving.oracle import instances


def bounded(instance: Instance, factor: float) -> Instance:
    """All time bounds scaled alike."""
    asked = [
        workload.model_copy(
            update={
                "max_iteration_time_s": workload.bound_s * factor,
                "min_tokens_per_s": None,
                "train_days": None,
                "train_tokens": None,
            }
        )
        for workload in instance.workload
    ]
    return instance.model_copy(update={"workload": tuple(asked)})


@settings(max_examples=example_count(40))
@given(instances())
def test_a_plan_within_memory_and_limits_exists_at_the_fastest_pace_and_none_below(instance: Instance) -> None:
    found = fastest_design(instance)
    if not isinstance(found, Evaluation):
        assert found
        assert solve(bounded(instance, 1e6), reasons=False).status == "infeasible"
        return
    assert all(check.ok for check in found.limits if not check.name.startswith("time"))
    pace = max(run.iteration_time_s / run.bound_s for run in found.workloads)
    assert solve(bounded(instance, pace * (1 + 1e-9))).status == "optimal"
    assert solve(bounded(instance, pace * (1 - 1e-9)), reasons=False).status == "infeasible"


def test_of_equally_fast_networks_the_cheapest_is_taken() -> None:
    found = fastest_design(ask())
    assert isinstance(found, Evaluation)
    cheapest = solve(ask(workload__0__max_iteration_time_s=found.workloads[0].iteration_time_s))
    assert found.cost.capex_usd == cheapest.cost.capex_usd  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cluster__gpus": 67, "network__domain_fill": "even"}, "67 GPUs do not spread evenly"),
        ({"limits": {"capex_usd": 1.0}}, "no network keeps the limits"),
        ({"cluster__gpus": 16, "workload__0__model": "gpt-1t"}, "needs more GPUs, more memory"),
    ],
)
def test_where_nothing_can_be_built_a_sentence_says_why(changes: dict[str, object], says: str) -> None:
    found = fastest_design(ask(**changes))
    assert isinstance(found, tuple)
    assert any(says in sentence for sentence in found)
