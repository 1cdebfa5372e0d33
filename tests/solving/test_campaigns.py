"""Random questions that campaigns go through are answered as enumeration does."""

from __future__ import annotations

from pathlib import Path

import coopt
from coopt.instance.schema import Instance
from tests.solving.every_coupling import campaign as couplings_campaign
from tests.solving.own_listing import campaign as own_listing_campaign
from tests.solving.related import campaign as related_campaign
from tests.solving.tightened import campaign as tightened_campaign
from tests.solving.wide_prices import campaign

LIMIT_JUST_MET = Path(__file__).parents[1] / "data" / "limit_just_met.json"


def test_answers_at_wide_prices_are_what_enumeration_finds() -> None:
    """A few of those that `python -m tests.solving.wide_prices COUNT` goes through."""
    found = campaign(5, 5)
    assert sum(found.values()) >= 5
    assert not [key for key in found if key.endswith("wrong")]


def test_a_limit_that_a_program_misses_by_rounding_is_met() -> None:
    """Beside switches for 1e-8 dollars: the purchase may be what the best islands cost, to the last digit."""
    instance = Instance.model_validate_json(LIMIT_JUST_MET.read_text("utf-8"))
    plan = coopt.solve(instance)
    assert (plan.status, plan.objective.value) == ("optimal", instance.limits.capex_usd)
    assert coopt.verify(instance, plan).accepted


def test_random_questions_of_every_coupling_agree_with_enumeration() -> None:
    """A few of those that `python -m tests.solving.every_coupling COUNT` goes through."""
    found = couplings_campaign(0, 7, batch=3)
    assert any(name.endswith(": right") for name in found)
    assert not [name for name in found if name.endswith(": wrong")]


def test_a_few_timed_objectives_agree_with_mappings_and_placements_listed_here() -> None:
    """A few of those that `python -m tests.solving.own_listing COUNT` goes through."""
    found = own_listing_campaign(3, 17)
    assert sum(found.values()) >= 3
    assert not found["wrong"]


def test_a_few_numbers_that_bind_leave_what_enumeration_leaves() -> None:
    """A few of those that `python -m tests.solving.tightened COUNT` goes through."""
    found = tightened_campaign(3, 17)
    assert found["right"] >= 1
    assert not found["wrong"]


def test_a_few_questions_that_are_related_have_related_answers() -> None:
    """A few of those that `python -m tests.solving.related COUNT` goes through."""
    found = related_campaign(2, 11)
    assert sum(found.values()) == 4
    assert not any("wrong" in name for name in found)
