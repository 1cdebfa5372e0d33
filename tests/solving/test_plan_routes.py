"""Routes of plans: loads against the flows they carry, bounds, and the time they lead to."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.base import InstanceError
from coopt.instance.schema import Instance
from coopt.network.plan_networks import family_of_plan
from coopt.plan.schema import Plan
from coopt.plan.traffic import Routing
from coopt.solving.answer import solve
from coopt.solving.flow_routes import NAMES
from coopt.solving.plan_routes import route_plan
from coopt.traffic.flows import demand
from coopt.traffic.of_plan import leaf_flows
from tests.conftest import DISCIPLINES, ask, example_count, small_model, switch
from tests.solving.oracle import instances


def small(fabric: str = "rail-only", radix: int = 8, **changes: object) -> Instance:
    return ask(
        cluster__gpus=128,
        workload__0__global_batch=128,
        workload__0__max_iteration_time_s=20.0,
        workload__0__mapping={"tp": 4, "pp": 2},
        network__hb_domains="hgx-h100-8",
        network__fabrics=fabric,
        network__switches=switch(radix, 5000),
        network__oversubscription=1.0,
        **changes,
    )


@cache
def planned(fabric: str, radix: int) -> tuple[Instance, Plan]:
    instance = small(fabric, radix)
    return instance, solve(instance)


def test_paths_of_gpus_with_the_same_stages_are_charged_and_accepted() -> None:
    """Sixteen stages of a domain each, six to a leaf of two uplinks: six send to their twin, two at most to a hop."""
    instance = ask(
        cluster__gpus=128,
        network__hb_domains="hgx-h100-8",
        network__fabrics="rail-only",
        network__switches=switch(8, 5000),
        network__routing="pinned",
        network__charge="loads",
        network__oversubscription=3.0,
        workload__0__model=small_model(layers=16),
        workload__0__global_batch=128,
        workload__0__max_iteration_time_s=100.0,
        workload__0__mapping={
            "tp": 4,
            "pp": 16,
            "interleave": 1,
            "zero": [0, 1],
            "recompute": "none",
            "micro_batch": 1,
        },
        workload__0__options={"schedule": "dualpipe"},
    )
    plan = solve(instance)
    assert plan.workloads[0].routes == {"pp": 1.0, "tied": 3.0}
    assert coopt.verify(instance, plan).accepted


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("fabric", "radix"), [("rail-only", 8), ("rail-optimized", 16), ("clos", 32)])
def test_links_carry_every_flow_that_leaves_its_leaf(name: str, fabric: str, radix: int) -> None:
    instance, plan = planned(fabric, radix)
    family, _ = family_of_plan(instance, plan)
    assert family.tiers == 2
    found = route_plan(instance, plan, algorithm=name)
    asked: dict[str, int] = defaultdict(int)
    for workload, chosen in zip(instance.workload, plan.workloads, strict=True):
        for flows in leaf_flows(family, demand(workload, chosen)):
            asked[flows.collective] += len(flows.planes) * int((flows.src != flows.dst).sum())
    carried: dict[str, int] = defaultdict(int)
    for link in found.links:
        carried[link.collective] += link.planes * link.up
        assert link.up >= 0
        assert link.links >= 1
    assert dict(carried) == dict(asked)
    assert sum(asked.values()) > 0
    for direction in ("up", "down"):
        worst: dict[str, float] = defaultdict(float)
        for link in found.links:
            worst[link.collective] = max(worst[link.collective], getattr(link, direction) / link.links)
        for one in found.collectives:
            assert worst[one.collective] <= one.alpha
            assert one.bound <= one.alpha


def test_what_is_said_of_routes_does_not_depend_on_listing_links() -> None:
    instance, plan = planned("clos", 32)
    listed, short = (route_plan(instance, plan, with_links=wish) for wish in (True, False))
    assert listed.links
    assert not short.links
    unlike = {"links", "seconds", "collectives"}
    assert listed.model_dump(exclude=unlike) == short.model_dump(exclude=unlike)
    assert [one.alpha for one in listed.collectives] == [one.alpha for one in short.collectives]


def test_exact_routes_are_never_worse() -> None:
    instance, plan = planned("clos", 32)
    exact = {one.collective: one for one in route_plan(instance, plan, algorithm="exact").collectives}
    for name in ("best", "ecmp", "greedy"):
        for one in route_plan(instance, plan, algorithm=name).collectives:
            assert 0 < exact[one.collective].alpha <= one.alpha
            assert exact[one.collective].optimal


@settings(max_examples=example_count(25))
@given(instances(), st.integers(0, 3))
def test_random_plans_have_routes_no_faster_than_the_model(instance: Instance, seed: int) -> None:
    """The largest stretch, fed back as network.routing, is what the plan then takes at most."""
    plan = solve(instance)
    if plan.design is None:
        return
    bare = instance.model_copy(update={"network": instance.network.model_copy(update={"routing": 1.0})})
    again = solve(bare)
    if again.design is None:
        return
    found = route_plan(bare, again, seed=seed)
    for one, workload in zip(found.workloads, again.workloads, strict=True):
        assert one.routed_time_s >= workload.iteration_time_s * (1 - 1e-9)
    assert (found.routing > 1) >= any(
        one.routed_time_s > workload.iteration_time_s * (1 + 1e-9)
        for one, workload in zip(found.workloads, again.workloads, strict=True)
    )
    assert all(one.routing <= found.routing for one in found.collectives)


@settings(max_examples=example_count(25))
@given(instances(), st.sampled_from([one for one in DISCIPLINES if one["routing"] != "ecmp"]))
def test_random_plans_keep_their_times_under_the_discipline_they_name(
    instance: Instance, discipline: dict[str, Any]
) -> None:
    named = instance.model_copy(update={"network": instance.network.model_copy(update=discipline)})
    plan = solve(named)
    if plan.design is None:
        return
    found = route_plan(named, plan)
    for one in found.workloads:
        assert one.routed_time_s <= one.iteration_time_s * (1 + 1e-9)
        assert one.within_bound
    assert found.routing == 1


def test_flows_are_pinned_over_even_bundles_alone() -> None:
    with pytest.raises(ValueError, match=r"bundles = 'any': flows that are pinned .* needs 'even'"):
        small(network__charge="loads", network__routing="pinned", network__bundles="any")


def test_what_is_sprayed_loads_links_evenly() -> None:
    instance, plan = planned("clos", 8)
    spread = route_plan(instance, plan, algorithm="spray")
    assert {link.level for link in spread.links} == {2, 3}
    assert all(one.optimal for one in spread.collectives)
    pinned = {one.collective: one.alpha for one in route_plan(instance, plan, algorithm="best").collectives}
    assert all(one.alpha <= pinned[one.collective] for one in spread.collectives)
    efficiency = instance.network.spray_efficiency
    assert all(one.stretch == pytest.approx(one.alpha / one.per_nic / efficiency) for one in spread.collectives)


def test_time_with_routes_is_that_of_the_factor() -> None:
    """One collective above the leaves: the model with network.routing says what its routes say."""
    instance, plan = planned("clos", 32)
    found = route_plan(instance, plan, algorithm="ecmp", seed=3)
    assert found.routing > 1
    from coopt.solving.evaluate import evaluate_instance

    network = instance.network.model_copy(update={"routing": found.routing})
    slower = instance.model_copy(update={"network": network})
    mapping = [workload.mapping for workload in plan.workloads]
    design = plan.design.model_copy(update={"fabric": plan.design.fabric.model_copy(update={"routing": found.routing})})
    charged = evaluate_instance(slower, design, mapping).workloads[0].iteration_time_s
    assert plan.workloads[0].iteration_time_s < found.workloads[0].routed_time_s <= charged * (1 + 1e-9)


def test_failed_cores_make_links_busier() -> None:
    instance, plan = planned("clos", 32)
    alphas = [_worst(route_plan(instance, plan, algorithm="best", failed_cores=n)) for n in (0, 2, 3)]
    assert alphas == sorted(alphas)
    assert alphas[-1] > alphas[0]


def _worst(found: Routing) -> float:
    return max(one.alpha for one in found.collectives)


def test_all_cores_cannot_fail() -> None:
    instance, plan = planned("rail-optimized", 32)
    with pytest.raises(InstanceError, match="failed cores: 99, needs 0 to"):
        route_plan(instance, plan, failed_cores=99)


def test_without_cores_none_can_fail() -> None:
    flat, plan = planned("rail-only", 64)
    with pytest.raises(InstanceError, match="failed cores: 1, and the plan has no switches above its leaves"):
        route_plan(flat, plan, failed_cores=1)


def test_a_plan_of_another_instance_is_refused() -> None:
    _, plan = planned("rail-optimized", 32)
    with pytest.raises(InstanceError, match="not one this instance allows"):
        route_plan(small("clos", 32), plan)


def test_three_tiers_are_routed_in_two_stages() -> None:
    instance, plan = planned("clos", 8)
    family, _ = family_of_plan(instance, plan)
    assert family.tiers == 3
    found = route_plan(instance, plan)
    assert {link.level for link in found.links} == {2, 3}
    assert np.isfinite(found.workloads[0].routed_time_s)
    with pytest.raises(InstanceError, match="works on two tiers"):
        route_plan(instance, plan, algorithm="exact")
