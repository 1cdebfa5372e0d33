"""What is said of a plan is what solving the changed instance gives, in sentences with names and units."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import coopt
from coopt.explain.answer import explain
from coopt.explain.labels import both, costs_more, limit_name, panels_apart, sentence, why_billed_more, with_unit
from coopt.explain.sentences import of_bound, of_conflicts
from coopt.instance.question import Objective
from coopt.instance.schema import Instance, load
from coopt.instance.texts import with_names
from coopt.network.parts import cost_of
from coopt.network.plan_networks import families_of_design
from coopt.plan.explanation import Bound, Explanation, PriceRange
from coopt.plan.parts import Cost, line
from coopt.solving.answer import solve
from tests.conftest import ASK_WHY, ask, example_count
from tests.explain.changed import at_price, kept_free, moved, only, without
from tests.kinds import FEW
from tests.solving.oracle import with_few_mappings
from tests.solving.questions import twin_ported

HAIR, STEP = 1e-7, 1e-3


@settings(max_examples=example_count(60, usual=2))
@given(
    st.one_of(with_few_mappings(64), twin_ported()), st.sampled_from([(0.0, 0.0), (0.05, 0.0), (0.2, 0.1), (0.0, 0.3)])
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
    for price in found.prices[:: 1 if ASK_WHY else 3]:  # each of which takes four searches
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
    assert any("not the cheapest" in text for text in found.sentences)


def test_a_plan_is_found_among_designs_whose_uplinks_modules_of_two_links_part() -> None:
    optics = [
        {"name": "cable", "gbit_s": 400, "breakout": [2, 4], "reach_m": 500, "usd": 1, "w": 0},
        {"name": "twin", "gbit_s": 800, "breakout": [2, 4], "fibre": "single", "reach_m": 60, "usd": 0, "w": 0},
    ]
    instance = ask(
        cluster__gpus=48,
        network={
            "hb_domains": {"name": "hb8", "size": 8, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 10},
            "fabrics": "rail-only", "nics": {"name": "nic", "gbit_s": 400, "usd": 0, "w": 20},
            "switches": {"name": "4-port", "radix": 4, "port_gbit_s": 400, "cages": 2, "usd": 0, "w": 90},
            "optics": optics, "oversubscription": 2.0, "charge": "ratio", "routing": 1.0, "link_reach_m": [40, 40, 40],
        },
    )  # fmt: skip
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


QUESTIONS = Path(__file__).parents[2] / "instances" / "questions"


def test_limits_go_by_names_and_keys_sentences_begin_with_capitals_or_keys_and_lists_end_with_and() -> None:
    bound = "workload[0].max_iteration_time_s"
    assert limit_name(bound) == f"the bound on iteration time ({bound})"
    assert limit_name("site[1].power_mw") == "the limit on power (site[1].power_mw)"
    assert limit_name("workload[0].mapping.tp") == "workload[0].mapping.tp"
    assert sentence("the same network") == "The same network"
    assert [sentence(text) for text in ("network.hb_domains binds", "4 x h")] == ["network.hb_domains binds", "4 x h"]
    assert [both(["a"]), both(["a", "b"]), both(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]
    assert [len(told("MW", used, step=0.0)) for used in (0.0, 0.2)] == [1, 2], "nothing is less than nothing"
    together, alone = of_conflicts([("limits.racks", "limits.power_mw"), ("limits.capex_usd",)])
    assert together.startswith("These limits conflict, ")
    assert "(limits.capex_usd) alone rules out every plan" in alone


def bill(switches: int, nics: int, optics_usd: float) -> Cost:
    rows = (("switch", switches, 100.0), ("nic", nics, 10.0), ("optics", 5, optics_usd))
    items = tuple(line(kind, kind, count, usd, 0.0) for kind, count, usd in rows)
    return Cost(capex_usd=sum(item.usd for item in items), power_w=0.0, tco_usd=0.0, items=items)


def test_one_more_is_one_switch_and_two_more_are_switches() -> None:
    capex = Objective()
    assert why_billed_more(capex, bill(1, 8, 1.0), bill(2, 8, 1.0)) == "it takes 1 more switch ($100)"
    assert why_billed_more(capex, bill(2, 8, 1.0), bill(1, 8, 1.0)) == "the plan takes 1 more switch ($100)"
    assert why_billed_more(capex, bill(1, 8, 1.0), bill(3, 9, 2.0)) == (
        "it takes 2 more switches ($200) and 1 more NIC ($10), and its transceivers cost $5 more"
    )
    cables = [line("fibre", "om4", 2, usd, 0.0) for usd in (1.0, 3.0)]
    costs = [Cost(capex_usd=item.usd, power_w=0.0, tco_usd=0.0, items=(item,)) for item in cables]
    assert why_billed_more(capex, *costs) == "its fibre costs $4 more"
    patched = Cost(capex_usd=90.0, power_w=0.0, tco_usd=0.0, items=(line("switch", "ocs", 9, 10.0, 0.0),))
    linked = load(QUESTIONS.parent / "direct-32.toml")
    bills = [panels_apart(linked, cost) for cost in (patched, bill(1, 0, 0.0))]
    assert why_billed_more(capex, *bills) == "it takes 1 more switch ($100), while other parts cost $90 less"


def test_electricity_of_phases_is_told_apart_so_that_all_adds_up() -> None:
    switches, nics = line("switch", "s", 1, 100.0, 50.0), line("nic", "n", 2, 10.0, 5.0)
    bought = {1: (switches, nics), 2: (switches, switches)}
    for works, said in ({}, "electricity costs"), ({"support_share": 0.1}, "electricity, labour and support cost"):
        tco = Objective(minimize="tco", **works)
        ours, rival = (
            Cost(capex_usd=sum(item.usd for item in items), power_w=60.0, tco_usd=usd, items=items)
            for items, usd in ((bought[1], 150.0), (bought[2], 260.0))
        )
        reason = why_billed_more(tco, ours, rival)
        assert all(part in reason for part in ("1 more switch ($100)", f"{said} $30 more", "cost $20 less"))


def test_designs_that_differ_in_uplinks_alone_are_told_apart() -> None:
    bounded = {"workload.0.max_iteration_time_s": 10, "objective.minimize": "capex", "network.buildable": False}
    found = coopt.explain(load(QUESTIONS / "fixed-network.toml", {"workload.0.mapping.outermost": "pp"} | bounded))
    (runner_up,) = (text for text in found.sentences if text.startswith("The runner-up"))
    uplinks = found.runner_up.design.fabric.tier[0].uplinks_per_switch
    assert f"with {uplinks} uplinks per leaf" in runner_up


def test_a_fabric_that_no_optic_reaches_says_so() -> None:
    near = {
        "network.optics": "400g-dac", "network.link_reach_m": [3, 60, 300], "catalog.files": [],
        "network.switches": "64x400g",
    }  # fmt: skip
    found = coopt.explain(load(QUESTIONS / "own-gpu.toml", near))
    (rival,) = (one for one in found.rivals if one.choice == "rail-optimized" and not one.excluded)
    assert rival.value is None
    assert "network.link_reach_m" in rival.why


def test_a_difference_of_time_that_nobody_measures_is_told_as_less_than_that() -> None:
    assert costs_more("time", 4e-6, 6.9) == "takes less than 0.01% more"
    assert costs_more("time", -4e-6, 6.9) == "takes less than 0.01% less"
    assert costs_more("time", 0.069, 6.9) == "takes 0.069 s more an iteration (+1.00%)"
    assert costs_more("capex", 10.0, 1e9) == "costs $10 more (+0.00%)"


def told(unit: str, used: float | None, **more: Any) -> list[str]:
    numbers = {"bound": 9.0, "used": used, "slack": 0.1, "loosest": 99.0}
    one = {"limit": "some", "unit": unit, "binds": False, "tighter": None, "looser": None} | numbers | more
    return list(of_bound("capex", 100.0, Bound.model_validate(one)))


@pytest.mark.parametrize(
    ("unit", "used", "text"),
    [("channels", 1.0, "uses 1 channel of 9"), ("tokens/s", 9.5, "trains 9.5"), ("s", 7.0, "takes 7 s of 9 s")],
)
def test_what_a_plan_takes_of_a_bound_stands_beside_it(unit: str, used: float, text: str) -> None:
    assert text in told(unit, used)[0]


def test_no_factor_on_bounds_after_a_loss_is_tried_that_nobody_can_type() -> None:
    (bound,) = (
        one for one in explain(ask(robust={"survive": "nic"}, **FEW)).bounds if one.limit == "robust.slower.nic"
    )
    assert (bound.bound, bound.tighter, bound.step) == (1.0, None, None)
    said = " ".join(of_bound("capex", None, bound))
    assert ("0.99" in said, "tighter" in said) == (False, False)


def test_what_a_looser_bound_lets_in_stands_with_its_price() -> None:
    looser = {"bound": 12.0, "value": 90.0, "extra": -10.0}
    binding = told("MW", 9.0, binds=True, looser=looser, without={**looser, "bound": 99.0, "extra": -20.0})
    assert "$20 less (-20.00%)" in binding[0]
    assert "12 MW" in binding[1]
    assert "$10 less (-10.00%)" in binding[1]


def test_rows_are_called_by_their_names() -> None:
    names = {"site": ("oslo", "berlin"), "wan": ("oslo - berlin",), "phase": ("2026", "2028", "2030")}
    names |= {"phase[1].workloads": ("chat", "code"), "phase[2].workloads": ("code",), "workload": ("chat", "chat")}
    for key, said in {
        "site[1].power_mw": "site['berlin'].power_mw",
        "site[2].power_mw": "site[2].power_mw",
        "wan[0].most": "wan[0].most",
        "phase[1].workloads[0].train_days": "phase['2028'].workloads['chat'].train_days",
        "phase[0].workloads[0].train_days": "phase['2026'].workloads[0].train_days",
        "phase[2].workloads[0].train_days": "phase['2030'].workloads['code'].train_days",
        "workload[1].gpus": "workload[1].gpus",
        "prewan[0].most": "prewan[0].most",
    }.items():
        assert with_names(f"With {key} = 3.", names) == f"With {said} = 3."


@pytest.mark.parametrize(
    ("value", "shown"),
    [(8.4e-5, "0.000084 MW"), (1e-13, "1e-13 MW"), (0.5, "0.5 MW"), (1_500_000.0, "1,500,000 MW"), (1.0, "1 day")],
)
def test_few_watts_are_not_counted_in_powers_of_ten_and_one_day_is_single(value: float, shown: str) -> None:
    assert with_unit(value, {"day": "days"}.get(unit := shown.split()[1], unit)) == shown
