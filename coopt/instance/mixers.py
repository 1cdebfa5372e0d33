"""Kinds of layers: what mixes the tokens of a sequence, and encoders in front of a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from coopt.instance.base import MAX_COUNT, Count, Table, Whole
from coopt.instance.texts import broken, refuse

OrNone = Annotated[Whole, Field(ge=0, le=MAX_COUNT)]


class Attention(Table):
    """Attention of any kind: full, grouped, latent, windowed, sparse or compressed; symbols as in
    docs/model.md.
    """

    heads: Annotated[Count, Field(description="a: attention heads")]
    kv_heads: Annotated[Count, Field(description="q: key and value heads")]
    head_dim: Annotated[Count, Field(description="e: size of a head")]
    value_dim: Annotated[
        OrNone, Field(description="size of a value head; 0 where it is head_dim")
    ] = 0
    causal: Annotated[bool, Field(description="a token attends to earlier ones only")] = True
    q_rank: Annotated[
        OrNone, Field(description="rank of the queries, as in latent attention; 0 for full")
    ] = 0
    kv_rank: Annotated[
        OrNone,
        Field(description="latent attention: rank of keys and values; 0 for ordinary attention"),
    ] = 0
    rope_dim: Annotated[
        OrNone, Field(description="latent attention: part of head_dim that carries positions")
    ] = 0
    window: Annotated[OrNone, Field(description="tokens a sliding-window layer looks back")] = 0
    output_gate: Annotated[
        bool, Field(description="what attention gives is multiplied by a gate of as many columns")
    ] = False
    shared_kv: Annotated[bool, Field(description="keys serve as values too")] = False
    output_rank: Annotated[
        OrNone,
        Field(description="columns that each group of heads is narrowed to on its way out; 0: all"),
    ] = 0
    output_groups: Annotated[OrNone, Field(description="groups of heads that are narrowed")] = 0
    compression: Annotated[
        Count,
        Field(description="tokens that one key and value stands for, beside those of a window"),
    ] = 1
    index_heads: Annotated[
        OrNone,
        Field(description="sparse attention: heads of the indexer that ranks keys; 0 without one"),
    ] = 0
    index_dim: Annotated[OrNone, Field(description="sparse attention: size of such a head")] = 0
    index_tokens: Annotated[
        OrNone, Field(description="sparse attention: keys that a query attends to")
    ] = 0

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        complaints = "; ".join(self._complaints())
        refuse((complaints, complaints))
        return self

    def _complaints(self) -> Iterator[str]:
        index = (self.index_heads, self.index_dim, self.index_tokens)
        return broken(
            (
                self.heads % self.kv_heads,
                f"kv_heads = {self.kv_heads}: needs a divisor of heads = {self.heads}",
            ),
            (
                self.kv_rank == 0 and self.rope_dim,
                f"rope_dim = {self.rope_dim}: applies to latent attention only, needs kv_rank > 0",
            ),
            (
                self.kv_rank and self.rope_dim >= self.head_dim,
                f"rope_dim = {self.rope_dim}: needs less than head_dim = {self.head_dim}",
            ),
            (
                self.shared_kv and (self.kv_rank or self.value_size != self.head_dim),
                f"shared_kv = true, value_dim = {self.value_dim}, kv_rank = {self.kv_rank}: needs"
                f" kv_rank = 0, and value_dim = 0 or {self.head_dim} (head_dim)",
            ),
            (
                (self.output_rank > 0) != (self.output_groups > 0)
                or self.heads % max(self.output_groups, 1),
                f"output_rank = {self.output_rank}, output_groups = {self.output_groups}: needs"
                f" both or neither, and groups that divide heads = {self.heads}",
            ),
            (
                any(index) != all(index),
                f"index_heads = {self.index_heads}, index_dim = {self.index_dim}, index_tokens ="
                f" {self.index_tokens}: needs all three or none",
            ),
        )

    @property
    def value_size(self) -> int:
        """Size of a value head."""
        return self.value_dim or self.head_dim


class AttentionLayers(Attention):
    """Layers of a model with an attention of their own."""

    kind: Annotated[Literal["attention"], Field(description="`attention`")]
    layers: Annotated[Count, Field(description="layers that have it")]


ScanKind = Literal["mamba-2", "gated-deltanet", "kda", "lightning"]


class ScanLayers(Table):
    """Layers with a linear mixer, which carries a state along the sequence."""

    kind: Annotated[ScanKind, Field(description="which one")]
    layers: Annotated[Count, Field(description="layers that have it")]
    heads: Annotated[Count, Field(description="heads of values")]
    head_dim: Annotated[Count, Field(description="size of such a head")]
    groups: Annotated[Count, Field(description="heads of keys and queries (B and C of Mamba-2)")]
    state: Annotated[Count, Field(description="size of such a head, rows of the state")]
    gate_rank: Annotated[
        OrNone, Field(description="rank of the gate on what it gives; 0 for full")
    ] = 0
    decay_rank: Annotated[
        OrNone,
        Field(description="rank of the decay of KDA, which is one of each key column; 0: full"),
    ] = 0

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        text = f"groups = {self.groups}: needs a divisor of heads = {self.heads}"
        refuse((self.heads % self.groups, text))
        return self


class Encoder(Table):
    """Transformer layers in front of a model, such as a vision tower: every token of an input
    attends to all others of that input.
    """

    layers: Annotated[Count, Field(description="layers")]
    hidden: Annotated[Count, Field(description="width of a layer")]
    heads: Annotated[Count, Field(description="attention heads")]
    head_dim: Annotated[Count, Field(description="size of a head")]
    ffn: Annotated[Count, Field(description="width of the feed-forward layer")]
    gated: Annotated[bool, Field(description="gated feed-forward layer")] = False
    tokens: Annotated[Count, Field(description="tokens of an input, such as patches of an image")]
    inputs: Annotated[Count, Field(description="inputs of a sequence, such as images")] = 1
    merge: Annotated[
        Count, Field(description="tokens that the projector merges to one of the model")
    ] = 1
    projector: Annotated[
        OrNone,
        Field(description="width inside the projector to the model; 0 where it is one matrix"),
    ] = 0
    projectors: Annotated[
        Count, Field(description="projectors, of the last layer and of some before it")
    ] = 1


Mixer = Attention | ScanLayers
MixerLayers = Annotated[AttentionLayers | ScanLayers, Field(discriminator="kind")]
