"""Small fleets: two islands that grow at two sites, with a core, volume prices, doubtful prices and losses."""

from collections.abc import Callable
from typing import Any

from coopt.instance.schema import Instance
from tests.verifier.cases import DOMAINS, MODEL, NICS, OPTICS, ask, switch

ISLANDS: dict[str, Any] = {
    "cluster__gpus": 24,
    "workload": [
        {
            "name": name,
            "model": MODEL,
            "global_batch": 32,
            "allow_tp_across": True,
            "max_iteration_time_s": bound_s,
            "gpus": sizes,
            "mapping": {"micro_batch": 1, "recompute": "none", "zero": 1, "sequence_parallel": True, "interleave": 1},
        }
        for name, bound_s, sizes in (("first", 0.37, [8, 16]), ("second", 1.6, [4, 8]))
    ],
    "network__hb_domains": list(DOMAINS[:2]),
    "network__fabrics": ["rail-only", "clos"],
    "network__nics": [NICS[1]],
    "network__switches": [switch(4), switch(8)],
    "network__optics": list(OPTICS[:2]),
    "objective": {"include": ["hb", "nic", "switch", "optics", "gpu"], "minimize": "tco", "usd_per_kwh": 0.5},
}
DISCOUNTS = [
    {"kind": "nic", "item": "nic400", "from": [14], "off": [0.3]},
    {"kind": "gpu", "item": "gpu", "from": [10, 18], "off": [0.05, 0.1], "applies": "incremental"},
]
SHARING = {"mode": "partition", "most_products": {"hb": 1, "switch": 1, "optics": 2}, "discount": DISCOUNTS}
CORE = {"switch": "4x400", "gbit_s_per_gpu": 100.0}
SITES = [{"name": "north", "power_mw": 0.014, "usd_per_kwh": 0.2}, {"name": "south", "power_mw": 0.02, "pue": 1.1}]
PHASES = [
    {"year": 2027, "gpus": 16, "workloads": {"name": "first", "max_iteration_time_s": 1.5}, "price": {"gpu": 0.8}},
    {"year": 2029, "gpus": 24, "price": {"switch": 0.5, "energy": 1.2}, "retrofit_usd_per_link": 20},
]
REGRET = {"survive": ["nic"], "slower": 1.5, "prices": {"nic": [0.2, 5.0], "hb": [0.5, 4.0]}, "aim": "regret"}
WORST = {"survive": ["nic", "domain"], "slower": 4.0, "prices": {"switch": [0.5, 2.0]}, "efficiency": [0.9, 1.1]}
FLEETS: dict[str, Callable[[], Instance]] = {
    "everything": lambda: ask(
        **ISLANDS, sharing=SHARING | {"core": CORE}, site=SITES, phase=PHASES, robust=REGRET, limits={"racks": 10}
    ),
    "sites": lambda: ask(**ISLANDS, sharing=SHARING, site=SITES, limits={"capex_usd": 9e6, "power_mw": 1.0}),
    "worst-case": lambda: ask(**ISLANDS, sharing={"mode": "partition"}, phase=PHASES, robust=WORST),
}
