"""A family's price as an affine function of its uplinks and spines, for the formulation."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

from coopt.instance.schema import Instance, ObjectiveKind
from coopt.network.family import Family
from coopt.network.parts import racks
from coopt.network.prices import weigh
from coopt.network.quantities import Key, open_bill


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
    """A family's capex (USD), power (W) or tco (USD) as an affine function."""
    counts, objective = open_bill(instance, family), instance.objective
    unit = {key: weigh(objective, item.unit_usd, item.unit_w, kind) for key, item in counts.units.items()}

    def worth(units: Counter[Key]) -> float:
        return math.fsum(unit[key] * count for key, count in units.items() if key in unit)

    return Affine(fixed=worth(counts.fixed), uplink=worth(counts.uplink), spine=worth(counts.spine))


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
