"""Partitions the usual way, to compare with: a row for each option and product, bills by big-M."""

from __future__ import annotations

import pyomo.environ as pyo

from formulations.choice import (
    Equation,
    add_budget,
    add_core_ports,
    add_cost,
    add_distinct_products,
    add_limits,
    add_one_option,
    build,
)
from formulations.choice_data import ChoiceData


def build_naive(data: ChoiceData) -> pyo.ConcreteModel:
    """A model whose bills are variables of their own."""
    return build(data, NAIVE)


def add_each_product_used(m: pyo.ConcreteModel) -> None:
    r"""A product is in use when an option that uses it is chosen.

    .. math:: z_o \le y_p \qquad \forall o, p
    """
    m.each_product_used = pyo.ConstraintList(doc="[1]")
    for w, p in m.WP:
        for o in m.users_of[w, p]:
            m.each_product_used.add(m.z[o] <= m.y[p])


def add_bills(m: pyo.ConcreteModel) -> None:
    r"""Of the bracket that is chosen, the bill is paid and the threshold bought; M makes the others
    slack.

    .. math:: c_p \ge g_b + p_b Q_p - M_{pb} (1 - v_{pb}), \qquad Q_p \ge t_{pb} v_{pb},
        \qquad \sum_b v_{pb} = 1

    :math:`M_{pb} = g_b + p_b \max_b \overline{t}_{pb}`, the largest bill there is at that price.
    The bill is what cost and budget then count.
    """
    m.bill = pyo.Var(m.D, domain=pyo.NonNegativeReals, doc="[USD]")
    m.units = pyo.Var(m.D, domain=pyo.NonNegativeReals, doc="[units]")
    m.naive = pyo.ConstraintList(doc="[USD, units, 1]")
    for p in m.D:
        item = m.data.products[p]
        most = float(max(m.ends_of[p]))
        held = sum(float(m.data.quantity[o, p]) * m.z[o] for o in m.O if m.data.quantity[o, p])
        held = held + sum(
            core.quantity * m.n[c] for c, core in enumerate(m.data.cores) if core.product == p
        )
        m.naive.add(m.units[p] >= held)
        m.naive.add(m.units[p] <= most)
        m.naive.add(sum(m.v[p, b] for b in range(len(item.usd))) == 1)
        for b, (given, usd, start) in enumerate(
            zip(item.offsets, item.usd, item.start, strict=True)
        ):
            big = float(given + usd * most)
            m.naive.add(m.bill[p] >= float(given) + float(usd) * m.units[p] - big * (1 - m.v[p, b]))
            m.naive.add(m.units[p] >= float(start) * m.v[p, b])
        m.bill_of[p] = m.bill[p]


NAIVE: tuple[Equation, ...] = (
    add_bills,
    add_cost,
    add_one_option,
    add_each_product_used,
    add_distinct_products,
    add_limits,
    add_budget,
    add_core_ports,
)
