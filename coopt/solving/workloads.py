"""How workloads run on a chosen network, recomputed from the decisions."""

from __future__ import annotations

import numpy as np

from coopt.columns.context import Context
from coopt.columns.pools import Pool
from coopt.instance.hardware import Gpu
from coopt.instance.workload import Workload
from coopt.perf.affine import Reciprocals
from coopt.perf.algorithms import algorithm_names
from coopt.perf.mapping import Mappings, Placements, expert_ranks
from coopt.perf.memory import GIB, memory_bytes
from coopt.perf.parameters import utilisation
from coopt.plan.schema import MappingChoice, WorkloadPlan


def fastest_row(pool: Pool, context: Context, uplinks: int) -> tuple[int, float]:
    """The mapping that runs fastest on a network, and its mean seconds; the earliest among equals."""
    times = pool.mean_s(context, uplinks)
    row = int(np.argmin(times))
    return row, float(times[row])


def workload_plan(pool: Pool, gpu: Gpu, context: Context, uplinks: int, row: int) -> WorkloadPlan:
    """One row of a pool, written out for a network."""
    return run_of(pool, gpu, pool.reciprocals(context, uplinks), row)


def pace_of(pool: Pool, context: Context, uplinks: int, row: int) -> float:
    """An iteration of one row with all ports of NICs, over what it takes on average."""
    if not context.slow_times:
        return 1.0
    one = pool.take(np.array([row]))
    return float(one.time_s(context, uplinks)[0] / one.mean_s(context, uplinks)[0])


def run_of(pool: Pool, gpu: Gpu, r: Reciprocals, row: int) -> WorkloadPlan:
    """One row of a pool, written out for what its groups see between domains."""
    workload = pool.workload
    one = np.array([row])
    mapping, placement = pool.mappings.take(one), pool.placements.take(one)
    parts = pool.iteration.breakdown_s(r)
    seen = pool.charged(r)
    time_s = float(np.maximum.reduce([np.broadcast_to(piece.at(seen), (len(pool),)) for piece in pool.pieces])[row])
    mfu, hfu = utilisation(workload, gpu, pool.site.gpus, mapping.recompute, time_s)
    used = memory_bytes(workload, mapping)
    return WorkloadPlan(
        name=workload.name,
        gpus=pool.site.gpus,
        mapping=MappingChoice.model_validate(mapping.choice(0)),
        placement=placement_of(workload, mapping, placement),
        iteration_time_s=time_s,
        bound_s=workload.bound_s,
        breakdown_s={name: float(seconds[row]) for name, seconds in parts.items()},
        memory_gib=float(used[0]) / GIB,
        memory_limit_gib=gpu.usable_bytes / GIB,
        mfu=float(mfu),
        hfu=float(hfu[0]),
        tokens_per_s=workload.tokens_per_iteration / time_s,
        knobs=workload.options.knobs,
        collectives=algorithm_names(
            workload, gpu, mapping, placement, pool.iteration.ways.take(one), _of_row(r, row, len(pool))
        ),
    )


def _of_row(r: Reciprocals, row: int, count: int) -> Reciprocals:
    """What one of so many rows sees."""
    return r.each(lambda s_byte: np.broadcast_to(s_byte, (count,))[row : row + 1])


def placement_of(workload: Workload, mapping: Mappings, placement: Placements) -> dict[str, tuple[int, int]]:
    """The parts inside and across domains of every degree of one row."""
    degrees = {name: getattr(mapping, name) // getattr(placement, name) for name in ("tp", "cp", "pp")}
    degrees["dp"] = placement.dp_across(mapping)
    inside, across, *_ = expert_ranks(mapping, placement, expert_tp=workload.options.expert_tp)
    parts = {name: (int(getattr(placement, name)[0]), int(count[0])) for name, count in degrees.items()}
    return parts | {"ep": (int(inside[0]), int(across[0]))}
