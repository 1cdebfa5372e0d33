"""A plan written by hand, so that reports are tested without a search."""

from typing import Any

import pytest

from coopt.instance.schema import Instance
from coopt.network.plan_networks import Baseline
from coopt.plan.couplings import NETWORK
from coopt.plan.parts import Cost
from coopt.plan.schema import Plan

INSTANCE: dict[str, Any] = {
    "schema": 1, "margin": "none", "name": "by hand", "cluster": {"gpu": "h100-sxm", "gpus": 32768},
    "workload": {"name": "pre-training", "model": "gpt-1t", "global_batch": 4096, "max_iteration_time_s": 12.0},
    "network": {
        "hb_domains": "gh200-256", "fabrics": "rail-only", "nics": "cx7-400g", "switches": "64x400g",
        "optics": "400g-199",
    },
    "limits": {"power_mw": 4.0, "capex_usd": 200e6, "racks": 10_000},
}  # fmt: skip

FABRIC: dict[str, Any] = {
    "kind": "rail-only", "tiers": 2, "planes": 256, "oversubscription": 1.0, "nic": {"name": "cx7-400g", "per_gpu": 1},
    "switch": {"name": "64x400g"}, "switch_count": 1536, "transceiver_count": 131072,
    "tier": [
        {"level": 1, "switches": 1024, "down_ports": 32, "uplinks_per_switch": 32, "links": 32768, "optic": "400g-199"},
        {"level": 2, "switches": 512, "down_ports": 64, "uplinks_per_switch": 0, "links": 32768, "optic": "400g-199"},
    ],
}  # fmt: skip
SWITCHES = {"kind": "switch", "count": 1536, "unit_usd": 44416.0, "usd": 68222976.0, "unit_w": 747.0, "w": 1147392.0}
OPTICS = {"kind": "optics", "count": 131072, "unit_usd": 199.0, "usd": 26083328.0, "unit_w": 9.0, "w": 1179648.0}
MAPPING = {"tp": 8, "pp": 64, "dp": 64, "cp": 1, "ep": 1, "micro_batch": 1, "interleave": 2, "recompute": "none"}
PLAN: dict[str, Any] = {
    "schema": "coopt-plan/2", "instance": {"name": "by hand", "sha256": "0" * 64}, "status": "optimal",
    "stop_reason": "optimal", "objective": {"kind": "capex", "value": 94306304.0, "bound": 94306304.0, "gap": 0.0},
    "design": {
        "gpus": 32768, "spare_gpus": 0, "hb_domain": {"name": "gh200-256", "size": 256, "count": 128, "active": 256},
        "fabric": FABRIC, "racks": 1024,
    },
    "cost": {
        "capex_usd": 94306304.0, "power_w": 2326528.0, "tco_usd": 102458458.0,
        "items": [{"item": name, "name": name} | line for name, line in (("64x400g", SWITCHES), ("400g-199", OPTICS))],
    },
    "workloads": [
        {
            "name": "pre-training", "gpus": 32768, "mapping": MAPPING | {"sequence_parallel": True, "zero": 1},
            "placement": {"tp": [8, 1], "pp": [8, 8], "dp": [4, 16], "cp": [1, 1], "ep": [1, 1]},
            "iteration_time_s": 11.8234, "bound_s": 12.0,
            "breakdown_s": {"compute": 8.0, "logits": 1.0, "tp": 2.0, "pp": 0.0, "bubble": 0.8, "dp": 0.0234},
            "memory_gib": 61.25, "memory_limit_gib": 74.5, "mfu": 0.4512, "mfu_causal": 0.4401, "hfu": 0.5016,
            "tokens_per_s": 709508.3, "error": 0.071,
        }
    ],
    "solver": {
        "formulation": "network", "name": "HiGHS", "version": "1.15.1", "options": {}, "nodes": 1,
        "columns_enumerated": 289000,
        "columns_gated": {"memory": 12000, "dominated": 276909, "compute": 0, "weather": 5}, "columns_kept": 91,
        "families": 445, "cuts": 0,
    },
    "timing_s": {"model": 0.01, "columns": 0.4, "build": 0.001, "handover": 0.5, "solve": 59.0, "total": 60.02},
}  # fmt: skip
PLAN["parts"] = [
    {"name": NETWORK, "power_w": PLAN["cost"]["power_w"]} | {key: PLAN[key] for key in ("design", "cost", "workloads")}
]

BASELINE_CAPEX = 152829952.0
BASELINE_POWER = 3781632.0


@pytest.fixture
def instance() -> Instance:
    """The question."""
    return Instance.model_validate(INSTANCE)


@pytest.fixture
def plan() -> Plan:
    """The answer."""
    return Plan.model_validate(PLAN)


@pytest.fixture
def baseline(plan: Plan) -> Baseline:
    """A three-tier Clos of the same domains."""
    assert plan.design is not None
    fabric = plan.design.fabric.model_copy(update={"kind": "clos", "tiers": 3, "planes": 1, "switch_count": 2560})
    cost = Cost(capex_usd=BASELINE_CAPEX, power_w=BASELINE_POWER, tco_usd=BASELINE_CAPEX, items=())
    return Baseline(plan.design.model_copy(update={"fabric": fabric}), cost)
