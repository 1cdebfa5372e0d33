"""How far each bound is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from coopt.instance.schema import Instance
from coopt.plan.evaluation import LimitCheck
from coopt.plan.schema import Cost, Design, WorkloadPlan
from coopt.report import words
from coopt.report.tables import figures, verdict_word


def margins(instance: Instance, design: Design, cost: Cost, workloads: Sequence[WorkloadPlan]) -> Iterator[LimitCheck]:
    """Every bound and limit of an instance against what a plan does."""
    for run in workloads:
        yield _check(f"time, {run.name}", run.iteration_time_s, run.bound_s, "s")
        yield _check(f"memory, {run.name}", run.memory_gib, run.memory_limit_gib, "GiB")
    limits = instance.limits
    if limits.power_mw is not None:
        yield _check("power", cost.power_w / 1e6, limits.power_mw, "MW")
    if limits.capex_usd is not None:
        yield _check("purchase", cost.capex_usd, limits.capex_usd, "USD")
    if limits.racks is not None and design.racks is not None:
        yield _check("racks", float(design.racks), limits.racks, "racks")


def margins_table(checks: Sequence[LimitCheck]) -> RenderableType:
    """Bounds with their slack; the tightest has the smallest percentage."""
    return figures(
        "How far each bound is",
        ("bound",),
        ("plan", "limit", "slack", "slack %", "met"),
        [
            (
                check.name,
                measured(check.value, check.unit),
                measured(check.limit, check.unit),
                measured(check.limit - check.value, check.unit),
                words.percent((check.limit - check.value) / check.limit),
                verdict_word(check.ok),
            )
            for check in checks
        ],
    )


def measured(value: float, unit: str) -> str:
    """A value with its unit: dollars and watts in full, everything else with four digits."""
    if unit.lower() in ("usd", "$"):
        return f"${words.exact(value)}" if value >= 0 else f"-${words.exact(-value)}"
    number = words.exact(value) if unit == "W" else words.digits(value, 4)
    return f"{number} {unit}".rstrip()


def _check(name: str, value: float, limit: float, unit: str) -> LimitCheck:
    return LimitCheck(name=name, value=value, limit=limit, unit=unit, ok=value <= limit * (1 + words.ROUNDING))
