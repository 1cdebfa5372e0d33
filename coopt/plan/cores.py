"""The core that the islands of a partition share."""

from __future__ import annotations

from coopt.plan.parts import Record, SwitchChoice


class CoreLinks(Record):
    """Links from an island into the core: `per_leaf` from each of its leaf switches, 0 where they start at NICs."""

    workload: str
    links: int
    per_leaf: int


class Core(Record):
    """Switches that join islands: how many, their ports in use, and what they draw, as far as `include` counts it (W).

    Each link has two optics.
    """

    switch: SwitchChoice
    switches: int
    ports: int
    optic: str
    power_w: float
    islands: tuple[CoreLinks, ...]
