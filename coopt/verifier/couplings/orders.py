"""What a fleet buys in each phase: the cheapest orders at the volume prices there, and whether a
plan places them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from coopt.instance.texts import both, exact
from coopt.plan.couplings import Couplings, PhaseSpending
from coopt.plan.parts import Cost, Item
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.couplings.fleet import (
    Fleet,
    FleetIsland,
    Place,
    Tariff,
    electricity_usd,
    standing_units,
    units_by_phase,
)
from coopt.verifier.couplings.prices import ProductKey, gpu_of
from coopt.verifier.parts.bills import BillTotal, LineKey, key_of
from coopt.verifier.parts.part_checks import Row, check_lines, check_products, check_sums

RETROFIT = "retrofit links"


@lru_cache(maxsize=1 << 14)
def least_usd(tariffs: tuple[Tariff, ...], needs: tuple[int, ...]) -> float:
    """The least bill of a product of which `needs` units, never fewer, stand in each phase.

    Some cheapest orders buy in each phase nothing, or as many units as a threshold asks for, or
    what is missing for the need of that phase or a later one. In brackets that are given, costs are
    linear: between two needs that are just met one phase at most buys something else than a
    threshold. Phases after it need not buy thresholds before the second need, since the same units
    are no dearer in the earlier phase or it would buy fewer; so it buys up to that need.
    """
    usd_by_units = {0: 0.0}
    for t, prices in enumerate(tariffs):
        usd_after: dict[int, float] = {}
        for units_so_far, usd_so_far in usd_by_units.items():
            # Nothing, a threshold, or what is missing for a need to come: see above why no other
            # order is cheaper.
            thresholds = (begin for begin, _ in prices.steps)
            lacking = (need - units_so_far for need in needs[t:] if need > units_so_far)
            for units in {0, *thresholds, *lacking}:
                if units_so_far + units >= needs[t]:
                    value = usd_so_far + prices.usd(units)
                    usd_after[units_so_far + units] = min(
                        value, usd_after.get(units_so_far + units, math.inf)
                    )
        usd_by_units = usd_after
    return min(usd_by_units.values())


def fleet_total(
    fleet: Fleet,
    islands: Sequence[FleetIsland],
    units_by_place: Mapping[Place, Counter[ProductKey]] | None = None,
) -> BillTotal:
    """Capex, power at the end and total cost of islands with the cheapest orders, counted already
    where `units_by_place` says what stands.
    """
    units_by_place = units_by_place or standing_units(fleet, islands)
    units = units_by_phase(fleet, units_by_place)
    labour = (
        fleet.labour_usd(t) * island.links_added(t) for t in fleet.phases for island in islands
    )
    goods = [
        least_usd(
            tuple(fleet.tariff(t, product) for t in fleet.phases),
            tuple(counts[product] for counts in units),
        )
        for product in units[-1]
    ]
    capex_usd = math.fsum((*goods, *labour))
    energy = math.fsum(electricity_usd(fleet, units_by_place, t) for t in fleet.phases)
    work = fleet.whole_work_usd(math.fsum(goods), units)
    return BillTotal(capex_usd, fleet.watts(units[-1]), capex_usd + work + energy)


def check_orders(
    ledger: Ledger, fleet: Fleet, islands: Sequence[FleetIsland], couplings: Couplings, cost: Cost
) -> BillTotal:
    """Check what each phase buys, keeps, draws and spends, and the bill of all; the sums of what is
    bought.

    Raises
    ------
    UnsoundError
        Where a plan does not have the phases of its question.
    """
    growth = couplings.growth
    years = tuple(f"{year!r}" for year in fleet.question.years if year is not None)
    claimed_years = tuple(f"{phase.year!r}" for phase in growth)
    if years or growth:
        ledger.require(
            "phases",
            claimed_years == years,
            claimed_years,
            years,
            f"The instance has the phases {_years_text(fleet.question.years)}, but the plan has"
            f" {_years_text(phase.year for phase in growth)}.",
        )
    units_by_place = standing_units(fleet, islands)
    units, purchases = units_by_phase(fleet, units_by_place), Counter[ProductKey]()
    orders = [*couplings.bought(cost).values()]
    for t, items in enumerate(orders):
        ledger.turn_to(fleet.title(t))
        _check_lines(
            ledger,
            fleet,
            t,
            items,
            purchases,
            units,
            sum(island.links_added(t) for island in islands),
            # which units of a phase stand idle in a later one is not told
            Counter() if growth else _idle_gpus(fleet, islands),
        )
        # Units of an earlier phase serve on, so that only the sum so far has to reach what stands.
        purchases.update(_orders_of(fleet, items))
        lacking = tuple(
            product[1] for product, count in units[t].items() if purchases[product] < count
        )
        ledger.holds(
            "in-place",
            not lacking,
            lacking,
            (),
            f"The plan uses more units of {both(lacking)} than it has bought.",
        )
        if growth:
            _check_phase(ledger, fleet, t, growth[t], purchases, units[t], units_by_place)
    ledger.turn_to()
    # labour on links is no product
    goods_usd = [math.fsum(item.usd for item in items if item.kind != "labour") for items in orders]
    work = fleet.work_usd(goods_usd, units)
    for phase, usd in zip(growth, work, strict=False):
        ledger.turn_to(f"Phase {phase.year:g}")
        ledger.close(
            "phase-work",
            phase.work_usd,
            usd,
            f"Labour and support cost ${exact(usd)}, but the plan says ${exact(phase.work_usd)}.",
        )
    ledger.turn_to()
    return _check_totals(ledger, fleet, islands, growth, cost, units_by_place, math.fsum(work))


def _years_text(years: Iterable[float | None]) -> str:
    return both(f"{year:.10g}" for year in years if year is not None) or "none"


def _idle_gpus(fleet: Fleet, islands: Sequence[FleetIsland]) -> Counter[str]:
    """GPUs of the HB domains of all islands that do not train, where these are billed, by kind."""
    include, idle = fleet.question.objective.include, Counter[str]()
    standing = (state for island in islands for state in island.phases if state is not None)
    for state in standing if "hb" in include else ():
        idle[gpu_of(fleet.question, state.counts)] += state.counts.idle_gpus
    return idle


def _check_totals(
    ledger: Ledger,
    fleet: Fleet,
    islands: Sequence[FleetIsland],
    growth: Sequence[PhaseSpending],
    cost: Cost,
    units_by_place: Mapping[Place, Counter[ProductKey]],
    work_usd: float,
) -> BillTotal:
    """Check the one bill, its sums, and that nothing could be bought for less."""
    if growth:
        _check_dated(ledger, growth, cost)
    check_products(ledger, cost.items)
    capex_usd, least_total = math.fsum(item.usd for item in cost.items), fleet_total(fleet, islands)
    ledger.close(
        "cheapest-orders",
        capex_usd,
        least_total.capex_usd,
        f"What is in use and billed costs ${exact(least_total.capex_usd)} at the least, but the"
        f" lines of the bill add up to ${exact(capex_usd)}.",
    )
    sums = least_total
    if growth:
        energy = math.fsum(electricity_usd(fleet, units_by_place, t) for t in fleet.phases)
        sums = BillTotal(capex_usd, least_total.power_w, capex_usd + work_usd + energy)
    check_sums(ledger, sums, cost)
    return sums


def _orders_of(fleet: Fleet, items: Sequence[Item]) -> Counter[ProductKey]:
    """Units of each product that lines buy."""
    orders: Counter[ProductKey] = Counter()
    for item in items:
        kind, name = fleet.product_of(item)
        if kind == "wan" or kind == "labour" or kind == "rack" or kind == "panel":
            continue
        if (kind, name) in fleet.prices:
            orders[kind, name] += item.count
    return orders


def _check_lines(
    ledger: Ledger,
    fleet: Fleet,
    t: int,
    items: Sequence[Item],
    purchases_before: Counter[ProductKey],
    units: Sequence[Counter[ProductKey]],
    links: int,
    idle_gpus: Mapping[str, int],
) -> None:
    """Check that each line has a price of its phase and quantity, and that labour is paid for links
    added.
    """
    material_rows = [
        row
        for product, count in _orders_of(fleet, items).items()
        for row in _rows(
            fleet,
            t,
            product,
            count,
            useful=max(units[-1][product] - purchases_before[product], 0),
            idle=idle_gpus.get(product[1], 0) if product[0] == "gpu" else 0,
        )
    ]
    rate = fleet.labour_usd(t)
    labour_rows = [(LineKey("labour", RETROFIT), rate, 0.0, links)] if links and rate else []
    name = "bill-lines" if fleet.year(t) is None else "bought-lines"
    check_lines(ledger, name, items, [*material_rows, *labour_rows])


def _rows(
    fleet: Fleet, t: int, product: ProductKey, count: int, *, useful: int, idle: int
) -> Iterator[Row]:
    """The lines of an order, GPUs that stand idle apart; units that will never stand are spare and
    draw nothing.
    """
    key, w = fleet.line_of(product), fleet.prices[product].w
    idle_key = key._replace(kind="hb", idle=True)
    if key.kind != "gpu":
        idle = 0
    elif "gpu" not in fleet.question.objective.include:
        key, idle = idle_key, 0
    # Units that stand draw power and come first; spare ones, bought to reach a price, draw none.
    left = {key: useful - idle, idle_key: idle} if idle else {key: useful}
    for units, usd in fleet.tariff(t, product).lines(count):
        for own, units_left in left.items():
            used = min(units_left, units)
            left[own] -= used
            units -= used
            if used:
                yield own, usd, w, used
        if units:
            yield key._replace(spare=True), usd, 0.0, units


def _check_phase(
    ledger: Ledger,
    fleet: Fleet,
    t: int,
    phase: PhaseSpending,
    purchases: Counter[ProductKey],
    units: Counter[ProductKey],
    units_by_place: Mapping[Place, Counter[ProductKey]],
) -> None:
    """Check what is in store, what is spent and drawn, and what electricity costs until the next
    phase.
    """
    surplus: dict[tuple[str, str], int] = {
        product: count - units[product]
        for product, count in purchases.items()
        if count > units[product]
    }
    claimed_store: dict[tuple[str, str], int] = {
        (claim.kind, claim.item): claim.count for claim in phase.stored
    }
    fine = claimed_store == surplus and len(claimed_store) == len(phase.stored)
    ledger.holds(
        "stored",
        fine,
        _counts_text(claimed_store),
        _counts_text(surplus),
        f"Units that are bought and not in use: {', '.join(_counts_text(surplus)) or 'none'}. Units"
        f" that the plan has in store: {', '.join(_counts_text(claimed_store)) or 'none'}.",
    )
    spent_usd, years = math.fsum(item.usd for item in phase.bought), fleet.years(t)
    power_w, energy_usd = fleet.watts(units), electricity_usd(fleet, units_by_place, t)
    for name, claim, recomputed, fault in (
        (
            "phase-capex",
            phase.capex_usd,
            spent_usd,
            f"The lines of this phase add up to ${exact(spent_usd)}, but the plan says"
            f" ${exact(phase.capex_usd)}.",
        ),
        (
            "phase-power",
            phase.power_w,
            power_w,
            f"What is in use and billed draws {exact(power_w)} W, but the plan says"
            f" {exact(phase.power_w)} W.",
        ),
        (
            "phase-energy",
            phase.energy_usd,
            energy_usd,
            f"Electricity costs ${exact(energy_usd)}, but the plan says"
            f" ${exact(phase.energy_usd)}.",
        ),
        (
            "phase-years",
            phase.years,
            years,
            f"In years, the phase lasts {years:.9g}, but the plan says {phase.years:.9g}.",
        ),
    ):
        ledger.close(name, claim, recomputed, fault)


def _counts_text(counts: Mapping[tuple[str, str], int]) -> tuple[str, ...]:
    return tuple(f"{kind}: {count} x {item}" for (kind, item), count in sorted(counts.items()))


def _check_dated(ledger: Ledger, growth: Sequence[PhaseSpending], cost: Cost) -> None:
    """Check that a bill is what phases buy."""
    dated = [
        (key_of(item)._replace(year=phase.year), item) for phase in growth for item in phase.bought
    ]
    lines = tuple(
        item.model_copy(update={"year": key.year, "item": key.text}) for key, item in dated
    )
    ledger.holds(
        "phased-bill",
        cost.items == lines,
        len(cost.items),
        len(lines),
        "The bill does not list what each phase buys, with its year.",
    )
