"""Compute time of the attention block of one layer, for one micro-batch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from coopt.instance.software import Software
from coopt.instance.transformer import Transformer
from coopt.perf.kernels import Device
from coopt.perf.passes import Passes, pointwise, product
from coopt.perf.shapes import attended, kv_width, latent_width, query_width, value_width

FLASH_BACKWARD = 2.5  # FLOPs of the fused backward kernel over those of the forward one
SCORES_K0 = 200  # k0 of products as shallow as a head
SCORES_FORWARD, SCORES_BACKWARD = 9, 11  # bytes moved for each score by mask, softmax and dropout
QUERY_FORWARD, QUERY_BACKWARD = 4, 30  # bytes moved for each element of the queries
KERNELS_FORWARD, KERNELS_BACKWARD = 6, 12  # pointwise kernels of a layer


def attention_s(model: Transformer, device: Device, t: Any, rows: Any, norm_split: Any, software: Software) -> Passes:
    """Projections and pointwise kernels; shape of the arguments.

    Parameters
    ----------
    rows
        Tokens of a GPU, b·s/c.
    norm_split
        z: over how many ranks the norms are split.
    """
    query = query_width(model)
    stream = pointwise(
        device,
        software.norm_forward_bytes * rows * model.hidden / norm_split + QUERY_FORWARD * rows * query / t,
        software.norm_backward_bytes * rows * model.hidden / norm_split + QUERY_BACKWARD * rows * query / t,
    )
    pauses = Passes(KERNELS_FORWARD * device.pause_s, KERNELS_BACKWARD * device.pause_s)
    output = product(device, rows, model.hidden, value_width(model) / t)
    return _inputs(model, device, t, rows) + output + stream + pauses


def _inputs(model: Transformer, device: Device, t: Any, rows: Any) -> Passes:
    """Projections to queries, keys and values."""
    h, query = model.hidden, query_width(model)
    if not model.kv_rank:
        return product(device, rows, query / t + kv_width(model, t), h)
    if model.q_rank:
        queries = product(device, rows, model.q_rank, h) + product(device, rows, query / t, model.q_rank)
    else:
        queries = product(device, rows, query / t, h)
    down = product(device, rows, model.kv_rank + model.rope_dim, h)
    return queries + down + product(device, rows, latent_width(model) / t, model.kv_rank)


def core_s(model: Transformer, device: Device, t: Any, c: Any, b: Any, *, flash: bool) -> Passes:
    """Scores, softmax and context."""
    s, heads = float(model.seq), b * model.heads / t
    pairs = heads * s * (s / c)
    if flash:
        flop = attended(model) * 2.0 * pairs * (model.head_dim + model.value_size)
        forward, pause = flop / device.attention_flop_s, device.pause_s
        return Passes(forward + pause, FLASH_BACKWARD * forward + 2 * pause)
    rate = replace(device.wide, k0=SCORES_K0)
    scores = product(device, s / c, s, model.head_dim, heads, rate)
    context = product(device, s / c, model.value_size, s, heads, rate)
    softmax = Passes(device.stream_s(SCORES_FORWARD * pairs), device.stream_s(SCORES_BACKWARD * pairs))
    return scores + context + softmax
