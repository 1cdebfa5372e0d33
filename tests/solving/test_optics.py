"""Where a limit caps another measure than the one minimised, optics are a choice, and the optimum ranges over all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

import coopt
from coopt.instance.schema import Instance, Limits
from coopt.plan.schema import Plan
from tests.conftest import ask, example_count, switch
from tests.network.test_products import CHEAP, FRUGAL
from tests.solving.questions import capped


@settings(max_examples=example_count(20, usual=2))
@given(capped())
def test_the_front_under_a_cap_goes_through_the_optimum(instance: Instance) -> None:
    front, value = coopt.pareto(instance, points=30), coopt.solve(instance).objective.value
    within = [point.best.objective.value for point in front.points if point.pace <= 1.0]
    assert (min(within) if within else None) == (None if value is None else pytest.approx(value, rel=1e-9))


def small(**changes: Any) -> Instance:
    """Eight servers on one tier, 128 transceivers: 100 USD and 20 W each, or 300 USD and 8 W."""
    where: dict[str, Any] = {"network__hb_domains": "hgx-h100-8", "network__fabrics": "rail-only"}
    return ask(**(where | {"network__optics": [CHEAP | {"reach_m": 600}, FRUGAL]} | changes))


def optics(plan: Plan) -> list[str]:
    """The optic of every level."""
    return [tier.optic for tier in plan.design.fabric.tier]


def test_a_cap_on_power_that_only_the_dearer_optic_keeps_is_kept_by_it() -> None:
    plain = coopt.solve(small())
    assert optics(plain) == ["cheap"]
    rest_w = plain.cost.power_w - 128 * 20
    plan = coopt.solve(small(limits={"power_mw": (rest_w + 128 * 8) / 1e6}))
    assert (plan.status, optics(plan)) == ("optimal", ["frugal"])
    assert plan.cost.capex_usd == plain.cost.capex_usd + 128 * (300 - 100)
    assert coopt.verify(small(limits={"power_mw": (rest_w + 128 * 8) / 1e6}), plan).accepted


def test_where_no_optic_keeps_the_cap_the_least_that_one_does_is_named() -> None:
    plain = coopt.solve(small())
    least_w = plain.cost.power_w - 128 * (20 - 8)
    why = coopt.explain(small(limits={"power_mw": (least_w - 100) / 1e6}))
    (change,) = next(one.changes for one in why.relaxations if one.changes[0].limit == "limits.power_mw")
    assert why.status == "infeasible"
    assert change.least == pytest.approx(least_w / 1e6, rel=1e-12)


def test_levels_take_different_optics_where_that_is_enough() -> None:
    instance = small(cluster__gpus=256, network__switches=[{**ask().network.switches[0].model_dump(), "usd": 100}])
    plain = coopt.solve(instance)
    links = [tier.links for tier in plain.design.fabric.tier]
    assert len(links) > 1
    cap = plain.cost.power_w - 2 * min(links) * (20 - 8)
    plan = coopt.solve(instance.model_copy(update={"limits": Limits(power_mw=cap / 1e6)}))
    assert sorted(optics(plan)) == ["cheap", "frugal"]
    assert plan.cost.capex_usd == plain.cost.capex_usd + 2 * min(links) * (300 - 100)


@pytest.mark.parametrize(("limits", "accepted"), [({}, False), ({"limits": {"power_mw": 1}}, True)])
def test_the_verifier_takes_a_dearer_optic_only_where_a_limit_may_ask_for_it(
    limits: dict[str, Any], accepted: bool
) -> None:
    """The claim to be the cheapest is another matter."""
    instance, other = small(**limits), coopt.solve(small(network__optics=[FRUGAL], **limits))
    claimed = other.model_copy(update={"instance": other.instance.model_copy(update={"sha256": instance.sha256})})
    verdict = coopt.verify(instance, claimed)
    assert next(check.ok for check in verdict.checks if check.name == "optics") is accepted
    assert {"bound"} <= {check.name for check in verdict.checks if not check.ok}
    if accepted:
        assert all(check.ok for check in verdict.checks if check.name in ("capex", "power", "bill-lines"))


def test_evaluation_takes_the_cheapest_optic_within_the_limits_and_without_one_the_cheapest() -> None:
    one = {"network__switches": [switch(16, 11000)], "network__oversubscription": [1.0]}
    mappings = [run.mapping for run in coopt.solve(small(**one)).workloads]
    free = coopt.evaluate(small(**one), mappings=mappings)
    rest_w = free.cost.power_w - 128 * 20

    def taken(watts: float) -> tuple[str, bool]:
        found = coopt.evaluate(small(limits={"power_mw": (rest_w + watts) / 1e6}, **one), mappings=mappings)
        (tier,) = found.design.fabric.tier
        return tier.optic, next(check.ok for check in found.limits if check.name.startswith("power"))

    assert taken(128 * 20) == ("cheap", True)
    assert taken(128 * 8) == ("frugal", True)
    assert taken(128 * 8 - 1) == ("cheap", False)
