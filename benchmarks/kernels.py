"""Measure on one GPU what kernels of a layer reach: attention by head size and sequence, products,
experts, streams.

Needs PyTorch and a GPU, and nothing of coopt: `python benchmarks/kernels.py FILE.csv`. Attention
runs through cuDNN, which Transformer Engine and so Megatron-Core call, and through PyTorch's
FlashAttention-2, which FSDP recipes call. Every figure is the median of repeated launches, queued
without a pause of the host, on random numbers: zeros draw less power and run faster.
`docs/model.md` says what rests on `benchmarks/kernels-h200.csv`.
"""

from __future__ import annotations

import csv
import statistics
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash2": SDPBackend.FLASH_ATTENTION}
HEADS = (
    (64, 64),
    (80, 80),
    (96, 96),
    (128, 128),
    (192, 128),
    (256, 256),
)  # of queries and keys, of values
SEQUENCES = (512, 1024, 2048, 4096, 8192, 16384, 32768)
TOKENS = 16384
BUSY_S, ROUNDS = 0.04, 5
Row = tuple[str, str, str, str, str, str, float, float]
COLUMNS = (
    "gpu",
    "torch",
    "kernel",
    "by",
    "pass",
    "shape",
    "seconds",
    "rate",
)  # rate: FLOP/s, or bytes/s of streams


def seconds_of(work: Callable[[], object]) -> float:
    """Median seconds of one launch among many queued ones."""
    work()
    torch.cuda.synchronize()
    once = _elapsed_s(work, 3) / 3
    launches = max(3, int(BUSY_S / max(once, 1e-6)))
    return statistics.median(_elapsed_s(work, launches) / launches for _ in range(ROUNDS))


def _elapsed_s(work: Callable[[], object], launches: int) -> float:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(launches):
        work()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / 1e3


def random(*shape: int) -> torch.Tensor:
    """Normal numbers in bf16 on the GPU."""
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def attention(
    by: str, heads: int, seq: int, sizes: tuple[int, int], batch: int, *, causal: bool
) -> Iterator[tuple]:
    """Forward and backward of one attention core; FLOPs of a causal one are half of the full
    square's.
    """
    q, k = (random(batch, heads, seq, sizes[0]).requires_grad_() for _ in range(2))
    v = random(batch, heads, seq, sizes[1]).requires_grad_()
    flop = 2.0 * batch * heads * seq * seq * sum(sizes) * (0.5 if causal else 1.0)
    with sdpa_kernel(BACKENDS[by]):

        def forward() -> torch.Tensor:
            return scaled_dot_product_attention(q, k, v, is_causal=causal)

        out = forward()
        grad = torch.randn_like(out)
        shape = f"b={batch} heads={heads} s={seq} qk={sizes[0]} v={sizes[1]} causal={int(causal)}"
        with torch.no_grad():
            seconds = seconds_of(forward)
        yield "attention", by, "forward", shape, seconds, flop / seconds
        seconds = seconds_of(lambda: torch.autograd.grad(out, (q, k, v), grad, retain_graph=True))
        yield "attention", by, "backward", shape, seconds, 2.5 * flop / seconds


def attentions() -> Iterator[tuple]:
    """Every head size at every sequence; few heads; the full square."""
    for sizes in HEADS:
        for seq in SEQUENCES:
            for by in BACKENDS:
                yield from refused(
                    attention, by, 16, seq, sizes, max(1, TOKENS // seq), causal=True
                )
    for heads in (1, 2, 4, 8, 32, 64):
        for seq in (2048, 4096, 8192):
            yield from refused(attention, "cudnn", heads, seq, (128, 128), 1, causal=True)
    for seq in SEQUENCES[1:]:
        yield from refused(
            attention, "cudnn", 16, seq, (128, 128), max(1, TOKENS // seq), causal=False
        )


def refused(
    measure: Callable[..., Iterator[tuple]], *args: object, **options: object
) -> Iterator[tuple]:
    """What is measured, or a line on stderr where a library has no kernel for the shape."""
    try:
        yield from measure(*args, **options)
    except (RuntimeError, AttributeError) as error:
        print(measure.__name__, *args, str(error).splitlines()[0], file=sys.stderr)
    torch.cuda.empty_cache()


def dense(m: int, n: int, k: int) -> Iterator[tuple]:
    """A product of 16-bit matrices."""
    a, b = random(m, k), random(k, n)
    seconds = seconds_of(lambda: a @ b)
    yield "product", "cublas", "bf16", f"m={m} n={n} k={k}", seconds, 2.0 * m * n * k / seconds


def eight_bit(m: int, n: int, k: int) -> Iterator[tuple]:
    """A product of 8-bit matrices with one scale a matrix."""
    a, b = random(m, k).to(torch.float8_e4m3fn), random(n, k).to(torch.float8_e4m3fn).t()
    one = torch.ones((), device="cuda")
    seconds = seconds_of(lambda: torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16))
    yield "product", "cublas", "fp8", f"m={m} n={n} k={k}", seconds, 2.0 * m * n * k / seconds


def experts(count: int, rows: int, n: int, k: int) -> Iterator[tuple]:
    """Products of `count` experts with `rows` tokens each in one grouped kernel, and one by one."""
    a, b = random(count * rows, k), random(count, k, n)
    ends = torch.arange(1, count + 1, device="cuda", dtype=torch.int32) * rows
    flop, shape = 2.0 * count * rows * n * k, f"experts={count} rows={rows} n={n} k={k}"
    parts = a.view(count, rows, k)

    def apart() -> None:
        for i in range(count):
            torch.mm(parts[i], b[i])

    seconds = seconds_of(apart)
    yield "experts", "cublas", "one by one", shape, seconds, flop / seconds
    seconds = seconds_of(lambda: torch._grouped_mm(a, b, offs=ends))
    yield "experts", "grouped", "bf16", shape, seconds, flop / seconds


def streams(elements: int) -> Iterator[tuple]:
    """Kernels that move bytes: a copy, an RMS norm, a SwiGLU by PyTorch's compiler."""
    x, y = random(elements // 8192, 8192), random(elements // 8192, 8192)
    weight = random(8192)
    norm = torch.compile(lambda x: torch.nn.functional.rms_norm(x, (8192,), weight))
    gate = torch.compile(lambda x, y: torch.nn.functional.silu(x) * y)
    for name, moved, work in (
        ("copy", 4, lambda: y.copy_(x)),
        ("norm", 4, lambda: norm(x)),
        ("swiglu", 6, lambda: gate(x, y)),
    ):
        seconds = seconds_of(work)
        yield "stream", name, "forward", f"elements={elements}", seconds, moved * elements / seconds


def measured() -> Iterator[tuple]:
    """All rows."""
    yield from attentions()
    for m in (1024, 2048, 4096, 8192, 16384):
        for n, k in (
            (4096, 4096),
            (8192, 8192),
            (2048, 8192),
            (8192, 2048),
            (3584, 7168),
            (28672, 8192),
        ):
            yield from refused(dense, m, n, k)
            yield from refused(eight_bit, m, n, k)
    for count in (8, 32):
        for rows in (64, 128, 256, 512, 1024, 2048, 4096):
            for n, k in ((4096, 7168), (7168, 2048), (1536, 4096)):
                yield from refused(experts, count, rows, n, k)
    for elements in (2**22, 2**25, 2**28):
        yield from refused(streams, elements)


def main(path: Path) -> None:
    """Measure and write."""
    torch.manual_seed(0)
    head = (torch.cuda.get_device_name(), torch.__version__)
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(COLUMNS)
        for kernel, by, way, shape, seconds, rate in measured():
            lines.writerow((*head, kernel, by, way, shape, f"{seconds:.4g}", f"{rate:.4g}"))
            file.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
