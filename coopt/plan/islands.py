"""The parts of a cluster that workloads have to themselves."""

from __future__ import annotations

from coopt.plan.parts import Design, Record


class Island(Record):
    """What one workload has to itself, and what that draws, as far as `include` counts it (W)."""

    workload: str
    design: Design
    power_w: float
