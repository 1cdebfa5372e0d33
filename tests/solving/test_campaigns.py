"""Random questions that campaigns go through are answered as enumeration does."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

import coopt
from coopt.instance.schema import Instance
from tests.solving import (
    every_coupling,
    large_primes,
    own_listing,
    related,
    standing_questions,
    tightened,
    wide_prices,
    wider_cp,
)

LIMIT_JUST_MET = Path(__file__).parents[1] / "data" / "limit_just_met.json"


@pytest.mark.parametrize(
    ("campaign", "asked", "fewest"),
    [
        (wide_prices.campaign, (2, 5), 2),
        (every_coupling.campaign, (0, 9, 1), 2),
        (own_listing.campaign, (2, 17), 2),
        (tightened.campaign, (2, 17), 1),
        (related.campaign, (2, 11), 4),
        (wider_cp.campaign, (4, 1), 4),
        (standing_questions.campaign, (7, 0), 7),
        (standing_questions.reasons, (3, 2), 3),
        (standing_questions.watts, (1, 0), 1),
    ],
    ids=lambda one: getattr(one, "__module__", ""),
)
def test_a_few_questions_of_a_campaign_are_answered_right(
    campaign: Callable[..., Counter[str]], asked: tuple[int, ...], fewest: int
) -> None:
    """Of those that `python -m tests.solving.wide_prices COUNT` and its like go through."""
    found = campaign(*asked)
    assert sum(number for name, number in found.items() if not name.startswith("bound")) >= fewest
    assert any("right" in name for name in found)
    assert not any(number for name, number in found.items() if "wrong" in name)


def test_both_keys_are_said_where_another_number_is_faster() -> None:
    found = large_primes.campaign(1, 6, small=True) + large_primes.campaign(1, 8, small=True)
    assert found.total() == 4
    assert all(found[f"{key}: right, said"] for key in large_primes.KEYS), found
    assert not any("wrong" in name for name in found)


def test_a_limit_that_a_program_misses_by_rounding_is_met() -> None:
    """Beside switches for 1e-8 dollars: the purchase may be what the best islands cost, to the last digit."""
    instance = Instance.model_validate_json(LIMIT_JUST_MET.read_text("utf-8"))
    plan = coopt.solve(instance)
    assert (plan.status, plan.objective.value) == ("optimal", instance.limits.capex_usd)
    assert coopt.verify(instance, plan).accepted
