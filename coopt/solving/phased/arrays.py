"""From lines to the arrays of the formulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coopt.instance.schema import Instance
from coopt.network.growth import Line, energy_usd_per_w, factor
from coopt.network.parts import Key, Quantities, open_bill
from coopt.plan.schema import Item
from formulations.phased_data import Floats, Ints, PhasedData


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What a unit of each item costs: bought in a phase, and standing in it; shape (T, I). Objective units."""

    bought: Floats
    standing: Floats


def numbers_of(instance: Instance, lines: Sequence[Line], allowed: Sequence[Sequence[range]]) -> PhasedData:
    """The numbers of some lines, in units of the objective."""
    counted = [[open_bill(instance, family) for family in line.phases] for line in lines]
    units: dict[Key, Item] = {key: item for row in counted for one in row for key, item in one.units.items()}
    prices = _prices(instance, list(units.values()))
    retrofits = [[line.retrofit(t) for t in range(len(line.phases))] for line in lines]
    return PhasedData(
        least=_table([[uplinks[0] for uplinks in row] for row in allowed]),
        most=_table([[uplinks[-1] for uplinks in row] for row in allowed]),
        leaves=_table([[family.leaves if family.tiers == 2 else 0 for family in line.phases] for line in lines]),
        ports=_table([[family.spine_ports or family.switch.radix for family in line.phases] for line in lines]),
        stood=_table([[one.leaves for one in row] for row in retrofits]),
        trunks=_table([[one.trunks for one in row] for row in retrofits]),
        fixed=_counts(counted, list(units), "fixed"),
        uplink=_counts(counted, list(units), "uplink"),
        spine=_counts(counted, list(units), "spine"),
        price=prices.bought,
        run=prices.standing,
        labour=np.array([phase.retrofit_usd_per_link for phase in instance.phase]),
    )


def _prices(instance: Instance, items: list[Item]) -> Prices:
    phases = range(len(instance.phase))
    bought = [[item.unit_usd * factor(instance.phase[t].price, item.kind) for item in items] for t in phases]
    watt = [energy_usd_per_w(instance, t) if instance.objective.minimize == "tco" else 0.0 for t in phases]
    return Prices(bought=np.array(bought), standing=np.outer(watt, [item.unit_w for item in items]))


def _table(rows: list[list[int]]) -> Ints:
    return np.array(rows, dtype=np.int64)


def _counts(counted: list[list[Quantities]], keys: list[Key], part: str) -> Ints:
    """Shape (F, T, I)."""
    return np.array([[[getattr(one, part)[key] for key in keys] for one in row] for row in counted], dtype=np.int64)
