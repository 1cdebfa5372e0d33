"""Layers on a machine whose products take as long as their traffic, counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from coopt.instance.workload import Workload
from coopt.verifier.training.kernels import Engine, Machine
from coopt.verifier.training.layer import layer_pass, logits_s
from coopt.verifier.training.memory import kept_bytes
from coopt.verifier.training.placing import shard
from tests.verifier.cases import layer_s, split, workload

SLOW = Engine(flop_s=1e18, k0=0, input_bytes=2, byte_s=1e9, kernel_s=0, processors=10)
MACHINE = Machine(SLOW, SLOW, SLOW, attention_flop_s=1e12, host_byte_s=1e9)
TINY = {"layers": 2, "hidden": 64, "heads": 4, "kv_heads": 2, "head_dim": 16, "ffn": 128, "vocab": 101, "seq": 32}
SHAPES = [(32, 64, 64), (32, 64, 32), (32, 64, 64), (32, 64, 64)]
"""QKV, output, up and down with b = 1, t = 2: n = 32, n_q/t = 32, n_kv = 1·32, f/t = 64."""


def tiny(attention: str = "flash", software: dict[str, Any] | None = None, **model: Any) -> Workload:
    return workload(model=TINY | model, software=software or {}, options={"attention": attention})


def seconds(here: Workload, **mapping: Any) -> float:
    return layer_s(here, MACHINE, split(**({"tp": 2} | mapping)))


def traffic(shapes: list[tuple[int, int, int]], inputs: int = 2) -> int:
    """Bytes of products, once."""
    return sum(inputs * (m * k + k * n) + 2 * m * n for m, n, k in shapes)


def turned(shapes: list[tuple[int, int, int]], inputs: int = 2) -> int:
    """Bytes of both gradients."""
    return traffic([(m, k, n) for m, n, k in shapes] + [(k, n, m) for m, n, k in shapes], inputs)


U, QUERIES, FFN = 32 * 64, 32 * 32, 32 * 64
FORWARD = 22 * U + 4 * QUERIES + 4 * FFN
BACKWARD = 46 * U + 30 * QUERIES + 6 * FFN


def core(heads: float = 2, cp: int = 1) -> list[float]:
    """Bytes that take as long as the attention core, forward and backward: 32 keys by a block, heads of 16 as of 64."""
    passes = []
    for columns, start in ((2 * 64 + 80, 160), (5 * 64 + 260, 300)):
        half_wave = 10 * 64 * (32 + cp * start)
        pairs = max(heads * 32 / cp * ((32 + 128) / 2 + cp * start), half_wave) + half_wave
        passes.append(2 * pairs * columns * 256 / 336 / 1e3)
    return passes


CORE = sum(core())


def test_a_layer_with_flash_attention() -> None:
    expected = 3 * traffic(SHAPES) + FORWARD + BACKWARD + CORE
    assert seconds(tiny()) == pytest.approx(expected / 1e9, rel=1e-12)
    with_sp = expected - (22 + 46) * U / 2
    assert seconds(tiny(), sequence_parallel=True) == pytest.approx(with_sp / 1e9, rel=1e-12)
    again = expected + traffic(SHAPES) + FORWARD + core()[0]
    assert seconds(tiny(), recompute="full") == pytest.approx(again / 1e9, rel=1e-12)
    assert seconds(tiny(), recompute="selective") == seconds(tiny())


def test_no_pass_is_shorter_than_its_activations_are_on_the_way_to_the_host() -> None:
    here = tiny()
    forward_s, backward_s = layer_pass(here, MACHINE, split(tp=2))
    kept = kept_bytes(here, split(tp=2), shard(here, split(tp=2)))
    for share in (50, 100):
        for rate in (kept / forward_s, kept / backward_s, kept / (forward_s + backward_s)):
            away_s = share / 100 * kept / rate
            machine = MACHINE._replace(host_byte_s=rate)
            found = layer_pass(here, machine, split(tp=2, offload_percent=share))
            assert found == pytest.approx((max(forward_s, away_s), max(backward_s, away_s)))


def test_a_layer_with_unfused_attention() -> None:
    # Two heads on a GPU, for which there is no fused softmax; four, for which there is.
    pairs, here = traffic([(32, 32, 16), (32, 16, 32)]), tiny("unfused")
    for tp, heads, forward, backward in ((2, 2, 41, 45), (1, 4, 9, 11)):
        once, w = heads * pairs, heads * 32 * 32
        added = [3 * once + (forward + backward) * w, once + forward * w]
        rest = [seconds(tiny(), tp=tp, recompute=kind) - sum(core(heads)) / 1e9 for kind in ("none", "full")]
        assert seconds(here, tp=tp) == pytest.approx(rest[0] + added[0] / 1e9, rel=1e-12)
        assert seconds(here, tp=tp, recompute="selective") == pytest.approx(rest[0] + sum(added) / 1e9, rel=1e-12)
        repeated = rest[1] - core(heads)[0] / 1e9
        assert seconds(here, tp=tp, recompute="full") == pytest.approx(repeated + sum(added) / 1e9, rel=1e-12)


def test_the_kernels_of_a_layer_are_counted() -> None:
    # Forward: 4 products, 1 attention kernel, 6 others. Backward: 8, 2 and 12. Unfused: 2 and 4 products for the core.
    gaps = MACHINE._replace(layers=SLOW._replace(kernel_s=1.0), scores=SLOW._replace(kernel_s=1.0))
    for kind, kernels in (("flash", 4 + 1 + 6 + 8 + 2 + 12), ("unfused", 4 + 2 + 6 + 8 + 4 + 12)):
        found = layer_s(tiny(kind), gaps, split(tp=2)) - layer_s(tiny(kind), MACHINE, split(tp=2))
        assert found == pytest.approx(kernels, rel=1e-9)


def test_software_changes_the_bytes_of_memory_bound_kernels() -> None:
    lean = seconds(tiny(software={"norm_forward_bytes": 18, "norm_backward_bytes": 26}))
    assert seconds(tiny()) - lean == pytest.approx((4 + 20) * U / 1e9)
    kept = seconds(tiny(software={"norm_forward_bytes": 18}), recompute="full")
    assert seconds(tiny(), recompute="full") - kept == pytest.approx(2 * 4 * U / 1e9)
    eager = seconds(tiny(software={"kernel_traffic": 1.5}))
    assert eager - seconds(tiny()) == pytest.approx(0.5 * (FORWARD + BACKWARD) / 1e9)


def test_context_parallelism_shortens_the_rows_but_not_what_they_look_at() -> None:
    rows = [(8, n, k) for _, n, k in SHAPES]
    weights = traffic(rows) + turned(rows)
    fused = (FORWARD + BACKWARD) / 4 + sum(core(cp=4))
    assert seconds(tiny(), cp=4) == pytest.approx((weights + fused) / 1e9)
    pairs = [(8, 32, 16), (8, 16, 32)]
    w = 2 * 32 * 8
    unfused = weights + 2 * (traffic(pairs) + turned(pairs)) + (FORWARD + BACKWARD) / 4 + (41 + 45) * w
    assert seconds(tiny("unfused"), cp=4) == pytest.approx(unfused / 1e9)


def test_values_may_be_shorter_than_keys() -> None:
    # n_v/t = 2·8 = 16, n_kv = 1·(16 + 8) = 24.
    shapes = [(32, 32 + 24, 64), (32, 64, 16), *SHAPES[2:]]
    expected = 3 * traffic(shapes) + FORWARD + BACKWARD + CORE
    assert seconds(tiny(value_dim=8)) == pytest.approx(expected / 1e9)


@pytest.mark.parametrize(
    ("model", "mean", "most"),
    [
        ({"causal": False}, 4096, 4096),
        ({}, 2112, 4096),
        ({"window": 256, "window_layers": 2}, 384, 384),
        ({"window": 2048, "window_layers": 2}, 2112, 2176),
        ({"window": 256, "window_layers": 2, "causal": False}, 384, 384),
    ],
)
def test_blocks_go_through_whole_blocks_of_keys(model: dict[str, Any], mean: float, most: float) -> None:
    def longer(other: dict[str, Any]) -> float:
        return seconds(tiny(seq=4096, **model | other)) - seconds(tiny(seq=4096))

    def flop(mean: float, most: float) -> float:
        lost = ((2 * 64 + 80, 160), (5 * 64 + 260, 300))
        return sum((2 * 4096 * (mean + start) + 640 * (most + start)) * 2 * x * 256 / 336 for x, start in lost)

    assert longer({}) == pytest.approx((flop(mean, most) - flop(2112, 4096)) / 1e12, rel=1e-6, abs=1e-12)
    if "window" in model:
        half = {"window_layers": 1, "causal": True}
        some = (flop(min(2112, mean), most) - flop(2112, 4096)) / 2e12
        assert longer(half) == pytest.approx(some, rel=1e-6, abs=1e-12)


def test_a_gated_layer_has_a_product_twice_as_wide() -> None:
    plain, gated = (seconds(tiny(gated=flag), tp=1) for flag in (False, True))
    wider = 3 * 2 * (64 * 128 + 32 * 128) + (2 + 4) * 32 * 128
    assert gated - plain == pytest.approx(wider / 1e9, rel=1e-9)


def test_logits_round_the_vocabulary_up() -> None:
    # ceil(101 / 2) = 51 columns on each GPU.
    expected = 3 * traffic([(32, 51, 64)]) + 60 * 32 * 51
    assert logits_s(tiny(), MACHINE, split(tp=2)) == pytest.approx(expected / 1e9, rel=1e-12)
    half = traffic([(16, 51, 64)]) + turned([(16, 51, 64)]) + 24 * 16 * 51
    lean = tiny(software={"loss_bytes": 24})
    assert logits_s(lean, MACHINE, split(tp=2, cp=2)) == pytest.approx(half / 1e9, rel=1e-12)


def test_narrow_products_read_one_byte_and_logits_and_scores_stay_wide() -> None:
    narrow = MACHINE._replace(layers=SLOW._replace(input_bytes=1))
    expected = traffic(SHAPES, 1) + turned(SHAPES, 1) + FORWARD + BACKWARD + CORE
    assert layer_s(tiny(), narrow, split(tp=2)) == pytest.approx(expected / 1e9)
    assert logits_s(tiny(), narrow, split(tp=2)) == logits_s(tiny(), MACHINE, split(tp=2))
    saved = seconds(tiny("unfused")) - layer_s(tiny("unfused"), narrow, split(tp=2))
    assert saved == pytest.approx((traffic(SHAPES) + turned(SHAPES) - traffic(SHAPES, 1) - turned(SHAPES, 1)) / 1e9)
