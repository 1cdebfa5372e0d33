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
    """A limited resource: its use by each option (O,) and by one channel of each link (E,)."""

    name: str
    use: Floats
    channel: Floats
    cap: float


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
    for add in equations:
        add(m)
    return m


def add_cost(m: pyo.ConcreteModel) -> None:
    r"""(S0) Sites cost what is built there, links what is lit.

    .. math:: \min \sum_{o} k_o z_o + \sum_{e} k_e c_e
    """
    d = m.data
    options_cost = sum(float(d.cost[o]) * m.z[o] for o in m.O)
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

    Exact: the ring is as fast as its slowest link, iteration time never grows with channels, and
    :math:`a_{oe}` is the least number with which the option meets its bound if that link is the
    slowest.
    """

    @m.Constraint(m.S, m.E, doc="S3 [channels]")
    def channels(m, s, e):
        return m.c[e] >= sum(int(m.data.need[o, e]) * m.z[o] for o in m.options_of[s])


def add_limits(m: pyo.ConcreteModel) -> None:
    r"""(S4) Sites and links stay within each limited resource, the power of a site among them.

    .. math:: \sum_{o} b^\ell_o z_o + \sum_{e} b^\ell_e c_e \le \bar{b}^\ell \qquad \forall \ell
    """
    limits = {limit.name: limit for limit in m.data.limits}
    m.L = pyo.Set(initialize=list(limits))

    @m.Constraint(m.L, doc="S4 [of the resource]")
    def limited(m, name):
        of = limits[name]
        options_use = sum(float(of.use[o]) * m.z[o] for o in m.O)
        return options_use + sum(float(of.channel[e]) * m.c[e] for e in m.E) <= of.cap


def add_cut_list(m: pyo.ConcreteModel) -> None:
    """(S6) Room for cuts, which recomputation adds between solves."""
    m.cuts = pyo.ConstraintList(doc="S5, S6 [1]")


def add_choice_cut(m: pyo.ConcreteModel, options: list[int]) -> None:
    r"""(S5) Cut: these options together turned out to exceed a limit.

    .. math:: \sum_{o \in \text{chosen}} z_o \le |S| - 1
    """
    m.cuts.add(sum(m.z[o] for o in options) <= m.data.sites - 1)


RING = (add_cost, add_one_option, add_whole_cluster, add_channels, add_limits, add_cut_list)
FORMULATIONS = {"ring": RING}
