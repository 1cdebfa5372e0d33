"""The least cost for every pace, for questions whose plans cannot all be listed: solved at one pace
after the other.

Where a front has more points than were asked for, those where it bends are shown.

The least cost falls in steps as the pace gets slower. A plan solved at a pace p is the cheapest of
all paces from the one it attains, the slowest share of its bounds, up to p: bounds between the two
are met by it, and allow no other plan that p does not. What is left open is the rectangle between a
plan and the next one; the largest is cut in two by solving in its middle, until enough points are
found or no rectangle is wider than `SEARCHED`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from coopt.instance.numerics import REORDERED, SEARCHED
from coopt.instance.schema import Instance, ample_s, at_choice, own_time
from coopt.instance.texts import counted
from coopt.instance.variants import with_scaled_bounds
from coopt.instance.workload import LONGEST_S, ROUND_UP
from coopt.perf.mapping import Floats
from coopt.plan.contents import running
from coopt.plan.front import FrontPoint, FrontStop
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import Plan
from coopt.solving.resolves import Resolver, cheaper

DEPTH = 0.05
PATIENCE = 10.0
"""Fronts with interruptions end at this many times the fastest pace where nobody says: fewer spares
cost ever less.
"""
CUT = (
    f"Slower designs are left out: with [availability] the front ends at {PATIENCE:g} times the"
    " fastest pace, or at the bounds if they allow more; slowest sets another end."
)
EARLY = (
    "The front ends before the bounds, as slowest says: slower designs within them are left out."
)


@dataclass(kw_only=True)
class Step:
    """A plan, the pace it attains, its cost, and the slowest pace at which nothing is known to be
    cheaper.
    """

    pace: float
    value: float
    plan: Plan
    solved_at: float
    holds: float


@dataclass(kw_only=True)
class Tracing:
    """The steps found so far, by rising pace and falling cost; `tell` hears what was done.

    `over` names the workloads whose bounds move, None for all of them. With `dated`, dates that are
    evenly spaced from the fastest pace to the slowest are solved, `dates` as paces, in place of
    what is left open between steps; the plan within the bounds of the instance is a point besides.
    """

    instance: Instance
    over: Collection[str] | None
    point_count: int
    slowest: float | None
    tell: Callable[[str, tuple[int, int]], None]
    resolver: Resolver
    dated: bool = False
    dates: list[float] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def trace(self) -> tuple[FrontStop, tuple[str, ...]]:
        """Find the steps; why there are no more, and why there is none or slower ones are left out.

        Raises
        ------
        UnprovenError
            When time ran out; `steps` hold what is proven by then.
        """
        slowest_pace = self._slowest_pace()
        slowest_step = self._solved(slowest_pace)
        if slowest_step is None:
            return "infeasible", self._no_plan(slowest_pace)
        self._to_the_fastest(slowest_step)
        ends = {EARLY: ends_early(self.instance, self.slowest), CUT: self._end_in_time()}
        remarks = tuple(text for text, holds in ends.items() if holds)
        if self.dated:
            self._solve_dates()
            return "whole front" if self._widest_gap() is None else "all requested points", remarks
        while len(self.steps) < self.point_count:
            gap = self._widest_gap()
            if gap is None:
                return "whole front", remarks
            step, next_step = gap
            # the geometric middle, since SEARCHED is a share of the pace
            self._solved(math.sqrt(step.holds * next_step.pace))
        return "all requested points", remarks

    def points(self) -> tuple[FrontPoint, ...]:
        """The steps as points of a front, knees marked: all, or those asked for that tell most."""
        if not self.steps:
            return ()
        paces, values = (
            np.array([getattr(step, name) for step in self.steps]) for name in ("pace", "value")
        )
        step_knees, in_bounds = knees(paces, values), int((paces <= ROUND_UP).sum())
        answer = [in_bounds - 1] if in_bounds else []
        if self.dated:
            # a date that rounding puts before its step still shows it
            dated_steps = (
                np.searchsorted(paces, np.array(self.dates) * (1.0 + REORDERED), side="right") - 1
            )
            places = [*answer, *dated_steps.tolist()] if len(dated_steps) else [*range(len(paces))]
        else:
            places = most_telling(
                paces, values, [0, len(paces) - 1, *answer, *step_knees], self.point_count
            )
        return tuple(
            FrontPoint(
                pace=step.pace,
                knee=n in step_knees,
                plan=step.plan,
                solved_at=step.solved_at,
                workload_days=days_taken(
                    self._answered(step.plan),
                    [workload.run for workload in running(step.plan)],
                ),
            )
            for n, step in enumerate(self.steps)
            if n in places
        )

    def _answered(self, plan: Plan) -> Instance:
        """The question of a plan: of several batches, days are those of the one that it chose."""
        is_open = bool(self.instance.open_keys)
        return at_choice(self.instance, plan.chosen) if is_open else self.instance

    def _solve_dates(self) -> None:
        """Solve dates that are evenly spaced between the fastest pace and that of the cheapest
        plan.

        A plan as cheap may be faster than the one that was found, as that was solved without a
        bound. So its pace is halved first, as long as the cost stays; dates are spaced again
        whenever one of them shortens the range.
        """
        fastest_pace, slowest_pace = self.steps[0].pace, math.inf
        while fastest_pace * (1 + SEARCHED) < self.steps[-1].pace < slowest_pace:
            slowest_pace = self.steps[-1].pace
            self._solved((fastest_pace + slowest_pace) / 2)
        slowest_pace = math.inf
        while self.steps[-1].pace < slowest_pace:
            slowest_pace = self.steps[-1].pace
            self.dates = np.linspace(
                self.steps[0].pace, slowest_pace, self.point_count - 1
            ).tolist()
            for date in self.dates[-2:0:-1]:  # both ends are steps already
                self._solved(date)

    def _end_in_time(self) -> bool:
        """End the steps where patience does, with failures and no slowest pace given; whether some
        are left out.
        """
        slowest_pace = patient(self.instance, self.steps[0].pace)
        if (
            self.instance.availability is None
            or self.slowest is not None
            or self.steps[-1].pace <= slowest_pace
        ):
            return False
        self._solved(slowest_pace)
        self.steps = [step for step in self.steps if step.pace <= slowest_pace]
        return True

    def _slowest_pace(self) -> float:
        """The given slowest pace, else one at which no bound that moves rules out a plan."""
        if self.slowest is not None:
            return self.slowest
        movers = [
            run for run in self.instance.workload if self.over is None or run.name in self.over
        ]
        return min(max(ample_s(workload) / workload.bound_s for workload in movers), LONGEST_S)

    def _no_plan(self, slowest_pace: float) -> tuple[str, ...]:
        """Why nothing is fast enough, or why there is nothing at all."""
        plan = self.resolver.plan(self._at(slowest_pace))
        if self.slowest is None:
            return plan.explanation
        return (f"no plan meets {slowest_pace:.6g} times the bounds", *plan.explanation)

    def _to_the_fastest(self, slowest_step: Step) -> None:
        """Solve at the bounds of the instance and faster, until no plan is faster than the fastest
        found.
        """
        feasible_pace, pace = slowest_step.pace, min(1.0, slowest_step.pace)
        while (step := self._solved(pace)) is not None and step.pace > 0:
            feasible_pace, pace = step.pace, step.pace / 2
        impossible_pace = pace
        while feasible_pace > impossible_pace * (1 + SEARCHED):
            middle_pace = math.sqrt(impossible_pace * feasible_pace)
            step = self._solved(middle_pace)
            if step is None:
                impossible_pace = middle_pace
            else:
                feasible_pace = step.pace

    def _widest_gap(self) -> tuple[Step, Step] | None:
        """The two neighbours with the most open between them; None where nothing is left to be
        found.
        """
        pairs = [
            (step, next_step)
            for step, next_step in zip(self.steps, self.steps[1:], strict=False)
            if next_step.pace > step.holds * (1 + SEARCHED)
        ]
        return max(pairs, key=lambda pair: _open_area(*pair), default=None)

    def _at(self, pace: float) -> Instance:
        return with_scaled_bounds(self.instance, min(pace, LONGEST_S), self.over)

    def _solved(self, pace: float) -> Step | None:
        """The cheapest plan of a pace, put among the steps; None where there is none."""
        plan = self.resolver.plan(self._at(pace), reasons=False)
        value = plan.objective.value
        self.tell(
            f"{len(self.steps)} of {self.point_count} points,"
            f" {counted(self.resolver.solves, 'question')} solved",
            (len(self.steps), self.point_count),
        )
        if plan.cost is None or value is None:
            return None
        return self._insert(self._tightened(pace, plan, value))

    def _tightened(self, pace: float, plan: Plan, value: float) -> Step:
        """A plan at the pace it attains; where that is not known to do after losses as well, it is
        solved for.

        So it is where days are kept with a probability: of fewer days a smaller share can be
        promised.
        """
        attained_pace = self._attained(pace, plan) * ROUND_UP
        solved_at = pace
        availability = self.instance.availability
        if self.instance.losses or (
            availability is not None and availability.confidence is not None
        ):
            tighter_plan = self.resolver.plan(self._at(attained_pace), reasons=False)
            if tighter_plan.objective.value is None or cheaper(value, tighter_plan.objective.value):
                attained_pace = pace
            else:
                plan, solved_at = tighter_plan, attained_pace
        return Step(
            pace=min(attained_pace, pace), value=value, plan=plan, solved_at=solved_at, holds=pace
        )

    def _attained(self, pace: float, plan: Plan) -> float:
        """The slowest share of its bound that a workload takes whose bound moves, in bounds of the
        instance.
        """
        shares = [
            workload.run.iteration_time_s / workload.run.bound_s
            for workload in running(plan)
            if self.over is None or workload.run.name in self.over
        ]
        return pace * max(shares, default=1.0)

    def _insert(self, new_step: Step) -> Step:
        """Put a step among the others; the same cost makes one step of two."""
        for step in self.steps:
            if not cheaper(step.value, new_step.value) and not cheaper(new_step.value, step.value):
                step.holds = max(step.holds, new_step.holds)
                if new_step.pace < step.pace:
                    step.pace, step.plan, step.solved_at = (
                        new_step.pace,
                        new_step.plan,
                        new_step.solved_at,
                    )
                return step
        self.steps.append(new_step)
        self.steps.sort(key=lambda step: step.pace)
        self.steps = [
            step
            for n, step in enumerate(self.steps)
            if all(cheaper(step.value, b.value) for b in self.steps[:n])
        ]
        return new_step


def ends_early(instance: Instance, slowest: float | None) -> bool:
    """Whether a front that ends at the given pace may lack the answer within the bounds."""
    is_bounded = all(workload.bounded for workload in instance.workload)
    return slowest is not None and slowest < 1.0 and is_bounded


def patient(instance: Instance, fastest_pace: float) -> float:
    """The slowest pace of a front with interruptions where nobody says: what answers the bounds is
    on it.
    """
    in_bounds = ROUND_UP if all(workload.bounded for workload in instance.workload) else 0.0
    return max(PATIENCE * fastest_pace, in_bounds)


def days_taken(instance: Instance, runs: Iterable[WorkloadPlan]) -> dict[str, float]:
    """The days of training of each workload that has a bound on them, on the slowest of its runs:
    with interruptions, and with what a margin keeps free; none in phases, whose runs have bounds of
    their own.
    """
    workloads = {
        workload.name: workload
        for workload in instance.workload
        if workload.calendar and len(instance.years) == 1
    }
    days_by_name: dict[str, float] = {}
    for run in runs:
        if run.name in workloads:
            days_by_name[run.name] = max(
                days_by_name.get(run.name, 0.0), own_time(workloads[run.name], run.promised_s)
            )
    return days_by_name


def _open_area(step: Step, next_step: Step) -> float:
    """The area between two steps in which others may lie."""
    return (next_step.pace - step.holds) * (step.value - next_step.value)


def knees(pace: Floats, value: Floats) -> list[int]:
    """The knees of a front, deepest first.

    With both axes measured from 0 to 1 over the whole front, the point that lies farthest below the
    straight line between the two ends is a knee where that distance is at least `DEPTH`; each of
    the two parts it makes is looked at in the same way, in the same measure.

    Parameters
    ----------
    pace, value
        Shape (n,); pace rises, value falls.
    """
    if len(pace) < 3:
        return []
    points = np.stack([_measured(pace), _measured(value)], axis=1)
    depth_knees: list[tuple[float, int]] = []
    parts = [(0, len(points) - 1)]
    while parts:
        first, last = parts.pop()
        depths = _depths(points, first, last)
        if len(depths) and depths.max() >= DEPTH:
            knee = first + 1 + int(np.argmax(depths))
            depth_knees.append((float(depths.max()), knee))
            parts += [(first, knee), (knee, last)]
    return [knee for _, knee in sorted(depth_knees, key=lambda pair: (-pair[0], pair[1]))]


def _measured(numbers: Floats) -> Floats:
    """From 0 for the least to 1 for the largest."""
    least, largest = numbers.min(), numbers.max()
    return np.asarray((numbers - least) / (largest - least), dtype=np.float64)


def _depths(points: Floats, first: int, last: int) -> Floats:
    """How far every point between two lies below the line through them."""
    chord = points[last] - points[first]
    offsets = points[first + 1 : last] - points[first]
    return np.asarray(
        (chord[1] * offsets[:, 0] - chord[0] * offsets[:, 1]) / np.hypot(*chord), dtype=np.float64
    )


def most_telling(pace: Floats, value: Floats, seeds: Iterable[int], count: int) -> list[int]:
    """At most so many points, most telling first: the given ones, then always the one farthest from
    those chosen.

    Distance is the larger of the two differences, with both axes measured from 0 to 1: no step of
    the front that is long in time or in cost stays unseen for long.

    Parameters
    ----------
    pace, value
        Shape (n,).
    seeds
        Points to take before all others, with repeats.
    """
    points = list(dict.fromkeys(seeds))[:count]
    distances = np.full(len(pace), np.inf)
    for point in points:
        distances = _nearer(distances, pace, value, point)
    while len(points) < min(count, len(pace)):
        points.append(int(np.argmax(distances)))
        distances = _nearer(distances, pace, value, points[-1])
    return points


def evenly(measure: Floats, count: int) -> list[int]:
    """Points whose measure is the largest within each of so many equal steps from its least to its
    most.

    Parameters
    ----------
    measure
        Shape (n,): paces, which rise along the front, or values, which fall.
    """
    order = np.argsort(measure, kind="stable")
    steps = np.linspace(measure.min(), measure.max(), count) * (1.0 + REORDERED)
    positions = np.searchsorted(measure[order], steps, side="right") - 1
    return list(dict.fromkeys(order[positions].tolist()))


def _nearer(distances: Floats, pace: Floats, value: Floats, point: int) -> Floats:
    """Distances to what is chosen once a point is chosen too; what is chosen has a negative one."""
    # along an axis on which all points are alike every difference is 0, and stays 0 over the least
    # number
    differences = [
        np.abs(axis - axis[point]) / max(float(np.ptp(axis)), 1e-300) for axis in (pace, value)
    ]
    nearest = np.minimum(distances, np.maximum(*differences))
    nearest[point] = -1.0
    return np.asarray(nearest, dtype=np.float64)
