"""Bytes a mapping needs on the fullest GPU.

Equations of arXiv 2205.05198, section 4, widened to grouped-query, latent, gated and expert layers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coopt.instance.workload import Workload
from coopt.perf.mapping import FULL, NONE, Floats, Ints, Mappings, chunk_layers, micro_batches, representatives
from coopt.perf.parameters import (
    expert_layers,
    expert_rows,
    further_layers,
    held_expert_parameters,
    held_parameters,
    kv_width,
    layer_expert_parameters,
    layer_parameters,
    query_width,
    value_width,
    vocab_share,
)

GIB = 2.0**30
PARAMETER_BYTES = 2  # 16 bits, whatever the precision of the products
STATE_BYTES = 12  # master copy and two moments in fp32
LOGIT_BYTES = 4.0  # of a logit in fp32
# bytes kept for each element of the residual stream: inputs of two norms (4), inputs of the projections to queries and
# of the feed-forward part (4), two dropout masks (2)
KEPT_NORM = 10


def memory_bytes(workload: Workload, mappings: Mappings) -> Floats:
    """Bytes on the fullest GPU, the larger of the first and the last stage; shape (n,)."""
    m = mappings
    sequence = m.sequence_parallel.astype(np.int64)
    rows, position = representatives(m.tp, m.cp, m.micro_batch, m.recompute, sequence)
    few = m.take(rows)
    layer = layer_activation_bytes(workload, few)[position]
    working = working_bytes(workload, few)[position]
    model, predictions = workload.model, 1 + workload.model.extra_predictions
    logits = (predictions * LOGIT_BYTES * _rows(workload, few) * vocab_share(model, few.tp))[position]
    per_chunk = layer * chunk_layers(model.layers, m)
    first, last = chunks_in_flight(m, workload.global_batch)
    further = layer * further_layers(model, m) if model.extra_predictions else 0.0
    activations = np.maximum(per_chunk * first, per_chunk * last + further + logits)
    return np.asarray(state_bytes(workload, m) + working + activations, dtype=np.float64)


def state_bytes(workload: Workload, mappings: Mappings) -> Floats:
    """Parameters, gradients and optimizer, whole or spread over DP by ZeRO stage, and what ZeRO 3 gathers."""
    model, expert_tp = workload.model, workload.options.expert_tp
    shared, experts = held_parameters(model, mappings), held_expert_parameters(model, mappings, expert_tp=expert_tp)
    whole = shared + experts
    spread = shared / (mappings.dp * mappings.cp) + experts / expert_copies(mappings, expert_tp=expert_tp)
    stage = sharded_stage(mappings)
    gradients = 2 if workload.options.dp_mode == "stale-1" else 1  # those on their way, and those of this step
    parts = (PARAMETER_BYTES, gradients * workload.options.software.gradient_bytes, STATE_BYTES)
    kept = [size * np.where(stage >= least, spread, whole) for size, least in zip(parts, (3, 2, 1), strict=True)]
    if not (stage == 3).any():
        return np.asarray(sum(kept), dtype=np.float64)
    experts_of_layer = layer_expert_parameters(model, mappings.tp, mappings.ep, expert_tp=expert_tp)
    gathered = 2 * PARAMETER_BYTES * (layer_parameters(model, mappings.tp) + experts_of_layer)
    return np.asarray(sum(kept) + np.where(stage == 3, gathered, 0.0), dtype=np.float64)


def sharded_stage(mappings: Mappings) -> Ints:
    """The ZeRO stage in effect: under a pipeline gradients and parameters stay whole, as in stage 1; shape (n,)."""
    return np.where(mappings.pp == 1, mappings.zero, np.minimum(mappings.zero, 1))


def expert_copies(mappings: Mappings, *, expert_tp: bool) -> Floats:
    """y_x: GPUs that hold the same experts; shape (n,)."""
    ranks = mappings.cp * mappings.dp * (1 if expert_tp else mappings.tp)
    return np.asarray(ranks // mappings.ep, dtype=np.float64)


def layer_activation_bytes(workload: Workload, mappings: Mappings) -> Floats:
    """Bytes one layer keeps for its backward pass, for one micro-batch; shape (n,)."""
    scores = np.where(mappings.recompute == NONE, _score_bytes(workload, mappings), 0.0)
    inputs = 2.0 * _rows(workload, mappings) * workload.model.hidden / _norm_split(mappings)
    return np.where(mappings.recompute == FULL, inputs, _kept_bytes(workload, mappings) + scores)


def working_bytes(workload: Workload, mappings: Mappings) -> Floats:
    """Bytes of the one layer that full recomputation brings back at a time; 0 otherwise."""
    whole = _kept_bytes(workload, mappings) + _score_bytes(workload, mappings)
    return np.where(mappings.recompute == FULL, whole, 0.0)


def chunks_in_flight(mappings: Mappings, global_batch: int) -> tuple[Floats, Floats]:
    """Model chunks whose activations the first and the last stage hold at their fullest moment."""
    p, v = mappings.pp, mappings.interleave
    done = micro_batches(mappings, global_batch) * v
    first = np.where(v > 1, p * v + p - 1, p)
    last = np.where(v > 1, (v - 1) * p + 1, 1)
    return np.minimum(done, first).astype(np.float64), np.minimum(done, last).astype(np.float64)


def _rows(workload: Workload, mappings: Mappings) -> Floats:
    return mappings.micro_batch * float(workload.model.seq) / mappings.cp


def _norm_split(mappings: Mappings) -> Floats:
    return np.where(mappings.sequence_parallel, mappings.tp, 1).astype(np.float64)


def _kept_bytes(workload: Workload, mappings: Mappings) -> Floats:
    """Everything but the attention scores: s·b·h·34/t for a plain layer with sequence parallelism."""
    model, t = workload.model, mappings.tp
    rows = _rows(workload, mappings)
    heads = 2 * (query_width(model) / t + kv_width(model, t)) + 2 * value_width(model) / t
    kept = rows * (KEPT_NORM * model.hidden / _norm_split(mappings) + heads)
    return np.asarray(kept + _kept_feed_forward(workload, t, rows), dtype=np.float64)


def _kept_feed_forward(workload: Workload, t: Any, rows: Any) -> Any:
    model = workload.model
    each = 6 if model.gated else 4  # 2 bytes each: input and output of the nonlinearity, and the gate
    if not model.experts:
        return each * model.ffn / t * rows
    share, split = expert_layers(model), (t if workload.options.expert_tp else 1)
    routed = expert_rows(model, rows, t, split) * (2 * 2 * model.hidden + each * model.ffn / split)
    dense = (1 - share) * each * model.dense_ffn / t * rows
    return share * (each * model.shared_ffn / t * rows + routed) + dense


def _score_bytes(workload: Workload, mappings: Mappings) -> Floats:
    if workload.options.attention == "flash":
        return np.zeros(len(mappings))
    model = workload.model
    pairs = mappings.micro_batch * model.heads / mappings.tp * float(model.seq) * (model.seq / mappings.cp)
    return np.asarray(5.0 * pairs, dtype=np.float64)  # softmax and dropout outputs, 2 bytes each, and a mask
