"""What is built at several sites and between them. Data only."""

from __future__ import annotations

from coopt.plan.parts import Cost, Design, Record, WorkloadPlan


class SitePlan(Record):
    """One site: its shares of GPUs and batch, what is built there, and how it trains its part of each batch.

    `cost.tco_usd` is at the site's own price of electricity and PUE; `facility_w` is IT power times PUE, with its half
    of the wide-area channels.
    """

    name: str
    shares: int
    design: Design
    cost: Cost
    facility_w: float
    facility_limit_w: float
    workloads: tuple[WorkloadPlan, ...]


class WanPlan(Record):
    """Channels lit between two sites, each of `gbit_s` both ways; `usd` and `w` are of all of them."""

    between: tuple[str, str]
    channels: int
    gbit_s: float
    latency_s: float
    usd: float
    w: float


class Exchange(Record):
    """Gradients of a workload added up over all sites, once an iteration.

    `sent_bytes` leave each site; `exchange_s` is from the first byte to the last, hidden or not.
    """

    workload: str
    sent_bytes: float
    exchange_s: float


class Together(Record):
    """Sites in the order of the ring that adds up their gradients."""

    shares: int
    sites: tuple[SitePlan, ...]
    wan: tuple[WanPlan, ...]
    exchanges: tuple[Exchange, ...]
