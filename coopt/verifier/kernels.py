"""Seconds of the kernels of one layer and of the logits, for one micro-batch."""

from __future__ import annotations

from typing import NamedTuple

from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.verifier.split import Shard, shard

TILES = ((256, 128, 1.0), (128, 256, 1.0), (128, 128, 0.95), (256, 64, 0.85), (64, 256, 0.85))


class Product(NamedTuple):
    """A matrix product (m, n, k), `batch` of them."""

    m: int
    n: int
    k: int
    batch: int = 1


def product_s(gpu: Gpu, shape: Product) -> float:
    """Seconds of a matrix product: the longer of the tile law and the traffic law."""
    m, n, k, batch = shape
    share = gpu.efficiency
    cycles = min(
        _up(_up(m, tm) * _up(n, tn) * batch, gpu.sm_count) * gpu.sm_count * (2 * tm * tn / x) for tm, tn, x in TILES
    )
    tile_s = cycles * (k + share.gemm_k0) / (share.gemm * gpu.bf16_tflop_s * 1e12)
    return max(tile_s, moved_s(gpu, 2 * batch * (m * k + k * n + m * n)))


def moved_s(gpu: Gpu, size_bytes: float) -> float:
    """Seconds to move bytes through HBM."""
    return size_bytes / (gpu.efficiency.hbm * gpu.hbm_gbyte_s * 1e9)


def gradients_s(gpu: Gpu, shape: Product) -> float:
    """Seconds of the data gradient and the weight gradient of a product."""
    m, n, k, batch = shape
    return product_s(gpu, Product(m, k, n, batch)) + product_s(gpu, Product(k, n, m, batch))


def layer_s(workload: Workload, gpu: Gpu, tp: int, micro_batch: int, recompute: str, sequence_parallel: bool) -> float:
    """Seconds of one layer and micro-batch: forward, backward and what is recomputed."""
    model, flash = workload.model, workload.options.attention == "flash"
    part = shard(model, tp)
    rows = micro_batch * model.seq
    width = (2 if model.gated else 1) * part.ffn
    dense = (
        Product(rows, part.queries + part.keys_values, model.hidden),
        Product(rows, model.hidden, part.queries),
        Product(rows, width, model.hidden),
        Product(rows, model.hidden, part.ffn),
    )
    scores = Product(model.seq, model.seq, model.head_dim, micro_batch * part.heads)
    context = Product(model.seq, model.head_dim, model.seq, micro_batch * part.heads)
    kept = 0.5 if flash and model.causal else 1.0
    core_s = kept * (product_s(gpu, scores) + product_s(gpu, context))
    core_back_s = kept * (gradients_s(gpu, scores) + gradients_s(gpu, context))
    if flash:
        core_back_s += kept * product_s(gpu, scores)
    small = _small_bytes(workload, part, tp, micro_batch, sequence_parallel)
    forward_s = sum(product_s(gpu, shape) for shape in dense) + core_s + moved_s(gpu, small.forward)
    backward_s = sum(gradients_s(gpu, shape) for shape in dense) + core_back_s + moved_s(gpu, small.backward)
    again_s = 0.0
    if recompute == "full":
        again_s = forward_s
    elif recompute == "selective" and not flash:
        again_s = core_s + moved_s(gpu, small.softmax)
    return forward_s + backward_s + again_s


class _Bytes(NamedTuple):
    """Bytes the memory-bound kernels move; `softmax` is what selective recomputation repeats."""

    forward: float
    backward: float
    softmax: float


def _small_bytes(workload: Workload, part: Shard, tp: int, micro_batch: int, sequence_parallel: bool) -> _Bytes:
    model = workload.model
    rows = micro_batch * model.seq
    u = rows * model.hidden
    z = tp if sequence_parallel else 1
    w = 0.0 if workload.options.attention == "flash" else micro_batch * model.heads * model.seq**2 / tp
    return _Bytes(
        forward=22 * u / z + 4 * rows * part.queries + (6 if model.gated else 4) * rows * part.ffn + 9 * w,
        backward=46 * u / z + 30 * rows * part.queries + (10 if model.gated else 6) * rows * part.ffn + 11 * w,
        softmax=9 * w,
    )


def logits_s(workload: Workload, gpu: Gpu, tp: int, micro_batch: int) -> float:
    """Seconds of the logits of one micro-batch on the last stage: product, gradients, softmax."""
    model = workload.model
    rows, columns = micro_batch * model.seq, shard(model, tp).vocab
    shape = Product(rows, columns, model.hidden)
    return product_s(gpu, shape) + gradients_s(gpu, shape) + moved_s(gpu, 60 * rows * columns)


def _up(a: int, b: int) -> int:
    """a / b rounded up."""
    return -(-a // b)
