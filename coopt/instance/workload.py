"""What the cluster has to train, how fast, and which splits are allowed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from coopt.instance.base import Count, Name, Part, Positive, one_or_many
from coopt.instance.catalog import named
from coopt.instance.transformer import Transformer

Recompute = Literal["none", "selective", "full"]
Degrees = Annotated[tuple[Count, ...], one_or_many, Field(min_length=1)]


class MappingLimits(Part):
    """Values each part of a mapping may take; what is left out is free (docs/network.md, Mappings)."""

    tp: Annotated[Degrees | None, Field(description="tensor parallel degrees allowed")] = None
    pp: Annotated[Degrees | None, Field(description="pipeline parallel degrees allowed")] = None
    dp: Annotated[Degrees | None, Field(description="data parallel degrees allowed")] = None
    cp: Annotated[
        tuple[Literal[1], ...], one_or_many, Field(description="context parallel degrees; only 1 for now", min_length=1)
    ] = (1,)
    ep: Annotated[
        tuple[Literal[1], ...], one_or_many, Field(description="expert parallel degrees; only 1 for now", min_length=1)
    ] = (1,)
    micro_batch: Annotated[Degrees, Field(description="sequences in a micro-batch")] = (1, 2, 4, 8, 16)
    interleave: Annotated[Degrees | None, Field(description="model chunks of a GPU")] = None
    recompute: (
        Annotated[
            tuple[Recompute, ...],
            one_or_many,
            Field(description="activations computed again in the backward pass", min_length=1),
        ]
        | None
    ) = None
    sequence_parallel: Annotated[
        tuple[bool, ...], one_or_many, Field(description="norms split over TP ranks", min_length=1)
    ] = (True, False)
    zero: Annotated[tuple[Literal[0, 1], ...], one_or_many, Field(description="ZeRO stages", min_length=1)] = (0, 1)


class Options(Part):
    """How the training software works."""

    attention: Annotated[
        Literal["flash", "unfused"], Field(description="fused attention kernel, or scores written to memory")
    ] = "flash"
    dp_mode: Annotated[Literal["sync"], Field(description="gradients are reduced after the last micro-batch")] = "sync"
    tp_sync_fraction: Annotated[
        float, Field(ge=1, le=1, description="share of activations kept equal over TP ranks; only 1 for now")
    ] = 1.0
    transport: Annotated[Literal["rdma"], Field(description="network transport")] = "rdma"


ROUND_UP = 1.0 + 2.0**-50
BOUNDS = ("max_iteration_time_s", "min_tokens_per_s", "train_days")


class Workload(Part):
    """One model to train within a bound."""

    name: Name
    model: Annotated[Transformer, named("model")]
    global_batch: Annotated[Count, Field(description="sequences in one iteration")]
    precision: Annotated[Literal["bf16", "fp16"], Field(description="16-bit format")] = "bf16"
    max_iteration_time_s: Annotated[Positive | None, Field(description="bound: seconds for one iteration")] = None
    min_tokens_per_s: Annotated[Positive | None, Field(description="bound: tokens trained each second")] = None
    train_days: Annotated[Positive | None, Field(description="bound: days to train `train_tokens`")] = None
    train_tokens: Annotated[Positive | None, Field(description="tokens of the whole training run")] = None
    mapping: MappingLimits = MappingLimits()
    options: Options = Options()

    @model_validator(mode="after")
    def _one_bound(self) -> Workload:
        given = [key for key in BOUNDS if getattr(self, key) is not None]
        if len(given) != 1:
            what = " and ".join(given) if given else "no bound"
            raise ValueError(
                f"{what} given, needs exactly one of max_iteration_time_s, min_tokens_per_s, "
                "train_days (with train_tokens)"
            )
        if (self.train_days is None) != (self.train_tokens is None):
            raise ValueError("train_days and train_tokens belong together, needs both or neither")
        if not 1e-9 <= self.bound_s <= 1e15:
            raise ValueError(f"{given[0]} amounts to {self.bound_s:.3g} s an iteration, needs 1e-9 to 1e15 s")
        if self.model.experts:
            raise ValueError(f"model {self.model.name!r} is a mixture of experts, needs a dense model (experts = 0)")
        return self

    @property
    def tokens_per_iteration(self) -> int:
        """Tokens in one global batch."""
        return self.global_batch * self.model.seq

    def in_own_units(self, time_s: float) -> str:
        """An iteration time in the terms the bound was given in; empty where these are seconds."""
        if self.min_tokens_per_s is not None:
            return f"{self.tokens_per_iteration / time_s:,.0f} tokens/s"
        if self.train_tokens is not None:
            days = time_s * self.train_tokens / self.tokens_per_iteration / 86400.0
            return f"{days:.4g} days for {self.train_tokens:.4g} tokens"
        return ""

    @property
    def bound_s(self) -> float:
        """The bound as seconds for one iteration, whichever way it was written.

        Conversions round up by a few units in the last place, so that a rate a plan attains is a bound it meets.
        """
        if self.max_iteration_time_s is not None:
            return self.max_iteration_time_s
        if self.min_tokens_per_s is not None:
            return self.tokens_per_iteration / self.min_tokens_per_s * ROUND_UP
        assert self.train_days is not None
        assert self.train_tokens is not None
        return self.train_days * 86400.0 * self.tokens_per_iteration / self.train_tokens * ROUND_UP
