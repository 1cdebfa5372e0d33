"""Widths of a transformer as one rank sees them, parameters that a GPU holds, FLOPs of a token, utilisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from coopt.instance.hardware import Gpu
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.perf.mapping import FULL, NORM_FFN, SELECTIVE, Floats, Ints, Mappings, representatives, stage_layers


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


def ffn_matrices(model: Transformer) -> int:
    """Matrices of a feed-forward layer."""
    return 3 if model.gated else 2


def expert_layers(model: Transformer) -> float:
    """Share of the layers that are mixtures of experts."""
    return (model.layers - model.dense_layers) / model.layers if model.experts else 0.0


def attended_share(model: Transformer) -> float:
    r"""Mean share of the sequence a token looks at under flash attention, over the layers: :math:`\rho`."""
    full = 0.5 if model.causal else 1.0
    windowed = min(full, model.window / model.seq)
    return ((model.layers - model.window_layers) * full + model.window_layers * windowed) / model.layers


def expert_rows(model: Transformer, rows: Any, t: Any, expert_split: Any) -> Any:
    """n_E: rows all experts of a GPU work on together, for n rows of a GPU."""
    return model.capacity * (rows * expert_split / t) * model.top_k


def attention_parameters(model: Transformer, t: Any) -> Any:
    """Parameters of the attention block of a layer on one TP rank."""
    h, query, output = model.hidden, query_width(model) / t, model.hidden * value_width(model) / t
    if not model.kv_rank:
        return h * (query + kv_width(model, t)) + output
    queries = h * model.q_rank + model.q_rank * query if model.q_rank else h * query
    return queries + h * (model.kv_rank + model.rope_dim) + model.kv_rank * latent_width(model) / t + output


def layer_parameters(model: Transformer, t: Any) -> Any:
    """Parameters of a layer on one TP rank without its experts, the mean over all layers; norms left out."""
    wide = model.hidden * ffn_matrices(model) / t
    if not model.experts:
        return attention_parameters(model, t) + wide * model.ffn
    share = expert_layers(model)
    routed = share * (wide * model.shared_ffn + model.hidden * model.experts)
    return attention_parameters(model, t) + routed + (1 - share) * wide * model.dense_ffn


def layer_expert_parameters(model: Transformer, t: Any, ep: Any, *, expert_tp: bool) -> Any:
    """Parameters of the experts of a layer on one GPU, the mean over all layers."""
    if not model.experts:
        return np.zeros(np.shape(t))
    split = t if expert_tp else 1
    return expert_layers(model) * ffn_matrices(model) * model.hidden * model.ffn * (model.experts / ep) / split


def further_layers(model: Transformer, mappings: Mappings) -> Ints:
    """Layers of the last stage beyond those of a full one: further predictions that find no missing layer; (n,)."""
    _, fewer = stage_layers(model, mappings)
    return np.maximum(model.extra_predictions - fewer, 0)


def held_parameters(model: Transformer, mappings: Mappings) -> Floats:
    """P: parameters of the fullest GPU without its experts, an embedding among them; shape (n,)."""
    rows, position = representatives(mappings.tp, mappings.pp, mappings.interleave)
    few = mappings.take(rows)
    both = (few.pp == 1) & (not model.tied_embeddings)
    embedding = vocab_share(model, few.tp) * model.hidden * np.where(both, 2, 1)
    fullest = _held_layers(model, few)
    return np.asarray((fullest * layer_parameters(model, few.tp) + embedding)[position], dtype=np.float64)


def held_expert_parameters(model: Transformer, mappings: Mappings, *, expert_tp: bool) -> Floats:
    """P_x: parameters in the experts of the fullest GPU; shape (n,)."""
    if not model.experts:
        return np.zeros(len(mappings))
    fullest = _held_layers(model, mappings)
    of_layer = layer_expert_parameters(model, mappings.tp, mappings.ep, expert_tp=expert_tp)
    return np.asarray(fullest * of_layer, dtype=np.float64)


def _held_layers(model: Transformer, mappings: Mappings) -> Ints:
    """Layers of the fullest GPU; shape (n,)."""
    fullest, _ = stage_layers(model, mappings)
    return fullest + further_layers(model, mappings) if model.extra_predictions else fullest


def model_flop_per_token(model: Transformer) -> float:
    """M: FLOPs of a token forward and backward, attention counted in full."""
    further = model.extra_predictions * (_active_parameters(model) + model.vocab * model.hidden)
    products = model.layers * _active_parameters(model) + model.vocab * model.hidden + further
    return 6.0 * products + 3.0 * (model.layers + model.extra_predictions) * _layer_attention_flop(model)


def hardware_flop_per_token(model: Transformer, recompute: Any, *, flash: bool) -> Floats:
    """R: FLOPs of a token with what is recomputed, in the convention of arXiv 2205.05198; shape of `recompute`."""
    full = model.layers * (2.0 * _active_parameters(model) + _layer_attention_flop(model))
    selective = 0.0 if flash else 3.0 * model.layers * _layer_attention_flop(model)
    feed_forward = 2.0 * model.layers * (_active_parameters(model) - attention_parameters(model, 1))
    extra = np.select(
        [recompute == FULL, recompute == NORM_FFN, recompute == SELECTIVE], [full, feed_forward, selective]
    )
    return np.asarray(model_flop_per_token(model) + extra, dtype=np.float64)


def _active_parameters(model: Transformer) -> float:
    """A: parameters of a layer that a token meets, the mean over all layers."""
    if not model.experts:
        return float(layer_parameters(model, 1))
    routed = expert_layers(model) * ffn_matrices(model) * model.hidden * model.top_k * model.ffn
    return float(layer_parameters(model, 1) + routed)


def _layer_attention_flop(model: Transformer) -> float:
    """FLOPs of scores and context of a token in one layer, forward."""
    return 2.0 * model.heads * (model.head_dim + model.value_size) * model.seq


def model_parameters(model: Transformer) -> tuple[float, float]:
    """Parameters of a whole model, and those of them that a token meets; norms and further predictions left out."""
    embeddings = model.vocab * model.hidden * (1 if model.tied_embeddings else 2)
    experts = float(layer_expert_parameters(model, 1, 1, expert_tp=True))
    total = model.layers * (float(layer_parameters(model, 1)) + experts) + embeddings
    return total, model.layers * _active_parameters(model) + embeddings


def utilisation(workload: Workload, gpu: Gpu, gpus: int, recompute: Any, time_s: Any) -> tuple[Floats, Floats]:
    """MFU and HFU (shares of the peak of the workload's precision) of an iteration of `time_s` on `gpus` GPUs."""
    tokens_per_peak = workload.tokens_per_iteration / (time_s * gpus * gpu.peak_flop_s(workload.precision))
    flash = workload.options.attention == "flash"
    mfu = model_flop_per_token(workload.model) * tokens_per_peak
    return mfu, hardware_flop_per_token(workload.model, recompute, flash=flash) * tokens_per_peak
