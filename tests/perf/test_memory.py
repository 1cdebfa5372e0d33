"""Memory by hand where models are wider than those of tests/anchors, and beside what was measured."""

from typing import Any

import numpy as np
import pytest

from coopt.instance.catalog import find
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.perf.mapping import ACT, FULL, NONE, NORM_ACT, NORM_FFN, Mappings, layer_parameters
from coopt.perf.memory import GIB, communication_bytes, layer_activation_bytes, memory_bytes, stages, state_bytes
from coopt.perf.mixers import DeltaLaw, laws_of
from tests.conftest import small_model
from tests.perf.training import training


def one(**changes: Any) -> Mappings:
    return Mappings.of(**{name: [value] for name, value in ({"tp": 1} | changes).items()})


RESERVE = 1.5 * GIB
LAYER = 4 * 4096**2 + 2 * 4096 * 16384
TABLE = 51200 * 4096


def used(workload: Workload, rows: Mappings) -> float:
    """Bytes beyond what driver and communication take."""
    return float(memory_bytes(workload, rows)[0] - communication_bytes(workload, rows)[0]) - RESERVE


def test_every_group_of_several_ranks_has_buffers_of_nccl() -> None:
    """12 MiB for each of three connections of 16 channels."""
    group = 16 * 3 * 12 * 2**20
    dense, experts = training(small_model()), training(small_model(experts=8, top_k=2))
    for workload, groups, split in (
        (dense, 0, {}),
        (dense, 2, {"tp": 8}),
        (dense, 3, {"cp": 8}),  # those that share states are CP ranks as well
        (dense, 5, {"tp": 2, "cp": 2, "pp": 2, "dp": 2}),
        (experts, 3, {"pp": 2, "dp": 2}),
    ):
        assert communication_bytes(workload, one(**split))[0] == group * groups
    each = experts.model_copy(update={"options": experts.options.model_copy(update={"dispatch": "each"})})
    # all ranks, those of DP, those of EP, and those that hold the same experts
    for x, groups in ((2, 4), (8, 4)):
        sent, exchanged = (
            float(communication_bytes(one_of, one(dp=16, ep=x))[0]) - group * groups for one_of in (experts, each)
        )
        # 2,048 tokens of each rank in 16 bits, and a probability for every expert
        assert sent == x * 2048 * (2 * 4096 + 4 * 8)
        assert exchanged == (x - 1) * 32 * 14 * 2**20
    # 8 H100 took 3.28 GB at their first all-to-all (NCCL issue 1685)
    assert exchanged == pytest.approx(3.28e9, rel=0.01)


def test_pipelines_of_fsdp2_keep_gradients_whole() -> None:
    """Of 2 + 4 + 12 bytes a parameter the 4 are not shared; chunks whose shards come in rounds share them."""
    for pp, more, spread in ((1, {}, 16), (2, {}, 12), (2, {"shards_in_rounds": True}, 16)):
        software = find("software", "fsdp").model_copy(update=more)
        of_layer, *_ = state_bytes(training(small_model(), software=software), one(dp=8, pp=pp, zero=2))
        assert float(of_layer[0]) == (18 - spread + spread / 8) * LAYER


def test_graphs_hold_a_fifth_more_of_what_their_modules_keep() -> None:
    """Norms and attention keep 16 numbers of a token and column, the plain feed-forward part 16."""
    attention, behind = 2048 * 4096 * 16, 2048 * 16384 * 4
    for graphs, modules, held in (
        ("none", (), 0),
        ("scoped", ("attn",), attention),
        ("scoped", ("mlp",), behind),
        ("scoped", ("moe_router",), 0),
        ("full", (), attention + behind),
    ):
        software = {"name": "s", "graphs": graphs, "graph_modules": modules}
        (kept, again) = layer_activation_bytes(
            training(small_model(), software=software), Mappings.of(recompute=[NONE, FULL])
        )
        assert kept == pytest.approx(attention + behind + 0.2 * held)
        assert again == 2 * 2048 * 4096


@pytest.mark.parametrize(("stage", "whole", "spread"), [(0, 18, 0), (1, 6, 12), (2, 2, 16), (3, 0, 18)])
@pytest.mark.parametrize("p", [1, 2])
def test_zero_spreads_states_over_data_and_context_ranks_under_a_pipeline_too(p, stage, whole, spread) -> None:
    of_layer, of_table, gathered = state_bytes(training(small_model()), one(dp=4, cp=2, pp=p, zero=stage))
    assert float(of_layer[0]) == (whole + spread / 8) * LAYER
    assert float(of_table[0]) == (whole + spread / 8) * TABLE
    assert float(gathered[0]) == (2 * 2 * LAYER if stage == 3 else 0)


@pytest.mark.parametrize(("p", "whole", "spread", "at_once"), [(1, 0, 18, 4), (2, 6, 12, 0)])
def test_pipelines_of_fsdp2_hold_all_but_moments_whole(p: int, whole: float, spread: float, at_once: float) -> None:
    """As PyTorch 2.13 does (`findings/torch_pipeline_gathers_what_fsdp2_shards.sh`)."""
    asked = training(small_model(), software={"name": "s", "whole_gradients": True})
    of_layer, _, gathered = state_bytes(asked, one(dp=8, pp=p, zero=3))
    assert float(of_layer[0]) == (whole + spread / 8) * LAYER
    assert float(gathered[0]) == at_once * LAYER


def test_experts_are_spread_over_their_own_copies() -> None:
    """16 ranks, expert groups of 4: each GPU holds 2 of 8 experts, and 4 GPUs hold the same ones."""
    workload = training(small_model(experts=8, top_k=2, ffn=4096))
    experts, shared = 2 * 4096 * 4096 * 2, 4 * 4096**2 + 4096 * 8
    of_layer, *_ = state_bytes(workload, one(dp=16, ep=4, zero=1))
    assert float(of_layer[0]) == 6 * (shared + experts) + 12 * (shared / 16 + experts / 4)


def test_moments_and_gradients_in_16_bits_take_half() -> None:
    narrow = training(small_model(), software={"name": "s", "gradient_bytes": 2, "state_bytes": 8})
    of_layer, *_ = state_bytes(narrow, one(dp=4, zero=1))
    assert float(of_layer[0]) == (2 + 2 + 8 / 4) * LAYER


@pytest.mark.parametrize(("layers", "predictions", "last"), [(12, 2, 5), (11, 2, 4), (10, 1, 2), (9, 2, 2)])
def test_further_predictions_fill_the_last_stage(layers: int, predictions: int, last: int) -> None:
    """Four stages of three layers; what is missing is missing at the end, and predictions take its place."""
    further = training(small_model(layers=layers, extra_predictions=predictions))
    layer = float(layer_activation_bytes(further, one(pp=4))[0])
    states, logits = 18 * (last * LAYER + TABLE), (6 + 4 * predictions) * 2048 * 51200
    assert used(further, one(pp=4, dp=64)) == max(
        states + last * layer + logits,  # one micro-batch, so that every stage keeps one
        18 * (3 * LAYER + TABLE) + 3 * layer,
        18 * 3 * LAYER + 3 * layer,
    )


def test_the_second_stage_binds_where_the_first_lacks_a_layer() -> None:
    """Fourteen layers on four stages of two chunks of two: the first chunk of the first stage has one layer."""
    workload = training(small_model(layers=14, vocab=128))
    rows = one(pp=4, interleave=2)
    (first, tables, kept, _), (second, none, more, _), (last, _, least, late) = (
        tuple(int(np.ravel(n)[0]) for n in stage) for stage in stages(workload, rows)
    )
    assert (first, second, last) == (3, 4, 3)
    assert (tables, none, late) == (1, 0, 0)
    # Chunks in flight: 11 on the first stage, 7 of them its first chunk; 9 on the second, 5 on the last.
    assert (kept, more, least) == (11 * 2 - 7, 9 * 2, 5 * 2 - 1)
    layer = float(layer_activation_bytes(workload, rows)[0])
    assert used(workload, rows) == 18 * 4 * LAYER + 18 * layer


def test_zero_bubble_keeps_as_much_on_every_stage_as_1f1b_on_the_first() -> None:
    """arXiv 2401.10241, section 2.1; four stages of four layers, of which the last has logits besides."""
    workload, rows = training(small_model(layers=16, vocab=128), schedule="zb-h1"), one(pp=4)
    loads = [tuple(int(np.ravel(n)[0]) for n in stage) for stage in stages(workload, rows)]
    assert loads == [(4, 1, 16, 4), (4, 0, 16, 12), (4, 1, 16, 16)]
    logits = 6 * 2048 * 128
    plain = used(training(small_model(layers=16, vocab=128)), rows)
    assert used(workload, rows) == plain + logits  # without recomputation what waits is what was kept
    full = one(pp=4, recompute=FULL)
    kept, whole = (float(layer_activation_bytes(workload, each)[0]) for each in (full, rows))
    brought_back = used(workload, full) - used(training(small_model(layers=16, vocab=128)), full)
    assert brought_back == pytest.approx(16 * (whole - kept) + logits)


def test_dualpipe_holds_two_stages_and_keeps_a_micro_batch_more() -> None:
    """Parameters twice and activations of p + 1 micro-batches (arXiv 2412.19437, Table 2), optimizers half as much."""
    model = small_model(layers=16, vocab=128)
    workload, rows = training(model, schedule="dualpipe"), one(pp=4, dp=2, zero=1)
    loads = [tuple(int(np.ravel(n)[0]) for n in stage) for stage in stages(workload, rows)]
    assert loads == [(8, 0, 12, 8), (8, 0, 20, 4), (8, 1, 20, 4)]
    (of_layer, *_), (alone, *_) = (state_bytes(one, rows) for one in (workload, training(model)))
    parameters = float(layer_parameters(workload.model, 1))
    assert float(alone[0]) == parameters * (2 + 4 + 12 / 2)
    assert float(of_layer[0]) == parameters * (2 + 4 + 12 / 4)


def test_eight_bit_inputs_are_kept_in_eight_bits_where_the_software_does() -> None:
    rows = one(tp=2, sequence_parallel=True)
    wide, kept, narrow = (
        float(layer_activation_bytes(workload, rows)[0]) / 2048
        for workload in (training(small_model()), fp8(software={"name": "s", "narrow_inputs": False}), fp8())
    )
    h, f = 4096 / 2, 16384 / 2
    assert wide == kept == 8 * h + 2 * 3 * h + 2 * h + 4 * f
    assert narrow == 6 * h + 2 * 3 * h + 3 * h + 3 * f


def fp8(**options: Any) -> Workload:
    return training(small_model(), **options).model_copy(update={"precision": "fp8"})


def test_recomputation_by_module_drops_what_it_repeats_and_brings_back_one_layer() -> None:
    workload, h, f = training(small_model()), 4096, 16384
    kept = {
        kind: float(layer_activation_bytes(workload, one(recompute=kind))[0]) / 2048
        for kind in (NONE, NORM_ACT, NORM_FFN, FULL)
    }
    assert kept == {NONE: 16 * h + 4 * f, NORM_ACT: 12 * h + 4 * f, NORM_FFN: 12 * h, FULL: 2 * h}
    logits = 6 * 51200
    for kind, again in ((NORM_ACT, 4 * h), (NORM_FFN, 4 * h + 4 * f), (FULL, 16 * h + 4 * f)):
        rows = one(recompute=kind)
        states = 18 * (8 * LAYER + TABLE)
        assert used(workload, rows) == states + 2048 * (8 * kept[kind] + again + logits)


@pytest.mark.parametrize(("recompute", "each"), [(NONE, 16 * 4096 + 4 * 16384), (FULL, 2 * 4096)])
def test_what_the_host_keeps_is_on_the_gpu_for_two_layers_at_a_time(recompute: int, each: int) -> None:
    """Context ranks share the activations."""
    workload = training(small_model())
    needed = [used(workload, one(recompute=recompute, offload_percent=share)) for share in (0, 50, 100)]
    assert needed[0] - np.array(needed) == pytest.approx([0, 3 * 2048 * each, 6 * 2048 * each])
    alone = training(small_model(layers=2))
    assert used(alone, one(offload_percent=100)) == used(alone, one())  # one layer is at work, one on its way
    whole, half = (used(workload, one(cp=c)) - 18 * (8 * LAYER + TABLE) for c in (1, 2))
    assert whole == 2 * half


def test_what_goes_to_the_host_stays_where_gradients_of_weights_are_to_come() -> None:
    """On the last of four stages under ZB-H1 all of them are; under 1F1B the first one keeps those of two layers on the
    GPU in place of sixteen, as the last one does, which has logits besides.
    """
    model = small_model(layers=16, vocab=128)
    at_home, away = one(pp=4), one(pp=4, offload_percent=100)
    workload = training(model, schedule="zb-h1")
    assert used(workload, away) == used(workload, at_home)
    layer, logits = float(layer_activation_bytes(workload, at_home)[0]), 6 * 2048 * 128
    saved = used(training(model), at_home) - used(training(model), away)
    assert saved == pytest.approx(14 * layer - logits)


def test_activations_of_experts_and_latents_are_repeated_by_norm_act() -> None:
    model = small_model(experts=8, top_k=2, ffn=1024, kv_rank=512, rope_dim=64, q_rank=1536, gated=True)
    workload = training(model)
    whole, less, least = (
        float(layer_activation_bytes(workload, one(recompute=kind))[0]) / 2048 for kind in (NONE, ACT, NORM_ACT)
    )
    latents = 3 * 4096 - 1536 - 512 - 64
    assert whole - less == 2 * 2 * 1024 + 2 * latents
    assert less - least == 2 * 2 * 4096


def test_activations_of_experts_alone_are_as_many_as_were_measured() -> None:
    """`moe_act` took 4.194 GB from the peak of Nemotron 3 Nano on 16 H100 (Megatron Bridge, pull request 5570)."""
    workload = training(find("model", "nemotron-3-nano").model_copy(update={"seq": 8192}))
    whole, less = (memory_bytes(workload, one(dp=16, ep=8, recompute=kind, zero=1))[0] for kind in (NONE, ACT))
    again = float(workload.model.ffn * 2 * 8192 * 6 * 23 / 52)  # of the mean layer, brought back
    assert whole - less + again == pytest.approx(4.194e9, rel=1e-3)


def test_delta_rules_keep_what_their_kernels_save() -> None:
    """Bytes of a token, counted in gated_delta_net/gdn.py of Megatron-Core and chunk.py of flash-linear-attention."""
    qwen, kimi = (find("model", name) for name in ("qwen3-next-80b-a3b", "kimi-linear-48b-a3b"))
    assert isinstance(qwen, Transformer)
    assert isinstance(kimi, Transformer)
    keys, values, heads = 16 * 128, 32 * 128, 32
    projected = 2 * (2 * keys + 2 * values + 2 * heads)
    scanned = 2 * (2 * keys) + 2 * (2 * heads * 128) + 2 * values + 2 * 64 * heads  # normed, copied, and a triangle
    behind = 2 * values + 2 * values + 2 * values  # its result, normed, gated
    (_, delta), *_ = [pair for pair in laws_of(qwen) if isinstance(pair[1], DeltaLaw)]
    assert delta.kept_columns(1, 2.0) == projected + scanned + behind
    (_, kda), *_ = [pair for pair in laws_of(kimi) if isinstance(pair[1], DeltaLaw)]
    projected = 2 * (2 * values + 2 * values + values + heads)  # keys of every head, the gate, and decays
    assert kda.kept_columns(1, 2.0) == projected + 2 * (2 * values) + 2 * values + 2 * 2 * 64 * heads + 4 * values


def test_an_indexer_keeps_its_queries_and_what_it_chose() -> None:
    """save_for_backward of FusedDSAIndexerLoss (dsa.py of Megatron-Core): q, k, and places in 64 bits."""
    sparse = find("model", "deepseek-v3.2")
    assert isinstance(sparse, Transformer)
    ((_, law),) = laws_of(sparse)
    core = 2 * 128 * 576 + 2 * 576 + 2 * 128 * 512  # queries, latents, and what the core gives
    assert law.kept_columns(1, 2.0) == core + 2 * 128 + 2 * 64 * 128 + 8 * 2048


def published(name: str, tp: int, pp: int, dp: int, batch: int, **more: Any) -> tuple[float, float]:
    """GiB that Llama 3 405B needs on an H100 by a published mapping, and what the GPU shows."""
    gpu = find("gpu", "h100-sxm")
    precision = more.pop("precision", "bf16")
    software = more.pop("software", "megatron-core")
    workload = training(name, batch, software=software).model_copy(update={"precision": precision})
    rows = one(tp=tp, pp=pp, dp=dp, sequence_parallel=True, **more)
    return float(memory_bytes(workload, rows)[0]) / GIB, gpu.hbm_gb * 1e9 / GIB


@pytest.mark.parametrize(
    ("split", "more", "share"),
    [
        ((8, 16, 128, 2048), {"zero": 2, "interleave": 8}, 0.85),
        ((8, 8, 4, 1152), {"cp": 2, "interleave": 8, "zero": 1, "precision": "fp8"}, 0.8),
    ],
)
def test_llama_3_405b_fits_as_it_was_trained(split: tuple[int, ...], more: dict[str, Any], share: float) -> None:
    """arXiv 2407.21783, table 4: 16,384 H100, TP 8, PP 16, DP 128, 16M tokens, no recomputation; and MLPerf Training
    5.0 on 512: TP 8, PP 8, CP 2, 8 chunks, batch 1,152, fp8."""
    used_gib, shown_gib = published("llama3-405b", *split, **more)
    assert shown_gib == pytest.approx(81559 / 1024, abs=0.01)
    assert share * shown_gib < used_gib < shown_gib
