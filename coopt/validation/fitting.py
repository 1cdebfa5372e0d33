"""Fit one set of parameters to its rows."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np

from coopt.perf.mapping import Floats
from coopt.validation.adjust import RANGES
from coopt.validation.batches import batches_of, predicted_s
from coopt.validation.facts import FitSet
from coopt.validation.runs import Run
from coopt.validation.scores import loss_of
from coopt.validation.settings import Settings
from coopt.validation.simplex import Box, minimise


def set_name(asked: FitSet) -> str:
    """`hopper 16-bit`, `megatron-deepspeed`."""
    return asked.software or f"{asked.generation} {asked.precision}"


def concerns(asked: FitSet, run: Run) -> bool:
    """Whether the parameters act on a run."""
    if asked.software:
        return run.software.name == asked.software
    return (run.generation, run.precision) == (asked.generation, asked.precision)


def uses(asked: FitSet, run: Run) -> bool:
    """Whether the set is fitted to a run."""
    return concerns(asked, run) and any(fnmatchcase(run.id, glob) for glob in asked.rows)


def used(asked: FitSet, runs: Sequence[Run]) -> list[Run]:
    """Runs a set is fitted to."""
    return [run for run in runs if uses(asked, run)]


def errors_of(runs: Sequence[Run], settings: Settings) -> Floats:
    """Predicted / measured - 1 of every run."""
    measured = np.array([run.measured_s for run in runs])
    return np.asarray(predicted_s(batches_of(runs), settings.gpu, settings.framework) / measured - 1.0)


def fitted(asked: FitSet, rows: Sequence[Run], settings: Settings, evaluations: int) -> Settings:
    """The settings with the values of one set that suit `rows` best, held to its prior; without enough rows just that.

    The search starts from the prior where there is one, so that a fit does not depend on what the catalog has.
    """
    prior = settings.prior_of(asked)
    if not enough(asked, rows):
        return settings.replaced(asked, prior) if prior else settings
    batches, measured = batches_of(rows), np.array([run.measured_s for run in rows])
    names, now = asked.parameters, settings.values_of(asked, rows[0]) | prior
    step, low, high = (np.array([getattr(RANGES[name], key) for name in names]) for key in ("step", "low", "high"))
    start = np.array([now[name] for name in names])

    def changed(point: Floats) -> Settings:
        return settings.replaced(asked, {name: float(x) for name, x in zip(names, point, strict=True)})

    def objective(point: Floats) -> float:
        tried = changed(point)
        held = asked.weight / len(rows) * float((((point - start) / step) ** 2).sum())
        return held + loss_of(asked.loss, predicted_s(batches, tried.gpu, tried.framework), measured)

    _, best = minimise(Box(objective=objective, low=low, high=high), start, step, evaluations)
    return changed(best)


def enough(asked: FitSet, rows: Sequence[Run]) -> bool:
    """Whether some rows can say anything about a set: one where a prior holds the rest, else one per parameter."""
    return len(rows) >= (1 if asked.weight else len(asked.parameters))
