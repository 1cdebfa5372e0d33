"""Compute time of a layer for one micro-batch (mixer, feed-forward, norms), and of the logits, from
the times of single kernels on one GPU.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from coopt.instance.mixers import Encoder
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.perf.kernels import BYTES, Device, Passes, pointwise, product, products
from coopt.perf.mapping import (
    ACT,
    FULL,
    NORM_ACT,
    NORM_FFN,
    SELECTIVE,
    Floats,
    Mappings,
    block_share,
    expert_layers,
    expert_rows,
    expert_width,
    ffn_share,
    prediction_of,
    projector_widths,
    rows_to_time,
    tp_of_experts,
    unevenness,
    vocab_share,
    wide_share,
)
from coopt.perf.memory import offloaded_bytes
from coopt.perf.mixers import Division, laws_of

STREAM_BYTES = 12  # moved forward for each element of a further residual stream (judgement)
KERNELS_FORWARD, KERNELS_BACKWARD = 6, 12  # pointwise kernels of a layer
NORMS_AGAIN, NORMS = (
    8,
    2,
)  # bytes read and written for each element of the residual stream by its norms
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


def norms_s(model: Transformer, device: Device, elements: Any) -> Passes:
    """Time of the norms and residuals of a layer, averaged over all layers.

    Parameters
    ----------
    elements
        Elements of the residual stream on a GPU.
    """
    software, share = device.software, block_share(model)
    # each further stream is read once more, to be mixed with the others, and written
    further = STREAM_BYTES * (model.streams - 1)
    stream = pointwise(
        device,
        (software.norm_forward_bytes + further) * elements * share,
        (software.norm_backward_bytes + 2 * further) * elements * share,
    )
    pauses = Passes(KERNELS_FORWARD * device.pause_s, KERNELS_BACKWARD * device.pause_s)
    return stream + pauses * share


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
    expert_tp: int,
    uneven: Any = 1.0,
) -> Passes:
    """Time of the experts of a GPU, including router, permutation and shared experts.

    Parameters
    ----------
    uneven
        Rows of the busiest GPU over those of the mean.
    """
    split = tp_of_experts(t, expert_tp)
    experts_per_gpu = model.experts / ep
    routed_rows = expert_rows(model, rows, t, split) * uneven
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
    in_pairs = workload.options.ep_overlap and workload.precision in ("fp8", "fp4")
    start_s = software.host_s * (OVERLAP_STARTS if in_pairs else 1.0)
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
    (t, c, x, b, recompute, sp), model = split, workload.model
    attending, part = device.inside("attn"), _division_of(workload, t, c, b)
    norm_split, rows = np.where(sp == 1, t, 1), part.rows
    elements = rows * model.hidden / norm_split
    core, around, expanded_s = Passes(), norms_s(model, attending, elements), 0.0
    for share, law in laws_of(model):
        mixing = device.inside(law.module)
        core = core + law.core_s(mixing, part) * share
        around = around + law.around_s(mixing, part) * share
        expanded_s = expanded_s + law.expanded_s(mixing, part) * share
    feed_forward = _feed_forward_s(workload, device, t, x, rows, norm_split)
    layer = core + around + feed_forward
    norms = device.pointwise_s(NORMS_AGAIN * elements) + NORMS * attending.pause_s
    norms = norms * block_share(model)
    activations = expanded_s + _activations_s(workload, device, t, x, rows)
    repeats = {
        FULL: layer.forward,
        SELECTIVE: 0.0 if part.flash else core.forward,
        ACT: activations,
        NORM_ACT: norms + activations,
        NORM_FFN: norms + feed_forward.forward,
    }
    repeat_s: Any = 0.0
    for kind, seconds in repeats.items():
        repeat_s = np.where(recompute == kind, seconds, repeat_s)
    mean = Passes(layer.forward, layer.backward + repeat_s, layer.weights)
    for encoder, tower in model.towers:
        mean = mean + _encoder_s(workload, device, split, encoder, tower) * (1 / model.layers)
    return mean


def _division_of(workload: Workload, t: Any, c: Any, b: Any) -> Division:
    rows = b * float(workload.model.seq) / c
    turned_over = (b > 1) & (not workload.options.software.batch_first)
    return Division(t, c, b, rows, turned_over, workload.options.attention == "flash")


def _encoder_s(
    workload: Workload,
    device: Device,
    split: tuple[Any, ...],
    encoder: Encoder,
    tower: Transformer,
) -> Passes:
    """Kernel times of a whole encoder with its projector; context ranks share its inputs."""
    t, c, _, b, recompute, sp = split
    inputs = b * encoder.inputs / c
    one = np.ones_like(t)
    of_tower = workload.model_copy(update={"model": tower})
    layer = _mean_layer_s(of_tower, device, (t, one, one, inputs, recompute, sp))
    merged = inputs * encoder.tokens / encoder.merge
    projector = products(device, merged, projector_widths(encoder, workload.model.hidden, t))
    return layer * tower.layers + projector


def core_passes_s(workload: Workload, device: Device, mappings: Mappings) -> Floats:
    """Time of the attention cores of the mean layer in all passes that need keys and values; shape
    (n,).
    """
    columns = (mappings.tp, mappings.cp, mappings.micro_batch, mappings.recompute)
    rows, position = rows_to_time(*columns)
    t, c, b, recompute = (column[rows] for column in columns)
    part, passes = _division_of(workload, t, c, b), np.zeros(len(rows))
    for share, law in laws_of(workload.model):
        core = law.core_s(device.inside(law.module), part) * share
        passes = passes + core.forward * np.where(recompute == FULL, 2.0, 1.0) + core.backward
    return np.asarray(passes[position], dtype=np.float64)


def _feed_forward_s(
    workload: Workload, device: Device, t: Any, x: Any, rows: Any, norm_split: Any
) -> Passes:
    """Time of what follows attention, averaged over dense layers and layers with experts."""
    model, options, plain = workload.model, workload.options, device.inside("mlp")
    if not model.experts:
        return dense_s(model, plain, rows, model.ffn / t) * ffn_share(model)
    share = expert_layers(model)
    uneven = unevenness(workload, x)
    experts = experts_s(
        model, device, t, x, rows, norm_split, expert_tp=options.expert_tp, uneven=uneven
    )
    dense_share = ffn_share(model) - share
    dense = (
        dense_s(model, plain, rows, model.dense_ffn / t) * dense_share
        if model.dense_layers
        else Passes()
    )
    return experts * share + dense


def _activations_s(workload: Workload, device: Device, t: Any, x: Any, rows: Any) -> Any:
    """Forward time of the nonlinearities of experts, which `act` and `norm+act` recompute."""
    model, expert_tp = workload.model, workload.options.expert_tp
    if not model.experts:
        return 0.0
    split = tp_of_experts(t, expert_tp)
    elements = expert_rows(model, rows, t, split) * unevenness(workload, x) * model.ffn / split
    once = nonlinearity_s(model, device, elements).forward + device.inside("moe").pause_s
    return expert_layers(model) * once


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
