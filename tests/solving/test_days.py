"""The cheapest design that is done in time with its interruptions: by enumeration, and as everything moves."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

import coopt
from coopt.instance.base import InstanceError
from coopt.instance.schema import Instance
from coopt.report.faults import faults_report
from coopt.report.plan import plan_screen
from coopt.report.words import rendered
from coopt.solving.answer import solve
from coopt.solving.without_parts import plan_faults
from coopt.verifier.audit import verify
from tests.conftest import ask, question, switch, value, value_of
from tests.solving.interrupted import ITERATIONS, in_days


def days(train_days: float, **changes: Any) -> Instance:
    """A small question in days."""
    table = question(**{"availability": {"rates": "llama-3"}} | changes)
    table["workload"][0] = in_days(table["workload"][0], 1.0) | {"train_days": train_days}
    del table["workload"][0]["max_iteration_time_s"]
    return Instance.model_validate(table)


HGX: dict[str, Any] = {"network__hb_domains": "hgx-h100-8", "network__fabrics": "rail-only"}


def fastest_days(**changes: Any) -> float:
    """What the fastest plan takes without interruptions (days)."""
    time_s = solve(days(40.0, **changes), objective="time").workloads[0].iteration_time_s
    return time_s * ITERATIONS / 86400


def test_fewer_days_take_spares_and_then_another_network_and_then_nothing_does():
    costs, spares = [], []
    least = fastest_days()
    for factor in (2.0, 1.1, 1.05, 1.03, 1.02, 1.01, 1.005, 1.001, 0.5):
        plan = solve(days(least * factor))
        costs.append(value_of(plan))
        spares.append(plan.design.spare_domains if plan.design else None)
    assert costs == sorted(costs)
    assert 0 in spares
    assert any(spares)
    assert math.isinf(costs[-1])


def test_a_network_that_interruptions_rule_out_hides_no_dearer_one():
    """All that costs little is in time but for its failures, whatever stands by."""
    changes: dict[str, Any] = {
        "cluster__gpus": 128,
        "network__hb_domains": ["hgx-h100-8", "h100-hb16", "h100-hb32"],
        "network__switches": [switch(8, 5000), switch(16, 11000), switch(32, 30000)],
    }
    fastest = solve(days(20.0, **changes)).workloads[0].iteration_time_s * ITERATIONS / 86400
    tight = days(fastest * 1.001, **changes)
    plan = solve(tight)
    assert plan.status == "optimal"
    assert plan.objective.value == solve(tight, top=2).objective.value
    assert verify(tight, plan).accepted


def test_spare_domains_are_billed_with_gpus_and_nics_and_take_racks():
    with_one = solve(days(5.0, availability={"rates": "llama-3", "spare_domains": 1}))
    without = solve(days(5.0, availability={"rates": "llama-3", "spare_domains": 0}))
    assert with_one.design.spare_gpus == without.design.spare_gpus + with_one.design.hb_domain.size
    counts = [{(i.kind, i.item): i.count for i in plan.cost.items} for plan in (with_one, without)]
    nic = ("nic", "cx7-400g")
    assert counts[0][nic] - counts[1][nic] == with_one.design.hb_domain.size
    optics = ("optics", "400g-199")
    assert counts[0][optics] == counts[1][optics]


def test_a_bound_on_an_iteration_is_not_one_on_days():
    plan, bare = solve(ask(availability={"rates": "llama-3"})), solve(ask())
    assert plan.objective.value == bare.objective.value
    assert plan.workloads[0].bound_s == 1.0
    assert plan.workloads[0].uptime is not None


def test_parts_that_always_fail_leave_no_design():
    for rest in ({}, {"confidence": 0.9}):
        rates = {"name": "broken", "gpu": {"per_year": 1000.0}, "software": {"per_year": 1000.0}}
        asked = {"rates": rates, "restart_s": 1e6, "checkpoint_interval_s": 1e7, "repair_hours": 0.0} | rest
        instance = days(1e6, availability=asked)
        plan = solve(instance)
        assert plan.status == "infeasible"
        assert verify(instance, plan).accepted


def test_surer_days_cost_no_less():
    least = solve(days(20.0)).workloads[0].iteration_time_s * ITERATIONS / 86400
    sure = [{"rates": "llama-3"} | ({"confidence": p} if p else {}) for p in (None, 0.5, 0.9, 0.99)]
    for factor in (1.03, 1.02, 1.005):
        costs = [value(days(least * factor, availability=asked)) for asked in sure]
        assert costs == sorted(costs)
        assert costs[0] == costs[1]


def sure_days(train_days: float | None = None) -> Instance:
    """Days to be kept with a probability and without spares; hardly more than the mean ones of the fastest plan."""
    sure: dict[str, Any] = {"availability": {"rates": "llama-3", "spare_domains": 0, "confidence": 0.95}, **HGX}
    if train_days is None:
        (run,) = solve(days(40.0, objective={"minimize": "time"}, **sure)).workloads
        train_days = run.elapsed_s(run.uptime.goodput) * ITERATIONS / 86400 * 1.001
    return days(train_days, **sure)


def test_what_is_missing_of_days_are_those_kept_with_the_probability_asked_for() -> None:
    """Not the mean ones, which may be within the bound."""
    instance = sure_days()
    plan = solve(instance)
    assert plan.status == "infeasible"
    (said,) = plan.explanation
    assert "kept with a probability of 0.95" in said
    missing = float(re.search(r"([\d.]+) days for 'w'", said)[1])  # type: ignore[index]
    assert solve(sure_days(missing * (1 + 1e-4))).status == "optimal"
    assert solve(sure_days(missing * (1 - 1e-3)), reasons=False).status == "infeasible"


def test_days_without_a_bound_are_those_without_failures_and_on_average() -> None:
    table = question(availability={"rates": "llama-3"}, objective={"minimize": "usd_per_token"})
    table["workload"][0]["train_tokens"] = 1e12
    instance = Instance.model_validate(table)
    plan = solve(instance)
    (run,) = plan.workloads
    said = " ".join(rendered(plan_screen(instance, plan)).split())
    average = instance.workload[0].duration(run.elapsed_s(run.uptime.goodput))
    assert f"tokens if nothing fails, {average} on average" in said
    assert "per million tokens if nothing fails; proven optimal" in said


def test_years_of_training_are_told_first_and_bound_nothing():
    """1e15 tokens at 131,072 an iteration are 7.6e9 iterations."""
    table = question()
    table["workload"][0]["train_tokens"] = 1e15
    instance = Instance.model_validate(table)
    plan = solve(instance)
    years = instance.workload[0].iterations * plan.workloads[0].iteration_time_s / (365 * 86400)
    assert plan.objective.value == solve(ask()).objective.value
    said = rendered(plan_screen(instance, plan)).splitlines()
    assert f"Training w takes {years:.3g} years for 1 quadrillion tokens." in said[:3]


def test_whoever_times_a_plan_asks_for_what_interruptions_leave():
    """A NIC less is in time if training is never interrupted, and late with its interruptions."""
    loose = days(5.0)
    slower = {fault.part: fault.workloads[0].iteration_time_s for fault in plan_faults(loose, solve(loose)).faults}
    instance = days(slower["NIC"] * 1.01 * ITERATIONS / 86400)
    plan = solve(instance)
    (run,) = plan.workloads
    assert run.bound_s < slower["NIC"] < instance.workload[0].bound_s
    faults = {fault.part: fault.workloads[0] for fault in plan_faults(instance, plan).faults}
    assert (faults["NIC"].iteration_time_s, faults["NIC"].within_bound) == (slower["NIC"], False)
    assert coopt.route(instance, plan).workloads[0].bound_s == run.bound_s
    assert coopt.simulate(instance, plan).workloads[0].bound_s == run.bound_s
    (ranked,) = coopt.mappings(instance, plan, most=1).workloads
    assert (ranked.bound_s, ranked.mappings[0].bound_s) == (run.bound_s, run.bound_s)


def test_faults_tell_of_interruptions():
    instance = days(5.0)
    (one,) = plan_faults(instance, solve(instance)).interrupted
    assert 0 < one.uptime.goodput < 1
    assert one.replicas_alone <= one.replicas_with_spares


@pytest.mark.parametrize(("spares", "says"), [(0, "Spares: none."), (2, "Spares: 2 domains standing by.")])
def test_faults_tell_what_stands_by(spares: int, says: str) -> None:
    instance = days(5.0, availability={"rates": "llama-3", "spare_domains": spares})
    found = plan_faults(instance, solve(instance))
    gpu = next(fault for fault in found.faults if fault.part == "GPU")
    assert ("stands by" in gpu.remedy) == bool(spares)
    assert says in " ".join(rendered(faults_report(found)).split())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"availability": {"rates": "nothing"}}, "no failure rates of this name"),
        ({"availability": {"rates": "llama-3", "spare_domains": -1}}, "spare_domains"),
        ({"availability": {"rates": "llama-3", "checkpoint_s": 0}}, "checkpoint_s"),
        (
            {"availability": {"rates": {"extends": "llama-3", "gpu": {"per_year": 9.0}}}},
            "needs low <= per_year <= high",
        ),
        (
            {"availability": {"rates": "llama-3"}, "robust": {"survive": "nic"}},
            r"availability: does not go with robust\.survive",
        ),
        (
            {
                "availability": {"rates": {"extends": "llama-3", "gpus_per_host": 6}},
                "network__gpus_per_nic": [1, 4],
                "network__hb_domains": "hgx-h100-8",
            },
            r"gpus_per_nic = 1, 4: GPUs that fail with their NIC are of one host.*= 6",
        ),
    ],
)
def test_bad_terms_are_refused(changes, words):
    with pytest.raises((InstanceError, ValueError), match=words):
        ask(**changes)


def test_bounds_are_certified_with_interruptions_and_lies_about_them_are_not():
    least = solve(days(20.0)).workloads[0].iteration_time_s * ITERATIONS / 86400
    instance = days(least * 1.02)
    plan = solve(instance)
    value = plan.objective.value
    found = coopt.certify(instance, plan)
    assert (found.ok, float(found.bound_proven or 0)) == (True, value)
    claim = plan.objective.model_copy(update={"bound": value * 1.01, "value": value * 1.01})
    assert not coopt.certify(instance, plan.model_copy(update={"objective": claim})).ok


def test_explanations_tell_what_days_bind_and_that_more_of_them_cost_less():
    rails = {"network__fabrics": "rail-only"}
    least = solve(days(20.0, **rails)).workloads[0].iteration_time_s * ITERATIONS / 86400
    instance = days(least * 1.02, **rails)
    told = coopt.explain(instance)
    (bound,) = [one for one in told.bounds if one.limit == "workload[0].train_days"]
    assert told.status == "optimal"
    assert bound.binds
    assert least < bound.used <= bound.bound
    assert bound.without.value == solve(days(1e4, **rails)).objective.value
