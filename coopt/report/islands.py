"""Islands: each workload's own network, the core they share, and what else couples them at sites
and in phases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType

from coopt.instance.couplings import Discount
from coopt.instance.schema import Instance
from coopt.instance.variants import workloads_in
from coopt.plan.contents import products
from coopt.plan.couplings import CorePlan, Part, SharedCore
from coopt.plan.evaluation import plan_checks
from coopt.plan.parts import Uptime
from coopt.plan.schema import Cost, Design, Item, Plan
from coopt.report import words
from coopt.report.couplings import bills_by_phase
from coopt.report.parts import BILL, bill_tables, degrees, knob_sentences, tiers_of
from coopt.report.remarks import accuracy, counting_sentence, margins_table, tp_across
from coopt.report.robust import robust_tables
from coopt.report.tables import figures


def islands_report(instance: Instance, plan: Plan, cost: Cost) -> Iterator[RenderableType]:
    """Islands, their networks and cores, products and brackets, the bills, how each workload runs,
    and the limits.
    """
    yield _islands(plan)
    yield ""
    yield _networks(plan)
    yield ""
    for coupling in plan.couplings.cores:
        yield from core_tables(instance, coupling)
        yield ""
    yield from _products(instance, plan, cost)
    yield ""
    yield from _bills(instance, plan, cost)
    yield ""
    yield _workloads(plan)
    yield from _interruptions(instance, plan)
    yield from knob_sentences(plan.runs)
    yield ""
    yield margins_table(plan_checks(instance, plan))
    yield ""
    yield counting_sentence(instance)
    exception = "; only the core is shared" if plan.couplings.cores else ""
    yield (
        "Workloads run at the same time, each on HB domains, NICs and switches of its"
        f" own{exception}."
    )
    yield from accuracy(instance, plan.runs)
    yield from tp_across(plan.runs, none_inside=plan.tp_across)
    yield from robust_tables(instance, plan)


def core_tables(instance: Instance, coupling: SharedCore) -> Iterator[RenderableType]:
    """What the core is, and which links lead into it."""
    core, place = coupling.core, _place(coupling)
    rows = [
        (
            links.workload,
            words.count(links.per_leaf) if links.per_leaf else "-",
            words.count(links.links),
        )
        for links in core.islands
    ]
    total = ("together", "", words.count(core.ports))
    yield figures(
        f"Links into the core{place}", ("island",), ("from each leaf", "links"), rows, total=total
    )
    radix = next(
        switch.radix for switch in instance.network.switches if switch.name == core.switch.name
    )
    ports = words.count(core.switches * radix)
    rate = instance.sharing.core.gbit_s_per_gpu if instance.sharing.core is not None else 0.0
    between = "the islands of a site" if coupling.site is not None else "islands"
    yield (
        f"The core is {words.times(core.switches, core.switch.name)} with {words.count(core.ports)}"
        f" of {ports} ports in use, {_ends_of(core)}: {rate:g} Gbit/s between {between} for each"
        " GPU that trains."
    )
    if len(core.islands) == 1:
        spot = "at this site" if coupling.site is not None else "here"
        yield (
            f"Only one island stands {spot}{_year(coupling)}: the core joins it to nothing, but"
            " reserves its links."
        )
    if any(not links.per_leaf for links in core.islands):
        yield "An island of one HB domain has NICs for these links only, and no leaf."


def _ends_of(core: CorePlan) -> str:
    """What is at the ends of links into a core."""
    lower_optics = sorted(set(map(core.below, core.islands)))
    if lower_optics == [core.optic]:
        return f"{core.optic} at both ends of a link"
    return f"{core.optic} at its end of links and {', '.join(lower_optics)} at that of islands"


def _place(coupling: SharedCore) -> str:
    """` at east, 2026`: where and when a core stands, where there are several."""
    site = "" if coupling.site is None else f" at {coupling.site}"
    return site if coupling.phase is None else f"{site}, {coupling.phase:g}"


def _year(coupling: SharedCore) -> str:
    return "" if coupling.phase is None else f" in {coupling.phase:g}"


def _designs(plan: Plan) -> Iterator[tuple[Part, Design]]:
    for part in plan.parts:
        if part.design is not None:
            yield part, part.design


def _islands(plan: Plan) -> RenderableType:
    """Every island in every phase; a total where nothing grows."""
    sited = any(part.site is not None for part in plan.parts)
    rows = [_island_row(part, design, sited) for part, design in _designs(plan)]
    for coupling in plan.couplings.cores:
        product = words.times(coupling.core.switches, coupling.core.switch.name)
        site = (coupling.site or "-",) if sited else ()
        name = "core" if coupling.phase is None else f"core, {coupling.phase:g}"
        rows.append(
            (name, *site, product, "-", "-", words.exact(round(coupling.core.power_w)), "-")
        )
    total = None
    if len(plan.couplings.years) == 1:
        designs = [design for _, design in _designs(plan)]
        racks = [design.racks for design in designs]
        power_w = sum(part.power_w for part in plan.parts) + sum(
            core.core.power_w for core in plan.couplings.cores
        )
        gpus = words.count(sum(design.gpus for design in designs))
        total_racks = "-" if None in racks else words.count(sum(count or 0 for count in racks))
        total = (
            "together",
            *([""] if sited else []),
            "",
            gpus,
            total_racks,
            words.exact(round(power_w)),
            "",
        )
    columns = ("workload", "site", "HB domains") if sited else ("workload", "HB domains")
    return figures("Islands", columns, ("GPUs", "racks", "W", "slack"), rows, total=total)


def _island_row(part: Part, design: Design, sited: bool) -> tuple[str, ...]:
    domain = design.hb_domain
    idle = f", {domain.active} active" if domain.active < domain.size else ""
    slack = "-"
    for run in part.workloads:
        slack = words.percent(run.slack)
    return (
        part.name,
        *((part.site or "-",) if sited else ()),
        f"{words.domains_built(design)}{idle}",
        words.count(design.gpus),
        "-" if design.racks is None else words.count(design.racks),
        words.exact(round(part.power_w)),
        slack,
    )


def _networks(plan: Plan) -> RenderableType:
    rows = [
        (part.name, *_network(design, bool(plan.couplings.cores)))
        for part, design in _designs(plan)
    ]
    return figures("Networks", ("workload", "fabric", "NIC", "switches", "leaf"), ("ratio",), rows)


def _network(design: Design, cored: bool) -> tuple[str, str, str, str, str]:
    fabric = design.fabric
    if not fabric.tiers:
        return "none, one HB domain", fabric.nic.name if cored else "-", "-", "-", "-"
    return (
        tiers_of(fabric),
        f"{fabric.nic.per_gpu} x {fabric.nic.name}",
        words.times(fabric.switch_count, fabric.switch.name),
        (
            f"{leaf.uplinks_per_switch} up, {leaf.down_ports} down"
            if (leaf := fabric.tier[0]).uplinks_per_switch
            else "none"
        ),
        words.ratio(fabric.oversubscription),
    )


def _workloads(plan: Plan) -> RenderableType:
    rows = [
        (
            part.name,
            degrees(run.mapping),
            words.seconds(run.iteration_time_s),
            words.seconds(run.bound_s),
            f"{run.memory_gib:.1f} of {run.memory_limit_gib:.1f}",
            words.percent(run.mfu),
        )
        for part in plan.parts
        for run in part.workloads
    ]
    return figures("Workloads", ("workload", "split"), ("iteration", "bound", "GiB", "MFU"), rows)


def _interruptions(instance: Instance, plan: Plan) -> Iterator[RenderableType]:
    """What stands by for each island, what interrupts it, and when it is done; nothing where no
    failures count.
    """
    rows = []
    for part, design in _designs(plan):
        for run in part.workloads:
            if run.uptime is not None:
                (workload,) = (
                    candidate
                    for candidate in workloads_in(instance, part.phase)
                    if candidate.name == run.name
                )
                standing_by = (
                    words.counted(design.spare_domains, "domain")
                    if design.spare_domains
                    else "none"
                )
                cells = (
                    part.name,
                    words.days_of(run, workload),
                    standing_by,
                    words.count(design.spare_gpus),
                )
                rows.append((*cells, *_uptime_cells(run.uptime)))
    if rows:
        yield ""
        yield figures(
            "Spares and interruptions: shares of the time that trains and with domains enough, time"
            " between events",
            ("workload", "days", "standing by"),
            ("idle GPUs", "trains", "enough", "failures", "checkpoints"),
            rows,
        )


def _uptime_cells(uptime: Uptime) -> tuple[str, ...]:
    return (
        words.percent(uptime.goodput),
        words.percent(uptime.running),
        "never" if uptime.failure_s is None else words.time(uptime.failure_s),
        "never" if uptime.interval_s is None else words.time(uptime.interval_s),
    )


def _bills(instance: Instance, plan: Plan, cost: Cost) -> Iterator[RenderableType]:
    """The bill of everything, or of every phase at its prices."""
    if len(plan.couplings.years) > 1:
        yield from bills_by_phase(plan, cost, "worst prices" if instance.worst_prices else "prices")
    else:
        at_prices = ", at the worst prices" if instance.worst_prices else ""
        yield from bill_tables(instance, cost, f"{BILL}, all islands together{at_prices}")


def _products(instance: Instance, plan: Plan, cost: Cost) -> Iterator[RenderableType]:
    """How many products of each limited kind are in use, and which price each discounted one
    reached.
    """
    for kind, max_products in instance.sharing.most_products.given.items():
        names = sorted(products(plan, kind))
        yield (
            f"Products of kind {kind}: {len(names)} of at most {max_products} in use"
            f" ({', '.join(names) or 'none'})."
        )
    rows = [
        row
        for year, items in plan.couplings.bought(cost).items()
        for discount in instance.sharing.discount
        for row in _bracket(discount, items, "" if year is None else f", {year:g}")
    ]
    if rows:
        yield ""
        yield figures(
            "Discounts", ("item", "applies", "reached"), ("used", "spare", "unit $"), rows
        )


def _bracket(
    discount: Discount, items: Iterable[Item], time_text: str
) -> Iterator[tuple[str, ...]]:
    """The bracket a product is bought in, where it is bought at all; spare units are those beyond
    what is used.
    """
    lines = [item for item in items if item.product == (discount.kind, discount.item)]
    if not lines:
        return
    in_use = sum(item.count for item in lines if not item.spare)
    spare = sum(item.count for item in lines) - in_use
    lowered = (
        0 if discount.applies == "all-units" else 1
    )  # incremental prices are for units beyond a threshold alone
    begins = [0, *(begin for begin in discount.begins if begin + lowered <= in_use + spare)]
    bracket = f"from {words.count(begins[-1])}" if begins[-1] else "list price"
    yield (
        f"{discount.item}{time_text}",
        discount.applies,
        f"{bracket} ({len(begins) - 1} of {len(discount.begins)})",
        words.count(in_use),
        words.count(spare),
        words.exact(lines[-1].unit_usd),
    )
