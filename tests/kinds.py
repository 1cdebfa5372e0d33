"""One instance of every kind of question, each with knobs that change the training and every limit set; solved once."""

from functools import cache
from typing import Any

import coopt
from coopt.instance.schema import Instance
from coopt.plan.schema import Plan
from tests.conftest import FEW_MAPPINGS, question, small_model
from tests.solving.direct.test_direct_links import linked
from tests.solving.sites.test_sites import apart

KNOBS = {"dp_mode": "stale-1", "tp_sync_fraction": 0.5}
ALIKE: dict[str, Any] = {"workload__0__options": KNOBS, "limits": {"power_mw": 1.0, "capex_usd": 1e7, "racks": 1000}}
FEW: dict[str, Any] = {
    "cluster__gpus": 16,
    "workload__0__global_batch": 16,
    "workload__0__mapping": FEW_MAPPINGS | {"micro_batch": 1},
    "network__fabrics": "rail-only",
    "network__hb_domains": "hgx-h100-8",
}
PRICES = {"switch": [0.2, 9.0], "nic": [0.5, 2.0]}
ISLANDS: dict[str, Any] = {
    "workload": [
        {"name": name, "model": small_model(), "global_batch": 64, "max_iteration_time_s": bound_s}
        | {"options": KNOBS, "mapping": FEW_MAPPINGS}
        for name, bound_s in (("first", 0.3), ("second", 0.2))
    ],
    "sharing": {
        "mode": "partition",
        "most_products": {"hb": 1},
        "discount": [{"kind": "nic", "item": "cx7-400g", "from": [20], "off": [0.1], "applies": "incremental"}],
    },
    "limits": ALIKE["limits"],
}
PARTITION: dict[str, Any] = ISLANDS | {
    "workload": [workload | {"gpus": [8, 16, 32]} for workload in ISLANDS["workload"]]
}
"""Islands of three sizes, as who doubts a plan enumerates those of every size; fleets of `ISLANDS` leave sizes open."""
PHASES: dict[str, Any] = {
    "phase": [
        {"year": 2026, "gpus": 16, "workloads": {"name": "w", "max_iteration_time_s": 2.0}},
        {"year": 2029.5, "gpus": 64, "price": {"nic": 0.5}, "retrofit_usd_per_link": 10},
    ],
    "network__hb_domains": ["hgx-h100-8"],
    "network__fabrics": "clos",
    "limits": {"power_mw": 1.0, "racks": 1000},
}
FLEET: dict[str, Any] = {
    "cluster__gpus": 64,
    "workload": [workload | {"gpus": [16, 32]} for workload in ISLANDS["workload"]],
    "phase": [
        {"year": 2026, "gpus": 32, "workloads": {"name": "first", "max_iteration_time_s": 1.0}},
        {
            "year": 2029.5,
            "gpus": 64,
            "workloads": [{"name": "first", "max_iteration_time_s": 0.15}, "second"],
            "price": {"nic": 0.5, "gpu": 0.9},
            "retrofit_usd_per_link": 10,
        },
    ],
    "site": [{"name": "east", "power_mw": 0.05, "usd_per_kwh": 0.05}, {"name": "west", "power_mw": 0.2, "pue": 1.1}],
    "robust": {"survive": "nic", "slower": 1.5, "prices": PRICES},
    "sharing": ISLANDS["sharing"] | {"core": {"switch": "16-port", "gbit_s_per_gpu": 25.0}},
    "network__hb_domains": "hgx-h100-8",
    "network__fabrics": "rail-only",
    "objective": {"minimize": "tco", "include": ["hb", "nic", "switch", "optics", "gpu"]},
    "limits": {"power_mw": 1.0, "racks": 1000},
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "shared": question(**ALIKE),
    "turns": question(**ISLANDS | {"sharing": {"mode": "time"}}),
    "worst-case": question(robust={"survive": "nic", "slower": 1.5, "prices": PRICES}, **FEW, **ALIKE),
    "regret": question(robust={"aim": "regret", "prices": PRICES}, **FEW, **ALIKE),
    "partition": question(**PARTITION),
    "phased": question(**ALIKE | PHASES),
    "fleet": question(**FLEET),
    "sites": apart(**ALIKE),
    "direct": linked(**ALIKE),
    "switched": linked(network__panels=[{"name": "gold", "usd_per_port": 50_000, "w_per_port": 0}], **ALIKE),
}


@cache
def solved(kind: str) -> tuple[Instance, Plan]:
    """The instance of a kind and its plan, which is optimal."""
    instance = Instance.model_validate(QUESTIONS[kind])
    plan = coopt.solve(instance)
    assert plan.status == "optimal", plan.explanation
    return instance, plan
