"""The memory of a GPU that lets some design keep every other limit."""

from __future__ import annotations

import numpy as np

from coopt.columns.context import Context, context_of
from coopt.columns.grid import mappings
from coopt.columns.placements import placed
from coopt.columns.pools import place
from coopt.columns.table import full_bandwidth
from coopt.instance.hardware import HbDomain
from coopt.perf.mapping import Bools, Floats
from coopt.perf.memory import memory_bytes
from coopt.solving.reasons.designs import Designs


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
            needed = np.maximum(needed, _of_workload(designs, w, domains[site.hb], of_site))
        least = min(least, float(needed.min()))
    return least if np.isfinite(least) else None


def _of_workload(designs: Designs, w: int, hb: HbDomain, widest: dict[Context, int]) -> Floats:
    """The least bytes of a mapping of one workload that is in time, on each context with its uplinks."""
    instance, contexts = designs.instance, list(widest)
    workload, gpu, site = instance.workload[w], instance.cluster.gpu, contexts[0].site
    whole, _ = mappings(workload, site.gpus)
    every = place(workload, gpu, hb, site, whole)
    best = full_bandwidth(contexts)
    rows, _ = placed(whole, site.active)
    quick = np.unique(rows[every.time_s(best, 1) <= workload.bound_s])
    pool = place(workload, gpu, hb, site, whole.take(quick))
    needed = memory_bytes(workload, pool.mappings)
    return np.array(
        [needed[pool.time_s(c, u) <= workload.bound_s].min(initial=np.inf) for c, u in widest.items()], dtype=np.float64
    )
