"""Simulated iterations beside the closed form."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from coopt.plan.simulation import Cause, SimulatedWorkload, TrafficKind
from coopt.report import words
from coopt.report.tables import Cell, figures, verdict_word

CAUSES: dict[Cause, str] = {
    "pipeline": "passes and hops of the pipeline",
    "gradients": "gradients, what is not hidden",
    "embedding": "tied embedding",
    "optimizer": "optimizer",
    "stragglers": "stragglers and software",
}
KINDS: dict[TrafficKind, str] = {
    "tp": "tensor parallel", "cp": "context parallel", "ep": "experts", "pp": "pipeline hops", "dp": "data parallel",
    "edp": "data parallel, experts", "embedding": "tied embedding",
}  # fmt: skip


def simulation_report(workloads: tuple[SimulatedWorkload, ...]) -> Iterator[RenderableType]:
    """The verdict on each workload, where its time goes, and what its traffic meets on the network."""
    for workload in workloads:
        yield Text(simulation_headline(workload), style="bold")
    yield ""
    yield figures(
        "Iteration", ("workload",), ("closed form", "simulated", "difference", "bound", "met"), map(_row, workloads)
    )
    for workload in workloads:
        whose = f" of {workload.name}" if len(workloads) > 1 else ""
        yield figures(
            f"Where the time{whose} goes",
            ("spent on",),
            ("closed form", "simulated", "difference"),
            [_spent(CAUSES[one.cause], one.closed_form_s, one.simulated_s) for one in workload.times],
            total=_spent("iteration", workload.closed_form_s, workload.simulated_s),
        )
        if workload.traffic:
            yield figures(
                f"Traffic{whose} between domains",
                ("traffic",),
                ("flows", "slowdown"),
                [(KINDS[one.kind], words.count(one.flows), f"{one.slowdown:.4g}") for one in workload.traffic],
            )
        yield f"Simulated{whose}: {workload.simulated}."
    yield (
        "Closed form: the time in the plan. Slowdown: time over that at the rate of a NIC, with all traffic of the "
        "kind under way together."
    )


def simulation_headline(workload: SimulatedWorkload) -> str:
    """`Workload w: 0.6845 s simulated, +0.57% of the closed form; its bound of 1.000 s is met.`"""
    time, bound = words.seconds(workload.simulated_s), words.bound(workload.bound_s)
    verdict = "is met" if workload.met else f"is MISSED by {words.percent(workload.simulated_s / workload.bound_s - 1)}"
    away = f"{workload.difference:+.2%} from the closed form"
    kept = f"its bound of {bound} {verdict}" if bound != words.NO_BOUND else "it has no bound"
    return f"Workload {workload.name}: {time} simulated, {away}; {kept}."


def _row(workload: SimulatedWorkload) -> tuple[Cell, ...]:
    times = (words.seconds(time) for time in (workload.closed_form_s, workload.simulated_s))
    return (
        workload.name,
        *times,
        f"{workload.difference:+.2%}",
        words.bound(workload.bound_s),
        verdict_word(workload.met),
    )


def _spent(name: str, closed_form_s: float, simulated_s: float) -> tuple[str, ...]:
    return name, words.seconds(closed_form_s), words.seconds(simulated_s), f"{simulated_s - closed_form_s:+.4f} s"
