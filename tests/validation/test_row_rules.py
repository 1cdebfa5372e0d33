"""How rows are read: what they say, what is known about their source, what is assumed and listed."""

from __future__ import annotations

from dataclasses import replace

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
NO_SHAPE = dict.fromkeys(("layers", "hidden", "ffn", "heads", "kv_heads", "head_dim", "vocab"))


def listed(made, *words):
    """Whether one assumption holds all of these words."""
    return any(all(word in text for word in words) for text in made.assumptions)


@pytest.mark.parametrize(
    ("degrees", "size", "inside"),
    [
        ((8, 1, 4, 2), 8, (8, 1, 1, 1)),
        ((2, 2, 16, 2), 8, (2, 2, 2, 1)),
        ((16, 1, 4, 1), 8, (8, 1, 1, 1)),
        ((1, 1, 64, 4), 72, (1, 1, 64, 1)),
        ((2, 1, 16, 8), 72, (2, 1, 16, 2)),
        ((1, 1, 8, 1), 72, (1, 1, 8, 1)),
        ((4, 2, 1, 16), 72, (4, 2, 1, 8)),
        ((6, 1, 12, 1), 8, (6, 1, 1, 1)),
    ],
)
def test_ranks_fill_a_domain_in_order_as_far_as_they_divide(degrees, size, inside):
    assert ranks_inside(degrees, size) == inside


def test_a_row_that_says_everything_rests_on_the_kind_of_software_only(run):
    assert run().assumptions == ("software as megatron-core",)


@pytest.mark.parametrize(
    ("column", "assumption"),
    [
        ("micro_batch", "micro-batch 1"),
        ("nic_gbps_per_gpu", "a 400G adapter"),
        ("zero", "ZeRO 1"),
        ("kv_heads", "query heads"),
    ],
)
def test_what_is_not_published_is_assumed_and_listed(run, column, assumption):
    assert listed(run(**{column: None}), assumption)


def test_without_a_pipeline_the_micro_batch_is_the_largest_that_fits(run):
    small = run(pp=1, dp=16, tp=4, micro_batch=None, layers=8)
    assert small.split.micro_batch == 8
    assert small.split.micro_batches == 1
    assert "micro-batch 8" in small.assumptions
    large = run(pp=1, dp=16, tp=4, micro_batch=None, layers=40)
    assert 1 <= large.split.micro_batch < 8


def test_recomputation_that_is_not_published_is_the_least_that_fits(run):
    made = run(recompute="", gpu="H200")
    assert RECOMPUTE[made.split.recompute] == "none"
    assert "recomputation none" in made.assumptions
    larger = run(recompute="")
    assert RECOMPUTE[larger.split.recompute] == "norm+ffn"
    assert listed(larger, "recomputation norm+ffn", "memory")


def test_recomputation_of_a_known_recipe_is_taken_where_the_row_is_silent(run):
    """Whether or not it fits without."""
    made = run(id="mbridge-gpt-oss-120b-B200", model="gpt-oss-120b", recompute="")
    assert RECOMPUTE[made.split.recompute] == "norm+act"
    assert listed(made, "recomputation norm+act", "recipe")


def test_latent_attention_has_no_fused_kernel_on_blackwell_before_its_release(run):
    early = run(id="dgxc-dsv3-2505-GB200-bf16-128", model="deepseek-v3", gpu="GB200", recompute="", interleave=None)
    assert early.workload.options.attention == "unfused"
    assert RECOMPUTE[early.split.recompute] == "selective"
    hopper = run(id="dgxc-dsv3-2505-H100-bf16-1024", model="deepseek-v3", recompute="", interleave=None)
    assert hopper.workload.options.attention == "flash"


def test_a_kind_of_recomputation_that_a_framework_calls_otherwise_is_read_as_it_means_it(run):
    made = run(id="torchtitan-8b", recompute="selective")
    assert RECOMPUTE[made.split.recompute] == "norm+ffn"
    assert listed(made, "recomputation norm+ffn", "recipe")
    assert RECOMPUTE[run(id="torchtitan-8b", recompute="full").split.recompute] == "full"
    assert RECOMPUTE[run(recompute="selective").split.recompute] == "selective"


def test_torchtitan_hides_tensor_parallelism_where_its_row_says_so(run):
    assert not run(id="torchtitan-8b", notes="vanilla TP").software.tp_overlap
    assert run(id="torchtitan-8b", notes="2D + AsyncTP").software.tp_overlap
    assert run(id="torchtitan-405b-100", notes="1F1B").software.tp_overlap


def test_an_interleaved_schedule_of_torchtitan_has_two_chunks(run):
    changes = {"id": "torchtitan-405b-100", "model": "llama3.1-405b", "interleave": None}
    assert run(**changes, notes="interleaved 1F1B (v not given)").split.interleave == 2
    assert run(**changes, notes="1F1B").split.interleave == 1


def test_biases_of_experts_move_more_bytes(run, experts):
    assert run(experts, id="mbridge-gpt-oss-120b-H100").software.kernel_traffic == 2.5
    assert run(experts, id="mbridge-qwen3-30b-H100").software.kernel_traffic == 1.0


def test_parameters_stay_gathered_under_a_pipeline_of_fsdp(run):
    assert run(zero=3).split.zero == 3
    assert run(zero=3, notes="PyTorch FSDP2").split.zero == 2
    assert run(zero=3, notes="PyTorch FSDP2", pp=1, dp=16, interleave=1).split.zero == 3
    assert run(zero=3, source_url="https://github.com/NVIDIA-NeMo/Automodel", notes="FSDP2").split.zero == 1


@pytest.mark.parametrize(
    ("text", "kind", "sequence"),
    [("full", "full", False), ("selective+seqpar", "selective", True), ("selective", "selective", False)],
)
def test_old_software_splits_norms_where_the_row_says_so(run, text, kind, sequence):
    made = run(source_url="https://arxiv.org/abs/2205.05198", gpu="A100-80G", recompute=text, tp=8, dp=2)
    assert RECOMPUTE[made.split.recompute] == kind
    assert made.split.sequence_parallel is sequence
    assert made.software.name == "megatron-2022"


def test_new_software_splits_norms_whenever_there_is_tensor_parallelism(run):
    assert run().split.sequence_parallel
    assert not run(tp=1, dp=16).split.sequence_parallel


@pytest.mark.parametrize(
    ("changes", "software", "attention", "dp_mode"),
    [
        ({"source_url": "https://arxiv.org/abs/2104.04473", "gpu": "A100-80G"}, "megatron-2021", "unfused", "sync"),
        ({"id": "bloom-1", "gpu": "A100-80G"}, "megatron-deepspeed", "unfused", "sync"),
        ({"id": "mtnlg-530B-280", "gpu": "A100-80G"}, "megatron-deepspeed", "unfused", "sync"),
        ({"id": "torchtitan-x", "notes": "FSDP eager"}, "fsdp-eager", "flash", "overlap"),
        ({"id": "torchtitan-x", "notes": "FSDP + compile"}, "fsdp", "flash", "overlap"),
        ({"source_url": "https://github.com/mosaicml/llm-foundry"}, "fsdp-eager", "flash", "overlap"),
        ({"id": "bloomberggpt-50b", "gpu": "A100-40G"}, "fsdp-eager", "unfused", "overlap"),
        ({"id": "llama3-405b"}, "megatron-core", "flash", "overlap"),
    ],
)
def test_the_source_tells_the_software(run, changes, software, attention, dp_mode):
    options = run(**changes).workload.options
    assert (options.software.name, options.attention, options.dp_mode) == (software, attention, dp_mode)


def test_gradients_of_bf16_runs_of_bloom_are_kept_in_fp32(run):
    bloom = {"id": "bloom-1", "gpu": "A100-80G"}
    assert run(**bloom, precision="bf16").software.gradient_bytes == 4
    assert run(**bloom, precision="fp16").software.gradient_bytes == 2


@pytest.mark.parametrize(
    ("published", "precision", "kind"),
    [("fp8-cs", "fp8", "fp8"), ("mxfp8", "fp8", "fp8"), ("nvfp4", "fp4", "fp4")]
    + [(name, "bf16", "16-bit") for name in ("bf16", "BF16", "bfloat16", "amp_bf16", "bf16 mixed")],
)
def test_formats_are_sorted_into_precisions(run, published, precision, kind):
    made = run(gpu="B200", precision=published)
    assert made.workload.precision == precision
    assert made.precision == kind


@pytest.mark.parametrize(
    ("published", "gpu"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100-80g"),
        ("A100 40GB", "a100-40g"),
        ("A800-SXM4-80GB", "a100-80g"),
        ("H100 80GB HBM3", "h100-sxm"),
        ("nvidia_h100_sxm5", "h100-sxm"),
        ("h100-96g-500w", "h100-96g-500w"),
        ("NVIDIA H200 141GB", "h200"),
        ("B200-SXM-180GB", "b200"),
        ("DGX-GB200", "gb200"),
        ("GB300 NVL72", "gb300"),
        ("AMD Instinct MI300X OAM 192GB", "mi300x"),
        ("MI355X (288 GB)", "mi355x"),
    ],
)
def test_a_gpu_goes_by_the_names_that_tables_and_drivers_give_it(run, published, gpu):
    assert run(gpu=published, iter_time_s=120.0).gpu.name == gpu


@pytest.mark.parametrize(("published", "gpu"), [("A800", "a100-80g"), ("H800", "h100-sxm"), ("H800-80GB", "h100-sxm")])
def test_a_gpu_with_slower_links_inside_a_server_stands_for_another_and_is_listed(run, published, gpu):
    made = run(gpu=published)
    assert (made.gpu.name, made.hb_gbyte_s) == (gpu, 200)
    assert listed(made, f"{published} as {gpu}", "200 GB/s")


def test_a_rack_is_one_domain_though_tables_count_its_trays(run):
    tray = run(gpu="GB200", gpus_per_node=4)
    assert tray.hb_size == 72
    assert tray.split.inside[2] == 4
    assert listed(tray, "72 GPUs", "gb200-nvl72")
    assert run(gpu="GB200", gpus_per_node=36).hb_size == 36
    assert run(gpu="GB200", gpus_per_node=4, notes="hbd=4").hb_size == 4


def test_tensor_parallelism_that_is_not_published_follows_from_the_other_degrees(run, row):
    made = run(tp=None)
    assert (made.split.tp, made.split.dp) == (4, 4)
    assert "TP 4" in made.assumptions
    sharded = run(tp=None, pp=None, dp=None, zero=3, interleave=None)
    assert (sharded.split.tp, sharded.split.dp) == (1, 64)
    assert isinstance(outcome_of(row(tp=None, dp=5)), SkippedRow)


@pytest.mark.parametrize(
    ("published", "kind"),
    [
        ("Full", "full"),
        ("core_attn", "selective"),
        ("layernorm+moe_act", "norm+act"),
        ("moe_act + layernorm", "norm+act"),
        ("mla_up_proj+mlp", "norm+ffn"),
        ("selective+seqpar", "selective"),
    ],
)
def test_modules_that_a_recipe_recomputes_stand_for_the_kind_that_repeats_most(run, published, kind):
    assert RECOMPUTE[run(recompute=published).split.recompute] == kind


def test_words_in_the_notes_tell_the_gpu_and_the_domain(run):
    assert run(notes="at 500 W").gpu.name == "h100-96g-500w"
    assert run().gpu.name == "h100-sxm"
    assert run(gpu="GB200", notes="hbd=72; more").hb_size == 72
    assert run(gpus_per_node=None).hb_size == 8


def test_few_experts_are_split_by_tensor_parallelism_unless_noted(run, experts):
    few = experts | {"experts": 8, "topk": 2, "tp": 4, "dp": 8, "ep": 8}
    assert run(few).split.expert_tp
    assert not run(few, notes="ETP=1").split.expert_tp
    many = experts | {"tp": 4, "dp": 8}
    assert not run(many).split.expert_tp
    assert run(many, notes="ETP=4").split.expert_tp


def test_latent_attention_and_dense_layers_come_with_the_name_of_the_model_and_are_listed(run):
    model = run(DEEPSEEK).workload.model
    assert (model.kv_rank, model.head_dim, model.value_dim, model.dense_layers) == (512, 192, 128, 3)
    assert model.extra_predictions == 0
    assert run(DEEPSEEK, id="dgxc-dsv3", source_url="x/dgxc-benchmarking").workload.model.extra_predictions
    for words in ("latent attention", "shared experts", "dense layers", "routing by groups"):
        assert listed(run(DEEPSEEK), words, "deepseek-v3")
    assert listed(run(EXPERTS | {"model": "gpt-oss-120b"}), "sliding windows", "gpt-oss-120b")


def test_experts_of_a_token_stand_side_by_side_under_a_gate_that_counts_through_them(run, experts):
    model = run(experts, source_url="https://github.com/NVIDIA-NeMo/Automodel").workload.model
    assert (model.expert_groups, model.top_groups) == (128 // 8, 1)
    assert run(experts).workload.model.expert_groups == 0


def test_attention_of_llm_foundry_is_that_of_triton_unless_its_sweep_says_flash(run):
    source = "https://github.com/mosaicml/llm-foundry/blob/main/scripts/train/benchmarking/README.md"
    small = run(source_url=f"{source}#L115", model="mpt-7b")
    large = run(source_url=f"{source}#L85", model="mpt-7b")
    assert (small.software.attention, large.software.attention) == (0.18, 0.35)
    assert run(source_url=f"{source}#L83", model="mpt-13b").software.attention == 0.18
    assert run(source_url=f"{source}#L250", model="mpt-7b", gpu="A100-40G").software.attention == 0.40


def test_dualpipe_hides_the_exchange_of_experts(run):
    paired, plain = (run(DEEPSEEK, notes=notes).workload.options for notes in ("DualPipe", ""))
    assert (paired.ep_overlap, paired.schedule) == (True, "dualpipe")
    assert (plain.ep_overlap, plain.schedule) == (False, "1f1b")


def test_what_a_recipe_offloads_is_in_the_memory_of_the_host(row):
    offloaded = row(
        id="mbridge-26.04-llama3-70b-GB300-fp8-64", gpu="GB300", precision="fp8", tp=1, pp=1, dp=64, interleave=None,
        zero=3, micro_batch=2, recompute="", notes="FSDP shard=64",
    )  # fmt: skip
    less, more = comparison_of([offloaded, replace(offloaded, id="mbridge-26.04-llama3-70b-GB200-fp8-64")]).rows
    for found, share in ((less, 25), (more, 50)):
        assert listed(found, "recipe", f"{share}% of activations")
    assert more.memory_gib < less.memory_gib


def test_memory_says_nothing_where_a_recipe_offloads_no_one_knows_how_much(row):
    unknown = row(
        id="moezoo-qwen235b-GB200-mxfp8-64", model="qwen3-235b-a22b", gpu="GB200", precision="mxfp8", tp=1, pp=8, dp=8,
        ep=8, interleave=4, experts=128, topk=8, layers=94, recompute="",
    )  # fmt: skip
    made = comparison_of([unknown, row()])
    assert listed(made.rows[0], "activations in", "not known")
    assert (made.rows[0].states_mapping, made.rows[1].states_mapping) == (False, True)
    assert made.memory.stated == 1


@pytest.mark.parametrize("name", ["Llama-3.1 70B", "meta_llama3.3-70b", "LLAMA3_70B"])
def test_case_and_hyphens_of_a_model_name_do_not_count(run, name):
    assert run(**NO_SHAPE, model=name).workload.model.hidden == 8192


def test_a_catalog_name_stands_for_the_columns_of_its_shape(run):
    made = run(**NO_SHAPE, model="DeepSeek-V3", tp=1, pp=1, ep=64, dp=64)
    assert made.workload.model == find("model", "deepseek-v3").model_copy(update={"seq": 8192})
    assert listed(made, "layers, hidden, ffn", "deepseek-v3")
    assert run(model="llama3-70b", vocab=None).workload.model.vocab == 128256
    with pytest.raises(UnusableError, match="model shape"):
        run(model="llama3-70b", hidden=None, layers=40)


def test_a_vocabulary_that_is_not_published_is_that_of_the_family(run):
    made = run(model="llama-of-ours", vocab=None, layers=40)
    assert made.workload.model.vocab == 128_256
    assert listed(made, "128,256")
    assert run(model="gpt-of-ours", vocab=None, ffn=4 * 8192, layers=40).workload.model.vocab == 51_200


def test_alternating_layers_follow_the_depth_of_the_row(run, experts):
    model = run(experts | {"model": "gpt-oss-120b", "layers": 36}).workload.model
    assert (model.window, model.window_layers) == (128, 18)
    cut = run(experts | {"model": "llama4-maverick-400b", "layers": 24, "topk": 1}).workload.model
    assert (cut.dense_layers, cut.dense_ffn, cut.shared_ffn) == (12, 16384, 8192)


def test_a_feed_forward_layer_of_four_times_the_hidden_size_is_plain_but_in_families_that_gate(run):
    assert not run(model="gpt3-175b", ffn=4 * 8192).workload.model.gated
    assert run(model="llama3.2-1b", ffn=4 * 8192).workload.model.gated
    assert run().workload.model.gated


def test_interleaving_of_the_2021_table_is_known(run):
    paper = {"source_url": "https://arxiv.org/abs/2104.04473", "gpu": "A100-80G", "interleave": None}
    assert run(**paper, model="GPT-530B").split.interleave == 3
    assert run(**paper, model="GPT-1T").split.interleave == 1


def test_an_uneven_ring_waits_for_the_rank_that_attends_most(run):
    made = run(id="torchtitan-cp", cp=2, dp=2)
    assert not made.workload.model.causal
    assert made.workload.model.window == 8192 * 3 // 4
    assert made.workload.model.window_layers == 80
    assert run(cp=2, dp=2).workload.model.causal


def test_a_degree_that_contradicts_the_gpu_count_is_replaced_and_listed(run):
    made = run(dp=8)
    assert made.split.dp == 4
    assert listed(made, "DP 4", "printed as 8")


def test_shards_over_a_part_of_the_ranks_are_listed(run):
    assert listed(run(zero=3, notes="FSDP group 64"), "not over 64")


@pytest.mark.parametrize(("gpus", "dp", "tflop_s"), [(8192, 64, 430), (16384, 128, 400)])
def test_llama_3_405b_is_read_as_its_paper_tells_fits_and_is_met(row, gpus, dp, tflop_s):
    """arXiv 2407.21783, table 4: chunks of one layer of 128, gradients sharded, nothing recomputed.

    How it counts FLOPs is not said: between none of the attention and all of it, half, as causal kernels work.
    """
    made = row(
        id="llama3-405b", model="llama3.1-405b", source_url="https://arxiv.org/abs/2407.21783", gpus=gpus, tp=8, pp=16,
        dp=dp, global_batch=2048, layers=126, hidden=16384, ffn=53248, heads=128, iter_time_s=None,
        tflops_per_gpu=tflop_s, notes="flop_conv=model-causalattn", interleave=None, zero=None, recompute="none",
    )  # fmt: skip
    split = run_of(made).split
    assert (split.interleave, split.zero, RECOMPUTE[split.recompute]) == (8, 2, "none")
    (found,) = comparison_of([made]).rows
    assert found.memory_gib < found.memory_limit_gib
    assert abs(found.error) <= 0.08
