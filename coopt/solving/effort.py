"""What it took to find an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Effort:
    """One search: its proven bound in objective units, cuts added after recomputation, nodes, wall seconds."""

    bound: float
    cuts: int
    nodes: int
    build_s: float
    handover_s: float
    solve_s: float


class Tally(Protocol):
    """What was listed for a search: how many columns or options, how many dropped by cause, how many kept."""

    @property
    def enumerated(self) -> int: ...

    @property
    def gated(self) -> dict[str, int]: ...

    @property
    def kept(self) -> int: ...


@dataclass(frozen=True, kw_only=True)
class Counted:
    """A tally by numbers alone: what was listed was dropped or kept."""

    gated: dict[str, int]
    kept: int

    @property
    def enumerated(self) -> int:
        """How many were listed."""
        return sum(self.gated.values()) + self.kept
