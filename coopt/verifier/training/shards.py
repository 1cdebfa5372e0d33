"""What a mapping leaves on one GPU: rows, columns and experts of a layer, and parameters."""

from __future__ import annotations

from typing import NamedTuple

from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.verifier.training.mappings import ScalarMapping


class Widths(NamedTuple):
    """Columns of attention on one of t GPUs: n_q/t, n_v/t, n_kv."""

    queries: int
    values: int
    keys_values: int


class Shard(NamedTuple):
    """One GPU's part of a layer and micro-batch; `expert_*` are 0 (and `expert_cut` 1) for a dense model."""

    rows: int
    """n"""
    widths: Widths
    heads: int
    """a/t"""
    vocab: int
    """ceil(V/t)"""
    norm_parts: int
    """z"""
    expert_cut: int
    """t_x"""
    experts: int
    """E_x"""
    expert_rows: float
    """n_x"""

    @property
    def routed_rows(self) -> float:
        """n_E: rows of all experts of a GPU."""
        return self.experts * self.expert_rows


def widths_of(model: Transformer, tp: int) -> Widths:
    """Columns of attention on one of `tp` GPUs; a KV head stands on every rank that needs it."""
    pair = model.head_dim + model.value_size
    return Widths(
        model.heads * model.head_dim // tp,
        model.heads * model.value_size // tp,
        max(model.kv_heads // tp, 1) * pair,
    )


def shard(workload: Workload, split: ScalarMapping) -> Shard:
    """What one GPU works on."""
    model, tp = workload.model, split.tp
    rows = split.micro_batch * model.seq // split.cp
    cut = tp if workload.options.expert_tp and model.experts else 1
    held = model.experts // split.ep
    return Shard(
        rows=rows,
        widths=widths_of(model, tp),
        heads=model.heads // tp,
        vocab=-(-model.vocab // tp),
        norm_parts=tp if split.sequence_parallel else 1,
        expert_cut=cut,
        experts=held,
        expert_rows=model.capacity * (rows * cut / tp) * model.top_k / held if held else 0.0,
    )


def expert_copies(workload: Workload, split: ScalarMapping) -> int:
    """y_x: GPUs that hold the same experts."""
    ranks = split.cp * split.dp if workload.options.expert_tp else split.tp * split.cp * split.dp
    return ranks // split.ep


def expert_share(model: Transformer) -> float:
    """Part of the layers that have experts: (L - L_d)/L, 0 for a dense model."""
    return (model.layers - model.dense_layers) / model.layers if model.experts else 0.0


def chunks_are_whole(workload: Workload, split: ScalarMapping) -> bool:
    """Whether a chunk's shards are gathered, and its gradients scattered, once for the p micro-batches it works on."""
    return workload.options.software.shards_in_rounds and split.interleave > 1


class HeldParameters(NamedTuple):
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


def held_layers(model: Transformer, split: ScalarMapping) -> int:
    """Layers of the fullest GPU: a full stage, or the last one with its further predictions."""
    full = split.stage_layers(model.layers)
    return max(full, full - split.last_lacks(model.layers, model.extra_predictions) + model.extra_predictions)


def held_parameters(workload: Workload, split: ScalarMapping) -> HeldParameters:
    """What the fullest GPU holds."""
    model, tp = workload.model, split.tp
    layers, matrix_size = held_layers(model, split), matrices(model) * model.hidden
    common, experts = float(attention_parameters(model, tp)), 0.0
    if model.experts:
        share = expert_share(model)
        common += share * (matrix_size * model.shared_ffn / tp + model.hidden * model.experts)
        common += (1 - share) * matrix_size * model.dense_ffn / tp
        cut = tp if workload.options.expert_tp else 1
        experts = share * matrix_size * model.ffn * (model.experts // split.ep) / cut
    else:
        common += matrix_size * model.ffn / tp
    tables = 2 if split.pp == 1 and not model.tied_embeddings else 1
    embedding = -(-model.vocab // tp) * model.hidden * tables
    return HeldParameters(common, experts, layers * common + embedding, layers * experts)


def sharded_parameters(workload: Workload, held: HeldParameters, split: ScalarMapping) -> float:
    """Q: parameters of a GPU when the ranks that hold the same ones share them out."""
    return held.common / (split.dp * split.cp) + held.experts / expert_copies(workload, split)
