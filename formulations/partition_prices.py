"""Brackets of prices in a partition: which one each product is bought in, and how much.

The relaxation of one product is the convex envelope of its bill over what could be bought at all.
"""

from __future__ import annotations

from typing import Any

import pyomo.core as pyo


def add_bracket_range(m: pyo.ConcreteModel) -> None:
    r"""(P7) Only a bracket that is chosen has a quantity, within its range.

    .. math:: t_{pb} v_{pb} \le x_{pb} \le \overline{t}_{pb} v_{pb} \qquad \forall p \in D, b

    with :math:`\overline{t}_{pb} = \max(t_{pb}, \min(t_{p,b+1}, \overline{q}_p))`. From the next threshold on the next
    bracket is as cheap, and nobody needs more than :math:`\overline{q}_p`, the sum over workloads and core of the
    largest quantity each could use, or, to reach a bracket, its threshold.

    Brackets need not exclude each other. Incremental bills are concave and 0 without units, so two of them are no less
    than one of both quantities; with prices for all units, the one at the lower price could take in the other's.
    """

    @m.Constraint(m.PB, doc="P7 [units]")
    def bracket_from(m, p, b):
        return m.x[p, b] >= float(m.data.products[p].start[b]) * m.v[p, b]

    @m.Constraint(m.PB, doc="P7 [units]")
    def bracket_to(m, p, b):
        return m.x[p, b] <= float(m.ends_of[p][b]) * m.v[p, b]


def held(m: pyo.ConcreteModel, c: int) -> Any:
    """Units of its product that a core takes in its phase: its switches beyond those of the phase before."""
    core = m.data.cores[c]
    return core.quantity * (m.n[c] - (0 if core.before is None else m.n[core.before]))


def add_purchases(m: pyo.ConcreteModel) -> None:
    r"""(P8) What options and core switches hold is bought, in its phase or before.

    .. math:: \sum_{\tau \le t} \sum_{b} x_{p_\tau b} \ge
        \sum_{\tau \le t} \Bigl( \sum_{o} q_{o p_\tau} z_o + \sum_{c} q^c_{p_\tau} (n_c - n_{c-1}) \Bigr)
        \qquad \forall p_t \in D
    """

    @m.Constraint(m.D, doc="P8 [units]")
    def purchases(m, p):
        chain = m.data.chain(p)
        bought = sum(m.x[q, b] for q in chain for b in range(len(m.data.products[q].usd)))
        return bought >= sum(_held(m, w, q) for q in chain for w in _shareholders(m, q))


def _shareholders(m: pyo.ConcreteModel, p: int) -> list[int]:
    """Workloads that could use a product, and the cores together as the one after the last."""
    most = m.most_of[p]
    return [w for w in (*m.W, m.data.workloads) if most[w] > 0]


def _held(m: pyo.ConcreteModel, w: int, p: int) -> Any:
    """What a shareholder holds of a product."""
    if w == m.data.workloads:
        return sum(held(m, c) for c, core in enumerate(m.data.cores) if core.product == p)
    return sum(float(m.data.quantity[o, p]) * m.z[o] for o in m.options_of[w] if m.data.quantity[o, p])


def add_shares(m: pyo.ConcreteModel) -> None:
    r"""(P9) What each workload holds is its share of the brackets; the core holds a share like a workload.

    .. math:: \sum_{b} x_{wpb} \ge \sum_{o \in O_w} q_{op} z_o, \qquad
        x_{wpb} \le \overline{q}_{wp} v_{pb}, \qquad \sum_{w} x_{wpb} \le x_{pb} \qquad \forall p \in D

    :math:`\overline{q}_{wp}`, the most that any option of the workload holds, is large enough: it has one option.
    This is for products of one phase.
    """
    assert all(product.before is None for product in m.data.products), "shares are for products of one phase"
    m.WPB = pyo.Set(initialize=[(w, p, b) for p, b in m.PB for w in _shareholders(m, p)], dimen=3)
    m.share = pyo.Var(m.WPB, domain=pyo.NonNegativeReals, doc="[units]")
    m.shared_by = [(w, p) for p in m.D for w in _shareholders(m, p)]

    @m.Constraint(m.shared_by, doc="P9 [units]")
    def held_by(m, w, p):
        return sum(m.share[w, p, b] for b in range(len(m.data.products[p].usd))) >= _held(m, w, p)

    @m.Constraint(m.WPB, doc="P9 [units]")
    def share_of_bracket(m, w, p, b):
        return m.share[w, p, b] <= float(m.most_of[p][w]) * m.v[p, b]

    @m.Constraint(m.PB, doc="P9 [units]")
    def shares(m, p, b):
        holders = _shareholders(m, p)
        return sum(m.share[w, p, b] for w in holders) <= m.x[p, b] if holders else pyo.Constraint.Skip
