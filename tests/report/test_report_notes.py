"""What a reader has to know stands below the tables, and only where it is true."""

from __future__ import annotations

from pathlib import Path

import pytest

import coopt
from coopt.network.baseline import any_to_any
from coopt.report.remarks import notes
from coopt.report.saving import network_sentence
from tests.conftest import ask


def text(**changes: object) -> str:
    instance = ask(**changes)
    plan = coopt.solve(instance)
    assert plan.design is not None
    return "\n".join(notes(instance, plan.design))


def test_what_counts_and_what_does_not() -> None:
    assert "Not counted: GPUs that train, servers" in text()
    everything = text(objective={"include": ["hb", "nic", "switch", "optics", "gpu"]})
    assert "GPUs that train. Not counted: servers" in everything


def test_a_free_interconnect_is_named() -> None:
    assert "hgx-h100-8 is part of its servers' price" in text(network__hb_domains="hgx-h100-8")
    assert "servers' price" not in text(network__hb_domains="h100-hb16")


def test_hardware_that_nobody_combines_is_named() -> None:
    assert "hgx-h100-8 is sold with h100-sxm, not with h200" in text(
        cluster__gpu="h200", network__hb_domains="hgx-h100-8"
    )
    assert "is sold with" not in text(network__hb_domains="hgx-h100-8")


def test_taking_turns_is_said_for_several_workloads() -> None:
    one = ask().workload[0].model_dump(mode="json")
    assert "they take turns" in text(workload=[one, one | {"name": "other"}])
    assert "turns" not in text()


def test_switches_and_optics_are_compared_alone() -> None:
    instance = coopt.load(Path(__file__).parents[2] / "instances" / "rail-only-gpt-1t.toml")
    plan = coopt.solve(instance)
    baseline = any_to_any(instance, plan)
    assert baseline is not None
    assert plan.cost is not None
    sentence = network_sentence(plan.cost, baseline[1])
    assert sentence == "Switches and optics alone cost $35.8 M against $94.3 M, 62.1% less."
    assert network_sentence(plan.cost, plan.cost) == ""


@pytest.mark.parametrize(
    ("bound", "says"),
    [
        ({"min_tokens_per_s": 1e6}, "Bound"),
        ({"train_days": 30.0, "train_tokens": 1e12}, "30 days for 1e+12 tokens"),
    ],
)
def test_a_bound_is_repeated_in_its_own_units(bound: dict[str, float], says: str) -> None:
    from coopt.report.workload import workload_rows

    workload = ask().workload[0].model_dump(mode="json") | {"max_iteration_time_s": None} | bound
    instance = ask(workload=[workload])
    plan = coopt.solve(instance)
    rows = dict(workload_rows(plan.workloads[0], instance.workload[0]))
    assert says in f"Bound {rows['Bound']}"
    assert "this plan" in rows["Bound"]
