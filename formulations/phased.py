"""A cluster that grows in phases: what to buy now and what later.

A line is a network that is taken once and then grows: its leaves, and what joins them, are known
for every phase, but for the uplinks of a leaf and the spines of a plane. Units of an item may be
bought in any phase up to the one that needs them. Nothing is thrown away, so uplinks never fall.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.core as pyo
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class PhasedData:
    """Lines of growth, of which one is taken, and what their phases need.

    Shapes: (F, T) for `min_uplinks`, `max_uplinks` (of a leaf), `leaves` (of one plane, 0 without
    spines), `ports` (of a spine), `stood` (leaves of all planes that stood before a phase),
    `trunks` (links up that are added to switches that stood before, for each uplink of the phase
    before); (F, T, I) for `fixed`, `uplink` and `spine`, units of an item in place; (T, I) for
    `price` of a unit bought in a phase and `run` of a unit in place; (T,) for `labour`, of a link
    added to a switch that stood before.
    """

    min_uplinks: Ints
    max_uplinks: Ints
    leaves: Ints
    ports: Ints
    stood: Ints
    trunks: Ints
    fixed: Ints
    uplink: Ints
    spine: Ints
    price: Floats
    run: Floats
    labour: Floats


Equation = Callable[[pyo.ConcreteModel], None]


def build(data: PhasedData, equations: tuple[Equation, ...]) -> pyo.ConcreteModel:
    """A model with the variables of a cluster that grows and the given equations."""
    m = pyo.ConcreteModel(name="phased")
    m.data = data
    lines, phases, items = data.fixed.shape
    m.F = pyo.RangeSet(0, lines - 1)
    m.T = pyo.RangeSet(0, phases - 1)
    m.I = pyo.RangeSet(0, items - 1)
    spines = -(-data.leaves * data.max_uplinks // data.ports)
    # The most that any line could have in place bounds what is bought: nothing is bought to be
    # thrown away.
    units = (
        data.fixed + data.uplink * data.max_uplinks[:, :, None] + data.spine * spines[:, :, None]
    ).max(axis=(0, 1))
    m.y = pyo.Var(m.F, domain=pyo.Binary, doc="line is taken")
    m.u = pyo.Var(
        m.F,
        m.T,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda _, f, t: (0, int(data.max_uplinks[f, t])),
        doc="[links]",
    )
    m.s = pyo.Var(
        m.F,
        m.T,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda _, f, t: (0, int(spines[f, t])),
        doc="[switches]",
    )
    m.x = pyo.Var(
        m.T,
        m.I,
        domain=pyo.NonNegativeReals,
        bounds=lambda _, t, i: (0, int(units[i])),
        doc="[units]",
    )
    for add in equations:
        add(m)
    return m


def in_place(m: pyo.ConcreteModel, t: int, i: int) -> Any:
    """Units of an item that stand in a phase."""
    d = m.data
    return sum(
        int(number) * var
        for f in m.F
        for number, var in (
            (d.fixed[f, t, i], m.y[f]),
            (d.uplink[f, t, i], m.u[f, t]),
            (d.spine[f, t, i], m.s[f, t]),
        )
        if number
    )


def retrofitted(m: pyo.ConcreteModel, t: int) -> Any:
    """Links added in a phase to switches that stood before it."""
    d = m.data
    return sum(
        int(d.stood[f, t]) * (m.u[f, t] - m.u[f, t - 1]) + int(d.trunks[f, t]) * m.u[f, t - 1]
        for f in m.F
        if t > 0
    )


def add_spending(m: pyo.ConcreteModel) -> None:
    r"""(E0) What is bought, what stands and the labour on what stood cost as little as possible
    together.

    .. math:: \min \sum_{t} \left( \sum_{i} p_{ti} x_{ti} + e_{ti} n_{ti} \right) + \rho_t r_t

    with units in place :math:`n_{ti} = \sum_{f} a_{fti} y_f + b_{fti} u_{ft} + c_{fti} s_{ft}` and
    links added to switches that stood before :math:`r_t = \sum_{f} \ell_{ft} (u_{ft} - u_{f,t-1}) +
    w_{ft} u_{f,t-1}`.
    """
    d = m.data
    m.spending = pyo.Objective(
        expr=sum(float(d.price[t, i]) * m.x[t, i] for t in m.T for i in m.I)
        + sum(float(d.run[t, i]) * in_place(m, t, i) for t in m.T for i in m.I if d.run[t, i])
        + sum(float(d.labour[t]) * retrofitted(m, t) for t in m.T if d.labour[t]),
        doc="E0 [cost]",
    )


def add_one_line(m: pyo.ConcreteModel) -> None:
    r"""(E1) One line is taken.

    .. math:: \sum_{f} y_f = 1
    """
    m.one_line = pyo.Constraint(expr=sum(m.y[f] for f in m.F) == 1, doc="E1 [1]")


def add_uplinks_of_phases(m: pyo.ConcreteModel) -> None:
    r"""(E2) Only the line taken has uplinks: in every phase enough for its bounds, and no more than
    ports allow.

    .. math:: \underline{u}_{ft} y_f \le u_{ft} \le \overline{u}_{ft} y_f \qquad \forall f, t
    """

    @m.Constraint(m.F, m.T, doc="E2 [links]")
    def least_uplinks(m, f, t):
        return m.u[f, t] >= int(m.data.min_uplinks[f, t]) * m.y[f]

    @m.Constraint(m.F, m.T, doc="E2 [links]")
    def most_uplinks(m, f, t):
        return m.u[f, t] <= int(m.data.max_uplinks[f, t]) * m.y[f]


def add_growth(m: pyo.ConcreteModel) -> None:
    r"""(E3) Uplinks that stand are not taken down.

    .. math:: u_{ft} \ge u_{f,t-1} \qquad \forall f, t > 1
    """

    @m.Constraint(m.F, m.T, doc="E3 [links]")
    def growth(m, f, t):
        return m.u[f, t] >= m.u[f, t - 1] if t > 0 else pyo.Constraint.Skip


def add_spines_of_phases(m: pyo.ConcreteModel) -> None:
    r"""(E4) In every phase the spines of a plane have a port for every uplink; without spines there
    are none.

    .. math:: R_{ft} s_{ft} \ge N_{ft} u_{ft} \quad \forall f, t : N_{ft} > 0, \qquad
        s_{ft} = 0 \quad \forall f, t : N_{ft} = 0
    """

    @m.Constraint(m.F, m.T, doc="E4 [ports]")
    def spines_of_phases(m, f, t):
        if m.data.leaves[f, t] == 0:
            return m.s[f, t] == 0
        return int(m.data.ports[f, t]) * m.s[f, t] >= int(m.data.leaves[f, t]) * m.u[f, t]


def add_purchases(m: pyo.ConcreteModel) -> None:
    r"""(E5) What stands in a phase was bought in it or before.

    .. math:: \sum_{\tau \le t} x_{\tau i} \ge n_{ti} \qquad \forall t, i
    """

    @m.Constraint(m.T, m.I, doc="E5 [units]")
    def purchases(m, t, i):
        units = in_place(m, t, i)
        if isinstance(units, int):
            return pyo.Constraint.Skip
        return sum(m.x[phase, i] for phase in m.T if phase <= t) >= units


PHASES = (
    add_spending,
    add_one_line,
    add_uplinks_of_phases,
    add_growth,
    add_spines_of_phases,
    add_purchases,
)
FORMULATIONS = {"phases": PHASES}
