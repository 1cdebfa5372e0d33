"""Mappings that the model cannot tell apart: of those within its error of the fastest, the one
nearest to published runs.

Error and distance depend on the micro-batch and on whether experts are spread over HB domains
(`coopt.instance.evidence`); of mappings that are equally near the fastest counts. It takes the
place of the fastest where it costs nothing: the network is the same, and the bound is met. Else the
fastest stays, and the other is listed beside the plan.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coopt.columns.grid import context_of
from coopt.columns.pools import Pool, timely_pool
from coopt.instance.hardware import Gpu
from coopt.instance.numerics import REORDERED
from coopt.instance.question import BILLED
from coopt.instance.reserves import error_size, practice_of
from coopt.instance.schema import Instance
from coopt.instance.variants import within
from coopt.instance.workload import Workload
from coopt.network.plan_networks import PartNetwork, part_network
from coopt.perf.mapping import expert_ranks
from coopt.plan.contents import promised_days_in_turn
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import Plan
from coopt.plan.store import decided, placed_as
from coopt.solving.days import run_on


def nearest_of_ties(instance: Instance, plan: Plan) -> Plan:
    """The plan with the mappings nearest to published runs where they cost nothing, and those that
    the model cannot tell from its own (`ties`).
    """
    if plan.cost is None or not instance.tells_ties:
        return plan
    question, answer = placed_as(*decided(instance, plan))
    is_billed = BILLED[plan.objective.kind] == plan.objective.kind
    ties, parts = list[WorkloadPlan](), list(answer.parts)
    for p, part in enumerate(answer.parts):
        if part.design is None:
            continue
        name = part.name if len(answer.parts) > 1 else None
        network = part_network(question, answer, "its mappings", name)
        runs = list(part.workloads)
        for w, (workload, run) in enumerate(network.runs):
            nearer = _nearer(network, workload, run, run.bound_s if is_billed else np.inf)
            if nearer is None and is_billed:
                nearer = _nearer(network, workload, run, np.inf)
            if nearer is None:
                continue
            ties.append(nearer)
            others = [*runs[:w], nearer, *runs[w + 1 :]]
            if is_billed and _all_in_time(network.question, nearer, others):
                runs, ties[-1] = others, run
        parts[p] = part.model_copy(update={"workloads": tuple(runs)})
    only = parts[0].workloads if len(parts) == 1 else ()
    return plan.model_copy(update={"parts": tuple(parts), "workloads": only, "ties": tuple(ties)})


def _all_in_time(question: Instance, run: WorkloadPlan, runs: list[WorkloadPlan]) -> bool:
    """Whether a workload meets its bound, and all of them in turn theirs."""
    total = question.limits.train_days_total
    in_turn = total is None or promised_days_in_turn(question, runs) <= total
    return in_turn and run.iteration_time_s <= run.bound_s


def _nearer(
    network: PartNetwork, workload: Workload, run: WorkloadPlan, most_s: float
) -> WorkloadPlan | None:
    """The mapping nearest to published runs that takes no longer than the fastest (`run`) with its
    error, nor than `most_s`; None where none is nearer.
    """
    assert run.error is not None
    below = run.error * (1.0 - REORDERED)
    gpu, family = network.question.cluster.gpu, network.family
    batches = tuple(
        batch
        for batch in workload.mapping.micro_batch
        if min(_error(gpu, workload, run, batch, across) for across in (False, True)) < below
    )
    limit_s = min(run.iteration_time_s * (1.0 + run.error), most_s)
    if not batches or limit_s < run.iteration_time_s:
        return None
    tried = workload.having(mapping={"micro_batch": batches})
    context = context_of(family)
    pool = timely_pool(within(tried, limit_s), gpu, family.hb, context)
    if not len(pool):
        return None
    times_s = pool.time_s(context, network.uplinks)
    errors = _errors(gpu, workload, run, pool)
    row = int(np.lexsort((times_s, np.where(times_s <= limit_s, errors, np.inf)))[0])
    if times_s[row] > limit_s or errors[row] >= below:
        return None
    own = replace(pool, workload=workload)
    return run_on(network.question, family, network.uplinks, workload, own, row)


def _errors(gpu: Gpu, workload: Workload, run: WorkloadPlan, pool: Pool) -> np.ndarray:
    """The error of every row."""
    _, across, *_ = expert_ranks(
        pool.mappings, pool.placements, expert_tp=workload.options.expert_tp
    )
    kinds = list(zip(pool.mappings.micro_batch.tolist(), (across > 1).tolist(), strict=True))
    known = {kind: _error(gpu, workload, run, *kind) for kind in set(kinds)}
    return np.array([known[kind] for kind in kinds])


def _error(
    gpu: Gpu, workload: Workload, run: WorkloadPlan, micro_batch: int, across: bool
) -> float:
    """The error of the time with a micro-batch, and experts across HB domains or inside."""
    practice = practice_of(
        gpu, workload, experts_across=across, micro_batch=micro_batch, gpus=run.gpus
    )
    return error_size(gpu, workload, practice)
