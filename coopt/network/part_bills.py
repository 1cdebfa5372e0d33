"""What one network takes and costs with its links into a core (docs/partition.md)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from coopt.instance.schema import Instance, Objective
from coopt.network.cores import core_links_of_module, core_optic, core_switch
from coopt.network.family import Family, LinkEnds
from coopt.network.fibres import fibre_between
from coopt.network.laying import least_ends
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
    for item in into_core(instance, family):
        units[item.kind, item.name] += item.units
    return units


def into_core(instance: Instance, family: Family) -> Iterator[LineItem]:
    """The modules at the lower and at the upper ends of a network's links into a core, and the
    fibre between these; nothing without one. The least of any where lengths are still to choose.
    """
    above, switch = core_optic(instance), core_switch(instance)
    if above is None or switch is None:
        return
    network, links = instance.network, family.core_links
    ends = LinkEnds(family.core_end or above, above)
    if family.core_choices:
        (ends,) = least_ends(instance, (family.core_choices,))
    modules = family.core_modules, -(-links // core_links_of_module(instance))
    runs = [(ends, *modules)]
    runs = [(run.ends, run.below, run.above) for run in family.core_cables] or runs
    for (below, above), *counts in runs:
        for optic, count in zip((below, above), counts, strict=True):
            yield LineItem("optics", optic.name, count, optic.usd, optic.w)
    fibre = [one for run in family.core_cables for one in run.fibre]
    if network.cables == "tier":
        length_m = math.ceil(network.link_reach_m[-1])
        fibre += fibre_between(network.fibre, ends, switch.port_gbit_s, links, modules, length_m)
    for one in fibre:
        yield LineItem("fibre", one.name, one.units, one.usd, one.w)


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
