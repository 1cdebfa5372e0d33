"""What an answer of every kind may hold, and what it claims where it holds no plan."""

from __future__ import annotations

import pytest

from coopt.plan.schema import Plan
from coopt.verifier.audit import verify
from tests.verifier.kinds import KINDS, SECTIONS, solved, without_plan, written

STOPS = ["all found", "no other design", "time limit"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_without_a_plan_and_a_bound_claims_nothing(kind: str) -> None:
    assert verify(solved(kind)[0], Plan.model_validate(without_plan(kind, "unknown"))).accepted


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_without_a_plan_holds_no_part_of_one(kind: str) -> None:
    instance, _ = solved(kind)
    for status in ("unknown", "infeasible"):
        empty, tried = without_plan(kind, status), 0
        for name in SECTIONS:
            for part in (written(other)[name] for other in KINDS):
                if part:
                    tried += 1
                    verdict = verify(instance, Plan.model_validate(empty | {name: part}))
                    assert "status" in {check.name for check in verdict.failures}, (status, name)
        assert tried >= len(SECTIONS)


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_word_on_runners_up_needs_them_to_be_searched_for(kind: str, stop: str) -> None:
    instance, plan = solved(kind)
    said = plan.model_copy(update={"alternatives": (), "alternatives_stop": stop})
    true = instance.problem == "shared" and stop == "time limit"
    assert verify(instance, said).accepted == true
