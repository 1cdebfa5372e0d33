"""What a plan stands: losses, and prices that turn out otherwise."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rich.console import RenderableType

from coopt.instance.robust import Prices, Robust
from coopt.plan.robust import Standing, Survived, Turn
from coopt.plan.schema import WorkloadPlan
from coopt.report import words
from coopt.report.sentence import amount
from coopt.report.tables import facts, figures
from coopt.report.workload import degrees


def robust_tables(kind: str, standing: Standing, robust: Robust) -> Iterator[RenderableType]:
    """Terms and losses, and for regret every way prices may turn out; nothing where nothing may turn out otherwise."""
    rows = list(_rows(kind, standing, robust))
    if not rows:
        return
    yield ""
    yield facts("What it stands", rows)
    if standing.turns:
        yield ""
        yield figures(
            "However prices turn out",
            ("factors on prices",),
            ("this plan", "best plan", "regret"),
            [
                (_factors(turn), *(amount(kind, value) for value in (turn.value, turn.best, turn.value - turn.best)))
                for turn in standing.turns
            ],
        )


def _rows(kind: str, standing: Standing, robust: Robust) -> Iterator[tuple[str, str]]:
    low, high = standing.efficiency
    if (low, high) != (1.0, 1.0):
        yield "Efficiency", f"{low:g} to {high:g} times that of the catalog; bounds are met at {low:g}"
    for loss in standing.survived:
        yield "Loss", _loss(loss)
        for run in loss.workloads:
            yield "", _left(run)
    if robust.prices == Prices() and robust.aim == "worst-case":
        return
    aim = "least cost at the worst prices" if standing.aim == "worst-case" else "least regret over all prices"
    yield "Aim", aim
    yield "Objective", f"{amount(kind, standing.list_value)} at list prices"


def _loss(loss: Survived) -> str:
    if loss.slowdown is None:
        return (
            f"any one {loss.part} lost: training goes on with fewer GPUs; "
            f"every bound, {loss.slower:g} times as long, is still met"
        )
    return (
        f"any one {loss.part} lost: traffic of a domain takes {loss.slowdown:.3g} times as long; "
        f"every bound, {loss.slower:g} times as long, is still met"
    )


def _left(run: WorkloadPlan) -> str:
    """How a workload runs without a domain."""
    active = math.prod(inside for name, (inside, _) in run.placement.items() if name != "ep")
    domains = words.counted(run.gpus // active, "domain")
    return (
        f"{run.name}: {words.count(run.gpus)} GPUs, {active} in each of {domains}, {degrees(run.mapping)}, "
        f"{words.seconds(run.iteration_time_s)} of {words.seconds(run.bound_s)}"
    )


def _factors(turn: Turn) -> str:
    changed = [f"{kind} {factor:g}" for kind, factor in turn.factors.items() if factor != 1.0]
    return ", ".join(changed) or "as listed"
