"""Leaf and pod together stay within `network.end_to_end_oversubscription`: planner and verifier agree."""

import pytest

import coopt
from tests.conftest import accepted, ask, switch

THREE_TIERS = {
    "cluster__gpus": 128,
    "network__hb_domains": "hgx-h100-8",
    "network__fabrics": "clos",
    "network__switches": [switch(8, 5000)],
    "workload__0__global_batch": 128,
    "workload__0__max_iteration_time_s": 100.0,
}


def test_a_bound_on_the_product_costs_more_the_tighter_it_is() -> None:
    found = {
        bound: accepted(ask(**THREE_TIERS, network__end_to_end_oversubscription=bound))
        for bound in (None, 9.0, 4.0, 1.0)
    }
    ratios = [plan.design.fabric.oversubscription for plan in found.values()]
    values = [plan.objective.value for plan in found.values()]
    assert ratios[0] > 3.0, "the largest ratio of one switch"
    assert ratios[2] <= 4.0
    assert ratios[3] == 1.0
    assert values == sorted(values)
    assert values[0] < values[2] < values[3]


def test_a_plan_beyond_the_bound_is_rejected() -> None:
    free, bound = ask(**THREE_TIERS), ask(**THREE_TIERS, network__end_to_end_oversubscription=2.0)
    plan, claim = coopt.solve(free), coopt.solve(bound)
    forged = plan.model_copy(update={"instance": claim.instance})
    assert "end-to-end" in {check.name for check in coopt.verify(bound, forged).failures}


def test_phases_refuse_it() -> None:
    years = [{"year": 2026, "gpus": 64}, {"year": 2028, "gpus": 128}]
    with pytest.raises(ValueError, match=r"end_to_end_oversubscription: .* needs network.oversubscription"):
        ask(**THREE_TIERS, network__end_to_end_oversubscription=4.0, phase=years)
