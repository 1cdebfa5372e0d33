"""What an instance means that leaves everything out: the contract of docs/reference/instance.md, restated by hand."""

from typing import Any

import pytest

from coopt.instance.schema import Instance
from tests.anchors.test_units import QUESTION

EVEN = dict.fromkeys(("hb", "nic", "switch", "optics", "gpu"), 1.0)
OFF = {
    **dict.fromkeys(("wide_layers", "host_s"), 0),
    **dict.fromkeys(("batch_first", "dropout", "grouped_experts", "fp8_head", "recompute_modules"), False),
    **dict.fromkeys(("tp_forward_overlap", "shards_in_rounds", "whole_gradients"), False),
    **dict.fromkeys(("kernel_s", "attention")),
    **{"graphs": "none", "graph_modules": (), "parameter_bytes": 2, "release": ""},
}
DENSE = {
    **dict.fromkeys(("experts", "top_k", "expert_groups", "top_groups", "shared_ffn", "dense_layers", "dense_ffn"), 0),
    **dict.fromkeys(("q_rank", "kv_rank", "rope_dim", "value_dim", "window", "window_layers"), 0),
    **dict.fromkeys(("extra_predictions", "expert_latent", "mamba_layers", "mamba_heads", "mamba_head_dim"), 0),
    **dict.fromkeys(("mamba_groups", "mamba_state"), 0),
    **{"attention_layers": None, "ffn_layers": None, "gated": False, "causal": True, "capacity": 1.0},
}
SHAPE = {
    **{"name": "m", "layers": 4, "hidden": 512, "heads": 4, "kv_heads": 4, "head_dim": 128, "ffn": 2048},
    **{"vocab": 1024, "seq": 1024},
}
GPU = {
    **{"name": "g", "bf16_tflop_s": 100, "hbm_gb": 80, "hbm_gbyte_s": 2000, "sm_count": 100, "usd": 1, "w": 1},
    "efficiency": {
        **{"gemm": 0.5, "gemm_k0": 1, "hbm": 0.5, "attention": 0.5, "hb": 0.5, "rail": 0.5, "send": 0.5},
        "latency_s": 1e-6,
    },
}
EVERYTHING: dict[str, Any] = QUESTION | {
    "cluster": {"gpu": GPU, "gpus": 64, "shares": 2},
    "workload": {"name": "w", "model": SHAPE, "global_batch": 64, "max_iteration_time_s": 1.0}
    | {"options": {"software": {"name": "s"}}},
    "network": QUESTION["network"]
    | {
        "hb_domains": {"name": "h", "size": 8, "gbyte_s": 450, "usd_per_gpu": 0, "w_per_gpu": 0},
        "nics": {"name": "n", "gbit_s": 400, "usd": 1, "w": 1},
        "switches": {"name": "s", "radix": 64, "port_gbit_s": 400, "usd": 1, "w": 1},
        "optics": {"name": "o", "gbit_s": 400, "reach_m": 500, "usd": 1, "w": 1},
    },
}
"""Every table that one network may have, with required keys alone."""

DEFAULTS: dict[str, dict[str, Any]] = {
    "cluster.gpu": {"generation": "", "fp8_tflop_s": None, "fp4_tflop_s": None, "host_gbyte_s": None},
    "cluster.gpu.efficiency": {"kernel_s": 0.0, "step_s": 0.0, "send_s": 0.0}
    | dict.fromkeys(("hb_reduce", "error", "fp8", "fp4")),
    "cluster": {"generations": (), "idle_gpus": False},
    "workload.0": {"batches": (), "batch_tolerance": 0.0, "precision": "bf16", "gpus": None}
    | {"allow_tp_across": None, "software": None, "balance": "trained"}
    | dict.fromkeys(("critical_batch_tokens", "min_tokens_per_s", "train_days", "train_tokens", "loss")),
    "workload.0.model": DENSE | {"tied_embeddings": True},
    "workload.0.mapping": {
        **{"cp": (1, 2, 4, 8, 16), "micro_batch": (1, 2, 4, 8, 16), "sequence_parallel": (True, False)},
        **{"zero": (0, 1, 2, 3), "offload_percent": (0,), "outermost": ("pp", "dp")},
        **dict.fromkeys(("tp", "pp", "dp", "ep", "interleave", "recompute")),
    },
    "workload.0.options": {
        **{"attention": "flash", "dp_mode": "sync", "transport": "rdma", "collectives": "levels"},
        **{"schedule": "1f1b", "expert_tp": False, "ep_overlap": False, "dispatch": "once", "dispatch_bytes": 2},
        **{"tp_sync_fraction": 1.0, "tp_sync_backward": 1.0, "slowdown": 1.0},
        "dispatch_multiprocessors": None,
    },
    "workload.0.options.software": OFF
    | {
        "gradient_bytes": 4, "state_bytes": 12, "narrow_inputs": True, "reserve_gib": 1.5, "memory_margin": 0.1,
        "lacks": (),
    }
    | {"norm_forward_bytes": 18.0, "norm_backward_bytes": 26.0, "loss_bytes": 24.0, "kernel_traffic": 1.0}
    | {"fused_accumulation": True, "tp_overlap": True, "pp_overlap": True, "overhead": 1.0, "logit_bytes": 4.0}
    | dict.fromkeys(("attention_bits", "latent_bits", "mamba_output_bits", "prediction_bits"), 4),
    "network": {
        **{"nics_per_gpu": (1,), "gpus_per_nic": (1,), "nic_planes": (1,), "pod_bundles": (1,), "panels": ()},
        **{
            "buildable": True, "tier_switches": "any", "link_ends": "any", "switch_cages": "kept",
            "oversubscription": 1.0,
        },
        **{"charge": "loads", "routing": "spray", "spray_efficiency": 0.98, "bundles": "even", "leaf_fill": "any"},
        **{"pod_uplinks": "ratio", "domain_fill": "fewest", "max_tiers": 3, "link_reach_m": (50.0, 100.0, 500.0)},
    },
    "network.hall": {
        **{"racks_per_row": 20, "rack_pitch_m": 0.6, "row_pitch_m": 3.0, "rise_m": 2.5, "in_rack_m": 2.0},
        **{"switch_rack_units": 42, "switch_rack_kw": None, "usd_per_switch_rack": None},
        **dict.fromkeys(("domain_rack_kw", "domain_rack_kg", "cooling")),
    },
    "network.spares": {"nic": 0.0, "switch": 0.0, "optics": 0.0},
    "network.hb_domains.0": {"nics": (), "gpus": ()}
    | dict.fromkeys(("racks", "host_usd_per_gpu", "host_w_per_gpu", "cooling", "kg")),
    "network.nics.0": {"ports": (1,), "cages": 1, "protocol": (), "lane_gbit_s": ()},
    "network.switches.0": {"modes": (), "reduces": False, "optics_inside": False}
    | dict.fromkeys(("protocol", "lane_gbit_s", "cages", "rack_units")),
    "network.optics.0": {"breakout": (), "connectors": 1, "lane_gbit_s": None, "fibre": None, "whole_cable": False},
    "sharing": {"mode": "time", "discount": (), "core": None},
    "objective": {
        # 8 ct a kWh and PUE 1.25: US industry (EIA) and air-cooled halls; 4 years: how long accelerators serve
        **{"minimize": "capex", "include": ("hb", "nic", "switch", "optics"), "years": 4.0, "usd_per_kwh": 0.08},
        **{"pue": 1.25, "labour_share": 0.0, "support_share": 0.0, "kg_co2_per_kwh": None},
    },
    "limits": {"power_mw": None, "capex_usd": None, "racks": None},
    "solver": {"time_limit_s": 300.0, "gap": 0.0, "threads": 1, "seed": 0, "top": 1},
}  # fmt: skip
COUPLED: dict[str, tuple[dict[str, Any], dict[str, dict[str, Any]]]] = {
    "robust": (
        {"robust": {"survive": ["nic"]}},
        {
            "robust": {"efficiency": (1.0, 1.0), "aim": "worst-case"},
            "robust.slower": dict.fromkeys(("nic", "leaf", "plane", "domain", "channel"), 1.0),
            "robust.prices": dict.fromkeys(EVEN, (1.0, 1.0)),
            "network": {"domain_fill": "even"},
        },
    ),
    "failures": (
        {"availability": {"rates": {"name": "r", "gpu": {}}}},
        {
            # 120 MB/s a GPU: 2 TB/s of storage under 16,384 GPUs (arXiv 2407.21783, section 3.3.1)
            "availability": {
                **{"at": "published", "restart_s": 300.0, "restart_s_per_1000_gpus": 5.0, "repair_hours": 24.0},
                **{"checkpoint_gbyte_s_per_gpu": 0.12, "flap_s": 10.0, "confidence": None, "spare_domains": None},
            },
            "availability.rates": {"gpus_per_host": 8},
            "availability.rates.gpu": {"per_year": 0.0, "low": None, "high": None},
            "availability.rates.flap": {"per_year": 0.0, "low": None, "high": None},
        },
    ),
    "margin": (
        {"margin": {"time": 0.0}},
        {"margin": {"confidence": None, "memory": 0.0, "ports": 0.0, "ties": "fastest"}},
    ),
    "phases": (
        {"phase": [{"year": 2026, "gpus": 32}, {"year": 2027, "gpus": 64}]},
        {"phase.0": {"workloads": (), "retrofit_usd_per_link": 0.0}, "phase.0.price": EVEN | {"energy": 1.0}},
    ),
    "sites": (
        {
            "site": [{"name": "a", "power_mw": 1.0}, {"name": "b", "power_mw": 1.0}],
            "wan": {"between": ["a", "b"], "gbit_s": 100, "usd": 1, "latency_ms": 1, "most": 2},
            "objective": {"include": ["hb", "gpu"]},
        },
        {"site.0": {"pue": None, "usd_per_kwh": None}, "wan.0": {"w": 0.0}},
    ),
}


def differing(instance: Instance, expected: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The keys at which an instance has another value."""
    found = {}
    for path, values in expected.items():
        table: Any = instance
        for key in path.split("."):
            table = table[int(key)] if key.isdigit() else getattr(table, key)
        found |= {f"{path}.{key}": getattr(table, key) for key, value in values.items() if getattr(table, key) != value}
    return found


def test_what_is_left_out_has_its_documented_value() -> None:
    table = EVERYTHING | {"cluster": {"gpu": GPU, "gpus": 64}}
    assert differing(Instance.model_validate(table), DEFAULTS) == {}


@pytest.mark.parametrize("name", COUPLED)
def test_what_couplings_leave_out_has_its_documented_value(name: str) -> None:
    tables, expected = COUPLED[name]
    cluster = EVERYTHING["cluster"] if name == "sites" else {"gpu": GPU, "gpus": 64}
    assert differing(Instance.model_validate(EVERYTHING | {"cluster": cluster} | tables), expected) == {}


def test_the_software_of_a_workload_is_megatron_core() -> None:
    assert Instance.model_validate(QUESTION).workload[0].options.software.name == "megatron-core"


@pytest.mark.parametrize(
    ("seq", "most"), [(1024, 16), (16_384, 16), (65_536, 64), (131_000, 64), (200_000, 128), (1_048_576, 1024)]
)
def test_degrees_of_cp_follow_long_sequences_unless_they_are_given(seq: int, most: int) -> None:
    workload = EVERYTHING["workload"] | {"model": SHAPE | {"seq": seq}}
    everything = EVERYTHING | {"cluster": {"gpu": GPU, "gpus": 64}}
    (asked,) = Instance.model_validate(everything | {"workload": workload}).workload
    assert asked.mapping.cp == tuple(2**power for power in range(most.bit_length()))
    (given,) = Instance.model_validate(everything | {"workload": workload | {"mapping": {"cp": [1, 2]}}}).workload
    assert given.mapping.cp == (1, 2)
