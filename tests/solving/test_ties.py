"""Of mappings that the model cannot tell apart the one nearest to published runs is taken where it costs nothing."""

from typing import Any

import pytest

from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.report.screen import plan_screen
from coopt.report.words import rendered
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from tests.conftest import ask, small_model

EXPERTS = small_model() | {"experts": 32, "top_k": 4, "ffn": 4096}
FEW = {"micro_batch": [1, 4], "cp": 1, "recompute": "none"}
NEAREST = {"time": 0.0, "ties": "nearest"}


def tied(**changes: Any) -> Instance:
    """A mixture of experts on 32 GPUs, of whose fastest mappings some are nearer to published runs than others."""
    table = {"workload__0__model": EXPERTS, "workload__0__mapping": FEW, "margin": NEAREST}
    return ask(cluster__gpus=32, network__fabrics="rail-only", network__hb_domains="hgx-h100-8", **table | changes)


def picked(plan: Plan) -> tuple[tuple[int, int], list[tuple[int, int]]]:
    """Where the experts of the plan's mapping lie, and those of what it lists beside it."""
    return plan.workloads[0].placement["ep"], [other.placement["ep"] for other in plan.ties]


INSIDE, ACROSS = (4, 1), (8, 2)
FAST_S, NEAR_S = 0.2223, 0.2288


@pytest.mark.parametrize(
    ("changes", "taken", "listed"),
    [
        ({}, INSIDE, [ACROSS]),
        ({"workload__0__max_iteration_time_s": (FAST_S + NEAR_S) / 2}, ACROSS, [INSIDE]),
        ({"objective": {"minimize": "time"}}, ACROSS, [INSIDE]),
        ({"margin": "none"}, ACROSS, []),
        ({"margin": {"time": 0.0}}, ACROSS, []),
        ({"margin": None}, INSIDE, [ACROSS]),
        ({"sharing": {"mode": "partition"}, "workload__0__gpus": [32]}, INSIDE, [ACROSS]),
        ({"availability": {"rates": "llama-3"}}, INSIDE, [ACROSS]),
        ({"network__routing": "pinned", "network__charge": "loads", "network__bundles": "even"}, ACROSS, []),
    ],
)
def test_the_nearest_is_taken_where_it_costs_nothing(
    changes: dict[str, Any], taken: tuple[int, int], listed: list[tuple[int, int]]
) -> None:
    instance = tied(**changes)
    plan = solve(instance)
    assert picked(plan) == (taken, listed)
    verdict = verify(instance, plan)
    assert not verdict.failures
    told = [check.recomputed for check in verdict.checks if check.name == "ties" and check.subject]
    assert [text for text in told if "no other" not in str(text)] == []
    assert bool(told) == instance.tells_ties
    assert ("as fast as" in rendered(plan_screen(instance, plan))) == bool(listed)
    fastest = solve(tied(**changes | {"margin": instance.kept_margin.model_dump() | {"ties": "fastest"}}))
    assert (plan.objective, plan.design, plan.cost) == (fastest.objective, fastest.design, fastest.cost)


def lies() -> dict[str, Plan]:
    """Plans that keep the bound, and hide or swap what the model cannot tell apart."""
    plan = solve(tied())
    (near,), (fast,) = plan.workloads, plan.ties

    def with_runs(run: Any, *ties: Any) -> Plan:
        part = plan.parts[0].model_copy(update={"workloads": (run,)})
        return plan.model_copy(update={"parts": (part,), "workloads": (run,), "ties": ties})

    slow = fast.model_copy(update={"iteration_time_s": fast.iteration_time_s * 1.01})
    return {
        "the fastest alone": with_runs(fast),
        "the fastest, the nearest beside it": with_runs(fast, near),
        "the nearest alone": with_runs(near),
        "a time of its own": with_runs(near, slow),
        "two of one name": with_runs(near, slow, fast),
    }


def test_a_tie_of_a_workload_that_is_not_there_leaves_a_screen() -> None:
    plan = solve(tied())
    other = plan.ties[0].model_copy(update={"name": "another"})
    assert "cannot tell" not in rendered(plan_screen(tied(), plan.model_copy(update={"ties": (other,)})))


def test_other_choices_among_ties_are_refused() -> None:
    refused = {name: verify(tied(), lie).failures for name, lie in lies().items()}
    assert all(any(check.name == "ties" for check in checks) for checks in refused.values()), refused


def test_workloads_in_turn_keep_their_days_whatever_is_nearer() -> None:
    run = {"name": "w", "model": EXPERTS, "global_batch": 64, "mapping": FEW}
    runs = [run | {"name": name, "train_tokens": 1e12, "max_iteration_time_s": None} for name in ("a", "b")]
    plans = []
    for total in (1e4, 2.001 * FAST_S * 1e12 / (64 * EXPERTS["seq"]) / 86400):
        instance = tied(workload=runs, limits={"train_days_total": total})
        plans.append(solve(instance))
        assert not verify(instance, plans[-1]).failures
    assert [[one.placement["ep"] for one in plan.workloads] for plan in plans] == [[INSIDE] * 2, [ACROSS] * 2]
