"""What a long run tells its caller while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Progress:
    """One step of a run.

    `stage` is one of "columns", "build", "solve", "done"; `best` and `bound` are in the objective's unit, None while
    unknown.
    """

    stage: str
    message: str
    elapsed_s: float
    best: float | None = None
    bound: float | None = None


OnProgress = Callable[[Progress], None]
