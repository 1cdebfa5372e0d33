"""Check the one bill of all islands, with volume prices looked up in the brackets of the instance.

Limits hold for all parts together: GPUs, budget, power, racks, and how many products of a kind are
in use.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from coopt.instance.schema import CostKind, Instance
from coopt.instance.workload import Workload
from coopt.plan.schema import Cost
from coopt.verifier.checks.verdict import TOLERANCE, Ledger
from coopt.verifier.couplings.core import Joint
from coopt.verifier.parts.bills import (
    BillTotal,
    LineKey,
    SwitchLevel,
    UnitPrice,
    key_of,
    priced_total,
)
from coopt.verifier.parts.layouts import ceil_ratio
from coopt.verifier.parts.part_checks import check_products, check_sums
from coopt.verifier.parts.space import DesignFamily, OpticPair, core_switch

ProductKey = tuple[CostKind, str]


@dataclass(frozen=True)
class LimitedSum:
    """A limit on what all units that stand take together, by the names of its check and of its
    price in a proof.

    Units are counted in what goes `scale` times into the unit of the limit.
    """

    check: str
    name: str
    words: str
    unit: str
    scale: int
    limit_of: Callable[[Instance], float | None]
    of_unit: Callable[[ProductKey, UnitPrice], float]

    def of(self, prices: Mapping[ProductKey, UnitPrice], units: Mapping[ProductKey, int]) -> float:
        """What units of products take."""
        return math.fsum(
            count * self.of_unit(product, prices[product]) for product, count in units.items()
        )


CAPS = (
    LimitedSum(
        "limit-power",
        "power_w",
        "power",
        "MW",
        1_000_000,
        lambda instance: instance.limits.power_mw,
        lambda _, unit: unit.w,
    ),
)
"""Every limit on a sum over products."""


def caps_of(instance: Instance) -> list[tuple[LimitedSum, float]]:
    """The limits on sums over products that are set, and how much they allow."""
    return [(cap, limit) for cap in CAPS if (limit := cap.limit_of(instance)) is not None]


class UnitCounts(NamedTuple):
    """What an island takes: units of each product, GPUs that train and that stand idle, ports of a
    core.
    """

    products: Counter[ProductKey]
    active_gpus: int
    idle_gpus: int
    core_ports: int = 0


def counts_of_island(
    family: DesignFamily,
    levels: Sequence[SwitchLevel],
    optics: Sequence[OpticPair],
    joint: Joint | None,
) -> UnitCounts:
    """Count the products of an island, whether they have a price or not."""
    installed = family.bought * family.hb.size
    products: Counter[ProductKey] = Counter({("hb", family.hb.name): installed})
    if family.gear is not None:
        products["nic", family.gear.nic.name] = family.bought * family.rails
        for tier, (level, ends) in enumerate(zip(levels, optics, strict=True), start=1):
            products["switch", family.gear.at(tier).name] += level.switches
            for optic, count in zip(ends, level.modules(family.gear.carried(ends)), strict=True):
                products["optics", optic.name] += count
    if joint is None:
        return UnitCounts(products, family.gpus, installed - family.gpus)
    if joint.nic is not None:
        products["nic", joint.nic.name] += joint.nics
    for optic, count in joint.modules:
        products["optics", optic.name] += count
    return UnitCounts(products, family.gpus, installed - family.gpus, joint.core_ports)


def counts_together(instance: Instance, islands: Iterable[UnitCounts]) -> UnitCounts:
    """What islands take together, with the switches of their core."""
    products: Counter[ProductKey] = Counter()
    active_gpus = idle_gpus = ports = 0
    for counts in islands:
        products.update(counts.products)
        active_gpus += counts.active_gpus
        idle_gpus += counts.idle_gpus
        ports += counts.core_ports
    # Islands share the switches of the core, so that only their sum is rounded up.
    if (core := core_switch(instance)) is not None:
        products["switch", core.name] += ceil_ratio(ports, core.radix)
    return UnitCounts(products, active_gpus, idle_gpus, ports)


def list_prices(instance: Instance) -> dict[ProductKey, UnitPrice]:
    """Every product of an instance; GPUs under the kind gpu."""
    network, gpu = instance.network, instance.cluster.gpu
    prices: dict[ProductKey, UnitPrice] = {
        ("hb", hb.name): UnitPrice(hb.usd_per_gpu, hb.w_per_gpu) for hb in network.hb_domains
    }
    prices |= {("nic", nic.name): UnitPrice(nic.usd, nic.w) for nic in network.nics}
    prices |= {
        ("switch", switch.name): UnitPrice(switch.usd, switch.w) for switch in network.switches
    }
    prices |= {("optics", optic.name): UnitPrice(optic.usd, optic.w) for optic in network.optics}
    return {**prices, ("gpu", gpu.name): UnitPrice(gpu.usd, gpu.w)}


def cheapest_purchase(
    instance: Instance, product: ProductKey, units: int
) -> list[tuple[int, float]]:
    """The cheapest purchase of so many units or more, as (units, USD of each).

    With a price for all units every threshold above is tried: buying more than needed may be
    cheaper.
    """
    usd = list_prices(instance)[product].usd
    discount = next(
        (
            discount
            for discount in instance.sharing.discount
            if (discount.kind, discount.item) == product
        ),
        None,
    )
    if discount is None or not units:
        return [(units, usd)] if units else []
    steps = [(0, usd), *zip(discount.begins, discount.prices(usd), strict=True)]
    # Units of each bracket have its price, so that more never costs less.
    if discount.applies == "incremental":
        ends = [*(begin for begin, _ in steps[1:]), math.inf]
        parts = [
            (min(units, end) - begin, unit_usd)
            for (begin, unit_usd), end in zip(steps, ends, strict=True)
        ]
        return [(int(count), unit_usd) for count, unit_usd in parts if count > 0]
    # One price for all units: reaching the next threshold may cost less than what is needed.
    offers = [(max(units, begin), unit_usd) for begin, unit_usd in steps]
    return [min(offers, key=lambda offer: (offer[0] * offer[1], offer[0]))]


def counted_units(instance: Instance, units: UnitCounts) -> dict[ProductKey, int]:
    """The products that `include` counts, idle GPUs among GPUs."""
    include, gpu = instance.objective.include, instance.cluster.gpu
    counts = {product: count for product, count in units.products.items() if product[0] in include}
    return {
        **counts,
        ("gpu", gpu.name): (
            units.active_gpus * ("gpu" in include) + units.idle_gpus * ("hb" in include)
        ),
    }


def volume_bill(instance: Instance, units: Mapping[ProductKey, int]) -> BillTotal:
    """Capex, power and tco of all that is counted of what islands take together."""
    prices = list_prices(instance)
    capex = math.fsum(
        count * usd
        for product, need in units.items()
        for count, usd in cheapest_purchase(instance, product, need)
    )
    power = math.fsum(count * prices[product].w for product, count in units.items())
    return priced_total(capex, power, instance.objective)


def check_volume_bill(
    ledger: Ledger, instance: Instance, islands: Sequence[UnitCounts], cost: Cost
) -> BillTotal:
    """Check lines, products and sums of the one bill of all islands; the recomputed sums."""
    counts = counts_together(instance, islands)
    check_products(ledger, cost.items)
    _check_lines(ledger, expected=_expected_lines(instance, counts), claimed=_claimed_lines(cost))
    sums = volume_bill(instance, counted_units(instance, counts))
    check_sums(ledger, sums, cost)
    return sums


PricedLine = tuple[LineKey, float, float]


def _claimed_lines(cost: Cost) -> Counter[PricedLine]:
    """The lines of a plan: units by kind, item, USD and W; lines of one price add up."""
    rows: Counter[PricedLine] = Counter()
    for item in cost.items:
        rows[key_of(item), item.unit_usd, item.unit_w] += item.count
    return rows


def _expected_lines(instance: Instance, units: UnitCounts) -> Counter[PricedLine]:
    """The lines that islands need: what is in use first, units beyond it as spares that draw
    nothing.
    """
    include, prices, name = (
        instance.objective.include,
        list_prices(instance),
        instance.cluster.gpu.name,
    )
    uses: dict[ProductKey, list[tuple[LineKey, int]]] = {
        product: [(LineKey(*product), count)]
        for product, count in units.products.items()
        if product[0] in include
    }
    pools = [
        (LineKey("gpu", name), units.active_gpus),
        (LineKey("hb", name, idle=True), units.idle_gpus),
    ]
    uses["gpu", name] = [pool for pool in pools if pool[0].kind in include]
    rows: Counter[PricedLine] = Counter()
    for product, shares in uses.items():
        # Uses take units in their order from the first bracket on; what is left at the end is
        # spare.
        uses_left = [key for key, count in shares if count]
        counts = [count for _, count in shares if count]
        for count, usd in cheapest_purchase(instance, product, sum(counts)):
            units_left = count
            while units_left and counts:
                line_units = min(units_left, counts[0])
                rows[uses_left[0], usd, prices[product].w] += line_units
                units_left, counts[0] = units_left - line_units, counts[0] - line_units
                if not counts[0]:
                    uses_left, counts = uses_left[1:], counts[1:]
            if units_left:
                rows[LineKey(shares[0][0].kind, product[1], spare=True), usd, 0.0] += units_left
    return rows


def _check_lines(
    ledger: Ledger, *, expected: Counter[PricedLine], claimed: Counter[PricedLine]
) -> None:
    differing = sorted(
        {
            f"{row[0].kind} {row[0].text}"
            for row in {*expected, *claimed}
            if expected[row] != claimed[row]
        }
    )
    fault = f"The bill differs from what the islands need in: {', '.join(differing)}."
    ledger.holds("bill-lines", not differing, _texts(claimed), _texts(expected), fault)


def _texts(rows: Counter[PricedLine]) -> tuple[str, ...]:
    return tuple(
        f"{key.kind}: {count} x {key.text} at {usd:g} USD, {w:g} W"
        for (key, usd, w), count in rows.items()
    )


def check_gpus(ledger: Ledger, gpus: int, gpus_there: int) -> None:
    """Check that all parts together train on no more GPUs than there are."""
    fault = f"The islands train on {gpus} GPUs, there are {gpus_there}."
    ledger.holds("limit-gpus", gpus <= gpus_there, gpus_there, gpus, fault)


def check_products_in_use(
    ledger: Ledger, instance: Instance, units: Mapping[tuple[CostKind, str], int]
) -> None:
    """Check that no more products of a kind are in use than allowed."""
    for kind, limit, products in product_counts(instance, units):
        use_text = f"{len(products)} products of kind {kind}"
        fault = f"The islands use {use_text}, at most {limit} are allowed: {', '.join(products)}."
        ledger.holds("most-products", len(products) <= limit, limit, products, fault)


def product_counts(
    instance: Instance, units: Mapping[tuple[CostKind, str], int]
) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    """Kinds with a limit: the limit, and which products of the kind are in use."""
    for kind, limit in instance.sharing.most_products.given.items():
        products_in_use = [
            product for product, count in units.items() if product[0] == kind and count
        ]
        yield kind, limit, tuple(sorted(item for _, item in products_in_use))


def islands_fit(instance: Instance, units: UnitCounts, racks: int) -> bool:
    """Whether islands take no more GPUs and racks, and no more products of a kind, than they may
    together.
    """
    most_racks = math.inf if instance.limits.racks is None else instance.limits.racks
    (gpus_there,) = instance.gpu_caps.values()
    if units.active_gpus > gpus_there or racks > most_racks:
        return False
    return all(
        len(products) <= limit for _, limit, products in product_counts(instance, units.products)
    )


def check_limits(
    ledger: Ledger,
    instance: Instance,
    sums: BillTotal,
    racks: int | None,
    units: UnitCounts | None = None,
) -> None:
    """Check purchase, racks and sums over products against the limits that are set; of one network
    that is power.
    """
    limits, power_w = instance.limits, sums.power_w
    rows = [
        ("limit-capex", sums.capex_usd, limits.capex_usd, "USD"),
        ("limit-racks", racks, limits.racks, "racks"),
    ]
    # One network knows its power from its own bill; islands have it as a sum over their products.
    if units is None:
        rows.insert(1, ("limit-power", power_w / 1e6, limits.power_mw, "MW"))
    else:
        priced_units, prices = counted_units(instance, units), list_prices(instance)
        rows[1:1] = [
            (cap.check, cap.of(prices, priced_units) / cap.scale, limit_of_cap, cap.unit)
            for cap, limit_of_cap in caps_of(instance)
        ]
    for name, value, limit, unit in rows:
        check_limit(ledger, name, limit, value, unit)


def check_limit(
    ledger: Ledger, name: str, limit: float | None, value: float | None, unit: str
) -> None:
    """Check that no more is taken than a limit that is set, which needs that one knows how much
    is.
    """
    if limit is not None:
        holds = value is not None and value <= limit * (1 + TOLERANCE)
        value_text = "something unknown" if value is None else f"{value:,.10g}"
        fault = f"The limit is {limit:,.10g} {unit}, what is built takes {value_text}."
        ledger.holds(name, holds, limit, value, fault, TOLERANCE)


def question_of_island(instance: Instance, workloads: tuple[Workload, ...], gpus: int) -> Instance:
    """The instance of an island's workloads on a cluster of its own of that many GPUs; limits stay
    those of all.
    """
    cluster = instance.cluster.model_copy(update={"gpus": (gpus,)})
    return instance.model_copy(update={"cluster": cluster, "workload": workloads})
