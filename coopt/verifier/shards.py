"""What a mapping leaves of one layer on a GPU: rows, columns, experts."""

from __future__ import annotations

from typing import NamedTuple

from coopt.instance.transformer import Transformer
from coopt.instance.workload import Workload
from coopt.verifier.split import Split


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


def shard(workload: Workload, split: Split) -> Shard:
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


def expert_copies(workload: Workload, split: Split) -> int:
    """y_x: GPUs that hold the same experts."""
    ranks = split.cp * split.dp if workload.options.expert_tp else split.tp * split.cp * split.dp
    return ranks // split.ep


def expert_share(model: Transformer) -> float:
    """Part of the layers that have experts: (L - L_d)/L, 0 for a dense model."""
    return (model.layers - model.dense_layers) / model.layers if model.experts else 0.0
