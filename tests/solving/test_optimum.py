"""The optimum is the one that plain enumeration finds, and everything claimed about it holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from coopt.instance.catalog import find
from coopt.instance.schema import Instance, Limits, load
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from tests.conftest import accepted, ask, example_count, question, switch, value_of
from tests.solving.oracle import enumerated, instances


@settings(max_examples=example_count(30))
@given(instances())
def test_the_times_a_plan_attains_are_bounds_it_meets(instance: Instance) -> None:
    first = solve(instance)
    assume(first.workloads)
    bounds = [{"max_iteration_time_s": run.iteration_time_s} for run in first.workloads]
    asked = [workload.model_copy(update=bound) for workload, bound in zip(instance.workload, bounds, strict=True)]
    exact = instance.model_copy(update={"workload": tuple(asked)})
    again = solve(exact)
    assert again.objective.value == first.objective.value
    assert all(run.iteration_time_s <= run.bound_s for run in again.workloads)
    assert verify(exact, again).accepted


@settings(max_examples=example_count(20))
@given(instances(), st.floats(0.5, 0.999))
def test_a_single_workload_is_told_its_own_shortfall(instance: Instance, share: float) -> None:
    alone = instance.model_copy(update={"workload": instance.workload[:1], "limits": Limits()})
    first = solve(alone)
    assume(first.workloads)
    tighter = alone.workload[0].model_copy(update={"max_iteration_time_s": share * first.workloads[0].iteration_time_s})
    plan = solve(alone.model_copy(update={"workload": (tighter,)}))
    assert plan.workloads or all("no single network" not in text for text in plan.explanation)


def test_a_bound_met_to_the_last_bit_is_met() -> None:
    reached = solve(ask()).workloads[0].iteration_time_s
    again = solve(ask(workload__0__max_iteration_time_s=reached))
    assert again.status == "optimal"
    assert again.workloads[0].iteration_time_s <= reached


def test_wrong_coefficients_are_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that claims to need fewer uplinks than it does must not reach a plan."""
    from coopt.solving import arrays

    instance = ask(
        cluster__gpus=128,
        workload__0__max_iteration_time_s=0.065,
        network__hb_domains="hgx-h100-8",
        network__fabrics="rail-only",
        network__switches=[switch(12, 5000)],
        network__oversubscription=5.0,
    )
    expected = solve(instance)
    assert expected.status == "optimal"
    build = arrays.NetworkData

    def lying(**fields: object) -> object:
        need = fields["need"]
        fields["need"] = (need - 2).clip(1)  # type: ignore[operator, attr-defined]
        return build(**fields)  # type: ignore[arg-type]

    monkeypatch.setattr(arrays, "NetworkData", lying)
    plan = solve(instance)
    assert plan.solver.cuts > 0
    assert plan.objective.value == expected.objective.value


def test_a_time_limit_before_the_search_claims_nothing() -> None:
    plan = solve(ask(), time_limit_s=1e-9)
    assert (plan.status, plan.stop_reason, plan.design, plan.objective.bound) == ("unknown", "time limit", None, None)


def test_a_time_limit_that_ends_the_search_leaves_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search starts from a design, which is no proof."""
    from coopt.solving.runs import Run

    asked = load(Path(__file__).parents[2] / "instances" / "rail-only-gpt-1t.toml")
    expected = solve(asked)
    monkeypatch.setattr(Run, "deadline", 0.0)
    plan = solve(asked)
    assert (plan.status, plan.stop_reason, plan.objective.bound) == ("feasible", "time limit", None)
    assert plan.objective.value == expected.objective.value
    assert verify(asked, plan).accepted


def test_an_interrupt_ends_cleanly() -> None:
    def press(_: object) -> None:
        raise KeyboardInterrupt

    plan = solve(ask(), on_progress=press)
    assert (plan.status, plan.stop_reason) == ("unknown", "interrupted")


def test_an_objective_can_be_replaced() -> None:
    plan = solve(ask(), objective="power")
    assert plan.objective.kind == "power"
    assert plan.objective.value == plan.cost.power_w


def test_instance_and_plan_round_trip() -> None:
    from coopt.plan.schema import Plan
    from coopt.plan.store import plan_json

    instance = Instance.model_validate(question())
    again = Instance.model_validate_json(instance.model_dump_json(by_alias=True))
    assert again == instance
    assert again.sha256 == instance.sha256
    plan = solve(instance)
    assert Plan.model_validate_json(plan_json(plan)) == plan


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"workload__0__max_iteration_time_s": 0.01}, "the fastest design takes"),
        (
            {
                "workload__0__mapping": {"tp": 1, "pp": 1, "micro_batch": 1, "zero": 0},
                "workload__0__model": "gpt-22b",
                "cluster__gpu": "a100-80g",
            },
            "GiB",
        ),
        ({"workload__0__mapping": {"tp": 64, "pp": 8}}, "no TP x PP x DP split"),
        ({"network__max_tiers": 1, "network__fabrics": "clos"}, "joins 64 GPUs"),
        (
            {"cluster__gpus": 61, "network__hb_domains": "hgx-h100-8", "network__domain_fill": "even"},
            "needs another GPU count (such as 56 or 64)",
        ),
        ({"limits": {"capex_usd": 10.0}}, "limits.capex_usd = 10"),
    ],
)
def test_infeasible_says_which_limit_must_give(changes: dict[str, object], words: str) -> None:
    plan = solve(ask(**changes))
    assert plan.status == "infeasible"
    assert words in " ".join(plan.explanation)


def test_lists_that_defaults_keep_narrow_are_named() -> None:
    deadline = {"workload__0__max_iteration_time_s": 0.01, "workload__0__mapping": {}}
    old = {"workload__0__options": {"software": "megatron-2021"}}
    lists = {"cp": "[1, 2, 4, 8, 16]", "micro_batch": "[1, 2, 4, 8, 16]", "recompute": '["none", "full"]'}
    cp, micro_batch, recompute = (f"mapping.{key} = {values}" for key, values in lists.items())
    (said,) = solve(ask(**deadline, **old)).explanation
    assert said.endswith(f"; {cp}, {micro_batch} and {recompute} are defaults, and wider lists were not searched")
    (said,) = solve(ask(**deadline)).explanation
    assert said.endswith(f"; {cp} and {micro_batch} are defaults, and wider lists were not searched")
    (said,) = solve(ask(**deadline | {"workload__0__mapping": {"cp": [1, 2]}})).explanation
    assert said.endswith(f"; {micro_batch} is a default, and wider lists were not searched")
    (said,) = solve(ask(**deadline | {"workload__0__mapping": {"cp": 1, "micro_batch": 1}})).explanation
    assert "default" not in said


def test_batches_and_counts_that_divide_are_offered_near_those_that_do_not() -> None:
    asked = {"cluster__gpus": 56, "workload__0__mapping": {"dp": 7}}
    (said,) = solve(ask(**asked)).explanation
    near = re.search(r"another batch \(such as (\d+) or (\d+)\), GPU count or wider mapping lists", said)
    assert near, "a batch that 7 does not divide is one on any number of GPUs"
    for batch in map(int, near.groups()):
        assert batch % 7 == 0
        assert "no TP x PP x DP split" not in " ".join(solve(ask(**asked, workload__0__global_batch=batch)).explanation)
    assert "default" not in said, "all degrees that divide both 56 and the sequence are in the default list"
    (said,) = solve(ask(cluster__gpus=56, workload__0__mapping={"pp": 1, "tp": [1, 2]})).explanation
    counts = re.search(r"GPU count \(such as (\d+) or (\d+)\)", said)
    assert counts
    for gpus in map(int, counts.groups()):
        found = solve(ask(cluster__gpus=gpus, workload__0__mapping={"pp": 1, "tp": [1, 2]}))
        assert "no TP x PP x DP split" not in " ".join(found.explanation)


def test_the_stated_relaxation_is_enough() -> None:
    words = solve(ask(workload__0__max_iteration_time_s=0.01)).explanation[0]
    enough = float(words.split("needs a bound of at least ")[1].split(" s")[0])
    assert solve(ask(workload__0__max_iteration_time_s=enough)).status == "optimal"


def test_activations_on_the_host_make_room_where_the_gpu_has_none() -> None:
    mapping = {"tp": 2, "pp": 4, "cp": 1, "micro_batch": 4, "recompute": "none", "zero": 1}
    small = find("gpu", "h100-sxm").model_dump() | {"name": "small", "hbm_gb": 5.95}
    at_home = ask(cluster__gpu=small, workload__0__mapping=mapping)
    plan = solve(at_home)
    assert plan.status == "infeasible"
    assert "mapping.offload_percent = [0] is a default" in plan.explanation[0]
    away = mapping | {"offload_percent": [0, 50, 100]}
    for rate in (55.0, 0.5):
        instance = ask(cluster__gpu=small | {"host_gbyte_s": rate}, workload__0__mapping=away)
        plan = accepted(instance)
        assert value_of(plan) == enumerated(instance)
        if plan.workloads:
            assert plan.workloads[0].mapping.offload_percent == 50
        else:
            assert rate == 0.5
    assert ask(cluster__gpu=small | {"host_gbyte_s": 1.0}, workload__0__mapping=away).sha256 != instance.sha256
    assert ask(cluster__gpu=small | {"host_gbyte_s": 1.0}, workload__0__mapping=mapping).sha256 == at_home.sha256
    unknown = (
        r"workload\[0\].mapping.offload_percent = \[50\]: nothing is known of the way from GPU 'small' to its host"
    )
    with pytest.raises(ValidationError, match=unknown):
        ask(cluster__gpu=small | {"host_gbyte_s": None}, workload__0__mapping=mapping | {"offload_percent": 50})
