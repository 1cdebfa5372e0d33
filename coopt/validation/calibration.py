"""Fit a few parameters to published runs, and say what they are worth on runs that were not used."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np

from coopt.instance.errors import InstanceError
from coopt.validation.comparison import architecture_of
from coopt.validation.facts import FitSet
from coopt.validation.fits import Calibration, Fit, Kind, Parameter
from coopt.validation.fitting import concerns, errors_of, fitted, set_name, used, uses
from coopt.validation.left_out import Told, left_out_errors
from coopt.validation.runs import Run
from coopt.validation.scores import Score, score
from coopt.validation.settings import Settings

FIRST = 240  # evaluations of a fit


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
    feasible = feasible_sets(runs, sets)
    settings = Settings()
    for asked in feasible:
        rows = used(asked, runs)
        told(f"fitting {set_name(asked)} to {len(rows)} row{'s' if len(rows) > 1 else ''}")
        settings = fitted(asked, rows, settings, FIRST)
    left = left_out_errors(runs, feasible, settings, told)
    taken = [i for i, run in enumerate(runs) if any(uses(asked, run) for asked in feasible)]
    every = [runs[i] for i in taken]
    return Calibration(
        fits=tuple(_summary(asked, runs, settings, taken, left) for asked in feasible),
        before=_certain(score(errors_of(every, Settings()))),
        fitted=_certain(score(errors_of(every, settings))),
        leave_one_group_out=_left(left, taken),
        architecture=tuple(_kinds(runs, settings, taken, left)),
        left_out=tuple(set_name(asked) for asked in sets if asked not in feasible),
    )


def feasible_sets(runs: Sequence[Run], sets: Sequence[FitSet]) -> list[FitSet]:
    """Sets with at least as many rows as parameters.

    Raises
    ------
    InstanceError
        When there is none.
    """
    feasible = [asked for asked in sets if len(used(asked, runs)) >= len(asked.parameters)]
    if not feasible:
        wanted = ", ".join(f"{len(asked.parameters)} of {set_name(asked)}" for asked in sets)
        raise InstanceError(f"too few rows to fit anything, needs at least as many as parameters: {wanted}")
    return feasible


def _summary(
    asked: FitSet, runs: Sequence[Run], settings: Settings, taken: Collection[int], left: Mapping[int, float]
) -> Fit:
    places = [i for i, run in enumerate(runs) if uses(asked, run)]
    rows = [runs[i] for i in places]
    before, after = Settings().values_of(asked, rows[0]), settings.values_of(asked, rows[0])
    unused = [run for i, run in enumerate(runs) if concerns(asked, run) and i not in taken]
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
        leave_one_group_out=_left(left, places),
    )


def _kinds(runs: Sequence[Run], settings: Settings, taken: Sequence[int], left: Mapping[int, float]) -> Iterator[Kind]:
    """Dense models and mixtures of experts."""
    for name in dict.fromkeys(architecture_of(runs[i]) for i in taken):
        places = [i for i in taken if architecture_of(runs[i]) == name]
        errors = errors_of([runs[i] for i in places], settings)
        yield Kind(name=name, fitted=_certain(score(errors)), leave_one_group_out=_left(left, places))


def _left(left: Mapping[int, float], places: Sequence[int]) -> Score | None:
    return score(np.array([left[i] for i in places if i in left]))


def _certain(found: Score | None) -> Score:
    assert found is not None
    return found
