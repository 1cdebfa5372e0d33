"""A fleet's plan is the cheapest there is, or regrets least, over all sizes, uplinks, sites and times to buy."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coopt
from coopt.columns.islands.options import ListedIslands
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from coopt.solving.answer import solve
from coopt.solving.fleet import standing
from tests.conftest import ask, example_count
from tests.solving.fleet_oracle import TooManyError, enumerated
from tests.solving.fleets import CORE_ENDS, ENDS, JOINED, SHAPE, SIDES, fleets, two
from tests.solving.partition_oracle import partitions

UP_TO_THREE = (1, 2, 2, 3)


@settings(max_examples=example_count(25))
@given(fleets(phases=UP_TO_THREE, sites=(1, 2, 2)))
def test_a_fleet_in_phases_at_sites_costs_what_enumeration_finds(instance: Instance) -> None:
    agrees_with_enumeration(instance)


@settings(max_examples=example_count(25))
@given(fleets(phases=UP_TO_THREE, cores=True, doubts=True))
def test_a_core_that_grows_at_doubtful_prices_agrees_with_enumeration(instance: Instance) -> None:
    agrees_with_enumeration(instance)


@settings(max_examples=example_count(25))
@given(fleets(phases=UP_TO_THREE, sites=(0, 1, 2), cores=True, doubts=True, losses=True))
def test_everything_at_once_agrees_with_enumeration(instance: Instance) -> None:
    agrees_with_enumeration(instance)


@settings(max_examples=example_count(10))
@given(fleets(many_sided=SIDES))
def test_islands_with_planes_bundles_and_any_filling_cost_what_enumeration_finds(instance: Instance) -> None:
    agrees_with_enumeration(instance)


@settings(max_examples=example_count(25))
@given(fleets(phases=(2, 2, 3), sites=(0, 1, 2), doubts=True, many_sided=SIDES))
def test_planes_and_bundles_that_grow_cost_what_enumeration_finds(instance: Instance) -> None:
    agrees_with_enumeration(instance)


@settings(max_examples=example_count(25))
@given(fleets(phases=(1, 1, 2), sites=(0, 0, 2), cores=True, many_sided=JOINED))
def test_planes_and_shared_nics_that_join_a_core_cost_what_enumeration_finds(instance: Instance) -> None:
    plan = agrees_with_enumeration(instance)
    verdict = coopt.verify(instance, plan)
    assert verdict.accepted, verdict.failures


@settings(max_examples=example_count(20, usual=2))
@given(fleets(many_sided=ENDS, phases=(1, 2), sites=(0, 0, 2), cores=True, doubts=True, losses=True))
def test_islands_whose_links_have_ends_of_their_own_cost_what_enumeration_finds(instance: Instance) -> None:
    own_ends_agree_with_enumeration(instance)


@settings(max_examples=example_count(40, usual=3))
@given(fleets(many_sided=CORE_ENDS, phases=(1, 1, 2), sites=(0, 0, 2), cores=True))
def test_links_into_a_core_have_ends_of_their_own_and_cost_what_enumeration_finds(instance: Instance) -> None:
    own_ends_agree_with_enumeration(instance)


def test_islands_whose_domains_are_not_filled_alike_are_enumerated() -> None:
    """Eight GPUs in three domains of three, of which the last has an idle one."""
    domains = {"name": "three", "size": 3, "gbyte_s": 450, "usd_per_gpu": 700, "w_per_gpu": 30}
    changes = {"sharing": {"mode": "partition"}, "workload__0__gpus": [8], "workload__0__max_iteration_time_s": 100.0}
    plan = agrees_with_enumeration(ask(**changes, network__hb_domains=[domains], network__domain_fill="any"))
    (part,) = plan.parts
    assert part.design is not None
    assert (part.design.hb_domain.count, part.design.spare_gpus) == (3, 1)


def agrees_with_enumeration(instance: Instance) -> Plan:
    """Enumerate, solve and compare; the plan."""
    try:
        least = enumerated(instance)
    except TooManyError:
        assume(False)
    plan = coopt.solve(instance)
    assert value_of(plan) == pytest.approx(least, rel=1e-12, abs=1e-6)
    return plan


def own_ends_agree_with_enumeration(instance: Instance) -> None:
    """The same, beside the same product at both ends of each link, and past the verifier."""
    plan = agrees_with_enumeration(instance)
    network = instance.network.model_dump(by_alias=True) | {"link_ends": "same"}
    assert value_of(plan) <= value(changed(instance, network=network)) * (1 + 1e-12)
    verdict = coopt.verify(instance, plan)
    assert verdict.accepted, verdict.failures


def value(instance: Instance) -> float:
    """The least objective; infinity where nothing fits."""
    return value_of(coopt.solve(instance))


def value_of(plan: Plan) -> float:
    """What a plan is worth that is the best there is; infinity where nothing fits."""
    if plan.objective.value is None:
        assert plan.status == "infeasible"
        assert plan.explanation
        return math.inf
    assert plan.status == "optimal"
    assert plan.objective.bound == pytest.approx(plan.objective.value, rel=1e-9, abs=1e-3)
    return plan.objective.value


def changed(instance: Instance, **tables: Any) -> Instance:
    """An instance with other tables, checked anew."""
    table = instance.model_dump(by_alias=True) | tables
    return Instance.model_validate(table)


@settings(max_examples=example_count(12))
@given(partitions())
def test_a_fleet_of_nothing_but_islands_is_a_partition(instance: Instance) -> None:
    assert value(changed(instance, robust={})) == pytest.approx(value(instance), rel=1e-12, abs=1e-6)


@settings(max_examples=example_count(12))
@given(fleets(phases=UP_TO_THREE, cores=True))
def test_one_site_with_power_enough_is_no_site(instance: Instance) -> None:
    assert value(changed(instance, site=[{"name": "here", "power_mw": 1.0}])) == value(changed(instance, robust={}))


@settings(max_examples=example_count(12))
@given(fleets(phases=(2, 3), sites=(1, 2), cores=True), st.sampled_from([0.7, 0.9, 0.99]))
def test_tighter_bounds_never_cost_less(instance: Instance, share: float) -> None:
    workloads = [
        one | {"max_iteration_time_s": one["max_iteration_time_s"] * share}
        for one in instance.model_dump(by_alias=True)["workload"]
    ]
    assert value(changed(instance, workload=workloads)) >= value(instance) * (1 - 1e-12)


@settings(max_examples=example_count(12))
@given(fleets(phases=(1, 2), sites=(2,), cores=True, doubts=True))
def test_names_and_the_order_of_workloads_and_sites_change_nothing(instance: Instance) -> None:
    table = instance.model_dump(by_alias=True)
    for one in (*table["workload"], *table["site"], *(w for phase in table["phase"] for w in phase["workloads"])):
        one["name"] = f"other {one['name']}"
    for key in ("workload", "site"):
        table[key] = table[key][::-1]
    assert value(Instance.model_validate(table)) == pytest.approx(value(instance), rel=1e-12, abs=1e-6)


@settings(max_examples=example_count(12))
@given(fleets(phases=(1, 2), sites=(0, 2), cores=True), st.sampled_from(["nic", "switch", "gpu"]))
def test_prices_that_are_known_leave_nothing_to_regret(instance: Instance, kind: str) -> None:
    known = {"prices": {kind: [2.0, 2.0]}}
    worst, regret = (changed(instance, robust=known | {"aim": aim}) for aim in ("worst-case", "regret"))
    assume(worst.limits.capex_usd is None)  # which holds at the prices of the instance where regret is minimised
    least = value(worst)
    assert value(regret) == (0.0 if math.isfinite(least) else math.inf)


def test_sizes_of_islands_do_not_bind_what_is_left_after_a_loss() -> None:
    """Three of four domains are left at most, and neither list has 4 or 12 GPUs."""
    least = value_of(agrees_with_enumeration(two(robust={"survive": ["domain"], "slower": 8.0})))
    assert math.isfinite(least)


def test_volume_prices_that_only_a_budget_sees_go_with_regret() -> None:
    discount = {"kind": "gpu", "item": "h100-sxm", "from": [8], "off": [0.1]}
    power = {"minimize": "power", "include": ["hb", "nic", "switch", "optics", "gpu"]}
    doubt = {"prices": {"gpu": [0.5, 1.5]}, "aim": "regret"}
    shared = {"mode": "partition", "discount": [discount]}
    instance = two(objective=power, sharing=shared, robust=doubt, limits={"capex_usd": 900_000.0})
    assert value_of(agrees_with_enumeration(instance)) == 0.0


def test_sites_that_an_earlier_search_looked_at_are_kept_for_other_prices_and_not_for_other_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    domain = {"name": "hb4", "size": 4, "gbyte_s": 450, "usd_per_gpu": 100, "w_per_gpu": 30, "racks": 1}
    common = {"model": SHAPE, "global_batch": 24, "gpus": [8, 16], "mapping": {"recompute": "none", "zero": 0}}
    slow = {"name": "slow", "max_iteration_time_s": 0.4, **common}
    changes: list[dict[str, Any]] = [
        {},
        {"network__hb_domains": [domain | {"usd_per_gpu": 900}]},
        {"network__hb_domains": [domain | {"gbyte_s": 1}]},
        {"workload": [slow]},
        {"workload": [slow | {"max_iteration_time_s": 0.25}]},
        {"margin": {"time": 0.5}},
        {},
    ]
    listed, calls, looked_into, values = ListedIslands(), [], [], []
    serve = standing._IslandSearch._serve
    monkeypatch.setattr(standing._IslandSearch, "_serve", lambda *given: calls.append(given) or serve(*given))
    for change in changes:
        asked, before = two(robust={}, **change), len(calls)
        again = value_of(solve(asked, listed=listed))
        looked_into.append(len(calls) > before)
        assert again == value(asked)
        values.append(again)
    assert looked_into == [True, False, True, True, True, True, False]
    assert len(set(values)) > 3


def test_hopeless_limits_have_no_plan() -> None:
    assert math.isinf(value_of(agrees_with_enumeration(two(robust={"survive": ["plane"]}, limits={"racks": 1.0}))))


def test_a_site_of_little_power_takes_the_dearer_part_that_draws_less() -> None:
    """Without power in the objective too."""
    nics = [
        {"name": name, "gbit_s": 400, "usd": usd, "w": w} for name, usd, w in (("hot", 1000, 500), ("cool", 2000, 20))
    ]
    shape = {"network__nics": nics, "network__fabrics": "rail-only", "sharing": {"mode": "partition"}}
    shape["objective"] = {"minimize": "capex", "include": ["gpu", "hb", "nic", "switch", "optics"]}

    def at(power_mw: float) -> tuple[str, float]:
        instance = ask(**shape, workload__0__gpus=64, site=[{"name": "here", "power_mw": power_mw, "pue": 1.0}])
        plan = coopt.solve(instance)
        assert coopt.verify(instance, plan).accepted
        (part,) = plan.parts
        assert part.design is not None
        assert part.design.fabric.nic is not None
        return part.design.fabric.nic.name, part.cost.power_w

    name, power_w = at(1.0)
    assert name == "hot"
    assert at(power_w * 0.999e-6)[0] == "cool"


def test_a_network_that_serves_all_phases_alike_never_changes() -> None:
    """It is bought in the cheap phase before it is needed, and takes no labour."""
    phases = [
        {"year": 0, "gpus": 24, "workloads": ["large"], "price": {"gpu": 0.5, "nic": 0.5}},
        {"year": 2, "gpus": 32, "retrofit_usd_per_link": 5000.0},
    ]
    instance = two(phase=phases)
    plan = coopt.solve(instance)
    large = [part.design for part in plan.parts if part.name.startswith("large")]
    assert len(large) == 2
    assert large[0] == large[1]
    assert value_of(agrees_with_enumeration(instance)) == plan.objective.value
    assert coopt.verify(instance, plan).accepted
