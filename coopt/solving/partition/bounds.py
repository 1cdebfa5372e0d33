r"""A bound below every choice of a part, from one small linear program.

Bills are replaced by straight lines below them over the quantities that can occur, :math:`\alpha_p + \beta_p q`, and
core switches by the share of one that an option's up-links need. What is left is one option for each workload within
linear limits. Of the linear program only the multipliers of the limits are taken: for any :math:`\lambda \ge 0`

.. math:: \sum_p \alpha_p + \sum_w \min_{o \in O_w} \Bigl( c_o + \sum_\ell \lambda_\ell a^\ell_o \Bigr)
    - \sum_\ell \lambda_\ell \bar{a}^\ell

is a bound (weak duality), so it holds whatever the solver's tolerance. Where the linear program has no solution, its
ray is taken: multipliers whose sum, without any cost, exceeds what the limits leave, which no choice can.

The sum is one of floats, and multipliers may be far larger than the bound: where options differ little in what they use
of a limit, what they use and what there is cancel. So each addend is taken short by `LEEWAY` of its own size, which is
more than the rounding of all sums that it is in, and a limit is taken as that much wider: so much a choice may be over
it by the rounding of its own sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import highspy
import numpy as np

from coopt.solving.highs import solved
from formulations.partition_data import Floats, LimitedUse, PartitionData, Product

SAFETY = 1e-9  # of the bound, given up to rounding

LEEWAY = 1e-12
"""Of every addend: the rounding of a sum of up to 4,000 of them is less."""


def lower_bound(data: PartitionData) -> float:
    """A bound of the objective of every choice; infinite where the linear program shows that there is none."""
    line = _linear(data)
    cost, uses = line.cost, line.uses
    scale = max(float(np.abs(cost).max()), 1.0)
    multipliers, ray = _multipliers(data, cost / scale, uses)
    if _cheapest(data, uses @ ray) > float(ray.sum()) * (1 + SAFETY):
        return math.inf
    due, left = scale * (uses @ multipliers), scale * float(multipliers.sum())
    found = line.fixed + _cheapest(data, cost + due - LEEWAY * (line.size + due)) - left
    return found - SAFETY * (abs(line.fixed) + abs(found)) - LEEWAY * (line.fixed_size + left)


class CostLine(NamedTuple):
    """Straight lines below the cost of every choice, one option for each workload (O,).

    `size` and `fixed_size` are the same sums of absolute values; `uses` (O, L) are shares of what is left of each
    limit.
    """

    cost: Floats
    size: Floats
    fixed: float
    fixed_size: float
    uses: Floats


def _cheapest(data: PartitionData, priced: Floats) -> float:
    """The least sum of one option for each workload."""
    return sum(float(priced[data.workload == w].min()) for w in range(data.workloads))


def _linear(data: PartitionData) -> CostLine:
    """Cost of each option, what is due in any case, and use of each limit as a share of what is left of it."""
    shares = [core.up / core.ports for core in data.cores]
    quantity, held, other = data.quantity.copy(), data.quantity.copy(), data.other
    for core, share in zip(data.cores, shares, strict=True):
        earlier = 0.0 if core.before is None else shares[core.before]
        quantity[:, core.product] += core.quantity * (share - earlier)
        held[:, core.product] += core.quantity * (share + earlier)
        other = other + core.other * share
    lines = [_below(data, p) for p in range(len(data.products))]
    offsets, slopes = np.array([line[0] for line in lines]), np.array([line[1] for line in lines])
    capex, fixed, most = data.usd + quantity @ slopes, float(offsets.sum()), float(sum(line[2] for line in lines))
    uses = [(limit.use + _by_cores(limit, shares), limit.cap) for limit in data.limits]
    if data.budget is not None:
        uses.append((capex, data.budget - fixed + LEEWAY * (data.budget + most)))
    columns = [use / cap if cap > 0 else np.where(use > 0, 2.0 * data.workloads, 0.0) for use, cap in uses]
    table = np.stack(columns, axis=1) if columns else np.zeros((len(capex), 0))
    size = data.weight * (data.usd + held @ slopes) + np.abs(other)
    return CostLine(data.weight * capex + other, size, data.weight * fixed, data.weight * most, table)


def _by_cores(limit: LimitedUse, shares: Sequence[Floats]) -> Any:
    """What the shares of core switches use of a limit, for each option."""
    return sum(use * share for use, share in zip(limit.core, shares, strict=False))


def _below(data: PartitionData, p: int) -> tuple[float, float, float]:
    """Offset and slope of a line below the bill of a product, over the quantities that a choice can have, and the
    largest bill that the offset is a difference of.

    Between thresholds a bill is concave or flat, and it jumps down nowhere: a line below it at the thresholds and at
    both ends is below it everywhere. Of a product that may be bought ahead of its phase no unit costs less than the
    last price of any phase so far.
    """
    product, held = data.products[p], data.quantity[:, p]
    if len(product.usd) > 1 and len(data.following(p)) + len(data.chain(p)) > 2:
        return 0.0, min(float(data.products[q].usd[-1]) for q in data.chain(p)), 0.0
    if len(product.usd) == 1:
        return 0.0, float(product.usd[0]), 0.0
    least = float(sum(held[data.workload == w].min() for w in range(data.workloads)))
    most = float(data.most(p).sum())
    dearest = product.bill(most)
    if most <= least:
        return dearest, 0.0, dearest
    slope = (dearest - product.bill(least)) / (most - least)
    at = [least, most, *_corners(product, least, most)]
    return min(product.bill(q) - slope * q for q in at), slope, dearest


def _corners(product: Product, least: float, most: float) -> list[float]:
    """Thresholds between two quantities, where the slope of a bill may grow."""
    return [float(t) for t in product.start if least < t < most]


def _multipliers(data: PartitionData, cost: Floats, uses: Floats) -> tuple[Floats, Floats]:
    """The multipliers of the limits in the linear program, and those of a ray where it has no solution; else 0."""
    count, workloads, limits = len(cost), data.workloads, uses.shape[1]
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = count, workloads + limits
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, np.zeros(count), np.ones(count)
    lp.row_lower_ = np.concatenate([np.ones(workloads), np.full(limits, -np.inf)])
    lp.row_upper_ = np.ones(workloads + limits)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.arange(count + 1, dtype=np.int32) * (1 + limits)
    rows = np.broadcast_to(np.arange(workloads, workloads + limits), (count, limits))
    lp.a_matrix_.index_ = np.column_stack([data.workload, rows]).astype(np.int32).ravel()
    lp.a_matrix_.value_ = np.column_stack([np.ones(count), uses]).ravel()
    h = solved(lp)
    status, none = h.getModelStatus(), np.zeros(limits)
    if status == highspy.HighsModelStatus.kInfeasible:
        _, there, ray = h.getDualRay()
        return none, _positive(ray[workloads:]) if there else none
    if status == highspy.HighsModelStatus.kOptimal:
        return _positive(h.getSolution().row_dual[workloads:]), none
    return none, none


def _positive(duals: Any) -> Floats:
    """Multipliers of upper limits, which HiGHS gives a minus."""
    return np.asarray(np.maximum(-np.asarray(duals, dtype=np.float64), 0.0))
