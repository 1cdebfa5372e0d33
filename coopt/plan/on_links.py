"""How a plan's workloads run on direct links between its HB domains. Data only."""

from __future__ import annotations

from coopt.plan.schema import Record


class Trained(Record):
    """One workload: its iteration (s) on the plan's network and on the direct links, and what these take of it."""

    name: str
    bound_s: float
    planned_time_s: float
    iteration_time_s: float
    between_domains_s: float
