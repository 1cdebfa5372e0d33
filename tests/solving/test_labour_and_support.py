"""Labour and support are shares of purchase: in the TCO alone, weighed as a lower price of electricity weighs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import coopt
from coopt.explain.prices import prices_of
from coopt.instance.schema import Instance
from coopt.network.parts import usd_per_w
from coopt.plan.schema import Plan
from coopt.report.plan import plan_report
from coopt.report.words import rendered
from tests.changes import with_part
from tests.conftest import accepted, ask
from tests.solving.sites.test_sites import apart
from tests.solving.test_partition_cores import two

OWNED = {"minimize": "tco", "labour_share": 0.05, "support_share": 0.06}


def with_terms(instance: Instance, **terms: Any) -> Instance:
    objective = instance.objective.model_copy(update=terms)
    return Instance.model_validate(instance.model_copy(update={"objective": objective}).model_dump(by_alias=True))


def test_they_count_in_the_total_cost_alone() -> None:
    instance, bare = ask(objective=OWNED), ask(objective={"minimize": "tco"})
    plan, without = coopt.solve(instance), coopt.solve(bare)
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


GROWING: dict[str, Any] = {
    "phase": [
        {"gpus": 32, "year": 0},
        {"gpus": 64, "year": 2, "price": {"hb": 0.5, "nic": 0.5, "switch": 0.5, "optics": 0.5, "energy": 0.5}},
    ],
    "objective": OWNED | {"years": 3.0},
}


def test_each_phase_has_its_labour_and_support() -> None:
    instance = ask(**GROWING)
    plan = accepted(instance)
    first, last = plan.couplings.growth
    stands = [part.cost.capex_usd for part in plan.parts]  # at the prices of the instance
    assert first.work_usd == pytest.approx(0.05 * first.capex_usd + 2 * 0.06 * stands[0], rel=1e-12)
    assert last.work_usd == pytest.approx(0.05 * last.capex_usd + 3 * 0.06 * 0.5 * stands[1], rel=1e-12)
    spent = [one.capex_usd + one.work_usd + one.energy_usd for one in plan.couplings.growth]
    assert plan.objective.value == pytest.approx(math.fsum(spent), rel=1e-12)
    lie = plan.model_dump(mode="json", by_alias=True)
    lie["couplings"]["growth"][1]["work_usd"] = 0.0
    assert "phase-work" in {one.name for one in coopt.verify(instance, Plan.model_validate(lie)).failures}
    text = " ".join(rendered(plan_report(instance, plan)).split())
    assert "of labour and support" in text


@pytest.mark.parametrize("doubt", [{}, {"robust": {"prices": {"optics": [0.5, 2.0]}}}], ids=["", "at worst prices"])
def test_a_price_weighs_with_the_support_of_all_phases_where_questions_are_solved_again(doubt: dict[str, Any]) -> None:
    """Within its range the plan stays, and its cost follows the price by the slope that the range was found with."""
    instance = ask(**GROWING | doubt | {"network__hb_domains": "hgx-h100-8"})
    plan, found = coopt.solve(instance), coopt.explain(instance)
    (price,) = [one for one in found.prices if one.item == "400g-199"]
    assert price.high is None or price.high > price.now * 1.01
    dearer = price.now * 1.01
    again = coopt.solve(_repriced(instance, "400g-199", dearer))
    slope = (again.objective.value - plan.objective.value) / (dearer - price.now)
    product = next(one for one in prices_of(instance) if one.product == ("optics", "400g-199"))
    assert product.slope(instance, plan, price.now) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize(
    "beside", [{}, {"robust": {}}, {"site": [{"name": "here", "power_mw": 1.0}]}], ids=["islands", "doubt", "site"]
)
def test_islands_take_the_nic_of_less_purchase_where_that_brings_labour(beside: dict[str, Any]) -> None:
    """The cooler one saves electricity for 1.25 of what it costs beyond the other, and 1.5 with labour."""
    bare = ask(objective={"minimize": "tco"})
    saved = (500 - 20) * usd_per_w(bare.objective)
    hot, cool = ({"name": name, "gbit_s": 400, "w": w} for name, w in (("hot", 500), ("cool", 20)))
    nics = [hot | {"usd": 1000}, cool | {"usd": 1000 + saved / 1.25}]
    shape = {"network__nics": nics, "network__fabrics": "rail-only", "sharing": {"mode": "partition"}, **beside}
    include = {"minimize": "tco", "include": ["gpu", "hb", "nic", "switch", "optics"]}
    taken = []
    for labour in (0.0, 0.5):
        plan = accepted(ask(**shape, workload__0__gpus=64, objective=include | {"labour_share": labour}))
        (part,) = plan.parts
        taken.append(part.design.fabric.nic.name)
    assert taken == ["cool", "hot"]


ISLANDS = {"gbit_s_per_gpu": 100.0}


@pytest.mark.parametrize(
    "question",
    [
        lambda: two(core=ISLANDS),
        lambda: two(core=ISLANDS, site=[{"name": "here", "power_mw": 1.0}]),
        lambda: Instance.model_validate(apart()),
        lambda: ask(robust={"prices": {"nic": [0.5, 2.0]}}),
    ],
    ids=["partition", "fleet", "sites", "robust"],
)
def test_a_coupled_plan_that_leaves_them_out_is_rejected(question: Callable[[], Instance]) -> None:
    asked = with_terms(question(), minimize="tco", labour_share=0.05)
    plan = coopt.solve(asked)
    lie = plan.model_copy(
        update={"cost": plan.cost.model_copy(update={"tco_usd": plan.cost.tco_usd - 0.05 * plan.cost.capex_usd})}
    )
    assert coopt.verify(asked, plan).accepted
    assert "tco" in {check.name for check in coopt.verify(asked, lie).failures}
