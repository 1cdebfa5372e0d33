"""Flows of a workload: data only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from coopt.perf.mapping import Bools, Floats, Ints
from coopt.traffic.ranks import Group
from coopt.traffic.volumes import Kind, Phase


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Flows of one collective in one phase: rank `src[i]` sends `size_bytes[i]` to `dst[i]` in an iteration.

    `group[i]` numbers the ring, all-to-all or pipeline a flow belongs to. Arrays of shape (flows,).
    """

    kind: Kind
    collective: Group | Literal["hop", "pair"]
    phase: Phase
    src: Ints
    dst: Ints
    group: Ints
    size_bytes: Floats

    def take(self, rows: Bools) -> Stream:
        """The chosen flows."""
        return replace(
            self, src=self.src[rows], dst=self.dst[rows], group=self.group[rows], size_bytes=self.size_bytes[rows]
        )


@dataclass(frozen=True, kw_only=True)
class Demand:
    """The streams of one workload on `ranks` GPUs, `active` in each HB domain; rank = domain · active + rank in it.

    `trees` says whether any all-reduce goes by trees in place of a ring.
    """

    workload: str
    ranks: int
    active: int
    streams: tuple[Stream, ...]
    trees: bool = False
