"""Bytes a mapping needs on the fullest GPU.

Equations of arXiv 2205.05198, section 4, widened to grouped-query and gated layers.
"""

from __future__ import annotations

import numpy as np

from coopt.instance.transformer import Transformer
from coopt.perf.layer import kv_width, query_width, vocab_share
from coopt.perf.mapping import FULL, NONE, Floats, Mappings, micro_batches
from coopt.perf.parameters import held_parameters

GIB = 2.0**30


def memory_bytes(model: Transformer, global_batch: int, mappings: Mappings, *, flash: bool) -> Floats:
    """Bytes on the fullest GPU, the larger of the first and the last stage; shape (n,)."""
    per_chunk = (
        layer_activation_bytes(model, mappings, flash=flash) * model.layers / (mappings.pp * mappings.interleave)
    )
    first, last = chunks_in_flight(mappings, global_batch)
    logits = 4.0 * mappings.micro_batch * model.seq * vocab_share(model, mappings.tp)
    activations = np.maximum(per_chunk * first, per_chunk * last + logits)
    states = state_bytes(held_parameters(model, mappings), mappings)
    return np.asarray(states + working_bytes(model, mappings, flash=flash) + activations, dtype=np.float64)


def state_bytes(parameters: Floats, mappings: Mappings) -> Floats:
    """16-bit parameters, fp32 gradients, and the fp32 master copy and two moments, which ZeRO 1 spreads over DP."""
    return parameters * (6.0 + 12.0 / np.where(mappings.zero >= 1, mappings.dp, 1))


def layer_activation_bytes(model: Transformer, mappings: Mappings, *, flash: bool) -> Floats:
    """Bytes one layer keeps for its backward pass, for one micro-batch; shape (n,)."""
    tokens = mappings.micro_batch * model.seq
    scores = np.where(mappings.recompute == NONE, _score_bytes(model, mappings, flash=flash), 0.0)
    inputs = 2.0 * tokens * model.hidden / _norm_split(mappings)
    return np.where(mappings.recompute == FULL, inputs, _kept_bytes(model, mappings) + scores)


def working_bytes(model: Transformer, mappings: Mappings, *, flash: bool) -> Floats:
    """Bytes of the one layer that full recomputation brings back at a time; 0 otherwise."""
    whole = _kept_bytes(model, mappings) + _score_bytes(model, mappings, flash=flash)
    return np.where(mappings.recompute == FULL, whole, 0.0)


def chunks_in_flight(mappings: Mappings, global_batch: int) -> tuple[Floats, Floats]:
    """Model chunks whose activations the first and the last stage hold at their fullest moment."""
    p, v = mappings.pp, mappings.interleave
    done = micro_batches(mappings, global_batch) * v
    first = np.where(v > 1, p * v + p - 1, p)
    last = np.where(v > 1, (v - 1) * p + 1, 1)
    return np.minimum(done, first).astype(np.float64), np.minimum(done, last).astype(np.float64)


def _norm_split(mappings: Mappings) -> Floats:
    return np.where(mappings.sequence_parallel, mappings.tp, 1).astype(np.float64)


def _kept_bytes(model: Transformer, mappings: Mappings) -> Floats:
    """Everything but the attention scores: s·b·h·34/t for a plain layer with sequence parallelism."""
    t, tokens = mappings.tp, mappings.micro_batch * model.seq
    n_q = query_width(model) / t
    sharded = 2 * (n_q + kv_width(model, t)) + 2 * n_q + (6 if model.gated else 4) * model.ffn / t
    return np.asarray(tokens * (10.0 * model.hidden / _norm_split(mappings) + sharded), dtype=np.float64)


def _score_bytes(model: Transformer, mappings: Mappings, *, flash: bool) -> Floats:
    if flash:
        return np.zeros(len(mappings))
    return np.asarray(5.0 * mappings.micro_batch * model.heads * model.seq**2 / mappings.tp, dtype=np.float64)
