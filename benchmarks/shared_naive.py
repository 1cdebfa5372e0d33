"""Shared networks the usual ways, to compare with: by big-M, and in factors whose logarithms add
up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyomo.environ as pyo

from coopt.columns.grid import Context, context_of
from coopt.columns.table import Columns
from coopt.solving.arrays import SharedProblem
from formulations.network import (
    Equation,
    Floats,
    Ints,
    NetworkData,
    add_cost,
    add_limits,
    add_one_family,
    add_spine_ports,
)

USUAL_M = 1e7
"""What is large enough for anything, and often taken for that."""


@dataclass(frozen=True, kw_only=True)
class SlowdownData(NetworkData):
    """A shared network with what its slowdown is computed from.

    `down` holds the down-ports of each family's leaf (F,), 0 where no uplinks exist; `reach` the
    largest slowdown with which each column meets its bound (C,).
    """

    down: Ints
    reach: Floats


def add_uplinks_by_big_m(m: pyo.ConcreteModel) -> None:
    r"""Only the family that is built has uplinks.

    .. math:: \underline{u}_f - M (1 - y_f) \le u_f \le M y_f, \qquad u_f \le \overline{u}_f
    """
    big = _big(m)
    m.naive_uplinks = pyo.ConstraintList(doc="[links]")
    for f in m.F:
        m.naive_uplinks.add(m.u[f] >= int(m.data.min_uplinks[f]) - big * (1 - m.y[f]))
        m.naive_uplinks.add(m.u[f] <= big * m.y[f])


def add_one_column(m: pyo.ConcreteModel) -> None:
    r"""Each workload uses one column, of the context of the family that is built.

    .. math:: \sum_{c \in C_w} z_c = 1 \quad \forall w,
        \qquad z_c \le \sum_{f \in F_{k(c)}} y_f \quad \forall c
    """
    m.one_column = pyo.Constraint(
        range(m.data.workloads), rule=lambda m, w: sum(m.z[c] for c in _of(m, w)) == 1
    )
    built = [sum(m.y[f] for f in m.families_of[k]) for k in m.K]
    m.right_context = pyo.Constraint(
        m.C, rule=lambda m, c: m.z[c] <= built[int(m.data.column_context[c])]
    )


def add_slowdown_by_big_m(m: pyo.ConcreteModel) -> None:
    r"""The slowdown is that of the family that is built, by chords exact at whole uplinks, and what
    columns bear.

    .. math:: \rho \ge \frac{d_f}{i (i+1)} (2i + 1 - u_f) - M (1 - y_f) \quad \forall f, i, \qquad
        \rho \le r_c + M (1 - z_c) \quad \forall c
    """
    big = _big(m)
    m.rho = pyo.Var(domain=pyo.NonNegativeReals, bounds=(0, big), doc="[1]")
    m.naive_slowdown = pyo.ConstraintList(doc="[1]")
    for f in m.F:
        d, least, most = int(m.data.down[f]), int(m.data.min_uplinks[f]), int(m.data.max_uplinks[f])
        if d == 0 or least == most:
            m.naive_slowdown.add(m.rho >= (d / least if d else 1.0) - big * (1 - m.y[f]))
        for i, after in pairwise(range(least, most + 1)):
            if d:
                m.naive_slowdown.add(
                    m.rho >= d / (i * after) * (i + after - m.u[f]) - big * (1 - m.y[f])
                )
    for c in m.C:
        m.naive_slowdown.add(m.rho <= min(float(m.data.reach[c]), big) + big * (1 - m.z[c]))


def add_factors(m: pyo.ConcreteModel) -> None:
    r"""Down-ports and uplinks are chosen each on its own; the logarithm of the slowdown is a
    difference.

    .. math:: \lambda = \sum_d \ln d \, x_d - \sum_u \ln u \, v_u,
        \qquad x_d = \sum_{f : d_f = d} y_f, \qquad
        \sum_u v_u = 1, \qquad \lambda \le \ln r_c + M (1 - z_c) \quad \forall c

    Families without uplinks have the slowdown 1. The uplinks of the family that is built follow by
    M, which is as large as a difference of logarithms, or a number of uplinks, can be.
    """
    data = m.data
    most = int(max(data.max_uplinks.max(), 1))
    downs = sorted({max(int(d), 1) for d in data.down})
    m.U = pyo.RangeSet(1, most)
    m.v = pyo.Var(m.U, domain=pyo.Binary)
    m.x = pyo.Var(downs, domain=pyo.Binary)
    m.factors = pyo.ConstraintList(doc="[1]")
    m.factors.add(sum(m.v[u] for u in m.U) == 1)
    for d in downs:
        m.factors.add(m.x[d] == sum(m.y[f] for f in m.F if max(int(data.down[f]), 1) == d))
    slow = sum(math.log(d) * m.x[d] for d in downs) - sum(math.log(u) * m.v[u] for u in m.U)
    large = math.log(max(downs)) + math.log(most)
    for c in m.C:
        m.factors.add(
            slow <= math.log(min(float(data.reach[c]), max(downs))) + large * (1 - m.z[c])
        )
    number = sum(u * m.v[u] for u in m.U)
    for f in m.F:
        least = max(int(data.min_uplinks[f]), 1)
        m.factors.add(number >= least - most * (1 - m.y[f]))
        m.factors.add(number <= max(int(data.max_uplinks[f]), 1) + most * (1 - m.y[f]))
        if data.down[f]:
            m.factors.add(m.u[f] >= number - most * (1 - m.y[f]))
        m.factors.add(m.u[f] <= int(data.max_uplinks[f]) * m.y[f])


def _of(m: pyo.ConcreteModel, w: int) -> list[int]:
    return [c for k in m.K for c in m.columns_of[w, k]]


def _big(m: pyo.ConcreteModel) -> float:
    """M: the usual one, or the largest slowdown and number of uplinks there can be."""
    return float(getattr(m, "big", USUAL_M))


def add_computed_m(m: pyo.ConcreteModel) -> None:
    """Let M be the largest slowdown and number of uplinks there can be."""
    m.big = float(max(m.data.down.max(), m.data.max_uplinks.max(), 1))


BY_BIG_M: tuple[Equation, ...] = (
    add_cost,
    add_one_family,
    add_spine_ports,
    add_limits,
    add_uplinks_by_big_m,
    add_one_column,
    add_slowdown_by_big_m,
)
NAIVE: dict[str, tuple[Equation, ...]] = {
    "big-m": BY_BIG_M,
    "big-m computed": (add_computed_m, *BY_BIG_M),
    "factored": (
        add_cost,
        add_one_family,
        add_spine_ports,
        add_limits,
        add_one_column,
        add_factors,
    ),
}


def with_slowdowns(problem: SharedProblem, table: Columns) -> SlowdownData:
    """The same problem with the slowdown that each of its columns bears."""
    bears = []
    for column in problem.columns:
        context = table.contexts[column.context]
        most = float(_bears(table, column.workload, context)[column.row])
        down = context.layout.down
        bears.append(max(most, down / column.uplinks if down else 1.0))
    down = np.array([family.down if family.tiers > 1 else 0 for family in problem.families])
    return SlowdownData(**vars(problem.data), down=down, reach=np.array(bears))


def unfiltered(problem: SharedProblem, table: Columns) -> SlowdownData:
    """The same problem with every mapping of the pools as a column, where it can meet its bound at
    all.
    """
    numbers = dict.fromkeys(context_of(family) for family in problem.families)
    parts: list[tuple[np.ndarray, ...]] = []
    for k, context in enumerate(numbers):
        for w in range(problem.data.workloads):
            bears = _bears(table, w, context)
            able = np.minimum(bears[bears >= 1], max(context.layout.down, 1))
            need = np.ceil(context.layout.down / able * (1 - 1e-12)).astype(np.int64)
            parts.append((np.full(len(able), w), np.full(len(able), k), need, able))
    workload, of_context, need, able = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    ours = with_slowdowns(problem, table)
    return replace(ours, column_workload=workload, column_context=of_context, need=need, reach=able)


def _bears(table: Columns, workload: int, context: Context) -> Floats:
    """The largest ratio of ports down and up that each row of a pool bears on networks of a
    context; shape (rows,).
    """
    pool, down = table.pools[workload, context.site], max(context.layout.down, 1)
    bound_s, largest = pool.workload.bound_s, np.full(len(pool), np.inf)
    # pieces are affine in the ratio
    once, twice = (pool.pieces.each_at(pool.reciprocals(context, down / ratio)) for ratio in (1, 2))
    for at_one, at_two in zip(once, twice, strict=True):
        slope = at_two - at_one
        with np.errstate(divide="ignore", invalid="ignore"):
            flat = np.where(at_one <= bound_s, np.inf, -np.inf)
            largest = np.minimum(
                largest, np.where(slope > 0, 1.0 + (bound_s - at_one) / slope, flat)
            )
    return largest
