"""Limits are called by their names and then their keys, units stand by numbers, and counts agree with their nouns."""

from __future__ import annotations

import pytest

from coopt.instance.question import Objective
from coopt.plan.parts import Cost, line
from coopt.solving.reasons.labels import both, limit_name, sentence, why_billed_more


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
    assert why_billed_more(capex, bill(1, 8, 1.0), bill(3, 9, 2.0)) == (
        "it takes 2 more switches ($200) and 1 more NIC ($10), and its transceivers cost $5 more"
    )
