"""Check one part of a plan: a network that stands somewhere, with what trains on it and its bill;
and sums of plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from coopt.instance.hardware import Gpu, Optic
from coopt.instance.question import ObjectiveKind
from coopt.instance.reserves import Availability
from coopt.instance.schema import Instance
from coopt.instance.texts import counted, exact_amount
from coopt.instance.workload import Workload
from coopt.plan.parts import Cost, Design, Item, Uptime, WorkloadPlan
from coopt.plan.schema import Plan
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, UnsoundError, agree
from coopt.verifier.parts.bills import (
    BillTotal,
    CountedItem,
    LineKey,
    SwitchLevel,
    key_of,
)
from coopt.verifier.parts.design_checks import check_ports, held_in_cages
from coopt.verifier.parts.halls import (
    check_cables,
    check_one_kind,
    laid_cables,
    laid_stage,
    named_cables,
    stages_before,
)
from coopt.verifier.parts.layouts import Ports, ceil_ratio, core_ports
from coopt.verifier.parts.network_checks import check_network
from coopt.verifier.parts.optics import ends_of, optics_named
from coopt.verifier.parts.outages import outages_of, pace_of
from coopt.verifier.parts.space import DesignFamily, OpticPair, cage_count
from coopt.verifier.parts.spans import Reach, reach_of
from coopt.verifier.parts.stages import GrowthStage, Laid, LaidCables, last_stage
from coopt.verifier.parts.uptime import check_uptime, uptime_of
from coopt.verifier.parts.workload_checks import ClaimedRun, check_mappings, check_run

Row = tuple[LineKey, float, float, int]
"""What a bill has units of, price (USD) and power (W) of one, and how many there are."""
FIRST_LINES = 3
"""Lines of a bill that a reason names."""
OBJECTIVES: dict[ObjectiveKind, str] = {
    "capex": "purchase price",
    "tco": "total cost of ownership",
    "power": "power",
    "time": "iteration time",
    "usd_per_token": "cost per token",
    "carbon": "carbon footprint",
}
"""What a sentence calls the value of an objective."""


class CountedPart(NamedTuple):
    """A part that can be built, as it was counted on its graph."""

    family: DesignFamily
    ports: Ports
    levels: tuple[SwitchLevel, ...]
    optics: tuple[OpticPair, ...]
    runs: list[ClaimedRun]
    laid: Mapping[int, Laid] | None = None
    into_core: Mapping[int, tuple[LaidCables, ...]] | None = None

    def stage(self, uplinks: Sequence[int], core_end: Optic | None) -> GrowthStage:
        """The part as the end of its growth, with its cables."""
        ports = self.ports._replace(up=0)
        return self.with_cables(last_stage(self.family, ports, uplinks, self.optics, core_end))

    def with_cables(self, stage: GrowthStage) -> GrowthStage:
        """The part in a stage of its growth, with its cables there."""
        if self.into_core is not None:
            stage = stage._replace(into_core=self.into_core[stage.family.gpus])
        if self.laid is None:
            return stage
        return laid_stage(stage, self.ports.up, self.laid[stage.family.gpus])


def check_part(
    ledger: Ledger,
    question: Instance,
    family: DesignFamily,
    design: Design,
    workloads: Iterable[tuple[Workload, WorkloadPlan]],
    kind: ObjectiveKind,
    earlier: Sequence[int] = (),
) -> CountedPart:
    """Check mappings, ports and the graph of a design whose domains are sound.

    Parameters
    ----------
    earlier
        GPUs that it had in earlier phases, rising.

    Raises
    ------
    UnsoundError
        Where no network can be built from it, or with none of the optics allowed.
    """
    runs = check_mappings(ledger, workloads, family)
    ports = check_ports(ledger, question, family, design.fabric, kind)
    optics = optics_named(question, kind, family, [tier.ends for tier in design.fabric.tier])
    caged_family = held_in_cages(question.network, family, design.fabric)
    levels = check_network(ledger, caged_family, ports, design.fabric, runs, optics=optics)
    if optics is None:
        raise UnsoundError
    if question.network.switch_cages == "kept":
        _check_cages(ledger, family, ports, levels, optics)
    laid = None
    if question.network.cables == "hall" and not family.stands:
        ends = [
            [
                pair
                for pair in ends_of(question, kind, family.network, level)
                if caged_family.network.carried(pair) == caged_family.network.carried(claimed)
            ]
            for level, claimed in enumerate(optics, start=1)
        ]
        end = last_stage(caged_family, ports, (ports.up,), optics)
        line = [*stages_before(question, end, earlier), end]
        if question.several_networks or question.existing:
            laid_in = named_cables(question, line, ends, design.fabric)
        else:
            cheapest = laid_cables(question, kind, caged_family, ports, ends)
            laid_in = None if cheapest is None else (cheapest,)
        check_cables(ledger, design.fabric, None if laid_in is None else laid_in[-1])
        if laid_in is None:
            raise UnsoundError
        laid = {one.family.gpus: of for one, of in zip(line, laid_in, strict=True)}
    else:
        check_one_kind(ledger, design.fabric)
    return CountedPart(caged_family, ports, levels, optics, runs, laid)


def _check_cages(
    ledger: Ledger,
    family: DesignFamily,
    ports: Ports,
    levels: Sequence[SwitchLevel],
    optics: Sequence[OpticPair],
) -> None:
    """Check that no switch, as it was counted on the graph, takes more modules than it has
    cages.
    """
    for tier, level in enumerate(levels, start=1):
        # a switch has upper ends of its level and lower ends of the next, a leaf those of links
        # into a core besides
        modules = _modules_of_fullest(level.above, family.network.carried(optics[tier - 1])[1])
        if tier < len(levels):
            modules += _modules_of_fullest(
                levels[tier].below, family.network.carried(optics[tier])[0]
            )
        modules += ceil_ratio(core_ports(family, ports), family.core_module) if tier == 1 else 0
        cages = cage_count(family.network.at(tier))
        ledger.holds(
            "cages",
            modules <= cages,
            modules,
            cages,
            f"A switch of level {tier} needs {counted(modules, 'module')} but has only"
            f" {counted(cages, 'cage')}.",
        )


def _modules_of_fullest(devices: Iterable[tuple[int, int]], links_of_module: int) -> int:
    """Modules of the device that takes most."""
    return max((ceil_ratio(links, links_of_module) for count, links in devices if count), default=0)


def check_part_runs(
    ledger: Ledger,
    part: CountedPart,
    gpu: Gpu,
    waits_s: Mapping[str, float] | None = None,
    availability: Availability | None = None,
    uptimes: Mapping[str, tuple[Uptime, float]] | None = None,
) -> None:
    """Check time, memory and utilisation of all that trains on a part.

    Parameters
    ----------
    waits_s
        How long each workload waits for gradients of other sites, where there are any.
    availability
        What interrupts training, if anything does.
    uptimes
        In its place what interrupts each workload at all sites together, and the share of its bound
        in which it runs.
    """
    for run in part.runs:
        wait_s = None if waits_s is None else waits_s[run.workload.name]
        reach = reach_of(part.family, part.ports)
        if uptimes:
            uptime, goodput = uptimes[run.workload.name]
            check_uptime(ledger, run.workload, run.claim.uptime, uptime)
        else:
            goodput = check_interruptions(
                ledger, run, availability, part.family, reach, part.levels, gpu
            )
        check_run(ledger, run, part.family, reach, gpu, wait_s, goodput)


def check_interruptions(
    ledger: Ledger,
    run: ClaimedRun,
    availability: Availability | None,
    family: DesignFamily,
    reach: Reach,
    levels: Sequence[SwitchLevel],
    gpu: Gpu,
) -> float:
    """Check what a plan says of a workload's interruptions; the share of a bound on days that it
    can count on.
    """
    uptime = None
    if availability is not None:
        pace = pace_of(availability, run, family, reach, levels, gpu)
        port_out = outages_of(availability, family, levels).share
        uptime = uptime_of(availability, run.workload, family, levels, pace, port_out)
    check_uptime(ledger, run.workload, run.claim.uptime, uptime)
    return uptime.promised if uptime and run.workload.calendar else 1.0


def check_bill(ledger: Ledger, lines: Iterable[CountedItem], sums: BillTotal, cost: Cost) -> None:
    """Check that a bill has these lines, that they are counts times units, and that they have these
    sums.
    """
    check_products(ledger, cost.items)
    rows = ((line.key, line.unit_usd, line.unit_w, line.amount) for line in lines)
    check_lines(ledger, "bill-lines", cost.items, rows)
    check_sums(ledger, sums, cost)


def check_sums(ledger: Ledger, sums: BillTotal, cost: Cost) -> None:
    """Check purchase, power and total cost."""
    for name, claimed_sum, recomputed in (
        ("capex", cost.capex_usd, sums.capex_usd),
        ("power", cost.power_w, sums.power_w),
        ("tco", cost.tco_usd, sums.tco_usd),
    ):
        ledger.close(
            name,
            claimed_sum,
            recomputed,
            f"The {name} of the bill is {exact_amount(name, recomputed)}, but the plan says"
            f" {exact_amount(name, claimed_sum)}.",
        )


def is_product(item: Item) -> bool:
    """Whether a line is its count times its units, and says so in words."""
    is_count_times_units = agree(item.usd, item.count * item.unit_usd) and agree(
        item.w, item.count * item.unit_w
    )
    return is_count_times_units and item.item == key_of(item).text


def check_products(ledger: Ledger, items: Iterable[Item]) -> None:
    """Check that every line is its count times its units and is named so, and that the count is one
    or more.
    """
    faults = tuple(item.item for item in items if item.count < 1 or not is_product(item))
    ledger.holds(
        "bill-products",
        not faults,
        faults,
        (),
        "Bill lines with no units, a total other than count times unit, or a wrong name:"
        f" {', '.join(faults)}.",
        TOLERANCE,
    )


def check_lines(
    ledger: Ledger, name: str, items: Sequence[Item], expected_rows: Iterable[Row]
) -> None:
    """Check that items, counts and units are the expected ones; lines of one item add up."""
    claimed, expected = (
        _merged((key_of(item), item.unit_usd, item.unit_w, item.count) for item in items),
        _merged(expected_rows),
    )
    fine = len(claimed) == len(expected) and all(map(_same_row, claimed, expected))
    texts, expected_texts = _texts(claimed), _texts(expected)
    ledger.holds(
        name,
        fine and all(map(is_product, items)),
        texts,
        expected_texts,
        "Lines of the bill are wrong in their totals or names."
        if fine
        else f"The bill has to have {_excerpt(expected_texts, texts)} in place of"
        f" {_excerpt(texts, expected_texts)}.",
        TOLERANCE,
    )


def _excerpt(texts: Sequence[str], others: Sequence[str]) -> str:
    """The first of some lines that others do not have."""
    own = [text for text in texts if text not in others]
    return (
        "; ".join([*own[:FIRST_LINES], *(["..."] if len(own) > FIRST_LINES else [])]) or "no line"
    )


def _merged(rows: Iterable[Row]) -> list[Row]:
    """Rows in order, those of one price added up."""
    counts: Counter[tuple[LineKey, float, float]] = Counter()
    for key, usd, w, count in rows:
        counts[key, usd, w] += count
    totals = ((*price_key, count) for price_key, count in counts.items())
    return sorted(totals, key=lambda row: (row[0].kind, row[0].text, *row[1:]))


def _same_row(a: Row, b: Row) -> bool:
    return (a[0], a[3]) == (b[0], b[3]) and agree(a[1], b[1]) and agree(a[2], b[2])


def _texts(rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple(
        f"{key.kind}: {count} x {key.text} at {usd:.12g} USD, {w:.12g} W"
        for key, usd, w, count in rows
    )


def check_objective(ledger: Ledger, plan: Plan, sums: BillTotal) -> None:
    """Check that the value is the recomputed cost."""
    check_worth(ledger, plan, sums.of(plan.objective.kind))


def check_worth(ledger: Ledger, plan: Plan, recomputed: float) -> None:
    """Check that the value of a plan is that of its design."""
    kind, value = plan.objective.kind, plan.objective.value
    ledger.holds(
        "objective",
        agree(value, recomputed),
        value,
        recomputed,
        f"The {OBJECTIVES[kind]} of the design is {exact_amount(kind, recomputed)}, but the plan"
        f" states {exact_amount(kind, value)}.",
        TOLERANCE,
    )
