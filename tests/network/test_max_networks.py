"""Separate networks stay within `network.max_networks`: planner, verifier and enumeration agree."""

from typing import Any

import pytest

import coopt
from tests.conftest import accepted, ask, switch

NIC = {"name": "two-ports", "gbit_s": 400, "ports": [1, 2], "usd": 1500, "w": 25}
TWIN = {"name": "twin", "gbit_s": 400, "breakout": [2], "reach_m": 500, "usd": 150, "w": 5}
SMALL: dict[str, Any] = {
    "cluster__gpus": 64,
    "network__hb_domains": "hgx-h100-8",
    "network__fabrics": ["rail-only", "clos"],
    "network__nics": [NIC],
    "network__nic_planes": [1, 2],
    "network__switches": [switch(16, 5000, 200), switch(32, 9000, 400)],
    "network__optics": ["400g-199", TWIN],
    "workload__0__max_iteration_time_s": 100.0,
}


def least(allowed: int) -> float:
    """The least value over fabrics and planes of NICs that are asked for one by one."""
    values = []
    for fabric, rails in (("rail-only", 8), ("clos", 1)):
        for planes in (1, 2):
            if rails * planes <= allowed:
                alone = {"network__fabrics": fabric, "network__nic_planes": planes}
                values.append(coopt.solve(ask(**SMALL | alone)).objective.value)
    return min(value for value in values if value is not None)


@pytest.mark.parametrize("allowed", [1, 2, 8, 16])
def test_the_best_of_so_many_networks_is_found(allowed: int) -> None:
    plan = accepted(ask(**SMALL, network__max_networks=allowed))
    assert plan.objective.value == pytest.approx(least(allowed), rel=1e-12)
    assert plan.design is not None
    assert plan.design.fabric.planes <= allowed


def test_more_are_rejected_and_none_at_all_names_the_key() -> None:
    rails = {"network__fabrics": "rail-only"}
    free, bound = ask(**SMALL | rails), ask(**SMALL | rails, network__max_networks=4)
    claim = coopt.solve(bound)
    assert claim.status == "infeasible"
    assert "network.max_networks" in claim.explanation[0]
    forged = coopt.solve(free).model_copy(update={"instance": claim.instance})
    assert "networks" in {check.name for check in coopt.verify(bound, forged).failures}
