"""What a fleet buys in each phase: the cheapest orders at the volume prices there, and whether a plan places them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from coopt.plan.couplings import Couplings, PhaseSpending
from coopt.plan.parts import Cost, Item
from coopt.verifier.checks.verdict import TOLERANCE, Ledger, agree
from coopt.verifier.couplings.fleet import (
    Fleet,
    FleetIsland,
    Place,
    Tariff,
    electricity_usd,
    standing_units,
    units_by_phase,
)
from coopt.verifier.couplings.prices import ProductKey
from coopt.verifier.couplings.purchases import RETROFIT, check_dated, check_spent
from coopt.verifier.parts.bills import BillTotal, LineKey, check_products, check_sums, is_product, key_of


def least_usd(tariffs: Sequence[Tariff], needed: Sequence[int]) -> float:
    """The least bill of a product of which `needed` units, never fewer, stand in each phase.

    Some cheapest orders buy in each phase nothing, or as many units as a threshold asks for, or what is missing for the
    need of that phase or a later one. In brackets that are given, costs are linear: between two needs that are just met
    one phase at most buys something else than a threshold. Phases after it need not buy thresholds before the second
    need, since the same units are no dearer in the earlier phase or it would buy fewer; so it buys up to that need.
    """
    least = {0: 0.0}
    for t, prices in enumerate(tariffs):
        after: dict[int, float] = {}
        for had, spent in least.items():
            orders = {0, *(begin for begin, _ in prices.steps), *(need - had for need in needed[t:] if need > had)}
            for units in orders:
                if had + units >= needed[t]:
                    value = spent + prices.usd(units)
                    after[had + units] = min(value, after.get(had + units, math.inf))
        least = after
    return min(least.values())


def fleet_total(fleet: Fleet, islands: Sequence[FleetIsland]) -> BillTotal:
    """Capex, power at the end and total cost of islands with the cheapest orders."""
    standing = standing_units(fleet, islands)
    units = units_by_phase(fleet, standing)
    labour = (fleet.labour_usd(t) * island.links_added(t) for t in fleet.phases for island in islands)
    goods = list(_least_bills(fleet, units))
    capex_usd = math.fsum((*goods, *labour))
    energy = math.fsum(electricity_usd(fleet, standing, t) for t in fleet.phases)
    work = fleet.whole_work_usd(math.fsum(goods), units)
    return BillTotal(capex_usd, fleet.watts(units[-1]), capex_usd + work + energy)


def _least_bills(fleet: Fleet, units: Sequence[Counter[ProductKey]]) -> Iterator[float]:
    for product in units[-1]:
        yield least_usd([fleet.tariff(t, product) for t in fleet.phases], [counts[product] for counts in units])


def check_orders(
    ledger: Ledger, fleet: Fleet, islands: Sequence[FleetIsland], couplings: Couplings, cost: Cost
) -> BillTotal | None:
    """Check what each phase buys, keeps, draws and spends, and the bill of all; the sums of what is bought.

    None where a plan does not have the phases of its question.
    """
    growth = couplings.growth
    years = tuple(f"{year!r}" for year in fleet.question.years if year is not None)
    claimed = tuple(f"{phase.year!r}" for phase in growth)
    if not ledger.same("phases", claimed, years, f"The instance has phases {', '.join(years)}, the plan {claimed}."):
        return None
    standing = standing_units(fleet, islands)
    units, bought = units_by_phase(fleet, standing), Counter[ProductKey]()
    orders = [*couplings.bought(cost).values()]
    for t, items in enumerate(orders):
        ledger.turn_to(fleet.title(t))
        _check_lines(ledger, fleet, t, items, bought, units, sum(island.links_added(t) for island in islands))
        bought.update(_ordered(fleet, items))
        short = tuple(product[1] for product, count in units[t].items() if bought[product] < count)
        ledger.holds(
            "in-place", not short, short, (), f"More of these stands than was bought so far: {', '.join(short)}."
        )
        if growth:
            _check_phase(ledger, fleet, t, growth[t], bought, units[t], standing)
    ledger.turn_to()
    work = fleet.work_usd([_goods_usd(items) for items in orders], units)
    for phase, usd in zip(growth, work, strict=False):
        ledger.turn_to(f"Phase {phase.year:g}")
        why = f"Labour and support cost {usd:,.2f} USD, the plan says {phase.work_usd:,.2f}."
        ledger.close("phase-work", phase.work_usd, usd, why)
    ledger.turn_to()
    return _check_whole(ledger, fleet, islands, growth, cost, standing, math.fsum(work))


def _goods_usd(items: Iterable[Item]) -> float:
    """What is paid for products, without labour on links."""
    return math.fsum(item.usd for item in items if item.kind != "labour")


def _check_whole(
    ledger: Ledger,
    fleet: Fleet,
    islands: Sequence[FleetIsland],
    growth: Sequence[PhaseSpending],
    cost: Cost,
    standing: Mapping[Place, Counter[ProductKey]],
    work_usd: float,
) -> BillTotal:
    """Check the one bill, its sums, and that nothing could be bought for less."""
    if growth:
        check_dated(ledger, growth, cost)
    check_products(ledger, cost.items)
    capex_usd, least = math.fsum(item.usd for item in cost.items), fleet_total(fleet, islands)
    why = f"All that stands can be bought for {least.capex_usd:,.2f} USD, the plan spends {capex_usd:,.2f}."
    ledger.close("cheapest-orders", capex_usd, least.capex_usd, why)
    energy = math.fsum(electricity_usd(fleet, standing, t) for t in fleet.phases)
    sums = BillTotal(capex_usd, least.power_w, capex_usd + work_usd + energy)
    check_sums(ledger, sums, cost)
    return sums


def _ordered(fleet: Fleet, items: Sequence[Item]) -> Counter[ProductKey]:
    """Units of each product that lines buy."""
    found: Counter[ProductKey] = Counter()
    for item in items:
        kind, name = item.product
        if kind != "wan" and kind != "labour" and kind != "rack" and (kind, name) in fleet.prices:
            found[kind, name] += item.count
    return found


Row = tuple[LineKey, float, float, int]


def _check_lines(
    ledger: Ledger,
    fleet: Fleet,
    t: int,
    items: Sequence[Item],
    before: Counter[ProductKey],
    units: Sequence[Counter[ProductKey]],
    links: int,
) -> None:
    """Check that each line has a price of its phase and quantity, and that labour is paid for links added."""
    given = _added((key_of(item), item.unit_usd, item.unit_w, item.count) for item in items)
    wanted = [
        row
        for product, count in _ordered(fleet, items).items()
        for row in _rows(fleet, t, product, count, useful=max(units[-1][product] - before[product], 0))
    ]
    rate = fleet.labour_usd(t)
    wanted = _added([*wanted, *([(LineKey("labour", RETROFIT), rate, 0.0, links)] if links and rate else [])])
    fine = len(given) == len(wanted) and all(map(_alike, given, wanted)) and all(map(is_product, items))
    why = "The lines are not those that so many units have at their prices, with labour for the links that are added."
    name = "bill-lines" if fleet.year(t) is None else "bought-lines"
    ledger.holds(name, fine, _texts(given), _texts(wanted), why, TOLERANCE)


def _added(rows: Iterable[Row]) -> list[Row]:
    """Rows in order, those of one price added up."""
    counts: Counter[tuple[LineKey, float, float]] = Counter()
    for key, usd, w, count in rows:
        counts[key, usd, w] += count
    together = ((*priced, count) for priced, count in counts.items())
    return sorted(together, key=lambda row: (row[0].kind, row[0].text, *row[1:]))


def _rows(fleet: Fleet, t: int, product: ProductKey, count: int, *, useful: int) -> Iterator[Row]:
    """The lines of an order; units that will never stand are spare and draw nothing."""
    key, w = LineKey(*product), fleet.prices[product].w
    if key.kind == "gpu" and "gpu" not in fleet.question.objective.include:
        key = key._replace(kind="hb", idle=True)
    left = useful
    for units, usd in fleet.tariff(t, product).lines(count):
        used = min(left, units)
        left -= used
        if used:
            yield key, usd, w, used
        if units > used:
            yield key._replace(spare=True), usd, 0.0, units - used


def _alike(a: Row, b: Row) -> bool:
    return (a[0], a[3]) == (b[0], b[3]) and agree(a[1], b[1]) and agree(a[2], b[2])


def _texts(rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple(f"{key.kind}: {count} x {key.text} at {usd:g} USD, {w:g} W" for key, usd, w, count in rows)


def _check_phase(
    ledger: Ledger,
    fleet: Fleet,
    t: int,
    phase: PhaseSpending,
    bought: Counter[ProductKey],
    placed: Counter[ProductKey],
    standing: Mapping[Place, Counter[ProductKey]],
) -> None:
    """Check what is in store, what is spent and drawn, and what electricity costs until the next phase."""
    left: dict[tuple[str, str], int] = {
        product: count - placed[product] for product, count in bought.items() if count > placed[product]
    }
    stored: dict[tuple[str, str], int] = {(one.kind, one.item): one.count for one in phase.stored}
    fine = stored == left and len(stored) == len(phase.stored)
    why = "What is in store is not what was bought and does not stand."
    ledger.holds("stored", fine, _counts_text(stored), _counts_text(left), why)
    check_spent(ledger, phase, fleet.watts(placed), electricity_usd(fleet, standing, t), fleet.years(t))


def _counts_text(counts: Mapping[tuple[str, str], int]) -> tuple[str, ...]:
    return tuple(f"{kind}: {count} x {item}" for (kind, item), count in sorted(counts.items()))
