"""A plan for several sites: who builds what, what joins them, and how each trains its part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from coopt.instance.schema import Instance
from coopt.instance.sites import part_of
from coopt.plan.margins import site_checks
from coopt.plan.schema import Cost, WorkloadPlan
from coopt.plan.views import Together
from coopt.report import words
from coopt.report.parts import BILL, bill_tables, part_tables
from coopt.report.remarks import margins_table, notes
from coopt.report.tables import figures


def sites_report(instance: Instance, cost: Cost, together: Together) -> Iterator[RenderableType]:
    """Sites side by side, links, exchanges, the whole bill, the network of each site, bounds, how to read them."""
    runs = zip(*(site.workloads for site in together.sites), strict=True)
    slowest = [max(run, key=lambda run_at_site: run_at_site.iteration_time_s) for run in runs]
    yield _sites(together)
    if together.wan:
        yield ""
        yield _links(together)
        yield from _exchanges(together)
    yield from _bounds_in_own_units(instance, slowest)
    yield ""
    yield from bill_tables(instance, cost, f"{BILL}, all sites")
    for site in together.sites:
        yield ""
        workloads = [part_of(workload, site.shares, together.shares) for workload in instance.workload]
        runs = zip(site.workloads, workloads, strict=True)
        yield from part_tables(instance, site.design, runs, title=f"Site {site.name}", where=f" at {site.name}")
    yield ""
    yield margins_table(site_checks(instance, together, cost))
    yield ""
    yield from notes(instance, [site.design for site in together.sites], slowest)


def _sites(together: Together) -> RenderableType:
    return figures(
        "Sites",
        ("site",),
        ("shares", "GPUs", "feeds", "at most", "purchase"),
        [
            (
                site.name,
                f"{site.shares} of {together.shares}",
                words.count(site.design.gpus),
                words.power(site.facility_w),
                words.power(site.facility_limit_w),
                words.money(site.cost.capex_usd),
            )
            for site in together.sites
        ],
    )


def _links(together: Together) -> RenderableType:
    return figures(
        "Wide-area links, each way",
        ("between",),
        ("channels", "Gbit/s each", "Tbit/s", "latency", "price"),
        [
            (
                " - ".join(link.between),
                words.count(link.channels),
                f"{link.gbit_s:g}",
                words.digits(link.channels * link.gbit_s / 1000, 3),
                words.seconds(link.latency_s),
                words.money(link.usd),
            )
            for link in together.wan
        ],
    )


def _exchanges(together: Together) -> Iterator[RenderableType]:
    for exchange in together.exchanges:
        scale, unit = words.byte_scale(exchange.sent_bytes)
        yield (
            f"Once an iteration each site sends {words.digits(exchange.sent_bytes / scale, 4)} {unit} of gradients of "
            f"{exchange.workload} round the ring, which takes {words.seconds(exchange.exchange_s)}."
        )


def _bounds_in_own_units(instance: Instance, slowest: Sequence[WorkloadPlan]) -> Iterator[str]:
    """Bounds in the units they are given in, which are those of all sites together."""
    for run, workload in zip(slowest, instance.workload, strict=True):
        bound, reached = (workload.in_own_units(time_s) for time_s in (workload.asked_s, run.iteration_time_s))
        if reached:
            yield f"Bound of {run.name}, all sites together: {bound}; this plan {reached}."
