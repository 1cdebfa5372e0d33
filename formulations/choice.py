r"""A part of the cluster for each workload: equations and the formulations made of them.

Each product is bought in one bracket of its prices.

The relaxation of one product is the convex envelope of its bill over what could be bought at all.

An option is whatever a workload may get: an island, or one at some site that grows in phases. All
that couples options is linear but for the brackets of prices. `TOTALS` gives every bracket of a
product a quantity of its own. `SHARES` also divides it by workloads: no workload's share of a
bracket is more than the workload could ever use, times the bracket, which is the tighter
relaxation. Both have the same optima.

Symbols:

- :math:`o \in O, O_w` ``m.O``: options; those of a workload
- :math:`w` ``m.W``: workloads
- :math:`p \in P` ``m.P``: products of a kind with a limit
- :math:`p \in D` ``m.D``: products with several brackets
- :math:`b` ``m.PB``: brackets, paired with products
- :math:`O_{wp}` ``users_of`` (over W x P): options of a workload that use p
- :math:`P_k` ``m.K``: products of a kind with a limit
- :math:`\ell` ``m.L``: limited resources
- :math:`z_o` ``m.z`` (over O; 0 or 1): option o is chosen
- :math:`y_p` ``m.y`` (over P; 0 or 1): product p is in use
- :math:`v_{pb}` ``m.v`` (over P x B; 0 or 1): p is bought in bracket b
- :math:`x_{pb}` ``m.x`` (over P x B; units): what is bought of p in bracket b
- :math:`x_{wpb}` ``m.share`` (over W x PB; units): what a workload holds of that
- :math:`c` ``m.C``: cores; c - 1 is c in the phase before
- :math:`n_c` ``m.n`` (over C; switches): switches of a core
- :math:`p_t, p_\tau` ``chain`` (units): a product in a phase, in one before
- :math:`q` ``m.Q``: ways prices may turn out
- :math:`\delta` ``m.regret`` (cost): the largest regret
- :math:`K^q, h^q_o, h^{qc}` ``scenarios`` (over Q; cost): K, h and h of a core at such prices
- :math:`b^q` ``min_value`` (over Q; cost): the least objective at such prices
- :math:`K, \bar{K}` ``budget`` (USD): capex, and its limit
- :math:`\alpha` ``weight`` (cost/USD): objective of a dollar of capex
- :math:`k_o, h_o` ``usd, opex`` (over O; USD): capex, and objective beside it
- :math:`k^c, h^c` ``core`` (USD): the same of a core switch
- :math:`q_{op}, q^c_p` ``quantity`` (over O x P; units): units in an option, in a core switch
- :math:`\overline{q}_{wp}` ``most_of`` (over W x P; units): most that w could hold of p
- :math:`g_{pb}, p_{pb}` ``offsets, usd`` (over P x B; USD): bill of a bracket, price of its units
- :math:`t_{pb}, \overline{t}_{pb}` ``start, ends_of`` (over P x B; units): where a bracket begins
  and ends
- :math:`q_k` ``max_products`` (over K; products): distinct products of a kind
- :math:`a^\ell_o, a^{\ell c}` ``use, core`` (over L x O; resource): use by an option, by a core
  switch
- :math:`\bar{a}^\ell` ``cap`` (over L; resource): limit on a resource
- :math:`R_c, r_{co}` ``ports, up`` (over C x O; ports): ports of a core switch, of an option
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyomo.core as pyo

from formulations.choice_data import ChoiceData, Floats, ScenarioCosts, bracket_offsets

Equation = Callable[[pyo.ConcreteModel], None]


def add_bracket_range(m: pyo.ConcreteModel) -> None:
    r"""(P7) Only a bracket that is chosen has a quantity, within its range.

    .. math:: t_{pb} v_{pb} \le x_{pb} \le \overline{t}_{pb} v_{pb} \qquad \forall p \in D, b

    with :math:`\overline{t}_{pb} = \max(t_{pb}, \min(t_{p,b+1}, \overline{q}_p))`. From the next
    threshold on the next bracket is as cheap, and nobody needs more than :math:`\overline{q}_p`,
    the sum over workloads and core of the largest quantity each could use, or, to reach a bracket,
    its threshold.

    Where some units stand, :math:`x_{pb}` is what each bracket holds: its range is from 0 to
    :math:`\overline{t}_{pb} - t_{pb}`, and :math:`g_{pb}` is 0.

    Brackets need not exclude each other. Incremental bills are concave and 0 without units, so two
    of them are no less than one of both quantities; with prices for all units, the one at the lower
    price could take in the other's.
    """

    @m.Constraint(m.PB, doc="P7 [units]")
    def bracket_from(m, p, b):
        product = m.data.products[p]
        return m.x[p, b] >= (0.0 if product.rises else float(product.start[b])) * m.v[p, b]

    @m.Constraint(m.PB, doc="P7 [units]")
    def bracket_to(m, p, b):
        product = m.data.products[p]
        start = float(product.start[b]) if product.rises else 0.0
        return m.x[p, b] <= (float(m.ends_of[p][b]) - start) * m.v[p, b]


def core_units(m: pyo.ConcreteModel, c: int) -> Any:
    """Units of its product that a core takes in its phase: its switches beyond those of the phase
    before.
    """
    core = m.data.cores[c]
    return core.quantity * (m.n[c] - (0 if core.predecessor is None else m.n[core.predecessor]))


def add_purchases(m: pyo.ConcreteModel) -> None:
    r"""(P8) What options and core switches hold is bought, in its phase or before.

    .. math:: \sum_{\tau \le t} \sum_{b} x_{p_\tau b} \ge
        \sum_{\tau
        \le t} \Bigl( \sum_{o} q_{o p_\tau} z_o + \sum_{c} q^c_{p_\tau} (n_c - n_{c-1}) \Bigr)
        \qquad \forall p_t \in D
    """

    @m.Constraint(m.D, doc="P8 [units]")
    def purchases(m, p):
        chain = m.data.chain(p)
        return sum(m.x[q, b] for q in chain for b in range(len(m.data.products[q].usd))) >= sum(
            _units_held(m, w, q) for q in chain for w in _shareholders(m, q)
        )


def _shareholders(m: pyo.ConcreteModel, p: int) -> list[int]:
    """Workloads that could use a product, and the cores together as the one after the last."""
    max_units = m.most_of[p]
    return [w for w in (*m.W, m.data.workloads) if max_units[w] > 0]


def _units_held(m: pyo.ConcreteModel, w: int, p: int) -> Any:
    """What a shareholder holds of a product."""
    if w == m.data.workloads:
        return sum(core_units(m, c) for c, core in enumerate(m.data.cores) if core.product == p)
    return sum(
        float(m.data.quantity[o, p]) * m.z[o] for o in m.options_of[w] if m.data.quantity[o, p]
    )


def add_shares(m: pyo.ConcreteModel) -> None:
    r"""(P9) What each workload holds is its share of the brackets; the core holds a share like a
    workload.

    .. math:: \sum_{b} x_{wpb} \ge \sum_{o \in O_w} q_{op} z_o, \qquad
        x_{wpb} \le \overline{q}_{wp} v_{pb}, \qquad \sum_{w} x_{wpb} \le x_{pb}
        \qquad \forall p \in D

    :math:`\overline{q}_{wp}`, the most that any option of the workload holds, is large enough: it
    has one option. This is for products of one phase.
    """
    assert all(product.predecessor is None for product in m.data.products), (
        "shares are for products of one phase"
    )
    m.WPB = pyo.Set(initialize=[(w, p, b) for p, b in m.PB for w in _shareholders(m, p)], dimen=3)
    m.share = pyo.Var(m.WPB, domain=pyo.NonNegativeReals, doc="[units]")
    m.shared_by = [(w, p) for p in m.D for w in _shareholders(m, p)]

    @m.Constraint(m.shared_by, doc="P9 [units]")
    def held_by(m, w, p):
        return sum(m.share[w, p, b] for b in range(len(m.data.products[p].usd))) >= _units_held(
            m, w, p
        )

    @m.Constraint(m.WPB, doc="P9 [units]")
    def share_of_bracket(m, w, p, b):
        return m.share[w, p, b] <= float(m.most_of[p][w]) * m.v[p, b]

    @m.Constraint(m.PB, doc="P9 [units]")
    def shares(m, p, b):
        holders = _shareholders(m, p)
        return (
            sum(m.share[w, p, b] for w in holders) <= m.x[p, b] if holders else pyo.Constraint.Skip
        )


def build(data: ChoiceData, equations: tuple[Equation, ...]) -> pyo.ConcreteModel:
    """A model with the variables of the partition problem and the given equations."""
    m = pyo.ConcreteModel(name="choice")
    m.data = data
    counted_products = sorted({int(p) for kind in data.kinds for p in kind.products})
    brackets = [len(product.usd) for product in data.products]
    m.O = pyo.RangeSet(0, len(data.workload) - 1)
    m.W = pyo.RangeSet(0, data.workloads - 1)
    # at one price just what is held is bought, which needs no variable
    m.D = pyo.Set(initialize=[p for p, count in enumerate(brackets) if count > 1])
    m.P = pyo.Set(initialize=counted_products)
    m.PB = pyo.Set(initialize=[(p, b) for p in m.D for b in range(brackets[p])], dimen=2)
    m.options_of = [np.flatnonzero(data.workload == w).tolist() for w in m.W]
    m.users_of = {
        (w, p): np.flatnonzero(data.uses(p) & (data.workload == w)).tolist()
        for p in m.P
        for w in m.W
    }
    m.WP = pyo.Set(initialize=[key for key, users in m.users_of.items() if users], dimen=2)
    m.ends_of = {p: data.ends(p) for p in m.D}
    m.most_of = {p: data.max_units(p) for p in m.D}
    m.z = pyo.Var(m.O, domain=pyo.Binary, doc="option is chosen")
    m.y = pyo.Var(m.P, domain=pyo.Binary, doc="product is in use")
    m.v = pyo.Var(m.PB, domain=pyo.Binary, doc="bracket is chosen")
    m.x = pyo.Var(m.PB, domain=pyo.NonNegativeReals, doc="[units]")
    m.C = pyo.RangeSet(0, len(data.cores) - 1)
    max_switches = data.most_core
    # More core switches than the most links need are never worth having, and a bound tightens the
    # relaxation.
    m.n = pyo.Var(
        m.C,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda _, c: (0, max_switches[c]),
        doc="[switches]",
    )
    m.bill_of = {p: _bill(m, p, data.products[p].usd) for p in m.D}
    for add in equations:
        add(m)
    return m


def _capex(m: pyo.ConcreteModel, at: ChoiceData | ScenarioCosts) -> Any:
    """Capex at some prices (USD): what has one price by options and core switches, the others by
    brackets.
    """
    d = m.data
    prices = at.prices if isinstance(at, ScenarioCosts) else [product.usd for product in d.products]
    # Outlooks keep the brackets of their products: one price in one of them is one price in all.
    flat = {p: float(usd[0]) for p, usd in enumerate(prices) if len(usd) == 1}
    option_usd = at.usd + sum(
        (d.quantity[:, p] * usd for p, usd in flat.items()), np.zeros(len(d.usd))
    )
    cores = [
        core_units(m, c) * flat[core.product]
        for c, core in enumerate(d.cores)
        if core.product in flat
    ]
    bills = [_bill(m, p, prices[p]) if isinstance(at, ScenarioCosts) else m.bill_of[p] for p in m.D]
    return sum(float(option_usd[o]) * m.z[o] for o in m.O) + sum(bills) + sum(cores)


def _bill(m: pyo.ConcreteModel, p: int, usd: Floats) -> Any:
    """The bill of a product whose brackets have these prices (USD)."""
    product = m.data.products[p]
    offsets = bracket_offsets(product.start, usd, product.discount) * (not product.rises)
    brackets = enumerate(zip(offsets, usd, strict=True))
    return sum(
        float(beside) * m.v[p, b] + float(unit) * m.x[p, b] for b, (beside, unit) in brackets
    )


def _cost(m: pyo.ConcreteModel, at: ChoiceData | ScenarioCosts) -> Any:
    """The objective at some prices: capex by its weight, and what else counts."""
    beside = at.core if isinstance(at, ScenarioCosts) else [core.opex for core in m.data.cores]
    opex = sum(float(at.opex[o]) * m.z[o] for o in m.O)
    return m.data.weight * _capex(m, at) + opex + sum(usd * m.n[c] for c, usd in enumerate(beside))


def add_cost(m: pyo.ConcreteModel) -> None:
    r"""(P0) What is bought costs its bills, by the weight of capex, and what else counts.

    .. math:: \min \alpha K + \sum_{o} h_o z_o + \sum_c h^c n_c, \qquad
        K = \sum_{o} k_o z_o + \sum_{p \in D} \sum_{b} (g_{pb} v_{pb} + p_{pb} x_{pb})
        + \sum_c k^c (n_c - n_{c-1})

    where :math:`k_o` and :math:`k^c` hold all products of one price and :math:`c - 1` is core c in
    the phase before.
    """
    m.cost = pyo.Objective(expr=_cost(m, m.data), doc="P0 [of the objective]")


def add_least_regret(m: pyo.ConcreteModel) -> None:
    r"""(P12) In place of P0: the largest excess over the best choice, however prices turn out, is
    as small as possible.

    .. math:: \min \delta, \qquad \delta \ge 0, \qquad
        \delta \ge \alpha K^q + \sum_{o} h^q_o z_o + \sum_c h^{qc} n_c - b^q \qquad \forall q

    with :math:`K^q` the capex at the prices of scenario q and :math:`b^q` its least objective. All
    scenarios share the purchases :math:`x`: prices of a product are one factor times those of
    another scenario, so that the cheapest brackets of one are those of all.
    """
    m.Q = pyo.RangeSet(0, len(m.data.scenarios) - 1)
    m.regret = pyo.Var(domain=pyo.NonNegativeReals, doc="[of the objective]")
    m.cost = pyo.Objective(expr=m.regret, doc="P12 [of the objective]")

    @m.Constraint(m.Q, doc="P12 [of the objective]")
    def regrets(m, q):
        return m.regret >= _cost(m, m.data.scenarios[q]) - m.data.scenarios[q].min_value


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

    A workload has one option, so its options add up: tighter than a row for each of them, and fewer
    rows.
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
        return sum(m.y[int(p)] for p in kinds[k].products) <= kinds[k].max_products


def add_limits(m: pyo.ConcreteModel) -> None:
    r"""(P4) Options and core switches stay within each limited resource.

    .. math:: \sum_{o} a^\ell_o z_o + \sum_c a^{\ell c} n_c \le \bar{a}^\ell \qquad \forall \ell
    """
    limits = {limit.name: limit for limit in m.data.limits}
    m.L = pyo.Set(initialize=list(limits))

    @m.Constraint(m.L, doc="P4 [of the resource]")
    def limited(m, name):
        a = limits[name]
        cores = sum(use * m.n[c] for c, use in enumerate(a.core) if use)
        return sum(float(a.use[o]) * m.z[o] for o in m.O) + cores <= a.cap


def add_budget(m: pyo.ConcreteModel) -> None:
    r"""(P5) Capex stays within the budget.

    .. math:: K \le \bar{K}
    """
    if m.data.budget is not None:
        m.within_budget = pyo.Constraint(expr=_capex(m, m.data) <= m.data.budget, doc="P5 [USD]")


def add_core_ports(m: pyo.ConcreteModel) -> None:
    r"""(P6) Switches of a core have a port for every link of the options that join it.

    .. math:: R_c n_c \ge \sum_{o} r_{co} z_o \qquad \forall c
    """

    @m.Constraint(m.C, doc="P6 [ports]")
    def core_ports(m, c):
        core = m.data.cores[c]
        links = sum(float(core.up[o]) * m.z[o] for o in m.O if core.up[o])
        return core.ports * m.n[c] >= links if core.up.any() else pyo.Constraint.Skip


def add_core_growth(m: pyo.ConcreteModel) -> None:
    r"""(P13) Switches of a core that stand stay.

    .. math:: n_c \ge n_{c-1} \qquad \forall c \text{ with a phase before}
    """

    @m.Constraint(m.C, doc="P13 [switches]")
    def core_growth(m, c):
        earlier_core = m.data.cores[c].predecessor
        return pyo.Constraint.Skip if earlier_core is None else m.n[c] >= m.n[earlier_core]


def add_choice_cut(m: pyo.ConcreteModel, options: list[int]) -> None:
    r"""(P10) Cut: these options together turned out to exceed a limit.

    .. math:: \sum_{o \in \text{chosen}} z_o \le |W| - 1
    """
    m.cuts.add(sum(m.z[o] for o in options) <= m.data.workloads - 1)


def add_cut_list(m: pyo.ConcreteModel) -> None:
    """(P11) Room for cuts, which recomputation adds between solves."""
    m.cuts = pyo.ConstraintList(doc="P10, P11 [1]")


COUPLINGS = (
    add_products_used,
    add_distinct_products,
    add_limits,
    add_budget,
    add_core_ports,
    add_core_growth,
)
CHOICE = (add_cost, add_one_option, *COUPLINGS)
TOTALS = (*CHOICE, add_bracket_range, add_purchases, add_cut_list)
SHARES = (*CHOICE, add_bracket_range, add_shares, add_cut_list)
REGRET = (add_least_regret, *(equation for equation in TOTALS if equation is not add_cost))
FORMULATIONS = {"choice": TOTALS, "shares": SHARES}
