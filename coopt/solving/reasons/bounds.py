"""How far each bound of a plan is, and which plan takes over when it moves."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from coopt.columns.context import Context, context_of
from coopt.columns.grid import mappings
from coopt.columns.least_times import least_time_s
from coopt.columns.pools import in_orders, place
from coopt.columns.table import full_bandwidth
from coopt.instance.hardware import HbDomain
from coopt.instance.workload import LONGEST_S
from coopt.perf.mapping import Bools, Floats
from coopt.perf.memory import GIB, memory_bytes
from coopt.plan.explanation import Bound, NextPlan
from coopt.plan.schema import WorkloadPlan
from coopt.solving.reasons.again import solved
from coopt.solving.reasons.designs import ROUNDING, Designs
from coopt.solving.reasons.limits import Limit, limits_of, with_gpu


def bounds_of(designs: Designs, chosen: int, runs: tuple[WorkloadPlan, ...]) -> Iterator[Bound]:
    """Time of every workload, the caps that are set, and memory."""
    for limit in limits_of(designs.instance):
        if limit.cap < LONGEST_S:
            yield _bound(designs, chosen, limit)
    yield _memory(designs, chosen, max(run.memory_gib for run in runs) * GIB)


def _bound(designs: Designs, chosen: int, limit: Limit) -> Bound:
    use = designs.uses[limit.key]
    used = float(use[chosen])

    def moved(row: int | None) -> NextPlan | None:
        if row is None:
            return None
        bound, design = limit.own(float(use[row])), designs.design(row)
        return NextPlan(bound=bound, value=float(designs.value[row]), extra=designs.extra(row, chosen), design=design)

    waiting = designs.met(limit.key) & designs.cheaper(chosen) & np.isfinite(use)
    first = waiting & (use == use[waiting].min(initial=np.inf))
    looser = moved(designs.cheapest(first))
    return Bound(
        limit=limit.key,
        unit=limit.unit,
        bound=limit.own(limit.cap),
        used=limit.own(used),
        slack=1.0 - used / limit.cap,
        binds=looser is not None,
        tighter=moved(designs.cheapest(designs.met() & (use < used))),
        looser=looser,
    )


def _memory(designs: Designs, chosen: int, used_bytes: float) -> Bound:
    instance, value = designs.instance, float(designs.value[chosen])
    gpu = instance.cluster.gpu
    cap, used_gb = gpu.hbm_gb, gpu.whole_gb(used_bytes)

    def moved(hbm_gb: float) -> NextPlan | None:
        plan = solved(with_gpu(instance, hbm_gb))
        found = plan.objective.value
        if found is None or plan.design is None:
            return None
        held_gb = gpu.whole_gb(max(run.memory_gib for run in plan.workloads) * GIB)
        return NextPlan(bound=held_gb, value=found, extra=found - value, design=plan.design)

    times = tuple(key for key in designs.uses if key.startswith("workload"))
    more = least_memory_bytes(designs, designs.met(*times) & designs.cheaper(chosen))
    return Bound(
        limit="cluster.gpu.hbm_gb",
        unit="GB",
        bound=cap,
        used=used_gb,
        slack=1.0 - used_gb / cap,
        binds=more is not None,
        tighter=moved(math.nextafter(used_gb * (1 - ROUNDING), 0)),
        looser=None if more is None else moved(gpu.whole_gb(more) * (1 + ROUNDING)),
    )


def least_memory_bytes(designs: Designs, among: Bools) -> float | None:
    """The least memory with which every workload has a mapping in time on one of the designs; None without one."""
    widest: dict[Context, int] = {}
    for f in np.unique(designs.family[among]).tolist():
        context, most = context_of(designs.families[f]), int(designs.uplinks[among & (designs.family == f)].max())
        widest[context] = max(widest.get(context, 0), most)
    domains = {family.hb.name: family.hb for family in designs.families}
    least = np.inf
    for site in dict.fromkeys(context.site for context in widest):
        of_site = {context: most for context, most in widest.items() if context.site == site}
        needed = np.zeros(len(of_site))
        for w in range(len(designs.instance.workload)):
            needed = np.maximum(needed, _of_workload(designs, w, domains[site.hb], of_site, below=least))
        least = min(least, float(needed.min()))
    return least if np.isfinite(least) else None


def _of_workload(designs: Designs, w: int, hb: HbDomain, widest: dict[Context, int], *, below: float) -> Floats:
    """The least bytes of a mapping of one workload that is in time, on each context with its uplinks, if below some."""
    instance, contexts = designs.instance, list(widest)
    workload, gpu, site = instance.workload[w], instance.cluster.gpu, contexts[0].site
    best = full_bandwidth(contexts)
    whole, _ = mappings(workload, site.gpus)
    few = whole.take(memory_bytes(workload, whole) < below)
    near = few.take(least_time_s(workload, gpu, few, hb_gbyte_s=hb.gbyte_s, byte_s=best.byte_s) <= workload.bound_s)
    every = place(workload, gpu, hb, site, near)
    pool = in_orders(every.take(np.flatnonzero(every.time_s(best, 1) <= workload.bound_s)), best.discipline)
    pool.load([context for context in contexts if not context.layout.is_flat])
    needed = memory_bytes(workload, pool.mappings)
    return np.array(
        [needed[pool.time_s(c, u) <= workload.bound_s].min(initial=np.inf) for c, u in widest.items()], dtype=np.float64
    )
