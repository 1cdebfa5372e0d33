"""Routes of a plan as a planner reads them."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from coopt.plan.routes import CollectiveRoutes, RoutedWorkload, Routing
from coopt.report import words
from coopt.report.tables import Cell, figures, verdict_word

COLLECTIVES = {
    "tp": "tensor parallel", "cp": "context parallel", "ep": "experts", "pp": "pipeline hops", "dp": "data parallel",
    "embedding": "tied embedding",
}  # fmt: skip


def routing_report(found: Routing) -> Iterator[RenderableType]:
    """The factor first, then collectives and iteration times."""
    yield Text(routing_headline(found), style="bold")
    if not found.collectives:
        return
    yield ""
    yield figures(
        "Collectives between domains",
        ("traffic",),
        ("flows", "alpha", "bound", "efficiency", "stretch", "charged", "routing"),
        [_collective(one, len(found.workloads) > 1) for one in found.collectives],
    )
    yield figures(
        "Iteration",
        ("workload",),
        ("in the plan", "with these routes", "bound", "met"),
        map(_workload, found.workloads),
    )
    yield (
        "Flows: those that go above their leaf. Alpha: flows on each link of the busiest bundle; bound: the least any "
        "routing has. Efficiency: mean over groups of their max-min fair rate over that of a NIC. Stretch: time over "
        "that at the rate of a NIC; charged: the slowdown the plan supposes; routing: one over the other."
    )
    if found.routing > 1:
        yield f"To plan with it: network.routing = {found.routing:.4g}."
    if found.algorithm != "exact" and any(one.routing > 1 and not one.optimal for one in found.collectives):
        yield "The bound leaves room: `--algorithm exact` finds the best routes on two tiers."


def routing_headline(found: Routing) -> str:
    """What the routes do to the plan, in a sentence."""
    if not found.collectives:
        return "Nothing to route: no traffic passes above a leaf."
    how = f"Routed by {found.algorithm} in {words.digits(1000 * found.seconds, 3)} ms"
    if found.failed_cores:
        how += f" with {words.counted(found.failed_cores, 'top switch')} of each plane out"
    proven = all(one.optimal for one in found.collectives if one.routing > 1)
    if found.routing <= 1:
        return f"{how}: no link stretches traffic beyond what the plan charges."
    best = "no routing does better" if proven else "the bound leaves room"
    return f"{how}: the busiest link stretches traffic by {found.routing:.4g}; {best}."


def _collective(one: CollectiveRoutes, several: bool) -> tuple[Cell, ...]:
    name = COLLECTIVES[one.kind] + (", experts" if one.collective == "copies" else "")
    ratios = (f"{value:.4g}" for value in (one.stretch, one.charged, one.routing))
    return (
        f"{one.workload}: {name}" if several else name,
        words.count(one.flows),
        f"{one.alpha:.4g}",
        f"{one.bound:.4g}",
        words.percent(one.efficiency),
        *ratios,
    )


def _workload(one: RoutedWorkload) -> tuple[Cell, ...]:
    times = (words.seconds(time) for time in (one.iteration_time_s, one.routed_time_s, one.bound_s))
    return one.name, *times, verdict_word(one.within_bound)
