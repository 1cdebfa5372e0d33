"""How a workload is cut: the mapping and its placement, as plain numbers."""

from __future__ import annotations

from typing import NamedTuple

from coopt.instance.transformer import Transformer
from coopt.plan.schema import MappingChoice


class Split(NamedTuple):
    """A mapping; symbols t, p, d, b, v of docs/model.md."""

    tp: int
    pp: int
    dp: int
    micro_batch: int
    interleave: int
    recompute: str
    sequence_parallel: bool
    zero: int

    def micro_batches(self, global_batch: int) -> int:
        """m: micro-batches each pipeline runs in one iteration."""
        return global_batch // (self.dp * self.micro_batch)


class Placement(NamedTuple):
    """Parts of each dimension inside an HB domain and across domains."""

    tp_in: int
    tp_across: int
    pp_in: int
    pp_across: int
    dp_in: int
    dp_across: int


class Shard(NamedTuple):
    """What tensor parallelism leaves of one layer on a GPU, in columns."""

    queries: int
    keys_values: int
    heads: int
    ffn: int
    vocab: int


def split_of(mapping: MappingChoice) -> Split:
    """The mapping of a plan, without the dimensions that are 1."""
    return Split(
        tp=mapping.tp,
        pp=mapping.pp,
        dp=mapping.dp,
        micro_batch=mapping.micro_batch,
        interleave=mapping.interleave,
        recompute=mapping.recompute,
        sequence_parallel=mapping.sequence_parallel,
        zero=mapping.zero,
    )


def shard(model: Transformer, tp: int) -> Shard:
    """Widths on one of `tp` GPUs: n_q/t, n_kv, a/t, f/t, ceil(V/t)."""
    return Shard(
        queries=model.heads * model.head_dim // tp,
        keys_values=2 * max(model.kv_heads // tp, 1) * model.head_dim,
        heads=model.heads // tp,
        ffn=model.ffn // tp,
        vocab=-(-model.vocab // tp),
    )


def parameters(model: Transformer, split: Split) -> float:
    """P: parameters the fullest GPU holds."""
    part = shard(model, split.tp)
    copies = 2 if split.pp == 1 and not model.tied_embeddings else 1
    return model.layers / split.pp * layer_parameters(model, split.tp) + part.vocab * model.hidden * copies


def layer_parameters(model: Transformer, tp: int) -> int:
    """layer(t): parameters of one layer on a GPU, without norms and biases."""
    part = shard(model, tp)
    attention = model.hidden * (part.queries + part.keys_values) + model.hidden * part.queries
    return attention + (3 if model.gated else 2) * model.hidden * part.ffn
