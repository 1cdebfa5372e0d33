"""What ties the parts of a plan: sites, cores, joint purchases, phases, prices and losses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from coopt.instance.couplings import LOST, Discount, Prices
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance
from coopt.instance.variants import phases_of
from coopt.plan.contents import products
from coopt.plan.couplings import (
    Outlooks,
    PhaseSpending,
    Ring,
    SharedCore,
    Survived,
)
from coopt.plan.parts import Cost, Item, WorkloadPlan
from coopt.plan.schema import Plan
from coopt.report import words
from coopt.report.facts import BILL, bill_table, degrees, tco_sentence
from coopt.report.words import FigureTable, facts, figures, pieces

EACH_ON_ITS_OWN = (
    "Both ways of planning reserve leaf ports for all later GPUs, so that no cable has to move."
)
AIMS = {
    True: "least cost at the worst prices",
    False: "least regret over all prices (cost above the best plan at the same prices)",
}
"""What [robust] asks for, by whether that is the worst case."""
KINDS = {"hb": "HB domain", "nic": "NIC"}
"""Kinds of products as a planner calls them, where the key is no word."""


def coupling_tables(instance: Instance, plan: Plan, cost: Cost) -> list[RenderableType]:
    """What ties the parts, table by table; nothing where there is one that stands alone."""
    couplings = plan.couplings
    return pieces(
        _sites(plan) if couplings.sites else None,
        _ring(instance, plan, couplings.ring) if couplings.ring is not None else None,
        *[_core(instance, core) for core in couplings.cores if couplings.ring is None],
        _borders(instance, couplings.cores) if couplings.ring and couplings.cores else None,
        _joint_purchases(instance, plan, cost),
        _standing(instance, plan),
    )


def _sites(plan: Plan) -> FigureTable:
    """What each site feeds, phase by phase, with its share of a batch that sites train together."""
    ring = plan.couplings.ring
    shares = dict(zip(ring.sites, ring.site_shares, strict=True)) if ring else {}
    gpus = Counter[tuple[str | None, float | None]]()
    for part in plan.parts:
        gpus[part.site, part.phase] += part.design.gpus if part.design else 0
    return figures(
        "Sites",
        ("site",),
        ("shares", "GPUs", "draws", "supply"),
        [
            (
                power.site if power.phase is None else f"{power.site}, {power.phase:g}",
                f"{shares[power.site]} of {ring.shares}" if ring else "-",
                words.count(gpus[power.site, power.phase]),
                words.power(power.facility_w),
                words.power(power.facility_limit_w),
            )
            for power in plan.couplings.sites
        ],
    )


def _ring(instance: Instance, plan: Plan, ring: Ring) -> list[RenderableType]:
    """Channels between sites, what is sent over them, and the bound of all sites together."""
    links = [
        (
            " - ".join(link.between),
            words.count(link.channels),
            f"{link.gbit_s:g}",
            words.digits(link.channels * link.gbit_s / 1000, 3),
            words.seconds(link.latency_s),
            words.money(link.usd),
            f"{words.count(link.modules)} {link.optic}" if link.optic else "none counted",
        )
        for link in ring.wan
    ]
    sent = [
        f"In every iteration each site sends {words.digits(exchange.sent_bytes / scale, 4)}"
        f" {unit} of gradients of {exchange.workload} around the ring, which takes"
        f" {words.seconds(exchange.exchange_s)}"
        + (
            f", or {words.seconds(exchange.without_channel_s)} without any one channel."
            if exchange.without_channel_s is not None
            else "."
        )
        for exchange in (ring.exchanges if links else ())
        for scale, unit in (words.byte_scale(exchange.sent_bytes),)
    ]
    paces = {
        workload: workload.in_own_units(
            max(
                run.promised_s if workload.calendar else run.iteration_time_s
                for run in plan.runs
                if run.name == workload.name
            )
        )
        for workload in instance.workload
    }
    numbers = ("channels", "Gbit/s of each channel", "Tbit/s", "latency", "price", "modules")
    return pieces(
        figures("Wide-area links, each way", ("between",), numbers, links) if links else None,
        sent,
        [
            f"Bound of {workload.name} for all sites together:"
            f" {workload.in_own_units(workload.required_s)}; this plan reaches {pace}."
            for workload, pace in paces.items()
            if pace and workload.bounded
        ],
    )


def _borders(instance: Instance, cores: Sequence[SharedCore]) -> FigureTable:
    """Switches at each site in which links from leaves and channels to other sites end."""
    radix_of = {box.name: box.radix for box in instance.network.switches}
    rows = [
        (
            border.site or "",
            words.times(core.switches, core.switch.name),
            f"{words.count(links.per_leaf)} by {core.below(links)}" if links.per_leaf else "-",
            words.count(core.ports),
            words.count(core.channel_ports),
            words.count(core.switches * radix_of[core.switch.name]),
            words.power(core.power_w),
        )
        for border in cores
        for core in (border.core,)
        for links in core.islands
    ]
    columns = ("site", "switches", "links from each leaf")
    return figures(
        "Border switches", columns, ("links", "wide-area ports", "ports in all", "power"), rows
    )


def _core(instance: Instance, coupling: SharedCore) -> list[RenderableType]:
    """What a core is, and which links lead into it."""
    core, sharing = coupling.core, instance.sharing.core
    rows = [
        (
            links.workload,
            words.count(links.per_leaf) if links.per_leaf else "-",
            words.count(links.links),
        )
        for links in core.islands
    ]
    place = coupling.name.removeprefix("core").removeprefix(", ")
    of = f", {place}" if coupling.site is None and place else place
    title = f"Links from islands into the core{of}"
    total = ("together", "", words.count(core.ports))
    radix = next(box.radix for box in instance.network.switches if box.name == core.switch.name)
    lower = sorted(set(map(core.below, core.islands)))
    by_length = any(links.cables for links in core.islands)
    ends = (
        f"{words.both(core.optics)}, by their lengths in the hall"
        if by_length and len(core.optics) > 1
        else f"{core.optic} at both ends"
        if lower == [core.optic]
        else f"{core.optic} at the core and {words.both(lower)} at islands"
    )
    between = "the islands of a site" if coupling.site is not None else "islands"
    alone = "The core joins only one island: its links are bought, but lead to no other island."
    without = "An island of one HB domain has no leaf; its NICs serve only the links into the core."
    return pieces(
        figures(
            title,
            ("island (network of a workload)",),
            ("links from each leaf", "links"),
            rows,
            total=total,
        ),
        f"The core is {words.times(core.switches, core.switch.name)} with"
        f" {words.count(core.ports)} of {words.count(core.switches * radix)} ports in use"
        f" ({words.power(core.power_w)}). Its links have {ends}. The core provides"
        f" {(sharing.gbit_s_per_gpu if sharing else 0.0):g} Gbit/s between {between} for each GPU"
        " that trains.",
        alone if len(core.islands) == 1 else None,
        without if any(not links.per_leaf for links in core.islands) else None,
    )


def _joint_purchases(instance: Instance, plan: Plan, cost: Cost) -> list[RenderableType]:
    """Products in use of each kind that is limited, and the price that each discounted one has."""
    kinds = [
        f"Different products of kind {KINDS.get(kind, kind)} in use: {len(names)} of at most {most}"
        f" ({', '.join(sorted(names)) or 'none'})."
        for kind, most in instance.sharing.most_products.given.items()
        for names in (products(plan, kind),)
    ]
    rows = [
        _bracket(discount, lines, "" if year is None else f", {year:g}")
        for year, items in plan.couplings.bought(cost).items()
        for discount in instance.sharing.discount
        if (lines := [item for item in items if item.product == (discount.kind, discount.item)])
    ]
    columns, numbers = ("item", "applies", "reached"), ("used", "spare", "unit $")
    return pieces(kinds, figures("Discounts", columns, numbers, rows) if rows else None)


def _bracket(discount: Discount, lines: list[Item], when: str) -> tuple[str, ...]:
    """The bracket that a product is bought in; spare units are those beyond what is used."""
    bought, spare = (sum(item.count for item in lines if item.spare >= least) for least in (0, 1))
    # Incremental prices are for units beyond a threshold alone.
    beyond = 0 if discount.applies == "all-units" else 1
    begins = [0, *(begin for begin in discount.begins if begin + beyond <= bought)]
    bracket = f"from {words.count(begins[-1])}" if begins[-1] else "list price"
    return (
        f"{discount.item}{when}",
        discount.applies,
        f"{bracket} ({len(begins) - 1} of {len(discount.begins)})",
        words.count(bought - spare),
        words.count(spare),
        words.exact(lines[-1].unit_usd),
    )


def bill_tables(instance: Instance, plan: Plan, cost: Cost) -> list[RenderableType]:
    """The bill of everything, or of each phase at its prices with what foresight is worth."""
    growth, worst = plan.couplings.growth, instance.worst_prices
    if not growth:
        title = f"{BILL}, at the worst prices" if worst else BILL
        table = bill_table(title, cost.items, cost.capex_usd, cost.power_w, instance)
        return [table, tco_sentence(instance, cost)]
    energy, work = (
        math.fsum(getattr(phase, name) for phase in growth) for name in ("energy_usd", "work_usd")
    )
    works = f"{words.money(work)} of labour and support, " if work else ""
    return pieces(
        f"All phases together: {words.money(cost.capex_usd)} to buy, {works}{words.money(energy)}"
        " of electricity.",
        _foresight(plan),
        *(_phase_bill(instance, phase, "worst " if worst else "") for phase in growth),
    )


def _phase_bill(instance: Instance, phase: PhaseSpending, prices: str) -> list[RenderableType]:
    """What a phase buys, and what of that it keeps for later."""
    bought_w = sum(item.w for item in phase.bought)
    title = f"Bill of {phase.year:g}, at the {prices}prices of that phase"
    stock = ", ".join(words.times(unit.count, unit.item) for unit in phase.stored)
    kept = (
        f"Bought ahead and stored: {stock}. The watts of the bill count everything bought,"
        " although stored parts draw nothing yet."
    )
    return pieces(
        bill_table(title, phase.bought, phase.capex_usd, bought_w, instance),
        kept if stock else None,
    )


def spending_table(plan: Plan, cost: Cost) -> FigureTable:
    """What each phase pays, with labour and support where there are any."""
    growth = plan.couplings.growth
    names = {
        "purchase $": "capex_usd",
        "labour and support $": "work_usd",
        "electricity $": "energy_usd",
    }
    paid = {name: [getattr(phase, key) for phase in growth] for name, key in names.items()}
    paid = {name: usd for name, usd in paid.items() if any(usd) or name != "labour and support $"}
    sums = [cost.capex_usd, *(math.fsum(usd) for usd in [*paid.values()][1:])]
    rows = [
        (f"{phase.year:g}", *(words.exact(round(n)) for n in (*usd, phase.power_w)))
        for phase, *usd in zip(growth, *paid.values(), strict=True)
    ]
    return figures(
        "",
        ("Phase",),
        (*paid, "draws W"),
        rows,
        total=("total", *(words.exact(round(usd)) for usd in sums), ""),
        compact=True,
    )


def _foresight(plan: Plan) -> str | None:
    """What planning phase by phase would have come to."""
    myopic, value = plan.couplings.myopic, plan.objective.value
    if myopic is None:
        return None
    start = (
        f" Planned on its own, the first phase builds {words.design_text(myopic.steps[0].design)}."
        if myopic.steps
        else ""
    )
    if myopic.dead_end is not None:
        return f"Planning each phase on its own leads to a dead end: {myopic.dead_end}.{start}"
    if myopic.saving is None or myopic.value is None or value is None:
        return None
    share = myopic.saving / myopic.value if myopic.value else 0.0
    if share < -EQUAL:
        return (
            f"Planning each phase on its own costs {words.money(myopic.value)}"
            f" ({plan.objective.kind}), {words.money(-myopic.saving)} less than this plan, which is"
            f" not proven optimal.{start} {EACH_ON_ITS_OWN}"
        )
    outcome = (
        "costs the same here."
        if share <= EQUAL
        else f"costs {words.money(myopic.value)} ({plan.objective.kind}): planning all phases"
        f" together saves {words.money(myopic.saving)} ({words.percent(share)}).{start}"
    )
    return f"Planning each phase on its own {outcome} {EACH_ON_ITS_OWN}"


def phase_rows(instance: Instance) -> Iterator[tuple[str, str]]:
    """What each phase of a question trains and pays."""
    for phase, question in zip(instance.phase, phases_of(instance), strict=bool(instance.phase)):
        trained = ", ".join(
            f"{workload.name} ({words.required_bound(workload)})" for workload in question.workload
        )
        factors = phase.price.model_dump().items()
        changes = [f"{kind} x {factor:g}" for kind, factor in factors if factor != 1]
        prices = f"; prices: {', '.join(changes)}" if changes else ""
        usd = phase.retrofit_usd_per_link
        labour = f"; ${usd:,g} of labour for each uplink added to an existing switch" if usd else ""
        yield f"From {phase.year:g} on", f"{phase.gpus:,} GPUs for {trained}{prices}{labour}"


def doubt_rows(instance: Instance) -> list[tuple[str, str]]:
    """What a question asks a plan to stand."""
    robust = instance.robust
    if robust is None:
        return []
    low_share, high_share = robust.efficiency
    rows = {
        "Losses": ", ".join(
            f"any one {LOST[part]} (time bounds are then {longer:g} times as long)"
            if longer != 1
            else f"any one {LOST[part]}"
            for part, longer in instance.losses.items()
        ),
        "Prices": ", ".join(
            f"{kind} x {low:g} to {high:g}"
            for kind, (low, high) in robust.prices.intervals.items()
            if (low, high) != (1.0, 1.0)
        ),
        "Efficiency": f"x {low_share:g} to {high_share:g}"
        if robust.efficiency != (1.0, 1.0)
        else "",
        "Aim": AIMS[robust.aim == "worst-case"] if _minds_prices(instance) else "",
    }
    return [(name, text) for name, text in rows.items() if text]


def _minds_prices(instance: Instance) -> bool:
    """Whether `[robust]` asks for something of prices; on power they have no say."""
    robust = instance.robust
    return (
        robust is not None
        and (robust.prices != Prices() or robust.aim != "worst-case")
        and instance.objective.minimize != "power"
    )


def _standing(instance: Instance, plan: Plan) -> list[RenderableType]:
    """Losses and prices that the plan stands, with every way in which prices may turn out."""
    kind, outlooks = plan.objective.kind, plan.couplings.outlooks
    rows = [] if outlooks is None else [*_outlook_rows(instance, kind, outlooks)]
    for losses in plan.couplings.losses:
        part = f"{losses.part}: " if len(plan.parts) > 1 else ""
        for loss in losses.survived:
            rows += [("Loss", f"{part}{_loss_text(loss)}")]
            rows += [("", run_without(run)) for run in loss.workloads]
    scenarios = [
        (
            ", ".join(f"{kind} {by:g}" for kind, by in scenario.factors.items() if by != 1.0)
            or "as listed",
            *(words.amount(kind, v) for v in (scenario.value, scenario.best, scenario.regret)),
        )
        for scenario in (() if outlooks is None or kind == "power" else outlooks.turns)
    ]
    columns, numbers = ("price factors by kind of part",), ("this plan", "best plan", "regret")
    return pieces(
        facts("What the plan withstands", rows) if rows else None,
        figures("Cost in each price scenario", columns, numbers, scenarios) if scenarios else None,
    )


def _outlook_rows(instance: Instance, kind: str, outlooks: Outlooks) -> Iterator[tuple[str, str]]:
    low, high = outlooks.efficiency
    if (low, high) != (1.0, 1.0):
        text = f"{low:g} to {high:g} times that of the GPU's table; bounds are met at {low:g}"
        yield "Efficiency", text
    if _minds_prices(instance):
        yield "Aim", AIMS[outlooks.at_worst_prices]
        yield "Value", f"{words.amount(kind, outlooks.list_value)} at list prices"


def _loss_text(loss: Survived) -> str:
    outcome = (
        "training goes on in the remaining HB domains"
        if loss.slowdown is None
        else f"traffic of the affected HB domains takes {loss.slowdown:.3g} times as long"
    )
    within = f"within {loss.slower:g} times" if loss.slower != 1 else "within"
    kept = f"every workload stays {within} its time bound"
    return f"loss of any one {LOST[loss.part]}: {outcome}; {kept}"


def run_without(run: WorkloadPlan) -> str:
    """How a workload runs without a domain."""
    gpus = math.prod(inside for name, (inside, _) in run.placement.items() if name != "ep")
    return (
        f"{run.name}: {words.count(run.gpus)} GPUs, {gpus} in each of"
        f" {words.counted(run.gpus // gpus, 'HB domain')}, {degrees(run.mapping)}, iteration"
        f" {words.allowed(run.iteration_time_s, run.bound_s, 0.0)}"
    )
