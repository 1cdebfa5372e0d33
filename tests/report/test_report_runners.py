"""Runners-up: what each changes, what it costs more, and what is proven."""

import io

import pytest

from coopt.plan.schema import Alternative
from coopt.report.comparison import STOPS, differences, runners_tables
from coopt.report.plan import plan_report
from coopt.report.terminal import rendered


def text_of(parts):
    return rendered(parts, io.StringIO())


@pytest.fixture
def dearer(plan):
    """The plan with half as many GPUs in each domain, for 1% more."""
    domain = plan.design.hb_domain.model_copy(update={"name": "other-hb", "active": 200})
    cost = plan.cost.model_copy(update={"capex_usd": 1.01 * plan.cost.capex_usd})
    design = plan.design.model_copy(update={"hb_domain": domain})
    one = Alternative(objective=plan.objective, design=design, cost=cost, workloads=plan.workloads)
    return plan.model_copy(update={"alternatives": (one,), "alternatives_stop": "no other design"})


def test_a_runner_up_shows_what_differs_and_what_it_costs_more(instance, dearer):
    text = text_of(plan_report(instance, dearer))
    assert "Runners-up" in text
    (row,) = [line for line in text.splitlines() if "other-hb" in line]
    assert row.split()[0] == "2"
    assert "other-hb with 200 active" in row
    assert "1.0%" in row
    slack = min(1 - run.iteration_time_s / run.bound_s for run in dearer.workloads)
    assert row.split()[-1] == f"{100 * slack:.1f}%"
    assert "Each is proven to be the best of the designs not listed before it. No other design meets the" in text


def test_a_plan_without_runners_up_asked_says_nothing_of_them(instance, plan):
    assert "unner" not in text_of(plan_report(instance, plan))


@pytest.mark.parametrize("stop", STOPS)
def test_every_reason_to_stop_is_told(plan, stop):
    text = text_of(runners_tables(plan.model_copy(update={"alternatives_stop": stop})))
    assert text.startswith(f"There is no runner-up.{STOPS[stop]}")


def test_differences_are_words(dearer):
    (other,) = dearer.alternatives
    fabric = dearer.design.fabric.model_copy(update={"tiers": 0, "tier": ()})
    alone = dearer.design.model_copy(update={"fabric": fabric})
    assert differences(dearer.design, alone) == "no network"
    assert differences(dearer.design, dearer.design) == "other counts"
    assert "other-hb" in differences(dearer.design, other.design)
