"""How many parameters a GPU holds, and how many FLOPs a token takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from coopt.instance.transformer import Transformer
from coopt.perf.layer import kv_width, query_width, vocab_share
from coopt.perf.mapping import FULL, SELECTIVE, Floats, Mappings


def layer_parameters(model: Transformer, t: Any) -> Any:
    """Parameters of one layer on one TP rank; norms and biases (below 0.1%) left out."""
    h, n_q = model.hidden, query_width(model) / t
    return h * (n_q + kv_width(model, t)) + h * n_q + (3 if model.gated else 2) * h * model.ffn / t


def held_parameters(model: Transformer, mappings: Mappings) -> Floats:
    """P: parameters of the fullest GPU, which holds an embedding beside its layers; shape (n,)."""
    both = (mappings.pp == 1) & (not model.tied_embeddings)
    embedding = vocab_share(model, mappings.tp) * model.hidden * np.where(both, 2, 1)
    return np.asarray(model.layers / mappings.pp * layer_parameters(model, mappings.tp) + embedding, dtype=np.float64)


def model_flop_per_token(model: Transformer) -> float:
    """M: FLOPs of a token forward and backward, attention counted in full."""
    return 6.0 * (model.layers * _matrix_parameters(model) + model.vocab * model.hidden) + 3 * _attention_flop(model)


def hardware_flop_per_token(model: Transformer, recompute: Any, *, flash: bool) -> Floats:
    """H: FLOPs of a token with what is recomputed, in the convention of arXiv 2205.05198; shape of `recompute`."""
    full = 2.0 * model.layers * _matrix_parameters(model) + _attention_flop(model)
    selective = 0.0 if flash else 3 * _attention_flop(model)
    extra = np.where(recompute == FULL, full, np.where(recompute == SELECTIVE, selective, 0.0))
    return np.asarray(model_flop_per_token(model) + extra, dtype=np.float64)


def _matrix_parameters(model: Transformer) -> int:
    n_q = query_width(model)
    attention = 2 * model.hidden * n_q + 2 * model.hidden * model.kv_heads * model.head_dim
    return attention + (3 if model.gated else 2) * model.hidden * model.ffn


def _attention_flop(model: Transformer) -> float:
    """FLOPs of scores and context of a token, forward, over all layers."""
    return 4.0 * model.layers * query_width(model) * model.seq
