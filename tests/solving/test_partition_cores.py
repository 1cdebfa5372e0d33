"""A core between islands is bought with them, and no larger than their links need."""

from __future__ import annotations

import json
import math
from typing import Any

import coopt
from coopt.instance.schema import Instance
from coopt.plan.couplings import CorePlan
from coopt.plan.schema import Plan
from tests.conftest import accepted, ask, small_model, switch
from tests.solving.fleet_oracle import enumerated

SHAPE = small_model(layers=4, hidden=2048, heads=16, kv_heads=16, ffn=8192)
RUN = {"model": SHAPE, "global_batch": 72, "max_iteration_time_s": 9.0, "mapping": {"zero": 0, "micro_batch": [1]}}
LIST = ("hb", "nic", "switch", "optics", "gpu")


def two(sizes: tuple[int, int] = (32, 32), core: dict[str, Any] | None = None, **changes: Any) -> Instance:
    """Two workloads on islands of a given size, in HB domains of 36 or in smaller ones; a core of 8-port switches."""
    table: dict[str, Any] = {
        "cluster__gpus": 80,
        "workload": [{"name": name, "gpus": [n], **RUN} for name, n in zip(("a", "b"), sizes, strict=True)],
        "network__hb_domains": [
            {"name": "hb36", "size": 36, "gbyte_s": 450, "usd_per_gpu": 1000, "w_per_gpu": 30, "racks": 1}
        ],
        "network__switches": [switch(8, 5000), switch(16, 11000)],
        "objective": {"include": list(LIST)},
        "sharing": {"mode": "partition"} | ({"core": {"switch": "8-port", **core}} if core else {}),
    }
    return ask(**{**table, **changes})


def solved(instance: Instance) -> tuple[Plan, CorePlan, float]:
    """The plan, proven and accepted, its core and its value."""
    plan = accepted(instance)
    assert plan.status == "optimal"
    assert plan.couplings.cores
    assert plan.objective.value is not None
    return plan, plan.couplings.cores[0].core, plan.objective.value


def test_two_switches_are_exactly_full_and_one_more_link_makes_three() -> None:
    _, full, _ = solved(two((32, 32), {"gbit_s_per_gpu": 100.0}))
    assert (full.switches, full.ports) == (2, 16)
    _, over, _ = solved(two((32, 36), {"gbit_s_per_gpu": 100.0}))
    assert (over.switches, over.ports) == (3, 17)


def test_an_island_of_one_domain_joins_by_nics_and_pays_for_links_at_both_ends() -> None:
    core = {"gbit_s_per_gpu": 100.0}
    free = coopt.solve(two())
    plan, found, value = solved(two(core=core))
    assert [(one.workload, one.links, one.per_leaf) for one in found.islands] == [("a", 8, 0), ("b", 8, 0)]
    counts = {(item.kind, item.item): item.count for item in plan.cost.items}
    assert counts["nic", "cx7-400g"] == 16
    assert counts["switch", "8-port"] == 2
    assert counts["optics", "400g-199"] == 32
    (nic,), (optic,) = two().network.nics, two().network.optics
    assert math.isclose(value - free.objective.value, 16 * nic.usd + 2 * 5000 + 32 * optic.usd)
    assert sum(part.power_w for part in plan.parts) + found.power_w == plan.cost.power_w


def small_domains(core: dict[str, Any] | None, **changes: Any) -> Instance:
    """Islands of four domains of 8, so that they need leaves."""
    domain = {"name": "hb8", "size": 8, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 30, "racks": 1}
    return two(core=core, network__hb_domains=[domain], network__fabrics=["rail-only"], **changes)


def test_without_a_core_it_costs_less() -> None:
    free = coopt.solve(small_domains(None))
    _, _, value = solved(small_domains({"gbit_s_per_gpu": 50.0}))
    assert not free.couplings.cores
    assert value > free.objective.value


def test_ports_for_the_core_leave_fewer_for_nics_and_take_further_leaves() -> None:
    """Eight planes of four domains: four planes fill a leaf of 16 ports, three leave room for links."""
    only = {"network__switches": [switch(16, 11000)]}
    free = coopt.solve(small_domains(None, **only))
    plan, core, _ = solved(small_domains({"switch": "16-port", "gbit_s_per_gpu": 50.0}, **only))
    before, after = ([one.design.fabric.tier[0].switches for one in each.parts] for each in (free, plan))
    assert (before, after) == ([2, 2], [3, 3])
    assert [(one.links, one.per_leaf) for one in core.islands] == [(6, 2), (6, 2)]


def test_a_limit_counts_core_switches_and_names_the_least_that_holds_them() -> None:
    core = {"gbit_s_per_gpu": 100.0}
    plan, _, _ = solved(two(core=core))
    mw = plan.cost.power_w / 1e6
    assert coopt.solve(two(core=core, limits={"power_mw": mw})).status == "optimal"
    poor = coopt.solve(two(core=core, limits={"power_mw": mw - 80e-6}))
    assert poor.status == "infeasible"
    (sentence,) = poor.explanation
    least = float(sentence.split("needs at least ")[1].split(" (")[0].replace(",", ""))
    assert mw <= least < mw + 1e-5


def test_a_budget_counts_core_switches_and_names_the_least_that_holds_them() -> None:
    core = {"gbit_s_per_gpu": 100.0}
    *_, value = solved(two(core=core, objective={"include": list(LIST), "minimize": "capex"}))
    poor = coopt.solve(two(core=core, limits={"capex_usd": value - 1.0}))
    assert poor.status == "infeasible"
    assert poor.explanation[0].startswith("limits.capex_usd = ")
    least = float(poor.explanation[0].split("needs at least ")[1].split(" (")[0].replace(",", ""))
    assert value <= least < value * 1.001


def test_the_switch_of_the_core_is_one_of_the_products_that_count() -> None:
    discount = {"kind": "switch", "item": "8-port", "from": [3], "off": [0.5]}
    few = {"mode": "partition", "most_products": {"switch": 1}, "discount": [discount]}
    asked = small_domains({"gbit_s_per_gpu": 50.0})
    table = asked.model_dump(mode="json", by_alias=True, exclude_none=True)
    table["sharing"] = {**few, "core": table["sharing"]["core"]}
    instance = Instance.model_validate_json(json.dumps(table))
    plan, _, value = solved(instance)
    assert {one.design.fabric.switch.name for one in plan.parts} == {"8-port"}
    (line,) = [item for item in plan.cost.items if item.kind == "switch"]
    assert (line.item, line.unit_usd) == ("8-port", 2500)
    assert value == enumerated(instance)


def test_a_core_no_leaf_has_ports_for_is_said_to_be_the_reason() -> None:
    wide = two(
        core={"gbit_s_per_gpu": 400.0},
        network__hb_domains=[{"name": "hb8", "size": 8, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 30}],
        network__max_tiers=1,
        network__fabrics=["clos"],
        network__switches=[switch(8, 5000)],
    )
    plan = coopt.solve(wide)
    assert plan.status == "infeasible"
    assert "no network joins its domains and has ports left for the core" in plan.explanation[0]
