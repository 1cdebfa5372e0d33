"""Fit one set of parameters to its rows by Nelder and Mead's simplex, and predict every source
without it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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
Corner = tuple[float, Vector]

NARROW = 1e-4  # of the first step: the simplex counts as a point
FLAT = 1e-9  # between best and worst value: nothing is left to gain
GAIN = 1e-3  # share of the value that makes another descent worth while
AGAIN = 90  # evaluations of a fit that starts from the one with all groups
Report = Callable[[str], None]


@dataclass(kw_only=True)
class BoundedObjective:
    """A function to minimise, the box in which it is defined, and how often it was evaluated."""

    objective: Callable[[Vector], float]
    low: Vector
    high: Vector
    evaluations: int = field(default=0, init=False)

    def corner(self, point: Vector) -> Corner:
        """The value at a point, infinite outside the box."""
        self.evaluations += 1
        inside = bool(np.all((self.low <= point) & (point <= self.high)))
        return (self.objective(point) if inside else np.inf), point


def minimise(box: BoundedObjective, start: Vector, step: Vector, evaluations: int = 200) -> Corner:
    """The smallest value found and where.

    Where the simplex has shrunk to nothing, a new one is laid around the best point, until that
    gains nothing.

    Parameters
    ----------
    step
        How far the first points lie from `start`, one number for each direction.
    evaluations
        When to stop at the latest.
    """
    corner = _descended(box, np.clip(start, box.low, box.high), step, evaluations)
    while box.evaluations < evaluations:
        # mirrored and half as wide, so that its corners are new
        next_corner = _descended(box, corner[1], -step / 2.0, evaluations)
        if next_corner[0] > corner[0] * (1.0 - GAIN):
            break
        corner = next_corner
    return corner


def _descended(box: BoundedObjective, start: Vector, step: Vector, evaluations: int) -> Corner:
    """One descent from a simplex around `start`."""
    simplex = [
        box.corner(start),
        *(box.corner(_beside(box, start, step, i)) for i in range(len(start))),
    ]
    while True:
        simplex.sort(key=lambda corner: corner[0])
        if box.evaluations >= evaluations or _has_settled(simplex, step):
            return simplex[0]
        better = _improved(box, simplex)
        if better is not None:
            simplex[-1] = better
        else:
            best_point = simplex[0][1]
            simplex[1:] = [box.corner((best_point + point) / 2.0) for _, point in simplex[1:]]


def _improved(box: BoundedObjective, simplex: list[Corner]) -> Corner | None:
    """A corner to take the place of the worst: mirrored at the others, further out, or nearer
    in.
    """
    centre = np.mean([point for _, point in simplex[:-1]], axis=0)
    worst = simplex[-1]
    mirrored = box.corner(2.0 * centre - worst[1])
    if mirrored[0] < simplex[0][0]:
        further = box.corner(3.0 * centre - 2.0 * worst[1])
        return further if further[0] < mirrored[0] else mirrored
    if mirrored[0] < simplex[-2][0]:
        return mirrored
    nearer = box.corner((centre + (mirrored if mirrored[0] < worst[0] else worst)[1]) / 2.0)
    return nearer if nearer[0] < min(mirrored[0], worst[0]) else None


def _beside(box: BoundedObjective, start: Vector, step: Vector, direction: int) -> Vector:
    """A corner next to the start, on the other side where the box ends."""
    point = start.astype(np.float64)
    target = point[direction] + step[direction]
    point[direction] += step[direction] * (
        1.0 if box.low[direction] <= target <= box.high[direction] else -1.0
    )
    return point


def _has_settled(simplex: list[Corner], step: Vector) -> bool:
    points = np.array([point for _, point in simplex])
    width = float(np.max(np.abs((points - points[0]) / step)))
    return width < NARROW or simplex[-1][0] - simplex[0][0] < FLAT


def set_name(fit_set: FitSet) -> str:
    """The name of a set: `hopper 16-bit`, `megatron-deepspeed`."""
    return fit_set.software or f"{fit_set.generation} {fit_set.precision}"


def acts_on(fit_set: FitSet, run: MeasuredRun) -> bool:
    """Whether the parameters act on a run."""
    if fit_set.software:
        return run.software.name == fit_set.software
    return (run.generation, run.precision) == (fit_set.generation, fit_set.precision)


def is_used(fit_set: FitSet, run: MeasuredRun) -> bool:
    """Whether the set is fitted to a run."""
    return acts_on(fit_set, run) and any(fnmatchcase(run.id, glob) for glob in fit_set.rows)


def runs_used(fit_set: FitSet, runs: Sequence[MeasuredRun]) -> list[MeasuredRun]:
    """Runs a set is fitted to."""
    return [run for run in runs if is_used(fit_set, run)]


def errors_of(runs: Sequence[MeasuredRun], settings: Settings) -> Floats:
    """Predicted / measured - 1 of every run."""
    measured = np.array([run.measured_s for run in runs])
    return np.asarray(
        predicted_s(batches_of(runs), settings.gpu, settings.framework) / measured - 1.0
    )


def fitted_settings(
    fit_set: FitSet, rows: Sequence[MeasuredRun], settings: Settings, evaluations: int
) -> Settings:
    """The settings with the values of one set that suit `rows` best, held to its prior; without
    enough rows just that.

    The search starts from the prior where there is one, so that a fit does not depend on what the
    catalog has.
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

    _, best_point = minimise(
        BoundedObjective(objective=objective, low=lowest, high=highest), start, step, evaluations
    )
    return with_values(best_point)


def has_enough_rows(fit_set: FitSet, rows: Sequence[MeasuredRun]) -> bool:
    """Whether some rows can say anything about a set: one where a prior holds the rest, else one
    per parameter.
    """
    return len(rows) >= (1 if fit_set.weight else len(fit_set.parameters))


def left_out_errors(
    runs: Sequence[MeasuredRun], sets: Sequence[FitSet], settings: Settings, report: Report
) -> dict[int, float]:
    """Errors of the rows that some set uses, by their position among `runs`, each group by fits
    without it.

    A row is missing where without its group nothing at all says what a parameter should be.
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
    """The fits without a group, and the sets of which nothing is known without it."""
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
