"""Direct links by trying every mapping with every number of links, on domains of few ports."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np

from coopt.columns.context import DomainSet
from coopt.columns.pools import Pool
from coopt.instance.network import Discipline
from coopt.instance.schema import Instance
from coopt.perf.affine import Reciprocals
from coopt.perf.mapping import expert_ranks
from tests.formulations.links import highest_pace, pace_of_ends, ways
from tests.solving.oracle import every_mapping


def fewest_links(instance: Instance, active: int) -> int | None:
    """The least number of links with which some mapping is in time, with one kind of HB domain, NIC and GPU count."""
    (gpus,), (hb,), (per_gpu,) = instance.cluster.gpus, instance.network.hb_domains, instance.network.nics_per_gpu
    count = gpus // active
    pairs = list(combinations(range(count), 2))
    pool = _pool(instance, active)
    rows = list(_rows(pool))
    times_s = cache(lambda dp, pp: pool.iteration.time_s(Reciprocals.of_grid(replicas=dp, stages=pp)))
    for total in range(count * hb.size * per_gpu // 2 + 1):
        for links in ways(np.full(count, hb.size * per_gpu), pairs, total):
            joined = dict(zip(pairs, links, strict=True))
            if any(_in_time(instance, active, times_s, pool, row, joined) for row in rows):
                return total
    return None


APART = Discipline("ratio", 1.0, 1.0)  # stages lie outermost


def _pool(instance: Instance, active: int) -> Pool:
    (hb,), (gpus,) = instance.network.hb_domains, instance.cluster.gpus
    site = DomainSet(gpus=gpus, hb=hb.name, active=active)
    return every_mapping(instance.workload[0], instance.cluster.gpu, hb, site, APART)


def _rows(pool: Pool) -> Iterator[int]:
    """Rows whose groups, but those of stages and of replicas or contexts, stay inside domains."""
    m, inside = pool.mappings, pool.placements
    _, experts, *_ = expert_ranks(m, inside, expert_tp=False)
    for row in range(len(pool)):
        far = pool.workload.model.tied_embeddings and m.pp[row] > 2 * inside.pp[row]
        one_ring = m.cp[row] == inside.cp[row] or m.dp[row] == inside.dp[row]
        if m.tp[row] == inside.tp[row] and one_ring and experts[row] == 1 and not far:
            yield row


def _in_time(
    instance: Instance,
    active: int,
    times_s: Callable[[float, float], Any],
    pool: Pool,
    row: int,
    links: dict[tuple[int, int], int],
) -> bool:
    m, inside = pool.mappings, pool.placements
    stages, replicas = (
        int(m.pp[row] // inside.pp[row]),
        int(m.dp[row] // inside.dp[row] * (m.cp[row] // inside.cp[row])),
    )
    hops, rings = np.zeros((2, stages * replicas, stages * replicas))
    for s in range(stages):
        for d in range(replicas):
            here = s * replicas + d
            if stages > 1 and (s + 1 < stages or m.interleave[row] > 1):
                there = (s + 1) % stages * replicas + d
                hops[here, there] = hops[there, here] = 1 / inside.pp[row]
            if replicas > 1:
                there = s * replicas + (d + 1) % replicas
                rings[here, there] += 0.5
                rings[there, here] += 0.5
    rate = instance.network.nics[0].gbit_s * 1e9 / 8
    seen: dict[str, Any] = {"pp": 0.0, "dp": 0.0}
    for pace_of in (pace_of_ends, highest_pace):  # the first is no less, and quick
        for name, demand in (("pp", hops), ("dp", rings)):
            if demand.any():
                pace = pace_of(demand, links)
                seen[name] = active / (pace * rate) if pace > 0 else math.inf
        if math.inf in seen.values():
            return False
        if times_s(seen["dp"], seen["pp"])[row] > pool.workload.bound_s * (1 + 1e-7):
            return False
    return True
