"""What one network takes and costs with its links into a core (docs/partition.md)."""

from __future__ import annotations

from collections import Counter

from coopt.instance.hardware import Optic
from coopt.instance.schema import Instance, Objective
from coopt.network.family import Family
from coopt.network.optics import (
    core_links_of_module,
    core_optic,
)
from coopt.network.parts import (
    LineItem,
    Units,
    counted_units,
    domain_items,
    included_lines,
    priced_products,
    total,
    with_standing,
)
from coopt.plan.parts import Cost


def units_of(instance: Instance, family: Family, uplinks: int) -> Units:
    """How many units of each product an island takes, with both ends of its links into a core."""
    units = counted_units(family, uplinks)
    for optic, count in modules_into_core(instance, family):
        units["optics", optic.name] += count
    return units


def modules_into_core(instance: Instance, family: Family) -> tuple[tuple[Optic, int], ...]:
    """The modules at the lower and at the upper ends of a network's links into a core; nothing
    without one.
    """
    above = core_optic(instance)
    if above is None:
        return ()
    modules_above = -(-family.core_links // core_links_of_module(instance))
    return (family.core_end or above, family.core_modules), (above, modules_above)


def part_cost(
    instance: Instance,
    objective: Objective,
    family: Family,
    uplinks: int,
    stock: Counter[tuple[str, str]],
) -> Cost:
    """The bill of one network with its links into a core, at prices without volume and the
    electricity of its site; what it has of the units that stand is taken out of `stock`.
    """
    units = units_of(instance, family, uplinks)
    items = list(domain_items(instance.cluster.gpu, family.hb, family.gpus, family.installed_gpus))
    for product in priced_products(instance):
        if product.kind not in ("hb", "gpu"):
            count, usd = units[product.key], max(product.usd)
            items.append(LineItem(product.kind, product.name, count, usd, product.w))
    lines = (item.line for item in with_standing(items, stock))
    return total(objective, included_lines(instance, lines))
