"""What islands have together: one bill, and the limits they keep (docs/partition.md).

Prices by volume look at the quantity of the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np

from coopt.instance.numerics import REORDERED
from coopt.instance.schema import CostKind, Instance, Objective
from coopt.network.core import (
    core_links_of_module,
    core_optic,
    core_ports_of,
    core_switch,
    core_switches,
)
from coopt.network.family import Family
from coopt.network.parts import (
    counted_units,
    domain_lines,
    included_lines,
    keeps_limits,
    racks,
    total,
)
from coopt.network.products import PricedProduct, caps_of, priced_products
from coopt.plan.parts import ItemKind, line
from coopt.plan.schema import Cost, Item

Units = Counter[tuple[CostKind, str]]


def units_of(instance: Instance, family: Family, uplinks: int) -> Units:
    """How many units of each product an island takes, with both ends of its links into a core."""
    units = counted_units(family, uplinks)
    if (far := core_optic(instance)) is not None:
        units["optics", (family.core_end or far).name] += family.core_modules
        units["optics", far.name] += -(-family.core_links // core_links_of_module(instance))
    return units


def part_cost(instance: Instance, objective: Objective, family: Family, uplinks: int) -> Cost:
    """The bill of one network with its links into a core, at prices without volume and the
    electricity of its site.
    """
    units = units_of(instance, family, uplinks)
    lines = domain_lines(instance.cluster.gpu, family.hb, family.gpus, family.installed_gpus)
    for product in priced_products(instance)[:-1]:
        if product.kind != "hb":
            lines.append(
                line(
                    product.kind,
                    product.name,
                    units[product.key],
                    product.usd[0],
                    product.w,
                )
            )
    return total(objective, included_lines(instance, lines))


def island_bill(instance: Instance, islands: Iterable[tuple[Family, int]]) -> Cost:
    """What islands and their core cost: a line for every product and bracket, spare units on lines
    of their own.
    """
    units, ports, active_gpus, idle_gpus = Units(), 0, 0, 0
    for family, uplinks in islands:
        units.update(units_of(instance, family, uplinks))
        ports += core_ports_of(instance, family.core_links)
        active_gpus += family.gpus
        idle_gpus += family.installed_gpus - family.gpus
    core = core_switch(instance)
    if core is not None:
        units["switch", core.name] += core_switches(instance, ports)
    *products, gpu = priced_products(instance)
    pools: list[tuple[CostKind, int]] = [("gpu", active_gpus), ("hb", idle_gpus)]
    items = _lines(gpu, [pool for pool in pools if pool[0] in instance.objective.include])
    for product in products:
        if product.kind in instance.objective.include:
            items += _lines(product, [(product.kind, units[product.key])])
    return total(instance.objective, tuple(items))


def _lines(product: PricedProduct, pools: list[tuple[CostKind, int]]) -> list[Item]:
    """The purchases of a product laid out over the kinds that it is billed with; spare units draw
    no power.

    GPUs that are billed with HB domains are idle.
    """
    # The last demand has no end: it takes the spare units of a purchase.
    demands = [*pools, (pools[0][0] if pools else product.kind, 0)]
    items = []
    for units, usd in product.purchases(sum(count for _, count in pools)):
        units_left = units
        while units_left:
            while not demands[0][1] and len(demands) > 1:
                demands = demands[1:]
            kind, units_needed = demands[0]
            spare, idle = len(demands) == 1, kind != product.kind
            count = units_left if spare else min(units_left, units_needed)
            items.append(
                line(
                    kind,
                    product.name,
                    count,
                    usd,
                    0.0 if spare else product.w,
                    idle=idle,
                    spare=spare,
                )
            )
            demands = [(kind, units_needed - count), *demands[1:]]
            units_left -= count
    return items


def island_limits(instance: Instance, families: Iterable[Family], cost: Cost) -> bool:
    """Whether islands together keep the instance's limits, exactly, and sums over products to
    within their rounding.
    """
    networks, stand = list(families), Counter[tuple[ItemKind, str]]()
    for item in cost.items:
        stand[item.product] += 0 if item.spare else item.count
    units = np.array([[float(stand[product.key]) for product in priced_products(instance)]])
    if any(cap.used_exactly(units) > cap.most * (1 + REORDERED) for cap in caps_of(instance)):
        return False
    racks_of = [racks(family) for family in networks]
    known_racks = [count for count in racks_of if count is not None]
    # A sum with an unknown addend is unknown, which it may be where racks have no limit.
    total_racks = sum(known_racks) if len(known_racks) == len(racks_of) else None
    (max_gpus,) = instance.gpu_caps.values()
    return sum(family.gpus for family in networks) <= max_gpus and keeps_limits(
        instance.limits, cost, total_racks
    )
