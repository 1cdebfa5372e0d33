"""Plans that are done in time with their interruptions: one network, fleets, and the one design that is left."""

import math
import re
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import coopt
from coopt.instance.schema import Instance
from coopt.instance.variants import with_days_in_turn, with_scaled_bounds
from coopt.plan.parts import Design
from coopt.plan.store import plan_checks
from coopt.report.faults import faults_report
from coopt.report.screen import plan_screen
from coopt.report.words import rendered
from coopt.solving.answer import solve
from coopt.solving.without_parts import plan_faults
from coopt.verifier.audit import verify
from tests.conftest import ask, question, value, value_of
from tests.solving.fleets import two
from tests.solving.interrupted import ITERATIONS, in_days
from tests.solving.test_model_files import check


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


def dated(start: Any, by: Any, **workload: Any) -> dict[str, Any]:
    """A table that gives a day by which its workload is trained."""
    table = question(cluster__start=start)
    table["workload"][0] = in_days(table["workload"][0], 1.0) | {"by": by} | workload
    del table["workload"][0]["max_iteration_time_s"], table["workload"][0]["train_days"]
    return table


def test_a_day_by_which_training_ends_is_a_bound_in_days():
    asked = Instance.model_validate(dated(date(2027, 1, 25), date(2027, 4, 1)))
    (workload,) = asked.workload
    assert workload.train_days == 66.0
    assert workload.end(workload.required_s) == "1 April 2027"
    last = Instance.model_validate(dated(date(9999, 12, 1), date(9999, 12, 31))).workload[0]
    assert (last.end(last.required_s), last.end(2 * last.required_s)) == ("31 December 9999", "")
    assert Instance.model_validate(asked.model_dump(mode="json", by_alias=True)) == asked
    assert value_of(solve(asked)) == value_of(solve(days(66.0, availability=None)))


@pytest.mark.parametrize(
    ("start", "by", "needs"),
    [
        (date(2027, 1, 25), date(2027, 1, 25), "after cluster.start = 2027-01-25"),
        (None, date(2027, 1, 25), "needs cluster.start"),
        (date(2027, 1, 25), "", "by = '', .* 2027-01-15"),
        (date(2027, 1, 25), "2027-W05-1", "2027-01-15"),
        (5, date(2027, 1, 25), "2027-01-15"),
    ],
)
def test_days_that_bound_nothing_are_refused(start: Any, by: Any, needs: str):
    with pytest.raises(ValidationError, match=needs):
        Instance.model_validate(dated(start, by))


def test_fewer_days_take_spares_and_then_another_network_and_then_nothing_does():
    costs, spares = [], []
    least = fastest_days()
    bare = solve(ask(availability={"rates": "llama-3"}))  # a bound on an iteration is not one on days
    assert (bare.objective.value, bare.workloads[0].bound_s) == (value(ask()), 1.0)
    for factor in (2.0, 1.1, 1.05, 1.03, 1.02, 1.01, 1.005, 1.001, 0.5):
        plan = solve(days(least * factor))
        costs.append(value_of(plan))
        spares.append(plan.design.spare_domains if plan.design else None)
    assert costs == sorted(costs)
    assert 0 in spares
    assert any(spares)
    assert math.isinf(costs[-1])


def test_spare_domains_are_billed_with_gpus_and_nics_and_take_racks():
    with_one = solve(days(5.0, availability={"rates": "llama-3", "spare_domains": 1}))
    without = solve(days(5.0, availability={"rates": "llama-3", "spare_domains": 0}))
    assert with_one.design.spare_gpus == without.design.spare_gpus + with_one.design.hb_domain.size
    counts = [{(i.kind, i.item): i.count for i in plan.cost.items} for plan in (with_one, without)]
    nic = ("nic", "cx7-400g")
    assert counts[0][nic] - counts[1][nic] == with_one.design.hb_domain.size
    optics = ("optics", "400g-199")
    assert counts[0][optics] == counts[1][optics]


def test_parts_that_always_fail_leave_no_design():
    for rest in ({}, {"confidence": 0.9}):
        rates = {"name": "broken", "gpu": {"per_year": 1000.0}, "software": {"per_year": 1000.0}}
        asked = {"rates": rates, "restart_s": 1e6, "checkpoint_interval_s": 1e7, "repair_hours": 0.0} | rest
        instance = days(1e6, availability=asked, **HGX)
        plan = solve(instance)
        assert plan.status == "infeasible"
        assert verify(instance, plan).accepted


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
    assert "probability of 0.95" in said
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
    assert f"nothing fails, {average} on average" in said
    assert "if nothing fails; proven" in said


def test_years_of_training_are_told_first_and_bound_nothing():
    """1e15 tokens at 131,072 an iteration are 7.6e9 iterations."""
    table = question()
    table["workload"][0]["train_tokens"] = 1e15
    instance = Instance.model_validate(table)
    plan = solve(instance)
    years = instance.workload[0].iterations * plan.workloads[0].iteration_time_s / (365 * 86400)
    assert plan.objective.value == solve(ask()).objective.value
    said = rendered(plan_screen(instance, plan)).splitlines()
    assert any(f"{years:.3g} years" in text for text in said[:3])


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


@pytest.mark.parametrize(("spares", "says"), [(0, "Spares: none."), (2, "Spares: 2 domains standing by.")])
def test_faults_tell_what_stands_by(spares: int, says: str) -> None:
    instance = days(5.0, availability={"rates": "llama-3", "spare_domains": spares})
    found = plan_faults(instance, solve(instance))
    (one,) = found.interrupted
    assert 0 < one.uptime.goodput < 1
    assert one.replicas_alone <= one.replicas_with_spares
    gpu = next(fault for fault in found.faults if fault.part == "GPU")
    assert ("spare domain has" in gpu.remedy) == bool(spares)
    assert says in " ".join(rendered(faults_report(found)).split())


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


OFTEN = {"rates": {"name": "often", "gpu": {"per_year": 5.0}, "optic": {"per_year": 20.0}}, "repair_hours": 24.0}
GROWING = [{"year": 0, "gpus": 24}, {"year": 2, "gpus": 32}]


def fleet(longer: float, **changes: Any) -> Instance:
    """Two workloads in days, `longer` times what the fastest networks take without failures."""
    table = two(**changes).model_dump(by_alias=True)
    table["workload"] = [in_days(one, 0.05 * longer * one["global_batch"] / 8) for one in table["workload"]]
    return Instance.model_validate(table | {"availability": OFTEN})


def test_each_network_has_the_spares_that_its_own_days_take() -> None:
    plan = coopt.solve(fleet(0.4))
    spares = {part.name: part.design.spare_domains for part in plan.parts if part.design}
    assert spares == {"large": 0, "small": 1}
    goodput = {part.name: run.uptime.goodput for part in plan.parts for run in part.workloads if run.uptime}
    assert goodput["large"] < goodput["small"]
    assert coopt.verify(fleet(0.4), plan).accepted


def test_a_bound_of_a_fleet_with_interruptions_takes_a_proof() -> None:
    instance = fleet(0.4)
    plan = coopt.solve(instance)
    proof = coopt.prove(instance, plan)
    claim = plan.objective.model_copy(update={"bound": 1.01 * (plan.objective.value or 0.0)})
    assert coopt.certify(instance, plan, proof).ok
    assert not coopt.certify(instance, plan).ok
    assert not coopt.certify(instance, plan.model_copy(update={"objective": claim}), proof).ok


NEVER = {"rates": {"name": "never"}}


@pytest.mark.parametrize("changes", [{"phase": GROWING}, {"robust": {"prices": {"gpu": [0.5, 2.0]}}}])
def test_one_network_that_grows_or_is_in_doubt_counts_failures_too(changes: dict[str, Any]) -> None:
    """Failures that never happen change nothing; others cost something, and each phase says what they do."""
    table = fleet(0.2, **changes).model_dump(by_alias=True)
    table |= {"sharing": {}, "workload": [table["workload"][0] | {"gpus": None}]}
    plain, never, often = (Instance.model_validate(table | {"availability": one}) for one in (None, NEVER, OFTEN))
    plan = coopt.solve(often)
    assert value(plain) == value(never) < value(often)
    assert all(run.uptime for part in plan.parts for run in part.workloads)
    assert coopt.verify(often, plan).accepted


def test_the_file_of_the_program_has_the_optimum_with_failures(tmp_path: Path) -> None:
    instance = fleet(0.4)
    plan = coopt.solve(instance)
    free = coopt.solve(instance.model_copy(update={"availability": None}))
    assert plan.objective.value != free.objective.value
    check(instance, plan, "lp", tmp_path)


def test_faults_and_routes_of_a_part_know_its_spares() -> None:
    instance = fleet(0.4, phase=GROWING)
    plan = coopt.solve(instance)
    for part in plan.parts:
        (one,), (run,) = plan_faults(instance, plan, part=part.name).interrupted, part.workloads
        assert one.uptime == run.uptime
        assert coopt.route(instance, plan, part=part.name).workloads[0].bound_s == run.bound_s


def interrupted(spares: int | list[int] | None, train_days: float) -> Instance:
    """Sixteen GPUs of two domains that fail so often that spares decide, with one design and mapping."""
    mapping: dict[str, Any] = {"tp": 4, "pp": 1, "dp": 4, "micro_batch": 1, "interleave": 1, "recompute": "none"}
    mapping |= {"sequence_parallel": False, "zero": 1, "offload_percent": 0, "outermost": "pp"}
    domain = {"name": "hb12", "size": 12, "gbyte_s": 900.0, "usd_per_gpu": 5000.0, "w_per_gpu": 50.0, "racks": 0.25}
    counts = {} if spares is None else {"spare_domains": spares}
    return ask(
        cluster={"gpu": {"extends": "h100-sxm", "usd": 100.0}, "gpus": 16},
        workload=[
            {"name": "w", "model": "gpt-22b", "global_batch": 64, "mapping": mapping}
            | {"train_tokens": 1e9, "train_days": train_days}
        ],
        network__hb_domains=domain, network__fabrics="rail-only", network__switches="64x400g", network__max_tiers=1,
        network__oversubscription=1,
        availability={"rates": {"name": "mine", "gpu": {"per_year": 100.0}}, **counts},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("spares", "factor", "standing_by"),
    [(1, 2.0, 1), ([0, 1, 2], 2.0, 0), ([0, 1, 2], 1.0, 1), ([2, 3], 1.0, 2), ([0, 3], 1.0, 3), (None, 1.0, 1)],
)
def test_evaluating_the_one_design_gives_the_spares_of_its_plan(spares: Any, factor: float, standing_by: int) -> None:
    unbound = coopt.evaluate(interrupted(1, 1000.0)).workloads[0]
    assert unbound.uptime is not None
    # as many days as one domain that stands by makes possible, and hardly more
    days = unbound.iteration_time_s / unbound.bound_s * 1000.0 * factor * 1.001
    instance = interrupted(spares, days)
    plan, found = coopt.solve(instance), coopt.evaluate(instance)
    assert isinstance(plan.design, Design)
    assert found.design == plan.design == coopt.mappings(instance).design
    assert found.design.spare_domains == standing_by
    assert found.cost.capex_usd == value_of(plan)
    assert found.workloads == plan.workloads
    assert all(limit.ok for limit in found.limits)


def test_the_bill_without_a_plan_has_the_spares_that_are_asked_for() -> None:
    short = coopt.evaluate(interrupted([1, 2], 0.001))  # the fewest stand by where none are enough
    assert (short.design.spare_domains, all(limit.ok for limit in short.limits)) == (1, False)
    (with_two, with_none) = (coopt.bom(interrupted(spares, 1000.0)) for spares in (2, 0))
    counts = [{item.item: item.count for item in bill.items}["hb12"] for bill in (with_two, with_none)]
    assert counts == [48, 24]


def turns(total: float, **changes: Any) -> dict[str, Any]:
    """Two workloads with tokens and no bound of their own, which train in so many days one after the other."""
    table = question(limits={"train_days_total": total}, network__fabrics=["rail-only", "clos"])
    (one,) = table["workload"]
    bare = in_days({**one, "train_days": None}, 1.0) | {"train_days": None}
    del bare["max_iteration_time_s"]
    return table | {"workload": [bare, bare | {"name": "second"} | changes]}


def test_days_in_turn_bind_are_told_and_are_checked() -> None:
    loose = Instance.model_validate(turns(1e6))
    plan = solve(loose, objective="capex")
    (days_taken,) = [one.value for one in plan_checks(loose, plan) if one.name == "total days of training"]
    runs = zip(loose.workload, plan.workloads, strict=True)
    assert days_taken == pytest.approx(sum(one.days(run.iteration_time_s) for one, run in runs), rel=1e-12)
    tight = Instance.model_validate(turns(days_taken * 0.99))
    faster = solve(tight)
    assert value_of(faster) > value_of(plan)
    assert "total days of training" in rendered(plan_screen(tight, faster))
    (bound,) = [one for one in coopt.explain(tight, faster).bounds if one.limit == "limits.train_days_total"]
    assert (bound.binds, bound.without.value) == (True, value_of(plan))
    lie = plan.model_copy(update={"instance": faster.instance})
    assert [one.name for one in verify(tight, lie).failures if one.name.startswith("limit")] == ["limit-train"]
    (why,) = solve(Instance.model_validate(turns(days_taken / 100))).explanation[:1]
    assert "limits.train_days_total" in why


def test_days_of_ones_own_stay_whatever_all_may_take() -> None:
    instance = Instance.model_validate(turns(9.0, train_days=9.0))
    assert [one.takes_turns for one in instance.workload] == [True, False]
    assert [one.train_days for one in with_days_in_turn(instance, 20.0).workload] == [20.0, 9.0]
    table = instance.model_dump(by_alias=True)
    assert Instance.model_validate(table) == instance
    table["limits"]["train_days_total"] = 20.0
    assert [one.train_days for one in Instance.model_validate(table).workload] == [20.0, 9.0]


def test_days_of_ones_own_are_told_beside_those_of_all_that_are_as_many() -> None:
    shipped = coopt.load("instances/tiny-64.toml").model_dump(by_alias=True)
    (one,) = solve(Instance.model_validate(shipped), objective="time").workloads
    workload = {key: each for key, each in shipped["workload"][0].items() if key != "max_iteration_time_s"}
    tokens = 60 * 86400 / one.iteration_time_s * 64 * 2048
    runs = [
        {"name": "a", "train_tokens": 0.985 * tokens, "train_days": 60},
        {"name": "b", "train_tokens": 0.01 * tokens},
    ]
    table = shipped | {"workload": [workload | run for run in runs], "limits": {"train_days_total": 60}}
    failing = {"availability": {"rates": "llama-3", "restart_s": 3600, "spare_domains": 0}}
    (told,) = solve(Instance.model_validate(table | failing)).explanation
    days_of_a, days_of_all = re.search(r"with (\S+) days for 'a' and (\S+) days for all workloads", told).groups()
    assert 60 < float(days_of_a) == float(days_of_all)
    longer = {"limits": {"train_days_total": float(days_of_all)}}
    both_longer = longer | {"workload": [table["workload"][0] | {"train_days": float(days_of_a)}, table["workload"][1]]}
    answers = [solve(Instance.model_validate(table | failing | one)).status for one in (longer, both_longer)]
    assert answers == ["infeasible", "optimal"]


def test_bounds_that_a_front_moves_are_of_ones_own_where_others_stay() -> None:
    instance = Instance.model_validate(turns(9.0))
    points = [with_scaled_bounds(instance, pace, ["second"]) for pace in (0.5, 0.7)]
    assert len({point.sha256 for point in points} | {instance.sha256}) == 3
    for point in points:
        assert [one.takes_turns for one in point.workload] == [True, False]
        written = Instance.model_validate(point.model_dump(by_alias=True))
        assert [one.train_days for one in written.workload] == [one.train_days for one in point.workload]
    together = with_scaled_bounds(instance, 0.5)
    assert [(one.takes_turns, one.train_days) for one in together.workload] == [(True, 4.5)] * 2


@pytest.mark.parametrize(
    ("changes", "needs"),
    [
        ({"workload": turns(9)["workload"][:1]}, "there is only one, needs its train_days"),
        ({"sharing": {"mode": "partition"}}, "not supported with sharing.mode = 'partition'"),
        ({"availability": {"rates": "llama-3", "confidence": 0.9}}, "not supported with availability.confidence"),
        (turns(9, train_tokens=None), r"workload\[1\].train_tokens: is missing"),
        (turns(9, max_iteration_time_s=2.0), r"workload\[1\].max_iteration_time_s: limits.train_days_total = 9"),
        (turns(9, train_days=10.0), r"train_days = 10: is more than limits.train_days_total = 9"),
        (
            turns(9, by="2027-01-11") | {"cluster": question()["cluster"] | {"start": "2027-01-01"}},
            r"by = 2027-01-11, 10 days after cluster.start: is more than limits.train_days_total = 9",
        ),
        ({"limits": {"train_days_total": -1}}, "limits.train_days_total"),
    ],
)
def test_days_in_turn_that_add_up_to_nothing_are_refused(changes: dict[str, Any], needs: str) -> None:
    with pytest.raises(ValidationError, match=needs) as refused:
        Instance.model_validate(turns(9) | changes)
    assert refused.value.error_count() == 1
    assert "\n" not in str(refused.value.errors()[0]["msg"])


def test_a_day_is_no_bound_of_phases_that_each_train_anew() -> None:
    table = fleet(0.4, phase=GROWING).model_dump(by_alias=True)
    (workload,) = table["workload"][:1]
    days = {"max_iteration_time_s": None, "train_days": None, "train_tokens": 1e12, "by": date(2027, 3, 2)}
    table |= {"workload": [workload | days, *table["workload"][1:]]}
    table["cluster"]["start"] = date(2027, 1, 1)
    with pytest.raises(ValueError, match=r"workload\[0\].by .* train_days = 60 "):
        Instance.model_validate(table)
    table.pop("phase")
    assert Instance.model_validate(table).workload[0].train_days == 60
