"""What a given plan amounts to: its own numbers on its own instance, and those that follow on another one."""

import json
import re

import pytest

import coopt
from coopt.instance.reserves import Availability
from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError
from coopt.instance.variants import with_scaled_bounds
from coopt.plan.contents import running
from coopt.plan.store import PlanEvaluation
from coopt.report.plan import given_plan_report
from coopt.report.words import rendered
from tests.conftest import ask, question
from tests.kinds import ISLANDS, solved

KINDS = ("shared", "turns", "partition", "phased", "sites", "worst-case", "regret", "direct", "switched")


def figure(found: PlanEvaluation, name: str) -> list[float]:
    return [one.value for one in found.figures if one.name == name]


def at_price(instance: Instance, factor: float) -> Instance:
    """The instance with switches at other prices."""
    switches = tuple(one.model_copy(update={"usd": one.usd * factor}) for one in instance.network.switches)
    return instance.model_copy(update={"network": instance.network.model_copy(update={"switches": switches})})


@pytest.mark.parametrize("kind", KINDS)
def test_a_plan_on_its_own_instance_amounts_to_what_it_says(kind: str) -> None:
    instance, plan = solved(kind)
    found = coopt.evaluate_plan(instance, plan)
    assert found.objective == pytest.approx(plan.objective.value, rel=1e-9)
    assert figure(found, "purchase") == pytest.approx([plan.cost.capex_usd])
    assert figure(found, "power") == pytest.approx([plan.cost.power_w])
    runs = [one.run for one in running(plan)]
    assert figure(found, "iteration time") == pytest.approx([run.iteration_time_s for run in runs])
    assert figure(found, "memory") == pytest.approx([run.memory_gib for run in runs])
    assert found.limits
    assert all(check.ok for check in found.limits)
    assert "meets every bound" in " ".join(rendered(given_plan_report(instance, plan, found)).split())


def test_a_regret_is_told_beside_what_the_plan_costs() -> None:
    instance, plan = solved("regret")
    found = coopt.evaluate_plan(instance, plan)
    assert found.value == plan.cost.capex_usd > 0
    shown = " ".join(rendered(given_plan_report(instance, plan, found)).split())
    assert f", ${plan.cost.capex_usd / 1000:.1f} k, a regret" in shown
    dearer = at_price(instance, 3.0)
    other = coopt.evaluate_plan(dearer, plan)
    assert (other.value > found.value, other.objective) == (True, None)
    assert "regret of this plan is not known" in rendered(given_plan_report(dearer, plan, other))


@pytest.mark.parametrize("kind", ["turns", "partition", "phased", "fleet", "sites"])
def test_times_are_held_against_the_bounds_of_their_own_phase_and_site(kind: str) -> None:
    instance, plan = solved(kind)
    found = coopt.evaluate_plan(instance, plan)
    times = {one.of: one.value for one in found.figures if one.name == "iteration time"}
    limits = {check.name: (check.value, check.limit) for check in found.limits}
    for one in running(plan):
        assert times[one.label] == pytest.approx(one.run.iteration_time_s)
        expected = (one.run.iteration_time_s, one.run.bound_s)
        assert limits[f"time, {one.label}"] == pytest.approx(expected), one.label
    assert kind != "fleet" or len({one.run.bound_s for one in running(plan) if one.run.name == "first"}) == 2


@pytest.mark.parametrize("kind", ["shared", "partition", "sites", "worst-case", "switched"])
def test_dearer_switches_cost_what_the_plan_has_of_them(kind: str) -> None:
    instance, plan = solved(kind)
    names = {switch.name for switch in instance.network.switches}
    switches = sum(item.usd for item in plan.cost.items if item.item in names)
    assert switches > 0
    found = coopt.evaluate_plan(at_price(instance, 3.0), plan)
    assert figure(found, "purchase") == pytest.approx([plan.cost.capex_usd + 2 * switches])


@pytest.mark.parametrize("kind", ["partition", "phased", "sites", "worst-case", "direct"])
def test_bounds_that_the_plan_misses_are_reported(kind: str) -> None:
    instance, plan = solved(kind)
    slowest = max(one.run.iteration_time_s / one.run.bound_s for one in running(plan))
    found = coopt.evaluate_plan(with_scaled_bounds(instance, slowest * 0.9), plan)
    assert found.value == pytest.approx(plan.objective.value, rel=1e-9)
    missed = [check for check in found.limits if not check.ok]
    assert any(check.name.startswith("time, ") and check.value > check.limit for check in missed)
    assert re.search("misses .* time, ", " ".join(rendered(given_plan_report(instance, plan, found)).split()))


def test_a_fleet_in_phases_at_two_sites_is_worked_out() -> None:
    instance = Instance.model_validate(
        question(
            **ISLANDS
            | {
                "phase": [{"year": 2026, "gpus": 32, "workloads": "first"}, {"year": 2028, "gpus": 64}],
                "site": [{"name": "east", "power_mw": 1.0}, {"name": "west", "power_mw": 0.5}],
                "objective": {"minimize": "tco", "include": ["gpu", "hb", "nic", "switch", "optics"]},
                "limits": {"power_mw": 1.0},
            }
        )
    )
    plan = coopt.solve(instance)
    found = coopt.evaluate_plan(instance, plan)
    assert found.value == pytest.approx(plan.objective.value, rel=1e-9)
    assert [one.of for one in found.figures if one.name == "iteration time"] == [one.label for one in running(plan)]
    assert all(check.ok for check in found.limits)
    missed = coopt.evaluate_plan(with_scaled_bounds(instance, 0.5), plan)
    assert {check.name for check in missed.limits if not check.ok} == {
        f"time, {one.label}" for one in running(plan) if one.run.iteration_time_s > one.run.bound_s / 2
    }


def test_memory_and_limits_are_those_of_the_instance() -> None:
    instance, plan = solved("partition")
    gpu = instance.cluster.gpu.model_copy(update={"hbm_gb": 20.0})
    small = instance.model_copy(
        update={
            "cluster": instance.cluster.model_copy(update={"gpu": gpu}),
            "limits": instance.limits.model_copy(update={"racks": 1.0}),
        }
    )
    missed = {check.name for check in coopt.evaluate_plan(small, plan).limits if not check.ok}
    assert missed == {"memory, first", "memory, second", "racks"}


def test_what_the_instance_does_not_allow_is_refused() -> None:
    instance, plan = solved("partition")
    switches = tuple(one for one in instance.network.switches if one.name != "8-port")
    other = instance.model_copy(update={"network": instance.network.model_copy(update={"switches": switches})})
    with pytest.raises(InstanceError, match=r"instance allows \(switch: "):
        coopt.evaluate_plan(other, plan)


def test_purchases_of_phases_follow_prices() -> None:
    instance, plan = solved("phased")
    with pytest.raises(InstanceError, match="prices and years"):
        coopt.evaluate_plan(at_price(instance, 2.0), plan)


def test_a_plan_that_builds_nothing_is_refused() -> None:
    instance, _ = solved("phased")
    none = coopt.solve(with_scaled_bounds(instance, 1e-3))
    with pytest.raises(InstanceError, match="'infeasible' and builds nothing"):
        coopt.evaluate_plan(instance, none)


def test_an_evaluation_goes_through_json() -> None:
    instance, plan = solved("sites")
    found = coopt.evaluate_plan(instance, plan)
    assert PlanEvaluation.model_validate(json.loads(found.model_dump_json())) == found
    assert {one.of for one in found.figures if one.name == "facility power"} == {"Site 'east'", "Site 'west'"}


def test_collectives_of_another_kind_change_times_alone() -> None:
    """What collectives run by follows from the decisions of a plan, as its times do."""
    changes = {
        "workload__0__mapping": {"tp": 1, "pp": 1, "dp": 64, "zero": 1},
        "workload__0__max_iteration_time_s": 5.0,
    }
    by_levels, fastest = (
        Instance.model_validate(question(**changes, workload__0__options={"collectives": how}))
        for how in ("levels", "fastest")
    )
    plan = coopt.solve(fastest)
    (quick,), (slow,) = (figure(coopt.evaluate_plan(one, plan), "iteration time") for one in (fastest, by_levels))
    assert quick == pytest.approx(plan.workloads[0].iteration_time_s)
    assert slow > quick


@pytest.mark.parametrize("kind", ["shared", "direct", "partition", "fleet"])
def test_a_bill_without_parts_is_no_plan_to_work_out(kind: str) -> None:
    instance, plan = solved(kind)
    with pytest.raises(InstanceError, match="parts and workloads"):
        coopt.evaluate_plan(instance, plan.model_copy(update={"parts": (), "workloads": (), "design": None}))


def test_a_plan_that_counts_no_failures_is_held_to_days_with_them() -> None:
    days = {"max_iteration_time_s": None, "train_days": 30.0, "train_tokens": 1e11}
    calm = ask(workload=[ask().workload[0].model_dump(mode="json") | days])
    stormy = calm.model_copy(update={"availability": Availability(rates="llama-3")})
    found = coopt.evaluate_plan(stormy, coopt.solve(calm))
    (time,) = (check for check in found.limits if check.name.startswith("time"))
    (before,) = (check for check in coopt.evaluate_plan(calm, coopt.solve(calm)).limits if check.name == time.name)
    assert time.value == before.value
    assert 0.5 * before.limit < time.limit < before.limit
    again = coopt.evaluate_plan(calm, coopt.solve(stormy))
    assert next(check.limit for check in again.limits if check.name == time.name) == before.limit
