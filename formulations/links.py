r"""Direct links between domains, with the flows they carry: equations and the formulations made of
them.

An iteration has phases that take turns on the links. Phase k runs at the pace :math:`\lambda_k`
(links): at twice the pace it takes half the time. Each has all links to itself, so a link serves as
many phases as there are.

Symbols:

- :math:`p \in P` ``m.P``: pairs of domains
- :math:`\lvert p \rvert` ``pairs`` (over P; pairs): pairs in an orbit
- :math:`w \in W` ``m.W``: domains
- :math:`k` ``m.K``: phases, which take turns on the links
- :math:`s, v, i, j` ``m.B, m.E``: source, target, ends of an arc
- :math:`n_p, n_{ij}` ``m.n`` (over P; links): links of a pair
- :math:`q_w` ``m.q`` (over W; links): whole links at a domain
- :math:`f^k_{s,ij}` ``m.f`` (over K x X; links): flow of a source over an arc
- :math:`\lambda_k` ``m.pace`` (over K; links): pace of a phase
- :math:`u_k` ``m.u`` (over K; 1/links): time of a phase at its pace, from below
- :math:`e_{wp}` ``ends`` (over W x P; pairs): pairs of an orbit that a domain belongs to
- :math:`\bar{p}_w` ``ports`` (over W; links): ports of a domain
- :math:`\delta^k_{sv}, \delta^k_w` ``demand, sent`` (over K x B, W; 1): sent to a domain, by a
  domain, at a pace of 1
- :math:`w_{jk}` ``weight`` (over J x K; links): pace a phase needs alone, by affine piece j
- :math:`\hat\lambda_k` ``paces`` (over K; links): where a tangent touches
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyomo.core as pyo

from formulations.links_data import LinksData, Sparse

Equation = Callable[[pyo.ConcreteModel], None]

TANGENTS = 48  # of D4 at the start; recomputation adds those that are missing


def build(data: LinksData, equations: tuple[Equation, ...]) -> pyo.ConcreteModel:
    """A model with the variables of direct links and the given equations."""
    m = pyo.ConcreteModel(name="links")
    m.data = data
    max_links = int(data.ports.max())
    m.P = pyo.RangeSet(0, len(data.pairs) - 1)
    m.W = pyo.RangeSet(0, len(data.domains) - 1)
    m.E = pyo.RangeSet(0, len(data.pair) - 1)
    m.K = pyo.RangeSet(0, data.phases - 1)
    m.X = pyo.RangeSet(0, data.flows - 1)
    m.n = pyo.Var(m.P, domain=pyo.NonNegativeIntegers, bounds=(0, max_links), doc="[links]")
    m.q = pyo.Var(
        m.W,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda m, w: (0, int(data.ports[w])),
        doc="[links]",
    )
    m.f = pyo.Var(m.K, m.X, domain=pyo.NonNegativeReals, bounds=(0, max_links), doc="[links]")
    min_paces, max_paces = data.min_paces, data.max_paces
    # A pace may have to be above what ports allow: then no solution is in time, and the model says
    # so by its rows.
    m.pace = pyo.Var(
        m.K, bounds=lambda m, k: (min_paces[k], max(max_paces[k], min_paces[k])), doc="[links]"
    )
    for add in equations:
        add(m)
    return m


def add_link_count(m: pyo.ConcreteModel) -> None:
    r"""(D0) Few links.

    .. math:: \min \sum_{p} \lvert p \rvert \, n_p
    """
    m.cost = pyo.Objective(expr=sum(int(m.data.pairs[p]) * m.n[p] for p in m.P), doc="D0 [links]")


def add_port_budget(m: pyo.ConcreteModel) -> None:
    r"""(D1) A domain has at most as many links as ports.

    .. math:: \sum_{p} e_{wp} n_p \le \bar{p}_w \qquad \forall w
    """

    @m.Constraint(m.W, doc="D1 [links]")
    def port_budget(m, w):
        return links_at(m, w) <= int(m.data.ports[w])


def add_balance(m: pyo.ConcreteModel) -> None:
    r"""(D2) Of what a source sends, what a domain gets and does not pass on is its own.

    .. math:: \sum_{i} f^k_{s,iv} - \sum_{j} f^k_{s,vj} = \lambda_k \delta^k_{sv}
        \qquad \forall k, s \ne v
    """
    m.B = pyo.RangeSet(0, len(m.data.balance.columns) - 1)

    @m.Constraint(m.K, m.B, doc="D2 [links]")
    def balance(m, k, b):
        return _row(m, m.data.balance, k, b) == float(m.data.demand[k, b]) * m.pace[k]


def add_capacity(m: pyo.ConcreteModel) -> None:
    r"""(D3) In every phase, flows fit on the links, each way.

    .. math:: \sum_{s} f^k_{s,ij} \le n_{ij} \qquad \forall k, i \ne j
    """

    @m.Constraint(m.K, m.E, doc="D3 [links]")
    def capacity(m, k, e):
        return _row(m, m.data.load, k, e) <= m.n[int(m.data.pair[e])]


def add_time(m: pyo.ConcreteModel) -> None:
    r"""(D4) All phases together keep the time left for them, :math:`\sum_k w_{jk} / \lambda_k \le
    1`.

    .. math:: \sum_{k} w_{jk} u_k \le 1 \quad \forall j, \qquad
        u_k \ge 2 / \hat\lambda_k - \lambda_k / \hat\lambda_k^2 \quad \forall k, \hat\lambda_k

    Every tangent holds for all paces, as :math:`1 / \lambda` is convex. With one phase the first is
    exact; with more, recomputation adds the tangents at the paces found until they are in time.
    """
    m.u = pyo.Var(m.K, domain=pyo.NonNegativeReals, doc="[1/links]")
    m.time = pyo.Constraint(range(len(m.data.weight)), rule=_time, doc="D4 [1]")
    m.tangents = pyo.ConstraintList(doc="D4, D6 [1/links]")
    for k, (min_pace, max_pace) in enumerate(zip(m.data.min_paces, m.data.max_paces, strict=True)):
        for pace in first_paces(float(min_pace), float(max_pace)) if min_pace > 0 else ():
            add_tangent(m, k, pace)


def _time(m: pyo.ConcreteModel, j: int) -> pyo.Expression:
    weights = m.data.weight[j].tolist()
    return (
        sum(w * m.u[k] for k, w in enumerate(weights)) <= 1.0
        if any(weights)
        else pyo.Constraint.Skip
    )


def first_paces(min_pace: float, max_pace: float) -> list[float]:
    """Paces whose tangents are nowhere below the time of a phase by more than its longest over the
    square of their number; the slowest comes first.
    """
    # Spaced so that tangents are equally far below 1 / pace between any two of them.
    paces = [min_pace * (TANGENTS / i) ** 2 for i in range(TANGENTS, 0, -1)]
    return [
        pace
        for pace, previous_pace in zip(paces, [0.0, *paces], strict=False)
        if previous_pace < max_pace
    ]


def add_tangent(m: pyo.ConcreteModel, k: int, pace: float) -> None:
    r"""(D6) Cut: a phase takes longer than it turned out to be allowed for.

    .. math:: u_k \ge 2 / \hat\lambda_k - \lambda_k / \hat\lambda_k^2
    """
    m.tangents.add(m.u[k] >= 2.0 / pace - m.pace[k] / pace**2)


def add_whole_ends(m: pyo.ConcreteModel) -> None:
    r"""(D5) A domain has whole links, enough for all it sends; domains of an orbit send alike, so
    all have that many.

    .. math:: \sum_{p} e_{wp} n_p \ge q_w \ge \lambda_k \delta^k_w \qquad \forall k, w
    """

    @m.Constraint(m.W, doc="D5 [links]")
    def ends_of_links(m, w):
        return links_at(m, w) >= m.q[w]

    @m.Constraint(m.K, m.W, doc="D5 [links]")
    def whole_ends(m, k, w):
        return m.q[w] >= float(m.data.sent[k, w]) * m.pace[k]


def add_pace(m: pyo.ConcreteModel) -> None:
    r"""(D7) High paces on links that are given; phases do not disturb each other, so each gets its
    highest.

    .. math:: \max \sum_{k} \lambda_k
    """
    m.cost = pyo.Objective(expr=-sum(m.pace[k] for k in m.K), doc="D7 [links]")


def let_links_be_averages(m: pyo.ConcreteModel) -> None:
    """Links averaged over an orbit need not be whole: a lower bound for all links, symmetric or
    not.
    """
    for p in m.P:
        m.n[p].domain = pyo.NonNegativeReals


def links_at(m: pyo.ConcreteModel, w: int) -> pyo.Expression:
    """The links that end at a domain."""
    ends = m.data.ends[w]
    return sum(int(ends[p]) * m.n[p] for p in np.flatnonzero(ends).tolist())


def _row(m: pyo.ConcreteModel, of: Sparse, k: int, row: int) -> pyo.Expression:
    return sum(
        v * m.f[k, x]
        for x, v in zip(of.columns[row].tolist(), of.values[row].tolist(), strict=True)
    )


LINKS = (add_link_count, add_port_budget, add_balance, add_capacity, add_time, add_whole_ends)
AVERAGES = (*LINKS, let_links_be_averages)
PACE = (add_pace, add_balance, add_capacity)
FORMULATIONS = {"links": LINKS, "averages": AVERAGES, "pace": PACE}
