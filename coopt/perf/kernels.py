"""Times of single kernels on one GPU: matrix products, fused attention, and what moves bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coopt.instance.hardware import Gpu, Precision
from coopt.instance.transformer import Software
from coopt.instance.workload import Workload

Floats = NDArray[np.float64]
BITS: dict[Precision, int] = {"fp4": 4, "fp8": 8, "bf16": 16, "fp16": 16}
# rows, columns and relative efficiency of the output tiles a library chooses from
TILES = ((256, 128, 1.0), (128, 256, 1.0), (128, 128, 0.95), (256, 64, 0.85), (64, 256, 0.85))
TILE_ROWS, TILE_COLUMNS, TILE_SHARES = np.array(TILES).T
TILE_COSTS = TILE_ROWS * TILE_COLUMNS / TILE_SHARES
BYTES = 2  # of a 16-bit number
GRAPH_PAUSE_S = 1e-6  # between two kernels of a CUDA graph (judgement)
# fused attention, fitted to the kernels of benchmarks/kernels-h200.csv; docs/model.md, Kernels
BLOCK = 128  # queries, and keys, that a multiprocessor works on at a time
HEAD_STEP, REFERENCE_HEAD = (
    64,
    128,
)  # sizes of heads are rounded up to; the size at which `efficiency.attention` holds
SOFTMAX_FORWARD, SOFTMAX_BACKWARD = 80, 260  # what a pair costs beside its columns, in columns
START_FORWARD, START_BACKWARD = 160, 300  # keys that a block of queries loses to its start and end
WIDE_HEAD, WIDE_BACKWARD = (
    128,
    1.3,
)  # columns beyond cost so much more backward, where registers run out
REFERENCE_SHARE = (
    2 * REFERENCE_HEAD / (2 * REFERENCE_HEAD + SOFTMAX_FORWARD)
)  # of the time for columns, forward
# against aiconfigurator-core 0.12.0 (benchmarks/measured.py; docs/model.md, Kernels)
QUANTISE_BYTES = 3  # read and written for each element that is quantised
MAX_SPLIT, PARTIAL_BYTES = 8, 8  # ways to split the depth of a product; per element of each part


def with_bits(precision: Precision, bits: int) -> Precision:
    """Return the precision if it has at least that many bits, else the one with that many."""
    if BITS[precision] >= bits:
        return precision
    return "fp8" if bits == 8 else "bf16"


@dataclass(frozen=True)
class Rate:
    """Throughput of matrix products in one precision.

    `flop_s` is the throughput reached (FLOP/s), `k0` the depth lost to start-up, and `input_bytes`
    the bytes per element of the operands.
    """

    flop_s: float
    k0: float
    input_bytes: int


@dataclass(frozen=True)
class Device:
    """A GPU training in a given precision with given software."""

    gpu: Gpu
    precision: Precision
    software: Software
    splits_backward: bool = False

    @cached_property
    def workload_rate(self) -> Rate:
        """Throughput of matrix products in the precision of the workload."""
        peak, share = self.gpu.peak_flop_s(self.precision), self.gpu.reached(self.precision).gemm
        return Rate(
            share * peak,
            self.gpu.efficiency.gemm_k0,
            1 if self.precision in ("fp8", "fp4") else BYTES,
        )

    def rate_of(self, bits: int) -> Rate:
        """Return the throughput of products in at least that many bits."""
        return self.of_bits(bits).workload_rate

    def of_bits(self, bits: int) -> Device:
        """Return the device for layers that use at least that many bits."""
        precision = with_bits(self.precision, bits)
        return self if precision == self.precision else replace(self, precision=precision)

    @cached_property
    def bf16_rate(self) -> Rate:
        """Throughput of matrix products that stay in 16 bits, such as the router and the logits."""
        peak, share = self.gpu.peak_flop_s("bf16"), self.gpu.efficiency.gemm
        return Rate(share * peak, self.gpu.efficiency.gemm_k0, BYTES)

    @cached_property
    def byte_s(self) -> float:
        """HBM bandwidth of streaming kernels (bytes/s)."""
        return self.gpu.reached(self.precision).hbm * self.gpu.hbm_gbyte_s * 1e9

    @cached_property
    def host_byte_s(self) -> float:
        """Bandwidth to and from the host's memory, in each direction (bytes/s)."""
        return math.inf if self.gpu.host_gbyte_s is None else self.gpu.host_gbyte_s * 1e9

    @cached_property
    def pause_s(self) -> float:
        """Time between two kernels (s); shorter in a CUDA graph, which needs no host."""
        pause_s = self.software.kernel_s
        pause_s = self.gpu.reached(self.precision).kernel_s if pause_s is None else pause_s
        return min(pause_s, GRAPH_PAUSE_S) if self.software.graphs == "full" else pause_s

    def inside(self, module: str) -> Device:
        """Return the device for kernels of a module of a layer, which may be in a CUDA graph."""
        if self.software.graphs != "scoped" or not self.software.in_graph(module):
            return self
        whole = self.software.model_copy(update={"graphs": "full", "graph_modules": ()})
        return replace(self, software=whole)

    @cached_property
    def pair_s(self) -> float:
        """Seconds of a fused attention kernel per query, key and column, for a multiplication and
        an addition.
        """
        share = self.software.attention or self.gpu.efficiency.attention
        return 2.0 * REFERENCE_SHARE / (share * self.gpu.peak_flop_s("bf16"))

    def stream_s(self, moved_bytes: Any) -> Floats:
        """Seconds of a kernel that only moves bytes through HBM."""
        return np.asarray(moved_bytes, dtype=np.float64) / self.byte_s

    def pointwise_s(self, fused_bytes: Any) -> Floats:
        """Seconds of pointwise kernels; `fused_bytes` is what they would move if all were fused."""
        return self.stream_s(
            self.software.kernel_traffic * np.asarray(fused_bytes, dtype=np.float64)
        )

    def product_s(self, m: Any, n: Any, k: Any, batch: Any = 1, rate: Rate | None = None) -> Floats:
        r"""Seconds of `batch` matrix products (m x k)·(k x n), in the workload's precision unless
        `rate` is given.

        The time is the longer of whole tiles over whole waves of multiprocessors, and of moving the
        three matrices:

        .. math::
            \min_{t} \lceil \lceil m/t_m \rceil \lceil n/t_n \rceil B / SM \rceil \cdot SM \cdot
            \frac{2 t_m t_n}{x_t} \frac{k + k_0}{e_g \hat F}
            \quad\text{and}\quad \frac{B (w (mk + kn) + 2 mn)}{e_m \hat M}

        In 16 bits the depth may be split over multiprocessors that tiles would leave idle.

        Parameters
        ----------
        m, n, k, batch
            Sizes; arrays that broadcast.
        """
        rate = rate or self.workload_rate
        m, n, k, batch = (np.asarray(x, dtype=np.float64) for x in (m, n, k, batch))
        sms, shape = self.gpu.sm_count, (-1, *[1] * max(m.ndim, n.ndim, batch.ndim))
        tiles = np.ceil(m / TILE_ROWS.reshape(shape)) * np.ceil(n / TILE_COLUMNS.reshape(shape))
        tiles, costs = tiles * batch, TILE_COSTS.reshape(shape)
        quickest = np.minimum.reduce(np.ceil(tiles / sms) * costs)
        tile = 2.0 * sms * quickest * (k + rate.k0) / rate.flop_s
        traffic = self.stream_s(batch * (rate.input_bytes * (m * k + k * n) + BYTES * m * n))
        few = 2.0 * tiles.min(axis=0) <= sms
        if rate.input_bytes == BYTES and few.any():
            tile = np.array(np.broadcast_to(tile, traffic.shape))
            few = np.broadcast_to(few, tile.shape)
            results, depth = (np.broadcast_to(x, tile.shape)[few] for x in (batch * m * n, k))
            own_tiles = np.broadcast_to(tiles, (len(TILES), *tile.shape))[:, few]
            split = self._split_s(own_tiles, results, depth, rate)
            tile[few] = np.minimum(tile[few], split)
        return np.asarray(np.maximum(tile, traffic) + self.pause_s, dtype=np.float64)

    def _split_s(self, tiles: Floats, results: Floats, depth: Floats, rate: Rate) -> Floats:
        """Seconds of products whose depth is split over multiprocessors that would be idle.

        Each part is a sum in 32 bits that is written and read once more. `tiles` has a row for each
        of `TILES`, which counts for nothing where a product cannot be split.
        """
        sms = self.gpu.sm_count
        parts = np.minimum(np.floor(sms / tiles), MAX_SPLIT)
        waves = np.ceil(parts * tiles / sms) * TILE_COSTS[:, None]
        parts = np.where(parts < 2, np.nan, parts)
        split = 2.0 * sms * waves * (depth / parts + rate.k0) / rate.flop_s
        sums = self.stream_s(PARTIAL_BYTES * results) * parts
        return np.asarray(np.fmin.reduce(split + sums), dtype=np.float64)

    def quantised_s(self, elements: Any, rate: Rate | None = None) -> Any:
        """Seconds to quantise that many elements for products; 0 for products in 16 bits."""
        if (rate or self.workload_rate).input_bytes == BYTES:
            return 0.0
        return self.stream_s(QUANTISE_BYTES * elements)


def device_of(workload: Workload, gpu: Gpu) -> Device:
    """Return the GPU as the software of a workload uses it."""
    splits_backward = workload.options.schedule != "1f1b"
    return Device(gpu, workload.precision, workload.options.software, splits_backward)


@dataclass(frozen=True)
class Passes:
    """Forward and backward seconds; arrays that broadcast.

    `weights` is the share of `backward` that computes gradients of parameters, for pipeline
    schedules that split the backward pass; 0 for others.
    """

    forward: Any = 0.0
    backward: Any = 0.0
    weights: Any = 0.0

    @property
    def total(self) -> Any:
        """Seconds forward and backward."""
        return self.forward + self.backward

    def __add__(self, other: Passes) -> Passes:
        return Passes(
            self.forward + other.forward,
            self.backward + other.backward,
            self.weights + other.weights,
        )

    def __mul__(self, factor: Any) -> Passes:
        return Passes(self.forward * factor, self.backward * factor, self.weights * factor)


def product(
    device: Device, m: Any, n: Any, k: Any, batch: Any = 1, rate: Rate | None = None
) -> Passes:
    """Time of a matrix product with its data gradient (m, k, n) and its weight gradient (k, n,
    m).
    """
    return products(device, m, ((n, k),), batch, rate)


def products(
    device: Device,
    m: Any,
    widths: Sequence[tuple[Any, Any]],
    batch: Any = 1,
    rate: Rate | None = None,
) -> Passes:
    """Time of matrix products (m, n, k) with their gradients, summed over the pairs (n, k) in
    `widths`, including quantising inputs forward and their gradients backward.
    """
    sizes = np.empty((3, len(widths), *np.broadcast(m, batch, *chain.from_iterable(widths)).shape))
    sizes[0] = m
    for product_sizes, (n, k) in zip(sizes.swapaxes(0, 1), widths, strict=True):
        product_sizes[1], product_sizes[2] = n, k
    forward, inputs, weights = device.product_s(
        sizes[[0, 0, 2]], sizes[[1, 2, 1]], sizes[[2, 1, 0]], batch, rate
    )
    wide, deep = (sum(column) for column in zip(*widths, strict=True))
    backward = reduce(np.add, inputs + weights) + device.quantised_s(batch * m * wide, rate)
    return Passes(
        reduce(np.add, forward) + device.quantised_s(batch * m * deep, rate),
        backward,
        reduce(np.add, weights) if device.splits_backward else 0.0,
    )


def pointwise(device: Device, forward_bytes: Any, backward_bytes: Any) -> Passes:
    """Time of pointwise kernels that would move these bytes if all were fused."""
    return Passes(device.pointwise_s(forward_bytes), device.pointwise_s(backward_bytes))


@dataclass(frozen=True)
class Blocks:
    """Work of the blocks of queries of a fused attention in `steps` kernels; numbers or arrays that
    broadcast.

    `keys` and `longest` are the mean and the maximum number of keys that a block processes over all
    kernels.
    """

    heads: Any
    queries: Any
    keys: Any
    longest: Any
    steps: Any

    def pairs(self, sm_count: int, start: int) -> Any:
        """Return the time of all kernels, measured in pairs of a query and a key.

        It includes idle multiprocessors and `start` keys that each block loses per kernel.
        """
        start_keys = self.steps * start
        # docs/model.md, Kernels: the last wave is half full on average, and a kernel has at least
        # one wave
        half_wave = 0.5 * sm_count * BLOCK * (self.longest + start_keys)
        return (
            np.maximum(self.heads * self.queries * (self.keys + start_keys), half_wave) + half_wave
        )


def fused_attention(device: Device, sizes: tuple[int, int], blocks: Blocks) -> Passes:
    r"""Time of a fused attention core: columns and softmax for every pair of a query and a key.

    Blocks of queries are distributed over the multiprocessors in waves, and the last wave is half
    full on average:

    .. math:: \max(a \, n_q \, n_k,\ w) + w \quad\text{with}\quad w = \tfrac{1}{2} SM \, B \, k

    Parameters
    ----------
    sizes
        Head size of queries and keys, and of values.
    """
    e, e_v = (HEAD_STEP * -(-size // HEAD_STEP) for size in sizes)
    wide_columns = WIDE_BACKWARD * (3 * max(e - WIDE_HEAD, 0) + 2 * max(e_v - WIDE_HEAD, 0))
    slowed, sms = device.gpu.efficiency.softmax, device.gpu.sm_count
    forward = (e + e_v + SOFTMAX_FORWARD * slowed) * blocks.pairs(sms, START_FORWARD)
    backward = (3 * e + 2 * e_v + wide_columns + SOFTMAX_BACKWARD * slowed) * blocks.pairs(
        sms, START_BACKWARD
    )
    return Passes(forward, backward) * device.pair_s
