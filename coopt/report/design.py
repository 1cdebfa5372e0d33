"""What is built, and its bill."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from coopt.instance.schema import Instance
from coopt.plan.schema import Cost, Design
from coopt.report import words
from coopt.report.bills import bill_figures
from coopt.report.sentence import ratio_of
from coopt.report.tables import Figures, facts, figures


def design_tables(instance: Instance, design: Design) -> Iterator[RenderableType]:
    """The decision, and the switches of each level."""
    yield facts("Decision", decision_rows(instance, design))
    if design.fabric.tier:
        yield ""
        yield switches_table(design)


def switches_table(design: Design) -> Figures:
    """The switches of each level, the ports of one of them in use, and the links below the level."""
    return figures(
        "Switches, all planes together",
        ("level", "optic"),
        ("switches", "down ports", "uplinks", "links"),
        [
            (
                str(tier.level),
                tier.optic,
                words.count(tier.switches),
                words.count(tier.down_ports),
                words.count(tier.uplinks_per_switch),
                words.count(tier.links),
            )
            for tier in design.fabric.tier
        ],
    )


def decision_rows(instance: Instance, design: Design) -> Iterator[tuple[str, str]]:
    """The decision line by line; nothing about a network where one domain needs none."""
    domain, fabric = design.hb_domain, design.fabric
    active = "all of them train" if domain.active == domain.size else f"{domain.active} of them train"
    yield (
        "HB domain",
        f"{words.count(domain.count)} x {domain.name}, {words.counted(domain.size, 'GPU')} each, {active}",
    )
    yield "GPUs", f"{words.count(design.gpus)} x {instance.cluster.gpu.name} train"
    yield "Spares", f"{words.counted(design.spare_gpus, 'GPU')} idle, paid for" if design.spare_gpus else "none"
    if fabric.tiers:
        planes = f", {words.count(fabric.planes)} planes" if fabric.planes > 1 else ""
        yield "Fabric", f"{fabric.kind}, {words.counted(fabric.tiers, 'tier')}{planes}"
        yield "NIC", f"{fabric.nic.name}, {fabric.nic.per_gpu} per GPU"
        yield "Switch", f"{words.count(fabric.switch_count)} x {fabric.switch.name}"
        yield "Transceivers", words.count(fabric.transceiver_count)
        yield "Uplinks", uplinks(design)
        full = fabric.oversubscription <= 1
        yield "Oversubscription", f"{ratio_of(fabric.oversubscription)}{' (full bandwidth)' if full else ''}"
        if fabric.routing > 1:
            yield "Routing", f"traffic above the leaves takes {fabric.routing:g} times as long"
    else:
        yield "Fabric", "none, one HB domain holds every GPU"
    yield (
        "Racks",
        "not known for this HB domain" if design.racks is None else f"{words.count(design.racks)} for HB domains",
    )


def uplinks(design: Design) -> str:
    """Uplinks of each level that has some, against the ports below it."""
    parts = [
        f"{tier.uplinks_per_switch} up, {tier.down_ports} down at level {tier.level}"
        for tier in design.fabric.tier
        if tier.uplinks_per_switch
    ]
    return "; ".join(parts) if parts else "none, one tier"


def bill_table(cost: Cost, *, worst_prices: bool = False) -> Figures:
    """The bill of materials with its totals."""
    title = "Bill of materials, at the worst prices" if worst_prices else "Bill of materials"
    return bill_figures(title, cost.items, cost.capex_usd, cost.power_w)


def tco_sentence(instance: Instance, cost: Cost) -> str:
    """Purchase and power as one sum, with what it assumes."""
    terms = instance.objective
    return (
        f"Total cost of ownership {words.money(cost.tco_usd)}: purchase plus {terms.years:g} years of power "
        f"at ${terms.usd_per_kwh:g} per kWh and a PUE of {terms.pue:g}."
    )
