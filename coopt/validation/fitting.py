"""Fit one set of parameters to its rows by Nelder and Mead's simplex, and predict every source without it."""

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
Told = Callable[[str], None]


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

    Where the simplex has shrunk to nothing, a new one is laid around the best point, until that gains nothing.

    Parameters
    ----------
    step
        How far the first points lie from `start`, one number for each direction.
    evaluations
        When to stop at the latest.
    """
    found = _descended(box, np.clip(start, box.low, box.high), step, evaluations)
    while box.evaluations < evaluations:
        again = _descended(box, found[1], -step / 2.0, evaluations)
        if again[0] > found[0] * (1.0 - GAIN):
            break
        found = again
    return found


def _descended(box: BoundedObjective, start: Vector, step: Vector, evaluations: int) -> Corner:
    """One descent from a simplex around `start`."""
    simplex = [box.corner(start), *(box.corner(_beside(box, start, step, i)) for i in range(len(start)))]
    while True:
        simplex.sort(key=lambda corner: corner[0])
        if box.evaluations >= evaluations or _has_settled(simplex, step):
            return simplex[0]
        better = _improved(box, simplex)
        if better is not None:
            simplex[-1] = better
        else:
            best = simplex[0][1]
            simplex[1:] = [box.corner((best + point) / 2.0) for _, point in simplex[1:]]


def _improved(box: BoundedObjective, simplex: list[Corner]) -> Corner | None:
    """A corner to take the place of the worst: mirrored at the others, further out, or nearer in."""
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
    there = point[direction] + step[direction]
    point[direction] += step[direction] * (1.0 if box.low[direction] <= there <= box.high[direction] else -1.0)
    return point


def _has_settled(simplex: list[Corner], step: Vector) -> bool:
    points = np.array([point for _, point in simplex])
    width = float(np.max(np.abs((points - points[0]) / step)))
    return width < NARROW or simplex[-1][0] - simplex[0][0] < FLAT


def set_name(asked: FitSet) -> str:
    """`hopper 16-bit`, `megatron-deepspeed`."""
    return asked.software or f"{asked.generation} {asked.precision}"


def acts_on(asked: FitSet, run: MeasuredRun) -> bool:
    """Whether the parameters act on a run."""
    if asked.software:
        return run.software.name == asked.software
    return (run.generation, run.precision) == (asked.generation, asked.precision)


def is_used(asked: FitSet, run: MeasuredRun) -> bool:
    """Whether the set is fitted to a run."""
    return acts_on(asked, run) and any(fnmatchcase(run.id, glob) for glob in asked.rows)


def runs_used(asked: FitSet, runs: Sequence[MeasuredRun]) -> list[MeasuredRun]:
    """Runs a set is fitted to."""
    return [run for run in runs if is_used(asked, run)]


def errors_of(runs: Sequence[MeasuredRun], settings: Settings) -> Floats:
    """Predicted / measured - 1 of every run."""
    measured = np.array([run.measured_s for run in runs])
    return np.asarray(predicted_s(batches_of(runs), settings.gpu, settings.framework) / measured - 1.0)


def fitted_settings(asked: FitSet, rows: Sequence[MeasuredRun], settings: Settings, evaluations: int) -> Settings:
    """The settings with the values of one set that suit `rows` best, held to its prior; without enough rows just that.

    The search starts from the prior where there is one, so that a fit does not depend on what the catalog has.
    """
    prior = settings.prior_of(asked)
    if not has_enough_rows(asked, rows):
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

    _, best = minimise(BoundedObjective(objective=objective, low=low, high=high), start, step, evaluations)
    return changed(best)


def has_enough_rows(asked: FitSet, rows: Sequence[MeasuredRun]) -> bool:
    """Whether some rows can say anything about a set: one where a prior holds the rest, else one per parameter."""
    return len(rows) >= (1 if asked.weight else len(asked.parameters))


def left_out_errors(
    runs: Sequence[MeasuredRun], sets: Sequence[FitSet], settings: Settings, told: Told
) -> dict[int, float]:
    """Errors of the rows that some set uses, by their position among `runs`, each group by fits without it.

    A row is missing where without its group nothing at all says what a parameter should be.
    """
    found: dict[int, float] = {}
    taken = [i for i, run in enumerate(runs) if any(is_used(asked, run) for asked in sets)]
    for group in dict.fromkeys(runs[i].group for i in taken):
        without, unknown = _fitted_without(group, runs, sets, settings, told)
        blind = [i for i in taken if runs[i].group == group and not any(is_used(asked, runs[i]) for asked in unknown)]
        if blind:
            errors = errors_of([runs[i] for i in blind], without)
            found |= {i: float(error) for i, error in zip(blind, errors, strict=True)}
    return found


def _fitted_without(
    group: str, runs: Sequence[MeasuredRun], sets: Sequence[FitSet], settings: Settings, told: Told
) -> tuple[Settings, list[FitSet]]:
    """The fits without a group, and the sets of which nothing is known without it."""
    lost, others = ([run for run in runs if (run.group == group) is mine] for mine in (True, False))
    changed, unknown = set[str](), list[FitSet]()
    for asked in sets:
        upstream = " ".join(asked.after) in changed if asked.after else bool(asked.software and changed)
        if runs_used(asked, lost) or upstream:
            told(f"fitting {set_name(asked)} without {group}")
            left = runs_used(asked, others)
            settings = fitted_settings(asked, left, settings, AGAIN)
            changed.add(set_name(asked))
            if not has_enough_rows(asked, left) and not settings.prior_of(asked):
                unknown.append(asked)
    return settings, unknown
