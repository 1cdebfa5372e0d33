"""Of networks that cost the same, the fastest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coopt.columns.context import Context, context_of
from coopt.columns.table import Columns
from coopt.instance.schema import Instance
from coopt.network.bill import bill, total
from coopt.network.family import Family
from coopt.network.limits import within_limits
from coopt.network.linear import price
from coopt.network.prices import weigh
from coopt.plan.schema import Cost
from coopt.solving.workloads import fastest_row


@dataclass(frozen=True, kw_only=True)
class Found:
    """A network whose every claim was recomputed, and the row of each workload's fastest mapping on it."""

    family: Family
    uplinks: int
    cost: Cost
    rows: tuple[int, ...]


def fastest_of_equal_cost(instance: Instance, families: tuple[Family, ...], table: Columns, found: Found) -> Found:
    """Among all networks with exactly the cost of the one found, the one whose tightest bound has most room.

    The solver stops at any optimum; planners want the best of them, and the same one whatever the formulation.
    """
    value = _value(instance, found.cost)
    best, room = found, _pressure(instance, table, found)
    widest: dict[Context, tuple[Family, int]] = {}
    for family in families:
        uplinks = _most_uplinks(instance, family, value)
        context = context_of(family)
        if uplinks is not None and (context not in widest or uplinks > widest[context][1]):
            widest[context] = family, uplinks
    for family, uplinks in widest.values():
        other = _recomputed(instance, table, family, uplinks)
        pressure = _pressure(instance, table, other)
        if pressure < room:
            best, room = other, pressure
    return best


def _most_uplinks(instance: Instance, family: Family, value: float) -> int | None:
    """The most uplinks a family has at exactly that cost within the limits; more uplinks are never slower."""
    affine = price(instance, family, instance.objective.minimize)
    u = np.arange(family.uplink_choices.start, family.uplink_choices.stop)
    spines = -(-family.leaves * u // family.switch.radix) if family.tiers == 2 else np.zeros_like(u)
    prices = affine.fixed + affine.uplink * u + affine.spine * spines
    for uplinks in u[np.isclose(prices, value, rtol=1e-9, atol=0.0)][::-1].tolist():
        cost = total(instance.objective, bill(instance, family, uplinks))
        if _value(instance, cost) == value and within_limits(instance, family, cost):
            return int(uplinks)
    return None


def _recomputed(instance: Instance, table: Columns, family: Family, uplinks: int) -> Found:
    context = context_of(family)
    rows = (fastest_row(table.pools[w, context.site], context, uplinks)[0] for w in range(len(instance.workload)))
    cost = total(instance.objective, bill(instance, family, uplinks))
    return Found(family=family, uplinks=uplinks, cost=cost, rows=tuple(rows))


def _pressure(instance: Instance, table: Columns, found: Found) -> float:
    """The largest share of its bound that a workload uses."""
    context = context_of(found.family)
    pools = (table.pools[w, context.site] for w in range(len(instance.workload)))
    return max(fastest_row(pool, context, found.uplinks)[1] / pool.workload.bound_s for pool in pools)


def _value(instance: Instance, cost: Cost) -> float:
    return weigh(instance.objective, cost.capex_usd, cost.power_w)
