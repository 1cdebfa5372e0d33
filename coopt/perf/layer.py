"""Compute time of a layer for one micro-batch (attention or Mamba-2, feed-forward, norms), and of
the logits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from coopt.instance.software import Software
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.perf.kernels import (
    BLOCK,
    BYTES,
    Blocks,
    Device,
    Passes,
    fused_attention,
    pointwise,
    product,
    products,
)
from coopt.perf.mapping import FULL, NORM_ACT, NORM_FFN, SELECTIVE, Floats, Mappings, rows_to_time
from coopt.perf.memory import offloaded_bytes
from coopt.perf.parameters import (
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
    value_width,
    vocab_share,
    wide_share,
)

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
        products(device, rows, widths, 1, device.rate_of(device.attention_bits)) * share
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
    output = product(device, rows, model.hidden, width, 1, device.rate_of(device.mamba_output_bits))
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
    width = expert_width(model)
    experts = dense_s(
        model, device, routed_rows / experts_per_gpu, model.ffn / split, experts_per_gpu, width
    )
    permutation = Passes(
        device.stream_s(PERMUTE_FORWARD * routed_rows * width),
        device.stream_s(PERMUTE_BACKWARD * routed_rows * width),
    )
    pauses = _expert_kernels(device, experts_per_gpu) * device.pause_s
    router = product(device, rows / norm_split, model.experts, model.hidden, 1, device.bf16_rate)
    shared_experts = (
        dense_s(model, device, rows, model.shared_ffn / t) if model.shared_ffn else Passes()
    )
    if model.expert_latent:
        norm_rows, rate = rows / norm_split, device.rate_of(device.latent_bits)
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
    if device.grouped_experts:
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
    if not model.experts or software.graphs:
        return np.zeros(len(mappings))
    launched_experts = (
        np.ones(len(mappings)) if software.grouped_experts else model.experts / mappings.ep
    )
    start_s = software.host_s * (OVERLAP_STARTS if workload.options.ep_overlap else 1.0)
    return expert_layers(model) * start_s * (HOST_KERNELS + HOST_EXPERT_KERNELS * launched_experts)


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
    core = core_s(model, device, t, c, b, flash=flash) * attention_share(model)
    feed_forward = _feed_forward_s(workload, device, t, x, rows, norm_split)
    layer = core + attention_s(model, device, t, rows, norm_split, options.software) + feed_forward
    if model.mamba_layers:
        turned_over = (b > 1) & (not options.software.batch_first)
        layer = layer + mamba_s(model, device, t, rows, turned_over) * mamba_share(model)
    norms = (
        device.pointwise_s(NORMS_AGAIN * rows * model.hidden / norm_split) + NORMS * device.pause_s
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
    core = core_s(workload.model, device, t, c, b, flash=workload.options.attention == "flash")
    passes = core.forward * np.where(recompute == FULL, 2.0, 1.0) + core.backward
    return np.asarray(passes[position], dtype=np.float64)


def _feed_forward_s(
    workload: Workload, device: Device, t: Any, x: Any, rows: Any, norm_split: Any
) -> Passes:
    """Time of what follows attention, averaged over dense layers and layers with experts."""
    model, options = workload.model, workload.options
    if not model.experts:
        return dense_s(model, device, rows, model.ffn / t) * ffn_share(model)
    share = expert_layers(model)
    experts = experts_s(model, device, t, x, rows, norm_split, expert_tp=options.expert_tp)
    dense_share = ffn_share(model) - share
    dense = (
        dense_s(model, device, rows, model.dense_ffn / t) * dense_share
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
        once = nonlinearity_s(model, device, elements).forward + device.pause_s
        seconds = seconds + expert_layers(model) * once
    share, rate = attention_share(model), device.rate_of(device.attention_bits)
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
    passes = product(device, tokens, columns, model.hidden, 1, device.bf16_rate)
    loss = device.stream_s(workload.options.software.loss_bytes * tokens * columns)
    return np.asarray((passes.forward + passes.backward + loss)[position], dtype=np.float64)
