"""Answer a partition: an island for each workload at the least cost of all together."""

from __future__ import annotations

from typing import Literal

import numpy as np

from coopt.columns.context import context_of
from coopt.columns.islands.listing import Market
from coopt.columns.islands.options import Options, list_options
from coopt.columns.pools import fitting, place
from coopt.instance.errors import InstanceError
from coopt.instance.workload import Workload
from coopt.network.blueprint import design
from coopt.network.cores import core_of
from coopt.network.family import Family
from coopt.network.island_bills import island_bill, island_limits, island_power_w
from coopt.plan.islands import Island
from coopt.plan.schema import Plan, WorkloadPlan
from coopt.solving.outcome import claim_of, identity, infeasible, report_of, timing_of, unknown
from coopt.solving.partition import explain
from coopt.solving.partition.arrays import partition_data
from coopt.solving.partition.search import search_partition
from coopt.solving.runs import Run
from coopt.solving.workloads import fastest_row, workload_plan
from formulations.partition_data import Ints

FORMULATION: Literal["totals"] = "totals"


def answer_partition(run: Run) -> Plan:
    """The plan of a run whose instance is a partition.

    Raises
    ------
    InstanceError
        When another solver than the built-in one is asked for.
    """
    instance = run.instance
    if run.backend.interface is not None:
        raise InstanceError(
            f"{instance.name}: solver.name = {instance.solver.name!r}: a partition needs the built-in solver"
        )
    run.formulation = FORMULATION
    options = list_options(instance, lambda w: run.tell("columns", f"islands of {w.name}"), run.check_clock)
    run.table, run.columns_s = options, run.elapsed_s()
    missing = np.setdiff1d(np.arange(len(instance.workload)), options.workload)
    if len(missing):
        return infeasible(run, explain.no_island(run, missing.tolist()))
    run.tell("build", f"{options.enumerated:,} islands enumerated, {options.kept:,} kept")
    data = partition_data(instance, options)
    run.tell("solve", f"formulation {FORMULATION!r} handed to {run.backend.name}")
    ended = search_partition(
        data,
        formulation=FORMULATION,
        gap=instance.solver.gap,
        threads=instance.solver.threads,
        seed=instance.solver.seed,
        deadline=run.deadline,
        allowed=lambda chosen: _allowed(run, options, chosen),
        cancel=run.backend.cancel,
        on_standing=run.tell_standing,
    )
    run.searches.append(ended)
    if ended.outcome == "infeasible":
        return infeasible(run, explain.over_limits(run, data))
    assert ended.outcome in ("optimal", "time limit", "interrupted"), ended.outcome
    if ended.chosen is None:
        return unknown(run, ended.outcome, ended.bound)
    return _plan(run, options, ended.chosen, ended.outcome, ended.bound)


def _built(run: Run, options: Options, chosen: Ints) -> list[tuple[Family, int]]:
    """The chosen islands as families with their uplinks."""
    market = Market(instance=run.instance)
    return [(market.family(options.islands, row), int(options.islands.uplinks[row])) for row in chosen.tolist()]


def _allowed(run: Run, options: Options, chosen: Ints) -> bool:
    """Whether islands keep the limits when they are written out."""
    built = _built(run, options, chosen)
    return island_limits(run.instance, [family for family, _ in built], island_bill(run.instance, built))


def _plan(run: Run, options: Options, chosen: Ints, outcome: str, bound: float) -> Plan:
    instance, built = run.instance, _built(run, options, chosen)
    cost = island_bill(instance, built)
    claim = claim_of(instance.objective.minimize, cost.of(instance.objective.minimize), bound)
    proven = outcome == "optimal"
    run.tell("done", "proven optimal" if proven else f"stopped: {outcome}", best=claim.value, bound=claim.bound)
    pairs = list(zip(instance.workload, built, strict=True))
    return Plan(
        instance=identity(instance),
        status="optimal" if proven else "feasible",
        stop_reason=outcome,
        objective=claim,
        islands=tuple(_island(run, workload, *one) for workload, one in pairs),
        core=core_of(instance, {workload.name: family for workload, (family, _) in pairs}),
        cost=cost,
        workloads=tuple(_workload(run, workload, *one) for workload, one in pairs),
        solver=report_of(run),
        timing_s=timing_of(run),
    )


def _island(run: Run, workload: Workload, family: Family, uplinks: int) -> Island:
    power_w = island_power_w(run.instance, family, uplinks)
    return Island(workload=workload.name, design=design(family, uplinks), power_w=power_w)


def _workload(run: Run, workload: Workload, family: Family, uplinks: int) -> WorkloadPlan:
    """The fastest mapping on an island, recomputed from what was decided."""
    gpu, context = run.instance.cluster.gpu, context_of(family)
    pool = place(workload, gpu, family.hb, context.site, fitting(workload, gpu, family.gpus).fit)
    row, time_s = fastest_row(pool, context, uplinks)
    assert time_s <= workload.bound_s, f"workload {workload.name!r} is late on its island"
    return workload_plan(pool, gpu, context, uplinks, row)
