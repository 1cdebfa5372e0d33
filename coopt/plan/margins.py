"""Every bound and limit of an instance against what a design does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coopt.instance.schema import Instance
from coopt.plan.evaluation import LimitCheck
from coopt.plan.schema import Cost, Design, WorkloadPlan


def limit_checks(
    instance: Instance, design: Design, cost: Cost, workloads: Sequence[WorkloadPlan]
) -> Iterator[LimitCheck]:
    """Time and memory of every workload, then the limits that are set; exact comparisons."""
    for run in workloads:
        yield _check(f"time, {run.name}", run.iteration_time_s, run.bound_s, "s")
        yield _check(f"memory, {run.name}", run.memory_gib, run.memory_limit_gib, "GiB")
    limits = instance.limits
    if limits.power_mw is not None:
        yield _check("power", cost.power_w / 1e6, limits.power_mw, "MW")
    if limits.capex_usd is not None:
        yield _check("purchase", cost.capex_usd, limits.capex_usd, "USD")
    if limits.racks is not None:
        assert design.racks is not None, "the instance refuses racks limits without rack counts"
        yield _check("racks", float(design.racks), limits.racks, "racks")


def _check(name: str, value: float, limit: float, unit: str) -> LimitCheck:
    return LimitCheck(name=name, value=value, limit=limit, unit=unit, ok=value <= limit)
