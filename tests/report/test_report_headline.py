"""The first sentence of a report."""

from __future__ import annotations

import pytest

import coopt
from coopt.report.sentence import headline
from tests.conftest import ask


def changed(plan, **updates):
    return plan.model_copy(update=updates)


def test_an_optimal_plan_leads_with_decision_price_and_proof(instance, plan):
    assert headline(instance, plan) == (
        "Build 128 x gh200-256 joined by a 2-tier rail-only network, for $94.3 M without the GPUs; proven optimal."
    )


def test_an_optimum_within_a_gap_says_the_gap(instance, plan):
    objective = changed(plan.objective, gap=0.008)
    assert headline(instance, changed(plan, objective=objective)).endswith("; proven within 0.8% of the optimum.")


@pytest.mark.parametrize(
    ("kind", "says"),
    [("power", "which draws 2.33 MW"), ("tco", "for $102 M in purchase and electricity without the GPUs")],
)
def test_the_price_is_the_one_that_was_minimised(instance, plan, kind, says):
    assert says in headline(instance, changed(plan, objective=changed(plan.objective, kind=kind)))


def test_idle_gpus_that_are_paid_for_are_no_gpus_left_out(instance, plan):
    idle = changed(plan.cost.items[0], name="gb200", idle=True, usd=33_000.0)
    cost = changed(plan.cost, items=(*plan.cost.items, idle))
    assert "without the GPUs that train; " in headline(instance, changed(plan, cost=cost))


def test_idle_gpus_that_a_phase_buys_are_no_gpus_left_out():
    phases = [{"year": 2026, "gpus": 20}, {"year": 2028, "gpus": 40}]
    work = {"workload__0__global_batch": 40, "workload__0__max_iteration_time_s": 100.0}
    grown = ask(cluster__gpus=40, phase=phases, network__hb_domains="hgx-h100-8", **work)
    assert "without the GPUs that train; " in headline(grown, coopt.solve(grown))


def test_a_stopped_search_says_value_gap_and_time(instance, plan):
    stopped = changed(
        plan, status="feasible", stop_reason="time limit", objective=changed(plan.objective, bound=92.9e6, gap=0.015)
    )
    assert headline(instance, stopped).endswith(
        "; stopped early (time limit), best so far: $94.3 M, gap 1.5%, 60.0 s of search."
    )


def test_a_search_that_found_nothing_claims_nothing(instance, plan):
    bare = plan.objective.model_copy(update={"value": None, "bound": None, "gap": None})
    empty = changed(
        plan, status="unknown", stop_reason="time limit", objective=bare, design=None, cost=None, workloads=()
    )
    stopped = "Stopped early (time limit) before any design was found, after 60.0 s of search; "
    assert headline(instance, empty) == f"{stopped}nothing is proven."
    bounded = changed(empty, objective=bare.model_copy(update={"bound": 94.3e6}))
    assert headline(instance, bounded) == f"{stopped}it is proven that no plan costs less than $94.3 M."


def test_oversubscription_is_part_of_the_decision(instance, plan):
    fabric = changed(plan.design.fabric, oversubscription=7 / 3)
    assert "2-tier rail-only network at 2.33:1" in headline(
        instance, changed(plan, design=changed(plan.design, fabric=fabric))
    )
