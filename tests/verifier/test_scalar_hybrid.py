"""Hybrids with Mamba-2, and latent experts, counted by hand where products take as long as their traffic."""

from __future__ import annotations

from typing import Any

import pytest

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.plan.parts import MappingChoice
from coopt.verifier.training.communication import traffic_of
from coopt.verifier.training.iteration import met_parameters, model_flop_per_token
from coopt.verifier.training.kernels import Machine
from coopt.verifier.training.layer import LayerTimes
from coopt.verifier.training.mappings import ScalarMapping, mapping_fault, scalar_mapping, splits
from coopt.verifier.training.memory import whole_layer_bytes
from coopt.verifier.training.placing import held_parameters, layer_shares, mamba_shard, shard
from coopt.verifier.training.work import Clock
from tests.verifier.cases import GPU, layer_s, split, workload
from tests.verifier.test_scalar_layer import CORE, MACHINE, SLOW, TINY, core, traffic, turned

MAMBA = {"mamba_heads": 8, "mamba_head_dim": 16, "mamba_groups": 4, "mamba_state": 32}
JAMBA = TINY | MAMBA | {"layers": 4, "mamba_layers": 3}
APART = TINY | MAMBA | {"layers": 8, "mamba_layers": 3, "attention_layers": 1, "ffn_layers": 4}
ATTENTION, FEED_FORWARD = [(32, 64, 64), (32, 64, 32)], [(32, 64, 64), (32, 64, 64)]
MIXER = [(32, 64 + 64 + 2 * 2 * 32 + 4, 64), (32, 64, 64)]
"""Of one of two GPUs: 4 heads of 16, 2 groups, 32 rows; the input projection gives gate, x, B, C and a step a head."""
SCORES, STATES, MIXED, CARRIED = (128, 128, 32), (16, 32, 128), (128, 16, 128), (128, 16, 32)
"""Of a chunk of 128 tokens: in each group, and three in each head. 32 rows are a quarter of a chunk."""


def weights_s(here: Workload, machine: Machine, mapped: ScalarMapping) -> float:
    """Seconds of gradients of weights of the mean layer."""
    return LayerTimes(here, machine).weights_s(mapped)


def hybrid(model: dict[str, Any] | None = None, **options: Any) -> Workload:
    return workload(model=model or JAMBA, options=options)


def scan_bytes(rows: int = 32) -> float:
    """Forward and backward, half as long again as the laws say: chunks of 128 tokens in 2 groups and 4 heads."""
    groups, heads = rows / 128 * 2, rows / 128 * 4
    once = groups * traffic([SCORES]) + heads * traffic([STATES])
    products = once + heads * traffic([MIXED, CARRIED])
    gradients = groups * turned([SCORES]) + heads * turned([STATES, MIXED, CARRIED])
    of_steps = heads * traffic([(128, 128, 16)])
    return 1.5 * (products + gradients + once + of_steps + (8 + 24) * heads * 16 * 32)


def of_mamba(rows: int = 32) -> float:
    """A mixer of one sequence of so many tokens."""
    shapes = [(rows, n, k) for _, n, k in MIXER]
    around = (4 + 10) * (64 + 2 * 2 * 32) + (6 + 18) * 64
    return traffic(shapes) + turned(shapes) + scan_bytes(rows) + rows * around


BLOCKS = 68 * 32 * 64
"""Norms of two blocks, forward and backward."""
OF_ATTENTION = traffic(ATTENTION) + turned(ATTENTION) + CORE + 34 * 32 * 32
OF_FFN = traffic(FEED_FORWARD) + turned(FEED_FORWARD) + (4 + 6) * 32 * 64


def test_layers_are_the_mean_of_those_with_each_mixer() -> None:
    expected = BLOCKS + OF_FFN + 0.25 * OF_ATTENTION + 0.75 * of_mamba()
    assert layer_s(hybrid(), MACHINE, split(tp=2)) == pytest.approx(expected / 1e9, rel=1e-12)


def test_layers_of_one_part_each_are_the_mean_of_the_three_kinds() -> None:
    expected = 0.5 * BLOCKS + (4 * OF_FFN + 1 * OF_ATTENTION + 3 * of_mamba()) / 8
    assert layer_s(hybrid(APART), MACHINE, split(tp=2)) == pytest.approx(expected / 1e9, rel=1e-12)


def test_gradients_of_weights_are_those_of_projections() -> None:
    shapes = {"attention": ATTENTION, "mamba": MIXER, "plain": FEED_FORWARD}
    share = layer_shares(hybrid(APART).model)
    weights = sum(getattr(share, name) * traffic([(k, n, m) for m, n, k in own]) for name, own in shapes.items())
    found = weights_s(hybrid(APART, schedule="zb-h1"), MACHINE, split(tp=2))
    assert found == pytest.approx(weights / 1e9, rel=1e-12)


def test_products_that_keep_more_bits_take_as_long_as_those_do() -> None:
    narrow = SLOW._replace(input_bytes=1, bits=4)
    machine = MACHINE._replace(layers=narrow, eight=narrow._replace(byte_s=5e8, bits=8))
    kept = {"attention_bits": 16, "mamba_output_bits": 8}
    more = {
        schedule: [
            count(workload(model=APART, software=software, options={"schedule": schedule}), machine, split(tp=2))
            for software in ({}, kept)
        ]
        for schedule, count in (("1f1b", layer_s), ("zb-h1", weights_s))
    }
    wider = [
        [sum(bits * (m * k + k * n) for bits in (1, -2)) for m, n, k in products]
        for products in (ATTENTION, turned_shapes(ATTENTION), [(k, n, m) for m, n, k in ATTENTION])
    ]
    output = MIXER[1:]
    slower = traffic(output, 1) + turned(output, 1), traffic([(k, n, m) for m, n, k in output], 1)
    attention = -sum(map(sum, wider[:2])), -sum(wider[2])
    for (less_s, more_s), of_attention, of_mamba in zip(more.values(), attention, slower, strict=True):
        assert more_s - less_s == pytest.approx((of_attention + 3 * of_mamba) / 8e9, rel=1e-9)


def test_layers_in_16_bits_are_as_long_as_there_and_keep_as_much() -> None:
    narrow = MACHINE._replace(layers=SLOW._replace(input_bytes=1, bits=8))
    machine = narrow._replace(in_16_bits=MACHINE)
    options = {"schedule": "zb-h1"}
    few, all_of_them = (
        workload(model=APART, precision="fp8", software={"wide_layers": layers}, options=options) for layers in (2, 20)
    )
    for count in (layer_s, weights_s):
        mean = 0.75 * count(few, narrow, split(tp=2)) + 0.25 * count(few, MACHINE, split(tp=2))
        assert count(few, machine, split(tp=2)) == pytest.approx(mean, rel=1e-12)
        assert count(all_of_them, machine, split(tp=2)) == pytest.approx(count(few, MACHINE, split(tp=2)), rel=1e-12)
    plain, wide = (workload(model=APART, precision=name, options=options) for name in ("fp8", "bf16"))
    part = shard(few, split(tp=2))
    less, some, most = (whole_layer_bytes(one, split(tp=2), part) for one in (plain, few, wide))
    assert some == 0.75 * less + 0.25 * most
    assert whole_layer_bytes(all_of_them, split(tp=2), part) == most


def test_a_further_prediction_is_a_plain_layer_and_a_loss() -> None:
    gpu, mixed = Gpu.model_validate(GPU | {"fp8_tflop_s": 600}), {"experts": 4, "top_k": 2}
    for parts, options in ((APART, {}), (APART | mixed, {"ep_overlap": True}), (JAMBA | mixed, {})):
        model = {name: size for name, size in parts.items() if not name.startswith(("mamba", "attention", "ffn_"))}
        cut = split(tp=2, ep=2 if "experts" in parts else 1, micro_batch=2)
        for bits in (4, 16):
            asked = {"software": {"prediction_bits": bits}, "options": options | {"schedule": "zb-h1"}}
            none, two = (
                Clock(workload(model=parts | {"extra_predictions": j}, precision="fp8", **asked), gpu).work(cut)
                for j in (0, 2)
            )
            precision = "fp8" if bits == 4 else "bf16"
            plain = Clock(workload(model=model, precision=precision, **asked), gpu).work(cut)
            assert two.logits_s == pytest.approx(3 * none.logits_s + 2 * plain.layer_s, rel=1e-12)
            assert two.further_weights_s == pytest.approx(2 * plain.weights_s, rel=1e-12)
            assert two.traffic.logits_gathers == 6 + 2 * plain.traffic.gathers
            exchanges = two.traffic.further_exchanges * two.traffic.exchanges
            assert exchanges == pytest.approx(2 * plain.traffic.exchanges, rel=1e-12)
    here = hybrid(APART | {"extra_predictions": 2}).model
    whole = 64 * 128 + 64 * 64 + 2 * 64 * 128, 2 * 4 * 16 * 32  # parameters of a plain layer; pairs of its attention
    more = model_flop_per_token(here) - model_flop_per_token(hybrid(APART).model)
    assert more == 2 * 6 * (whole[0] + 101 * 64 + whole[1])


def turned_shapes(shapes: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """The products that give both gradients."""
    return [(m, k, n) for m, n, k in shapes] + [(k, n, m) for m, n, k in shapes]


def test_kernels_of_a_mixer_are_counted() -> None:
    gap = SLOW._replace(kernel_s=1.0)
    slow = MACHINE._replace(layers=gap, wide=gap, scores=gap)
    found = layer_s(hybrid(APART), slow, split()) - layer_s(hybrid(APART), MACHINE, split())
    # attention: 2 + 1 products forward with the core, twice backward; Mamba-2: 2 products, 4 of the scan at 3/2, two of
    # them and a gradient again, 4 and 8 others; feed-forward: 2. Half of 6 + 12 pointwise ones.
    attention, mamba, ffn = 3 * 3, 3 * 2 + 1.5 * (3 * 4 + 3) + 4 + 8, 3 * 2
    assert found == pytest.approx((attention + 3 * mamba + 4 * ffn) / 8 + 9, rel=1e-9)


def test_several_sequences_are_turned_over_on_their_way_through_the_scan() -> None:
    # two sequences: what the input projection gives is copied there and back, what the scan gives once
    copied = 4 * 64 * (2 * 260 + 64)
    attention = [(64, n, k) for _, n, k in ATTENTION]
    of_attention = traffic(attention) + turned(attention) + sum(core(heads=4)) + 34 * 64 * 32
    feed_forward = [(64, n, k) for _, n, k in FEED_FORWARD]
    of_ffn = traffic(feed_forward) + turned(feed_forward) + (4 + 6) * 64 * 64
    expected = 2 * BLOCKS + of_ffn + 0.25 * of_attention + 0.75 * (of_mamba(64) + copied)
    assert layer_s(hybrid(), MACHINE, split(tp=2, micro_batch=2)) == pytest.approx(expected / 1e9, rel=1e-12)
    in_order = workload(model=JAMBA, software={"batch_first": True})
    found = layer_s(in_order, MACHINE, split(tp=2, micro_batch=2))
    assert found == pytest.approx((expected - 0.75 * copied) / 1e9, rel=1e-12)


def test_parameters_of_a_hybrid() -> None:
    mixer = mamba_shard(hybrid().model, 2)
    assert (mixer.head_columns, mixer.group_columns, mixer.heads, mixer.groups, mixer.projected) == (64, 128, 4, 2, 260)
    held = held_parameters(hybrid(APART), split(tp=2))
    attention, mamba, ffn = 64 * (32 + 32) + 64 * 32, 64 * (260 + 64), 2 * 64 * 64
    assert held.layer == (attention + 3 * mamba + 4 * ffn) / 8
    met = (64 * 128 + 64 * 64 + 3 * 64 * (2 * 260 + 128) + 4 * 2 * 64 * 128) / 8
    assert met_parameters(hybrid(APART).model) == met
    seen = 4 * 2 * 16 * 32 + 3 * 3.5 * 128 * 32
    assert model_flop_per_token(hybrid(APART).model) == 6 * (8 * met + 101 * 64) + 6 * seen


def test_bytes_that_a_hybrid_keeps() -> None:
    part = shard(hybrid(APART), split(tp=2))
    norms, attention = 0.5 * 32 * 64 * 8, 32 * (2 * (32 + 32) + 2 * 32)
    mamba, ffn = 32 * (2 * 260 + 2 * 64 + 2 * 64), 32 * 4 * 64
    found = whole_layer_bytes(hybrid(APART), split(tp=2), part)
    assert found == norms + (attention + 3 * mamba + 4 * ffn) / 8


def test_each_part_has_its_collectives() -> None:
    both, apart = (traffic_of(hybrid(model), split(tp=2, recompute="norm+ffn")) for model in (JAMBA, APART))
    assert (both.gathers, apart.gathers) == (4 + 2 + 4, (4 + 2 + 4) / 2)


def test_latent_experts_work_on_narrow_rows() -> None:
    mixed = TINY | {"experts": 8, "top_k": 2}
    wide, narrow = (hybrid(mixed | {"expert_latent": width}) for width in (0, 16))
    # 32 rows, of which each of two TP ranks routes 16 to 2 experts: 2 experts a GPU with 16 rows each
    mapped = split(tp=2, ep=4)

    def routed(width: int) -> int:
        shapes = [(16, 128, width), (16, width, 128)]
        return 2 * (traffic(shapes) + turned(shapes)) + (16 + 24) * 32 * width

    around = [(32, 16, 64), (32, 64, 16)]
    expected = routed(16) - routed(64) + traffic(around) + turned(around)
    found = layer_s(narrow, MACHINE, mapped) - layer_s(wide, MACHINE, mapped)
    assert found == pytest.approx(expected / 1e9, rel=1e-9)
    assert traffic_of(narrow, mapped).exchanged_bytes == traffic_of(wide, mapped).exchanged_bytes / 4
    less = held_parameters(wide, mapped), held_parameters(narrow, mapped)
    assert less[0].expert_layer == 4 * less[1].expert_layer
    assert less[1].layer - less[0].layer == 2 * 64 * 16
    kept = [whole_layer_bytes(one, mapped, shard(one, mapped)) for one in (wide, narrow)]
    assert kept[0] - kept[1] == 32 * 2 * (64 - 16) - 32 * 2 * 16


def test_scans_are_not_cut() -> None:
    here = workload(model=JAMBA, global_batch=8, mapping={"cp": [1, 2], "micro_batch": 1})
    listed = list(splits(here, 8))
    assert {one.cp for one in listed} == {1}
    assert {one.tp for one in listed} == {1, 2, 4}
    fault = mapping_fault(here, 8, plan_mapping(cp=2, tp=2, dp=2))
    assert fault == "cp = 2 cuts sequences that the Mamba-2 layers of 'model' have whole."
    assert "Mamba-2 groups" in mapping_fault(workload(model=JAMBA | {"mamba_groups": 2}), 8, plan_mapping(tp=4, dp=2))


def plan_mapping(**degrees: int) -> MappingChoice:
    """The mapping of a plan."""
    whole = {"tp": 1, "pp": 1, "dp": 1, "cp": 1, "ep": 1, "micro_batch": 1, "interleave": 1, "recompute": "none"}
    found = MappingChoice.model_validate(whole | {"sequence_parallel": False, "zero": 0} | degrees)
    assert scalar_mapping(found).tp == found.tp
    return found
