"""Networks without a plan: published ones counted again, bills, and an all-reduce on a fabric with
what that costs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby

from rich.console import RenderableType
from rich.text import Text

from coopt.instance.numerics import EQUAL
from coopt.network.schedules.outcome import CollectiveOutcome
from coopt.plan.networks import (
    BilledNetwork,
    BilledTier,
    CheapestNetwork,
    Counts,
    DesignComparison,
    NetworksBill,
    Reproduction,
)
from coopt.plan.parts import Item
from coopt.plan.traffic import Trained
from coopt.report import words
from coopt.report.facts import bill_table
from coopt.report.words import FigureTable, facts, figures, pieces, verdict_word

SPANS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
FABRIC_ITEM = {"item", "kind", "count", "unit_usd", "usd", "unit_w", "w"}


def reproduction_report(reproduction: Reproduction) -> list[RenderableType]:
    """Every design with its counts, then what differs."""
    are = "is" if reproduction.of == 1 else "are"
    switches = [
        (row.id, _switches(row.counted), _switches(row.published), verdict_word(row.ok))
        for row in reproduction.rows
    ]
    searches = [
        (row.id, row.counted, row.cheapest) for row in reproduction.rows if row.cheapest is not None
    ]
    compared = [cheapest for _, _, cheapest in searches if cheapest.usd is not None]
    confirmed = sum(cheapest.counted is None for cheapest in compared)
    cost = "costs" if len(compared) == 1 else "cost"
    cheapest_rows = [
        (
            name,
            _switches(counts),
            "-" if cheapest.usd is None else _switches(cheapest.counted or counts),
            _saved(cheapest),
        )
        for name, counts, cheapest in searches
    ]
    sentence = (
        f"{confirmed:,} of {words.counted(len(compared), 'compared design')} {cost} no more than"
        " any network that coopt finds for the same end points and bandwidth."
    )
    found: tuple[RenderableType, ...] = (
        *((sentence,) if compared else ()),
        figures(
            "The cheapest network with the same end points and bandwidth",
            ("design",),
            ("counted", "cheapest", "saved"),
            cheapest_rows,
        ),
        *(f"{name}: {cheapest.why}." for name, _, cheapest in searches if cheapest.why),
    )
    return pieces(
        f"{reproduction.exact:,} of {words.counted(reproduction.of, 'published design')} {are}"
        " reproduced exactly.",
        figures("Switches by tier", ("design",), ("counted", "published", "exact"), switches),
        [
            f"{row.id}: {row.why}"
            for row in reproduction.rows
            if row.counted is not None and not row.ok
        ],
        found if searches else None,
    )


def _saved(cheapest: CheapestNetwork) -> str:
    """What the cheapest network costs less than the design, as a share."""
    if cheapest.usd is None or not cheapest.published_usd:
        return "-"
    less = 1 - cheapest.usd / cheapest.published_usd
    return words.percent(less) if cheapest.usd < cheapest.published_usd else "0"


def _switches(counts: Counts | None) -> str:
    return "cannot be wired" if counts is None else " + ".join(map(words.count, counts.switches))


def bill_report(bill: NetworksBill) -> list[RenderableType]:
    """Each network tier by tier and line by line; then everything together, where there are
    several.
    """
    lines = tuple(item for network in bill.networks for item in network.items)
    prices = "the worst" if bill.at_worst_prices else "list"
    paid = (
        f"Each bill above is for one network at {prices} prices. The total below is for all of"
        " them, at volume and phase prices where there are any, without parts that are reused."
    )
    together = (
        paid if bill.left_over is None else None,
        bill_table("Everything together", bill.items, bill.usd, bill.w),
    )
    return pieces(
        *map(_network_bill, bill.networks),
        *(together if bill.items and tuple(bill.items) != lines else ()),
        f"Not counted: {'; '.join(bill.not_counted)}." if bill.not_counted else None,
        f"The bill counts {words.both(bill.whole_cables)} by cable ends, two for each cable."
        if bill.whole_cables
        else None,
        bill.notes,
        _compared(bill.against),
    )


def _network_bill(network: BilledNetwork) -> list[RenderableType]:
    """A network tier by tier and line by line."""
    joins = f"{network.fabric}, {words.counted(network.gpus, 'GPU')}"
    racks = f"The switches fill {words.counted(network.switch_racks or 0, 'rack')} of their own."
    share = 1.0 if network.pair_share is None else network.pair_share
    uneven = (
        f"Link bundles are uneven: the worst pair of leaves has {words.percent(share)} of the"
        " bandwidth of even bundles."
    )
    if network.fabric == "core":
        joins = "switches that join several networks"
    return pieces(
        f"{network.name}: {joins}.",
        _tiers(network.tier) if network.tier else None,
        cable_table(network) if any(tier.cables for tier in network.tier) else None,
        racks if network.switch_racks else None,
        uneven if share < 1 else None,
        bill_table("Bill", network.items, network.usd, network.w) if network.items else None,
        f"Not priced: {'; '.join(network.unpriced)}." if network.unpriced else None,
    )


def _compared(pairs: tuple[DesignComparison, ...]) -> Iterator[RenderableType]:
    """For each network of a plan, the designs beside it: what they consist of, then what they
    cost.
    """
    for network, beside in groupby(pairs, key=lambda pair: pair.network.name):
        comparisons = list(beside)
        yield figures(
            f"Designs beside {network}",
            ("network",),
            ("GPUs", "end points", "switches", "cables", "oversubscription", "worst pair"),
            [
                (
                    built.name,
                    words.count(built.gpus),
                    words.count(built.end_points),
                    " + ".join(map(words.count, built.switches)),
                    words.count(built.links),
                    _known(built.oversubscription, words.ratio),
                    _known(built.pair_share, words.percent),
                )
                for built in (comparisons[0].network, *(pair.design for pair in comparisons))
            ],
        )
        yield figures(
            "NICs, switches and optics in use",
            ("design",),
            ("plan's $", "its $", "more $", "more", "plan's W", "its W"),
            [
                (
                    pair.design.name,
                    _known(pair.network.usd, words.exact),
                    _known(pair.design.usd, words.exact),
                    _known(pair.more_usd, words.exact),
                    _known(pair.more, words.percent),
                    _known(pair.network.w, words.exact),
                    _known(pair.design.w, words.exact),
                )
                for pair in comparisons
            ],
        )
        yield from (f"{pair.design.name}: {note}" for pair in comparisons for note in pair.notes)


def _known(value: float | None, text_of: Callable[[float], str]) -> str:
    return "-" if value is None else text_of(value)


def _tiers(tiers: Sequence[BilledTier]) -> FigureTable:
    """Switches, their ports in use and cables, tier by tier."""
    rows = [
        (
            str(tier.level),
            tier.switch or "-",
            tier.optic or "-",
            *map(words.count, (tier.switches, tier.down_ports, tier.uplinks_per_switch)),
            words.count(tier.bundle) if tier.bundle else "-",
            words.count(tier.links),
        )
        for tier in tiers
    ]
    switches, links = (sum(getattr(tier, name) for tier in tiers) for name in ("switches", "links"))
    total = ("all", "", "", words.count(switches), "", "", "", words.count(links))
    return figures(
        "Tiers",
        ("tier", "switch", "optic"),
        ("switches", "cables down", "cables up", "bundle", "links"),
        rows,
        total=total,
    )


def cable_table(network: BilledNetwork) -> FigureTable:
    """Cables below each tier by the length they are bought in; optics hold their price."""
    cables = [(tier, cable) for tier in network.tier for cable in tier.cables]
    grows = any(cable.added is not None for _, cable in cables)
    rows = [
        (
            str(tier.level),
            f"{cable.length_m:,} m",
            words.count(cable.count),
            *((words.count(cable.added or 0),) if grows else ()),
        )
        for tier, cable in cables
    ]
    return figures(
        "Cables", ("below tier", "length"), ("cables", "added") if grows else ("cables",), rows
    )


def collective_report(
    outcome: CollectiveOutcome,
    bill: tuple[Item, ...] | None = None,
    trained: tuple[Trained, ...] | None = None,
) -> list[RenderableType]:
    """Headline, fabric and schedule, times beside those of one ring; bill and iterations where they
    were asked for.
    """
    numbers = ("steps", "link time (chunks)", "time", "speed against one ring")
    times = ("planned_time_s", "iteration_time_s", "between_domains_s", "bound_s")
    return pieces(
        Text(collective_headline(outcome), style="bold"),
        facts("All-reduce", _rows(outcome)),
        figures("", ("schedule",), numbers, _times(outcome)),
        "Steps and link times are those of one of the two phases of an all-reduce (reduce-scatter"
        " and all-gather). Link times are in chunks of 1/N of the data for N domains; a chunk that"
        " takes several steps on a link counts in each of them.",
        None
        if trained is None
        else figures(
            "Training with these links between the domains",
            ("workload",),
            (
                "time on the plan's network",
                "time on these links",
                "time between domains",
                "bound",
            ),
            [
                (one.name, *(words.bound(getattr(one, name)) for name in times))
                for one in trained or ()
            ],
        ),
        None if bill is None else _summed_bill("Bill of the fabric", bill),
    )


def collective_json(
    outcome: CollectiveOutcome,
    bill: tuple[Item, ...] | None = None,
    trained: tuple[Trained, ...] | None = None,
) -> str:
    """The outcome of a collective as one JSON document."""
    document = asdict(outcome)
    if trained is not None:
        document["training"] = [workload.model_dump() for workload in trained]
    if bill is not None:
        document["fabric"] = {
            **_sums(bill),
            "items": [item.model_dump(include=FABRIC_ITEM) for item in bill],
        }
    return json.dumps(document, indent=2)


def collective_headline(outcome: CollectiveOutcome) -> str:
    """How long the all-reduce takes, and how far that is from the lower bound."""
    ring, over = "", words.percent(outcome.gap)
    end = "equals the lower bound" if outcome.gap < EQUAL else f"is {over} over the lower bound"
    if outcome.algorithm != "ring":
        ring = f", {words.digits(outcome.speedup_over_ring, 3)} times as fast as one ring"
    return (
        f"{outcome.algorithm} reduces {_scaled(outcome.bytes, words.BYTES)} over {outcome.nodes}"
        f" domains in {_scaled(outcome.time_s, SPANS)}{ring}; its link time {end}."
    )


def _rows(outcome: CollectiveOutcome) -> list[tuple[str, str]]:
    switches = words.counted(outcome.switches, "switch") if outcome.switches else "no switches"
    rates = dict.fromkeys((f"{outcome.slowest_gbit_s:g}", f"{outcome.fastest_gbit_s:g}"))
    links = f"{words.counted(outcome.links, 'link')} of {' to '.join(rates)} Gbit/s"
    chunk = _scaled(outcome.bytes / outcome.chunks, words.BYTES)
    busy, alone = (
        "each step lasts as long as its busiest link needs",
        "no link carries two chunks at once",
    )
    rows = {
        "Fabric": f"{outcome.graph}: {words.counted(outcome.nodes, 'domain')}, {links}, {switches}",
        "Schedule": f"{words.counted(outcome.chunks, 'chunk')} of {chunk},"
        f" {words.counted(outcome.steps, 'step')} a phase,"
        f" {alone if outcome.contention_free else busy}",
        "Construction": outcome.found_by if outcome.found_by != outcome.algorithm else "",
        "Lower bound": f"{words.counted(outcome.lower_bound_steps, 'step')} a phase for one chunk a"
        f" domain, set by {outcome.lower_bound_by}",
        "Bus bandwidth": f"{words.digits(outcome.bus_gbyte_s, 4)} GB/s",
        "Replay": "simulated link by link: every contribution arrives exactly once",
    }
    return [(name, text) for name, text in rows.items() if text]


def _times(outcome: CollectiveOutcome) -> list[tuple[str, ...]]:
    found = (
        outcome.algorithm,
        words.count(outcome.steps),
        words.digits(outcome.work_chunks, 4),
        _scaled(outcome.time_s, SPANS),
        f"{words.digits(outcome.speedup_over_ring, 3)} x",
    )
    around, ring_time = outcome.nodes - 1, _scaled(outcome.ring_time_s, SPANS)
    ring = ("ring", words.count(around), words.digits(around, 4), ring_time, "1 x")
    fewest, work = outcome.lower_bound_steps, outcome.lower_bound_work_chunks
    steps = words.count(fewest) if outcome.chunks == outcome.nodes else "-"
    return [
        found,
        *([ring] if outcome.algorithm != "ring" else []),
        ("lower bound", steps, words.digits(work, 4), "", ""),
    ]


def _summed_bill(title: str, bill: Iterable[Item]) -> FigureTable:
    sums = _sums(bill)
    return bill_table(title, bill, sums["usd"], sums["w"])


def _sums(bill: Iterable[Item]) -> dict[str, float]:
    """Price (USD) and power (W) of all lines."""
    return {key: math.fsum(getattr(item, key) for item in bill) for key in ("usd", "w")}


def _scaled(value: float, scales: tuple[tuple[float, str], ...]) -> str:
    """Four digits in the largest unit that leaves a number of 1 or more, and none behind the point
    of a whole number.
    """
    return re.sub(r"\.0+ ", " ", words.scaled(value, scales, 4))
