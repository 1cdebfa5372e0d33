"""What one network takes and costs with its links into a core (docs/partition.md)."""

from __future__ import annotations

from coopt.instance.schema import Instance, Objective
from coopt.network.family import Family
from coopt.network.optics import (
    core_links_of_module,
    core_optic,
)
from coopt.network.parts import (
    Units,
    counted_units,
    domain_lines,
    included_lines,
    priced_products,
    total,
)
from coopt.plan.parts import Cost, line


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
