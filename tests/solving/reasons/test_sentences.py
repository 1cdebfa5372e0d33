"""Limits are called by their names and then their keys, units stand by numbers, and counts agree with their nouns."""

from __future__ import annotations

from pathlib import Path

import pytest

import coopt
from coopt.instance.files import load
from coopt.instance.question import Objective
from coopt.plan.parts import Cost, line
from coopt.solving.reasons.labels import both, costs_more, limit_name, sentence, why_billed_more

QUESTIONS = Path(__file__).parents[3] / "instances" / "questions"


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("workload[0].max_iteration_time_s", "the bound on iteration time (workload[0].max_iteration_time_s)"),
        ("site[1].power_mw", "the limit on power (site[1].power_mw)"),
        ("workload[0].mapping.tp", "workload[0].mapping.tp"),
    ],
)
def test_a_limit_goes_by_its_name_and_its_key(key: str, name: str) -> None:
    assert limit_name(key) == name


def test_a_sentence_begins_with_a_capital_or_a_key() -> None:
    assert sentence("the same network") == "The same network"
    assert sentence("network.hb_domains binds") == "network.hb_domains binds"
    assert sentence("4 x hgx-h100-8") == "4 x hgx-h100-8"


def test_lists_end_with_and() -> None:
    assert [both(["a"]), both(["a", "b"]), both(["a", "b", "c"])] == ["a", "a and b", "a, b and c"]


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


def test_designs_that_differ_in_uplinks_alone_are_told_apart() -> None:
    bounded = {"workload.0.max_iteration_time_s": 10, "objective.minimize": "capex"}
    found = coopt.explain(load(QUESTIONS / "fixed-network.toml", {"workload.0.mapping.outermost": "pp"} | bounded))
    (runner_up,) = (text for text in found.sentences if text.startswith("The runner-up"))
    (faster,) = (text for text in found.sentences if text.startswith("The cheapest design that takes less"))
    assert found.runner_up is not None
    assert found.runner_up.design is not None
    uplinks = found.runner_up.design.fabric.tier[0].uplinks_per_switch
    assert f"at 2:1, with {uplinks} uplinks a leaf, costs" in runner_up
    assert f"at 2:1, with {uplinks} uplinks a leaf: it takes" in faster


def test_a_fabric_that_no_optic_reaches_says_so() -> None:
    near = {
        "network.optics": "400g-dac",
        "network.link_reach_m": [3, 60, 300],
        "catalog.files": [],
        "network.switches": "64x400g",
    }
    found = coopt.explain(load(QUESTIONS / "own-gpu.toml", near))
    (rival,) = (one for one in found.rivals if one.choice == "rail-optimized")
    assert rival.why == "no optic listed reaches the 60 m from one tier to the next (network.link_reach_m)"


def test_a_difference_of_time_that_nobody_measures_is_told_as_less_than_that() -> None:
    assert costs_more("time", 4e-6, 6.9) == "takes less than 0.01% more"
    assert costs_more("time", -4e-6, 6.9) == "takes less than 0.01% less"
    assert costs_more("time", 0.069, 6.9) == "takes 0.069 s more an iteration (+1.00%)"
    assert costs_more("capex", 10.0, 1e9) == "costs $10 more (+0.00%)"
