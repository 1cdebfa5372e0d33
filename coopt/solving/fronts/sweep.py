"""The least cost for every pace, each point shown with a proof."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from coopt.columns.grid import DomainSet
from coopt.columns.table import Columns
from coopt.columns.times import unbounded
from coopt.instance.schema import (
    Instance,
    ObjectiveKind,
    instance_of,
    require_billed,
    require_one_network,
    with_part,
)
from coopt.instance.texts import InstanceError, counted
from coopt.instance.variants import inside_first, with_scaled_bounds
from coopt.instance.workload import LONGEST_S, ROUND_UP
from coopt.network.space import families
from coopt.perf.mapping import Ints
from coopt.plan.front import Front, FrontPoint, FrontStop
from coopt.plan.schema import OnProgress
from coopt.solving.answer import question_plan
from coopt.solving.arrays import assemble
from coopt.solving.days import ROUNDED
from coopt.solving.driver import identity
from coopt.solving.explain import rounded_up
from coopt.solving.fronts.designs import Certifier, PacedDesigns, all_designs
from coopt.solving.fronts.tracing import (
    CUT,
    EARLY,
    Tracing,
    days_taken,
    ends_early,
    evenly,
    knees,
    most_telling,
    patient,
)
from coopt.solving.resolves import Resolver, UnprovenError
from coopt.solving.runs import BUILT_IN, Run, RunLog, StoppedError, backend_of, overridden

FEWEST_POINTS, MOST_POINTS = 3, 10_000
Reading = Literal["days", "budget"]
READINGS = get_args(Reading)
LARGEST_GAP = 1e-6
"""Between a point and its certificate; the tolerances of HiGHS leave far less."""


@dataclass(kw_only=True)
class _Sweep:
    """One call of `pareto`, and what it has proven so far."""

    run: Run
    point_count: int
    slowest: float | None
    moving: tuple[str, ...] | None
    reading: Reading | None
    points: Sequence[FrontPoint] = ()
    size: int = 0
    solves: int = 0

    def front(self, stop_reason: FrontStop, explanation: tuple[str, ...]) -> Front:
        """What is proven by now."""
        instance = self.run.instance
        self.run.tell("done", stop_reason)
        return Front(
            instance=identity(instance),
            kind=instance.objective.billed,
            points=tuple(sorted(self.points, key=lambda point: point.pace)),
            size=self.size,
            complete=stop_reason not in ("time limit", "interrupted", "not proven"),
            stop_reason=stop_reason,
            explanation=explanation,
            over=(self.reading,) if self.reading else self.moving or (),
            solves=self.solves,
            total_s=self.run.elapsed_s(),
        )


def has_front(instance: Instance) -> bool:
    """Whether cost against time can be traced: of what counts time in another way, for least time
    of one workload.

    Where GPUs or knobs are open and no bound is given, points are seconds of an iteration, which do
    not compare batches of several sizes and count no interruptions.
    """
    objective = instance.objective
    if objective.minimize != "time":
        return objective.minimize == objective.billed
    if not instance.open_keys:
        return not instance.beyond_one_network
    (workload,) = instance.workload
    return workload.bounded or not (workload.batches or instance.availability)


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

    All designs of one network are known at once, and where time is minimised the front is that of
    purchase; every other question is solved at one pace after the other.

    Parameters
    ----------
    instance
        The question, or the file that holds it.
    points
        How many points to show at most, from 3 on: the ends, the cheapest within the bounds, the
        knees, others between.
    slowest
        The slowest pace to look at, in bounds; none by default, so that the front ends with the
        cheapest design.
    objective
        Replaces `objective.minimize`.
    time_limit_s
        Replaces `solver.time_limit_s`. Nothing else of `[solver]` plays a part for one network.
    on_progress
        Called with each step, in the caller's thread.
    over
        Names of the workloads whose bounds move, while the others keep theirs; all of them if left
        out. "days" moves the bounds on days alone, and shows the least cost for dates that are
        evenly spaced; "budget" shows the fastest design within budgets that are evenly spaced.

    Returns
    -------
    Front
        Without points where nothing can be built; Ctrl-C and the time limit keep the points proven
        so far.

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
    movers, reading = _read(instance, over)
    is_listed = not instance.beyond_one_network
    solver = {"time_limit_s": time_limit_s} | ({"name": BUILT_IN} if is_listed else {})
    question = overridden("pareto", instance, solver, objective)
    if has_front(question):
        billed = question.objective.model_copy(update={"minimize": question.objective.billed})
        question = question.model_copy(update={"objective": billed})
    require_billed(question, "pareto")
    if question.open_keys:
        question = _in_seconds(question)
    elif slowest is not None and not any(workload.bounded for workload in instance.workload):
        raise InstanceError(
            f"pareto: slowest = {slowest}: no workload has a bound of which it is a multiple, needs"
            " one (such as max_iteration_time_s)"
        )
    template = Run(instance=question, backend=backend_of(question.solver), on_progress=on_progress)

    def front_of(variant: Instance) -> Front:
        sweep = _Sweep(
            run=replace(template, instance=variant),
            point_count=points,
            slowest=slowest,
            moving=movers,
            reading=reading,
        )
        stop: FrontStop
        try:
            stop, explanation = (_swept if is_listed else _traced)(sweep)
        except KeyboardInterrupt:
            # the callback may be what was interrupted
            sweep.run.on_progress, stop, explanation = None, "interrupted", ()
        except (StoppedError, UnprovenError) as stopped:
            known: tuple[FrontStop, ...] = ("time limit", "interrupted", "not proven")
            stop = next((one for one in known if one == str(stopped)), "not proven")
            explanation = () if stop == str(stopped) else (f"A plan was not proven: {stopped}.",)
        return sweep.front(stop, explanation)

    has_bounds = all(workload.bounded for workload in instance.workload)
    front, across = inside_first(
        question, front_of, lambda candidate: _serves(candidate, bounded=has_bounds)
    )
    front_points = (
        front.points
        if across
        else tuple(_answering(point, question, movers or None) for point in front.points)
    )
    return front.model_copy(
        update={"instance": identity(question), "tp_across": across, "points": front_points}
    )


def _answering(point: FrontPoint, question: Instance, over: tuple[str, ...] | None) -> FrontPoint:
    """A point whose plan is one of the question itself, as it is with TP groups inside HB
    domains.
    """
    if point.plan is None or point.solved_at is None:
        return point
    point_id = identity(with_scaled_bounds(question, min(point.solved_at, LONGEST_S), over))
    return point.model_copy(update={"plan": point.plan.model_copy(update={"instance": point_id})})


def _serves(front: Front, *, bounded: bool) -> bool:
    """Whether a front has a point, within the bounds where there are any; one that was stopped is
    left as it is.
    """
    fastest_pace = min((point.pace for point in front.points), default=math.inf)
    return not front.complete or fastest_pace <= (ROUND_UP if bounded else LONGEST_S)


def _in_seconds(instance: Instance) -> Instance:
    """The question with a bound of 1 s where its workload has none, so that paces are seconds of an
    iteration.
    """
    unbounded_workloads = [workload for workload in instance.workload if not workload.bounded]
    if not unbounded_workloads:
        return instance
    bounded_workloads = [
        workload.model_copy(update={"max_iteration_time_s": 1.0 + workload.time_margin})
        for workload in unbounded_workloads
    ]
    return instance.model_copy(update={"workload": tuple(bounded_workloads)})


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
        over = [
            workload.name
            for workload in instance.workload
            if workload.calendar or reading == "budget"
        ]
        if not over:
            raise InstanceError(
                "pareto: over = 'days': no workload has a bound on days, needs train_days or by"
            )
        if reading == "budget":
            require_one_network(instance, "--over budget", ", or another --over")
    for name in over:
        if name not in names:
            name_list = ", ".join([*names, *(READINGS if len(over) == 1 else ())])
            alone = f", or {name} alone" if name in READINGS else ""
            raise InstanceError(
                f"pareto: over = {name!r}: no workload has this name, needs one of"
                f" {name_list}{alone}"
            )
    if instance.minimizes_regret:
        raise InstanceError(
            f"{instance.place}: a regret is measured against the best plans within the same"
            " bounds, so regrets within different bounds cannot be compared, needs robust.aim ="
            " 'worst-case'"
        )
    moving = tuple(dict.fromkeys(over))
    return (
        None
        if len(moving)
        in (
            0,
            len(names),
        )
        and not instance.beyond_one_network
        else moving
    ), reading


Ended = tuple[FrontStop, tuple[str, ...]]
"""Why there are no more points, and why there is none or slower ones are left out."""


def _traced(sweep: _Sweep) -> Ended:
    """Find the front of a question whose plans cannot be listed."""
    run = sweep.run
    resolver = Resolver(run.instance, shared_out=False)
    tracing = Tracing(
        instance=run.instance,
        over=sweep.moving or None,
        point_count=sweep.point_count,
        slowest=sweep.slowest,
        tell=lambda message, done: run.tell("solve", message, done=done),
        resolver=resolver,
        dated=sweep.reading == "days",
    )
    try:
        return tracing.trace()
    finally:
        sweep.points, sweep.size = tracing.points(), len(tracing.steps)
        sweep.solves = resolver.solves


def _swept(sweep: _Sweep) -> Ended:
    """Find the front of a question whose designs can be listed."""
    run = sweep.run
    instance = run.instance
    all_families = tuple(run.in_time(families(instance, unlaid=True)))
    run.tell("columns", counted(len(all_families), "network family"))
    table = unbounded(instance, all_families, lambda site: _on_site(run, site))
    designs = all_designs(instance, all_families, table, run.check_clock, sweep.moving)
    if designs is None:
        loosest = with_scaled_bounds(instance, math.inf, sweep.moving)
        question = with_part(loosest, "solver", {"top": 1})
        asked = replace(run, instance=question, on_progress=None, log=RunLog())
        return "infeasible", question_plan(asked).explanation
    front, slowest = designs.front(), math.inf if sweep.slowest is None else sweep.slowest
    if sweep.slowest is None and instance.availability is not None:
        slowest = patient(instance, float(designs.pace.min()))
    shown = front[designs.pace[front] <= slowest]
    ends = {EARLY: ends_early(instance, sweep.slowest), CUT: sweep.slowest is None}
    remarks = tuple(text for text, holds in ends.items() if holds and len(shown) < len(front))
    front, sweep.size = shown, len(shown)
    if not len(front):
        fastest_pace = rounded_up(float(designs.pace.min()))
        need = f"but slowest = {slowest:.6g}: needs at least {fastest_pace}"
        return "infeasible", (f"the fastest design takes {fastest_pace} times the bounds, {need}",)
    _certify(sweep, designs, front, table)
    return "whole front" if len(sweep.points) == sweep.size else "all requested points", remarks


def _on_site(run: Run, site: DomainSet) -> None:
    run.check_clock()
    run.tell("columns", str(site))


def _certify(sweep: _Sweep, designs: PacedDesigns, front: Ints, table: Columns) -> None:
    """Prove the points to show, most telling first."""
    run = sweep.run
    pace, value = designs.pace[front], designs.value[front]
    front_knees = knees(pace, value)
    # cost falls along the front, so that the last design within the bounds is the cheapest of those
    in_bounds = int((pace <= 1.0).sum())
    answer = [in_bounds - 1] if in_bounds else []
    if sweep.reading is None:
        order = most_telling(
            pace, value, [0, len(front) - 1, *answer, *front_knees], sweep.point_count
        )
    else:
        order = list(
            dict.fromkeys(
                [
                    *answer,
                    *evenly(
                        pace if sweep.reading == "days" else value, sweep.point_count - len(answer)
                    ),
                ]
            )
        )
    run.tell(
        "build", f"{counted(len(designs.pace), 'design')}, {len(front):,} of them on the front"
    )
    prove = _prover(run.instance, designs, table)
    for done, place in enumerate(order):
        run.check_clock()
        run.tell("solve", f"{done} of {len(order)} points proven", done=(done, len(order)))
        shown = _point(sweep, designs, int(front[place]), prove, table, place in front_knees)
        sweep.points, sweep.solves = (*sweep.points, shown), done + 1


def _prover(instance: Instance, designs: PacedDesigns, table: Columns) -> Callable[[float], float]:
    """A lower bound on the cost of every design that keeps a pace.

    With interruptions more uplinks may be slower, so that no fewest uplinks say which designs do:
    all are gone through.
    """
    if instance.availability is not None:
        return designs.least_value
    certifier = Certifier(assemble(instance, designs.families, table, designs.prices))
    return lambda pace: max(certifier.bound(designs.fewest_uplinks(pace)), 0.0)


def _point(
    sweep: _Sweep,
    designs: PacedDesigns,
    design: int,
    prove: Callable[[float], float],
    table: Columns,
    knee: bool,
) -> FrontPoint:
    """A design of the front written out, with the bound that its pace puts on the cost of every
    design.
    """
    instance, interrupted = sweep.run.instance, sweep.run.instance.availability is not None
    # so that a bound at this pace is one that the design meets
    pace = float(designs.pace[design]) * (ROUNDED if interrupted else ROUND_UP)
    question = with_scaled_bounds(instance, pace, sweep.moving)
    answer = designs.written_out(design, question, prove(pace), table)
    assert answer.objective.gap is not None, "a bound of at least 0 leaves a gap"
    assert answer.objective.gap <= LARGEST_GAP, "the front and its certificate differ"
    days = instance.workload[0].train_days if len(instance.workload) == 1 else None
    return FrontPoint(
        pace=pace,
        days=None if days is None else days * pace,
        knee=knee,
        best=answer,
        workload_days=days_taken(instance, answer.workloads) if days is None else {},
    )
