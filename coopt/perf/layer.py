"""Compute time of a layer for one micro-batch (attention or Mamba-2, feed-forward, norms), and of
the logits, from the times of single kernels on one GPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import chain
from typing import Any

import numpy as np

from coopt.instance.hardware import Gpu, Precision
from coopt.instance.transformer import Software, Transformer
from coopt.instance.workload import Workload
from coopt.perf.mapping import (
    FULL,
    NORM_ACT,
    NORM_FFN,
    SELECTIVE,
    Floats,
    Mappings,
    attention_share,
    block_share,
    expert_layers,
    expert_rows,
    expert_width,
    ffn_share,
    kv_width,
    latent_width,
    mamba_columns,
    mamba_share,
    prediction_of,
    query_width,
    rows_to_time,
    value_width,
    vocab_share,
    wide_share,
    with_bits,
)
from coopt.perf.memory import offloaded_bytes

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

        Parameters
        ----------
        m, n, k, batch
            Sizes; arrays that broadcast.
        """
        rate = rate or self.workload_rate
        m, n, k, batch = (np.asarray(x, dtype=np.float64) for x in (m, n, k, batch))
        sms, shape = self.gpu.sm_count, (-1, *[1] * max(m.ndim, n.ndim, batch.ndim))
        tiles = np.ceil(m / TILE_ROWS.reshape(shape)) * np.ceil(n / TILE_COLUMNS.reshape(shape))
        quickest = np.minimum.reduce(np.ceil(tiles * batch / sms) * TILE_COSTS.reshape(shape))
        tile = 2.0 * sms * quickest * (k + rate.k0) / rate.flop_s
        traffic = self.stream_s(batch * (rate.input_bytes * (m * k + k * n) + BYTES * m * n))
        return np.asarray(np.maximum(tile, traffic) + self.pause_s, dtype=np.float64)


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
    `widths`.
    """
    sizes = np.empty((3, len(widths), *np.broadcast(m, batch, *chain.from_iterable(widths)).shape))
    sizes[0] = m
    for product_sizes, (n, k) in zip(sizes.swapaxes(0, 1), widths, strict=True):
        product_sizes[1], product_sizes[2] = n, k
    forward, inputs, weights = device.product_s(
        sizes[[0, 0, 2]], sizes[[1, 2, 1]], sizes[[2, 1, 0]], batch, rate
    )
    backward = reduce(np.add, inputs + weights)
    return Passes(
        reduce(np.add, forward),
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
    forward = (e + e_v + SOFTMAX_FORWARD) * blocks.pairs(device.gpu.sm_count, START_FORWARD)
    backward = (3 * e + 2 * e_v + wide_columns + SOFTMAX_BACKWARD) * blocks.pairs(
        device.gpu.sm_count, START_BACKWARD
    )
    return Passes(forward, backward) * device.pair_s


SCORES_K0 = 200  # k0 of products as shallow as a head
SCORES_FORWARD, SCORES_BACKWARD = 9, 11  # bytes moved for each score by mask, softmax and dropout
# additional bytes where batches times heads of a GPU are not a multiple of four, as the fused
# softmax requires: PyTorch then casts to fp32, scales, masks, computes the softmax and casts back
# in separate kernels
FUSED_HEADS, APART_FORWARD, APART_BACKWARD = 4, 32, 34
QUERY_FORWARD, QUERY_BACKWARD = 4, 30  # bytes moved for each element of the queries
KERNELS_FORWARD, KERNELS_BACKWARD = 6, 12  # pointwise kernels of a layer
NORMS_AGAIN, NORMS = (
    8,
    2,
)  # bytes read and written for each element of the residual stream by its norms
# Mamba-2 with the kernels of mamba_ssm (ops/triton/ssd_combined.py): tokens per chunk (as in
# Megatron-LM) and number of kernels besides products; bytes moved per element by the convolution,
# by the scan (per element of a chunk's states), by gate and norm, and by the transposition of
# sequences and batch before and after the scan
CHUNK, SCAN_KERNELS_FORWARD, SCAN_KERNELS_BACKWARD = 128, 4, 8
SCAN_SHARE = (
    2 / 3
)  # that its kernels in Triton reach of what libraries' products and moved bytes would (judgement)
CONVOLVED_FORWARD, CONVOLVED_BACKWARD, STATE_FORWARD, STATE_BACKWARD = 4, 10, 8, 24
MIXED_FORWARD, MIXED_BACKWARD, TURNED = 6, 18, 4
# bytes moved for each element of the widened activations by the nonlinearity, gated or plain
GATED_FORWARD, GATED_BACKWARD = 6, 10
PLAIN_FORWARD, PLAIN_BACKWARD = 4, 6
PERMUTE_FORWARD, PERMUTE_BACKWARD = 16, 24  # bytes moved for each element of a routed row
EXPERT_KERNELS_FORWARD, EXPERT_KERNELS_BACKWARD = (
    10,
    15,
)  # small kernels that route, permute and pad
# kernels that the host launches per layer with experts, forward and backward, and per expert:
# Nsight Systems counted 463,348 for 64 micro-batches of 48 layers with 8 experts per GPU;
# docs/model.md, Kernels of the host
HOST_KERNELS, HOST_EXPERT_KERNELS = 103, 6
# of these, what the modules of scoped graphs hold; which of the 25 small kernels around experts
# belong to router and preprocessing is judged
GRAPHED_KERNELS = {"attn": 75, "moe_router": 11, "moe_preprocess": 7, "moe": 10}
GRAPH_STARTS = 2  # of a module's graph, forward and backward
# factor on launch time where passes of two micro-batches run in pairs: 11.0 ms per layer with 16
# experts
OVERLAP_STARTS = 1.5


def attention_s(
    model: Transformer, device: Device, t: Any, rows: Any, norm_split: Any, software: Software
) -> Passes:
    """Time of the projections of attention and of the pointwise kernels of a layer, averaged over
    all layers.

    Parameters
    ----------
    rows
        Tokens per GPU, b·s/c.
    norm_split
        z: number of ranks that share the norms.
    """
    share, query = attention_share(model), query_width(model)
    norm_elements, query_elements = (
        rows * model.hidden / norm_split * block_share(model),
        rows * query / t * share,
    )
    stream = pointwise(
        device,
        software.norm_forward_bytes * norm_elements + QUERY_FORWARD * query_elements,
        software.norm_backward_bytes * norm_elements + QUERY_BACKWARD * query_elements,
    )
    pauses = Passes(
        KERNELS_FORWARD * device.pause_s, KERNELS_BACKWARD * device.pause_s
    ) * block_share(model)
    widths = *_input_widths(model, t), (model.hidden, value_width(model) / t)
    return (
        products(device, rows, widths, 1, device.rate_of(device.software.attention_bits)) * share
        + stream
        + pauses
    )


def _input_widths(model: Transformer, t: Any) -> tuple[tuple[Any, Any], ...]:
    """Columns and depth of each projection to queries, keys and values."""
    h, query = model.hidden, query_width(model)
    if not model.kv_rank:
        return ((query / t + kv_width(model, t), h),)
    queries = ((model.q_rank, h), (query / t, model.q_rank)) if model.q_rank else ((query / t, h),)
    return *queries, (model.kv_rank + model.rope_dim, h), (latent_width(model) / t, model.kv_rank)


def mamba_s(model: Transformer, device: Device, t: Any, rows: Any, turned_over: Any) -> Passes:
    """Time of a Mamba-2 mixer: projections, convolution, scan by chunks, gate and norm.

    For chunks of Q tokens, heads of P columns and a state of size N, the scan multiplies :math:`C
    B^T` once per group; in each head it multiplies the result with X, X with B into the state of
    the chunk, and C with the state before the chunk. The backward pass repeats the first and the
    third product, and the data gradient of the second, which the step sizes need too (arXiv
    2405.21060, section 6). Where activations are stored as tokens by batch, several sequences must
    be transposed (`turned_over`) before the scan, and its output after it.
    """
    heads, groups, p, n = (
        model.mamba_heads / t,
        model.mamba_groups / t,
        model.mamba_head_dim,
        model.mamba_state,
    )
    width, chunks = heads * p, rows / CHUNK
    output = product(
        device, rows, model.hidden, width, 1, device.rate_of(device.software.mamba_output_bits)
    )
    projections = product(device, rows, mamba_columns(model, t), model.hidden) + output
    rate = replace(device.bf16_rate, k0=SCORES_K0)
    scores = product(device, CHUNK, CHUNK, n, chunks * groups, rate)
    states = product(device, p, n, CHUNK, chunks * heads, rate)
    seen = product(device, CHUNK, p, CHUNK, chunks * heads, rate) + product(
        device, CHUNK, p, n, chunks * heads, rate
    )
    of_steps = device.product_s(CHUNK, CHUNK, p, chunks * heads, rate)
    repeats = Passes(0.0, scores.forward + states.forward + of_steps)
    state_elements = chunks * width * n
    states_stream = Passes(
        device.stream_s(STATE_FORWARD * state_elements),
        device.stream_s(STATE_BACKWARD * state_elements),
    )
    # without parameters
    scan = replace(scores + states + seen + repeats + states_stream, weights=0.0) * (1 / SCAN_SHARE)
    # elements that the convolution, the gate with its norm, and the turning over work on
    convolved, gated, projected = (
        rows * (width + 2 * groups * n),
        rows * width,
        rows * mamba_columns(model, t),
    )
    turn_bytes = TURNED * turned_over
    stream = Passes(
        device.stream_s(
            CONVOLVED_FORWARD * convolved + MIXED_FORWARD * gated + turn_bytes * (projected + gated)
        ),
        device.stream_s(
            CONVOLVED_BACKWARD * convolved + MIXED_BACKWARD * gated + turn_bytes * projected
        ),
    )
    pauses = Passes(SCAN_KERNELS_FORWARD * device.pause_s, SCAN_KERNELS_BACKWARD * device.pause_s)
    return projections + scan + stream + pauses


def core_s(model: Transformer, device: Device, t: Any, c: Any, b: Any, *, flash: bool) -> Passes:
    """Time of attention scores, softmax and context."""
    s, heads = float(model.seq), b * model.heads / t
    if flash:
        return _fused_core_s(model, device, heads, c)
    pairs = heads * s * (s / c)
    rate = replace(device.bf16_rate, k0=SCORES_K0)
    scores = product(device, s / c, s, model.head_dim, heads, rate)
    context = product(device, s / c, model.value_size, s, heads, rate)
    is_unfused = heads % FUSED_HEADS != 0
    forward, backward = (
        SCORES_FORWARD + APART_FORWARD * is_unfused,
        SCORES_BACKWARD + APART_BACKWARD * is_unfused,
    )
    stream = Passes(device.stream_s(forward * pairs), device.stream_s(backward * pairs))
    return replace(scores + context + stream, weights=0.0)  # neither has parameters


def _fused_core_s(model: Transformer, device: Device, heads: Any, c: Any) -> Passes:
    """Time of fused attention, averaged over layers with and without a window; the keys and values
    of the c ranks are processed one after the other.
    """
    keys, longest = ((model.seq + BLOCK) / 2 if model.causal else model.seq), model.seq
    sizes, queries = (model.head_dim, model.value_size), model.seq / c
    core = fused_attention(device, sizes, Blocks(heads, queries, keys, longest, c))
    if model.window_layers:
        window_keys = model.window + BLOCK  # by a block of queries
        window_blocks = Blocks(heads, queries, min(keys, window_keys), min(longest, window_keys), c)
        share = model.window_layers / model.with_attention
        core = core * (1 - share) + fused_attention(device, sizes, window_blocks) * share
    return core + Passes(c * device.pause_s, 2 * c * device.pause_s)


def nonlinearity_s(model: Transformer, device: Device, elements: Any) -> Passes:
    """Time of the nonlinearity for that many elements."""
    forward, backward = (
        (GATED_FORWARD, GATED_BACKWARD) if model.gated else (PLAIN_FORWARD, PLAIN_BACKWARD)
    )
    return pointwise(device, forward * elements, backward * elements)


def dense_s(
    model: Transformer,
    device: Device,
    rows: Any,
    width: Any,
    batch: Any = 1,
    hidden: int | None = None,
) -> Passes:
    """Time of a feed-forward layer.

    Parameters
    ----------
    width, batch
        Columns of the layer on this rank, and how many such layers run side by side (experts).
    hidden
        Width of its input and output; that of the model if omitted.
    """
    narrow = hidden or model.hidden
    up_and_down = products(
        device, rows, (((2 if model.gated else 1) * width, narrow), (narrow, width)), batch
    )
    return up_and_down + nonlinearity_s(model, device, batch * rows * width)


def experts_s(
    model: Transformer,
    device: Device,
    t: Any,
    ep: Any,
    rows: Any,
    norm_split: Any,
    *,
    expert_tp: bool,
) -> Passes:
    """Time of the experts of a GPU, including router, permutation and shared experts."""
    split = t if expert_tp else 1
    experts_per_gpu = model.experts / ep
    routed_rows = expert_rows(model, rows, t, split)
    width, routing = expert_width(model), device.inside("moe_router")
    device = device.inside("moe")
    experts = dense_s(
        model, device, routed_rows / experts_per_gpu, model.ffn / split, experts_per_gpu, width
    )
    permutation = Passes(
        device.stream_s(PERMUTE_FORWARD * routed_rows * width),
        device.stream_s(PERMUTE_BACKWARD * routed_rows * width),
    )
    pauses = _expert_kernels(device, experts_per_gpu) * device.pause_s
    router = product(routing, rows / norm_split, model.experts, model.hidden, 1, device.bf16_rate)
    shared_experts = (
        dense_s(model, device, rows, model.shared_ffn / t) if model.shared_ffn else Passes()
    )
    if model.expert_latent:
        norm_rows, rate = rows / norm_split, device.rate_of(device.software.latent_bits)
        narrowing = product(device, norm_rows, width, model.hidden, 1, rate)
        shared_experts = (
            shared_experts + narrowing + product(device, norm_rows, model.hidden, width, 1, rate)
        )
    return experts + permutation + pauses + router + shared_experts


def _expert_kernels(device: Device, experts_per_gpu: Any) -> Passes:
    """Count the kernels of the experts of a GPU beyond the first product of each kind.

    These are small kernels, and, unless experts are grouped, the products of each further expert;
    below 16 bits each expert quantises its inputs and gradients separately.
    """
    if device.software.grouped_experts:
        return Passes(EXPERT_KERNELS_FORWARD, EXPERT_KERNELS_BACKWARD)
    products, quantised = (
        experts_per_gpu - 1,
        (experts_per_gpu if device.workload_rate.input_bytes < BYTES else 0),
    )
    return Passes(
        EXPERT_KERNELS_FORWARD + 2 * products + 2 * quantised,
        EXPERT_KERNELS_BACKWARD + 4 * products + 2 * quantised,
    )


def layer_s(workload: Workload, device: Device, mappings: Mappings) -> Floats:
    """Time of the mean layer: the longer of its kernels and of their launch by the host; shape
    (n,).
    """
    kernels, start_s = kernels_s(workload, device, mappings), started_s(workload, mappings)
    return np.asarray(np.maximum(kernels.total, start_s), dtype=np.float64)


def started_s(workload: Workload, mappings: Mappings) -> Floats:
    """Time in which the host launches the kernels of the mean layer where it cannot run ahead;
    shape (n,).
    """
    model, software = workload.model, workload.options.software
    if not model.experts or software.graphs == "full":
        return np.zeros(len(mappings))
    launched_experts = (
        np.ones(len(mappings)) if software.grouped_experts else model.experts / mappings.ep
    )
    of_experts = HOST_EXPERT_KERNELS * launched_experts * (not software.in_graph("moe"))
    graphed = sum(n for module, n in GRAPHED_KERNELS.items() if software.in_graph(module))
    of_layer = HOST_KERNELS - graphed + GRAPH_STARTS * len(software.graph_modules)
    start_s = software.host_s * (OVERLAP_STARTS if workload.options.ep_overlap else 1.0)
    return expert_layers(model) * start_s * (of_layer + of_experts)


def predicting_s(workload: Workload, device: Device, mappings: Mappings, mean: Passes) -> Passes:
    """Time of a layer that predicts a further token, at least as long as its kernel launches.

    `mean` are the kernels of the mean layer. Shape (n,); zero where the model has no such layer.
    """
    if not workload.model.extra_predictions:
        return Passes()
    prediction = prediction_of(workload)
    prediction_device = replace(device, precision=prediction.precision)
    kernels = mean if prediction is workload else kernels_s(prediction, prediction_device, mappings)
    return without_starts(kernels, started_s(prediction, mappings))


def without_starts(kernels: Passes, start_s: Floats) -> Passes:
    """Stretch a layer to the launch time of its kernels where that is longer.

    Gradients of weights that are launched within the layer stay in it; only the others can be
    delayed.
    """
    kernel_s = kernels.total
    layer: Passes = kernels * (np.maximum(kernel_s, start_s) / kernel_s)
    return replace(layer, weights=np.clip(kernel_s - start_s, 0.0, kernels.weights))


def kernels_s(workload: Workload, device: Device, mappings: Mappings) -> Passes:
    """Kernel times of the mean layer: forward, and backward with recomputation; shape (n,), or
    weights 0.

    Rows equal in (tp, cp, ep, micro_batch, recompute, sequence_parallel) are evaluated once. A pass
    is at least as long as the transfer of its activations to or from the host, which overlaps with
    its kernels.
    """
    m, sequence = mappings, mappings.sequence_parallel.astype(np.int64)
    columns = (m.tp, m.cp, m.ep, m.micro_batch, m.recompute, sequence)
    rows, position = rows_to_time(*columns)
    split, share_16_bit = tuple(column[rows] for column in columns), wide_share(workload)
    passes = _mean_layer_s(workload, device, split)
    if share_16_bit:
        passes = (
            passes * (1 - share_16_bit)
            + _mean_layer_s(workload, device.of_bits(16), split) * share_16_bit
        )
    weights = (
        np.broadcast_to(passes.weights, passes.backward.shape)[position]
        if device.splits_backward
        else 0.0
    )
    forward = np.broadcast_to(passes.forward, passes.backward.shape)[position]
    backward = passes.backward[position]
    if mappings.offload_percent.any():
        on_the_way_s = offloaded_bytes(workload, mappings) / device.host_byte_s
        forward, backward = np.maximum(forward, on_the_way_s), np.maximum(backward, on_the_way_s)
    return Passes(forward, backward, weights)


def _mean_layer_s(workload: Workload, device: Device, split: tuple[Any, ...]) -> Passes:
    """Kernel times of the mean layer on a device, for columns as in `kernels_s`."""
    (t, c, x, b, recompute, sp), flash = split, workload.options.attention == "flash"
    model, options, norm_split = workload.model, workload.options, np.where(sp == 1, t, 1)
    rows = b * float(model.seq) / c
    attending = device.inside("attn")
    core = core_s(model, attending, t, c, b, flash=flash) * attention_share(model)
    feed_forward = _feed_forward_s(workload, device, t, x, rows, norm_split)
    projections = attention_s(model, attending, t, rows, norm_split, options.software)
    layer = core + projections + feed_forward
    if model.mamba_layers:
        turned_over = (b > 1) & (not options.software.batch_first)
        mamba = mamba_s(model, device.inside("mamba"), t, rows, turned_over)
        layer = layer + mamba * mamba_share(model)
    norms = (
        device.pointwise_s(NORMS_AGAIN * rows * model.hidden / norm_split)
        + NORMS * attending.pause_s
    )
    norms = norms * block_share(model)
    repeats = {
        FULL: layer.forward,
        SELECTIVE: 0.0 if flash else core.forward,
        NORM_ACT: norms + _cheap_s(workload, device, t, rows),
        NORM_FFN: norms + feed_forward.forward,
    }
    repeat_s: Any = 0.0
    for kind, seconds in repeats.items():
        repeat_s = np.where(recompute == kind, seconds, repeat_s)
    return Passes(layer.forward, layer.backward + repeat_s, layer.weights)


def core_passes_s(workload: Workload, device: Device, mappings: Mappings) -> Floats:
    """Time of the attention core of a layer in all passes that need keys and values; shape (n,).

    Models with Mamba-2 layers do not split sequences.
    """
    columns = (mappings.tp, mappings.cp, mappings.micro_batch, mappings.recompute)
    rows, position = rows_to_time(*columns)
    t, c, b, recompute = (column[rows] for column in columns)
    flash = workload.options.attention == "flash"
    core = core_s(workload.model, device.inside("attn"), t, c, b, flash=flash)
    passes = core.forward * np.where(recompute == FULL, 2.0, 1.0) + core.backward
    return np.asarray(passes[position], dtype=np.float64)


def _feed_forward_s(
    workload: Workload, device: Device, t: Any, x: Any, rows: Any, norm_split: Any
) -> Passes:
    """Time of what follows attention, averaged over dense layers and layers with experts."""
    model, options, plain = workload.model, workload.options, device.inside("mlp")
    if not model.experts:
        return dense_s(model, plain, rows, model.ffn / t) * ffn_share(model)
    share = expert_layers(model)
    experts = experts_s(model, device, t, x, rows, norm_split, expert_tp=options.expert_tp)
    dense_share = ffn_share(model) - share
    dense = (
        dense_s(model, plain, rows, model.dense_ffn / t) * dense_share
        if model.dense_layers
        else Passes()
    )
    return experts * share + dense


def _cheap_s(workload: Workload, device: Device, t: Any, rows: Any) -> Any:
    """Forward time of what `norm+act` recomputes besides norms: nonlinearities of experts, and the
    expansion of latent keys and values.
    """
    model, expert_tp = workload.model, workload.options.expert_tp
    seconds: Any = 0.0
    if model.experts:
        split = t if expert_tp else 1
        elements = expert_rows(model, rows, t, split) * model.ffn / split
        once = nonlinearity_s(model, device, elements).forward + device.inside("moe").pause_s
        seconds = seconds + expert_layers(model) * once
    share, device = attention_share(model), device.inside("attn")
    rate = device.rate_of(device.software.attention_bits)
    if model.kv_rank:
        seconds = seconds + share * device.product_s(
            rows, latent_width(model) / t, model.kv_rank, 1, rate
        )
    if model.q_rank:
        seconds = seconds + share * device.product_s(
            rows, query_width(model) / t, model.q_rank, 1, rate
        )
    return seconds


def logits_s(workload: Workload, device: Device, mappings: Mappings) -> Floats:
    """Time of the logits and the loss of one micro-batch on the last stage; shape (n,)."""
    model = workload.model
    rows, position = rows_to_time(mappings.tp, mappings.cp, mappings.micro_batch)
    tokens = mappings.micro_batch[rows] * float(model.seq) / mappings.cp[rows]
    columns = vocab_share(model, mappings.tp[rows])
    narrow = workload.options.software.fp8_head
    rate = device.rate_of(8) if narrow else device.bf16_rate
    passes = product(device, tokens, columns, model.hidden, 1, rate)
    loss = device.stream_s(workload.options.software.loss_bytes * tokens * columns)
    return np.asarray((passes.forward + passes.backward + loss)[position], dtype=np.float64)
