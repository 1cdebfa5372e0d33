"""From lines to the arrays of the formulation.

What each line costs at least: the length of a shortest path through the uplinks of its phases.

A unit first needed in a phase costs the least price so far. Then the cost of a line is a sum over its phases, each
depending on the uplinks of that phase alone, and uplinks never fall from one to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coopt.instance.schema import Instance
from coopt.network.growth import Line, energy_usd_per_w, factor
from coopt.network.parts import Key, Quantities, open_bill
from coopt.plan.schema import Item
from formulations.phased import Floats, Ints, PhasedData


@dataclass(frozen=True, kw_only=True)
class PhasePrices:
    """What a unit of each item costs: bought in a phase, and standing in it; shape (T, I). Objective units."""

    bought: Floats
    standing: Floats


def numbers_of(instance: Instance, lines: Sequence[Line], allowed: Sequence[Sequence[tuple[int, ...]]]) -> PhasedData:
    """The numbers of some lines, in units of the objective."""
    counted = [[open_bill(instance, family) for family in line.phases] for line in lines]
    units: dict[Key, Item] = {key: item for row in counted for one in row for key, item in one.units.items()}
    prices = _prices(instance, list(units.values()))
    retrofits = [[line.retrofit(t) for t in range(len(line.phases))] for line in lines]
    return PhasedData(
        least=_table([[uplinks[0] for uplinks in row] for row in allowed]),
        most=_table([[uplinks[-1] for uplinks in row] for row in allowed]),
        leaves=_table([[family.leaves if family.tiers == 2 else 0 for family in line.phases] for line in lines]),
        ports=_table([[family.spine_ports for family in line.phases] for line in lines]),
        stood=_table([[one.leaves for one in row] for row in retrofits]),
        trunks=_table([[one.trunks for one in row] for row in retrofits]),
        fixed=_counts(counted, list(units), "fixed"),
        uplink=_counts(counted, list(units), "uplink"),
        spine=_counts(counted, list(units), "spine"),
        price=prices.bought,
        run=prices.standing,
        labour=np.array([phase.retrofit_usd_per_link for phase in instance.phase]),
    )


def _prices(instance: Instance, items: list[Item]) -> PhasePrices:
    phases = range(len(instance.phase))
    bought = [[item.unit_usd * factor(instance.phase[t].price, item.kind) for item in items] for t in phases]
    watt = [energy_usd_per_w(instance, t) if instance.objective.minimize == "tco" else 0.0 for t in phases]
    return PhasePrices(bought=np.array(bought), standing=np.outer(watt, [item.unit_w for item in items]))


def _table(rows: list[list[int]]) -> Ints:
    return np.array(rows, dtype=np.int64)


def _counts(counted: list[list[Quantities]], keys: list[Key], part: str) -> Ints:
    """Shape (F, T, I)."""
    return np.array([[[getattr(one, part)[key] for key in keys] for one in row] for row in counted], dtype=np.int64)


ROUNDING = 1e-12  # a bound is this much short, so that sums in another order stay above it


def line_bounds(data: PhasedData) -> Floats:
    """No plan on line f costs less than entry f; shape (F,)."""
    cheapest = np.minimum.accumulate(data.price, axis=0)
    later = np.vstack([cheapest[1:], np.zeros_like(cheapest[:1])])
    weight = cheapest - later + data.run  # of a unit in place in a phase, beside those in place in the next one
    fixed, uplink, spine = ((part * weight).sum(axis=2) for part in (data.fixed, data.uplink, data.spine))
    uplink += data.labour * data.stood
    uplink[:, :-1] += data.labour[1:] * (data.trunks - data.stood)[:, 1:]
    least = fixed.sum(axis=1) + _shortest(uplink, spine, data)
    # what a phase is charged and the next one credited may be far larger than the sum of all
    spines = -(-data.leaves * data.most // data.ports)
    summed = np.abs(fixed) + np.abs(uplink) * data.most + np.abs(spine) * spines
    return np.asarray(np.maximum(least - ROUNDING * summed.sum(axis=1), 0.0), dtype=np.float64)


def _shortest(uplink: Floats, spine: Floats, data: PhasedData) -> Floats:
    """The least cost of uplinks that never fall and of the spines they need; shape (F,)."""
    u = np.arange(int(data.most.max(initial=0)) + 1)
    best = np.zeros((len(uplink), len(u)))
    for t in range(uplink.shape[1]):
        spines = -(-data.leaves[:, t, None] * u // data.ports[:, t, None])
        cost = uplink[:, t, None] * u + spine[:, t, None] * spines
        inside = (u >= data.least[:, t, None]) & (u <= data.most[:, t, None])
        best = np.where(inside, np.minimum.accumulate(best, axis=1) + cost, np.inf)
    return np.asarray(best.min(axis=1), dtype=np.float64)
