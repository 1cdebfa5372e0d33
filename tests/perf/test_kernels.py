"""The laws of kernels meet those that were measured, and rest on nothing else."""

import numpy as np
import pytest

from coopt.instance.catalog import find
from coopt.perf import kernels as laws
from docs.kernel_errors import Kernel, KernelFits, attention_s, errors, experts_s, fits, of, product_s, read_kernels

KERNELS = read_kernels()
CUDNN = of(KERNELS, "attention", "cudnn")


@pytest.fixture(scope="module")
def suited() -> KernelFits:
    """The shares that suit kernels best."""
    return fits(KERNELS)


def mean(kernels: list[Kernel], share: float) -> float:
    return float(np.abs(errors(kernels, lambda kernel: attention_s(kernel, share))).mean())


@pytest.mark.parametrize(("way", "size"), [("forward", 0.04), ("backward", 0.05)])
def test_attention_of_every_head_size_sequence_and_number_of_heads_is_met(suited, way, size) -> None:
    part = [kernel for kernel in CUDNN if kernel.way == way]
    assert len(part) == 66
    assert mean(part, suited.cudnn) < size
    # but for two heads or four of 2,048 tokens, which leave most multiprocessors without work
    busy = [kernel for kernel in part if kernel.shape["b"] * kernel.shape["heads"] > 4]
    assert np.abs(errors(busy, lambda kernel: attention_s(kernel, suited.cudnn))).max() < 0.12


@pytest.mark.parametrize(
    "constant", ["SOFTMAX_FORWARD", "SOFTMAX_BACKWARD", "START_FORWARD", "START_BACKWARD", "WIDE_BACKWARD"]
)
@pytest.mark.parametrize("factor", [0.7, 1.4])
def test_constants_of_attention_are_those_that_suit_kernels(suited, monkeypatch, constant, factor) -> None:
    before = mean(CUDNN, suited.cudnn)
    monkeypatch.setattr(laws, constant, factor * getattr(laws, constant))
    assert mean(CUDNN, suited.cudnn) > before


def test_the_catalog_has_the_shares_that_kernels_reach(suited: KernelFits) -> None:
    for name in ("h100-sxm", "h200"):
        gpu = find("gpu", name)
        assert gpu.efficiency.attention == pytest.approx(suited.cudnn, abs=0.01)
    software = find("software", "fsdp")
    assert software.attention == pytest.approx(suited.flash2, abs=0.01)


def test_products_and_experts_are_met(suited: KernelFits) -> None:
    for way, gemm, size in (("bf16", suited.gemm, 0.03), ("fp8", suited.gemm_fp8, 0.045)):
        assert np.abs(errors(of(KERNELS, "product", way=way), lambda k, x=gemm: product_s(k, x))).mean() < size
    for by in ("grouped", "cublas"):
        law = (suited.gemm, suited.hbm, suited.host_us)
        assert np.abs(errors(of(KERNELS, "experts", by), lambda k, x=law: experts_s(k, *x))).mean() < 0.1
