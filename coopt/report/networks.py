"""Published networks counted again, and the bills of networks."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType

from coopt.plan.networks import BilledNetwork, CheapestNetwork, Counts, NetworksBill, Reproduction
from coopt.report import words
from coopt.report.parts import bill_table
from coopt.report.tables import FigureTable, figures, verdict_word


def reproduction_report(found: Reproduction) -> Iterator[RenderableType]:
    """Every design with its counts, then what differs."""
    come = "comes" if found.of == 1 else "come"
    yield f"{found.exact:,} of {words.counted(found.of, 'published design')} {come} out exactly."
    yield figures(
        "Switches by tier",
        ("design",),
        ("counted", "published", "exact"),
        [(row.id, _switches(row.counted), _switches(row.published), verdict_word(row.ok)) for row in found.rows],
    )
    yield from (f"{row.id}: {row.why}" for row in found.rows if row.counted is not None and not row.ok)
    asked = [(row.id, row.counted, row.cheapest) for row in found.rows if row.cheapest is not None]
    compared = [one for _, _, one in asked if one.usd is not None]
    if asked:
        kept = sum(one.counted is None for one in compared)
        cost = "costs no more than any of its" if len(compared) == 1 else "cost no more than any of their"
        yield f"{kept:,} of {words.counted(len(compared), 'design')} compared {cost} space."
        yield figures(
            "The cheapest of the same end points and bandwidth",
            ("design",),
            ("counted", "cheapest", "$ less"),
            [(name, _switches(counted), _cheapest(one, counted), _saved(one)) for name, counted, one in asked],
        )
        yield from (f"{name}: {one.why}." for name, _, one in asked if one.why)


def _cheapest(one: CheapestNetwork, counted: Counts | None) -> str:
    return "-" if one.usd is None else _switches(one.counted or counted)


def _saved(one: CheapestNetwork) -> str:
    """What the cheapest network costs less than the design, as a share."""
    if one.usd is None or not one.published_usd:
        return "-"
    return words.percent(1 - one.usd / one.published_usd) if one.usd < one.published_usd else "0"


def _switches(counts: Counts | None) -> str:
    return "not wirable" if counts is None else " + ".join(map(words.count, counts.switches))


def bill_report(bill: NetworksBill) -> Iterator[RenderableType]:
    """Each network tier by tier and line by line; then everything together, where there are several."""
    for network in bill.networks:
        yield f"{network.name}: {network.fabric}, {words.counted(network.gpus, 'GPU')}."
        if network.tier:
            yield tier_table(network)
        if any(tier.cables for tier in network.tier):
            yield cable_table(network)
        if network.switch_racks is not None:
            yield f"The switches fill {words.counted(network.switch_racks, 'rack')} of their own."
        if network.pair_share is not None and network.pair_share < 1:
            share = words.percent(network.pair_share)
            yield f"Bundles are uneven: the worst pair of leaves has {share} of its bandwidth."
        if network.items:
            yield bill_table("Bill", network.items, network.usd, network.w)
        if network.unpriced:
            yield f"Not priced: {'; '.join(network.unpriced)}."
    if bill.items and tuple(bill.items) != tuple(item for network in bill.networks for item in network.items):
        yield bill_table("Everything together", bill.items, bill.usd, bill.w)
    if bill.not_counted:
        yield f"Not counted: {'; '.join(bill.not_counted)}."


def tier_table(network: BilledNetwork) -> FigureTable:
    """Switches, their ports in use and cables, tier by tier."""
    return figures(
        "Tiers",
        ("tier", "switch", "optic"),
        ("switches", "cables down", "cables up", "bundle", "links"),
        [
            (
                str(tier.level),
                tier.switch or "-",
                tier.optic or "-",
                words.count(tier.switches),
                words.count(tier.down_ports),
                words.count(tier.uplinks_per_switch),
                "-" if not tier.bundle else words.count(tier.bundle),
                words.count(tier.links),
            )
            for tier in network.tier
        ],
        total=(
            "all",
            "",
            "",
            words.count(sum(tier.switches for tier in network.tier)),
            "",
            "",
            "",
            words.count(sum(tier.links for tier in network.tier)),
        ),
    )


def cable_table(network: BilledNetwork) -> FigureTable:
    """Cables below each tier by the length they are bought in; optics hold their price."""
    cables = [(tier, cable) for tier in network.tier for cable in tier.cables]
    grows = any(cable.added is not None for _, cable in cables)
    return figures(
        "Cables",
        ("below tier", "length"),
        ("cables", "added") if grows else ("cables",),
        [
            (
                str(tier.level),
                f"{cable.length_m:,} m",
                words.count(cable.count),
                *((words.count(cable.added or 0),) if grows else ()),
            )
            for tier, cable in cables
        ],
    )
