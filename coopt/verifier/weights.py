"""How many parameters a GPU holds."""

from __future__ import annotations

from typing import NamedTuple

from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.verifier.shards import expert_copies, expert_share, widths_of
from coopt.verifier.split import Split


class Held(NamedTuple):
    """Parameters of the fullest GPU, norms and biases left out."""

    layer: float
    """P_layer: of a layer without its experts"""
    expert_layer: float
    """P_xlayer: of the experts of a layer"""
    common: float
    """P: of a stage, without experts"""
    experts: float
    """P_x: of the experts of a stage"""


def matrices(model: Transformer) -> int:
    """Matrices of a feed-forward layer."""
    return 3 if model.gated else 2


def attention_parameters(model: Transformer, tp: int) -> int:
    """Parameters of attention on one of `tp` GPUs."""
    part, h = widths_of(model, tp), model.hidden
    output = h * part.values
    if not model.kv_rank:
        return h * (part.queries + part.keys_values) + output
    queries = model.q_rank * (h + part.queries) if model.q_rank else h * part.queries
    return queries + h * (model.kv_rank + model.rope_dim) + model.kv_rank * latent_width(model, tp) + output


def latent_width(model: Transformer, tp: int) -> int:
    """Columns that latent attention unfolds keys and values to: a·(e - e_r + e_v)/t."""
    return model.heads * (model.head_dim - model.rope_dim + model.value_size) // tp


def held_layers(model: Transformer, split: Split) -> int:
    """Layers of the fullest GPU: a full stage, or the last one with its further predictions."""
    full = split.stage_layers(model.layers)
    return max(full, full - split.last_lacks(model.layers) + model.extra_predictions)


def held_by(workload: Workload, split: Split) -> Held:
    """What the fullest GPU holds."""
    model, tp = workload.model, split.tp
    layers, each = held_layers(model, split), matrices(model) * model.hidden
    common, experts = float(attention_parameters(model, tp)), 0.0
    if model.experts:
        share = expert_share(model)
        common += share * (each * model.shared_ffn / tp + model.hidden * model.experts)
        common += (1 - share) * each * model.dense_ffn / tp
        cut = tp if workload.options.expert_tp else 1
        experts = share * each * model.ffn * (model.experts // split.ep) / cut
    else:
        common += each * model.ffn / tp
    tables = 2 if split.pp == 1 and not model.tied_embeddings else 1
    embedding = -(-model.vocab // tp) * model.hidden * tables
    return Held(common, experts, layers * common + embedding, layers * experts)


def shared_out(workload: Workload, held: Held, split: Split) -> float:
    """Q: parameters of a GPU when the ranks that hold the same ones share them out."""
    return held.common / (split.dp * split.cp) + held.experts / expert_copies(workload, split)
