r"""A cluster at several sites whose gradients go round one ring: equations and the formulation made
of them.

Which sites take part, and in which order the ring joins them, is decided outside: one model for
each ring.

Symbols:

- :math:`o \in O, O_s` ``m.O``: options; those of a site
- :math:`s` ``m.S``: sites of the ring
- :math:`e` ``m.E``: links of the ring
- :math:`\ell` ``m.L``: limited resources
- :math:`z_o` ``m.z`` (over O; 0 or 1): option o is chosen
- :math:`c_e` ``m.c`` (over E; channels): channels lit on a link
- :math:`k_o, k_e` ``cost, channel`` (over O, E; cost): price of an option, of a channel
- :math:`n_o, n` ``share, shares`` (over O; shares): shares of an option, of the cluster
- :math:`a_{oe}` ``need`` (over O x E; channels): least channels with which o is in time
- :math:`b^\ell_o, b^\ell_e` ``use, channel`` (over L x O; resource): use by an option, by a
  channel
- :math:`\bar{b}^\ell` ``cap`` (over L; resource): limit on a resource
- :math:`s \in B` ``m.B``: sites with borders; :math:`E_s` links that end there
- :math:`b_s` ``m.b`` (over B; switches): switches of a border
- :math:`k_s, b^\ell_s` ``cost, switch`` (over B; cost, resource): price and use of one
- :math:`p_o, q_e, r` ``ports, channel_ports, radix`` (over O, E; ports): of option, channel, switch
- :math:`h_o, g_e` ``links, modules`` (over O, E; links): from leaves, of a channel
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyomo.core as pyo
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SiteLimit:
    """A limited resource: its use by each option (O,), by one channel of each link (E,) and by a
    border switch of each site (S,), if there are borders.
    """

    name: str
    use: Floats
    channel: Floats
    cap: float
    switch: Floats | None = None


@dataclass(frozen=True, kw_only=True)
class Borders:
    """Switches of each site in which links of its option and channels of its links end.

    Options have `ports` there for `links` (O,), a channel `channel_ports` for `modules` (E,).
    `ends` (S, E) says which links end at a site, `cost` (S,) what one of the switches with `radix`
    ports adds to the objective.
    """

    radix: int
    cost: Floats
    ports: Ints
    links: Ints
    channel_ports: Ints
    modules: Ints
    ends: NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class RingData:
    """Options of sites, one of which each site of the ring gets, and the links of the ring.

    Arrays of shape (O,) belong to options: the site, its shares, its objective. `need` (O, E) holds
    the channels with which an option meets its bound on each link. Links have the objective of one
    channel `channel` (E,) and at most `max_channels` (E,) of them.
    """

    sites: int
    shares: int
    site: Ints
    share: Ints
    cost: Floats
    need: Ints
    channel: Floats
    max_channels: Ints
    limits: tuple[SiteLimit, ...] = ()
    borders: Borders | None = None


Equation = Callable[[pyo.ConcreteModel], None]


def build(data: RingData, equations: tuple[Equation, ...]) -> pyo.ConcreteModel:
    """A model with the variables of the sites of one ring and the given equations."""
    m = pyo.ConcreteModel(name="ring")
    m.data = data
    m.O = pyo.RangeSet(0, len(data.cost) - 1)
    m.S = pyo.RangeSet(0, data.sites - 1)
    m.E = pyo.RangeSet(0, len(data.channel) - 1)
    m.options_of = [np.flatnonzero(data.site == s).tolist() for s in m.S]
    m.z = pyo.Var(m.O, domain=pyo.Binary, doc="option is chosen")
    m.c = pyo.Var(
        m.E,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda m, e: (0, int(data.max_channels[e])),
        doc="[channels]",
    )
    m.B = pyo.RangeSet(0, data.sites - 1 if data.borders else -1)
    m.b = pyo.Var(m.B, domain=pyo.NonNegativeIntegers, doc="[switches]")
    for add in equations:
        add(m)
    return m


def add_cost(m: pyo.ConcreteModel) -> None:
    r"""(S0) Sites cost what is built there with the switches of their borders, links what is lit.

    .. math:: \min \sum_{o} k_o z_o + \sum_{e} k_e c_e + \sum_{s \in B} k_s b_s
    """
    d = m.data
    options_cost = sum(float(d.cost[o]) * m.z[o] for o in m.O)
    options_cost += sum(float(d.borders.cost[s]) * m.b[s] for s in m.B)
    m.cost = pyo.Objective(
        expr=options_cost + sum(float(d.channel[e]) * m.c[e] for e in m.E), doc="S0 [cost]"
    )


def add_one_option(m: pyo.ConcreteModel) -> None:
    r"""(S1) Each site of the ring gets one option.

    .. math:: \sum_{o \in O_s} z_o = 1 \qquad \forall s
    """

    @m.Constraint(m.S, doc="S1 [1]")
    def one_option(m, s):
        return sum(m.z[o] for o in m.options_of[s]) == 1


def add_whole_cluster(m: pyo.ConcreteModel) -> None:
    r"""(S2) Sites take all shares of GPUs and batch.

    .. math:: \sum_{o} n_o z_o = n
    """
    shares_taken = sum(int(m.data.share[o]) * m.z[o] for o in m.O)
    m.whole_cluster = pyo.Constraint(expr=shares_taken == m.data.shares, doc="S2 [shares]")


def add_channels(m: pyo.ConcreteModel) -> None:
    r"""(S3) Every link of the ring has the channels that each site needs to meet the time bound.

    .. math:: c_e \ge \sum_{o \in O_s} a_{oe} z_o \qquad \forall s, e
    """

    @m.Constraint(m.S, m.E, doc="S3 [channels]")
    def channels(m, s, e):
        return m.c[e] >= sum(int(m.data.need[o, e]) * m.z[o] for o in m.options_of[s])


def add_limits(m: pyo.ConcreteModel) -> None:
    r"""(S4) Sites and links stay within each limited resource, the power of a site among them.

    .. math:: \sum_{o} b^\ell_o z_o + \sum_{e} b^\ell_e c_e + \sum_{s \in B} b^\ell_s b_s
        \le \bar{b}^\ell \qquad \forall \ell
    """
    limits = {limit.name: limit for limit in m.data.limits}
    m.L = pyo.Set(initialize=list(limits))

    @m.Constraint(m.L, doc="S4 [of the resource]")
    def limited(m, name):
        of = limits[name]
        options_use = sum(float(of.use[o]) * m.z[o] for o in m.O)
        options_use += sum(float(of.switch[s]) * m.b[s] for s in m.B)
        return options_use + sum(float(of.channel[e]) * m.c[e] for e in m.E) <= of.cap


def add_border_switches(m: pyo.ConcreteModel) -> None:
    r"""(S7) A border has ports for all that ends there.

    .. math:: r\, b_s \ge \sum_{o \in O_s} p_o z_o + \sum_{e \in E_s} q_e c_e \qquad
        \forall s \in B
    """
    of = m.data.borders

    @m.Constraint(m.B, doc="S7 [ports]")
    def border_switches(m, s):
        taken = sum(int(of.ports[o]) * m.z[o] for o in m.options_of[s])
        taken += sum(int(of.channel_ports[e]) * m.c[e] for e in m.E if of.ends[s, e])
        return of.radix * m.b[s] >= taken


def add_border_links(m: pyo.ConcreteModel) -> None:
    r"""(S8) A border has a link from a leaf for each module of a channel.

    .. math:: \sum_{e \in E_s} g_e c_e \le \sum_{o \in O_s} h_o z_o \qquad \forall s \in B
    """
    of = m.data.borders

    @m.Constraint(m.B, doc="S8 [links]")
    def border_links(m, s):
        lit = sum(int(of.modules[e]) * m.c[e] for e in m.E if of.ends[s, e])
        return lit <= sum(int(of.links[o]) * m.z[o] for o in m.options_of[s])


def add_cut_list(m: pyo.ConcreteModel) -> None:
    """(S6) Room for cuts, which recomputation adds between solves."""
    m.cuts = pyo.ConstraintList(doc="S5, S6 [1]")


def add_choice_cut(m: pyo.ConcreteModel, options: list[int]) -> None:
    r"""(S5) Cut: these options together turned out to exceed a limit.

    .. math:: \sum_{o \in \text{chosen}} z_o \le |S| - 1
    """
    m.cuts.add(sum(m.z[o] for o in options) <= m.data.sites - 1)


RING = (
    add_cost,
    add_one_option,
    add_whole_cluster,
    add_channels,
    add_limits,
    add_border_switches,
    add_border_links,
    add_cut_list,
)
FORMULATIONS = {"ring": RING}
