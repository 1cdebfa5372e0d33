"""A partition with one field changed is rejected, and so is one that a cheaper choice of islands beats."""

from collections.abc import Callable

import pytest

from coopt.instance.schema import Instance
from coopt.plan.parts import NicChoice
from coopt.solving.answer import solve
from coopt.verifier.audit import verify
from tests.changes import with_couplings, with_part
from tests.verifier.cases import DOMAINS, TWO_WORKLOADS, ask, switch

SHARING = {
    "mode": "partition",
    "most_products": {"hb": 1, "nic": 1, "switch": 2},
    "discount": [
        {"kind": "nic", "item": "nic400", "from": [20, 60], "off": [0.1, 0.3]},
        {"kind": "nic", "item": "nic200", "from": [60], "usd": [700.0], "applies": "incremental"},
        {"kind": "gpu", "item": "gpu", "from": [16, 40], "off": [0.1, 0.2], "applies": "incremental"},
        {"kind": "switch", "item": "16x400", "from": [2], "off": [0.2]},
    ],
}
COMMON = {
    "network__hb_domains": [DOMAINS[0]],
    "network__switches": [switch(16), switch(16, 200)],
    "workload": [workload | {"gpus": [8, 16, 24, 32]} for workload in TWO_WORKLOADS],
    "objective__include": ["hb", "nic", "switch", "optics", "gpu"],
}
CASES: dict[str, Callable[[], Instance]] = {
    "brackets": lambda: ask(sharing=SHARING, **COMMON),
    "limits": lambda: ask(
        sharing=SHARING,
        limits__racks=30,
        limits__power_mw=1.0,
        limits__capex_usd=9e6,
        objective__minimize="tco",
        **COMMON,
    ),
    "core": lambda: ask(
        sharing={**SHARING, "core": {"switch": "16x400", "gbit_s_per_gpu": 120.0}}, limits__power_mw=1.0, **COMMON
    ),
}


def test_an_island_without_switches_is_checked_where_it_joins_a_core() -> None:
    few = [workload | {"gpus": [16, 24]} for workload in TWO_WORKLOADS]
    small = [{**DOMAINS[0], "size": 32}]
    table = {**COMMON, "workload": few, "network__hb_domains": small}
    instance = ask(sharing={**SHARING, "core": {"switch": "16x400", "gbit_s_per_gpu": 120.0}}, **table)
    plan = solve(instance)
    assert [(one.links, one.per_leaf) for one in plan.couplings.cores[0].core.islands] == [(5, 0), (8, 0)]
    assert verify(instance, plan).accepted
    slow = plan.parts[0].design.fabric.model_copy(update={"nic": NicChoice(name="nic200", per_gpu=1)})
    design = plan.parts[0].design.model_copy(update={"fabric": slow})
    wrong = with_part(plan, 0, design=design)
    assert {check.name for check in verify(instance, wrong).failures} == {"core-rate"}


def test_islands_share_one_core_of_named_products_of_no_site_and_no_phase_and_none_without_a_plan() -> None:
    asked = CASES["core"]()
    plan = solve(asked)
    (core,) = cores = plan.couplings.cores
    links = tuple(one.model_copy(update={"optic_below": ""}) for one in core.core.islands)
    nameless = {"core": core.core.model_copy(update={"islands": links})}
    for changes in [{"site": "east"}], [{"site": ""}], [{"phase": 2026.0}], [{}, {}], [nameless]:
        forged = with_couplings(plan, cores=tuple(core.model_copy(update=change) for change in changes))
        failures = {check.name for check in verify(asked, forged).failures}
        assert failures & ({"core-links", "core-optic"} if changes == [nameless] else {"core"}), changes
    poor = asked.model_copy(update={"limits": asked.limits.model_copy(update={"capex_usd": 1.0})})
    plan = solve(poor)
    assert verify(poor, plan).accepted
    assert {check.name for check in verify(poor, with_couplings(plan, cores=cores)).failures} == {"status"}


def test_a_large_partition_says_that_its_bound_rests_on_the_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coopt.verifier.couplings.fleet_paths.MOST_FAMILIES", 3)
    instance = ask(sharing=SHARING, cluster__gpus=4096, **COMMON)
    assert verify(instance, solve(instance)).on_trust == "the bound"
