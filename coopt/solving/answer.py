"""Answer an instance."""

from __future__ import annotations

from importlib import import_module

from coopt.columns.context import Site
from coopt.columns.table import Columns, columns
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.network.family import Family
from coopt.network.space import families
from coopt.plan.progress import OnProgress
from coopt.plan.schema import Plan
from coopt.solving import explain
from coopt.solving.arrays import assemble, viable
from coopt.solving.asked import overridden
from coopt.solving.backend import backend_of
from coopt.solving.clock import in_time
from coopt.solving.loop import search
from coopt.solving.next_best import runners_up
from coopt.solving.outcome import OutOfTimeError, Run, ending, plan_of, without_design

# a function of the run for each kind of problem, imported when one is asked
OTHER_PROBLEMS = {
    "sites": ("coopt.solving.sites.answer", "sites_plan"),
    "direct": ("coopt.solving.direct.answer", "direct_plan"),
}


def solve(
    instance: Instance,
    *,
    time_limit_s: float | None = None,
    gap: float | None = None,
    threads: int | None = None,
    formulation: str | None = None,
    objective: ObjectiveKind | None = None,
    solver: str | None = None,
    seed: int | None = None,
    top: int | None = None,
    on_progress: OnProgress | None = None,
) -> Plan:
    """The design and mappings of least cost that meet every bound, with a proof.

    Parameters
    ----------
    time_limit_s, gap, threads, formulation, seed, top
        Replace the instance's `[solver]` values; above 1, `top` asks for runners-up.
    solver
        Replaces `solver.name`: "built-in", or a mixed-integer solver that Pyomo knows and finds here.
    objective
        Replaces `objective.minimize`.
    on_progress
        Called with each step, in the caller's thread; while HiGHS searches at most twice a second, with nodes, best
        and bound.

    Returns
    -------
    Plan
        With status "optimal", "feasible", "infeasible" or "unknown"; Ctrl-C ends with the best plan so far.

    Raises
    ------
    InstanceError
        When a given value is out of range, or the solver is unknown or not installed.
    """
    given = {"time_limit_s": time_limit_s, "gap": gap, "threads": threads, "formulation": formulation}
    given |= {"name": solver, "seed": seed, "top": top}
    asked = overridden("solve", instance, given, objective)
    run = Run(instance=asked, backend=backend_of(asked.solver), on_progress=on_progress)
    try:
        return _answer(run)
    except KeyboardInterrupt:
        run.on_progress = None  # the callback may be what was interrupted
        return without_design(run, "unknown", "interrupted")
    except OutOfTimeError:
        return without_design(run, "unknown", "time limit")


def _answer(run: Run) -> Plan:
    """The answer to a problem of any kind."""
    problem = run.instance.problem
    if problem == "shared":
        return shared_plan(run)
    module, function = OTHER_PROBLEMS[problem]
    found: Plan = getattr(import_module(module), function)(run)
    return found


def shared_plan(run: Run) -> Plan:
    """One network that every workload has in turn."""
    instance = run.instance
    every = tuple(in_time(run, families(instance)))
    run.model_s, run.families = run.elapsed_s(), len(every)
    if not every:
        return without_design(run, "infeasible", "infeasible", explain.no_family(instance))
    run.tell("columns", f"{len(every):,} network families")
    table = _columns(run, every)
    serving = viable(instance, every, table)
    run.tell(
        "build",
        f"{table.enumerated:,} columns enumerated, {table.kept:,} kept, "
        f"{len(serving):,} families can serve every workload",
    )
    if not serving:
        return without_design(run, "infeasible", "infeasible", explain.no_design(instance, every, table))
    problem = assemble(instance, serving, table)
    run.tell("solve", f"formulation {instance.solver.formulation!r} handed to {run.backend.name}")
    first = search(instance, problem, table, run.backend, deadline=run.deadline, on_standing=run.tell_standing)
    run.searches.append(first)
    outcome = first.answer.outcome
    if outcome == "infeasible":
        return without_design(run, "infeasible", "infeasible", explain.over_limits(instance, serving, table))
    assert outcome in ("optimal", "time limit", "interrupted"), f"{run.backend.name}: {first.answer.detail}"
    if first.found is None:
        return without_design(run, "unknown", outcome)
    if instance.solver.top == 1 or ending(run, first) != "optimal":
        return plan_of(run, first, first.found, table)
    others, stop = runners_up(run, serving, table, first.found)
    return plan_of(run, first, first.found, table, others, stop)


def _columns(run: Run, every: tuple[Family, ...]) -> Columns:
    before = run.elapsed_s()

    def on_site(site: Site) -> None:
        run.tell("columns", f"{site.gpus:,} GPUs in {site.hb}, {site.active} active in each")

    table = columns(run.instance, every, on_site, run.check_clock)
    run.table, run.columns_s = table, run.elapsed_s() - before
    return table
