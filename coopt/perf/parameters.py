"""Widths of a transformer on one rank, parameters of a GPU, FLOPs per token, and utilisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from coopt.instance.hardware import Gpu, Precision
from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.perf.mapping import (
    FULL,
    NORM_FFN,
    SELECTIVE,
    Floats,
    Ints,
    Mappings,
    rows_to_time,
    stage_layers,
)

BITS: dict[Precision, int] = {"fp4": 4, "fp8": 8, "bf16": 16, "fp16": 16}
SCAN_FLOP = 7.0  # of an element of Mamba-2's width and of its state, forward


def query_width(model: Transformer) -> int:
    """n_q: columns of the query projection over all heads."""
    return model.heads * model.head_dim


def value_width(model: Transformer) -> int:
    """n_v: columns of the attention output, which enter the output projection, over all heads."""
    return model.heads * model.value_size


def kv_width(model: Transformer, t: Any) -> Any:
    """n_kv: key and value columns of one TP rank; heads are replicated where t exceeds the KV
    heads.
    """
    return np.maximum(model.kv_heads / t, 1) * (model.head_dim + model.value_size)


def latent_width(model: Transformer) -> int:
    """Columns that latent keys and values expand to, over all heads."""
    return model.heads * (model.head_dim - model.rope_dim + model.value_size)


def vocab_share(model: Transformer, t: Any) -> Any:
    """ceil(V/t): rows of the embedding on one TP rank."""
    return -(-model.vocab // t)


def ffn_matrices(model: Transformer) -> int:
    """Number of matrices in a feed-forward layer."""
    return 3 if model.gated else 2


def expert_layers(model: Transformer) -> float:
    """Share of the layers that are mixtures of experts."""
    return (model.with_ffn - model.dense_layers) / model.layers if model.experts else 0.0


def attention_share(model: Transformer) -> float:
    """Share of the layers that have attention."""
    return model.with_attention / model.layers


def mamba_share(model: Transformer) -> float:
    """Share of the layers that have a Mamba-2 mixer."""
    return model.mamba_layers / model.layers


def ffn_share(model: Transformer) -> float:
    """Share of the layers that have a feed-forward part."""
    return model.with_ffn / model.layers


def with_bits(precision: Precision, bits: int) -> Precision:
    """Return the precision if it has at least that many bits, else the one with that many."""
    if BITS[precision] >= bits:
        return precision
    return "fp8" if bits == 8 else "bf16"


def wide_share(workload: Workload) -> float:
    """Share of the layers that stay in 16 bits when the others use 8 or 4."""
    if workload.precision not in ("fp8", "fp4"):
        return 0.0
    return min(workload.options.software.wide_layers / workload.model.layers, 1.0)


def prediction_of(workload: Workload) -> Workload:
    """Return the workload whose mean layer is one that predicts a further token.

    In a hybrid model none of these layers counts among `wide_layers`.
    """
    model, options, software = (
        workload.model.prediction,
        workload.options,
        workload.options.software,
    )
    changes: dict[str, Any] = {}
    precision = with_bits(workload.precision, software.prediction_bits)
    if precision != workload.precision:
        changes["precision"] = precision
    if model is not workload.model:
        software = software.model_copy(update={"wide_layers": 0})
        changes |= {"model": model, "options": options.model_copy(update={"software": software})}
    return workload.model_copy(update=changes) if changes else workload


def further_exchanges(model: Transformer) -> float:
    """Number of mean layers with as much expert traffic as all further predictions together."""
    share = expert_layers(model)
    return model.extra_predictions * expert_layers(model.prediction) / share if share else 0.0


def block_share(model: Transformer) -> float:
    """Mixers and feed-forward parts of the mean layer, each with a norm, relative to the two of a
    plain layer.
    """
    return (model.with_attention + model.mamba_layers + model.with_ffn) / (2 * model.layers)


def mamba_width(model: Transformer) -> int:
    """n_m: columns of a Mamba-2 mixer over all its heads."""
    return model.mamba_heads * model.mamba_head_dim


def mamba_columns(model: Transformer, t: Any) -> Any:
    """Columns of the input projection of a Mamba-2 mixer on one TP rank: gate, input, B, C, and one
    step size per head.
    """
    return (
        2 * mamba_width(model) + 2 * model.mamba_groups * model.mamba_state + model.mamba_heads
    ) / t


def mamba_parameters(model: Transformer, t: Any) -> Any:
    """Parameters of a Mamba-2 mixer on one TP rank, without its convolution."""
    return model.hidden * (mamba_columns(model, t) + mamba_width(model) / t)


def expert_width(model: Transformer) -> int:
    """h_x: width of the rows that experts work on."""
    return model.expert_latent or model.hidden


def attended_share(model: Transformer) -> float:
    r"""Mean share of the sequence that a token attends to under flash attention, over all layers:
    :math:`\rho`.
    """
    full_share = 0.5 if model.causal else 1.0
    window_share = min(full_share, model.window / model.seq)
    layers = model.with_attention
    return (
        ((layers - model.window_layers) * full_share + model.window_layers * window_share) / layers
        if layers
        else 1.0
    )


def expert_rows(model: Transformer, rows: Any, t: Any, expert_split: Any) -> Any:
    """n_E: rows that all experts of a GPU process together, for `rows` tokens on a GPU."""
    return model.capacity * (rows * expert_split / t) * model.top_k


def attention_parameters(model: Transformer, t: Any) -> Any:
    """Parameters of the attention block of a layer on one TP rank."""
    h, query, output = model.hidden, query_width(model) / t, model.hidden * value_width(model) / t
    if not model.kv_rank:
        return h * (query + kv_width(model, t)) + output
    queries = h * model.q_rank + model.q_rank * query if model.q_rank else h * query
    return (
        queries
        + h * (model.kv_rank + model.rope_dim)
        + model.kv_rank * latent_width(model) / t
        + output
    )


def layer_parameters(model: Transformer, t: Any) -> Any:
    """Parameters of a layer on one TP rank, without experts and norms, averaged over all layers."""
    mixers, per_column = mixer_parameters(model, t), model.hidden * ffn_matrices(model) / t
    if not model.experts:
        return mixers + ffn_share(model) * (per_column * model.ffn)
    share = expert_layers(model)
    mixture = share * (
        per_column * model.shared_ffn + model.hidden * (model.experts + 2 * model.expert_latent)
    )
    return mixers + mixture + (ffn_share(model) - share) * per_column * model.dense_ffn


def mixer_parameters(model: Transformer, t: Any) -> Any:
    """Parameters of attention or Mamba-2 in a layer on one TP rank, averaged over all layers."""
    attention = attention_share(model) * attention_parameters(model, t)
    return (
        attention + mamba_share(model) * mamba_parameters(model, t)
        if model.mamba_layers
        else attention
    )


def layer_expert_parameters(model: Transformer, t: Any, ep: Any, *, expert_tp: bool) -> Any:
    """Expert parameters of a layer on one GPU, averaged over all layers."""
    if not model.experts:
        return np.zeros(np.shape(t))
    split = t if expert_tp else 1
    return (
        expert_layers(model)
        * ffn_matrices(model)
        * expert_width(model)
        * model.ffn
        * (model.experts / ep)
        / split
    )


def further_layers(model: Transformer, mappings: Mappings) -> Ints:
    """Layers of the last stage beyond those of a full stage; shape (n,).

    These are further predictions that do not take the place of missing layers.
    """
    _, fewer = stage_layers(model, mappings)
    return np.maximum(model.extra_predictions - fewer, 0)


def held_parameters(model: Transformer, mappings: Mappings) -> Floats:
    """P: parameters on the fullest GPU, including an embedding, without experts; shape (n,)."""
    rows, position = rows_to_time(mappings.tp, mappings.pp, mappings.interleave)
    distinct_mappings = mappings.take(rows)
    holds_both_tables = (distinct_mappings.pp == 1) & (not model.tied_embeddings)
    embedding = (
        vocab_share(model, distinct_mappings.tp) * model.hidden * np.where(holds_both_tables, 2, 1)
    )
    fullest = _held_layers(model, distinct_mappings)
    return np.asarray(
        (fullest * layer_parameters(model, distinct_mappings.tp) + embedding)[position],
        dtype=np.float64,
    )


def held_expert_parameters(model: Transformer, mappings: Mappings, *, expert_tp: bool) -> Floats:
    """P_x: expert parameters on the fullest GPU; shape (n,)."""
    if not model.experts:
        return np.zeros(len(mappings))
    fullest = _held_layers(model, mappings)
    of_layer = layer_expert_parameters(model, mappings.tp, mappings.ep, expert_tp=expert_tp)
    return np.asarray(fullest * of_layer, dtype=np.float64)


def _held_layers(model: Transformer, mappings: Mappings) -> Ints:
    """Layers on the fullest GPU; shape (n,)."""
    fullest, _ = stage_layers(model, mappings)
    return fullest + further_layers(model, mappings) if model.extra_predictions else fullest


def model_flop_per_token(model: Transformer) -> float:
    """M: forward and backward FLOPs per token, with attention counted in full."""
    j, prediction = model.extra_predictions, model.prediction
    products = model.layers * _active_parameters(model) + j * _active_parameters(prediction)
    products += (1 + j) * model.vocab * model.hidden
    return 6.0 * products + 3.0 * (
        model.layers * _mixing_flop(model) + j * _mixing_flop(prediction)
    )


def hardware_flop_per_token(model: Transformer, recompute: Any, *, flash: bool) -> Floats:
    """R: FLOPs per token including recomputation, in the convention of arXiv 2205.05198; shape of
    `recompute`.
    """
    full_flop = model.layers * (2.0 * _active_parameters(model) + _mixing_flop(model))
    selective_flop = 0.0 if flash else 3.0 * model.layers * _layer_attention_flop(model)
    feed_forward_flop = (
        2.0 * model.layers * (_active_parameters(model) - mixer_parameters(model, 1))
    )
    extra = np.select(
        [recompute == FULL, recompute == NORM_FFN, recompute == SELECTIVE],
        [full_flop, feed_forward_flop, selective_flop],
    )
    return np.asarray(model_flop_per_token(model) + extra, dtype=np.float64)


def _active_parameters(model: Transformer) -> float:
    """A: active parameters of a layer per token, averaged over all layers."""
    if not model.experts:
        return float(layer_parameters(model, 1))
    routed_parameters = (
        expert_layers(model) * ffn_matrices(model) * expert_width(model) * model.top_k * model.ffn
    )
    return float(layer_parameters(model, 1) + routed_parameters)


def _layer_attention_flop(model: Transformer) -> float:
    """Forward FLOPs per token of attention scores and context in the mean layer."""
    return attention_share(model) * (
        2.0 * model.heads * (model.head_dim + model.value_size) * model.seq
    )


def _mixing_flop(model: Transformer) -> float:
    """Forward FLOPs per token in the mean layer that combine tokens: of attention and of the
    Mamba-2 scan.

    The latter are counted as in Megatron Bridge (src/megatron/bridge/training/utils/flop_utils.py).
    """
    scan_flop = mamba_share(model) * SCAN_FLOP * mamba_width(model) * model.mamba_state
    return _layer_attention_flop(model) + scan_flop


def model_parameters(model: Transformer) -> tuple[float, float]:
    """Total and active parameters of a whole model, without norms and further predictions."""
    embeddings = model.vocab * model.hidden * (1 if model.tied_embeddings else 2)
    experts = float(layer_expert_parameters(model, 1, 1, expert_tp=True))
    total = model.layers * (float(layer_parameters(model, 1)) + experts) + embeddings
    return total, model.layers * _active_parameters(model) + embeddings


def utilisation(
    workload: Workload, gpu: Gpu, gpus: int, recompute: Any, time_s: Any
) -> tuple[Floats, Floats]:
    """MFU and HFU of an iteration of `time_s` seconds on `gpus` GPUs, as shares of the peak of the
    workload's precision.
    """
    tokens_per_peak = workload.tokens_per_iteration / (
        time_s * gpus * gpu.peak_flop_s(workload.precision)
    )
    flash = workload.options.attention == "flash"
    mfu = model_flop_per_token(workload.model) * tokens_per_peak
    return mfu, hardware_flop_per_token(workload.model, recompute, flash=flash) * tokens_per_peak
