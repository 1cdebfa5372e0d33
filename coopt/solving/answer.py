"""Answer an instance."""

from __future__ import annotations

import threading
from importlib import import_module
from typing import Any

from coopt.instance.schema import Instance, ObjectiveKind
from coopt.plan.progress import OnProgress
from coopt.plan.schema import Plan
from coopt.solving.asked import overridden
from coopt.solving.backend import backend_of
from coopt.solving.next_best import runners_up
from coopt.solving.outcome import alternative_of, answered, ending, infeasible, unknown
from coopt.solving.runs import Run, StoppedError
from coopt.solving.serving import field_of, nothing_found, searched

# a function of the run for each kind of problem, imported when one is asked
OTHER_PROBLEMS = {
    "partition": ("coopt.solving.partition.answer", "answer_partition"),
    "phased": ("coopt.solving.phased.answer", "phased_plan"),
    "sites": ("coopt.solving.sites.answer", "sites_plan"),
    "direct": ("coopt.solving.direct.answer", "direct_plan"),
    "robust": ("coopt.solving.robust.answer", "robust_plan"),
    "fleet": ("coopt.solving.fleet.answer", "fleet_plan"),
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
    cancel: threading.Event | None = None,
) -> Plan:
    """The design and mappings of least cost that meet every bound, with a proof.

    Parameters
    ----------
    time_limit_s
        Replaces `solver.time_limit_s`.
    gap
        Replaces `solver.gap`.
    threads
        Replaces `solver.threads`.
    formulation
        Replaces `solver.formulation`.
    seed
        Replaces `solver.seed`.
    top
        Replaces `solver.top`; above 1 it asks for runners-up.
    solver
        Replaces `solver.name`: "built-in", or a mixed-integer solver that Pyomo knows and finds here.
    objective
        Replaces `objective.minimize`.
    on_progress
        Called with each step, in the caller's thread; while HiGHS searches at most twice a second, with nodes, best
        and bound.
    cancel
        Ends the run once another thread sets it. Solvers other than the built-in one notice between two searches.

    Returns
    -------
    Plan
        With status "optimal", "feasible", "infeasible" or "unknown". Ctrl-C and `cancel` end with the best plan so far,
        and stop_reason "interrupted". Threads take turns with HiGHS, and waiting counts against the time limit.

    Raises
    ------
    InstanceError
        When a given value is out of range, or the solver is unknown or not installed.

    Examples
    --------
    >>> import coopt
    >>> plan = coopt.solve(coopt.load("instances/tiny-64.toml"), time_limit_s=60)
    >>> plan.status, plan.design.hb_domain.name, plan.objective.value
    ('optimal', 'hgx-h100-8', 181888.0)
    """
    given = {"time_limit_s": time_limit_s, "gap": gap, "threads": threads, "formulation": formulation}
    given |= {"name": solver, "seed": seed, "top": top}
    asked = overridden("solve", instance, given, objective)
    run = Run(instance=asked, backend=backend_of(asked.solver, cancel), on_progress=on_progress)
    try:
        return _answer(run)
    except KeyboardInterrupt:
        run.on_progress = None  # the callback may be what was interrupted
        return unknown(run, "interrupted")
    except StoppedError as stopped:
        return unknown(run, str(stopped))


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
    field = field_of(run, run.instance)
    if isinstance(field, tuple):
        return infeasible(run, field)
    run.tell("solve", f"formulation {run.instance.solver.formulation!r} handed to {run.backend.name}")
    first = searched(run, field)
    if first.found is None:
        return nothing_found(run, field, first)
    best = alternative_of(run, first, first.found, field.table)
    reason = ending(run, first.answer.outcome, best.objective)
    parts: dict[str, Any] = {"design": best.design, "cost": best.cost, "workloads": best.workloads}
    if run.instance.solver.top > 1 and reason == "optimal":
        others, stop = runners_up(run, field, first.found)
        parts |= {"alternatives": others, "alternatives_stop": stop}
    return answered(run, reason, best.objective, **parts)
