"""Fit one set of parameters to its rows, and predict every source by fits that saw nothing of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

import numpy as np

from coopt.perf.mapping import Floats
from coopt.validation.batches import batches_of, predicted_s
from coopt.validation.comparison import loss_of
from coopt.validation.facts import FitSet
from coopt.validation.runs import Run
from coopt.validation.settings import RANGES, Settings
from coopt.validation.simplex import Box, minimise

AGAIN = 90  # evaluations of a fit that starts from the one with all groups
Told = Callable[[str], None]


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


def left_out_errors(runs: Sequence[Run], sets: Sequence[FitSet], settings: Settings, told: Told) -> dict[int, float]:
    """Errors of the rows that some set uses, by their position among `runs`, each group by fits without it.

    A row is missing where without its group nothing at all says what a parameter should be.
    """
    found: dict[int, float] = {}
    taken = [i for i, run in enumerate(runs) if any(uses(asked, run) for asked in sets)]
    for group in dict.fromkeys(runs[i].group for i in taken):
        without, unknown = _fitted_without(group, runs, sets, settings, told)
        blind = [i for i in taken if runs[i].group == group and not any(uses(asked, runs[i]) for asked in unknown)]
        if blind:
            errors = errors_of([runs[i] for i in blind], without)
            found |= {i: float(error) for i, error in zip(blind, errors, strict=True)}
    return found


def _fitted_without(
    group: str, runs: Sequence[Run], sets: Sequence[FitSet], settings: Settings, told: Told
) -> tuple[Settings, list[FitSet]]:
    """The fits without a group, and the sets of which nothing is known without it."""
    lost, others = ([run for run in runs if (run.group == group) is mine] for mine in (True, False))
    changed, unknown = set[str](), list[FitSet]()
    for asked in sets:
        upstream = " ".join(asked.after) in changed if asked.after else bool(asked.software and changed)
        if used(asked, lost) or upstream:
            told(f"fitting {set_name(asked)} without {group}")
            left = used(asked, others)
            settings = fitted(asked, left, settings, AGAIN)
            changed.add(set_name(asked))
            if not enough(asked, left) and not settings.prior_of(asked):
                unknown.append(asked)
    return settings, unknown
