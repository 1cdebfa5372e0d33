"""An all-reduce on a fabric, and what the fabric costs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from rich.console import RenderableType
from rich.text import Text

from coopt.network.direct.parts import FabricBill
from coopt.network.schedules.outcome import CollectiveOutcome
from coopt.plan.on_links import Trained
from coopt.report import words
from coopt.report.parts import bill_table
from coopt.report.tables import facts, figures

SPANS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))
SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes"))


def collective_report(
    found: CollectiveOutcome, bill: FabricBill | None = None, trained: tuple[Trained, ...] | None = None
) -> Iterator[RenderableType]:
    """Headline, fabric and schedule, times beside those of one ring; bill and iterations where they were asked for."""
    yield Text(collective_headline(found), style="bold")
    yield ""
    yield facts("All-reduce", _rows(found))
    yield ""
    yield figures("", ("schedule",), ("steps", "chunks on a link", "time", "against the ring"), _times(found))
    yield (
        "Steps and chunks (1/N of the data) are those of one phase; an all-reduce reduces, then gathers. A chunk on a "
        "link counts for as long as it is sent."
    )
    if trained is not None:
        yield ""
        yield figures(
            "Training with these links between the domains",
            ("workload",),
            ("on the plan's network", "on these links", "of that between domains", "bound"),
            map(_trained, trained),
        )
    if bill is not None:
        yield from _bill(bill)


def collective_json(
    found: CollectiveOutcome, bill: FabricBill | None = None, trained: tuple[Trained, ...] | None = None
) -> str:
    """The same as one JSON document."""
    document = asdict(found)
    if trained is not None:
        document["training"] = [one.model_dump() for one in trained]
    if bill is not None:
        lines = [asdict(line) | {"usd": line.usd, "w": line.w} for line in bill.lines]
        document["fabric"] = {"usd": bill.usd, "w": bill.w, "items": lines}
    return json.dumps(document, indent=2)


def collective_headline(found: CollectiveOutcome) -> str:
    """What it takes and whether better is possible."""
    if found.gap < words.ROUNDING and found.chunks == found.nodes and found.slowest_gbit_s == found.fastest_gbit_s:
        end = "no schedule of one chunk a domain has fewer steps"
    elif found.gap < words.ROUNDING:
        end = "at the lower bound in steps"
    else:
        end = f"{words.percent(found.gap)} over the lower bound"
    ring = (
        "" if found.algorithm == "ring" else f", {words.digits(found.speedup_over_ring, 3)} times as fast as one ring"
    )
    return (
        f"{found.algorithm} reduces {_scaled(found.bytes, SIZES)} over {found.nodes} domains in "
        f"{_scaled(found.time_s, SPANS)}{ring}; {end}."
    )


def _trained(one: Trained) -> tuple[str, ...]:
    times = one.planned_time_s, one.iteration_time_s, one.between_domains_s, one.bound_s
    return one.name, *map(words.seconds, times)


def _rows(found: CollectiveOutcome) -> Iterator[tuple[str, str]]:
    switches = words.counted(found.switches, "switch") if found.switches else "no switches"
    slow, fast = (f"{rate:g}" for rate in (found.slowest_gbit_s, found.fastest_gbit_s))
    links = f"{words.counted(found.links, 'link')} of {slow if slow == fast else f'{slow} to {fast}'} Gbit/s"
    yield "Fabric", f"{found.graph}: {words.counted(found.nodes, 'domain')}, {links}, {switches}"
    chunk = _scaled(found.bytes / found.chunks, SIZES)
    contends = "no link carries two chunks" if found.contention_free else "steps last as long as the busiest link"
    yield (
        "Schedule",
        f"{words.counted(found.chunks, 'chunk')} of {chunk}, {words.counted(found.steps, 'step')} a phase, {contends}",
    )
    if found.found_by != found.algorithm:
        yield "Construction", found.found_by
    steps = words.counted(found.lower_bound_steps, "step")
    yield "Lower bound", f"{steps} a phase for one chunk a domain, set by {found.lower_bound_by}"
    yield "Bus bandwidth", f"{words.digits(found.bus_gbyte_s, 4)} GB/s"
    yield "Replay", "carried out on the graph, both phases; every contribution arrives exactly once"


def _times(found: CollectiveOutcome) -> Iterator[tuple[str, ...]]:
    yield (
        found.algorithm,
        words.count(found.steps),
        words.digits(found.work_chunks, 4),
        _scaled(found.time_s, SPANS),
        f"{words.digits(found.speedup_over_ring, 3)} x",
    )
    if found.algorithm != "ring":
        around = found.nodes - 1
        yield "ring", words.count(around), words.digits(around, 4), _scaled(found.ring_time_s, SPANS), "1 x"
    yield "lower bound", words.count(found.lower_bound_steps), words.digits(found.lower_bound_work_chunks, 4), "", ""


def _bill(bill: FabricBill) -> Iterator[RenderableType]:
    yield ""
    yield bill_table("Bill of the fabric", bill.lines, bill.usd, bill.w)


def _scaled(value: float, scales: tuple[tuple[float, str], ...]) -> str:
    """Four digits in the largest unit that leaves a number of 1 or more."""
    rounded = float(f"{value:.3e}")
    size, unit = next((scale for scale in scales if rounded >= scale[0]), scales[-1])
    return f"{words.digits(rounded / size, 4) if rounded % size else f'{rounded / size:.0f}'} {unit}"
