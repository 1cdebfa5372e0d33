"""Seconds of single kernels on a GPU: matrix products, fused attention, and what moves bytes;
products of a layer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from coopt.instance.hardware import Gpu
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload

# rows and columns of the tiles that a library chooses among, and the share x_t of the law that they
# reach
TILES = ((256, 128, 1.0), (128, 256, 1.0), (128, 128, 0.95), (256, 64, 0.85), (64, 256, 0.85))
SCORES_K0 = 200
BITS = {"fp4": 4, "fp8": 8, "bf16": 16, "fp16": 16}
GRAPH_PAUSE_S = 1e-6
FUSED_BLOCK, FUSED_STEP, FUSED_REFERENCE = 128, 64, 128


class MatrixProduct(NamedTuple):
    """A matrix product (m, n, k), `batch` of them; an expert's rows need not be whole, nor a
    sequence's chunks.
    """

    m: float
    n: float
    k: float
    batch: float = 1


class Engine(NamedTuple):
    """What a GPU reaches on kernels of one kind."""

    flop_s: float
    """eg·peak"""
    k0: float
    input_bytes: int
    """w_i"""
    byte_s: float
    """em·HBM"""
    kernel_s: float
    """δ"""
    processors: int
    bits: int = 16
    """of a product's inputs"""


class Machine(NamedTuple):
    """A GPU as a workload uses it."""

    layers: Engine
    """products in the workload's precision"""
    wide: Engine
    """products kept in 16 bits: router, logits"""
    scores: Engine
    """the two products of unfused attention"""
    attention_flop_s: float
    """ea·peak16, at heads of 128 and long sequences"""
    softmax: float
    """a softmax's time in columns, over Hopper's"""
    host_byte_s: float
    """to the host's memory or back"""
    eight: Engine | None = None
    """products in 8 bits where those of the workload have fewer"""
    in_16_bits: Machine | None = None
    """the GPU as layers use it that stay in 16 bits, where some do and others do not"""

    def engine(self, bits: int) -> Engine:
        """Products of a layer that have so many bits at least."""
        if bits <= self.layers.bits:
            return self.layers
        return self.eight if bits == 8 and self.eight else self.wide


def graphed(workload: Workload, machine: Machine, *modules: str) -> Machine:
    """The GPU for kernels that a scoped CUDA graph holds if it has one of these modules."""
    if not {*modules} & {*workload.options.software.graph_modules}:
        return machine
    engines: dict[str, Any] = {
        name: part._replace(kernel_s=min(part.kernel_s, GRAPH_PAUSE_S))
        for name, part in machine._asdict().items()
        if isinstance(part, Engine)
    }
    return machine._replace(**engines)


def machine_of(workload: Workload, gpu: Gpu) -> Machine:
    """What a GPU reaches on a workload."""
    efficiency, share, software = (
        gpu.reached(workload.precision),
        gpu.efficiency,
        workload.options.software,
    )
    is_16_bit = workload.precision in ("bf16", "fp16")
    gap_s = efficiency.kernel_s if software.kernel_s is None else software.kernel_s
    layers = Engine(
        flop_s=efficiency.gemm * gpu.peak_flop_s(workload.precision),
        k0=share.gemm_k0,
        input_bytes=2 if is_16_bit else 1,
        byte_s=efficiency.hbm * gpu.hbm_gbyte_s * 1e9,
        # one CUDA graph holds the whole iteration, so that the host starts no kernels
        kernel_s=min(gap_s, GRAPH_PAUSE_S) if software.graphs == "full" else gap_s,
        processors=gpu.sm_count,
        bits=BITS[workload.precision],
    )
    peak16 = gpu.bf16_tflop_s * 1e12
    wide = layers._replace(flop_s=share.gemm * peak16, input_bytes=2, bits=16)
    fused = share.attention if software.attention is None else software.attention
    host_byte_s = (gpu.host_gbyte_s or math.inf) * 1e9
    machine = Machine(
        layers, wide, wide._replace(k0=SCORES_K0), fused * peak16, share.softmax, host_byte_s
    )
    if is_16_bit:
        return machine
    # below 8 bits recipes keep some products in 8
    if layers.bits < 8:
        machine = machine._replace(
            eight=layers._replace(flop_s=gpu.reached("fp8").gemm * gpu.peak_flop_s("fp8"), bits=8)
        )
    if not software.wide_layers:
        return machine
    return machine._replace(
        in_16_bits=machine_of(workload.model_copy(update={"precision": "bf16"}), gpu)
    )


def predicting(workload: Workload) -> Workload:
    """The workload of which the mean layer is one that predicts a further token."""
    predicting_model, software, changes = (
        workload.model.prediction,
        workload.options.software,
        dict[str, object](),
    )
    if software.prediction_bits > BITS[workload.precision]:
        changes["precision"] = {8: "fp8", 16: "bf16"}[software.prediction_bits]
    if predicting_model is not workload.model:
        # this one layer is not among those that stay wide
        narrow = software.model_copy(update={"wide_layers": 0})
        changes |= {
            "model": predicting_model,
            "options": workload.options.model_copy(update={"software": narrow}),
        }
    return workload.model_copy(update=changes) if changes else workload


def layers_in_16_bits(workload: Workload) -> float:
    """Share of the layers that stay in 16 bits where others have fewer."""
    if workload.precision in ("bf16", "fp16"):
        return 0.0
    return min(workload.options.software.wide_layers, workload.model.layers) / workload.model.layers


@lru_cache(maxsize=1 << 16)
def product_s(engine: Engine, shape: MatrixProduct) -> float:
    """Seconds of a matrix product: the longer of the tile law and the traffic law, and the time
    between kernels.
    """
    m, n, k, batch = shape
    sm = engine.processors
    # tiles go to the processors in waves, of which the last takes as long as a full one
    cycles = min(
        _up(_up(m, tm) * _up(n, tn) * batch, sm) * sm * (2 * tm * tn / x) for tm, tn, x in TILES
    )
    tile_s = cycles * (k + engine.k0) / engine.flop_s
    if engine.input_bytes == 2:
        tile_s = min(tile_s, *(_split_s(engine, shape, tile) for tile in TILES))
    # inputs in the bytes of the engine, results in 16 bits
    moved_bytes = batch * (engine.input_bytes * (m * k + k * n) + 2 * m * n)
    return max(tile_s, moved_s(engine, moved_bytes)) + engine.kernel_s


def _split_s(engine: Engine, shape: MatrixProduct, tile: tuple[int, int, float]) -> float:
    """Seconds of a product whose depth several processors share for each tile, as many as would
    have none; their parts are sums in 32 bits, written and read once more.
    """
    m, n, k, batch = shape
    rows, columns, share = tile
    tiles = _up(m, rows) * _up(n, columns) * batch
    sharers = min(engine.processors // tiles, 8)
    if sharers < 2:
        return math.inf
    cycles = _up(tiles * sharers, engine.processors) * engine.processors
    depth_s = cycles * (2 * rows * columns / share) * (k / sharers + engine.k0) / engine.flop_s
    return depth_s + sharers * moved_s(engine, 8 * m * n * batch)


def moved_s(engine: Engine, size_bytes: float) -> float:
    """Seconds to move bytes through HBM."""
    return size_bytes / engine.byte_s


def gradients_s(engine: Engine, shape: MatrixProduct) -> float:
    """Seconds of the data gradient and the weight gradient of a product."""
    m, n, k, batch = shape
    return product_s(engine, MatrixProduct(m, k, n, batch)) + product_s(
        engine, MatrixProduct(k, n, m, batch)
    )


def _up(a: float, b: int) -> float:
    """a / b rounded up."""
    return -(-a // b)


class Pass(NamedTuple):
    """Seconds forward and backward."""

    forward_s: float
    backward_s: float


def total(summands: Iterable[Pass]) -> Pass:
    """Passes one after the other."""
    passes = list(summands)
    return Pass(
        sum(single.forward_s for single in passes), sum(single.backward_s for single in passes)
    )


def scaled(seconds: Pass, share: float) -> Pass:
    """A share of both passes."""
    return Pass(share * seconds.forward_s, share * seconds.backward_s)


def products(engine: Engine, shapes: Iterable[MatrixProduct]) -> Pass:
    """Matrix products forward, and the gradients of each backward, with the casts of what both
    multiply.
    """
    return total(
        Pass(
            product_s(engine, shape) + _cast_s(engine, shape.batch * shape.m * shape.k),
            gradients_s(engine, shape) + _cast_s(engine, shape.batch * shape.m * shape.n),
        )
        for shape in shapes
    )


def _cast_s(engine: Engine, numbers: float) -> float:
    """Seconds to read numbers of 16 bits and write them in fewer."""
    return moved_s(engine, 3 * numbers) if engine.input_bytes == 1 else 0.0


def weight_gradients_s(engine: Engine, shapes: Iterable[MatrixProduct]) -> float:
    """Seconds of the weight gradients of some products."""
    return sum(
        product_s(engine, MatrixProduct(shape.k, shape.n, shape.m, shape.batch)) for shape in shapes
    )


class FusedKernel(NamedTuple):
    """One pass of fused attention: how often it multiplies columns, and what it costs beside."""

    of_queries: int
    """products over the columns of queries and keys"""
    of_values: int
    softmax: int
    """columns that the softmax of a pair takes as long as"""
    start: int
    """keys that a block of queries takes as long as for its start and end"""
    wide: float = 0.0
    """so much more do columns beyond 128 cost"""

    def columns(self, sizes: tuple[int, int], slowed: float) -> float:
        """Columns that a pair of a query and a key takes as long as, for heads of keys and values
        of these sizes, where a softmax is slowed by a factor.
        """
        products = zip((self.of_queries, self.of_values), sizes, strict=True)
        return self.softmax * slowed + sum(
            times * self._charged(_up(size, FUSED_STEP) * FUSED_STEP) for times, size in products
        )

    def _charged(self, size: float) -> float:
        return size + self.wide * max(0.0, size - FUSED_REFERENCE)


FUSED_FORWARD = FusedKernel(of_queries=1, of_values=1, softmax=80, start=160)
FUSED_BACKWARD = FusedKernel(of_queries=3, of_values=2, softmax=260, start=300, wide=1.3)


class FusedWork(NamedTuple):
    """What one kernel of fused attention has to do."""

    heads: float
    queries: float
    mean_keys: float
    """keys that a block of queries goes through"""
    most_keys: float


def fused_s(
    machine: Machine, kernel: FusedKernel, sizes: tuple[int, int], work: FusedWork
) -> float:
    """Seconds of one fused attention kernel alone: its waves, the last of them half full."""
    longest = work.most_keys + kernel.start
    # of the longest
    blocks = work.heads * work.queries / FUSED_BLOCK * (work.mean_keys + kernel.start) / longest
    # the last wave is half full on average, and the shortest kernel still waits for its longest
    # block
    waves = max(blocks / machine.layers.processors, 0.5) + 0.5
    reference = 2 * FUSED_REFERENCE
    column_flop_s = (
        machine.attention_flop_s
        / machine.layers.processors
        * (reference + FUSED_FORWARD.softmax)
        / reference
    )
    return (
        waves * longest * FUSED_BLOCK * 2 * kernel.columns(sizes, machine.softmax) / column_flop_s
    )


def feed_forward_shapes(
    model: Transformer, h: int, rows: float, width: float, batch: int = 1
) -> list[MatrixProduct]:
    """The products up and down of a feed-forward layer of that width, on rows of width h."""
    up = MatrixProduct(rows, (2 if model.gated else 1) * width, h, batch)
    return [up, MatrixProduct(rows, h, width, batch)]


def latent_shapes(model: Transformer, rows: float) -> list[MatrixProduct]:
    """Projections of tokens to the width of their experts and back; none where that is their
    own.
    """
    h, narrow = model.hidden, model.expert_latent
    return [MatrixProduct(rows, narrow, h), MatrixProduct(rows, h, narrow)] if narrow else []


def router_shape(model: Transformer, rows: float) -> MatrixProduct:
    """The product that says where each token goes."""
    return MatrixProduct(rows, model.experts, model.hidden)
