"""Instances, workloads and mappings of the verifier's tests, small enough to see through."""

from typing import Any

from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.verifier.training.mappings import ScalarMapping
from tests.conftest import FEW_MAPPINGS, small_model

EFFICIENCY = {
    "gemm": 0.8, "gemm_k0": 96, "hbm": 0.85, "attention": 0.6, "hb": 0.78, "rail": 0.5, "send": 0.37,
    "latency_s": 15e-6, "step_s": 1e-6,
}  # fmt: skip
GPU = {
    "name": "gpu", "bf16_tflop_s": 300, "hbm_gb": 40, "hbm_gbyte_s": 2000, "host_gbyte_s": 60, "sm_count": 100,
    "usd": 20_000, "w": 500, "efficiency": EFFICIENCY,
}  # fmt: skip
MODEL = small_model(name="model")
SOFTWARE = {
    "name": "plain",
    "norm_forward_bytes": 22,
    "norm_backward_bytes": 46,
    "loss_bytes": 60,
    "tp_overlap": False,
    "pp_overlap": False,
}
EXPERTS = {
    "name": "experts", "heads": 8, "kv_heads": 4, "ffn": 2048, "gated": True, "experts": 16, "top_k": 2,
    "shared_ffn": 1024, "dense_layers": 2, "dense_ffn": 8192, "q_rank": 512, "kv_rank": 256, "rope_dim": 64,
    "value_dim": 96, "extra_predictions": 1,
}  # fmt: skip
"""A mixture of experts with latent attention, on top of MODEL."""
TWO_WORKLOADS = [
    {
        "name": "first", "model": MODEL, "global_batch": 64, "max_iteration_time_s": 0.5, "mapping": FEW_MAPPINGS,
        "allow_tp_across": True,
    },
    {
        "name": "second", "model": MODEL | {"name": "grouped", "kv_heads": 8, "gated": True, "tied_embeddings": False},
        "global_batch": 128, "train_days": 10.0, "allow_tp_across": True, "train_tokens": 2e11,
        "mapping": FEW_MAPPINGS | {"recompute": ["none", "selective", "full"]}, "options": {"attention": "unfused"},
    },
]  # fmt: skip
DOMAINS = (
    {"name": "hb4", "size": 4, "gbyte_s": 300, "usd_per_gpu": 100, "w_per_gpu": 5, "racks": 0.25},
    {"name": "hb8", "size": 8, "gbyte_s": 450, "usd_per_gpu": 900, "w_per_gpu": 7, "racks": 0.5},
    {"name": "hb10", "size": 10, "gbyte_s": 450, "usd_per_gpu": 10, "w_per_gpu": 9, "racks": 1},
)
NICS = ({"name": "nic200", "gbit_s": 200, "usd": 900, "w": 15}, {"name": "nic400", "gbit_s": 400, "usd": 1700, "w": 22})
OPTICS = (
    {"name": "short400", "gbit_s": 400, "reach_m": 60, "usd": 100, "w": 9},
    {"name": "long400", "gbit_s": 400, "reach_m": 2000, "usd": 400, "w": 8},
    {"name": "mid400", "gbit_s": 400, "reach_m": 150, "usd": 200, "w": 10},
    {"name": "any200", "gbit_s": 200, "reach_m": 2000, "usd": 90, "w": 5},
)


def switch(radix: int, gbit_s: float = 400) -> dict[str, Any]:
    """A switch whose price grows a little faster than its ports."""
    name = f"{radix}x{gbit_s:g}"
    return {"name": name, "radix": radix, "port_gbit_s": gbit_s, "usd": 100 * radix**1.2, "w": 10 * radix}


def question(**changes: Any) -> dict[str, Any]:
    """An instance as a table; dotted keys with `__` replace values."""
    table: dict[str, Any] = {
        "schema": 1, "margin": "none", "name": "case", "cluster": {"gpu": GPU, "gpus": 64},
        "workload": [
            {
                "name": "first", "model": MODEL, "global_batch": 64, "max_iteration_time_s": 0.6,
                "mapping": FEW_MAPPINGS, "allow_tp_across": True,
            }
        ],
        "network": {
            "hb_domains": list(DOMAINS), "fabrics": ["rail-only", "rail-optimized", "clos"], "nics": list(NICS),
            "switches": [switch(8), switch(16), switch(16, 200)], "optics": list(OPTICS), "oversubscription": 3,
            "link_reach_m": [50, 100, 500],
        },
    }  # fmt: skip
    for key, value in changes.items():
        *parents, last = key.split("__")
        here = table
        for part in parents:
            here = here[int(part)] if isinstance(here, list) else here.setdefault(part, {})
        here[last] = value
    return table


def ask(**changes: Any) -> Instance:
    """An instance of these tests."""
    return Instance.model_validate(question(**changes))


def workload(**changes: Any) -> Workload:
    """A workload of its own; keys of `model`, `options` and `mapping` are put on top of what is there."""
    table: dict[str, Any] = {
        "name": "w",
        "model": MODEL | changes.pop("model", {}),
        "global_batch": 64,
        "allow_tp_across": True,
        "max_iteration_time_s": 1.0,
        "options": {"software": SOFTWARE | changes.pop("software", {})} | changes.pop("options", {}),
    }
    return Workload.model_validate(table | changes)


def split(**changes: Any) -> ScalarMapping:
    """A mapping that cuts nothing, changed."""
    plain: dict[str, Any] = {
        "tp": 1, "pp": 1, "dp": 1, "cp": 1, "ep": 1, "micro_batch": 1, "interleave": 1, "recompute": "none",
        "sequence_parallel": False, "zero": 0,
    }  # fmt: skip
    return ScalarMapping(**(plain | changes))
