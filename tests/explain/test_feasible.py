"""What is said of a plan is what solving the changed instance gives."""

from __future__ import annotations

import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from coopt.explain.answer import explain
from coopt.instance.schema import Instance
from coopt.network.parts import cost_of
from coopt.network.plan_networks import families_of_design
from coopt.plan.explanation import Bound, Explanation, PriceRange
from coopt.solving.answer import solve
from tests.conftest import ask, example_count
from tests.explain.changed import at_price, kept_free, moved, only, without
from tests.solving.oracle import with_few_mappings
from tests.solving.questions import twin_ported

HAIR, STEP = 1e-7, 1e-3


@settings(max_examples=example_count(60, usual=3))
@given(
    st.one_of(with_few_mappings(), twin_ported()), st.sampled_from([(0.0, 0.0), (0.05, 0.0), (0.2, 0.1), (0.0, 0.3)])
)
def test_what_is_said_of_an_optimum_is_what_solving_changed_questions_gives(
    bare: Instance, margins: tuple[float, float]
) -> None:
    instance = kept_free(bare, *margins)
    plan = solve(instance, top=2)
    assume(plan.status == "optimal")
    found = explain(instance)
    assert (found.status, found.value, found.design) == ("optimal", plan.objective.value, plan.design)
    if not plan.alternatives:
        assert found.runner_up is None
    else:
        assert found.runner_up.value == plan.alternatives[0].objective.value
        assert found.runner_up.regret == pytest.approx(found.runner_up.value - found.value, abs=1e-8 * found.value)
    for rival in found.rivals:
        shorter = solve((without if rival.excluded else only)(instance, rival.part, rival.choice))
        assert (rival.value, rival.design is None) == (shorter.objective.value, shorter.status == "infeasible")
        assert rival.why
        assert rival.extra is None or rival.extra == pytest.approx(rival.value - found.value, abs=1e-8 * found.value)
    for bound in found.bounds:
        _check_bound(instance, found, bound)
    for price in found.prices:
        _check_price(instance, found, price)


def _check_bound(instance: Instance, found: Explanation, bound: Bound) -> None:
    """A bound moves to the plans that are named."""
    if bound.used:
        tighter = solve(moved(instance, bound.limit, bound.used * (1 - HAIR)))
        assert tighter.objective.value == (bound.tighter.value if bound.tighter else None)
    else:
        assert bound.tighter is None  # nothing is less than nothing
    assert solve(moved(instance, bound.limit, bound.used * (1 + HAIR))).objective.value == found.value
    _check_looser(instance, found, bound)


def _check_looser(instance: Instance, found: Explanation, bound: Bound) -> None:
    if bound.looser is None:
        assert not bound.binds
        assert solve(moved(instance, bound.limit, bound.bound * 1e6)).objective.value == found.value
    else:
        assert bound.binds
        before, after = (moved(instance, bound.limit, bound.looser.bound * (1 + side * HAIR)) for side in (-1, 1))
        assert solve(before).objective.value == found.value
        assert solve(after).objective.value == bound.looser.value


def _check_price(instance: Instance, found: Explanation, one: PriceRange) -> None:
    """The plan is optimal inside the range of a price and not outside."""
    high = one.high if one.high is not None else 2 * one.now + 1
    assert one.low <= one.now <= high
    for inside in (one.low + (one.now - one.low) * HAIR, high - (high - one.now) * HAIR):
        assert _stays(at_price(instance, one.item, one.unit, inside), found)
    if one.low > 0:
        assert not _stays(at_price(instance, one.item, one.unit, one.low * (1 - STEP)), found)
    if one.high is not None:
        assert not _stays(at_price(instance, one.item, one.unit, one.high * (1 + STEP) + STEP), found)


def test_a_plan_with_optics_that_are_not_worth_having_is_explained() -> None:
    dear = ask(network__optics=["400g-dr4", "400g-199"])
    cheap = dear.model_copy(update={"network": dear.network.model_copy(update={"optics": dear.network.optics[:1]})})
    plan, best = solve(cheap), solve(dear)
    own = plan.model_copy(update={"instance": best.instance, "status": "feasible"})
    found = explain(dear, own)
    assert plan.objective.value is not None
    assert (found.status, found.value) == ("feasible", plan.objective.value)
    assert found.value > best.objective.value
    assert any(text.startswith("It is not the cheapest") for text in found.sentences)


def test_a_plan_is_found_among_designs_whose_uplinks_modules_of_two_links_part() -> None:
    optics = [
        {"name": "cable", "gbit_s": 400, "breakout": [2, 4], "reach_m": 500, "usd": 1, "w": 0},
        {"name": "twin", "gbit_s": 800, "breakout": [2, 4], "fibre": "single", "reach_m": 60, "usd": 0, "w": 0},
    ]
    instance = ask(
        cluster__gpus=48,
        network={
            "hb_domains": {"name": "hb8", "size": 8, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 10},
            "fabrics": "rail-only",
            "nics": {"name": "nic", "gbit_s": 400, "usd": 0, "w": 20},
            "switches": {"name": "4-port", "radix": 4, "port_gbit_s": 400, "cages": 2, "usd": 0, "w": 90},
            "optics": optics,
            "oversubscription": 2.0,
            "charge": "ratio",
            "routing": 1.0,
            "link_reach_m": [40, 40, 40],
        },
    )
    found = explain(instance)
    assert [tier.ends for tier in found.design.fabric.tier] == [("cable", "cable"), ("twin", "twin")]


def _stays(instance: Instance, found: Explanation) -> bool:
    """Whether the design is still an optimum."""
    assert found.design is not None
    plan = solve(instance)
    if plan.objective.value is None:
        return False
    costs = [cost_of(instance, *one).of(found.kind) for one in families_of_design(instance, found.design)]
    return any(math.isclose(cost, plan.objective.value, rel_tol=1e-10, abs_tol=1e-6) for cost in costs)
