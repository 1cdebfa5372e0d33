"""What the two axes of a front measure, and its points in words."""

from __future__ import annotations

from collections.abc import Iterator

from coopt.instance.schema import Instance
from coopt.instance.workload import ROUND_UP
from coopt.plan.front import Front, FrontPoint
from coopt.plan.schema import Design
from coopt.report import words
from coopt.report.sentence import amount, built, ratio_of

LESS = {"capex": "costs less", "power": "draws less", "tco": "costs less"}
KINDS = {"capex": "capex", "power": "power", "tco": "TCO"}


def time_of(point: FrontPoint) -> float:
    """The iteration time in seconds of the only workload, else the pace."""
    runs = point.best.workloads
    return runs[0].iteration_time_s if len(runs) == 1 else point.pace


def bound_of(instance: Instance) -> float:
    """The bounds of the instance in the measure of `time_of`."""
    return instance.workload[0].bound_s if len(instance.workload) == 1 else 1.0


def time_words(instance: Instance, time: float) -> str:
    """`3.377 s`, or `0.979 of the bounds` for several workloads."""
    return words.seconds(time) if len(instance.workload) == 1 else f"{words.digits(time, 4)} of the bounds"


def time_label(instance: Instance) -> str:
    """The name of the time axis."""
    return "iteration time (s)" if len(instance.workload) == 1 else "iteration time as a share of the bounds"


def value_of(front: Front, point: FrontPoint) -> float:
    """The objective of a point, in USD or W."""
    return point.best.cost.of(front.kind)


def value_scale(front: Front) -> tuple[float, str]:
    """What the values of the front are divided by for an axis, and its name with the unit."""
    largest = max((value_of(front, point) for point in front.points), default=0.0)
    power = front.kind == "power"
    size, prefix = next((pair for pair in (words.WATTS if power else words.SCALES) if largest >= pair[0]), (1.0, ""))
    unit = (prefix or "W") if power else f"{prefix}$"
    return size, f"{KINDS[front.kind]} ({unit})"


def answer_to(front: Front) -> FrontPoint | None:
    """The cheapest point that keeps the bounds of the instance; `coopt.pareto` always shows it where there is one."""
    within = [point for point in front.points if point.pace <= ROUND_UP]
    return within[-1] if within else None


def shown(front: Front) -> str:
    """`20 of 264 points, each proven`: the name of the points in a picture."""
    return f"{words.count(len(front.points))} of {words.counted(front.size, 'point')}, each proven"


def marks(front: Front, point: FrontPoint) -> str:
    """`knee`, `bound` or both: why a point is worth a look."""
    named = [("knee", point.knee), ("bound", front.complete and point == answer_to(front))]
    return ", ".join(name for name, on in named if on)


def network(instance: Instance, design: Design) -> str:
    """`h100-hb64, 2-tier rail-only, 3.2:1`: what tells designs of a front apart."""
    fabric = design.fabric
    gpus = f"{words.counted(design.gpus, 'GPU')}, " if len(instance.cluster.gpus) > 1 else ""
    if not fabric.tiers:
        return f"{gpus}{design.hb_domain.name}, no network"
    ratio = "" if fabric.oversubscription <= 1 else f", {ratio_of(fabric.oversubscription)}"
    return f"{gpus}{design.hb_domain.name}, {fabric.tiers}-tier {fabric.kind}{ratio}"


def details(instance: Instance, front: Front, point: FrontPoint) -> Iterator[tuple[str, str]]:
    """Everything about a point that fits into a list: name and what it is."""
    best = point.best
    design, fabric = best.design, best.design.fabric
    yield "Build", built(design)
    if fabric.tiers:
        yield "Switches", f"{words.count(fabric.switch_count)} x {fabric.switch.name}"
        yield "Transceivers", words.count(fabric.transceiver_count)
        yield "NICs", f"{fabric.nic.per_gpu} x {fabric.nic.name} per GPU"
    yield "Capex", f"${best.cost.capex_usd:,.0f}"
    yield "Power", f"{best.cost.power_w:,.0f} W"
    yield "TCO", f"${best.cost.tco_usd:,.0f}"
    gap = best.objective.gap or 0.0
    yield "Proof", f"no design of this pace {LESS[front.kind]}, gap {words.percent(gap)}"
    for asked, run in zip(instance.workload, best.workloads, strict=True):
        mapping = run.mapping
        alone = len(instance.workload) == 1
        own = asked.in_own_units(run.iteration_time_s)
        yield "Iteration" if alone else run.name, words.seconds(run.iteration_time_s) + (f", {own}" if own else "")
        yield (
            "Split" if alone else f"Split of {run.name}",
            f"TP {mapping.tp}, CP {mapping.cp}, PP {mapping.pp}, DP {mapping.dp}, EP {mapping.ep}, "
            f"micro-batch {mapping.micro_batch}",
        )
        yield "MFU" if alone else f"MFU of {run.name}", words.percent(run.mfu)


def amount_of(front: Front, point: FrontPoint) -> str:
    """The objective of a point as it stands in a sentence."""
    return amount(front.kind, value_of(front, point))
