"""The shape of a dense transformer."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from coopt.instance.base import Count, Entry


class Transformer(Entry):
    """A decoder-only language model; symbols of docs/model.md."""

    layers: Annotated[Count, Field(description="L")]
    hidden: Annotated[Count, Field(description="h")]
    heads: Annotated[Count, Field(description="a: attention heads")]
    kv_heads: Annotated[Count, Field(description="q: key and value heads")]
    head_dim: Annotated[Count, Field(description="e: size of a head")]
    ffn: Annotated[Count, Field(description="f: width of the feed-forward layer (of one expert)")]
    gated: Annotated[bool, Field(description="gated feed-forward layer (SwiGLU): three matrices instead of two")] = (
        False
    )
    vocab: Annotated[Count, Field(description="V: tokens in the vocabulary")]
    seq: Annotated[Count, Field(description="s: sequence length (tokens)")]
    tied_embeddings: Annotated[bool, Field(description="input and output embedding are one matrix")] = True
    causal: Annotated[bool, Field(description="a token attends to earlier ones only")] = True
    experts: Annotated[int, Field(ge=0, description="experts of a mixture-of-experts layer; 0 for a dense model")] = 0
    top_k: Annotated[int, Field(ge=0, description="experts a token visits; 0 for a dense model")] = 0

    @model_validator(mode="after")
    def _heads_match(self) -> Transformer:
        if self.heads % self.kv_heads:
            raise ValueError(f"kv_heads = {self.kv_heads} does not divide heads = {self.heads}, needs a divisor")
        if (self.experts > 0) != (self.top_k > 0) or self.top_k > self.experts:
            raise ValueError(
                f"experts = {self.experts}, top_k = {self.top_k}: needs 1 <= top_k <= experts, or 0 for both"
            )
        return self
