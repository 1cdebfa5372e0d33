"""The least cost for every pace, each point shown with a proof."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from coopt.columns.context import DomainSet
from coopt.columns.pace import unbounded
from coopt.columns.table import Columns
from coopt.instance.errors import InstanceError
from coopt.instance.files import instance_of
from coopt.instance.kinds import has_front, require_billed
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.instance.variants import at_pace, inside_first
from coopt.instance.workload import LONGEST_S, ROUND_UP
from coopt.network.space import families
from coopt.perf.mapping import Ints
from coopt.plan.claims import OnProgress
from coopt.plan.front import Front, FrontPoint, FrontStop
from coopt.solving.answer import solve
from coopt.solving.arrays import assemble
from coopt.solving.backend import BUILT_IN, backend_of
from coopt.solving.days import ROUNDED, allowed_s
from coopt.solving.explain import rounded_up
from coopt.solving.fronts.designs import Certifier, PacedDesigns, all_designs
from coopt.solving.fronts.tracing import PATIENCE, Tracing, chosen, days_taken, evenly, knees
from coopt.solving.outcome import identity, recomputed, written_out
from coopt.solving.reasons.again import UnprovenError
from coopt.solving.runs import Run, StoppedError, overridden
from coopt.solving.sensitivity.resolves import Resolver

FEWEST_POINTS, MOST_POINTS = 3, 10_000
Reading = Literal["days", "budget"]
READINGS = get_args(Reading)
LARGEST_GAP = 1e-6
"""Between a point and its certificate; the tolerances of HiGHS leave far less."""


@dataclass(kw_only=True)
class _Sweep:
    """One call of `pareto`, and what it has proven so far."""

    run: Run
    wanted: int
    slowest: float | None
    moving: tuple[str, ...] | None
    reading: Reading | None
    points: list[FrontPoint] = field(default_factory=list)
    size: int = 0

    def front(self, stop_reason: FrontStop, explanation: tuple[str, ...] = ()) -> Front:
        """What is proven by now."""
        instance = self.run.instance
        self.run.tell("done", stop_reason)
        return Front(
            instance=identity(instance),
            kind=instance.objective.billed,
            points=tuple(sorted(self.points, key=lambda point: point.pace)),
            size=self.size,
            complete=stop_reason not in ("time limit", "interrupted"),
            stop_reason=stop_reason,
            explanation=explanation,
            over=(self.reading,) if self.reading else self.moving or (),
            solves=len(self.points),
            total_s=self.run.elapsed_s(),
        )


def pareto(
    instance: Instance | str | Path,
    points: int = 20,
    *,
    slowest: float | None = None,
    objective: ObjectiveKind | None = None,
    time_limit_s: float | None = None,
    on_progress: OnProgress | None = None,
    over: Sequence[str] = (),
) -> Front:
    """The least cost for every pace of training, from the fastest design to the cheapest.

    All designs of one network are known at once, and where time is minimised the front is that of purchase; every
    other question is solved at one pace after the other.

    Parameters
    ----------
    instance
        The question, or the file that holds it.
    points
        How many points to show at most, from 3 on: the ends, the cheapest within the bounds, the knees, others between.
    slowest
        The slowest pace to look at, in bounds; none by default, so that the front ends with the cheapest design.
    objective
        Replaces `objective.minimize`.
    time_limit_s
        Replaces `solver.time_limit_s`. Nothing else of `[solver]` plays a part for one network.
    on_progress
        Called with each step, in the caller's thread.
    over
        Names of the workloads whose bounds move, while the others keep theirs; all of them if left out. "days" moves
        the bounds on days alone, and shows the least cost for dates that are evenly spaced; "budget" shows the fastest
        design within budgets that are evenly spaced.

    Returns
    -------
    Front
        Without points where nothing can be built; Ctrl-C and the time limit keep the points proven so far.

    Raises
    ------
    InstanceError
        When a given value is out of range, a workload is not there, or the objective is a regret.

    Examples
    --------
    >>> import coopt
    >>> front = coopt.pareto(coopt.load("instances/tiny-64.toml"))
    >>> [point.best.objective.value for point in front.points], front.complete
    ([488032.0, 181888.0], True)
    """
    instance = instance_of(instance)
    if not FEWEST_POINTS <= points <= MOST_POINTS:
        raise InstanceError(f"pareto: points = {points}, needs {FEWEST_POINTS} to {MOST_POINTS:,}")
    if slowest is not None and not 0 < slowest < math.inf:
        raise InstanceError(f"pareto: slowest = {slowest}, needs a finite number above 0")
    moving, reading = _read(instance, over)
    listed = instance.problem == "shared"
    solver = {"time_limit_s": time_limit_s} | ({"name": BUILT_IN} if listed else {})
    asked = overridden("pareto", instance, solver, objective)
    if has_front(asked):
        billed = asked.objective.model_copy(update={"minimize": asked.objective.billed})
        asked = asked.model_copy(update={"objective": billed})
    require_billed(asked, "pareto")
    if asked.problem == "choice":
        asked = _in_seconds(asked)
    first = Run(instance=asked, backend=backend_of(asked.solver), on_progress=on_progress)

    def front_of(question: Instance) -> Front:
        run = replace(first, instance=question)
        if not listed:
            return _traced(run, points, slowest, moving or (), dated=reading == "days")
        return _swept(_Sweep(run=run, wanted=points, slowest=slowest, moving=moving, reading=reading))

    bounded = all(one.bounded for one in instance.workload)
    front, across = inside_first(asked, front_of, lambda found: _serves(found, bounded=bounded))
    told = front.points if across else tuple(_answering(one, asked, moving or None) for one in front.points)
    return front.model_copy(update={"instance": identity(asked), "tp_across": across, "points": told})


def _answering(point: FrontPoint, asked: Instance, over: tuple[str, ...] | None) -> FrontPoint:
    """A point whose plan is one of the question itself, as it is with TP groups inside HB domains."""
    if point.plan is None or point.solved_at is None:
        return point
    own = identity(at_pace(asked, min(point.solved_at, LONGEST_S), over))
    return point.model_copy(update={"plan": point.plan.model_copy(update={"instance": own})})


def _serves(front: Front, *, bounded: bool) -> bool:
    """Whether a front has a point, within the bounds where there are any; one that was stopped is left as it is."""
    fastest = min((point.pace for point in front.points), default=math.inf)
    return not front.complete or fastest <= (ROUND_UP if bounded else LONGEST_S)


def _swept(sweep: _Sweep) -> Front:
    """The front of a question whose designs can be listed."""
    run = sweep.run
    try:
        return _answer(sweep)
    except KeyboardInterrupt:
        run.on_progress = None  # the callback may be what was interrupted
        return sweep.front("interrupted")
    except StoppedError as stopped:
        return sweep.front("interrupted" if str(stopped) == "interrupted" else "time limit")


def _in_seconds(instance: Instance) -> Instance:
    """The question with a bound of 1 s where its workload has none, so that paces are seconds of an iteration."""
    free = [one for one in instance.workload if not one.bounded]
    if not free:
        return instance
    given = [one.model_copy(update={"max_iteration_time_s": 1.0 + one.time_margin}) for one in free]
    return instance.model_copy(update={"workload": tuple(given)})


def _read(instance: Instance, over: Sequence[str]) -> tuple[tuple[str, ...] | None, Reading | None]:
    """The workloads whose bounds move, None for all, and which way the front is read.

    Raises
    ------
    InstanceError
        When such a front has no meaning.
    """
    names = [workload.name for workload in instance.workload]
    reading: Reading | None = None
    if len(over) == 1 and over[0] not in names and over[0] in READINGS:
        reading = "days" if over[0] == "days" else "budget"
        over = [workload.name for workload in instance.workload if workload.calendar or reading == "budget"]
        if not over:
            raise InstanceError("pareto: over = 'days': no workload has a bound on days, needs train_days")
        if reading == "budget" and instance.problem != "shared":
            raise InstanceError(
                f"{instance.name}: budgets are read off a list of all designs, which only one network has, needs "
                "--over days or a workload"
            )
    for name in over:
        if name not in names:
            known = ", ".join([*names, *READINGS])
            raise InstanceError(f"pareto: over = {name!r}: no workload has this name, needs one of {known}")
    if instance.minimizes_regret:
        raise InstanceError(
            f"{instance.name}: a regret is measured from the best plans within the same bounds, so that regrets at two "
            "paces do not compare, needs robust.aim = 'worst-case'"
        )
    moving = tuple(dict.fromkeys(over))
    return None if len(moving) in (0, len(names)) and instance.problem == "shared" else moving, reading


def _traced(run: Run, points: int, slowest: float | None, over: tuple[str, ...], *, dated: bool) -> Front:
    """The front of a question whose plans cannot be listed; `dated` asks for dates that are evenly spaced."""
    instance = run.instance
    resolver = Resolver(instance, shared_out=False)
    tracing = Tracing(
        instance=instance,
        over=over or None,
        wanted=points,
        slowest=slowest,
        tell=lambda message, done: run.tell("solve", message, done=done),
        resolver=resolver,
        dated=dated,
    )
    explanation: tuple[str, ...] = ()
    try:
        stop, explanation = tracing.trace()
    except KeyboardInterrupt:
        run.on_progress, stop = None, "interrupted"
    except UnprovenError:
        stop = "time limit"
    run.tell("done", stop)
    return Front(
        instance=identity(instance),
        kind=instance.objective.billed,
        points=tracing.points(),
        size=len(tracing.steps),
        complete=stop not in ("time limit", "interrupted"),
        stop_reason=stop,
        explanation=explanation,
        over=("days",) if dated else over,
        solves=resolver.solves,
        total_s=run.elapsed_s(),
    )


def _answer(sweep: _Sweep) -> Front:
    run = sweep.run
    instance = run.instance
    every = tuple(run.in_time(families(instance)))
    run.tell("columns", f"{len(every):,} network families")
    table = unbounded(instance, every, lambda site: _on_site(run, site))
    designs = all_designs(instance, every, table, run.check_clock, sweep.moving)
    if designs is None:
        return sweep.front("infeasible", solve(at_pace(instance, math.inf, sweep.moving), top=1).explanation)
    front, slowest = designs.front(), math.inf if sweep.slowest is None else sweep.slowest
    if sweep.slowest is None and instance.availability is not None:
        slowest = PATIENCE * float(designs.pace.min())
    front = front[designs.pace[front] <= slowest]
    sweep.size = len(front)
    if not len(front):
        least = rounded_up(float(designs.pace.min()))
        given = f"slowest is {slowest:.6g}: needs at least {least}"
        return sweep.front("infeasible", (f"the fastest design takes {least} times the bounds, {given}",))
    _certify(sweep, designs, front, table)
    return sweep.front("whole front" if len(sweep.points) == sweep.size else "points asked for")


def _on_site(run: Run, site: DomainSet) -> None:
    run.check_clock()
    run.tell("columns", str(site))


def _certify(sweep: _Sweep, designs: PacedDesigns, front: Ints, table: Columns) -> None:
    """Prove the points to show, most telling first."""
    run = sweep.run
    pace, value = designs.pace[front], designs.value[front]
    bends = knees(pace, value)
    within = int((pace <= 1.0).sum())
    answer = [within - 1] if within else []
    if sweep.reading is None:
        order = chosen(pace, value, [0, len(front) - 1, *answer, *bends], sweep.wanted)
    else:
        order = list(
            dict.fromkeys([*answer, *evenly(pace if sweep.reading == "days" else value, sweep.wanted - len(answer))])
        )
    run.tell("build", f"{len(designs.pace):,} designs, {len(front):,} of them on the front")
    prove = _prover(run.instance, designs, table)
    for done, place in enumerate(order):
        run.check_clock()
        run.tell("solve", f"{done} of {len(order)} points proven", done=(done, len(order)))
        sweep.points.append(_point(sweep, designs, int(front[place]), prove, table, place in bends))


def _prover(instance: Instance, designs: PacedDesigns, table: Columns) -> Callable[[float], float]:
    """A lower bound on the cost of every design that keeps a pace.

    With interruptions more uplinks may be slower, so that no fewest uplinks say which designs do: all are gone through.
    """
    if instance.availability is not None:
        return designs.least_value
    certifier = Certifier(assemble(instance, designs.families, table))
    return lambda pace: max(certifier.bound(designs.fewest_uplinks(pace)), 0.0)


def _point(
    sweep: _Sweep, designs: PacedDesigns, one: int, prove: Callable[[float], float], table: Columns, knee: bool
) -> FrontPoint:
    """A design of the front written out, with the bound that its pace puts on the cost of every design."""
    instance, interrupted = sweep.run.instance, sweep.run.instance.availability is not None
    # so that a bound at this pace is one that the design meets
    pace = float(designs.pace[one]) * (ROUNDED if interrupted else ROUND_UP)
    moved = at_pace(instance, pace, sweep.moving)
    family, uplinks = designs.families[designs.family[one]], int(designs.uplinks[one])
    best = written_out(moved, recomputed(moved, table, family, uplinks), prove(pace), table)
    assert best.objective.gap is not None, "a bound of at least 0 leaves a gap"
    assert best.objective.gap <= LARGEST_GAP, "the front and its certificate differ"
    runs = tuple(
        run.model_copy(update={"bound_s": allowed_s(moved, family, uplinks, workload, run)})
        for run, workload in zip(best.workloads, moved.workload, strict=True)
    )
    days = instance.workload[0].train_days if len(instance.workload) == 1 else None
    return FrontPoint(
        pace=pace,
        days=None if days is None else days * pace,
        knee=knee,
        best=best.model_copy(update={"workloads": runs}),
        workload_days=days_taken(instance, runs) if days is None else {},
    )
