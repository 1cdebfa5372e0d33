"""A plan for several sites: who builds what, what joins them, and how each trains its part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from coopt.instance.schema import Instance
from coopt.instance.sites import part_of
from coopt.plan.margins import site_checks
from coopt.plan.schema import Cost, WorkloadPlan
from coopt.plan.sites import SitePlan, Together
from coopt.report import words
from coopt.report.parts import bill_figures, breakdown_table, workload_rows
from coopt.report.remarks import margins_table, notes
from coopt.report.tables import facts, figures


def sites_report(instance: Instance, cost: Cost, together: Together) -> Iterator[RenderableType]:
    """Sites side by side, links, exchanges, the whole bill, the workloads of each site, bounds, how to read them."""
    runs = zip(*(site.workloads for site in together.sites), strict=True)
    slowest = [max(run, key=lambda one: one.iteration_time_s) for run in runs]
    yield ""
    yield _sites(together)
    if together.wan:
        yield ""
        yield _links(together)
        yield from _exchanges(together)
    yield from _reached(instance, slowest)
    yield ""
    yield bill_figures("Bill of materials, all sites", cost.items, cost.capex_usd, cost.power_w)
    yield (
        f"Total cost of ownership {words.money(cost.tco_usd)}: purchase plus {instance.objective.years:g} years of "
        "power, each site at its own price of electricity and PUE."
    )
    for site in together.sites:
        yield ""
        yield facts(f"Site {site.name}", _built(site))
        for run, asked in zip(site.workloads, instance.workload, strict=True):
            yield ""
            part = part_of(asked, site.shares, together.shares)
            yield facts(f"{run.name} at {site.name}", workload_rows(run, part))
            yield ""
            yield breakdown_table(run)
    yield ""
    yield margins_table(tuple(site_checks(instance, together, cost)))
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


def _reached(instance: Instance, slowest: Sequence[WorkloadPlan]) -> Iterator[str]:
    """Bounds in the units they are given in, which are those of all sites together."""
    for run, asked in zip(slowest, instance.workload, strict=True):
        if reached := asked.in_own_units(run.iteration_time_s):
            yield f"Bound of {run.name}, all sites together: {asked.in_own_units(asked.bound_s)}; this plan {reached}."


def _built(site: SitePlan) -> Iterator[tuple[str, str]]:
    design, fabric = site.design, site.design.fabric
    domain = design.hb_domain
    yield (
        "HB domain",
        f"{words.count(domain.count)} x {domain.name}, {words.counted(domain.active, 'GPU')} of each train",
    )
    if fabric.tiers:
        planes = f", {words.counted(fabric.planes, 'plane')}" if fabric.planes > 1 else ""
        ratio = words.ratio(fabric.oversubscription)
        yield "Fabric", f"{fabric.kind}, {words.counted(fabric.tiers, 'tier')}{planes}, {ratio}"
        yield "NIC", f"{fabric.nic.name}, {fabric.nic.per_gpu} per GPU"
        yield "Switch", f"{words.count(fabric.switch_count)} x {fabric.switch.name}"
    racks = "not known" if design.racks is None else words.count(design.racks)
    yield "Racks", f"{racks} for HB domains"
