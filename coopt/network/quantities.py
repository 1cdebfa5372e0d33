"""Units of each item in a network, as affine functions of its uplinks and spines."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from coopt.instance.schema import Instance
from coopt.network.family import Family, core_group
from coopt.network.parts import bill
from coopt.plan.schema import Item

Key = tuple[str, str]  # kind and name of an item


@dataclass(frozen=True, kw_only=True)
class Quantities:
    """fixed + uplink·u + spine·s units of every item on the bill, with s the spines of one plane."""

    units: dict[Key, Item]
    fixed: Counter[Key]
    uplink: Counter[Key]
    spine: Counter[Key]


def open_bill(instance: Instance, family: Family) -> Quantities:
    """The bill of a family with its uplinks open; counts follow `coopt.network.family.levels`."""
    lines = bill(instance, family, family.uplink_choices[0])
    units: dict[Key, Item] = {(item.kind, item.item): item for item in lines}
    switch = ("switch", family.switch.name)
    uplink, spine = Counter[Key](), Counter[Key]()
    if family.tiers > 1:
        uplink["optics", family.optics[1].name] += 2 * family.planes * family.leaves
    if family.tiers == 2:
        spine[switch] += family.planes
    if family.pods is not None:
        uplink[switch] += family.planes * (family.pods.count + core_group(family))
        uplink["optics", family.optics[2].name] += 2 * family.planes * family.pods.count * family.pods.w
    first = family.uplink_choices[0]
    spines = family.spines(first)
    fixed = Counter({key: item.count - uplink[key] * first - spine[key] * spines for key, item in units.items()})
    return Quantities(units=units, fixed=fixed, uplink=uplink, spine=spine)
