"""How an answer was found, and how long it took."""

from __future__ import annotations

from coopt.plan.record import Record


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


class Timing(Record):
    """Wall seconds of each stage."""

    model: float
    columns: float
    build: float
    handover: float
    solve: float
    total: float
