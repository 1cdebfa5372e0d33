"""From families and columns to the arrays of a formulation.

How workloads run on the network that it chooses is recomputed from the decisions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from coopt.columns.grid import Context, context_of
from coopt.columns.pools import Pool
from coopt.columns.table import Column, Columns, needs
from coopt.instance.evidence import differences, nearest_runs, outside
from coopt.instance.hardware import Gpu
from coopt.instance.numerics import REORDERED
from coopt.instance.reserves import error_size, practice_of
from coopt.instance.schema import Instance
from coopt.instance.texts import grouped
from coopt.instance.workload import Workload
from coopt.network.family import Family
from coopt.network.parts import Affine, price, resources
from coopt.perf.algorithms import algorithm_names
from coopt.perf.collectives import Algorithms, Reciprocals
from coopt.perf.mapping import Mappings, Placements, expert_ranks, utilisation
from coopt.perf.memory import GIB, memory_bytes
from coopt.plan.parts import MappingChoice, NearestRun, WorkloadPlan
from coopt.solving.highs import COARSE, LARGEST, NEAR
from formulations.network import Floats, Ints, NetworkData, Resource


@dataclass(frozen=True, kw_only=True)
class SharedProblem:
    """Families that can serve every workload, the columns on them, and their numbers.

    `columns[i]` is column i of `data`; `families[i]` is family i, and `prices[i]` what it is worth
    in the unit of the objective. `scale` is the objective (USD or W) in one unit of the model.
    """

    families: tuple[Family, ...]
    prices: tuple[Affine, ...]
    columns: tuple[Column, ...]
    data: NetworkData
    scale: float


def viable(instance: Instance, families: tuple[Family, ...], table: Columns) -> tuple[Family, ...]:
    """Families whose uplinks can meet every workload's bound."""
    need = needs(table.columns, len(instance.workload))
    serving = []
    for family in families:
        uplinks = need.get(table.numbers[context_of(family)])
        if uplinks is not None and uplinks <= family.uplink_choices[-1]:
            serving.append(family)
    return tuple(serving)


def assemble(
    instance: Instance,
    families: tuple[Family, ...],
    table: Columns,
    prices: tuple[Affine, ...] | None = None,
) -> SharedProblem:
    """The formulation's arrays for the viable families, and what these are worth where that is
    known.
    """
    contexts = [table.numbers[context_of(family)] for family in families]
    dense = {k: i for i, k in enumerate(dict.fromkeys(contexts))}
    columns = tuple(column for column in table.columns if column.context in dense)
    kind = instance.objective.minimize
    prices = prices or tuple(price(instance, family, kind) for family in families)
    # what a family comes to never falls with its uplinks, so that its last number is the dearest
    dearest = max(
        a.at(family, family.uplink_choices[-1]) for a, family in zip(prices, families, strict=True)
    )
    scale = dearest / LARGEST or 1.0
    data = NetworkData(
        workloads=len(instance.workload),
        contexts=len(dense),
        fixed=floats(a.fixed / scale for a in prices),
        uplink=floats(a.uplink / scale for a in prices),
        spine=floats(a.spine / scale for a in prices),
        min_uplinks=_ints(f.uplink_choices[0] for f in families),
        max_uplinks=_ints(f.uplink_choices[-1] for f in families),
        leaves=_ints(f.leaves if f.tiers == 2 else 0 for f in families),
        radix=_ints(f.spine_ports for f in families),
        context=_ints(dense[k] for k in contexts),
        column_workload=_ints(c.workload for c in columns),
        column_context=_ints(dense[c.context] for c in columns),
        need=_ints(c.uplinks for c in columns),
        resources=_resources(instance, families),
    )
    return SharedProblem(families=families, prices=prices, columns=columns, data=data, scale=scale)


def _resources(instance: Instance, families: tuple[Family, ...]) -> tuple[Resource, ...]:
    """Each limit in units of its cap, so that rows stay near 1; a cap of nothing stays as it is."""
    rows = grouped(item for family in families for item in resources(instance, family).items())
    caps = {name: float(getattr(instance.limits, name)) for name in rows}
    return tuple(
        Resource(
            name=name,
            fixed=floats(a.fixed / (caps[name] or 1.0) for a in use),
            uplink=floats(a.uplink / (caps[name] or 1.0) for a in use),
            spine=floats(a.spine / (caps[name] or 1.0) for a in use),
            cap=1.0 if caps[name] else 0.0,
        )
        for name, use in rows.items()
    )


def floats(values: Iterable[float]) -> Floats:
    """Numbers as an array."""
    return np.fromiter(values, dtype=np.float64)


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)


def in_units_of(problem: SharedProblem, value: float) -> SharedProblem | None:
    """The problem in units of what a design is worth; None where it is in such units, or the design
    costs nothing.

    Costs are cut off far above that value: a design with one of these was no better, and still is
    not.
    """
    if not 0 < value < COARSE * problem.scale:
        return None
    scale, ceiling = value / LARGEST, NEAR * LARGEST
    shrink = problem.scale / scale
    costs = {
        name: np.minimum(getattr(problem.data, name) * shrink, ceiling)
        for name in ("fixed", "uplink", "spine")
    }
    return replace(problem, data=replace(problem.data, **costs), scale=scale)


def fastest_row(pool: Pool, context: Context, uplinks: int) -> tuple[int, float]:
    """The mapping that runs fastest on a network, and its mean seconds; the earliest among
    equals.
    """
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
    row_pool = pool.take(np.array([row]))
    return float(row_pool.time_s(context, uplinks)[0] / row_pool.mean_s(context, uplinks)[0])


def run_of(pool: Pool, gpu: Gpu, r: Reciprocals, row: int) -> WorkloadPlan:
    """One row of a pool, written out for what its groups see between domains."""
    workload = pool.workload
    index = np.array([row])
    mapping, placement = pool.mappings.take(index), pool.placements.take(index)
    pieces = pool.pieces.take(index)
    iterations = pool.iteration.take(index)
    offered = r.mapped(lambda s_byte: np.broadcast_to(s_byte, (len(pool),))[index])
    of_cases = [(case, iterations.charged(case)) for case in offered.cases()]
    seconds_of_cases = np.array([pieces.at(charged)[0] for _, charged in of_cases])
    # the first of those that take as long: traffic whose luck changes nothing has its mean
    longest_s = seconds_of_cases.max() * (1.0 - REORDERED)
    slowest, charged = of_cases[int(np.argmax(seconds_of_cases >= longest_s))]
    # what is charged needs neither a choice of algorithms nor a limit any more
    as_charged = replace(iterations, algorithms=Algorithms(), to_nics_s_byte=0.0)
    parts = as_charged.breakdown_s(charged)
    time_s = float(pieces.at(charged)[0])
    mfu, hfu, mfu_causal = utilisation(workload, gpu, pool.site.gpus, mapping.recompute, time_s)
    ranks = placement_of(workload, mapping, placement)
    practice = practice_of(
        gpu,
        workload,
        experts_across=ranks["ep"][1] > 1,
        micro_batch=int(mapping.micro_batch[0]),
        gpus=pool.site.gpus,
    )
    return WorkloadPlan(
        name=workload.name,
        gpus=pool.site.gpus,
        mapping=MappingChoice.model_validate(
            mapping.choice(0) | {"pipeline_layout": workload.mapping.pipeline_layout or ""}
        ),
        placement=ranks,
        iteration_time_s=time_s,
        bound_s=workload.bound_s,
        breakdown_s={name: float(seconds[0]) for name, seconds in parts.items()},
        memory_gib=float(memory_bytes(workload, mapping)[0]) / GIB,
        memory_limit_gib=gpu.usable_bytes / GIB,
        mfu=float(mfu),
        hfu=float(hfu[0]),
        mfu_causal=float(mfu_causal),
        tokens_per_s=workload.tokens_per_iteration / time_s,
        knobs=workload.options.knobs,
        collectives=algorithms_of(pool, gpu, slowest, row),
        error=error_size(gpu, workload, practice),
        nearest=tuple(
            NearestRun(id=run.id, differs=differences(practice, run.practice))
            for run in nearest_runs(practice)
        ),
        outside=outside(practice),
    )


def algorithms_of(pool: Pool, gpu: Gpu, r: Reciprocals, row: int) -> dict[str, str]:
    """The algorithms of one row's collectives by name, where what its groups see between domains
    leaves a choice.
    """
    index = np.array([row])
    offered = r.mapped(lambda s_byte: np.broadcast_to(s_byte, (len(pool),))[index])
    seen = offered.at_least(pool.iteration.take(index).to_nics_s_byte)
    mapping, placement = pool.mappings.take(index), pool.placements.take(index)
    return algorithm_names(
        pool.workload, gpu, mapping, placement, pool.iteration.algorithms.take(index), seen
    )


def placement_of(
    workload: Workload, mapping: Mappings, placement: Placements
) -> dict[str, tuple[int, int]]:
    """The parts inside and across domains of every degree of one row."""
    degrees = {
        name: getattr(mapping, name) // getattr(placement, name) for name in ("tp", "cp", "pp")
    }
    degrees["dp"] = placement.dp_across(mapping)
    inside, across, *_ = expert_ranks(mapping, placement, expert_tp=workload.options.expert_tp)
    parts = {
        name: (int(getattr(placement, name)[0]), int(count[0])) for name, count in degrees.items()
    }
    return parts | {"ep": (int(inside[0]), int(across[0]))}


def row_of(pool: Pool, run: WorkloadPlan) -> int | None:
    """The row of a pool that is placed as a plan says; None where there is none."""
    for row in range(len(pool)):
        index = np.array([row])
        if (
            placement_of(pool.workload, pool.mappings.take(index), pool.placements.take(index))
            == run.placement
        ):
            return row
    return None
