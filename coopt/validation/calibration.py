"""Calibration: parameters fitted to published runs, with their errors on runs not used for
fitting.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from typing import Annotated

import numpy as np
from pydantic import Field

from coopt.instance.base import Table
from coopt.instance.reserves import error_names
from coopt.instance.texts import InstanceError, alternatives, counted, grouped
from coopt.validation.comparison import Score, architecture_of, score_of
from coopt.validation.facts import FitSet
from coopt.validation.fitting import (
    Report,
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
    """Value of a parameter in the catalog and after a fit."""

    name: str
    before: float
    after: float


class Fit(Table):
    """One set of fitted parameters with its errors on rows used and not used for fitting."""

    name: str
    generation: str
    precision: str
    software: str
    parameters: tuple[Parameter, ...]
    rows: tuple[str, ...]
    groups: tuple[str, ...]
    before: Annotated[Score, Field(description="the rows with the catalog's values")]
    fitted: Annotated[Score, Field(description="the rows with the fitted values")]
    held_out: Annotated[
        Score | None, Field(description="rows of this generation and precision no fit used")
    ]
    leave_one_group_out: Annotated[
        Score | None, Field(description="each group by a fit without it")
    ]


class ArchitectureFit(Table):
    """Errors on the rows used of one architecture: dense models, or mixtures of experts."""

    name: str
    fitted: Score
    leave_one_group_out: Score | None


class UnseenError(Table):
    """Error of a row predicted by fits without any row of its source."""

    id: str
    hardware: Annotated[str, Field(description="generation and precision")]
    kind: Annotated[str, Field(description="dense or mixture of experts")]
    source: str
    error: Annotated[float, Field(description="predicted / measured - 1")]


class Calibration(Table):
    """All fits, in the order of fitting."""

    fits: tuple[Fit, ...]
    before: Annotated[
        Score, Field(description="all rows that were used, with the catalog's values")
    ]
    fitted: Annotated[Score, Field(description="the same rows with the fitted values")]
    leave_one_group_out: Annotated[
        Score | None,
        Field(
            description="the same rows, each group by fits without it; none where nothing can say"
        ),
    ]
    architecture: Annotated[
        tuple[ArchitectureFit, ...],
        Field(description="the same rows: dense models, mixtures of experts"),
    ]
    left_out: Annotated[tuple[str, ...], Field(description="sets without enough rows")]
    unseen: Annotated[
        tuple[UnseenError, ...],
        Field(description="rows that were used, each by fits without its group"),
    ]


def calibration_of(
    runs: Sequence[MeasuredRun], sets: Sequence[FitSet], report: Report = lambda text: None
) -> Calibration:
    """Fit every set that has rows, in order: later fits use the values of earlier ones.

    Parameters
    ----------
    report
        Called with a line about each step.

    Raises
    ------
    InstanceError
        If no set has as many rows as parameters, or scipy is not installed.
    """
    if find_spec("scipy") is None:
        raise InstanceError("calibrate: scipy is not installed, needs `pip install 'coopt[fit]'`")
    feasible = feasible_sets(runs, sets)
    settings = Settings()
    for fit_set in feasible:
        rows = runs_used(fit_set, runs)
        report(f"fitting {set_name(fit_set)} to {len(rows)} row{'s' if len(rows) > 1 else ''}")
        settings = fitted_settings(fit_set, rows, settings, FIRST)
    unseen_errors = left_out_errors(runs, feasible, settings, report)
    used_rows = [
        i for i, run in enumerate(runs) if any(is_used(fit_set, run) for fit_set in feasible)
    ]
    used_runs = [runs[i] for i in used_rows]
    places_by_kind = grouped((architecture_of(runs[i]), i) for i in used_rows)
    return Calibration(
        fits=tuple(
            _summary(fit_set, runs, settings, used_rows, unseen_errors) for fit_set in feasible
        ),
        before=_score(used_runs, Settings()),
        fitted=_score(used_runs, settings),
        leave_one_group_out=_unseen_score(unseen_errors, used_rows),
        architecture=tuple(
            ArchitectureFit(
                name=name,
                fitted=_score([runs[i] for i in places], settings),
                leave_one_group_out=_unseen_score(unseen_errors, places),
            )
            for name, places in places_by_kind.items()
        ),
        left_out=tuple(set_name(fit_set) for fit_set in sets if fit_set not in feasible),
        unseen=tuple(
            UnseenError(id=run.id, hardware=hardware, kind=kind, source=run.group, error=error)
            for i, error in sorted(unseen_errors.items())
            for run in (runs[i],)
            for hardware, kind in (error_names(run.gpu, run.workload),)
        ),
    )


def feasible_sets(runs: Sequence[MeasuredRun], sets: Sequence[FitSet]) -> list[FitSet]:
    """Return the sets with at least as many rows as parameters.

    Raises
    ------
    InstanceError
        If there is none.
    """
    feasible = [
        fit_set for fit_set in sets if len(runs_used(fit_set, runs)) >= len(fit_set.parameters)
    ]
    if not feasible:
        needs = alternatives(
            f"{counted(len(fit_set.parameters), 'row')} of {set_name(fit_set)}" for fit_set in sets
        )
        fewer = any(runs_used(fit_set, runs) for fit_set in sets)
        raise InstanceError(
            f"too few rows can be used for a fit, needs at least as many as parameters ({needs})"
            f"{', or --posterior, which takes fewer' if fewer else ''}"
        )
    return feasible


def _summary(
    fit_set: FitSet,
    runs: Sequence[MeasuredRun],
    settings: Settings,
    used_rows: Collection[int],
    unseen_errors: Mapping[int, float],
) -> Fit:
    places = [i for i, run in enumerate(runs) if is_used(fit_set, run)]
    rows = [runs[i] for i in places]
    before, after = (given.values_of(fit_set, rows[0]) for given in (Settings(), settings))
    unused_runs = [
        run for i, run in enumerate(runs) if acts_on(fit_set, run) and i not in used_rows
    ]
    return Fit(
        name=set_name(fit_set),
        generation=fit_set.generation,
        precision="" if fit_set.software else fit_set.precision,
        software=fit_set.software,
        parameters=tuple(
            Parameter(name=name, before=before[name], after=after[name])
            for name in fit_set.parameters
        ),
        rows=tuple(run.id for run in rows),
        groups=tuple(dict.fromkeys(run.group for run in rows)),
        before=_score(rows, Settings()),
        fitted=_score(rows, settings),
        held_out=score_of(errors_of(unused_runs, settings)),
        leave_one_group_out=_unseen_score(unseen_errors, places),
    )


def _unseen_score(unseen_errors: Mapping[int, float], places: Sequence[int]) -> Score | None:
    return score_of(np.array([unseen_errors[i] for i in places if i in unseen_errors]))


def _score(rows: Sequence[MeasuredRun], settings: Settings) -> Score:
    """Return the errors of rows, of which there are some."""
    score = score_of(errors_of(rows, settings))
    assert score is not None
    return score
