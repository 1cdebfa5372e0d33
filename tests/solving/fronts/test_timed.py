"""Time, dollars for each token and carbon: by enumeration, within a budget, and doubted by the verifier."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.cli.files import report
from coopt.instance.base import InstanceError
from coopt.instance.schema import Instance, load
from coopt.instance.workload import BOUNDS
from coopt.network.parts import cost_of, within_limits
from coopt.plan.store import plan_checks, plan_json
from coopt.report.fronts.text import front_notes
from tests.availability.test_outages import RATES
from tests.conftest import accepted, ask, example_count, value_of
from tests.explain.changed import only, without
from tests.solving.oracle import FEW_TIMED, every_design, fastest_s, instances
from tests.solving.questions import interrupted
from tests.solving.test_days import days

KINDS = ("time", "usd_per_token", "carbon")
TOKENS = 1e12
TINY = Path(__file__).parents[3] / "instances" / "tiny-64.toml"


def asked_for(bare: Instance, kind: str) -> Instance:
    """The first workload alone with a few mappings, of which every one is timed, by an objective that counts time."""
    table = bare.model_dump(by_alias=True)
    table["workload"] = [{"train_tokens": TOKENS} | {k: v for k, v in table["workload"][0].items() if v is not None}]
    table["workload"][0]["mapping"] |= FEW_TIMED
    table["objective"] |= {"minimize": kind, "kg_co2_per_kwh": 0.4}
    return Instance.model_validate(table)


def enumerated(instance: Instance, kind: str) -> float:
    """The least value of every design within bound and limits, written from the definitions."""
    found, (workload,), objective = math.inf, instance.workload, instance.objective
    for family, uplinks in every_design(instance):
        time_s = fastest_s(workload, instance.cluster.gpu, family, uplinks)
        cost = cost_of(instance, family, uplinks)
        if time_s > workload.bound_s or not within_limits(instance, family, cost):
            continue
        per_s = workload.global_batch * workload.model.seq / time_s
        kwh = cost.power_w / 1000 * objective.pue * TOKENS / per_s / 3600
        value = {
            "time": time_s,
            "usd_per_token": cost.tco_usd / (per_s * objective.years * 365 * 86400),
            "carbon": kwh * 0.4,
        }[kind]
        found = min(found, value)
    return found


def without_bounds(instance: Instance) -> Instance:
    """The instance whose workloads may take any time."""
    table = instance.model_dump(by_alias=True)
    for workload in table["workload"]:
        workload |= dict.fromkeys(BOUNDS)
    return Instance.model_validate(table)


@settings(max_examples=example_count(20))
@given(instances(), st.sampled_from(KINDS), st.booleans())
def test_the_best_is_that_of_plain_enumeration_and_the_verifier_agrees(bare: Instance, kind: str, free: bool) -> None:
    instance = without_bounds(asked_for(bare, kind)) if free else asked_for(bare, kind)
    expected, plan = enumerated(instance, kind), accepted(instance)
    assert plan.status == "infeasible" or plan.solver.columns_enumerated > 0
    assert value_of(plan) == pytest.approx(expected, rel=1e-9)
    assert plan.status == ("infeasible" if math.isinf(expected) else "optimal")


@settings(max_examples=example_count(10))
@given(interrupted(), st.sampled_from(KINDS))
def test_plans_with_interruptions_are_accepted(bare: Instance, kind: str) -> None:
    accepted(asked_for(bare, kind))


def within(usd: float, **changes: Any) -> Instance:
    return days(20.0, objective={"minimize": "time"}, limits={"capex_usd": usd}, **changes)


def test_the_fastest_within_a_budget_is_a_point_of_the_front() -> None:
    front = coopt.pareto(days(20.0), 10_000)
    for point in front.points:
        plan = coopt.solve(within(point.cost.capex_usd))
        assert plan.cost.capex_usd == point.cost.capex_usd
        assert plan.objective.value == pytest.approx(point.pace * days(20.0).workload[0].bound_s, rel=1e-9)


def test_a_larger_budget_is_never_slower_and_failures_never_make_it_faster() -> None:
    budgets = [point.cost.capex_usd * factor for point in coopt.pareto(days(20.0), 4).points for factor in (0.99, 1.1)]
    times = [coopt.solve(within(usd)).objective.value or math.inf for usd in sorted(budgets)]
    assert times == sorted(times, reverse=True)
    often = {"rates": {"name": "often", "gpus_per_host": 8, "software": {"per_year": 50.0}}}
    assert times[-1] < (coopt.solve(within(max(budgets), availability=often)).objective.value or math.inf)


def test_without_a_bound_the_fastest_is_found_told_and_traced() -> None:
    bounded = load(TINY, {"objective.minimize": "time", "limits.capex_usd": 600_000})
    instance = without_bounds(bounded)
    plan, front, found = coopt.solve(instance), coopt.pareto(instance, 10_000), coopt.explain(instance)
    assert plan.objective.value == pytest.approx(coopt.solve(bounded).objective.value, rel=1e-9)
    assert front.points[0].best.workloads[0].iteration_time_s == pytest.approx(plan.objective.value, rel=1e-9)
    assert len(front.points) == len(coopt.pareto(bounded, 10_000).points) > 1
    assert [bound.limit for bound in found.bounds] == ["limits.capex_usd", "cluster.gpu.hbm_gb"]
    shown = [*found.sentences, *(str(check) for check in plan_checks(instance, plan)), *front_notes(front, instance)]
    assert not [text for text in shown if "max_iteration_time_s" in text or "name='time" in text or "0,000 s" in text]
    assert any(text.startswith("No bound is given; the fastest comes to") for text in shown)


def test_the_cheapest_plan_needs_a_bound() -> None:
    free = without_bounds(ask(objective={"minimize": "time"}))
    refused = r"workload\[0\]: no bound given, needs exactly one of .* or objective.minimize = 'time' for the fastest"
    with pytest.raises(InstanceError, match=refused):
        coopt.solve(free, objective="capex")
    with pytest.raises(ValueError, match=refused):
        Instance.model_validate(free.model_dump(by_alias=True) | {"objective": {"minimize": "capex"}})


@pytest.mark.parametrize("confidence", [None, 0.95])
@pytest.mark.parametrize("kind", KINDS)
def test_margins_and_promises_are_doubted_too(kind: str, confidence: float | None) -> None:
    asked = {"rates": "llama-3"} | ({} if confidence is None else {"confidence": confidence})
    objective = {"minimize": kind, "kg_co2_per_kwh": 0.4}
    bare, kept = (
        days(20.0, objective=objective, availability=asked, **more) for more in ({}, {"margin": {"time": 0.05}})
    )
    plans = [coopt.solve(one) for one in (bare, kept)]
    for instance, plan in zip((bare, kept), plans, strict=True):
        verdict = coopt.verify(instance, plan)
        assert verdict.accepted, [check for check in verdict.checks if not check.ok]
    with_a_promise = 0.02  # longer training spreads less, for its length
    exact = 1e-9 if confidence is None else with_a_promise
    assert plans[1].objective.value == pytest.approx(plans[0].objective.value, rel=exact)


@pytest.mark.parametrize("kind", KINDS)
def test_a_lie_about_value_or_bound_is_rejected(kind: str) -> None:
    instance = days(20.0, objective={"minimize": kind, "kg_co2_per_kwh": 0.4})
    plan = coopt.solve(instance)
    assert coopt.verify(instance, plan).accepted
    value = plan.objective.value
    for lie in (value * 0.999, value * 1.001):
        claim = plan.objective.model_copy(update={"value": lie, "bound": lie})
        verdict = coopt.verify(instance, plan.model_copy(update={"objective": claim}))
        assert "objective" in [check.name for check in verdict.failures]
        assert ("bound" in [check.name for check in verdict.failures]) == (lie > value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"objective": {"minimize": "carbon"}}, "needs objective.kg_co2_per_kwh"),
        ({"objective": {"minimize": "carbon", "kg_co2_per_kwh": 0.4}}, "needs train_tokens"),
        ({"objective": {"minimize": "usd_per_token", "years": 0}}, "needs years above 0"),
        ({"objective": {"minimize": "time"}, "solver": {"top": 2}}, "runners-up"),
        ({"objective": {"minimize": "time"}, "sharing": {"mode": "partition"}}, "needs one workload on one network"),
    ],
)
def test_objectives_that_lack_terms_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises((InstanceError, ValueError), match=words):
        ask(**changes)


def test_commands_that_know_sums_alone_say_so() -> None:
    with pytest.raises(InstanceError, match="compares bills"):
        coopt.pareto(ask(objective={"minimize": "usd_per_token"}))
    with pytest.raises(InstanceError, match=r"'time': .* compares bills"):
        coopt.certify(ask(), coopt.solve(ask(), objective="time"))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_of_a_plan_by_time_is_what_solving_the_changed_question_gives(kind: str) -> None:
    instance = asked_for(ask(), kind)
    found, plan = coopt.explain(instance), coopt.solve(instance)
    assert (found.status, found.kind, found.value) == ("optimal", kind, pytest.approx(plan.objective.value, rel=1e-9))
    assert found.design == plan.design
    assert {rival.part for rival in found.rivals} >= {"network.hb_domains", "network.switches"}
    for rival in found.rivals:
        shorter = (without if rival.excluded else only)(instance, rival.part, rival.choice)
        least = coopt.solve(shorter).objective.value
        assert rival.value == (None if least is None else pytest.approx(least, rel=1e-9)), rival
    assert found.runner_up.regret >= 0.0
    assert not found.prices
    assert "Ranges of prices are not worked out" in " ".join(found.sentences)
    assert coopt.explain(ask(), coopt.solve(ask(), objective="time")).kind == "time"


def test_a_budget_that_keeps_faster_networks_out_binds() -> None:
    free = asked_for(ask(), "time")
    plan = coopt.solve(free)
    capped = asked_for(ask(limits={"capex_usd": plan.cost.capex_usd - 1.0}), "time")
    (bound,) = (one for one in coopt.explain(capped).bounds if one.limit == "limits.capex_usd")
    assert bound.binds
    assert bound.looser.bound == plan.cost.capex_usd
    assert bound.looser.value == pytest.approx(plan.objective.value, rel=1e-9)


def test_what_is_infeasible_by_time_has_ways_out_that_are_timed() -> None:
    least = coopt.solve(ask(), objective="time").objective.value
    found = coopt.explain(ask(objective={"minimize": "time"}, workload__0__max_iteration_time_s=least / 2))
    assert found.status == "infeasible"
    one = next(one for one in found.relaxations if one.changes[0].limit == "workload[0].max_iteration_time_s")
    assert one.value == pytest.approx(least, rel=1e-9)
    assert any(sentence.endswith(f"then takes {least:.6g} s an iteration.") for sentence in found.sentences)


def test_a_plan_by_time_with_failures_is_explained_by_solving_again() -> None:
    asked = {"rates": RATES, "restart_s": 3000.0, "spare_domains": 0}
    instance = ask(objective={"minimize": "time"}, availability=asked, network__fabrics=["rail-only", "clos"])
    found = coopt.explain(instance)
    assert (found.status, found.kind) == ("optimal", "time")
    for rival in found.rivals:
        if not rival.excluded:
            least = coopt.solve(only(instance, rival.part, rival.choice)).objective.value
            assert rival.value == (None if least is None else pytest.approx(least, rel=1e-9))


def test_the_page_of_a_plan_by_time_has_no_front(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(plan_json(coopt.solve("instances/tiny-64.toml", objective="time")), "utf-8")
    page = tmp_path / "page.html"
    found = CliRunner().invoke(report, ["instances/tiny-64.toml", str(path), "-o", str(page)])
    assert found.exit_code == 0, found.output
    assert "the fastest: 0.6609 s an iteration" in page.read_text("utf-8")
