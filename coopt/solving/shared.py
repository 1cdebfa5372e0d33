"""Answer a question of one network that every workload has in turn."""

from __future__ import annotations

from typing import Any

from coopt.plan.couplings import one_network
from coopt.plan.schema import Plan
from coopt.solving.next_best import runners_up
from coopt.solving.outcome import alternative_of, answered, ending, infeasible
from coopt.solving.runs import Run
from coopt.solving.serving import field_of, nothing_found, searched


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
    reason = ending(run, first.outcome, best.objective)
    parts = (one_network(best.cost, best.workloads, design=best.design),)
    runners: dict[str, Any] = {}
    if run.instance.solver.top > 1 and reason == "optimal":
        others, stop = runners_up(run, field, first.found)
        runners = {"alternatives": others, "alternatives_stop": stop}
    return answered(run, reason, best.objective, cost=best.cost, parts=parts, **runners)
