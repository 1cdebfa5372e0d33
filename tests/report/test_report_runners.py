"""Runners-up: what each changes, what it costs more, and what is proven."""

import io

import pytest

from coopt.plan.explanation import PriceRange
from coopt.plan.schema import Alternative
from coopt.report.comparison import STOPS, differences, runners_tables
from coopt.report.explanation import prices_table
from coopt.report.plan import plan_report
from coopt.report.tables import rendered


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


def test_what_takes_over_outside_a_price_says_what_it_replaces(plan):
    fabric = plan.design.fabric
    optics = dict.fromkeys(name for tier in fabric.tier for name in tier.optics)
    switched = {"switch": fabric.switch.model_copy(update={"name": "box"})}
    switched["tier"] = tuple(tier.model_copy(update={"switch": None}) for tier in fabric.tier)
    moved, kept = ({"optic": name, "optic_below": None} for name in ("new-optic", next(iter(optics))))
    lit = {"tier": tuple(tier.model_copy(update=moved) for tier in fabric.tier)}
    more = {"tier": (fabric.tier[0].model_copy(update=moved | {"optic_below": kept["optic"]}), *fabric.tier[1:])}
    below, above, added = (
        plan.design.model_copy(update={"fabric": fabric.model_copy(update=change)}) for change in (switched, lit, more)
    )
    row = PriceRange(item="box", unit="USD", now=5.0, low=4.0, high=6.0, below=below, above=above)
    replaced = f"below: switches box in place of {fabric.switch_text}; above: new-optic in place of {', '.join(optics)}"
    assert prices_table(plan.design, [row]).rows[0][1] == replaced
    row = row.model_copy(update={"below": added, "above": plan.design})
    assert prices_table(plan.design, [row]).rows[0][1] == "below: new-optic as well; above: other optics"
