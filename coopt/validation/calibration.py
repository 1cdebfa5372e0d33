"""Fit a few parameters to published runs, and say what they are worth on runs that were not used."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Annotated

import numpy as np
from pydantic import Field

from coopt.instance.base import Part
from coopt.instance.errors import InstanceError
from coopt.perf.mapping import Floats
from coopt.validation.adjust import RANGES
from coopt.validation.batches import batches_of, predicted_s
from coopt.validation.facts import FitSet
from coopt.validation.runs import Run
from coopt.validation.scores import Score, loss_of, score
from coopt.validation.settings import Settings
from coopt.validation.simplex import Box, minimise

FIRST, AGAIN = 240, 90  # evaluations of a fit, and of one that starts from it with a group left out
Told = Callable[[str], None]


class Parameter(Part):
    """A parameter before and after."""

    name: str
    before: float
    after: float


class Fit(Part):
    """One set of fitted parameters with its errors on rows that were used and on rows that were not."""

    name: str
    generation: str
    precision: str
    software: str
    parameters: tuple[Parameter, ...]
    rows: tuple[str, ...]
    groups: tuple[str, ...]
    before: Annotated[Score, Field(description="the rows with the catalog's values")]
    fitted: Annotated[Score, Field(description="the rows with the fitted values")]
    held_out: Annotated[Score | None, Field(description="rows of this generation and precision no fit used")]
    leave_one_group_out: Annotated[Score | None, Field(description="each group by a fit without it")]


class Calibration(Part):
    """All fits, in the order they were made."""

    fits: tuple[Fit, ...]
    before: Annotated[Score, Field(description="all rows that were used, with the catalog's values")]
    fitted: Annotated[Score, Field(description="the same rows with the fitted values")]
    leave_one_group_out: Annotated[Score | None, Field(description="all rows, each group by fits without it")]
    left_out: Annotated[tuple[str, ...], Field(description="sets without enough rows")]


def set_name(asked: FitSet) -> str:
    """`hopper 16-bit`, `megatron-deepspeed`."""
    return asked.software or f"{asked.generation} {asked.precision}"


def concerned(asked: FitSet, runs: Sequence[Run]) -> list[Run]:
    """Runs on which the parameters act."""
    if asked.software:
        return [run for run in runs if run.software.name == asked.software]
    return [run for run in runs if (run.generation, run.precision) == (asked.generation, asked.precision)]


def used(asked: FitSet, runs: Sequence[Run]) -> list[Run]:
    """Runs a set is fitted to."""
    return [run for run in concerned(asked, runs) if any(fnmatchcase(run.id, glob) for glob in asked.rows)]


def calibrated(runs: Sequence[Run], sets: Sequence[FitSet], told: Told = lambda text: None) -> Calibration:
    """Fit every set that has rows, in order: later ones build on the values of earlier ones.

    Parameters
    ----------
    told
        Takes a line about what is being done.

    Raises
    ------
    InstanceError
        When no set has as many rows as parameters.
    """
    feasible = [asked for asked in sets if len(used(asked, runs)) >= len(asked.parameters)]
    if not feasible:
        wanted = ", ".join(f"{len(asked.parameters)} of {set_name(asked)}" for asked in sets)
        raise InstanceError(f"too few rows to fit anything, needs at least as many as parameters: {wanted}")
    settings = Settings()
    for asked in feasible:
        told(f"fitting {set_name(asked)} to {len(used(asked, runs))} rows")
        settings = _fitted(asked, used(asked, runs), settings, FIRST)
    left = _leave_one_group_out(runs, feasible, settings, told)
    taken = {run.id: run for asked in feasible for run in used(asked, runs)}
    every = list(taken.values())
    return Calibration(
        fits=tuple(_summary(asked, runs, settings, taken, left) for asked in feasible),
        before=_certain(score(errors_of(every, Settings()))),
        fitted=_certain(score(errors_of(every, settings))),
        leave_one_group_out=score(np.array(list(left.values()))),
        left_out=tuple(set_name(asked) for asked in sets if asked not in feasible),
    )


def errors_of(runs: Sequence[Run], settings: Settings) -> Floats:
    """Predicted / measured - 1 of every run."""
    measured = np.array([run.measured_s for run in runs])
    return np.asarray(predicted_s(batches_of(runs), settings.gpu, settings.framework) / measured - 1.0)


def _fitted(asked: FitSet, rows: Sequence[Run], settings: Settings, evaluations: int) -> Settings:
    """The settings with the values of one set that suit `rows` best, held to its prior; without enough rows just that.

    The search starts from the prior where there is one, so that a fit does not depend on what the catalog has.
    """
    prior = settings.prior_of(asked)
    if not _enough(asked, rows):
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


def _leave_one_group_out(
    runs: Sequence[Run], sets: Sequence[FitSet], settings: Settings, told: Told
) -> dict[str, float]:
    """Errors of all rows by id, each group predicted by fits that saw nothing of it."""
    found: dict[str, float] = {}
    for group in dict.fromkeys(run.group for run in runs):
        lost, others = ([run for run in runs if (run.group == group) is mine] for mine in (True, False))
        without, changed, unknown = settings, set[str](), set[str]()
        for asked in sets:
            upstream = " ".join(asked.after) in changed if asked.after else bool(asked.software and changed)
            if used(asked, lost) or upstream:
                told(f"fitting {set_name(asked)} without {group}")
                left = used(asked, others)
                without = _fitted(asked, left, without, AGAIN)
                changed.add(set_name(asked))
                if not _enough(asked, left) and not settings.prior_of(asked):
                    unknown |= {run.id for run in used(asked, lost)}
        blind = [run for run in lost if run.id not in unknown]
        if blind:
            found |= {run.id: float(error) for run, error in zip(blind, errors_of(blind, without), strict=True)}
    return found


def _enough(asked: FitSet, rows: Sequence[Run]) -> bool:
    """Whether some rows can say anything about a set: one where a prior holds the rest, else one per parameter."""
    return len(rows) >= (1 if asked.weight else len(asked.parameters))


def _summary(
    asked: FitSet, runs: Sequence[Run], settings: Settings, taken: Container[str], left: Mapping[str, float]
) -> Fit:
    rows = used(asked, runs)
    before, after = Settings().values_of(asked, rows[0]), settings.values_of(asked, rows[0])
    unused = [run for run in concerned(asked, runs) if run.id not in taken]
    return Fit(
        name=set_name(asked),
        generation=asked.generation,
        precision="" if asked.software else asked.precision,
        software=asked.software,
        parameters=tuple(Parameter(name=name, before=before[name], after=after[name]) for name in asked.parameters),
        rows=tuple(run.id for run in rows),
        groups=tuple(dict.fromkeys(run.group for run in rows)),
        before=_certain(score(errors_of(rows, Settings()))),
        fitted=_certain(score(errors_of(rows, settings))),
        held_out=score(errors_of(unused, settings)),
        leave_one_group_out=score(np.array([left[run.id] for run in rows if run.id in left])),
    )


def _certain(found: Score | None) -> Score:
    assert found is not None
    return found
