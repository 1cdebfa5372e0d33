"""Fit a few parameters to published runs, and say what they are worth on runs that were not used."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from coopt.instance.base import Table
from coopt.instance.errors import InstanceError
from coopt.instance.reserves import error_names
from coopt.validation.comparison import Score, architecture_of, score_of
from coopt.validation.facts import FitSet
from coopt.validation.fitting import (
    Told,
    acts_on,
    errors_of,
    fitted_settings,
    is_used,
    left_out_errors,
    runs_used,
    set_name,
)
from coopt.validation.runs import MeasuredRun
from coopt.validation.settings import Settings

FIRST = 240  # evaluations of a fit


class Parameter(Table):
    """The value of a parameter in the catalog and after a fit."""

    name: str
    before: float
    after: float


class Fit(Table):
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


class ArchitectureFit(Table):
    """Errors on the rows used of one architecture: dense models, or mixtures of experts."""

    name: str
    fitted: Score
    leave_one_group_out: Score | None


class UnseenError(Table):
    """The error of a row that no fit has seen, nor any other of its source."""

    id: str
    hardware: Annotated[str, Field(description="generation and precision")]
    kind: Annotated[str, Field(description="dense or mixture of experts")]
    source: str
    error: Annotated[float, Field(description="predicted / measured - 1")]


class Calibration(Table):
    """All fits, in the order they were made."""

    fits: tuple[Fit, ...]
    before: Annotated[Score, Field(description="all rows that were used, with the catalog's values")]
    fitted: Annotated[Score, Field(description="the same rows with the fitted values")]
    leave_one_group_out: Annotated[
        Score | None, Field(description="the same rows, each group by fits without it; none where nothing can say")
    ]
    architecture: Annotated[
        tuple[ArchitectureFit, ...], Field(description="the same rows: dense models, mixtures of experts")
    ]
    left_out: Annotated[tuple[str, ...], Field(description="sets without enough rows")]
    unseen: Annotated[tuple[UnseenError, ...], Field(description="rows that were used, each by fits without its group")]


def calibration_of(runs: Sequence[MeasuredRun], sets: Sequence[FitSet], told: Told = lambda text: None) -> Calibration:
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
    feasible = feasible_sets(runs, sets)
    settings = Settings()
    for asked in feasible:
        rows = runs_used(asked, runs)
        told(f"fitting {set_name(asked)} to {len(rows)} row{'s' if len(rows) > 1 else ''}")
        settings = fitted_settings(asked, rows, settings, FIRST)
    left = left_out_errors(runs, feasible, settings, told)
    taken = [i for i, run in enumerate(runs) if any(is_used(asked, run) for asked in feasible)]
    every = [runs[i] for i in taken]
    return Calibration(
        fits=tuple(_summary(asked, runs, settings, taken, left) for asked in feasible),
        before=_certain(score_of(errors_of(every, Settings()))),
        fitted=_certain(score_of(errors_of(every, settings))),
        leave_one_group_out=_left(left, taken),
        architecture=tuple(_kinds(runs, settings, taken, left)),
        left_out=tuple(set_name(asked) for asked in sets if asked not in feasible),
        unseen=tuple(_unseen(runs[i], left[i]) for i in sorted(left)),
    )


def feasible_sets(runs: Sequence[MeasuredRun], sets: Sequence[FitSet]) -> list[FitSet]:
    """Sets with at least as many rows as parameters.

    Raises
    ------
    InstanceError
        When there is none.
    """
    feasible = [asked for asked in sets if len(runs_used(asked, runs)) >= len(asked.parameters)]
    if not feasible:
        wanted = ", ".join(f"{len(asked.parameters)} of {set_name(asked)}" for asked in sets)
        raise InstanceError(
            f"too few rows to fit anything, needs at least as many as parameters: {wanted}; --posterior takes fewer"
        )
    return feasible


def _summary(
    asked: FitSet, runs: Sequence[MeasuredRun], settings: Settings, taken: Collection[int], left: Mapping[int, float]
) -> Fit:
    places = [i for i, run in enumerate(runs) if is_used(asked, run)]
    rows = [runs[i] for i in places]
    before, after = Settings().values_of(asked, rows[0]), settings.values_of(asked, rows[0])
    unused = [run for i, run in enumerate(runs) if acts_on(asked, run) and i not in taken]
    return Fit(
        name=set_name(asked),
        generation=asked.generation,
        precision="" if asked.software else asked.precision,
        software=asked.software,
        parameters=tuple(Parameter(name=name, before=before[name], after=after[name]) for name in asked.parameters),
        rows=tuple(run.id for run in rows),
        groups=tuple(dict.fromkeys(run.group for run in rows)),
        before=_certain(score_of(errors_of(rows, Settings()))),
        fitted=_certain(score_of(errors_of(rows, settings))),
        held_out=score_of(errors_of(unused, settings)),
        leave_one_group_out=_left(left, places),
    )


def _unseen(run: MeasuredRun, error: float) -> UnseenError:
    hardware, kind = error_names(run.gpu, run.workload)
    return UnseenError(id=run.id, hardware=hardware, kind=kind, source=run.group, error=error)


def _kinds(
    runs: Sequence[MeasuredRun], settings: Settings, taken: Sequence[int], left: Mapping[int, float]
) -> Iterator[ArchitectureFit]:
    """Errors of dense models and of mixtures of experts."""
    for name in dict.fromkeys(architecture_of(runs[i]) for i in taken):
        places = [i for i in taken if architecture_of(runs[i]) == name]
        errors = errors_of([runs[i] for i in places], settings)
        yield ArchitectureFit(name=name, fitted=_certain(score_of(errors)), leave_one_group_out=_left(left, places))


def _left(left: Mapping[int, float], places: Sequence[int]) -> Score | None:
    return score_of(np.array([left[i] for i in places if i in left]))


def _certain(found: Score | None) -> Score:
    assert found is not None
    return found
