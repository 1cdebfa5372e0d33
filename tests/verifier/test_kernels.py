from __future__ import annotations

import pytest

from coopt.instance.hardware import Gpu
from coopt.verifier.training.kernels import (
    FUSED_BACKWARD,
    FUSED_FORWARD,
    Engine,
    FusedWork,
    Machine,
    MatrixProduct,
    fused_s,
    gradients_s,
    machine_of,
    moved_s,
    product_s,
)
from tests.verifier.cases import EFFICIENCY, GPU, SOFTWARE, workload

FAST_MEMORY = Engine(flop_s=1e12, k0=0, input_bytes=2, byte_s=1e18, kernel_s=0, processors=10)
SLOW_MEMORY = Engine(flop_s=1e18, k0=0, input_bytes=2, byte_s=1e9, kernel_s=0, processors=10)


def test_a_product_of_one_tile_fills_one_wave() -> None:
    # 256 x 128 fits one tile of 256 x 128, two of 128 x 128, two of 256 x 64: all in one wave of ten processors.
    one_wave = 10 * 2 * 128 * 128 / 0.95 * 1000 / 1e12
    assert product_s(FAST_MEMORY, MatrixProduct(256, 128, 1000)) == pytest.approx(
        min(one_wave, 10 * 2 * 256 * 64 / 0.85 * 1000 / 1e12, 10 * 2 * 256 * 128 * 1000 / 1e12), rel=1e-12
    )


def test_a_wave_holds_as_many_tiles_as_processors() -> None:
    # 1,280 rows and 256 columns are 10 tiles of 256 x 128: one wave; one row more makes 12: two waves.
    shape, larger = MatrixProduct(1280, 256, 500), MatrixProduct(1281, 256, 500)
    wave = 10 * 2 * 256 * 128 * 500 / 1e12
    assert product_s(FAST_MEMORY, shape) == pytest.approx(wave, rel=1e-12)
    assert product_s(FAST_MEMORY, larger) > 1.2 * wave


def test_rows_that_are_not_whole_fill_the_tile_they_begin() -> None:
    assert product_s(FAST_MEMORY, MatrixProduct(1279.5, 256, 500)) == product_s(
        FAST_MEMORY, MatrixProduct(1280, 256, 500)
    )


def test_start_up_depth_adds_to_the_depth() -> None:
    half = FAST_MEMORY._replace(k0=100, flop_s=0.5e12)
    full, short = (
        product_s(half, MatrixProduct(2560, 1280, 900)),
        product_s(FAST_MEMORY, MatrixProduct(2560, 1280, 1000)),
    )
    assert full == pytest.approx(2 * short, rel=1e-12)


def test_a_flat_product_takes_as_long_as_its_traffic() -> None:
    shape = MatrixProduct(1, 1000, 1000, 3)
    assert product_s(SLOW_MEMORY, shape) == pytest.approx(2 * 3 * (1000 + 1000**2 + 1000) / 1e9)
    narrow = SLOW_MEMORY._replace(input_bytes=1)
    assert product_s(narrow, shape) == pytest.approx(3 * (1000 + 1000**2 + 2 * 1000) / 1e9)
    assert moved_s(SLOW_MEMORY, 5e9) == pytest.approx(5)


def test_every_product_waits_for_the_kernel_before_it() -> None:
    late, shape = FAST_MEMORY._replace(kernel_s=0.5), MatrixProduct(300, 200, 100)
    assert product_s(late, shape) == product_s(FAST_MEMORY, shape) + 0.5
    assert gradients_s(late, shape) == pytest.approx(gradients_s(FAST_MEMORY, shape) + 1)


def test_a_graph_leaves_a_microsecond_between_kernels() -> None:
    own = {"kernel_s": 4e-6, "fp8": {"gemm": 0.6, "hbm": 0.4, "kernel_s": 5e-7}}
    gpu = Gpu.model_validate(GPU | {"fp8_tflop_s": 600, "efficiency": EFFICIENCY | own})
    for graphs, precision, pause_s in ((False, "bf16", 4e-6), (True, "bf16", 1e-6), (True, "fp8", 5e-7)):
        asked = workload(options={"software": SOFTWARE | {"graphs": graphs}}, precision=precision)
        assert machine_of(asked, gpu).layers.kernel_s == pause_s


def test_software_may_give_the_time_between_kernels() -> None:
    gpu = Gpu.model_validate(GPU | {"efficiency": EFFICIENCY | {"kernel_s": 4e-6}})
    for given, graphs, pause_s in ((37e-6, False, 37e-6), (0.0, False, 0.0), (37e-6, True, 1e-6)):
        asked = workload(options={"software": SOFTWARE | {"kernel_s": given, "graphs": graphs}})
        assert machine_of(asked, gpu).layers.kernel_s == pause_s


def test_gradients_turn_the_product_around() -> None:
    shape = MatrixProduct(3000, 200, 1000)
    parts = product_s(FAST_MEMORY, MatrixProduct(3000, 1000, 200)) + product_s(
        FAST_MEMORY, MatrixProduct(1000, 200, 3000)
    )
    assert gradients_s(FAST_MEMORY, shape) == parts


def test_a_precision_brings_its_peak_its_shares_and_its_bytes() -> None:
    share = EFFICIENCY | {"kernel_s": 1e-6, "fp8": {"gemm": 0.7, "hbm": 0.75, "kernel_s": 2e-6}}
    gpu = Gpu.model_validate(GPU | {"fp8_tflop_s": 600, "efficiency": share})
    wide, narrow = (machine_of(workload(precision=name), gpu) for name in ("bf16", "fp8"))
    assert wide.layers == pytest.approx((0.8 * 300e12, 96, 2, 0.85 * 2e12, 1e-6, 100, 16))
    assert wide.wide == wide.layers
    assert narrow.layers == pytest.approx((0.7 * 600e12, 96, 1, 0.75 * 2e12, 2e-6, 100, 8))
    assert narrow.wide == pytest.approx((0.8 * 300e12, 96, 2, 0.75 * 2e12, 2e-6, 100, 16))
    assert narrow.scores == pytest.approx((0.8 * 300e12, 200, 2, 0.75 * 2e12, 2e-6, 100, 16))
    assert wide.attention_flop_s == narrow.attention_flop_s == pytest.approx(0.6 * 300e12)


def test_products_and_layers_may_keep_more_bits() -> None:
    share = EFFICIENCY | {"kernel_s": 1e-6, "fp8": {"gemm": 0.7, "hbm": 0.75, "kernel_s": 2e-6}}
    share |= {"fp4": {"gemm": 0.5, "hbm": 0.6, "kernel_s": 3e-6}}
    gpu = Gpu.model_validate(GPU | {"fp8_tflop_s": 600, "fp4_tflop_s": 1200, "efficiency": share})
    four, eight, sixteen = (
        machine_of(workload(precision=name, software={"wide_layers": 1}), gpu) for name in ("fp4", "fp8", "bf16")
    )
    around = (0.6 * 2e12, 3e-6, 100)
    assert four.engine(4) == pytest.approx((0.5 * 1200e12, 96, 1, *around, 4))
    assert four.engine(8) == pytest.approx((0.7 * 600e12, 96, 1, *around, 8))
    assert four.engine(16) == pytest.approx((0.8 * 300e12, 96, 2, *around, 16))
    assert [eight.engine(bits).bits for bits in (4, 8, 16)] == [8, 8, 16]
    assert [sixteen.engine(bits).bits for bits in (4, 8, 16)] == [16, 16, 16]
    assert four.in_16_bits == eight.in_16_bits == sixteen
    assert sixteen.in_16_bits is None


def test_a_precision_without_figures_of_its_own_takes_those_of_the_wider_one() -> None:
    peaks = GPU | {"fp8_tflop_s": 600, "fp4_tflop_s": 1200}
    assert machine_of(workload(precision="fp8"), Gpu.model_validate(peaks)).layers.flop_s == pytest.approx(480e12)
    share = EFFICIENCY | {"fp8": {"gemm": 0.7, "hbm": 0.75, "kernel_s": 2e-6}}
    gpu = Gpu.model_validate(peaks | {"efficiency": share})
    assert machine_of(workload(precision="fp4"), gpu).layers == pytest.approx((840e12, 96, 1, 1.5e12, 2e-6, 100, 4))


def test_software_may_bring_its_own_attention() -> None:
    slow = workload(software=SOFTWARE | {"attention": 0.35})
    assert machine_of(slow, Gpu.model_validate(GPU)).attention_flop_s == pytest.approx(0.35 * 300e12)


def fused(heads: float = 1000, keys: float = 1e9, head_dim: int = 128, backward: bool = False, **sizes: int) -> float:
    """Seconds of fused attention, on ten processors of which a forward pass reaches 1 TFLOP/s."""
    machine = Machine(FAST_MEMORY, FAST_MEMORY, FAST_MEMORY, attention_flop_s=1e12, host_byte_s=1e9)
    model = workload(model={"head_dim": head_dim, **sizes}).model
    kernel = FUSED_BACKWARD if backward else FUSED_FORWARD
    return fused_s(machine, kernel, model, FusedWork(heads, 1024, keys, keys))


def test_attention_of_long_sequences_and_many_heads_reaches_its_share_forward() -> None:
    flop = 2 * 1000 * 1024 * 1e9 * 256
    assert fused() == pytest.approx(flop / 1e12, rel=1e-3)
    assert fused(backward=True) == pytest.approx(2.5 * flop * (900 / 640) / (336 / 256) / 1e12, rel=1e-3)


def test_attention_costs_the_softmax_and_rounds_head_sizes_up() -> None:
    assert fused(head_dim=64) / fused() == pytest.approx((128 + 80) / (256 + 80))
    assert fused(head_dim=80) == fused()
    assert fused(head_dim=192, value_dim=128) / fused() == pytest.approx((320 + 80) / (256 + 80))
    wide = fused(head_dim=192, value_dim=128, backward=True) / fused(backward=True)
    assert wide == pytest.approx((3 * 192 + 2 * 128 + 3 * 1.3 * 64 + 260) / (640 + 260))


def test_attention_works_in_waves_of_which_the_last_is_half_full() -> None:
    # 8 blocks of 1,024 queries a head over ten processors; a block loses 160 keys.
    block_s = 128 * (4000 + 160) * 2 * 336 * 256 / 336 * 10 / 1e12
    for heads, waves in ((0.25, 1.0), (0.625, 1.0), (1.25, 1.5), (5, 4.5)):
        assert fused(heads, 4000) == pytest.approx(waves * block_s)
