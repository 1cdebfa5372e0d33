"""How far the laws of kernels are off on measured kernels (benchmarks/kernels-h200.csv), for
docs/model.md.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from coopt.instance.catalog import find
from coopt.instance.hardware import Gpu, Precision
from coopt.instance.transformer import Software
from coopt.perf.kernels import BLOCK, Blocks, Device, fused_attention
from coopt.perf.mapping import Floats

MEASURED = Path(__file__).parent.parent / "benchmarks" / "kernels-h200.csv"
SHARES = np.arange(0.2, 0.9, 0.005)
HOST_US = np.arange(10.0, 20.0, 0.5)
MANY_ROWS = 1024  # of an expert: as training has them
LONG = 2**28  # elements that streams move where neither caches nor the host count


class Kernel(NamedTuple):
    """A measured kernel; `by` is the library, `way` the pass or the precision, `shape` its sizes by
    name.
    """

    kind: str
    by: str
    way: str
    shape: dict[str, int]
    seconds: float
    rate: float


def read_kernels() -> list[Kernel]:
    """All rows on file."""
    with MEASURED.open(encoding="utf-8", newline="") as stream:
        return [_kernel(row) for row in csv.DictReader(stream)]


def _kernel(row: dict[str, str]) -> Kernel:
    sizes = (part.split("=") for part in row["shape"].split())
    shape = {name: int(size) for name, size in sizes}
    return Kernel(
        row["kernel"], row["by"], row["pass"], shape, float(row["seconds"]), float(row["rate"])
    )


@cache
def device(precision: Precision = "bf16", **shares: float) -> Device:
    """The H200 with other shares of its data sheet and no time between kernels."""
    gpu = find("gpu", "h200")
    assert isinstance(gpu, Gpu)
    changed = gpu.efficiency.model_copy(update={"fp8": None, "kernel_s": 0.0} | shares)
    return Device(gpu.model_copy(update={"efficiency": changed}), precision, Software(name="plain"))


def attention_s(kernel: Kernel, attention: float) -> float:
    """Seconds of a fused attention core by the law."""
    shape = kernel.shape
    s = shape["s"]
    blocks = Blocks(shape["b"] * shape["heads"], s, (s + BLOCK) / 2 if shape["causal"] else s, s, 1)
    core = fused_attention(device(attention=attention), (shape["qk"], shape["v"]), blocks)
    return float(core.forward if kernel.way == "forward" else core.backward)


def product_s(kernel: Kernel, gemm: float) -> float:
    """Seconds of a matrix product by the law."""
    own = device("fp8" if kernel.way == "fp8" else "bf16", gemm=gemm)
    return float(own.product_s(kernel.shape["m"], kernel.shape["n"], kernel.shape["k"]))


def experts_s(kernel: Kernel, gemm: float, hbm: float, host_us: float) -> float:
    """Seconds of the products of experts: one batch, one by one no quicker than the host."""
    shape = kernel.shape
    own = device(gemm=gemm, hbm=hbm)
    batch = float(own.product_s(shape["rows"], shape["n"], shape["k"], shape["experts"]))
    return batch if kernel.by == "grouped" else max(batch, 1e-6 * host_us * shape["experts"])


def errors(kernels: Sequence[Kernel], law: Callable[[Kernel], float]) -> Floats:
    """log(predicted/measured) of each."""
    return np.array([np.log(law(kernel) / kernel.seconds) for kernel in kernels])


def best(kernels: Sequence[Kernel], law: Callable[[Kernel, float], float], values: Floats) -> float:
    """The value with the least mean size of the error."""
    return float(
        min(
            values,
            key=lambda value: np.abs(errors(kernels, lambda kernel: law(kernel, value))).mean(),
        )
    )


class KernelFits(NamedTuple):
    """The value of each share that suits its kernels best."""

    cudnn: float
    flash2: float
    gemm: float
    gemm_fp8: float
    hbm: float
    host_us: float


def fits(kernels: Sequence[Kernel]) -> KernelFits:
    """Fit one number to each kind of kernels, FlashAttention-2 by heads of 128 alone."""
    gemm = best(of(kernels, "product", way="bf16"), product_s, SHARES)
    hbm = best(
        of(kernels, "experts", "grouped"), lambda kernel, x: experts_s(kernel, gemm, x, 0.0), SHARES
    )
    apart = of(kernels, "experts", "cublas")
    heads = [kernel for kernel in of(kernels, "attention", "flash2") if kernel.shape["qk"] == 128]
    return KernelFits(
        cudnn=best(of(kernels, "attention", "cudnn"), attention_s, SHARES),
        flash2=best(heads, attention_s, SHARES),
        gemm=gemm,
        gemm_fp8=best(of(kernels, "product", way="fp8"), product_s, SHARES),
        hbm=hbm,
        host_us=best(apart, lambda kernel, x: experts_s(kernel, gemm, hbm, x), HOST_US),
    )


def of(kernels: Sequence[Kernel], kind: str, by: str = "", way: str = "") -> list[Kernel]:
    """Kernels of a kind, of one library or pass where one is named."""
    return [k for k in kernels if k.kind == kind and by in ("", k.by) and way in ("", k.way)]


def table_lines(kernels: Sequence[Kernel], found: KernelFits) -> Iterator[tuple[str, ...]]:
    """Kind, rows, mean and largest error."""
    for by, name, share in (
        ("cudnn", "cuDNN", found.cudnn),
        ("flash2", "FlashAttention-2", found.flash2),
    ):
        for way in ("forward", "backward"):
            part = [
                kernel
                for kernel in of(kernels, "attention", by, way)
                if by == "cudnn" or is_common(kernel)
            ]
            yield _line(
                f"attention of {name}, {way}",
                errors(part, lambda kernel, x=share: attention_s(kernel, x)),
            )
    for way, name, gemm in (("bf16", "16-bit", found.gemm), ("fp8", "8-bit", found.gemm_fp8)):
        part = of(kernels, "product", way=way)
        yield _line(f"{name} products", errors(part, lambda kernel, x=gemm: product_s(kernel, x)))
    for by, name in (("grouped", "in one kernel"), ("cublas", "one by one")):
        law = (found.gemm, found.hbm, found.host_us)
        off = errors(of(kernels, "experts", by), lambda kernel, x=law: experts_s(kernel, *x))
        many = np.array(
            [kernel.shape["rows"] >= MANY_ROWS for kernel in of(kernels, "experts", by)]
        )
        yield _line(f"products of experts, {name}, {MANY_ROWS:,} rows each and more", off[many])
        yield _line(f"products of experts, {name}, fewer rows", off[~many])


def is_common(kernel: Kernel) -> bool:
    """Whether heads have a size that FlashAttention-2 shares the law for."""
    return kernel.shape["qk"] in (64, 128)


def _line(name: str, off: Floats) -> tuple[str, ...]:
    sizes = np.abs(off)
    return name, str(len(off)), f"{100 * sizes.mean():.1f}%", f"{100 * sizes.max():.0f}%"


def constants(kernels: Sequence[Kernel], found: KernelFits) -> dict[str, str]:
    """Figures of the page that are no table."""
    flash2 = of(kernels, "attention", "flash2")
    odd = errors(
        [kernel for kernel in flash2 if not is_common(kernel)],
        lambda kernel: attention_s(kernel, found.flash2),
    )
    streams = [
        k.rate / (1e9 * device().gpu.hbm_gbyte_s)
        for k in of(kernels, "stream")
        if k.shape["elements"] == LONG
    ]
    return {
        "FLASH2_SHARE": f"{found.flash2:.3f}",
        "FLASH2_LARGEST": f"{100 * np.abs(odd).max():.0f}%",
        "KERNEL_GEMM": f"{found.gemm:.3g}",
        "KERNEL_GEMM_FP8": f"{found.gemm_fp8:.3g}",
        "KERNEL_HBM": f"{found.hbm:.2f}",
        "KERNEL_HOST_US": f"{found.host_us:g}",
        "KERNEL_STREAM": f"{100 * min(streams):.0f} to {100 * max(streams):.0f}%",
    }
