"""Fits of one set of parameters by the Nelder-Mead simplex method, and predictions of every source
without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from coopt.perf.mapping import Floats
from coopt.validation.batches import batches_of, predicted_s
from coopt.validation.comparison import loss_of
from coopt.validation.facts import FitSet
from coopt.validation.runs import MeasuredRun
from coopt.validation.settings import RANGES, Settings

Vector = NDArray[np.float64]

NARROW = 1e-4  # relative size at which the simplex has converged
FLAT = 1e-9  # difference of best and worst value at convergence
GAIN = 1e-3  # relative gain that justifies another descent
AGAIN = 90  # evaluations of a fit that starts from the one with all groups
Report = Callable[[str], None]


def minimise(
    objective: Callable[[Vector], float],
    start: Vector,
    step: Vector,
    low: Vector,
    high: Vector,
    evaluations: int = 200,
) -> Vector:
    """Minimise a function over a box by repeated Nelder-Mead descents.

    Once a descent has converged, another one starts from its end until there is no further
    improvement.

    Parameters
    ----------
    step
        Distance of the first points from `start` in each direction, which is the unit of that
        direction.
    low, high
        The box.
    evaluations
        Maximum number of function evaluations.
    """
    from scipy import optimize

    bounds = optimize.Bounds(low / step, high / step)
    best_point, best_value, left = np.clip(start, low, high) / step, np.inf, evaluations
    side = 1.0
    while left > len(start):
        beside = best_point + side * np.eye(len(start))
        beside = np.where(
            (beside < bounds.lb) | (beside > bounds.ub), 2 * best_point - beside, beside
        )
        descent = optimize.minimize(
            lambda point: objective(point * step),
            best_point,
            method="Nelder-Mead",
            bounds=bounds,
            options={
                "initial_simplex": np.vstack([best_point, beside]),
                "maxfev": left,
                "xatol": NARROW,
                "fatol": FLAT,
            },
        )
        left -= descent.nfev
        previous_value = best_value
        if descent.fun < best_value:
            best_point, best_value = descent.x, descent.fun
        if best_value > previous_value * (1.0 - GAIN):
            break
        side *= -0.5  # mirrored and half as wide, so that its corners are new
    return np.asarray(best_point * step)


def set_name(fit_set: FitSet) -> str:
    """Return the name of a set: `hopper 16-bit`, `megatron-deepspeed`."""
    return fit_set.software or f"{fit_set.generation} {fit_set.precision}"


def acts_on(fit_set: FitSet, run: MeasuredRun) -> bool:
    """Whether the parameters of a set affect a run."""
    if fit_set.software:
        return run.software.name == fit_set.software
    return (run.generation, run.precision) == (fit_set.generation, fit_set.precision)


def is_used(fit_set: FitSet, run: MeasuredRun) -> bool:
    """Whether the set is fitted to a run."""
    return acts_on(fit_set, run) and any(fnmatchcase(run.id, glob) for glob in fit_set.rows)


def runs_used(fit_set: FitSet, runs: Sequence[MeasuredRun]) -> list[MeasuredRun]:
    """Return the runs that a set is fitted to."""
    return [run for run in runs if is_used(fit_set, run)]


def errors_of(runs: Sequence[MeasuredRun], settings: Settings) -> Floats:
    """Return predicted / measured - 1 of every run."""
    measured = np.array([run.measured_s for run in runs])
    return np.asarray(
        predicted_s(batches_of(runs), settings.gpu, settings.framework) / measured - 1.0
    )


def fitted_settings(
    fit_set: FitSet, rows: Sequence[MeasuredRun], settings: Settings, evaluations: int
) -> Settings:
    """Return the settings with the values of one set fitted to `rows`, with its prior; only the
    prior if there are too few rows.

    The search starts from the prior if there is one, so that a fit does not depend on the values in
    the catalog.
    """
    prior = settings.prior_of(fit_set)
    if not has_enough_rows(fit_set, rows):
        return settings.replaced(fit_set, prior) if prior else settings
    batches, measured = batches_of(rows), np.array([run.measured_s for run in rows])
    names, values = fit_set.parameters, settings.values_of(fit_set, rows[0]) | prior
    step, lowest, highest = (
        np.array([getattr(RANGES[name], key) for name in names]) for key in ("step", "low", "high")
    )
    start = np.array([values[name] for name in names])

    def with_values(point: Floats) -> Settings:
        return settings.replaced(
            fit_set, {name: float(x) for name, x in zip(names, point, strict=True)}
        )

    def objective(point: Floats) -> float:
        candidate = with_values(point)
        # the loss is a mean over rows: the more there are, the less the prior counts
        penalty = fit_set.weight / len(rows) * float((((point - start) / step) ** 2).sum())
        return penalty + loss_of(
            fit_set.loss, predicted_s(batches, candidate.gpu, candidate.framework), measured
        )

    return with_values(minimise(objective, start, step, lowest, highest, evaluations))


def has_enough_rows(fit_set: FitSet, rows: Sequence[MeasuredRun]) -> bool:
    """Whether rows can determine a set: one row if it has a prior, else one per parameter."""
    return len(rows) >= (1 if fit_set.weight else len(fit_set.parameters))


def left_out_errors(
    runs: Sequence[MeasuredRun], sets: Sequence[FitSet], settings: Settings, report: Report
) -> dict[int, float]:
    """Return errors of the rows used by some set, by their index in `runs`, each group predicted by
    fits without it.

    Rows are left out if a parameter is undetermined without their group.
    """
    unseen: dict[int, float] = {}
    used_rows = [i for i, run in enumerate(runs) if any(is_used(fit_set, run) for fit_set in sets)]
    for group in dict.fromkeys(runs[i].group for i in used_rows):
        without, unknown = _fitted_without(group, runs, sets, settings, report)
        blind = [
            i
            for i in used_rows
            if runs[i].group == group and not any(is_used(fit_set, runs[i]) for fit_set in unknown)
        ]
        if blind:
            errors = errors_of([runs[i] for i in blind], without)
            unseen |= {i: float(error) for i, error in zip(blind, errors, strict=True)}
    return unseen


def _fitted_without(
    group: str,
    runs: Sequence[MeasuredRun],
    sets: Sequence[FitSet],
    settings: Settings,
    report: Report,
) -> tuple[Settings, list[FitSet]]:
    """Return the fits without a group, and the sets that are undetermined without it."""
    runs_of_group, other_runs = (
        [run for run in runs if (run.group == group) is in_group] for in_group in (True, False)
    )
    refitted, unknown = set[str](), list[FitSet]()
    for fit_set in sets:
        # a set builds on those before it: one whose prior was fitted anew is too, and software
        # after any hardware
        upstream = (
            " ".join(fit_set.after) in refitted
            if fit_set.after
            else bool(fit_set.software and refitted)
        )
        if runs_used(fit_set, runs_of_group) or upstream:
            report(f"fitting {set_name(fit_set)} without {group}")
            rows = runs_used(fit_set, other_runs)
            settings = fitted_settings(fit_set, rows, settings, AGAIN)
            refitted.add(set_name(fit_set))
            if not has_enough_rows(fit_set, rows) and not settings.prior_of(fit_set):
                unknown.append(fit_set)
    return settings, unknown
