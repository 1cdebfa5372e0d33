"""A plan that grows reads as what to buy now and what later."""

from __future__ import annotations

import io

import pytest

from coopt.instance.schema import Instance
from coopt.network.plan_networks import any_to_any
from coopt.plan.schema import Plan
from coopt.report.plan import plan_report
from coopt.report.tables import rendered
from coopt.solving.answer import solve
from tests.changes import NOTHING_BUILT
from tests.verifier.test_phased_claims import CASES, growing


def text_of(instance: Instance, plan: Plan) -> str:
    return rendered(plan_report(instance, plan), io.StringIO())


@pytest.fixture(scope="module")
def answered() -> tuple[Instance, Plan]:
    instance = growing(network__fabrics="clos", limits__power_mw=1.0)
    return instance, solve(instance)


def test_every_phase_has_its_line_its_bill_and_its_workloads(answered: tuple[Instance, Plan]) -> None:
    instance, plan = answered
    text = text_of(instance, plan)
    assert text.startswith("Grow in 3 phases to 16 x hb4 joined by")
    for year in ("2026", "2027", "2029.5"):
        assert f"Bill of {year}, at its prices" in text
        assert f"From {year}:" in text
        assert f"{year} time, first" in text
        assert f"{year} power" in text
    assert "retrofit links" in text


def test_purchases_over_years_are_compared_with_no_network_of_today(answered: tuple[Instance, Plan]) -> None:
    assert any_to_any(*answered) is None


def test_what_is_bought_ahead_is_said(answered: tuple[Instance, Plan]) -> None:
    instance, plan = answered
    stored = [one for phase in plan.phases for one in phase.stored]
    assert stored
    assert f"Bought ahead and kept for later: {stored[0].count} x {stored[0].item}" in text_of(instance, plan)
    waits = sum(1 for phase in plan.couplings.growth if phase.stored)
    assert text_of(instance, plan).count("what is kept for later does not draw them yet.") == waits


def test_foresight_is_told_in_money_or_as_a_dead_end(answered: tuple[Instance, Plan]) -> None:
    assert "foresight saves $" in text_of(*answered)
    dead = CASES["a dead end"]()
    assert "runs into a dead end: in 2029.5 no network" in " ".join(text_of(dead, solve(dead)).split())


def test_a_stop_before_a_plan_says_what_is_proven(answered: tuple[Instance, Plan]) -> None:
    instance, plan = answered
    bare = NOTHING_BUILT | {"status": "unknown", "stop_reason": "interrupted"}
    claim = plan.objective.model_copy(update={"value": None, "gap": None})
    stopped = plan.model_copy(update={**bare, "objective": claim})
    text = " ".join(text_of(instance, stopped).split())
    assert "before any design was found" in text
    assert "it is proven that no plan costs less than $" in text
