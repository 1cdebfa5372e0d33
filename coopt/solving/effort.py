"""What it took to find an answer."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

from coopt.solving.highs import SolverAnswer


@dataclass(frozen=True, kw_only=True)
class Effort:
    """One search: its proven bound in objective units, cuts added after recomputation, nodes, wall seconds."""

    bound: float
    cuts: int
    nodes: int
    build_s: float
    handover_s: float
    solve_s: float


@dataclass(kw_only=True)
class Toll:
    """What a search that goes on has taken so far, with the words of `Effort`."""

    cuts: int = 0
    nodes: int = 0
    build_s: float = 0.0
    handover_s: float = 0.0
    solve_s: float = 0.0

    def add(self, answer: SolverAnswer) -> None:
        """Count what the solver took for an answer."""
        self.nodes += answer.nodes
        self.handover_s += answer.handover_s
        self.solve_s += answer.solve_s

    def taken(self) -> dict[str, Any]:
        """All of it, for the `Effort` of a search that has ended."""
        return {field.name: getattr(self, field.name) for field in fields(Toll)}


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
