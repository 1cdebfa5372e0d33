"""A part of the cluster for each workload: equations and the formulations made of them.

Workloads choose among options; all that couples them is linear but for the brackets of prices. `TOTALS` gives every
bracket of a product a quantity of its own. `SHARES` also divides it by workloads: no workload's share of a bracket is
more than the workload could ever use, times the bracket, which is the tighter relaxation. Both have the same optima.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.environ as pyo

from formulations.partition_data import PartitionData
from formulations.partition_prices import add_bracket_range, add_purchases, add_shares

Equation = Callable[[pyo.ConcreteModel], None]


def build(data: PartitionData, equations: tuple[Equation, ...]) -> pyo.ConcreteModel:
    """A model with the variables of the partition problem and the given equations."""
    m = pyo.ConcreteModel(name="partition")
    m.data = data
    counted = sorted({int(p) for kind in data.kinds for p in kind.products})
    brackets = [len(product.usd) for product in data.products]
    m.O = pyo.RangeSet(0, len(data.workload) - 1)
    m.W = pyo.RangeSet(0, data.workloads - 1)
    m.D = pyo.Set(initialize=[p for p, count in enumerate(brackets) if count > 1])
    m.P = pyo.Set(initialize=counted)
    m.PB = pyo.Set(initialize=[(p, b) for p in m.D for b in range(brackets[p])], dimen=2)
    m.options_of = [np.flatnonzero(data.workload == w).tolist() for w in m.W]
    m.users_of = {(w, p): np.flatnonzero(data.uses(p) & (data.workload == w)).tolist() for p in m.P for w in m.W}
    m.WP = pyo.Set(initialize=[key for key, users in m.users_of.items() if users], dimen=2)
    m.ends_of = {p: data.ends(p) for p in m.D}
    m.most_of = {p: data.most(p) for p in m.D}
    m.z = pyo.Var(m.O, domain=pyo.Binary, doc="option is chosen")
    m.y = pyo.Var(m.P, domain=pyo.Binary, doc="product is in use")
    m.v = pyo.Var(m.PB, domain=pyo.Binary, doc="bracket is chosen")
    m.x = pyo.Var(m.PB, domain=pyo.NonNegativeReals, doc="[units]")
    m.n = pyo.Var(domain=pyo.NonNegativeIntegers, bounds=(0, data.most_core), doc="[switches]")
    m.bill_of = {p: _bill(m, p) for p in m.D}
    for add in equations:
        add(m)
    return m


def _bill(m: pyo.ConcreteModel, p: int) -> Any:
    """The bill of a product (USD)."""
    brackets = enumerate(zip(m.data.products[p].given, m.data.products[p].usd, strict=True))
    return sum(float(given) * m.v[p, b] + float(usd) * m.x[p, b] for b, (given, usd) in brackets)


def _capex(m: pyo.ConcreteModel) -> Any:
    """Capex (USD): what has one price by options and core switches, the others by brackets."""
    d = m.data
    flat = {p: float(product.usd[0]) for p, product in enumerate(d.products) if len(product.usd) == 1}
    each = d.usd + sum((d.quantity[:, p] * usd for p, usd in flat.items()), np.zeros(len(d.usd)))
    core = d.core.quantity * flat.get(d.core.product, 0.0) * m.n if d.core is not None else 0.0
    return sum(float(each[o]) * m.z[o] for o in m.O) + sum(m.bill_of[p] for p in m.D) + core


def add_cost(m: pyo.ConcreteModel) -> None:
    r"""(P0) What is bought costs its bills, by the weight of capex, and what else counts.

    .. math:: \min \alpha K + \sum_{o} h_o z_o + h^c n, \qquad
        K = \sum_{o} k_o z_o + \sum_{p \in D} \sum_{b} (g_{pb} v_{pb} + p_{pb} x_{pb}) + k^c n

    where :math:`k_o` and :math:`k^c` hold all products of one price.
    """
    d = m.data
    other = sum(float(d.other[o]) * m.z[o] for o in m.O)
    core = d.core.other * m.n if d.core is not None else 0.0
    m.cost = pyo.Objective(expr=d.weight * _capex(m) + other + core, doc="P0 [of the objective]")


def add_one_option(m: pyo.ConcreteModel) -> None:
    r"""(P1) Each workload gets one option.

    .. math:: \sum_{o \in O_w} z_o = 1 \qquad \forall w
    """

    @m.Constraint(m.W, doc="P1 [1]")
    def one_option(m, w):
        return sum(m.z[o] for o in m.options_of[w]) == 1


def add_products_used(m: pyo.ConcreteModel) -> None:
    r"""(P2) A product is in use when some workload's option uses it.

    .. math:: \sum_{o \in O_{wp}} z_o \le y_p \qquad \forall w, p

    A workload has one option, so its options add up: tighter than a row for each of them, and fewer rows.
    """

    @m.Constraint(m.WP, doc="P2 [1]")
    def products_used(m, w, p):
        return sum(m.z[o] for o in m.users_of[w, p]) <= m.y[p]


def add_distinct_products(m: pyo.ConcreteModel) -> None:
    r"""(P3) Of a kind at most so many products are in use.

    .. math:: \sum_{p \in P_k} y_p \le q_k \qquad \forall k
    """
    kinds = {kind.name: kind for kind in m.data.kinds}
    m.K = pyo.Set(initialize=list(kinds))

    @m.Constraint(m.K, doc="P3 [products]")
    def distinct_products(m, k):
        return sum(m.y[int(p)] for p in kinds[k].products) <= kinds[k].most


def add_limits(m: pyo.ConcreteModel) -> None:
    r"""(P4) Options and core switches stay within each limited resource.

    .. math:: \sum_{o} a^\ell_o z_o + a^{\ell c} n \le \bar{a}^\ell \qquad \forall \ell
    """
    limits = {limit.name: limit for limit in m.data.limits}
    m.L = pyo.Set(initialize=list(limits))

    @m.Constraint(m.L, doc="P4 [of the resource]")
    def limited(m, name):
        a = limits[name]
        return sum(float(a.use[o]) * m.z[o] for o in m.O) + a.core * m.n <= a.cap


def add_budget(m: pyo.ConcreteModel) -> None:
    r"""(P5) Capex stays within the budget.

    .. math:: K \le \bar{K}
    """
    if m.data.budget is not None:
        m.within_budget = pyo.Constraint(expr=_capex(m) <= m.data.budget, doc="P5 [USD]")


def add_core_ports(m: pyo.ConcreteModel) -> None:
    r"""(P6) Core switches have a port for every link of the options that join them.

    .. math:: R n \ge \sum_{o} r_o z_o
    """
    core = m.data.core
    if core is not None and core.up.any():
        joined = sum(float(core.up[o]) * m.z[o] for o in m.O if core.up[o])
        m.core_ports = pyo.Constraint(expr=core.ports * m.n >= joined, doc="P6 [ports]")


def add_choice_cut(m: pyo.ConcreteModel, chosen: list[int]) -> None:
    r"""(P10) Cut: these options together turned out to exceed a limit.

    .. math:: \sum_{o \in \text{chosen}} z_o \le |W| - 1
    """
    m.cuts.add(sum(m.z[o] for o in chosen) <= m.data.workloads - 1)


def add_cut_list(m: pyo.ConcreteModel) -> None:
    """(P11) Room for cuts, which recomputation adds between solves."""
    m.cuts = pyo.ConstraintList(doc="P10, P11 [1]")


CHOICE = (add_cost, add_one_option, add_products_used, add_distinct_products, add_limits, add_budget, add_core_ports)
TOTALS = (*CHOICE, add_bracket_range, add_purchases, add_cut_list)
SHARES = (*CHOICE, add_bracket_range, add_shares, add_cut_list)
FORMULATIONS = {"totals": TOTALS, "shares": SHARES}
