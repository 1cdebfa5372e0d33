"""Every bound and limit of an instance against what a design does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coopt.instance.schema import Instance
from coopt.plan.evaluation import LimitCheck
from coopt.plan.islands import Island
from coopt.plan.schema import Cost, Design, WorkloadPlan


def limit_checks(
    instance: Instance, design: Design, cost: Cost, workloads: Sequence[WorkloadPlan]
) -> Iterator[LimitCheck]:
    """Time and memory of every workload, then the limits that are set; exact comparisons."""
    yield from _of_workloads(workloads)
    yield from _of_bills(instance, cost)
    if instance.limits.racks is not None:
        assert design.racks is not None, "the instance refuses racks limits without rack counts"
        yield _check("racks", float(design.racks), instance.limits.racks, "racks")


def island_checks(instance: Instance, islands: Sequence[Island], cost: Cost) -> Iterator[LimitCheck]:
    """What couples islands: the GPUs there are, and the limits that are set."""
    gpus = sum(island.design.gpus for island in islands)
    yield _check("GPUs", float(gpus), float(instance.cluster.gpus[0]), "GPUs")
    yield from _of_bills(instance, cost)
    if instance.limits.racks is not None:
        yield _check("racks", float(sum(i.design.racks or 0 for i in islands)), instance.limits.racks, "racks")


def _of_workloads(workloads: Sequence[WorkloadPlan]) -> Iterator[LimitCheck]:
    for run in workloads:
        yield _check(f"time, {run.name}", run.iteration_time_s, run.bound_s, "s")
        yield _check(f"memory, {run.name}", run.memory_gib, run.memory_limit_gib, "GiB")


def _of_bills(instance: Instance, cost: Cost) -> Iterator[LimitCheck]:
    limits = instance.limits
    if limits.power_mw is not None:
        yield _check("power", cost.power_w / 1e6, limits.power_mw, "MW")
    if limits.capex_usd is not None:
        yield _check("purchase", cost.capex_usd, limits.capex_usd, "USD")


def _check(name: str, value: float, limit: float, unit: str) -> LimitCheck:
    return LimitCheck(name=name, value=value, limit=limit, unit=unit, ok=value <= limit)
