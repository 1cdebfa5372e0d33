from __future__ import annotations

import pytest

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.verifier.kernels import Product, gradients_s, layer_s, logits_s, moved_s, product_s
from tests.verifier.cases import GPU, MODEL

PLAIN = {"gemm": 1, "gemm_k0": 0, "hbm": 1, "hb": 1, "rail": 1, "send": 1, "latency_s": 0}
FAST_MEMORY = Gpu.model_validate(GPU | {"hbm_gbyte_s": 1e9, "bf16_tflop_s": 1, "sm_count": 10, "efficiency": PLAIN})
SLOW_MEMORY = Gpu.model_validate(GPU | {"hbm_gbyte_s": 1, "efficiency": PLAIN})
TINY = MODEL | {
    "layers": 2,
    "hidden": 64,
    "heads": 4,
    "kv_heads": 2,
    "head_dim": 16,
    "ffn": 128,
    "vocab": 101,
    "seq": 32,
}


def workload(attention: str = "flash", **model: object) -> Workload:
    return Workload.model_validate(
        {
            "name": "w",
            "model": TINY | model,
            "global_batch": 8,
            "max_iteration_time_s": 1.0,
            "options": {"attention": attention},
        }
    )


def test_a_product_of_one_tile_fills_one_wave() -> None:
    # 256 x 128 fits one tile of 256 x 128, two of 128 x 128, two of 256 x 64: all in one wave of ten processors.
    one_wave = 10 * 2 * 128 * 128 / 0.95 * 1000 / 1e12
    assert product_s(FAST_MEMORY, Product(256, 128, 1000)) == pytest.approx(
        min(one_wave, 10 * 2 * 256 * 64 / 0.85 * 1000 / 1e12, 10 * 2 * 256 * 128 * 1000 / 1e12), rel=1e-12
    )


def test_a_wave_holds_as_many_tiles_as_processors() -> None:
    # 1,280 rows and 256 columns are 10 tiles of 256 x 128: one wave; one row more makes 12: two waves.
    shape, larger = Product(1280, 256, 500), Product(1281, 256, 500)
    wave = 10 * 2 * 256 * 128 * 500 / 1e12
    assert product_s(FAST_MEMORY, shape) == pytest.approx(wave, rel=1e-12)
    assert product_s(FAST_MEMORY, larger) > 1.2 * wave


def test_start_up_depth_adds_to_the_depth() -> None:
    share = PLAIN | {"gemm_k0": 100, "gemm": 0.5}
    gpu = Gpu.model_validate(FAST_MEMORY.model_dump() | {"efficiency": share})
    full, short = product_s(gpu, Product(2560, 1280, 900)), product_s(FAST_MEMORY, Product(2560, 1280, 1000))
    assert full == pytest.approx(2 * short, rel=1e-12)


def test_a_flat_product_takes_as_long_as_its_traffic() -> None:
    assert product_s(SLOW_MEMORY, Product(1, 1000, 1000, 3)) == pytest.approx(2 * 3 * (1000 + 1000**2 + 1000) / 1e9)
    assert moved_s(SLOW_MEMORY, 5e9) == pytest.approx(5)


def test_gradients_turn_the_product_around() -> None:
    shape = Product(3000, 200, 1000)
    parts = product_s(FAST_MEMORY, Product(3000, 1000, 200)) + product_s(FAST_MEMORY, Product(1000, 200, 3000))
    assert gradients_s(FAST_MEMORY, shape) == parts


def test_a_layer_bound_by_memory_moves_the_bytes_of_the_page() -> None:
    # Everything is traffic: b = 1, t = 2, b·s = 32 rows, n_q/t = 32, n_kv = 2·1·16 = 32, f/t = 64, 2 heads.
    dense = [(32, 64, 64), (32, 64, 32), (32, 64, 64), (32, 64, 64)]
    traffic = sum(2 * (m * k + k * n + m * n) for m, n, k in dense)
    core = sum(2 * 2 * (m * k + k * n + m * n) for m, n, k in [(32, 32, 16), (32, 16, 32)])
    scores = 2 * 2 * (32 * 16 + 16 * 32 + 32 * 32)
    u, wide, ffn = 32 * 64, 32 * 64 // 2, 32 * 64
    small = 22 * u + 4 * wide + 4 * ffn + 46 * u + 30 * wide + 6 * ffn
    flash = 3 * traffic + 0.5 * (3 * core + scores) + small
    assert layer_s(workload(), SLOW_MEMORY, 2, 1, "none", False) == pytest.approx(flash / 1e9, rel=1e-12)
    with_sp = layer_s(workload(), SLOW_MEMORY, 2, 1, "none", True)
    assert with_sp == pytest.approx((flash - 68 * u / 2) / 1e9, rel=1e-12)
    w = 4 * 32**2 / 2
    unfused = 3 * traffic + 3 * core + small + 20 * w
    assert layer_s(workload("unfused"), SLOW_MEMORY, 2, 1, "none", False) == pytest.approx(unfused / 1e9, rel=1e-12)
    again = unfused + core + 9 * w
    assert layer_s(workload("unfused"), SLOW_MEMORY, 2, 1, "selective", False) == pytest.approx(again / 1e9, rel=1e-12)
    forward = traffic + core + 22 * u + 4 * wide + 4 * ffn + 9 * w
    full = layer_s(workload("unfused"), SLOW_MEMORY, 2, 1, "full", False)
    assert full == pytest.approx((unfused + forward) / 1e9, rel=1e-12)


def test_selective_recomputation_repeats_nothing_with_flash_attention() -> None:
    none, selective = (layer_s(workload(), SLOW_MEMORY, 2, 1, kind, False) for kind in ("none", "selective"))
    assert none == selective


def test_attention_that_is_not_causal_does_all_the_score_work() -> None:
    causal, whole = (layer_s(workload(causal=flag), SLOW_MEMORY, 4, 2, "none", False) for flag in (True, False))
    core = sum(2 * 2 * (m * k + k * n + m * n) for m, n, k in [(32, 32, 16), (32, 16, 32)])
    scores = 2 * 2 * (32 * 16 + 16 * 32 + 32 * 32)
    assert whole - causal == pytest.approx(0.5 * (3 * core + scores) / 1e9, rel=1e-9)


def test_a_gated_layer_has_a_product_twice_as_wide() -> None:
    plain, gated = (layer_s(workload(gated=flag), SLOW_MEMORY, 1, 1, "none", False) for flag in (False, True))
    wider = 3 * 2 * (64 * 128 + 32 * 128) + (2 + 4) * 32 * 128
    assert gated - plain == pytest.approx(wider / 1e9, rel=1e-9)


def test_logits_round_the_vocabulary_up() -> None:
    # ceil(101 / 2) = 51 columns on each GPU.
    traffic = 3 * 2 * (32 * 64 + 64 * 51 + 32 * 51) + 60 * 32 * 51
    assert logits_s(workload(), SLOW_MEMORY, 2, 1) == pytest.approx(traffic / 1e9, rel=1e-12)
