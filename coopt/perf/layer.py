"""Compute time of one transformer layer and of the logits, for one micro-batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.transformer import Transformer
from coopt.perf.factor import distinct
from coopt.perf.kernels import gradients_s, product_s, stream_s
from coopt.perf.mapping import FULL, SELECTIVE, Floats, Ints, Mappings

LOGITS_BYTES = 60  # moved for each logit by softmax, loss and their gradients


def query_width(model: Transformer) -> int:
    """n_q: columns of the query projection over all heads."""
    return model.heads * model.head_dim


def kv_width(model: Transformer, t: Any) -> Any:
    """n_kv: key and value columns one TP rank holds; a head is repeated where t exceeds the KV heads."""
    return 2 * np.maximum(model.kv_heads // t, 1) * model.head_dim


def vocab_share(model: Transformer, t: Any) -> Any:
    """ceil(V/t): rows of the embedding one TP rank holds."""
    return -(-model.vocab // t)


def layer_s(model: Transformer, gpu: Gpu, mappings: Mappings, *, flash: bool) -> Floats:
    """Seconds of one layer and micro-batch, forward, backward and recomputation; shape (n,).

    Evaluated once for every distinct (tp, micro_batch, recompute, sequence_parallel) and spread over the rows.
    """
    sequence = mappings.sequence_parallel.astype(np.int64)
    (t, b, recompute, sp), position = distinct(mappings.tp, mappings.micro_batch, mappings.recompute, sequence)
    norm_split = np.where(sp == 1, t, 1)
    forward, core = _forward_s(model, gpu, t, b, norm_split, flash)
    backward = _backward_s(model, gpu, t, b, norm_split, flash)
    stored = 0.0 if flash else core
    repeated = np.where(recompute == FULL, forward, np.where(recompute == SELECTIVE, stored, 0.0))
    return np.asarray((forward + backward + repeated)[position], dtype=np.float64)


def _projections(model: Transformer, t: Ints, b: Ints) -> tuple[tuple[Any, Any, Any], ...]:
    """(m, n, k) of the QKV, output, up and down products."""
    rows, h, n_q = b * float(model.seq), model.hidden, query_width(model) // t
    up = (2 if model.gated else 1) * model.ffn // t
    return (
        (rows, n_q + kv_width(model, t), h),
        (rows, h, n_q),
        (rows, up, h),
        (rows, h, model.ffn // t),
    )


def _attention(model: Transformer) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """(m, n, k) of the scores and context products of one head."""
    s, e = model.seq, model.head_dim
    return (s, s, e), (s, e, s)


def _forward_s(model: Transformer, gpu: Gpu, t: Ints, b: Ints, z: Ints, flash: bool) -> tuple[Floats, Floats]:
    """Forward seconds of a layer, and the part of it that is the attention core."""
    rows, heads = b * float(model.seq), b * model.heads / t
    share = 0.5 if flash and model.causal else 1.0
    core = share * sum((product_s(gpu, *mnk, heads) for mnk in _attention(model)), np.zeros(len(t)))
    if not flash:
        core = core + stream_s(gpu, 9 * heads * model.seq**2)
    ffn_bytes = (6 if model.gated else 4) * rows * model.ffn / t
    kernels = stream_s(gpu, 22 * rows * model.hidden / z + 4 * rows * query_width(model) / t + ffn_bytes)
    return sum((product_s(gpu, *mnk) for mnk in _projections(model, t, b)), kernels + core), core


def _backward_s(model: Transformer, gpu: Gpu, t: Ints, b: Ints, z: Ints, flash: bool) -> Floats:
    """Backward seconds of a layer: both gradients of every product."""
    rows, heads = b * float(model.seq), b * model.heads / t
    scores, context = _attention(model)
    share = 0.5 if flash and model.causal else 1.0
    again = product_s(gpu, *scores, heads) if flash else stream_s(gpu, 11 * heads * model.seq**2)
    core = gradients_s(gpu, *scores, heads) + gradients_s(gpu, *context, heads) + again
    ffn_bytes = (10 if model.gated else 6) * rows * model.ffn / t
    kernels = stream_s(gpu, 46 * rows * model.hidden / z + 30 * rows * query_width(model) / t + ffn_bytes)
    return sum((gradients_s(gpu, *mnk) for mnk in _projections(model, t, b)), kernels + share * core)


def logits_s(model: Transformer, gpu: Gpu, mappings: Mappings) -> Floats:
    """Seconds of the logits and the loss of one micro-batch on the last stage; shape (n,)."""
    (t, b), position = distinct(mappings.tp, mappings.micro_batch)
    rows, columns = b * float(model.seq), vocab_share(model, t)
    seconds = (
        product_s(gpu, rows, columns, model.hidden)
        + gradients_s(gpu, rows, columns, model.hidden)
        + stream_s(gpu, LOGITS_BYTES * rows * columns)
    )
    return np.asarray(seconds[position], dtype=np.float64)
