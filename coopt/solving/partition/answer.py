"""Answer a partition: an island for each workload at the least cost of all together."""

from __future__ import annotations

import math
from collections import Counter
from typing import Literal

import numpy as np

from coopt.columns.context import context_of
from coopt.columns.islands.listing import Market
from coopt.columns.islands.options import list_options
from coopt.columns.pools import timely_pool
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.network.family import Family
from coopt.network.island_bills import core_of, island_bill, island_limits, part_cost, with_core_optics
from coopt.network.plan_networks import design_of
from coopt.plan.couplings import Couplings, Part, SharedCore
from coopt.plan.schema import Plan, WorkloadPlan
from coopt.solving.effort import Counted
from coopt.solving.highs import Outcome
from coopt.solving.outcome import answered, claim_of, ending, infeasible, unknown
from coopt.solving.partition import explain
from coopt.solving.partition.arrays import Variant, partition_data
from coopt.solving.partition.search import Partition, search_partition
from coopt.solving.runs import Run
from coopt.solving.workloads import fastest_row, workload_plan
from formulations.partition_data import Ints

FORMULATION: Literal["totals"] = "totals"


def answer_partition(run: Run) -> Plan:
    """The plan of a run whose instance is a partition."""
    instance = run.instance
    run.formulation = FORMULATION
    variants = _variants(run)
    missing = np.setdiff1d(np.arange(len(instance.workload)), variants[0].options.workload)
    if len(missing):
        return infeasible(run, explain.no_island(run, missing.tolist()) if run.reasons else ())
    table = run.log.table
    assert table is not None
    run.tell("build", f"{table.enumerated:,} islands enumerated, {table.kept:,} kept")
    run.tell("solve", f"formulation {FORMULATION!r} handed to {run.backend.name}")
    tried = [(variant, _searched(run, variant)) for variant in variants]
    possible = [ended for _, ended in tried if ended.outcome != "infeasible"]
    if not possible:
        return infeasible(run, explain.over_limits(run, variants))
    bound, found = min(ended.bound for ended in possible), [pair for pair in tried if pair[1].worth is not None]
    outcome: Outcome = next((ended.outcome for ended in possible if ended.outcome != "optimal"), "optimal")
    assert outcome in ("optimal", "time limit", "interrupted"), outcome
    if not found:
        return unknown(run, outcome, bound)
    variant, best = min(found, key=lambda pair: pair[1].worth.objective if pair[1].worth else math.inf)
    assert best.chosen is not None, "what is worth something was chosen"
    return _plan(run, variant, best.chosen, outcome, bound)


def _variants(run: Run) -> list[Variant]:
    """The islands that workloads may have, for each optic that a core may have."""
    found = []
    for asked in with_core_optics(run.instance):
        options = list_options(
            asked, lambda w: run.tell("columns", f"islands of {w.name}"), run.check_clock, run.listed
        )
        found.append(Variant(instance=asked, options=options, data=partition_data(asked, options)))
    gated = sum((Counter(one.options.gated) for one in found), Counter[str]())
    run.log.table = Counted(gated=dict(gated), kept=sum(one.options.kept for one in found))
    run.log.columns_s = run.elapsed_s()
    return found


def _searched(run: Run, variant: Variant) -> Partition:
    ended = search_partition(
        variant.data,
        formulation=FORMULATION,
        gap=run.instance.solver.gap,
        backend=run.backend,
        deadline=run.deadline,
        allowed=lambda rows: _allowed(variant, rows),
        on_standing=run.tell_standing,
    )
    run.log.searches.append(ended)
    return ended


def _built(variant: Variant, chosen: Ints) -> list[tuple[Family, int]]:
    """The chosen islands as families with their uplinks."""
    market, islands = Market(instance=variant.instance), variant.options.islands
    return [(market.family(islands, row), int(islands.uplinks[row])) for row in chosen.tolist()]


def _allowed(variant: Variant, chosen: Ints) -> bool:
    """Whether islands keep the limits when they are written out."""
    built = _built(variant, chosen)
    return island_limits(variant.instance, [family for family, _ in built], island_bill(variant.instance, built))


def _plan(run: Run, variant: Variant, chosen: Ints, outcome: Outcome, bound: float) -> Plan:
    instance, built = variant.instance, _built(variant, chosen)
    cost = island_bill(instance, built)
    claim = claim_of(instance.objective.minimize, cost.of(instance.objective.minimize), bound)
    pairs = list(zip(instance.workload, built, strict=True))
    core = core_of(instance, {workload.name: family for workload, (family, _) in pairs})
    return answered(
        run,
        ending(run, outcome, claim),
        claim,
        cost=cost,
        parts=tuple(_part(run, instance, workload, *one) for workload, one in pairs),
        couplings=Couplings(cores=() if core is None else (SharedCore(core=core),)),
    )


def _part(run: Run, instance: Instance, workload: Workload, family: Family, uplinks: int) -> Part:
    """An island with its bill at the prices of one unit."""
    cost = part_cost(instance, instance.objective, family, uplinks)
    return Part(
        name=workload.name,
        design=design_of(family, uplinks),
        workloads=(_workload(run, workload, family, uplinks),),
        cost=cost,
        power_w=cost.power_w,
    )


def _workload(run: Run, workload: Workload, family: Family, uplinks: int) -> WorkloadPlan:
    """The fastest mapping on an island, recomputed from what was decided."""
    gpu, context = run.instance.cluster.gpu, context_of(family)
    pool = timely_pool(workload, gpu, family.hb, context)
    row, time_s = fastest_row(pool, context, uplinks)
    assert time_s <= workload.bound_s, f"workload {workload.name!r} is late on its island"
    return workload_plan(pool, gpu, context, uplinks, row)
