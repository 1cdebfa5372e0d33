"""Cost against days where workloads have islands, or the whole network in turn: against plain enumeration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.base import InstanceError
from coopt.instance.numerics import SEARCHED
from coopt.instance.schema import Instance
from coopt.instance.variants import with_scaled_bounds, with_tp
from coopt.plan.front import Front
from coopt.plan.schema import Plan
from coopt.report.fronts.text import front_report
from coopt.report.words import rendered
from coopt.solving.fronts.tracing import PATIENCE, Step, Tracing
from coopt.solving.resolves import Resolver
from tests.conftest import example_count, question
from tests.solving.fleet_oracle import TooManyError, enumerated
from tests.solving.fleets import fleets
from tests.solving.interrupted import ITERATIONS, failures, in_days
from tests.solving.test_fleets_in_days import fleet


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
        with pytest.raises(InstanceError, match="no workload has a bound on days"):
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
    instance = fleet(0.4)
    front = coopt.pareto(instance, 4, over=["days"])
    _check_days(instance, front)
    told = rendered(front_report(front, instance))
    first, last = front.points[0].workload_days, front.points[-1].workload_days
    ends = ", ".join(f"{name} {first[name]:.4g} to {last[name]:.4g} days" for name in ("large", "small"))
    assert ends in " ".join(told.split())
    (heads,) = (text for text in told.splitlines() if "built from" in text)
    assert heads.split()[-7:] == ["days,", "large", "days,", "small", "capex", "$", "saved"]
    assert "  2 islands with " in told, "what is built has room for words"
    once = "Each stands at the days that it takes, once where it is the cheapest of several dates."
    assert f"dates that are evenly spaced. {once}" in " ".join(told.split())
    assert {"large.days", "small.days"} <= {*front.points[0].times}


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
    assert "with the whole cluster to itself. One after the other, their days add up." in told


def test_a_front_of_islands_with_failures_ends_at_ten_times_the_fastest() -> None:
    """Without spares the rest waits for repairs, ever longer and for ever less."""
    rates = {"name": "often", "gpu": {"per_year": 20.0}}
    asked = {"rates": rates, "repair_hours": 500.0, "restart_s": 0.0, "spare_domains": [0, 1, 2, 4, 8]}
    table = fleet(100.0).model_dump(by_alias=True) | {"availability": asked}
    instance = Instance.model_validate(table)
    front = coopt.pareto(instance, 4)
    assert front.points
    assert front.points[-1].pace <= PATIENCE * front.points[0].pace
    patient = coopt.pareto(instance, 4, slowest=1e4)
    assert patient.points[-1].pace > PATIENCE * patient.points[0].pace


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
        instance=fleet(0.4),
        over=None,
        point_count=wanted,
        slowest=1e6,
        tell=lambda message, done: None,
        resolver=Resolver(fleet(0.4)),
        dated=True,
    )
    stairs.trace()
    first, last = stairs.steps[0].pace, stairs.steps[-1].pace
    assert stairs.dates == pytest.approx(np.linspace(first, last, wanted - 1).tolist())
    for date in stairs.dates:
        told = [one.value for one in stairs.steps if one.pace <= date * (1 + 1e-9)][-1]
        assert told == [value for pace, value in Stairs.STEPS if pace <= date * (1 + 1e-9)][-1]
