"""Widths of a transformer as one rank sees them; n rows stand for the tokens of a GPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from coopt.instance.transformer import Transformer


def query_width(model: Transformer) -> int:
    """n_q: columns of the query projection over all heads."""
    return model.heads * model.head_dim


def value_width(model: Transformer) -> int:
    """n_v: columns that the attention hands to the output projection, over all heads."""
    return model.heads * model.value_size


def kv_width(model: Transformer, t: Any) -> Any:
    """n_kv: key and value columns one TP rank holds; a head is repeated where t exceeds the KV heads."""
    return np.maximum(model.kv_heads / t, 1) * (model.head_dim + model.value_size)


def latent_width(model: Transformer) -> int:
    """Columns that latent keys and values expand to, over all heads."""
    return model.heads * (model.head_dim - model.rope_dim + model.value_size)


def vocab_share(model: Transformer, t: Any) -> Any:
    """ceil(V/t): rows of the embedding one TP rank holds."""
    return -(-model.vocab // t)


def matrices(model: Transformer) -> int:
    """Matrices of a feed-forward layer."""
    return 3 if model.gated else 2


def expert_layers(model: Transformer) -> float:
    """Share of the layers that are mixtures of experts."""
    return (model.layers - model.dense_layers) / model.layers if model.experts else 0.0


def attended(model: Transformer) -> float:
    r"""Mean share of the sequence a token looks at under flash attention, over the layers: :math:`\rho`."""
    full = 0.5 if model.causal else 1.0
    windowed = min(full, model.window / model.seq)
    return ((model.layers - model.window_layers) * full + model.window_layers * windowed) / model.layers


def expert_rows(model: Transformer, rows: Any, t: Any, expert_split: Any) -> Any:
    """n_E: rows all experts of a GPU work on together, for n rows of a GPU."""
    return model.capacity * (rows * expert_split / t) * model.top_k
