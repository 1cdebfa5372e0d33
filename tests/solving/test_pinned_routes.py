"""Plans whose flows are pinned to paths say how far the paths that were found slow them, and keep their bounds so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.plan.traffic import Routing
from coopt.solving import plan_routes
from coopt.solving.plan_routes import CHARGED_AS
from tests.conftest import ask, switch


def pinned(**changes: Any) -> Instance:
    """Leaves whose uplinks are fewer the better: everything is allowed up to 4 down for one up."""
    table = {
        "cluster__gpus": 128,
        "network__hb_domains": "hgx-h100-8",
        "network__fabrics": "clos",
        "network__switches": switch(16, 5000),
        "network__oversubscription": 4.0,
        "workload__0__max_iteration_time_s": 20.0,
        "network__charge": "loads",
        "network__routing": "pinned",
    }
    return ask(**{**table, **changes})


def routed_otherwise(monkeypatch: pytest.MonkeyPatch, misses: Callable[[Plan], bool]) -> None:
    """Let routes miss the bounds of some plans."""
    found = plan_routes.route_plan

    def routes(instance: Instance, plan: Plan, **options: Any) -> Routing:
        routing = found(instance, plan, **options)
        late = tuple(one.model_copy(update={"within_bound": not misses(plan)}) for one in routing.workloads)
        return routing.model_copy(update={"workloads": late})

    monkeypatch.setattr(plan_routes, "route_plan", routes)


def ratio(plan: Plan) -> float:
    return plan.design.fabric.oversubscription


@pytest.mark.parametrize("radix", [16, 8])
def test_a_plan_says_what_its_routes_are_worth(radix: int) -> None:
    instance = pinned(network__switches=switch(radix, 5000))
    plan = coopt.solve(instance)
    (run,) = plan.workloads
    found = coopt.route(instance, plan).collectives
    assert set(run.routes) == {CHARGED_AS.get(one.collective, one.collective) for one in found}
    assert all(run.routes[CHARGED_AS.get(one.collective, one.collective)] >= one.stretch for one in found)
    assert coopt.verify(instance, plan).accepted
    assert plan.status == "optimal"


def test_sprayed_flows_and_single_tiers_have_no_routes() -> None:
    for changes in ({"network__routing": "spray"}, {"network__switches": "64x400g", "network__fabrics": "rail-only"}):
        (run,) = coopt.solve(pinned(**changes)).workloads
        assert run.routes == {}


def test_a_network_whose_routes_miss_a_bound_is_ruled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = pinned()
    first = coopt.solve(instance)
    assert ratio(first) > 1.5
    routed_otherwise(monkeypatch, lambda plan: ratio(plan) > 1.5)
    plan = coopt.solve(instance)
    assert ratio(plan) <= 1.5
    assert (plan.status, plan.stop_reason) == ("feasible", plan_routes.MISSED)
    assert plan.objective.bound == first.objective.value
    assert plan.objective.value > first.objective.value
    assert plan.workloads[0].routes
    assert coopt.verify(instance, plan).accepted


def test_listed_ratios_are_ruled_out_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = pinned(network__oversubscription=[1.0, 2.0, 3.0])
    routed_otherwise(monkeypatch, lambda plan: ratio(plan) > 1)
    assert ratio(coopt.solve(instance)) == 1


def test_without_any_network_whose_routes_keep_a_bound_there_is_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = pinned()
    bound = coopt.solve(instance).objective.bound
    routed_otherwise(monkeypatch, lambda plan: True)
    plan = coopt.solve(instance)
    assert (plan.status, plan.stop_reason, plan.objective.bound) == ("unknown", plan_routes.MISSED, bound)


@pytest.mark.parametrize(
    ("routes", "name"),
    [
        (lambda kinds: dict.fromkeys(kinds, 0.5), "routes"),
        (lambda kinds: {"tea": 1.0}, "routes"),
        (lambda kinds: dict.fromkeys(kinds, 1e6), "routes-deadline"),
    ],
)
def test_slowdowns_that_no_routes_have_are_found(routes: Callable[[dict[str, float]], Any], name: str) -> None:
    instance = pinned()
    plan = coopt.solve(instance)
    (part,) = plan.parts
    runs = tuple(run.model_copy(update={"routes": routes(run.routes)}) for run in part.workloads)
    changed = part.model_copy(update={"workloads": runs})
    wrong = plan.model_copy(update={"parts": (changed,), "workloads": runs})
    assert [check.name for check in coopt.verify(instance, wrong).failures] == [name]
