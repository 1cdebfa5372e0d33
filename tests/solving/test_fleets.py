"""A fleet's plan is the cheapest there is, or regrets least, over all sizes, uplinks, sites and times to buy."""

from __future__ import annotations

from typing import Any

import pytest

import coopt
from coopt.columns.islands.options import ListedIslands
from coopt.solving.answer import solve
from coopt.solving.fleet import standing
from tests.conftest import ask, value
from tests.solving.fleet_oracle import enumerated
from tests.solving.fleets import SHAPE, two


def test_sites_that_an_earlier_search_looked_at_are_kept_for_other_prices_and_not_for_other_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    domain = {"name": "hb4", "size": 4, "gbyte_s": 450, "usd_per_gpu": 100, "w_per_gpu": 30, "racks": 1}
    common = {"model": SHAPE, "global_batch": 24, "gpus": [8, 16], "mapping": {"recompute": "none", "zero": 0}}
    slow = {"name": "slow", "max_iteration_time_s": 0.4, **common}
    changes: list[dict[str, Any]] = [
        {},
        {"network__hb_domains": [domain | {"usd_per_gpu": 900}]},
        {"network__hb_domains": [domain | {"gbyte_s": 1}]},
        {"workload": [slow]},
        {"workload": [slow | {"max_iteration_time_s": 0.25}]},
        {"margin": {"time": 0.5}},
        {},
    ]
    listed, calls, looked_into, values = ListedIslands(), [], [], []
    serve = standing._IslandSearch._serve
    monkeypatch.setattr(standing._IslandSearch, "_serve", lambda *given: calls.append(given) or serve(*given))
    for change in changes:
        asked, before = two(robust={}, **change), len(calls)
        again = solve(asked, listed=listed).objective.value
        looked_into.append(len(calls) > before)
        assert again == value(asked)
        values.append(again)
    assert looked_into == [True, False, True, True, True, True, False]
    assert len(set(values)) > 3


def test_a_site_of_little_power_takes_the_dearer_part_that_draws_less() -> None:
    """Without power in the objective too."""
    nics = [
        {"name": name, "gbit_s": 400, "usd": usd, "w": w} for name, usd, w in (("hot", 1000, 500), ("cool", 2000, 20))
    ]
    shape = {"network__nics": nics, "network__fabrics": "rail-only", "sharing": {"mode": "partition"}}
    shape["objective"] = {"minimize": "capex", "include": ["gpu", "hb", "nic", "switch", "optics"]}

    def at(power_mw: float) -> tuple[str, float]:
        instance = ask(**shape, workload__0__gpus=64, site=[{"name": "here", "power_mw": power_mw, "pue": 1.0}])
        plan = coopt.solve(instance)
        assert coopt.verify(instance, plan).accepted
        (part,) = plan.parts
        return part.design.fabric.nic.name, part.cost.power_w

    name, power_w = at(1.0)
    assert name == "hot"
    assert at(power_w * 0.999e-6)[0] == "cool"


def test_a_network_that_serves_all_phases_alike_never_changes() -> None:
    """It is bought in the cheap phase before it is needed, and takes no labour."""
    phases = [
        {"year": 0, "gpus": 24, "workloads": ["large"], "price": {"gpu": 0.5, "nic": 0.5}},
        {"year": 2, "gpus": 32, "retrofit_usd_per_link": 5000.0},
    ]
    instance = two(phase=phases)
    plan = coopt.solve(instance)
    large = [part.design for part in plan.parts if part.name.startswith("large")]
    assert len(large) == 2
    assert large[0] == large[1]
    assert enumerated(instance) == plan.objective.value
    assert coopt.verify(instance, plan).accepted
