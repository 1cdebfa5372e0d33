"""The least cost for every pace, for questions whose plans cannot all be listed: solved at one pace after the other.

Where a front has more points than were asked for, those where it bends are shown.

The least cost falls in steps as the pace gets slower. A plan solved at a pace p is the cheapest of all paces from the
one it attains, the slowest share of its bounds, up to p: bounds between the two are met by it, and allow no other plan
that p does not. What is left open is the rectangle between a plan and the next one; the largest is cut in two by
solving in its middle, until enough points are found or no rectangle is wider than `TOLERANCE`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

import numpy as np

from coopt.instance.schema import Instance
from coopt.instance.variants import at_pace
from coopt.instance.workload import LONGEST_S, ROUND_UP
from coopt.perf.mapping import Floats
from coopt.plan.contents import running
from coopt.plan.front import FrontPoint, FrontStop
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import Plan
from coopt.solving.reasons.limits import own_time
from coopt.solving.sensitivity.limits import ample_s
from coopt.solving.sensitivity.resolves import Resolver, cheaper

TOLERANCE = 1e-3
"""Paces closer than this share of themselves are not told apart."""

DEPTH = 0.05
PATIENCE = 10.0
"""Fronts with interruptions end at this many times the fastest pace where nobody says: fewer spares cost ever less."""


@dataclass(kw_only=True)
class Step:
    """A plan, the pace it attains, its cost, and the slowest pace at which nothing is known to be cheaper."""

    pace: float
    value: float
    plan: Plan
    solved_at: float
    holds: float


@dataclass(kw_only=True)
class Tracing:
    """The steps found so far, by rising pace and falling cost; `tell` hears what was done.

    `over` names the workloads whose bounds move, None for all of them. With `dated`, dates that are evenly spaced from
    the fastest pace to the slowest are solved, `dates` as paces, in place of what is left open between steps; the plan
    within the bounds of the instance is a point besides.
    """

    instance: Instance
    over: Collection[str] | None
    wanted: int
    slowest: float | None
    tell: Callable[[str, tuple[int, int]], None]
    resolver: Resolver
    dated: bool = False
    dates: list[float] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def trace(self) -> tuple[FrontStop, tuple[str, ...]]:
        """Find the steps; why there are no more, and why there is none.

        Raises
        ------
        UnprovenError
            When time ran out; `steps` hold what is proven by then.
        """
        slow = self._slowest_pace()
        last = self._solved(slow)
        if last is None:
            return "infeasible", self._no_plan(slow)
        self._to_the_fastest(last)
        self._end_in_time()
        if self.dated:
            self._solve_dates()
            return "whole front" if self._widest_gap() is None else "points asked for", ()
        while len(self.steps) < self.wanted:
            gap = self._widest_gap()
            if gap is None:
                return "whole front", ()
            before, after = gap
            self._solved(math.sqrt(before.holds * after.pace))
        return "points asked for", ()

    def points(self) -> tuple[FrontPoint, ...]:
        """The steps as points of a front, knees marked: all, or those asked for that tell most."""
        if not self.steps:
            return ()
        paces, values = (np.array([getattr(one, name) for one in self.steps]) for name in ("pace", "value"))
        bends, within = knees(paces, values), int((paces <= ROUND_UP).sum())
        answer = [within - 1] if within else []
        if self.dated:
            kept = np.searchsorted(paces, np.array(self.dates) * (1.0 + 1e-12), side="right") - 1
            shown = [*answer, *kept.tolist()] if len(kept) else [*range(len(paces))]
        else:
            shown = chosen(paces, values, [0, len(paces) - 1, *answer, *bends], self.wanted)
        return tuple(
            FrontPoint(
                pace=one.pace,
                knee=n in bends,
                plan=one.plan,
                solved_at=one.solved_at,
                workload_days=days_taken(self.instance, [each.run for each in running(one.plan)]),
            )
            for n, one in enumerate(self.steps)
            if n in shown
        )

    def _solve_dates(self) -> None:
        """Solve dates that are evenly spaced between the fastest pace and that of the cheapest plan.

        A plan as cheap may be faster than the one that was found, as that was solved without a bound. So its pace is
        halved first, as long as the cost stays; dates are spaced again whenever one of them shortens the range.
        """
        first, slow = self.steps[0].pace, math.inf
        while first * (1 + TOLERANCE) < self.steps[-1].pace < slow:
            slow = self.steps[-1].pace
            self._solved((first + slow) / 2)
        slow = math.inf
        while self.steps[-1].pace < slow:
            slow = self.steps[-1].pace
            self.dates = np.linspace(self.steps[0].pace, slow, self.wanted - 1).tolist()
            for date in self.dates[-2:0:-1]:
                self._solved(date)

    def _end_in_time(self) -> None:
        """End the steps where patience does, with failures and no slowest pace given."""
        latest = PATIENCE * self.steps[0].pace
        if self.instance.availability is None or self.slowest is not None or self.steps[-1].pace <= latest:
            return
        self._solved(latest)
        self.steps = [one for one in self.steps if one.pace <= latest]

    def _slowest_pace(self) -> float:
        """The given slowest pace, else one at which no bound that moves rules out a plan."""
        if self.slowest is not None:
            return self.slowest
        moving = [one for one in self.instance.workload if self.over is None or one.name in self.over]
        return min(max(ample_s(workload) / workload.bound_s for workload in moving), LONGEST_S)

    def _no_plan(self, slow: float) -> tuple[str, ...]:
        """Why nothing is fast enough, or why there is nothing at all."""
        plan = self.resolver.plan(self._at(slow))
        if self.slowest is None:
            return plan.explanation
        return (f"no plan keeps {slow:.6g} times the bounds", *plan.explanation)

    def _to_the_fastest(self, last: Step) -> None:
        """Solve at the bounds of the instance and faster, until no plan is faster than the fastest found."""
        feasible, pace = last.pace, min(1.0, last.pace)
        while (found := self._solved(pace)) is not None and found.pace > 0:
            feasible, pace = found.pace, found.pace / 2
        impossible = pace
        while feasible > impossible * (1 + TOLERANCE):
            middle = math.sqrt(impossible * feasible)
            found = self._solved(middle)
            feasible, impossible = (feasible, middle) if found is None else (found.pace, impossible)

    def _widest_gap(self) -> tuple[Step, Step] | None:
        """The two neighbours with the most open between them; None where nothing is left to be found."""
        pairs = [
            (before, after)
            for before, after in zip(self.steps, self.steps[1:], strict=False)
            if after.pace > before.holds * (1 + TOLERANCE)
        ]
        return max(pairs, key=lambda pair: _open(*pair), default=None)

    def _at(self, pace: float) -> Instance:
        return at_pace(self.instance, min(pace, LONGEST_S), self.over)

    def _solved(self, pace: float) -> Step | None:
        """The cheapest plan of a pace, put among the steps; None where there is none."""
        plan = self.resolver.plan(self._at(pace), reasons=False)
        value = plan.objective.value
        self.tell(
            f"{len(self.steps)} of {self.wanted} points, {self.resolver.solves} solves", (len(self.steps), self.wanted)
        )
        if plan.cost is None or value is None:
            return None
        return self._placed(self._tightened(pace, plan, value))

    def _tightened(self, pace: float, plan: Plan, value: float) -> Step:
        """A plan at the pace it attains; where that is not known to do after losses as well, it is solved for.

        So it is where days are kept with a probability: of fewer days a smaller share can be promised.
        """
        attained = self._attained(pace, plan) * ROUND_UP
        solved_at = pace
        asked = self.instance.availability
        if plan.couplings.losses or (asked is not None and asked.confidence is not None):
            again = self.resolver.plan(self._at(attained), reasons=False)
            if again.objective.value is None or cheaper(value, again.objective.value):
                attained = pace
            else:
                plan, solved_at = again, attained
        return Step(pace=min(attained, pace), value=value, plan=plan, solved_at=solved_at, holds=pace)

    def _attained(self, pace: float, plan: Plan) -> float:
        """The slowest share of its bound that a workload takes whose bound moves, in bounds of the instance."""
        shares = [
            one.run.iteration_time_s / one.run.bound_s
            for one in running(plan)
            if self.over is None or one.run.name in self.over
        ]
        return pace * max(shares, default=1.0)

    def _placed(self, found: Step) -> Step:
        """Put a step among the others; the same cost makes one step of two."""
        for one in self.steps:
            if not cheaper(one.value, found.value) and not cheaper(found.value, one.value):
                one.holds = max(one.holds, found.holds)
                if found.pace < one.pace:
                    one.pace, one.plan, one.solved_at = found.pace, found.plan, found.solved_at
                return one
        self.steps.append(found)
        self.steps.sort(key=lambda one: one.pace)
        self.steps = [
            one for n, one in enumerate(self.steps) if all(cheaper(one.value, b.value) for b in self.steps[:n])
        ]
        return found


def days_taken(instance: Instance, runs: Iterable[WorkloadPlan]) -> dict[str, float]:
    """The days of training of each workload that has a bound on them, on the slowest of its runs: with interruptions,
    and with what a margin keeps free; none in phases, whose runs have bounds of their own."""
    asked = {one.name: one for one in instance.workload if one.calendar and len(instance.years) == 1}
    found: dict[str, float] = {}
    for run in runs:
        if run.name in asked:
            found[run.name] = max(found.get(run.name, 0.0), own_time(asked[run.name], run.promised_s))
    return found


def _open(before: Step, after: Step) -> float:
    """The area between two steps in which others may lie."""
    return (after.pace - before.holds) * (before.value - after.value)


def knees(pace: Floats, value: Floats) -> list[int]:
    """The knees of a front, deepest first.

    With both axes measured from 0 to 1 over the whole front, the point that lies farthest below the straight line
    between the two ends is a knee where that distance is at least `DEPTH`; each of the two parts it makes is looked at
    in the same way, in the same measure.

    Parameters
    ----------
    pace, value
        Shape (n,); pace rises, value falls.
    """
    if len(pace) < 3:
        return []
    points = np.stack([_measured(pace), _measured(value)], axis=1)
    found: list[tuple[float, int]] = []
    parts = [(0, len(points) - 1)]
    while parts:
        first, last = parts.pop()
        depths = _depths(points, first, last)
        if len(depths) and depths.max() >= DEPTH:
            knee = first + 1 + int(np.argmax(depths))
            found.append((float(depths.max()), knee))
            parts += [(first, knee), (knee, last)]
    return [knee for _, knee in sorted(found, key=lambda pair: (-pair[0], pair[1]))]


def _measured(numbers: Floats) -> Floats:
    """From 0 for the least to 1 for the largest."""
    low, high = numbers.min(), numbers.max()
    return np.asarray((numbers - low) / (high - low), dtype=np.float64)


def _depths(points: Floats, first: int, last: int) -> Floats:
    """How far every point between two lies below the line through them."""
    along = points[last] - points[first]
    off = points[first + 1 : last] - points[first]
    return np.asarray((along[1] * off[:, 0] - along[0] * off[:, 1]) / np.hypot(*along), dtype=np.float64)


def chosen(pace: Floats, value: Floats, first: Iterable[int], wanted: int) -> list[int]:
    """At most so many points, most telling first: the given ones, then always the one farthest from those chosen.

    Distance is the larger of the two differences, with both axes measured from 0 to 1: no step of the front that is
    long in time or in cost stays unseen for long.

    Parameters
    ----------
    pace, value
        Shape (n,).
    first
        Points to take before all others, with repeats.
    """
    taken = list(dict.fromkeys(first))[:wanted]
    away = np.full(len(pace), np.inf)
    for point in taken:
        away = _nearer(away, pace, value, point)
    while len(taken) < min(wanted, len(pace)):
        taken.append(int(np.argmax(away)))
        away = _nearer(away, pace, value, taken[-1])
    return taken


def evenly(measure: Floats, wanted: int) -> list[int]:
    """Points whose measure is the largest within each of so many equal steps from its least to its most.

    Parameters
    ----------
    measure
        Shape (n,): paces, which rise along the front, or values, which fall.
    """
    places = np.argsort(measure, kind="stable")
    steps = np.linspace(measure.min(), measure.max(), wanted) * (1.0 + 1e-12)
    within = np.searchsorted(measure[places], steps, side="right") - 1
    return list(dict.fromkeys(places[within].tolist()))


def _nearer(away: Floats, pace: Floats, value: Floats, point: int) -> Floats:
    """Distances to what is chosen once a point is chosen too; what is chosen has a negative one."""
    both = [np.abs(axis - axis[point]) / max(float(np.ptp(axis)), 1e-300) for axis in (pace, value)]
    found = np.minimum(away, np.maximum(*both))
    found[point] = -1.0
    return np.asarray(found, dtype=np.float64)
