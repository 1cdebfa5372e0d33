"""Labour and support are shares of purchase: in the TCO alone, weighed as a lower price of electricity weighs."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coopt
from coopt.instance.schema import Instance
from coopt.report.plan import plan_report
from coopt.report.tables import rendered
from tests.changes import with_part
from tests.conftest import accepted, ask, example_count
from tests.solving.oracle import enumerated
from tests.solving.own_ends import twin_ported

OWNED = {"minimize": "tco", "labour_share": 0.05, "support_share": 0.06}
SHARES = st.sampled_from([0.0, 0.03, 0.1, 0.5])


def with_terms(instance: Instance, **terms: Any) -> Instance:
    objective = instance.objective.model_copy(update=terms)
    return Instance.model_validate(instance.model_copy(update={"objective": objective}).model_dump(by_alias=True))


@settings(max_examples=example_count(60, usual=15))
@given(twin_ported(), SHARES, SHARES)
def test_the_optimum_is_that_of_electricity_at_a_price_divided_by_what_a_purchase_takes(
    instance: Instance, labour: float, support: float
) -> None:
    """Enumeration knows nothing of labour: at the lower price of electricity it finds the same network."""
    owned = 1 + labour + 4 * support
    asked = with_terms(instance, minimize="tco", labour_share=labour, support_share=support, years=4.0)
    bare = with_terms(instance, minimize="tco", years=4.0, usd_per_kwh=instance.objective.usd_per_kwh / owned)
    plan, expected = accepted(asked), enumerated(bare)
    assert plan.status == ("infeasible" if math.isinf(expected) else "optimal")
    assert plan.objective.value == (None if math.isinf(expected) else pytest.approx(expected * owned, rel=1e-12))


def test_they_count_in_the_total_cost_alone() -> None:
    instance, bare = ask(objective=OWNED), ask(objective={"minimize": "tco"})
    plan, without = coopt.solve(instance), coopt.solve(bare)
    assert plan.cost is not None
    assert without.cost is not None
    terms = instance.objective
    electricity = plan.cost.power_w / 1000 * terms.years * 8760 * terms.pue * terms.usd_per_kwh
    assert plan.cost.tco_usd == pytest.approx(plan.cost.capex_usd * 1.29 + electricity, rel=1e-12)
    assert plan.cost.capex_usd == math.fsum(item.usd for item in plan.cost.items)
    words = " ".join(rendered(plan_report(instance, plan)).split())
    assert "purchase, 5.0% of it for labour, 6.0% of it a year for support, and 4 years of power" in words
    assert "in purchase, labour, support and electricity" in words
    assert instance.sha256 != bare.sha256


def test_a_plan_that_leaves_them_out_is_rejected() -> None:
    instance = ask(objective={"minimize": "tco", "labour_share": 0.05})
    plan = coopt.solve(instance)
    assert plan.cost is not None
    cheaper = plan.cost.tco_usd - 0.05 * plan.cost.capex_usd
    lie = with_part(plan, cost=plan.cost.model_copy(update={"tco_usd": cheaper}))
    assert {"tco"} <= {check.name for check in coopt.verify(instance, lie).failures}


@pytest.mark.parametrize("limits", [{}, {"capex_usd": 4e6}], ids=["free", "capped"])
def test_a_plan_stays_optimal_within_its_ranges_of_prices_and_not_beyond(limits: dict[str, float]) -> None:
    """Each USD of a price is a USD and 29 cents of total cost; at either end another design takes over."""
    instance = ask(objective=OWNED, limits=limits)
    plan, found = coopt.solve(instance), coopt.explain(instance)
    chosen = plan.design
    for price in found.prices:
        for end, inside in ((price.low, 1.001), (price.high, 0.999)):
            if end is None or end == 0 or price.item == "electricity":
                continue
            for factor, same in ((inside, True), (2 - inside, False)):
                other = coopt.solve(_repriced(instance, price.item, end * factor))
                assert (other.design == chosen) is same


def _repriced(instance: Instance, name: str, usd: float) -> Instance:
    table = instance.model_dump(by_alias=True, mode="json")
    for kind, key in (("nics", "usd"), ("switches", "usd"), ("optics", "usd"), ("hb_domains", "usd_per_gpu")):
        for product in table["network"][kind]:
            if product["name"] == name:
                product[key] = usd
    return Instance.model_validate(table)


@pytest.mark.parametrize(
    ("changes", "beside"),
    [
        ({"sharing": {"mode": "partition"}}, "sharing.mode = 'partition'"),
        ({"phase": [{"gpus": 32, "year": 0}, {"gpus": 64, "year": 1}]}, r"\[\[phase\]\] tables"),
        ({"robust": {"survive": "nic", "slower": 3.0}}, r"a \[robust\] table"),
    ],
    ids=["partition", "phases", "robust"],
)
def test_with_what_is_coupled_they_are_refused(changes: dict[str, Any], beside: str) -> None:
    with pytest.raises(ValueError, match=rf"objective.labour_share = 0.1: .* not with {beside}, needs 0"):
        ask(objective={"labour_share": 0.1}, **changes)
