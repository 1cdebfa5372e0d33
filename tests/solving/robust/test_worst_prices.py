"""What a plan for the worst prices costs is told at these, and compared with what others cost then."""

from __future__ import annotations

import pytest

import coopt
from coopt.network.plan_networks import baseline_of
from coopt.report.plan import headline, plan_report
from coopt.report.words import rendered
from tests.conftest import ask
from tests.kinds import FEW


@pytest.mark.parametrize("kind", ["capex", "tco"])
def test_a_worst_case_and_what_it_is_compared_with_are_at_the_same_prices(kind: str) -> None:
    few = FEW | {"network__fabrics": "clos", "objective": {"minimize": kind}}
    instance = ask(robust={"prices": {"switch": [0.8, 3.0]}}, **few)
    plan = coopt.solve(instance)
    found = baseline_of(instance, plan)
    assert plan.couplings.outlooks is not None
    assert (found.design, found.cost) == (plan.design, plan.cost), "one tier of a Clos has full bandwidth"
    text = rendered(plan_report(instance, plan, found))
    assert "at the worst prices without the GPUs; proven optimal." in " ".join(text.split())
    assert "Bill of materials, at the worst prices\n" in text
    assert "this plan costs and draws the same" in " ".join(text.split())
    stopped = plan.model_copy(update={"status": "feasible", "stop_reason": "time limit"})
    assert " at the worst prices, gap 0.0%" in headline(instance, stopped)


@pytest.mark.parametrize(
    "robust",
    [
        {"survive": ["nic"], "slower": 1.5},
        {"aim": "regret", "prices": {"switch": [0.8, 3.0]}},
        {"prices": {"switch": [0.8, 1.0]}},
    ],
)
def test_prices_that_stay_as_they_are_are_not_called_the_worst(robust: dict[str, object]) -> None:
    instance = ask(robust=robust, **FEW)
    text = rendered(plan_report(instance, coopt.solve(instance)))
    assert "worst prices" not in text.partition("Decision")[0]
    assert "Bill of materials\n" in text
