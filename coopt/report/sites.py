"""A plan for several sites: who builds what, what joins them, and how each trains its part."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from coopt.instance.schema import Instance
from coopt.plan.schema import Cost, WorkloadPlan
from coopt.plan.sites import SitePlan, Together
from coopt.report import words
from coopt.report.bills import bill_figures
from coopt.report.sentence import ratio_of
from coopt.report.tables import facts, figures
from coopt.report.workload import breakdown_table, schedule, split


def sites_report(instance: Instance, cost: Cost, together: Together) -> Iterator[RenderableType]:
    """Sites side by side, links, exchanges, the whole bill, and the workloads of each site."""
    yield ""
    yield _sites(together)
    if together.wan:
        yield ""
        yield _links(together)
        yield from _exchanges(together)
    yield ""
    yield bill_figures("Bill of materials, all sites", cost.items, cost.capex_usd, cost.power_w)
    yield (
        f"Total cost of ownership {words.money(cost.tco_usd)}: purchase plus {instance.objective.years:g} years of "
        "power, each site at its own price of electricity and PUE."
    )
    for site in together.sites:
        yield ""
        yield facts(f"Site {site.name}", _built(site))
        for run in site.workloads:
            yield ""
            yield facts(f"{run.name} at {site.name}", _running(run))
            yield ""
            yield breakdown_table(run)


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
                f"{link.channels * link.gbit_s / 1000:,.1f}",
                words.seconds(link.latency_s),
                words.money(link.usd),
            )
            for link in together.wan
        ],
    )


def _exchanges(together: Together) -> Iterator[RenderableType]:
    for exchange in together.exchanges:
        yield (
            f"Once an iteration each site sends {exchange.sent_bytes / 1e12:,.1f} TB of gradients of "
            f"{exchange.workload} round the ring, which takes {words.seconds(exchange.exchange_s)}."
        )


def _built(site: SitePlan) -> Iterator[tuple[str, str]]:
    design, fabric = site.design, site.design.fabric
    domain = design.hb_domain
    yield (
        "HB domain",
        f"{words.count(domain.count)} x {domain.name}, {words.counted(domain.active, 'GPU')} of each train",
    )
    if fabric.tiers:
        planes = f", {words.counted(fabric.planes, 'plane')}" if fabric.planes > 1 else ""
        ratio = ratio_of(fabric.oversubscription)
        yield "Fabric", f"{fabric.kind}, {words.counted(fabric.tiers, 'tier')}{planes}, {ratio}"
        yield "NIC", f"{fabric.nic.name}, {fabric.nic.per_gpu} per GPU"
        yield "Switch", f"{words.count(fabric.switch_count)} x {fabric.switch.name}"
    racks = "not known" if design.racks is None else words.count(design.racks)
    yield "Racks", f"{racks} for HB domains"


def _running(run: WorkloadPlan) -> Iterator[tuple[str, str]]:
    yield "Iteration", f"{words.seconds(run.iteration_time_s)}, at most {words.seconds(run.bound_s)} allowed"
    yield "Throughput", f"{run.tokens_per_s:,.0f} tokens/s on {words.counted(run.gpus, 'GPU')}"
    yield "Split", split(run)
    yield "Schedule", schedule(run.mapping)
    share = words.percent(run.memory_gib / run.memory_limit_gib)
    yield "Memory", f"{run.memory_gib:.1f} of {run.memory_limit_gib:.1f} GiB per GPU ({share})"
    yield "Utilisation", f"MFU {words.percent(run.mfu)}, HFU {words.percent(run.hfu)}"
