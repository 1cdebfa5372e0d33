"""How rows are read: what they say, what is known about their source, what is assumed and listed."""

from operator import attrgetter
from typing import Any

import pytest

from coopt.instance.catalog import find
from coopt.perf.mapping import RECOMPUTE
from coopt.validation.comparison import comparison_of
from coopt.validation.published import UnusableError
from coopt.validation.runs import SkippedRow, outcome_of, run_of
from coopt.validation.splits import ranks_inside
from tests.validation.conftest import EXPERTS

DEEPSEEK = EXPERTS | {"model": "deepseek-v3", "heads": 128, "kv_heads": 128, "experts": 256, "layers": 61}
DEEPSEEK |= {"pp": 1, "dp": 64}
FEW_EXPERTS = EXPERTS | {"experts": 8, "topk": 2, "tp": 4, "dp": 8, "ep": 8}
MANY_EXPERTS = EXPERTS | {"tp": 4, "dp": 8}
NO_SHAPE = dict.fromkeys(("layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "vocab"))
SC21 = {"source_url": "https://arxiv.org/abs/2104.04473", "gpu": "A100-80G"}
KORTHIKANTI = {"source_url": "https://arxiv.org/abs/2205.05198", "gpu": "A100-80G", "tp": 8, "dp": 2}
TITAN = {"framework": "fsdp"}

READ: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    "recomputation that a framework calls otherwise": [
        (TITAN | {"recompute": "selective"}, {"recompute": "norm+ffn"}),
        (TITAN | {"recompute": "full"}, {"recompute": "full"}),
        ({"recompute": "selective"}, {"recompute": "selective"}),
    ],
    "modules that a recipe recomputes stand for the kind that repeats most": [
        ({"recompute": published}, {"recompute": kind})
        for published, kind in {
            "Full": "full", "core_attn": "selective", "layernorm+moe_act": "norm+act", "moe_act": "act",
            "moe_act + layernorm": "norm+act", "mla_up_proj+mlp": "norm+ffn", "selective+seqpar": "selective",
        }.items()
    ]
    + [
        (EXPERTS | {"recompute": published}, {"recompute": kind})
        for published, kind in {
            "mla_up_proj+mlp": "act", "mlp": "none", "moe+shared_experts+core_attn": "norm+ffn",
            "shared_experts+layernorm": "norm+act",
        }.items()
    ]
    + [
        (
            EXPERTS | {"dense_layers": 24, "dense_ffn": 6144, "gated": True, "recompute": "mlp"},
            {"recompute": "norm+ffn"},
        )
    ],
    "words of the notes fill columns that are empty": [
        (TITAN | {"notes": "vanilla TP"}, {"software.tp_overlap": False}),
        (TITAN | {"notes": "2D + AsyncTP"}, {"software.tp_overlap": True}),
        (TITAN | {"notes": "2D + AsyncTP", "tp_overlap": False}, {"software.tp_overlap": False}),
        ({"notes": "full-iteration CUDA graph, fused grouped MLP"}, {"software.graphs": "full"}),
        ({"notes": "full-iteration CUDA graphs where config says cg"}, {"software.graphs": "none"}),
        (EXPERTS | {"notes": "alltoall dispatcher"}, {"options.dispatch": "each"}),
        (EXPERTS | {"notes": "HybridEP"}, {"options.dispatch": "once"}),
        ({"notes": "TorchTitan without compiler"}, {"software.name": "fsdp-eager"}),
        ({"notes": "eager"}, {"software.name": "megatron-core"}),
    ],
    "columns say what a run is made of": [
        (made, {f"software.{name}": value for name, value in made.items()})
        for made in (
            {"gradient_bytes": 2, "state_bytes": 8, "parameter_bytes": 1, "release": "26.08"},
            {"graphs": "scoped", "graph_modules": ("attn", "moe_router"), "grouped_experts": True},
            {"kernel_traffic": 2.5, "host_s": 0.0, "attention": 0.18, "wide_layers": 14},
        )
    ]
    + [
        ({"framework": "fsdp", "compile": False}, {"software.name": "fsdp-eager"}),
        ({"dispatcher": "nvlink", "dispatcher_multiprocessors": 16}, {"options.dispatch_multiprocessors": 16}),
        ({"attention_kernel": "unfused", "schedule": "zb-h1", "interleave": 1}, {"options.attention": "unfused"}),
    ],
    "parameters stay gathered under a pipeline of FSDP": [
        ({"zero": 3}, {"split.zero": 3}), (TITAN | {"zero": 3}, {"split.zero": 2}),
        (TITAN | {"zero": 3, "pp": 1, "dp": 16, "interleave": 1}, {"split.zero": 3}),
        ({"framework": "automodel", "zero": 3}, {"split.zero": 1}),
    ],
    "old software splits norms where the row says so, new software with tensor parallelism": [
        *(
            (
                KORTHIKANTI | {"recompute": text},
                {"recompute": kind, "split.sequence_parallel": sequence, "software.name": "megatron-2022"},
            )
            for text, kind, sequence in (
                ("full", "full", False), ("selective+seqpar", "selective", True), ("selective", "selective", False),
            )
        ),
        ({}, {"split.sequence_parallel": True}),
        ({"tp": 1, "pp": 1, "dp": 64, "zero": 3, "notes": "FSDP shard=8"}, {"split.dp_replicate": 8}),
        ({"tp": 1, "dp": 16}, {"split.sequence_parallel": False}),
    ],
    "words of address and notes tell a framework that no column names, those of the id do not": [
        (row, dict(zip(("software.name", "options.attention", "options.dp_mode"), told, strict=True)))
        for row, told in (
            (SC21, ("megatron-2021", "unfused", "sync")),
            (SC21 | {"framework": "megatron-core"}, ("megatron-core", "flash", "overlap")),
            ({"source_url": "https://github.com/bigscience-workshop"}, ("megatron-deepspeed", "unfused", "sync")),
            ({"notes": "TorchTitan, FSDP eager"}, ("fsdp-eager", "flash", "overlap")),
            ({"notes": "PyTorch FSDP2 + compile"}, ("fsdp", "flash", "overlap")),
            ({"source_url": "https://github.com/mosaicml/llm-foundry"}, ("fsdp-eager", "flash", "overlap")),
            ({"source_url": "https://github.com/NVIDIA-NeMo/Megatron-Bridge"}, ("megatron-bridge", "flash", "overlap")),
            ({"id": "torchtitan-bloom"}, ("megatron-core", "flash", "overlap")),
        )
    ],
    "formats are sorted into precisions": [
        ({"gpu": "B200", "precision": published}, {"workload.precision": precision, "precision": kind})
        for precision, kind, names in (
            ("bf16", "16-bit", ("bf16", "BF16", "bfloat16", "amp_bf16", "bf16 mixed")),
            ("fp8", "fp8", ("fp8-cs", "mxfp8")), ("fp4", "fp4", ("nvfp4",)),
        )
        for published in names
    ],
    "a GPU goes by the names that tables and drivers give it": [
        ({"gpu": published, "iter_time_s": 120.0}, {"gpu.name": gpu})
        for published, gpu in {
            "NVIDIA A100-SXM4-80GB": "a100-80g", "A100 40GB": "a100-40g", "A800-SXM4-80GB": "a100-80g",
            "H100 80GB HBM3": "h100-sxm", "nvidia_h100_sxm5": "h100-sxm", "h100-96g-500w": "h100-96g-500w",
            "NVIDIA H200 141GB": "h200", "B200-SXM-180GB": "b200", "DGX-GB200": "gb200", "GB300 NVL72": "gb300",
            "AMD Instinct MI300X OAM 192GB": "mi300x", "MI350X": "mi350x", "MI355X (288 GB)": "mi355x",
        }.items()
    ],
    "slower links inside a server are known by the name of the GPU": [
        ({"gpu": "A800"}, {"gpu.name": "a100-80g", "hb_gbyte_s": 200}),
        ({"gpu": "H800"}, {"gpu.name": "h100-sxm", "hb_gbyte_s": 200}), ({"gpu": "H800-80GB"}, {"hb_gbyte_s": 200}),
    ],
    "a rack is one domain though tables count its trays": [
        ({"gpu": "GB200", "gpus_per_node": 36}, {"hb_size": 36}),
        ({"gpu": "GB200", "gpus_per_node": 4, "notes": "hbd=4"}, {"hb_size": 4}),
        ({"gpu": "GB200", "notes": "hbd=72; more"}, {"hb_size": 72}), ({"gpus_per_node": None}, {"hb_size": 8}),
    ],
    "words in the notes tell the GPU": [
        ({"notes": "capped at 500 W"}, {"gpu.name": "h100-96g-500w"}), ({}, {"gpu.name": "h100-sxm"}),
    ],
    "few experts are split by tensor parallelism unless noted": [
        (FEW_EXPERTS, {"split.expert_tp": True}), (FEW_EXPERTS | {"notes": "ETP=1"}, {"split.expert_tp": False}),
        *((FEW_EXPERTS | {"expert_tp": told}, {"split.expert_tp": told > 1 and told}) for told in (0, 1, 2)),
        (FEW_EXPERTS | {"expert_tp": 4}, {"split.expert_tp": True}), (MANY_EXPERTS, {"split.expert_tp": False}),
        (MANY_EXPERTS | {"notes": "ETP=4"}, {"split.expert_tp": True}),
    ],
    "latent attention and dense layers come with the name of the model": [
        (
            DEEPSEEK,
            {"model.kv_rank": 512, "model.head_dim": 192, "model.value_dim": 128, "model.dense_layers": 3}
            | {"model.extra_predictions": 0},
        ),
        (DEEPSEEK | {"framework": "megatron-bridge"}, {"model.extra_predictions": 1}),
        (DEEPSEEK | {"gated": True, "tied_embeddings": False}, {"model.kv_rank": 0, "model.head_dim": 128}),
        (DEEPSEEK | {"model": "ours", "gated": True, "kv_rank": 64, "rope_dim": 32}, {"model.kv_rank": 64}),
    ],
    "DualPipe hides the exchange of experts": [
        (DEEPSEEK | {"notes": "DualPipe"}, {"options.ep_overlap": True, "options.schedule": "dualpipe"}),
        (DEEPSEEK, {"options.ep_overlap": False, "options.schedule": "1f1b"}),
    ],
    "case and hyphens of the name of a model do not count": [
        (NO_SHAPE | {"model": name}, {"model.hidden": 8192})
        for name in ("Llama-3.1 70B", "meta_llama3.3-70b", "LLAMA3_70B")
    ],
    "a vocabulary that is not published is that of the family": [
        ({"model": "llama3-70b", "vocab": None}, {"model.vocab": 128_256}),
        ({"model": "llama-of-ours", "vocab": None, "layers": 40}, {"model.vocab": 128_256}),
        ({"model": "gpt-of-ours", "vocab": None, "layers": 40, "ffn": 4 * 8192}, {"model.vocab": 51_200}),
    ],
    "alternating layers follow the depth of the row": [
        (EXPERTS | {"model": "gpt-oss-120b", "layers": 36}, {"model.window": 128, "model.window_layers": 18}),
        (
            EXPERTS | {"model": "llama4-maverick-400b", "layers": 24, "topk": 1},
            {"model.dense_layers": 12, "model.dense_ffn": 16384, "model.shared_ffn": 8192},
        ),
    ],
    "a feed-forward layer of four times the hidden size is plain but in families that gate": [
        ({"model": "gpt3-175b", "ffn": 4 * 8192}, {"model.gated": False}),
        ({"model": "llama3.2-1b", "ffn": 4 * 8192}, {"model.gated": True}), ({}, {"model.gated": True}),
    ],
    "an uneven ring waits for the rank that attends most": [
        (TITAN | {"cp": 2, "dp": 2}, {"model.causal": False, "model.window": 8192 * 3 // 4, "model.window_layers": 80}),
        ({"cp": 2, "dp": 2}, {"model.causal": True}),
    ],
    "a degree that contradicts the GPU count is replaced": [({"dp": 8}, {"split.dp": 4})],
    "tensor parallelism that is not published follows from the other degrees": [
        ({"tp": None}, {"split.tp": 4, "split.dp": 4}),
        ({"tp": None, "pp": None, "dp": None, "zero": 3, "interleave": None}, {"split.tp": 1, "split.dp": 64}),
    ],
    "without a pipeline the micro-batch is the largest that fits": [
        (
            {"pp": 1, "dp": 16, "tp": 4, "micro_batch": None, "layers": 8},
            {"split.micro_batch": 8, "split.micro_batches": 1},
        )
    ],
    "recomputation that is not published is the least that fits": [
        ({"recompute": "", "gpu": "H200"}, {"recompute": "none"}), ({"recompute": ""}, {"recompute": "norm+ffn"}),
    ],
}  # fmt: skip
SHORT = {"options": "workload.options", "model": "workload.model"}


@pytest.mark.parametrize("rule", READ)
def test_a_row_is_read_as_its_source_means_it(run, rule):
    for changes, expected in READ[rule]:
        made = run(**changes)
        found = {"recompute": RECOMPUTE[made.split.recompute]}
        for name in expected.keys() - found.keys():
            first, dot, rest = name.partition(".")
            found[name] = attrgetter(SHORT.get(first, first) + dot + rest)(made)
        assert {name: found[name] for name in expected} == expected, changes


def listed(made, *words):
    """Whether one assumption holds all of these words."""
    return any(all(word in text for word in words) for text in made.assumptions)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"micro_batch": None}, ["micro-batch 1"]),
        ({"pp": 1, "dp": 16, "tp": 4, "micro_batch": None, "layers": 8}, ["micro-batch 8"]),
        ({"nic_gbps_per_gpu": None}, ["a 400G NIC"]),
        ({"zero": None}, ["ZeRO 1"]),
        ({"kv_heads": None}, ["query heads"]),
        ({"tp": None}, ["TP 4"]),
        ({"recompute": "", "gpu": "H200"}, ["recomputation none"]),
        ({"recompute": ""}, ["recomputation norm+ffn", "memory"]),
        (TITAN | {"recompute": "selective"}, ["selective as norm+ffn"]),
        ({"gpu": "A800"}, ["a100-80g", "200 GB/s"]),
        ({"gpu": "H800"}, ["h100-sxm", "200 GB/s"]),
        ({"gpu": "GB200", "gpus_per_node": 4}, ["72 GPUs", "gb200-nvl72"]),
        *((DEEPSEEK, [what, "deepseek-v3"]) for what in ("latent", "shared experts", "dense layers", "by groups")),
        (EXPERTS | {"model": "gpt-oss-120b"}, ["sliding windows", "gpt-oss-120b"]),
        (NO_SHAPE | {"model": "DeepSeek-V3", "tp": 1, "pp": 1, "ep": 64, "dp": 64}, ["hidden, ffn", "deepseek-v3"]),
        ({"model": "llama-of-ours", "vocab": None, "layers": 40}, ["128,256"]),
        ({"dp": 8}, ["DP 4", "8 is printed"]),
        ({"zero": 3, "notes": "FSDP shard=64"}, ["not over 64"]),
        ({"zero": 3, "notes": "FSDP group 64"}, ["not over 64"]),
    ],
)
def test_what_is_assumed_is_listed(run, changes, words):
    assert listed(run(**changes), *words)


def test_shards_are_over_some_ranks_only_where_there_are_shards(run):
    none = run(zero=0, notes="FSDP shard=64")
    assert (none.split.dp_replicate, listed(none, "not over 64")) == (1, False)
    assert run(tp=1, pp=1, dp=64, zero=0, notes="FSDP shard=8").split.dp_replicate == 1


def test_ranks_fill_a_domain_in_order_as_far_as_they_divide(run):
    """A tray of a rack keeps its ranks in the domain of the rack."""
    for degrees, size, inside in (
        ((8, 1, 4, 2), 8, (8, 1, 1, 1)),
        ((2, 2, 16, 2), 8, (2, 2, 2, 1)),
        ((16, 1, 4, 1), 8, (8, 1, 1, 1)),
        ((1, 1, 64, 4), 72, (1, 1, 64, 1)),
        ((2, 1, 16, 8), 72, (2, 1, 16, 2)),
        ((1, 1, 8, 1), 72, (1, 1, 8, 1)),
        ((4, 2, 1, 16), 72, (4, 2, 1, 8)),
        ((6, 1, 12, 1), 8, (6, 1, 1, 1)),
    ):
        assert ranks_inside(degrees, size) == inside
    tray = run(gpu="GB200", gpus_per_node=4)
    assert (tray.hb_size, tray.split.inside[2]) == (72, 4)
    assert run().assumptions == ("software as megatron-core",)


def test_degrees_and_micro_batches_that_do_not_fit_are_not_taken(run, row):
    assert 1 <= run(pp=1, dp=16, tp=4, micro_batch=None, layers=40).split.micro_batch < 8
    assert isinstance(outcome_of(row(tp=None, dp=5)), SkippedRow)


def test_what_is_offloaded_is_in_the_memory_of_the_host(row):
    shards = {"gpu": "GB300", "tp": 1, "pp": 1, "dp": 64, "interleave": None, "zero": 3, "micro_batch": 2}
    less, more, unknown = comparison_of(
        [row(**shards, **off) for off in ({"offload_percent": 25}, {"offload_percent": 50}, {"offloads": 1})]
    ).rows
    assert more.memory_gib < less.memory_gib < unknown.memory_gib
    assert listed(unknown, "offloading is ignored")
    assert (less.states_mapping, unknown.states_mapping) == (True, False)


def test_a_catalog_name_stands_for_the_columns_of_its_shape(run):
    made = run(**NO_SHAPE, model="DeepSeek-V3", tp=1, pp=1, ep=64, dp=64)
    assert made.workload.model == find("model", "deepseek-v3").model_copy(update={"seq": 8192})
    with pytest.raises(UnusableError, match="shape is not published"):
        run(model="llama3-70b", hidden=None, layers=40)


@pytest.mark.parametrize(("gpus", "dp", "tflop_s"), [(8192, 64, 430), (16384, 128, 400)])
def test_llama_3_405b_is_read_as_its_paper_tells_fits_and_is_met(row, gpus, dp, tflop_s):
    """arXiv 2407.21783, table 4: chunks of one layer of 128, gradients sharded, nothing recomputed.

    How it counts FLOPs is not said: between none of the attention and all of it, half, as causal kernels work.
    """
    made = row(
        id="llama3-405b", model="llama3.1-405b", source_url="https://arxiv.org/abs/2407.21783", gpus=gpus, tp=8, pp=16,
        dp=dp, global_batch=2048, layers=126, hidden=16384, ffn=53248, heads=128, iter_time_s=None,
        tflops_per_gpu=tflop_s, flop_count="model-causalattn", interleave=8, zero=2, recompute="none",
        framework="fsdp", shards_in_rounds=True, tp_overlap=True,
    )  # fmt: skip
    split = run_of(made).split
    assert (split.interleave, split.zero, RECOMPUTE[split.recompute]) == (8, 2, "none")
    (found,) = comparison_of([made]).rows
    # the paper frees inputs and outputs of stages early, which the model does not
    assert found.memory_gib < 1.03 * found.memory_limit_gib
    assert abs(found.error) <= 0.08
