r"""Routes of least worst load in a two-layer Clos: equations and the formulation made of them.

Loads depend on how many flows a pair of leaves sends through a core, and not on which: flows of a
pair are equal, and any way to deal them out to the cores has the same loads. So one whole variable
for each pair and core is as exact as a binary for each flow and core, without the symmetry between
a pair's flows.

Symbols:

- :math:`p = (s, d) \in P` ``m.P``: ordered pairs of leaves with flows
- :math:`m \in M` ``m.M``: cores
- :math:`M_p` ``cores_of`` (over P): cores with links to both leaves
- :math:`x_{pm}` ``m.x`` (over P x M; flows): flows of a pair through a core
- :math:`\omega` ``m.worst`` (1/U): flows per link on the worst bundle
- :math:`n_p` ``flows`` (over P; flows): flows of a pair
- :math:`e_{im}` ``step`` (over L x M; 1/U): load of a bundle by one flow, U / links
- :math:`\underline\omega` ``min_load`` (1/U): least load of the worst bundle
- :math:`\bar\omega` ``max_load`` (1/U): most load of the worst bundle
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyomo.core as pyo
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class RoutingData:
    """Flows between pairs of leaves, and bundles of links between leaves and cores.

    `src`, `dst` and `flows` have shape (pairs,): leaves of a pair and flows between them, at least
    1. `step` has shape (leaves, cores): what one flow adds to the load of a bundle, U over its
    links, 0 where it has none; U is a common multiple of the numbers of links, so that loads are
    whole. `min_load` and `max_load` bound the worst load.
    """

    src: Ints
    dst: Ints
    flows: Ints
    step: Ints
    min_load: int
    max_load: int


Equation = Callable[[pyo.ConcreteModel], None]


def build(data: RoutingData, equations: tuple[Equation, ...]) -> pyo.ConcreteModel:
    """A model with the variables of a routing problem and the given equations."""
    m = pyo.ConcreteModel(name="routing")
    m.data = data
    m.P = pyo.RangeSet(0, len(data.flows) - 1)
    m.M = pyo.RangeSet(0, data.step.shape[1] - 1)
    # A flow needs a link up at its source and one down at its target, and a core has both or is of
    # no use to the pair.
    has_links = (data.step[data.src] > 0) & (data.step[data.dst] > 0)
    m.cores_of = [np.flatnonzero(row).tolist() for row in has_links]
    m.pairs_from, m.pairs_to = ({}, {})
    for p, cores in enumerate(m.cores_of):
        for core in cores:
            m.pairs_from.setdefault((int(data.src[p]), core), []).append(p)
            m.pairs_to.setdefault((int(data.dst[p]), core), []).append(p)
    m.PM = pyo.Set(initialize=[(p, core) for p in m.P for core in m.cores_of[p]], dimen=2)
    m.x = pyo.Var(
        m.PM,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda m, p, k: (0, int(data.flows[p])),
        doc="[flows]",
    )
    m.worst = pyo.Var(domain=pyo.NonNegativeIntegers, doc="[1/U]")
    for add in equations:
        add(m)
    return m


def add_worst_load(m: pyo.ConcreteModel) -> None:
    r"""(R0) The worst bundle has as few flows per link as possible.

    .. math:: \min \omega
    """
    m.worst_load = pyo.Objective(expr=m.worst, doc="R0 [1/U]")


def add_every_flow(m: pyo.ConcreteModel) -> None:
    r"""(R1) Every flow takes a core that both its leaves have links to.

    .. math:: \sum_{m \in M_p} x_{pm} = n_p \qquad \forall p \in P
    """

    @m.Constraint(m.P, doc="R1 [flows]")
    def every_flow(m, p):
        return sum(m.x[p, core] for core in m.cores_of[p]) == int(m.data.flows[p])


def add_load_up(m: pyo.ConcreteModel) -> None:
    r"""(R2) No bundle from a leaf up to a core has more than the worst load.

    .. math:: e_{im} \sum_{p: s(p) = i} x_{pm} \le \omega \qquad \forall i, m
    """

    @m.Constraint(list(m.pairs_from), doc="R2 [1/U]")
    def load_up(m, leaf, core):
        return (
            int(m.data.step[leaf, core]) * sum(m.x[p, core] for p in m.pairs_from[leaf, core])
            <= m.worst
        )


def add_load_down(m: pyo.ConcreteModel) -> None:
    r"""(R3) No bundle from a core down to a leaf has more than the worst load.

    .. math:: e_{im} \sum_{p: d(p) = i} x_{pm} \le \omega \qquad \forall i, m
    """

    @m.Constraint(list(m.pairs_to), doc="R3 [1/U]")
    def load_down(m, leaf, core):
        return (
            int(m.data.step[leaf, core]) * sum(m.x[p, core] for p in m.pairs_to[leaf, core])
            <= m.worst
        )


def add_worst_range(m: pyo.ConcreteModel) -> None:
    r"""(R4) The worst load is at least what some leaf's flows need, and better than what is known.

    .. math:: \underline\omega \le \omega \le \bar\omega
    """
    m.worst_range = pyo.Constraint(
        expr=pyo.inequality(m.data.min_load, m.worst, m.data.max_load), doc="R4 [1/U]"
    )


ROUTES = (add_worst_load, add_every_flow, add_load_up, add_load_down, add_worst_range)
