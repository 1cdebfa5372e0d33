"""What a run tells its caller while it runs, how the answer was found, and how long it took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from coopt.plan.parts import Record


@dataclass(frozen=True, kw_only=True)
class Progress:
    """One step of a run.

    `stage` is one of "columns", "build", "solve", "explain", "routes", "done"; `best` and `bound` are in the
    objective's unit and `nodes` counts those of the search tree, each None while unknown. `done` is how many of how
    many steps of this stage are over, where they can be counted.
    """

    stage: str
    message: str
    elapsed_s: float
    best: float | None = None
    bound: float | None = None
    nodes: int | None = None
    done: tuple[int, int] | None = None

    @property
    def gap(self) -> float | None:
        """(best - bound) / best; None while one of the two is unknown or best is 0."""
        return None if self.best is None or self.bound is None or not self.best else 1.0 - self.bound / self.best


OnProgress = Callable[[Progress], None]


class Witness(Record):
    """What a second solver found of the same question; it `agrees` where neither answer refutes the other."""

    name: str
    version: str
    status: Literal["optimal", "feasible", "infeasible", "unknown"]
    value: float | None
    bound: float | None
    agrees: bool


class SolverReport(Record):
    """How the answer was found."""

    formulation: str
    name: str
    version: str
    options: dict[str, float | int | str | bool]
    nodes: int
    columns_enumerated: int
    columns_gated: dict[str, int]
    columns_kept: int
    families: int
    cuts: int
    witness: Witness | None = None


class Timing(Record):
    """Wall seconds of each stage."""

    model: float
    columns: float
    build: float
    handover: float
    solve: float
    total: float
