"""What a plan says of direct links against switches is doubted figure by figure."""

from collections.abc import Callable
from typing import Any

import pytest

from coopt.plan.schema import Plan
from coopt.verifier.audit import verify
from tests.verifier.kinds import solved, written

NOTHING = {"value": None, "bound": None, "gap": None}


DEARER = 99_999.0
BARE = {"bound": None, "gap": None}
CLAIMS: dict[str, tuple[str, str, Callable[[dict[str, Any]], dict[str, Any]], set[str]]] = {
    "dearer switches": (
        "direct",
        "switched",
        lambda said: {"value": DEARER, "gap": (DEARER - said["bound"]) / DEARER},
        {"rival-value"},
    ),
    "no switches": ("direct", "switched", lambda _: NOTHING, {"rival-none"}),
    "links without a bound": ("direct", "direct", lambda _: BARE, {"rivals-bound"}),
    "switches without a bound": ("direct", "switched", lambda _: BARE, {"rivals-bound"}),
    "cheaper switches without a bound": ("switches", "switched", lambda _: BARE, {"rivals-bound"}),
    "a weaker bound": ("direct", "switched", lambda said: {"bound": 0.8 * said["value"], "gap": 1 - 0.8}, set()),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_rival_that_is_claimed_to_be_something_else_fails(name: str) -> None:
    kind, rival, claim, failing = CLAIMS[name]
    table = written(kind)
    table["rivals"][rival] |= claim(table["rivals"][rival])
    verdict = verify(solved(kind)[0], Plan.model_validate(table))
    assert {check.name for check in verdict.failures} == failing


def test_where_nothing_is_proven_switches_may_be_unknown() -> None:
    table = written("direct")
    table["rivals"]["switched"] |= NOTHING
    table["objective"] |= {"bound": None, "gap": None}
    assert verify(solved("direct")[0], Plan.model_validate(table | {"status": "feasible"})).accepted
