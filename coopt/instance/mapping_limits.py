"""Which splits of a workload are allowed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from coopt.instance.base import Count, Table, one_or_many

Recompute = Literal["none", "selective", "full", "norm+act", "norm+ffn"]
Outermost = Literal["pp", "dp"]
Degrees = Annotated[tuple[Count, ...], one_or_many, Field(min_length=1)]


class MappingLimits(Table):
    """Values each part of a mapping may take; what is left out is free (docs/network.md, Mappings)."""

    tp: Annotated[Degrees | None, Field(description="tensor parallel degrees allowed")] = None
    pp: Annotated[Degrees | None, Field(description="pipeline parallel degrees allowed")] = None
    dp: Annotated[Degrees | None, Field(description="data parallel degrees allowed")] = None
    cp: Annotated[Degrees, Field(description="context parallel degrees allowed")] = (1, 2, 4, 8, 16)
    ep: Annotated[Degrees | None, Field(description="expert parallel degrees allowed; 1 for a dense model")] = None
    micro_batch: Annotated[Degrees, Field(description="sequences in a micro-batch")] = (1, 2, 4, 8, 16)
    interleave: Annotated[Degrees | None, Field(description="model chunks of a GPU")] = None
    recompute: Annotated[
        Annotated[tuple[Recompute, ...], one_or_many, Field(min_length=1)] | None,
        Field(description="activations computed again in the backward pass"),
    ] = None
    sequence_parallel: Annotated[
        tuple[bool, ...], one_or_many, Field(description="norms split over TP ranks", min_length=1)
    ] = (True, False)
    zero: Annotated[tuple[Literal[0, 1, 2, 3], ...], one_or_many, Field(description="ZeRO stages", min_length=1)] = (
        0,
        1,
        2,
        3,
    )
    outermost: Annotated[
        tuple[Outermost, ...],
        one_or_many,
        Field(description="dimension that lies farthest apart across domains: stages, or replicas", min_length=1),
    ] = ("pp", "dp")
