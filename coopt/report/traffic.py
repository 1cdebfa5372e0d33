"""Traffic of a plan: what is sent where, and which routes it takes above the leaves.

Simulated iterations stand beside the closed form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from coopt.report import words
from coopt.report.facts import EXCHANGES
from coopt.report.words import Cell, FigureTable, figures, pieces, verdict_word

if TYPE_CHECKING:
    from coopt.plan.traffic import (
        Cause,
        CollectiveRoutes,
        Routing,
        SimulatedWorkload,
        TrafficKind,
        TrafficReport,
        WorkloadTraffic,
    )

COLLECTIVES = {
    "tp": "tensor parallel",
    "cp": "context parallel",
    "ep": "experts",
    "pp": "pipeline hops",
    "dp": "data parallel",
    "embedding": "tied embedding",
}
NOTHING_TRAINS = "No workload trains on this part of the plan."
COUNTING = (
    "A message counts at the highest level it crosses: inside the HB domain, on a leaf that both"
    " ends share, or above the leaves. A message forwarded around a ring, or to a GPU on another"
    " rail, counts on every leg."
)
ADDED = {
    "tree": (
        "Gradients are reduced along two binary trees across domains, each with half of the data."
    ),
    "halving": (
        "Gradients are reduced by halving and doubling across domains: the first exchange"
        " carries half of the data and each later one half as much, then the same in reverse."
    ),
}
"""How gradients are added, where not round a ring."""
PLACES = {"domain": "inside the HB domain", "leaf": "on its leaf", "above": "above the leaf"}

CAUSES: dict[Cause, str] = {
    "pipeline": "micro-batches and hops of the pipeline",
    "gradients": "gradients not hidden behind compute",
    "embedding": "tied embedding",
    "optimizer": "optimizer",
    "stragglers": "stragglers and software overhead",
}
KINDS: dict[TrafficKind, str] = {
    "tp": "tensor parallel",
    "cp": "context parallel",
    "ep": "experts",
    "pp": "pipeline hops",
    "dp": "data parallel",
    "edp": "data parallel of experts",
    "embedding": "tied embedding",
}


def routing_report(routing: Routing) -> list[RenderableType]:
    """The factor first, then collectives and iteration times."""
    headline = Text(routing_headline(routing), style="bold")
    if not routing.collectives:
        return [headline]
    several = len(routing.workloads) > 1
    open_ones = any(one.routing > 1 and not one.optimal for one in routing.collectives)
    return pieces(
        headline,
        figures(
            "Collectives between domains",
            ("traffic",),
            ("flows", "alpha", "bound", "efficiency", "stretch", "charged", "routing"),
            [_collective(collective, several) for collective in routing.collectives],
        ),
        figures(
            "Iteration",
            ("workload",),
            ("time in the plan", "time with these routes", "bound", "met"),
            [
                (
                    one.name,
                    words.bound(one.iteration_time_s),
                    words.bound(one.routed_time_s),
                    words.bound(one.bound_s),
                    verdict_word(one.within_bound),
                )
                for one in routing.workloads
            ],
        ),
        "Flows: those that leave their leaf. Alpha: flows per link of the busiest bundle; bound:"
        " no routing has a lower alpha. Efficiency: max-min fair rate of a group's flows over"
        " the NIC rate, averaged over groups. Stretch: time with these routes over time at the NIC"
        " rate; charged: the stretch that the plan assumes. Routing: the value of network.routing"
        " that charges this stretch; 1 where the plan charges enough.",
        f"To plan with these routes, set network.routing = {routing.routing:.4g}."
        if routing.routing > 1
        else None,
        (
            "The bound leaves room for better routes: `--algorithm exact` finds the best ones in"
            " networks of two tiers."
        )
        if routing.algorithm not in ("exact", "spray") and open_ones
        else None,
    )


def routing_headline(routing: Routing) -> str:
    """What the routes do to the plan, in a sentence."""
    if not routing.collectives:
        return "Nothing to route: no traffic passes above a leaf."
    sprayed = routing.algorithm == "spray"
    opening = "Sprayed over all paths" if sprayed else f"Routed by {routing.algorithm}"
    opening += f" in {words.digits(1000 * routing.seconds, 3)} ms"
    if routing.failed_cores:
        failed = words.counted(routing.failed_cores, "top switch")
        opening += f" with {failed} failed in each rail or plane"
    if routing.routing <= 1:
        return f"{opening}: no link slows traffic more than the plan assumes."
    proven = all(collective.optimal for collective in routing.collectives if collective.routing > 1)
    end = "; no routing does better" if proven else "; the bound leaves room for better routes"
    return (
        f"{opening}: traffic takes {routing.routing:.4g} times as long as with links shared evenly,"
        # what spraying itself loses is no matter of routes
        f" more than the plan assumes{'' if sprayed else end}."
    )


def _collective(collective: CollectiveRoutes, several: bool) -> tuple[Cell, ...]:
    name = COLLECTIVES[collective.kind] + (", experts" if collective.collective == "copies" else "")
    name += f", {collective.way}" if collective.way != "rings" else ""
    name += f", round {collective.round}" if collective.round else ""
    return (
        f"{collective.workload}: {name}" if several else name,
        words.count(collective.flows),
        f"{collective.alpha:.4g}",
        f"{collective.bound:.4g}",
        words.percent(collective.efficiency),
        *(f"{value:.4g}" for value in (collective.stretch, collective.charged, collective.routing)),
    )


def traffic_report(report: TrafficReport) -> list[RenderableType]:
    """For each workload a sentence, its classes by phase and place, and what one GPU sends."""
    if not report.workloads:
        return [Text(NOTHING_TRAINS, style="bold")]
    return pieces(*map(_traffic, report.workloads), COUNTING)


def _traffic(workload: WorkloadTraffic) -> list[RenderableType]:
    headline = Text(traffic_headline(workload), style="bold")
    if not workload.classes:
        return [headline]
    kinds = COLLECTIVES | {"edp": "gradients of experts"}
    ways = ", ".join(
        f"{kinds[kind]} by {EXCHANGES.get(way, way)}" for kind, way in workload.collectives.items()
    )
    return pieces(
        headline,
        classes_table(workload),
        gpus_table(workload),
        ADDED.get(workload.all_reduce),
        f"Collective algorithms in the plan: {ways}." if ways else None,
    )


def traffic_headline(workload: WorkloadTraffic) -> str:
    """`Workload w: of the 4,032 pairs of its 64 GPUs 93.7% never talk; 88.3% of 1,374 GB stay
    inside an HB domain.`
    """
    if not workload.classes:
        return f"Workload {workload.name!r}: its GPUs send nothing to each other."
    pairs, (scale, unit) = workload.gpus * (workload.gpus - 1), _scale(workload.whole_bytes)
    inside_bytes = sum(traffic_class.domain_bytes for traffic_class in workload.classes)
    return (
        f"Workload {workload.name!r}: of the {words.count(pairs)} ordered pairs of its"
        f" {words.counted(workload.gpus, 'GPU')}, {_share(workload.silent_share)} never"
        f" communicate. It sends {_digits(workload.whole_bytes / scale)} {unit} an iteration, of"
        f" which {_share(inside_bytes / workload.whole_bytes)} stay inside an HB domain."
    )


def classes_table(workload: WorkloadTraffic) -> FigureTable:
    """What is sent, by class, phase and place."""
    scale, unit = _scale(workload.whole_bytes)
    names = ("domain_bytes", "leaf_bytes", "above_bytes", "whole_bytes")
    sums = [sum(getattr(one, name) for one in workload.classes) for name in names]
    return figures(
        f"Sent in an iteration by all GPUs ({unit})",
        ("traffic", "phase"),
        ("in the domain", "on the leaf", "above", "all", "share"),
        [
            (
                COLLECTIVES[one.kind],
                one.phase,
                *(_digits(getattr(one, name) / scale) for name in names),
                words.percent(one.whole_bytes / sums[-1]),
            )
            for one in workload.classes
        ],
        total=("total", "", *(_digits(n / scale) for n in sums), "100.0%"),
    )


def gpus_table(workload: WorkloadTraffic) -> FigureTable:
    """What one GPU sends and receives by way of each place."""
    scale, unit = words.byte_scale(max(place.mean_sent_bytes for place in workload.per_gpu))
    columns = {
        "sent, least": "least_sent_bytes",
        "mean": "mean_sent_bytes",
        "most": "most_sent_bytes",
        "received, least": "least_received_bytes",
        "received, most": "most_received_bytes",
    }
    return figures(
        f"By one GPU ({unit})",
        ("peers",),
        tuple(columns),
        [
            (PLACES[place.place], *(_digits(getattr(place, n) / scale) for n in columns.values()))
            for place in workload.per_gpu
        ],
    )


def _scale(size_bytes: float) -> tuple[float, str]:
    """A unit in which the largest number has four digits before the point or fewer."""
    return words.byte_scale(size_bytes / 1000)


def _share(share: float) -> str:
    """A percentage that says 100% only of all."""
    percent = 100 * share
    return f"{percent:.4f}%" if 99.9 <= percent < 100 else words.percent(share)


def _digits(number: float) -> str:
    return words.digits(number, 4) if number else "-"


def simulation_report(workloads: tuple[SimulatedWorkload, ...]) -> list[RenderableType]:
    """The verdict on each workload, where its time goes, and what its traffic meets on the
    network.
    """
    if not workloads:
        return [Text(NOTHING_TRAINS, style="bold")]
    numbers = ("closed form", "simulated", "difference", "bound", "met")
    return pieces(
        [Text(simulation_headline(workload), style="bold") for workload in workloads],
        figures(
            "Iteration",
            ("workload",),
            numbers,
            [
                (
                    one.name,
                    words.seconds(one.closed_form_s),
                    words.seconds(one.simulated_s),
                    f"{one.difference:+.2%}",
                    words.bound(one.bound_s),
                    verdict_word(one.met),
                )
                for one in workloads
            ],
        ),
        *(_spent(one, f" of {one.name}" if len(workloads) > 1 else "") for one in workloads),
        "Closed form: the time in the plan.",
        "Slowdown: the time that all traffic of one kind takes when sent at once, over its time at"
        " the NIC rate."
        if any(one.traffic for one in workloads)
        else None,
    )


def _spent(workload: SimulatedWorkload, whose: str) -> list[RenderableType]:
    """Where the time of a workload goes, and what its traffic meets."""
    *rows, total = (
        (name, words.seconds(closed_s), words.seconds(run_s), f"{run_s - closed_s:+.4f} s")
        for name, closed_s, run_s in (
            *[(CAUSES[one.cause], one.closed_form_s, one.simulated_s) for one in workload.times],
            ("iteration", workload.closed_form_s, workload.simulated_s),
        )
    )
    numbers = ("closed form", "simulated", "difference")
    traffic = [
        (KINDS[entry.kind], words.count(entry.flows), f"{entry.slowdown:.4g}")
        for entry in workload.traffic
    ]
    return pieces(
        figures(f"Where the time{whose} goes", ("spent on",), numbers, rows, total=total),
        figures(f"Traffic{whose} between domains", ("traffic",), ("flows", "slowdown"), traffic)
        if traffic
        else None,
        f"Simulated{whose}: {workload.simulated}.",
    )


def simulation_headline(workload: SimulatedWorkload) -> str:
    """`Workload w: simulated 0.6845 s, +0.57% from the closed form; its bound of 1 s is met.`"""
    time, bound = words.seconds(workload.simulated_s), words.bound(workload.bound_s)
    missed = f"is MISSED by {words.percent(workload.range_s[1] / workload.bound_s - 1)}"
    if workload.range_s[0] < workload.range_s[1]:
        least, most = map(words.seconds, workload.range_s)
        time += f" ({least} to {most}, depending on which messages leave first)"
    bound_text = f"its bound of {bound} {'is met' if workload.met else missed}"
    return (
        f"Workload {workload.name!r}: simulated {time}, {workload.difference:+.2%} from the closed"
        f" form; {bound_text if bound != words.NO_BOUND else 'it has no bound'}."
    )
