"""The optimum over NICs with ports on several planes: confirmed by an enumeration, and never worse for a choice."""

from __future__ import annotations

from typing import Any

import pytest

import coopt
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from tests.conftest import question, switch
from tests.network.test_planes import large


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"robust": {"survive": "nic", "slower": 3.0}},
        {"sharing": {"mode": "partition"}},
        {"phase": [{"gpus": 32, "year": 0}, {"gpus": 64, "year": 1}]},
    ],
    ids=["shared", "robust", "partition", "phases"],
)
def test_a_box_with_modes_is_as_good_as_a_switch_of_each(changes: dict[str, Any]) -> None:
    """Slower ports of the same box join more GPUs to a switch, here at half the rate."""
    table: dict[str, Any] = {
        "nics": [],
        "optics": [],
        "switches": [switch(8, 900), {**switch(16, 900), "port_gbit_s": 200}],
    }
    for rate in (200, 400):
        table["nics"].append({"name": f"n{rate}", "gbit_s": rate, "usd": rate, "w": 1})
        table["optics"].append({"name": f"o{rate}", "gbit_s": rate, "reach_m": 500, "usd": rate / 2, "w": 1})
    one = question(**changes)
    one["network"] |= table | {"oversubscription": 1.0, "hb_domains": "hgx-h100-8"}
    if "sharing" in changes:
        one["workload"] = [one["workload"][0] | {"name": name, "gpus": [16, 32]} for name in ("a", "b")]
    if "phase" in changes:
        one["phase"] = [phase | {"workloads": ["w"]} for phase in one["phase"]]
    box = {**switch(8, 900), "modes": [{"radix": 16, "port_gbit_s": 200}]}
    other = {**one, "network": one["network"] | {"switches": [box]}}
    plans = []
    for instance in map(Instance.model_validate, (one, other)):
        plans.append(coopt.solve(instance))
        verdict = coopt.verify(instance, plans[-1])
        assert verdict.accepted, verdict.failures
    assert plans[0].objective.value is not None
    assert plans[0].objective.value == plans[1].objective.value
    assert all(item.item.startswith("8-port") for item in plans[1].cost.items if item.kind == "switch")


def test_a_plan_on_planes_is_explained_routed_and_simulated() -> None:
    changes = {"cluster__gpus": 512, "network__nic_planes": [1, 8], "network__charge": "loads"}
    instance = large(**changes, workload__0__global_batch=512, workload__0__max_iteration_time_s=0.2)
    plan = coopt.solve(instance)
    assert isinstance(plan, Plan)
    assert plan.design.fabric.nic.planes == 8
    assert plan.design.fabric.planes == 8
    rivals = coopt.explain(instance, plan).rivals
    planes = {rival.choice: rival.excluded for rival in rivals if rival.part == "network.nic_planes"}
    assert planes == {"1": False, "8": True}
    assert coopt.route(instance, plan).workloads[0].within_bound
    assert coopt.simulate(instance, plan).workloads[0].simulated_s > 0
    assert coopt.faults(instance, plan)
