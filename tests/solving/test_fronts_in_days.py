"""Fronts of days and of time, dollars for each token and carbon: by enumeration, within a budget, and doubted."""

import math
from dataclasses import replace
from itertools import islice, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.numerics import SEARCHED
from coopt.instance.schema import Instance, load
from coopt.instance.texts import InstanceError
from coopt.instance.variants import with_scaled_bounds, with_tp
from coopt.instance.workload import BOUNDS, ROUND_UP
from coopt.network.parts import cost_of, within_limits
from coopt.plan.front import Front
from coopt.plan.schema import Plan
from coopt.plan.store import plan_checks
from coopt.report.fronts.text import front_notes, front_report
from coopt.report.words import digits, rendered
from coopt.solving.fronts import sweep
from coopt.solving.fronts.tracing import CUT, EARLY, PATIENCE, Step, Tracing, evenly
from coopt.solving.resolves import Resolver, UnprovenError
from tests.conftest import ASK_WHY, accepted, ask, example_count, question, value_of
from tests.explain.changed import only, without
from tests.perf.test_outages import RATES
from tests.solving.fleet_oracle import Job, TooManyError, enumerated
from tests.solving.fleets import fleets
from tests.solving.interrupted import ITERATIONS, failures, in_days, least_s, promised
from tests.solving.oracle import FEW_TIMED, every_design, fastest_s, instances
from tests.solving.questions import interrupted
from tests.solving.test_days import days, fleet
from tests.solving.test_fronts import EVERY, as_plan, pairs

KINDS = ("time", "usd_per_token", "carbon")
TOKENS = 1e12
TINY = Path(__file__).parents[2] / "instances" / "tiny-64.toml"


def asked_for(bare: Instance, kind: str) -> Instance:
    """The first workload alone with a few mappings, of which every one is timed, by an objective that counts time."""
    table = bare.model_dump(by_alias=True)
    table["workload"] = [{"train_tokens": TOKENS} | {k: v for k, v in table["workload"][0].items() if v is not None}]
    table["workload"][0]["mapping"] |= FEW_TIMED
    table["objective"] |= {"minimize": kind, "kg_co2_per_kwh": 0.4}
    return Instance.model_validate(table)


def timed_least(instance: Instance, kind: str) -> float:
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
    expected, plan = timed_least(instance, kind), accepted(instance, reasons=ASK_WHY)
    assert plan.status == "infeasible" or plan.solver.columns_enumerated > 0
    assert value_of(plan) == pytest.approx(expected, rel=1e-9)
    assert plan.status == ("infeasible" if math.isinf(expected) else "optimal")


@settings(max_examples=example_count(10))
@given(interrupted(), st.sampled_from(KINDS))
def test_plans_with_interruptions_are_accepted(bare: Instance, kind: str) -> None:
    accepted(asked_for(bare, kind), reasons=ASK_WHY)


def within(usd: float, **changes: Any) -> Instance:
    return days(20.0, objective={"minimize": "time"}, limits={"capex_usd": usd}, **changes)


def test_the_fastest_within_a_budget_is_a_point_of_the_front() -> None:
    rails = {"network__fabrics": "rail-only"}
    front = coopt.pareto(days(20.0, **rails), 10_000)
    assert len(front.points) > 2
    for point in front.points:
        plan = coopt.solve(within(point.cost.capex_usd, **rails))
        assert plan.cost.capex_usd == point.cost.capex_usd
        assert plan.objective.value == pytest.approx(point.pace * days(20.0).workload[0].bound_s, rel=1e-9)


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
    assert any(text.startswith("No bound") for text in shown)


def test_the_cheapest_plan_needs_a_bound() -> None:
    free = without_bounds(ask(objective={"minimize": "time"}))
    refused = r"workload\[0\]: no bound is given.* or objective.minimize = 'time' \(in the file or by --set"
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
        days(20.0, objective=objective, availability=asked, network__fabrics="rail-only", **more)
        for more in ({}, {"margin": {"time": 0.05}})
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


def test_commands_that_know_sums_alone_say_so() -> None:
    with pytest.raises(InstanceError, match="compares bills"):
        coopt.pareto(ask(objective={"minimize": "usd_per_token"}))
    with pytest.raises(InstanceError, match=r"'time': .* compares bills"):
        coopt.certify(ask(), coopt.solve(ask(), objective="time"))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_said_of_a_plan_by_time_is_what_solving_the_changed_question_gives(kind: str) -> None:
    instance = asked_for(ask(network__fabrics=["rail-only", "clos"]), kind)
    found, plan = coopt.explain(instance), coopt.solve(instance)
    assert (found.status, found.kind, found.value) == ("optimal", kind, pytest.approx(plan.objective.value, rel=1e-9))
    assert found.design == plan.design
    assert {rival.part for rival in found.rivals} >= {"network.hb_domains", "network.switches"}
    for rival in found.rivals:
        shorter = (without if rival.excluded else only)(instance, rival.part, rival.choice)
        least = coopt.solve(shorter, reasons=False).objective.value
        assert rival.value == (None if least is None else pytest.approx(least, rel=1e-9)), rival
    assert found.runner_up.regret >= 0.0
    assert not found.prices
    assert f"ranges for objective.minimize = {kind!r}" in " ".join(found.sentences)


def test_a_plan_is_explained_by_the_objective_that_it_was_solved_for() -> None:
    instance = ask(network__fabrics="rail-only", network__hb_domains="hgx-h100-8")
    assert coopt.explain(instance, coopt.solve(instance, objective="time")).kind == "time"


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


def dated_front(instance: Instance, slowest: float) -> list[tuple[float, float]]:
    """Pace and value of every design with every number of spares that no other beats, its days halved where all that
    cost less are slower."""
    asked = instance.availability
    designs = []
    job = Job(instance, 1.0)
    listed = (one for gpus in job.sizes for one in job.networks(gpus))
    for family, uplinks in ((one, u) for one in listed for u in one.uplink_choices):
        times = [least_s(instance, family, uplinks, one) for one in instance.workload]
        if any(time_s > slowest * one.bound_s for time_s, one in zip(times, instance.workload, strict=True)):
            continue
        for spares in islice(asked.spares, 4):
            built = replace(family, spare_domains=spares)
            cost = cost_of(instance, built, uplinks)
            if within_limits(instance, built, cost):
                designs.append((cost.of(instance.objective.minimize), times, built, uplinks))
    found, best = set(), slowest
    for value, times, built, uplinks in sorted(designs, key=itemgetter(0)):
        if all(_in_time(instance, built, uplinks, w, time_s, best) for w, time_s in enumerate(times)):
            best = min(best, max(_pace(instance, built, uplinks, w, time_s) for w, time_s in enumerate(times)))
            found.add((best, value))
    front: list[tuple[float, float]] = []
    for pace, value in sorted(found):
        if not front or value < front[-1][1] * (1 - 1e-9):
            front.append((pace, value))
    return front


def _pace(instance: Instance, built: object, uplinks: int, w: int, time_s: float) -> float:
    workload = instance.workload[w]
    if not workload.calendar:
        return time_s / workload.bound_s
    mean = promised(with_scaled_bounds(instance, 1.0), built, uplinks, workload)  # type: ignore[arg-type]
    if instance.availability is None or instance.availability.confidence is None:
        return time_s / workload.bound_s / mean if mean > 1e-9 else math.inf
    low, high = time_s / workload.bound_s, 1e6
    if not _in_time(instance, built, uplinks, w, time_s, high):
        return math.inf
    for _ in range(50):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if _in_time(instance, built, uplinks, w, time_s, middle) else (middle, high)
    return high


def _in_time(instance: Instance, built: object, uplinks: int, w: int, time_s: float, pace: float) -> bool:
    moved = with_scaled_bounds(instance, pace)
    workload = moved.workload[w]
    share = promised(moved, built, uplinks, workload) if workload.calendar else 1.0  # type: ignore[arg-type]
    return bool(time_s <= workload.bound_s * share)


@settings(max_examples=example_count(10))
@given(interrupted())
def test_a_front_with_interruptions_is_that_of_plain_enumeration(instance: Instance) -> None:
    front = coopt.pareto(instance, EVERY, slowest=3.0)
    expected = dated_front(instance, 3.0)
    if instance.availability is None or instance.availability.spare_domains is not None:
        assert [one[1] for one in pairs(front)] == pytest.approx([one[1] for one in expected], rel=1e-12)
        assert [one[0] for one in pairs(front)] == pytest.approx([one[0] for one in expected], rel=1e-8)
    else:  # enumeration stops at four domains that stand by
        for pace, value in expected:
            assert min(one[1] for one in pairs(front) if one[0] <= pace * (1 + 1e-8)) <= value * (1 + 1e-12)


@settings(max_examples=example_count(8))
@given(interrupted(), st.integers(3, 4), st.sampled_from([(), ("days",), ("budget",)]))
def test_every_point_is_a_plan_of_its_days_that_the_verifier_accepts(
    instance: Instance, points: int, over: tuple[str, ...]
) -> None:
    if over == ("days",) and not all(one.calendar for one in instance.workload):
        over = ()
    front = coopt.pareto(instance, points, over=over)
    for point in front.points:
        verdict = coopt.verify(*as_plan(instance, front, point))
        assert verdict.accepted, [check for check in verdict.checks if not check.ok]


def test_dates_and_budgets_read_the_same_front() -> None:
    instance = days(20.0)
    whole, dates, budgets = (coopt.pareto(instance, EVERY, over=over) for over in ((), ("days",), ("budget",)))
    assert {one for front in (dates, budgets) for one in pairs(front)} <= set(pairs(whole))
    assert len(whole.points) > 2
    assert [point.days for point in whole.points] == pytest.approx([20.0 * point.pace for point in whole.points])


def test_even_steps_take_the_last_point_within_each() -> None:
    assert evenly(np.array([0.0, 1.0, 9.0, 10.0]), 3) == [0, 1, 3]
    assert evenly(np.array([10.0, 9.0, 1.0, 0.0]), 3) == [3, 2, 0]


@st.composite
def islands_in_days(draw: st.DrawFn) -> Instance:
    """A small fleet, with failures or without, at sites or not; some of its workloads have days."""
    table = draw(fleets(**draw(st.sampled_from([{}, {}, {"sites": (1, 2)}])))).model_dump(by_alias=True)
    assume(table["robust"] is None or table["robust"]["aim"] == "worst-case")
    for one in table["workload"]:
        if draw(st.integers(0, 3)):
            one |= in_days(one, one["max_iteration_time_s"])
    table["availability"] = draw(st.one_of(st.none(), failures()))
    return Instance.model_validate(table)


def least(instance: Instance, pace: float) -> float:
    """What a plan costs at least whose bounds on days are so many times as long."""
    moving = [one.name for one in instance.workload if one.calendar]
    try:
        return enumerated(with_scaled_bounds(instance, pace, moving))
    except TooManyError:
        assume(False)
        raise


def asked_by(front: Front, instance: Instance) -> Instance:
    """The question that the points of a front answer: TP groups lie across domains only where it says so."""
    return with_tp(instance, across=front.tp_across) if front.tp_across else instance


def worth(front: Front, date: float) -> float:
    """The cost that a front tells for a date."""
    return front.points[[point.pace <= date * (1 + 1e-9) for point in front.points].count(True) - 1].cost.of(front.kind)


@settings(max_examples=example_count(40, usual=2))
@given(islands_in_days())
def test_the_cheapest_plans_of_even_dates_are_those_of_enumeration(instance: Instance) -> None:
    if not any(one.calendar for one in instance.workload):
        with pytest.raises(InstanceError, match="bound on days"):
            coopt.pareto(instance, over=["days"])
        return
    front = coopt.pareto(instance, 4, over=["days"])
    assert front.over == ("days",)
    if not front.points:
        assert math.isinf(least(instance, 1e5))
        return
    first, last, asked = front.points[0].pace, front.points[-1].pace, asked_by(front, instance)
    assert len(front.points) <= 4
    assert math.isinf(least(asked, first * (1 - 2 * SEARCHED)))
    for date in np.linspace(first, last, 3).tolist():
        assert worth(front, date) == pytest.approx(least(asked, date), rel=1e-9)
    slow = 1e5 if instance.availability is None else PATIENCE * first
    assert worth(front, slow) == pytest.approx(least(asked, slow), rel=1e-9)
    _check_days(instance, front)


def _check_days(instance: Instance, front: Front) -> None:
    """Days are told of each workload that has a bound on them: what its plan takes, within the date."""
    moving = [one.name for one in instance.workload if one.calendar]
    for point in front.points:
        assert sorted(point.workload_days) == sorted(moving)
        if point.plan is not None:
            verdict = coopt.verify(with_scaled_bounds(asked_by(front, instance), point.solved_at, moving), point.plan)
            assert verdict.accepted, [check for check in verdict.checks if not check.ok]
        runs = {run.name: run for _, run in point.runs}
        for one in instance.workload:
            if one.calendar:
                run, days = runs[one.name], point.workload_days[one.name]
                share = run.uptime.promised if run.uptime else 1.0
                assert days == pytest.approx(run.iteration_time_s / share * ITERATIONS / 86400, rel=1e-9)
                assert days <= (one.train_days or 0.0) * (point.solved_at or point.pace) * (1 + 1e-9)


def test_days_of_islands_stand_in_columns_of_their_own() -> None:
    instance = fleet(0.4, network__fabrics="rail-only")
    front = coopt.pareto(instance, 3, over=["days"])
    _check_days(instance, front)
    told = rendered(front_report(front, instance))
    first, last = front.points[0].workload_days, front.points[-1].workload_days
    ends = ", ".join(f"{name} {digits(first[name], 4)} to {digits(last[name], 4)} days" for name in ("large", "small"))
    assert ends in " ".join(told.split())
    ((above, heads),) = (pair for pair in pairwise(told.splitlines()) if "built from" in pair[1])
    assert (above.split(), heads.split()[-5:]) == (["days,"] * 2, ["large", "small", "capex", "$", "saved"])
    assert "  2 clusters with " in told  # in full
    assert "these are evenly spaced" in " ".join(told.split())
    assert {"large.days", "small.days"} <= {*front.points[0].times}


def test_days_of_a_batch_that_a_plan_chose_are_its_own() -> None:
    instance = ask(
        workload__0__global_batch=[64, 128], workload__0__max_iteration_time_s=None, workload__0__train_tokens=1e9,
        workload__0__train_days=5.0,
    )  # fmt: skip
    (one,) = instance.workload
    front = coopt.pareto(instance, 3)
    assert any(point.plan is not None and point.plan.chosen.global_batch == {one.name: 128} for point in front.points)
    for point in front.points:
        assert point.plan is not None
        batch, (run,) = point.plan.chosen.global_batch[one.name], (run for _, run in point.runs)
        iterations = 1e9 / (batch * one.model.seq)
        assert point.workload_days[one.name] == pytest.approx(run.iteration_time_s * iterations / 86400, rel=1e-9)


def test_days_of_workloads_that_take_turns_are_told_too() -> None:
    table: Any = question(availability={"rates": "llama-3"})
    one = in_days(table["workload"][0], 2.0)
    both = [one | {"name": "first"}, one | {"name": "second", "train_days": one["train_days"] * 1.5}]
    instance = Instance.model_validate(table | {"workload": both})
    front = coopt.pareto(instance, 4, over=["days"])
    _check_days(instance, front)
    for point in front.points:
        assert point.days is None
        assert point.workload_days["first"] == pytest.approx(point.workload_days["second"])
    told = " ".join(rendered(front_report(front, instance)).split())
    assert "the whole cluster" in told


def test_a_front_of_islands_with_failures_ends_at_ten_times_the_fastest() -> None:
    """Without spares the rest waits for repairs, ever longer and for ever less."""
    rates = {"name": "often", "gpu": {"per_year": 20.0}}
    asked = {"rates": rates, "repair_hours": 500.0, "restart_s": 0.0, "spare_domains": [0, 1, 2, 4, 8]}
    table = fleet(100.0, network__fabrics="rail-only").model_dump(by_alias=True) | {"availability": asked}
    instance = Instance.model_validate(table)
    front = coopt.pareto(instance, 3)
    assert front.points
    assert front.points[-1].pace <= max(PATIENCE * front.points[0].pace, ROUND_UP)
    patient = coopt.pareto(instance, 3, slowest=1e4)
    assert patient.points[-1].pace > PATIENCE * patient.points[0].pace
    assert (front.explanation, patient.explanation) == ((CUT,), ())


def test_a_front_with_failures_has_the_answer_within_the_bounds_however_slow_that_is() -> None:
    rates = {"name": "often", "gpu": {"per_year": 10.0}}
    asked = {"rates": rates, "repair_hours": 50.0, "restart_s": 0.0, "spare_domains": [0, 1, 2, 4, 8]}
    for train_days, explanation in ((20.0, (CUT,)), (40.0, ())):
        instance = days(train_days, availability=asked)
        front = coopt.pareto(instance, EVERY)
        assert front.explanation == explanation
        assert value_of(front.points[-1].best) == value_of(coopt.solve(instance))


def test_a_front_that_ends_before_the_bounds_tells_no_answer_within_them() -> None:
    instance = days(20.0)
    whole = coopt.pareto(instance, EVERY)
    front = coopt.pareto(instance, EVERY, slowest=whole.points[0].pace * 1.001)
    assert (front.explanation, whole.explanation) == ((EARLY,), ())
    assert "of this front" in " ".join(front_notes(front, instance))
    islands = coopt.pareto(fleet(100.0, network__fabrics="rail-only"), 3, slowest=0.5)
    assert islands.explanation == (EARLY,)


def test_a_front_says_of_a_plan_without_a_proof_why_it_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def unproven(_: object) -> None:
        raise UnprovenError("some reason")

    monkeypatch.setattr(sweep, "_traced", unproven)
    front = coopt.pareto(fleet(100.0), 3)
    assert (front.complete, front.explanation[0].endswith(": some reason.")) == (False, True)


class Stairs(Tracing):
    """Least costs by pace that are known; a plan found is a good deal slower than the fastest of its cost."""

    STEPS = ((1.0, 9.0), (1.3, 7.0), (1.5, 6.0), (2.2, 4.0), (2.4, 3.0))

    def _solved(self, pace: float) -> Step | None:
        fits = [one for one in self.STEPS if one[0] <= pace]
        if not fits:
            return None
        least_pace, value = fits[-1]
        slower = min(pace, 3 * least_pace)
        return self._insert(Step(pace=slower, value=value, plan=Plan.model_construct(), solved_at=pace, holds=pace))


@pytest.mark.parametrize("wanted", [3, 4, 6, 12])
def test_dates_lie_between_the_ends_where_the_cheapest_plan_turns_out_faster(wanted: int) -> None:
    stairs = Stairs(
        instance=fleet(0.4), over=None, point_count=wanted, slowest=1e6, tell=lambda message, done: None,
        resolver=Resolver(fleet(0.4)), dated=True,
    )  # fmt: skip
    stairs.trace()
    first, last = stairs.steps[0].pace, stairs.steps[-1].pace
    assert stairs.dates == pytest.approx(np.linspace(first, last, wanted - 1).tolist())
    for date in stairs.dates:
        told = [one.value for one in stairs.steps if one.pace <= date * (1 + 1e-9)][-1]
        assert told == [value for pace, value in Stairs.STEPS if pace <= date * (1 + 1e-9)][-1]


def test_a_day_moves_with_the_pace_where_batches_are_open() -> None:
    """As its days do; a day that stayed would contradict them."""
    table = question(cluster__start="2027-01-04", network__hb_domains="hgx-h100-8", network__fabrics="rail-only")
    (workload,) = table["workload"]
    del workload["max_iteration_time_s"]
    workload |= {"train_tokens": 1e10, "global_batch": [32, 64]}
    fronts = []
    for bound in ({"by": "2027-02-03"}, {"train_days": 30.0}):
        table["workload"] = [workload | bound]
        front = coopt.pareto(Instance.model_validate(table), points=3)
        fronts.append([point.pace for point in front.points])
    assert fronts[0] == fronts[1] != []
