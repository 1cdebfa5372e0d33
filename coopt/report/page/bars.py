"""Shares of a whole as bars."""

from __future__ import annotations

from dataclasses import dataclass

from coopt.plan.schema import WorkloadPlan
from coopt.report import words
from coopt.report.workload import COMPONENTS

# blue: the GPUs compute; warm: they talk; grey: they wait
COLOURS = {
    "compute": "#1f5fae", "logits": "#5b9bd8", "optimizer": "#0f3460",
    "tp": "#e07b00", "cp": "#8c5a2b", "ep": "#7d3c98", "pp": "#f2b134",
    "dp": "#bd1f01", "embedding": "#d4897b", "bubble": "#b4bcc6", "straggler": "#717b87",
}  # fmt: skip
OTHER = "#444b54"


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A piece of a bar: where it starts and how long it is, in percent."""

    name: str
    colour: str
    start: float
    share: float


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A bar, and the same in words."""

    says: str
    segments: tuple[Segment, ...]


def time_bar(workload: WorkloadPlan) -> Bar:
    """One iteration by components, in the order of the table."""
    whole, start, segments = workload.iteration_time_s, 0.0, []
    for name, spent in workload.breakdown_s.items():
        if spent:
            share = 100.0 * spent / whole
            named = COMPONENTS.get(name, name)
            segments.append(Segment(name=named, colour=COLOURS.get(name, OTHER), start=start, share=share))
            start += share
    largest = sorted(segments, key=lambda one: -one.share)[:3]
    named = ", ".join(f"{one.name} {words.percent(one.share / 100)}" for one in largest)
    says = f"An iteration of {words.seconds(whole)} in parts; the largest: {named}."
    return Bar(says=says, segments=tuple(segments))


def memory_bar(workload: WorkloadPlan) -> Bar:
    """What the fullest GPU holds of what it has."""
    used = 100.0 * workload.memory_gib / workload.memory_limit_gib
    free = workload.memory_limit_gib - workload.memory_gib
    return Bar(
        says=f"The fullest GPU holds {workload.memory_gib:.1f} of {workload.memory_limit_gib:.1f} GiB; "
        f"{free:.1f} GiB ({words.percent(free / workload.memory_limit_gib)}) are free.",
        segments=(Segment(name="in use", colour=COLOURS["compute"], start=0.0, share=used),),
    )
