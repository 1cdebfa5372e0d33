"""A family's price as an affine function of its uplinks and spines, for the formulation."""

from __future__ import annotations

from dataclasses import dataclass

from coopt.instance.schema import Instance, ObjectiveKind
from coopt.network.family import Family, core_group
from coopt.network.parts import cost_of, racks
from coopt.network.prices import weigh


@dataclass(frozen=True, kw_only=True)
class Affine:
    """fixed + uplink·u + spine·s, with s the spines of one plane."""

    fixed: float
    uplink: float
    spine: float

    def at(self, family: Family, uplinks: int) -> float:
        """The value at u uplinks and the spines they need."""
        return self.fixed + self.uplink * uplinks + self.spine * family.spines(uplinks)


def price(instance: Instance, family: Family, kind: ObjectiveKind) -> Affine:
    """A family's capex (USD), power (W) or tco (USD) as an affine function; counts follow `family.levels`."""
    objective = instance.objective

    def unit(usd: float, w: float) -> float:
        return weigh(objective, usd, w, kind)

    switch = unit(family.switch.usd, family.switch.w) if "switch" in objective.include else 0.0
    ends = [2 * unit(o.usd, o.w) if "optics" in objective.include else 0.0 for o in family.optics]
    uplink = 0.0
    if family.tiers > 1:
        uplink += family.planes * family.leaves * ends[1]
    if family.pods is not None:
        middle_and_core = family.pods.count + core_group(family)
        uplink += family.planes * (middle_and_core * switch + family.pods.count * family.pods.w * ends[2])
    spine = family.planes * switch if family.tiers == 2 else 0.0
    first = family.uplink_choices[0]
    whole = cost_of(instance, family, first).of(kind)
    return Affine(fixed=whole - uplink * first - spine * family.spines(first), uplink=uplink, spine=spine)


def resources(instance: Instance, family: Family) -> dict[str, Affine]:
    """What a family uses of each limit the instance sets, in the unit of the limit."""
    limits = instance.limits
    used: dict[str, Affine] = {}
    if limits.capex_usd is not None:
        used["capex_usd"] = price(instance, family, "capex")
    if limits.power_mw is not None:
        watts = price(instance, family, "power")
        used["power_mw"] = Affine(fixed=watts.fixed / 1e6, uplink=watts.uplink / 1e6, spine=watts.spine / 1e6)
    if limits.racks is not None:
        count = racks(family)
        assert count is not None, "the instance refuses racks limits without rack counts"
        used["racks"] = Affine(fixed=float(count), uplink=0.0, spine=0.0)
    return used
