"""What a plan says of direct links against switches is doubted figure by figure."""

from __future__ import annotations

from typing import Any

import pytest

from coopt.plan.schema import Plan
from coopt.verifier.audit import verify
from tests.verifier.kinds import solved, written

NOTHING = {"value": None, "bound": None, "gap": None}


def failing(kind: str, rival: str, **claim: Any) -> set[str]:
    """Checks that fail where one rival is claimed to be something else."""
    table = written(kind)
    table["rivals"][rival] |= claim
    return {check.name for check in verify(solved(kind)[0], Plan.model_validate(table)).failures}


def test_switches_cost_exactly_what_the_plan_says() -> None:
    bound = written("direct")["rivals"]["switched"]["bound"]
    dearer = {"value": 99_999.0, "bound": bound, "gap": (99_999.0 - bound) / 99_999.0}
    assert failing("direct", "switched", **dearer) == {"rival-value"}


def test_switches_that_are_there_are_not_said_to_be_none() -> None:
    assert failing("direct", "switched", **NOTHING) == {"rival-none"}


@pytest.mark.parametrize(("kind", "rival"), [("direct", "direct"), ("direct", "switched"), ("switches", "switched")])
def test_a_rival_that_is_there_has_a_bound_where_the_plan_has_one(kind: str, rival: str) -> None:
    assert failing(kind, rival, bound=None, gap=None) == {"rivals-bound"}


def test_a_weaker_bound_of_switches_is_a_true_claim() -> None:
    claim = written("direct")["rivals"]["switched"]
    weaker = {"bound": 0.8 * claim["value"], "gap": 1 - 0.8}
    assert failing("direct", "switched", **weaker) == set()


def test_where_nothing_is_proven_switches_may_be_unknown() -> None:
    table = written("direct")
    table["rivals"]["switched"] |= NOTHING
    table["objective"] |= {"bound": None, "gap": None}
    assert verify(solved("direct")[0], Plan.model_validate(table | {"status": "feasible"})).accepted
