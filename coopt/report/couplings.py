"""Plans that grow, and plans for several sites: what is built when and where, and what joins the
sites.

What foresight is worth is said beside.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from coopt.instance.couplings import part_of
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance
from coopt.instance.variants import of_phase, phases_of
from coopt.plan.couplings import Myopic, PhaseSpending
from coopt.plan.evaluation import plan_checks
from coopt.plan.schema import Cost, Plan, WorkloadPlan
from coopt.plan.schema_one import PhasePlan, Together
from coopt.report import words
from coopt.report.parts import (
    BILL,
    bill_table,
    bill_tables,
    design_tables,
    part_tables,
    workload_tables,
)
from coopt.report.remarks import margins_table, notes
from coopt.report.tables import FigureTable, figures

EACH_ON_ITS_OWN = (
    "Either way leaves are laid out for all the GPUs that will come, and no cable moves to another"
    " leaf."
)


def phase_rows(instance: Instance) -> Iterator[tuple[str, str]]:
    """What each phase of a question trains and pays."""
    for phase, question in zip(instance.phase, phases_of(instance), strict=bool(instance.phase)):
        trained = ", ".join(
            f"{workload.name} ({words.asked_bound(workload)})" for workload in question.workload
        )
        changes = [
            f"{kind} x {factor:g}"
            for kind, factor in phase.price.model_dump().items()
            if factor != 1
        ]
        prices = f"; prices: {', '.join(changes)}" if changes else ""
        labour = (
            f"; ${phase.retrofit_usd_per_link:,g} for a link added later"
            if phase.retrofit_usd_per_link
            else ""
        )
        yield f"From {phase.year:g} on", f"{phase.gpus:,} GPUs for {trained}{prices}{labour}"


def phases_report(instance: Instance, plan: Plan) -> Iterator[RenderableType]:
    """Growth at a glance, every phase with its bill, the last network in full, every workload, the
    myopic planner.
    """
    assert plan.cost is not None
    last_phase = plan.phases[-1]
    yield growth_table(plan)
    yield from bills_by_phase(plan, plan.cost)
    yield ""
    yield from design_tables(instance, last_phase.design)
    for t, phase in enumerate(plan.phases):
        question = of_phase(instance, t)
        for run, workload in zip(phase.workloads, question.workload, strict=True):
            yield ""
            yield f"From {phase.year:g}:"
            yield from workload_tables(run, workload)
    yield ""
    yield margins_table(plan_checks(instance, plan))
    yield ""
    yield from notes(
        of_phase(instance, len(plan.phases) - 1),
        [last_phase.design],
        last_phase.workloads,
        none_inside=plan.tp_across,
    )


def bills_by_phase(plan: Plan, cost: Cost, prices: str = "prices") -> Iterator[RenderableType]:
    """What all phases cost, what foresight is worth, and the bill of each; nothing where all is
    bought at once.
    """
    growth = plan.couplings.growth
    if growth:
        yield _spending_sentence(cost, growth)
        if plan.myopic is not None:
            yield ""
            yield from _foresight(plan, plan.myopic)
        yield from _phase_bills(growth, prices)


def spending_table(plan: Plan, cost: Cost) -> FigureTable:
    """What each phase pays, with labour and support where there are any."""
    growth = plan.couplings.growth
    paid = [(phase.capex_usd, phase.work_usd, phase.energy_usd) for phase in growth]
    sums = (
        cost.capex_usd,
        math.fsum(phase[1] for phase in paid),
        math.fsum(phase[2] for phase in paid),
    )
    # Labour and support have a column only where something is paid for them.
    columns = [n for n in range(3) if n != 1 or sums[1]]
    rows = [
        (
            f"{phase.year:g}",
            *(words.exact(round(usd[n])) for n in columns),
            words.exact(round(phase.power_w)),
        )
        for phase, usd in zip(growth, paid, strict=True)
    ]
    names = ("purchase $", "labour and support $", "electricity $")
    total = ("total", *(words.exact(round(sums[n])) for n in columns), "")
    return figures(
        "", ("Phase",), (*(names[n] for n in columns), "draws W"), rows, total=total, compact=True
    )


def _spending_sentence(cost: Cost, growth: Sequence[PhaseSpending]) -> str:
    """What all phases cost."""
    purchase_text = words.money(cost.capex_usd)
    electricity = words.money(math.fsum(phase.energy_usd for phase in growth))
    work = math.fsum(phase.work_usd for phase in growth)
    works = f"{words.money(work)} of labour and support, " if work else ""
    return f"All phases together: {purchase_text} to buy, {works}{electricity} of electricity."


def _phase_bills(growth: Sequence[PhaseSpending], prices: str) -> Iterator[RenderableType]:
    """The bill of every phase at its prices, and what waits for a later one."""
    for phase in growth:
        yield ""
        title, power_w = (
            f"Bill of {phase.year:g}, at its {prices}",
            sum(item.w for item in phase.bought),
        )
        yield bill_table(title, phase.bought, phase.capex_usd, power_w)
        if phase.stored:
            stock = ", ".join(words.times(unit.count, unit.item) for unit in phase.stored)
            yield f"Bought ahead and kept for later: {stock}."
            yield (
                "Watts of the bill are of everything bought; what is kept for later does not draw"
                " them yet."
            )


def growth_table(plan: Plan) -> RenderableType:
    """One line for each phase: what stands, and what it spends."""
    return figures(
        "What to buy when",
        ("from", "HB domains", "network"),
        ("GPUs", "uplinks", "buy $", "MW"),
        [
            (
                f"{phase.year:g}",
                words.times(phase.design.hb_domain.count, phase.design.hb_domain.name),
                network_of(phase),
                words.count(phase.design.gpus),
                uplinks_of(phase),
                words.exact(phase.capex_usd),
                words.digits(phase.power_w / 1e6, 4),
            )
            for phase in plan.phases
        ],
    )


def network_of(phase: PhasePlan) -> str:
    """`2-tier rail-only`."""
    fabric = phase.design.fabric
    return f"{fabric.tiers}-tier {fabric.kind}" if fabric.tiers else "none"


def uplinks_of(phase: PhasePlan) -> str:
    """Uplinks of a leaf, or none on one tier."""
    tiers = phase.design.fabric.tier
    return words.count(tiers[0].uplinks_per_switch) if len(tiers) > 1 else "none"


def _foresight(plan: Plan, claim: Myopic) -> Iterator[str]:
    """What planning phase by phase would have come to."""
    kind = plan.objective.kind
    first_design = claim.steps[0].design if claim.steps else None
    start = "" if first_design is None else f" It starts with {words.design_text(first_design)}."
    if claim.dead_end is not None:
        yield f"Planning each phase on its own runs into a dead end: {claim.dead_end}.{start}"
    elif claim.saving is not None and claim.value is not None and plan.objective.value is not None:
        if claim.saving <= EQUAL * abs(claim.value):
            yield f"Planning each phase on its own costs the same here. {EACH_ON_ITS_OWN}"
        else:
            share = words.percent(claim.saving / claim.value)
            yield (
                f"Planning each phase on its own takes {words.money(claim.value)} of {kind}:"
                f" foresight saves {words.money(claim.saving)} ({share}).{start} {EACH_ON_ITS_OWN}"
            )


def sites_report(
    instance: Instance, plan: Plan, cost: Cost, cluster: Together
) -> Iterator[RenderableType]:
    """Sites side by side, links, exchanges, the whole bill, the network of each site, bounds, how
    to read them.
    """
    runs = zip(*(site.workloads for site in cluster.sites), strict=True)
    slowest = [max(run, key=lambda run_at_site: run_at_site.iteration_time_s) for run in runs]
    yield _sites(cluster)
    if cluster.wan:
        yield ""
        yield _links(cluster)
        yield from _exchanges(cluster)
    yield from _bounds_in_own_units(instance, slowest)
    yield ""
    yield from bill_tables(instance, cost, f"{BILL}, all sites")
    for site in cluster.sites:
        yield ""
        workloads = [
            part_of(workload, site.shares, cluster.shares) for workload in instance.workload
        ]
        runs = zip(site.workloads, workloads, strict=True)
        yield from part_tables(
            instance, site.design, runs, title=f"Site {site.name}", where=f" at {site.name}"
        )
    yield ""
    yield margins_table(plan_checks(instance, plan))
    yield ""
    designs, channels = (
        [site.design for site in cluster.sites],
        ["wide-area channels"] if instance.wan else [],
    )
    yield from notes(instance, designs, slowest, none_inside=plan.tp_across, beside=channels)


def _sites(cluster: Together) -> RenderableType:
    return figures(
        "Sites",
        ("site",),
        ("shares", "GPUs", "feeds", "at most", "purchase"),
        [
            (
                site.name,
                f"{site.shares} of {cluster.shares}",
                words.count(site.design.gpus),
                words.power(site.facility_w),
                words.power(site.facility_limit_w),
                words.money(site.cost.capex_usd),
            )
            for site in cluster.sites
        ],
    )


def _links(cluster: Together) -> RenderableType:
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
            for link in cluster.wan
        ],
    )


def _exchanges(cluster: Together) -> Iterator[RenderableType]:
    for exchange in cluster.exchanges:
        scale, unit = words.byte_scale(exchange.sent_bytes)
        yield (
            f"Once an iteration each site sends {words.digits(exchange.sent_bytes / scale, 4)}"
            f" {unit} of gradients of {exchange.workload} round the ring, which takes"
            f" {words.seconds(exchange.exchange_s)}."
        )


def _bounds_in_own_units(instance: Instance, slowest: Sequence[WorkloadPlan]) -> Iterator[str]:
    """Bounds in the units they are given in, which are those of all sites together."""
    for run, workload in zip(slowest, instance.workload, strict=True):
        bound, time_text = (
            workload.in_own_units(time_s) for time_s in (workload.asked_s, run.iteration_time_s)
        )
        if time_text:
            yield f"Bound of {run.name}, all sites together: {bound}; this plan {time_text}."
