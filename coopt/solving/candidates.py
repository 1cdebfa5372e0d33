"""Networks whose every claim was recomputed from the decisions; of those that cost the same, the fastest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from coopt.columns.context import Context, context_of
from coopt.columns.table import Columns
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.parts import cost_of, price, within_limits
from coopt.plan.schema import Cost
from coopt.solving.days import allowed_s
from coopt.solving.workloads import fastest_row


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A network, what it costs, and each workload's fastest mapping on it: its row and its share of the time bound."""

    family: Family
    uplinks: int
    cost: Cost
    rows: tuple[int, ...]
    shares: tuple[float, ...]


def recomputed(instance: Instance, table: Columns, family: Family, uplinks: int) -> Candidate:
    """What a decision amounts to; a share above 1 breaks a bound."""
    context = context_of(family)
    rows, shares = [], []
    for w, workload in enumerate(instance.workload):
        row, time_s = fastest_row(table.pools[w, context.site], context, uplinks)
        rows.append(row)
        bound_s = allowed_s(instance, family, uplinks, workload)
        shares.append(time_s / bound_s if time_s <= bound_s else np.inf)
    cost = cost_of(instance, family, uplinks)
    return Candidate(family=family, uplinks=uplinks, cost=cost, rows=tuple(rows), shares=tuple(shares))


def fastest_of_equal_cost(
    instance: Instance, families: tuple[Family, ...], table: Columns, found: Candidate
) -> Candidate:
    """Among all networks with exactly the cost of the one found, the one whose tightest bound has most room.

    The solver stops at any optimum; planners want the best of them. Of equally fast ones it is one that joins rails,
    then the one that leaves most room to the other bounds, then the least oversubscribed. Ties go to the first family,
    so that the answer does not depend on the one found.
    """
    value = found.cost.of(instance.objective.minimize)
    widest: dict[Context, tuple[Family, int]] = {}

    def is_better(family: Family, uplinks: int, other: tuple[Family, int]) -> bool:
        return (uplinks, family.joins_rails) > (other[1], other[0].joins_rails)

    for family in families:
        uplinks = _most_uplinks(instance, family, value)
        context = context_of(family)
        if uplinks is not None and (context not in widest or is_better(family, uplinks, widest[context])):
            widest[context] = family, uplinks
    equals = [recomputed(instance, table, family, uplinks) for family, uplinks in widest.values()]
    return min(equals, key=_preference)


def _preference(candidate: Candidate) -> tuple[object, ...]:
    """Less is better, with times that differ by rounding alone alike."""
    shares = sorted((round(share, 9) for share in candidate.shares), reverse=True)
    ratio = candidate.family.slowdown(candidate.uplinks) * candidate.family.pod_ratio
    return shares[0], not candidate.family.joins_rails, shares, ratio


def _most_uplinks(instance: Instance, family: Family, value: float) -> int | None:
    """The most uplinks a family has at exactly that cost within the limits; more uplinks are never slower."""
    affine = price(instance, family, instance.objective.minimize)
    u = np.array(family.uplink_choices)
    prices = affine.at(family, u)
    for uplinks in u[np.isclose(prices, value, rtol=1e-9, atol=1e-9)][::-1].tolist():
        cost = cost_of(instance, family, uplinks)
        if cost.of(instance.objective.minimize) == value and within_limits(instance, family, cost):
            return int(uplinks)
    return None
