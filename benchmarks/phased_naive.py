"""Growth in phases as one would first write it: every line in one program, held apart by large
constants.

Not for use: benchmarks compare it with `formulations.phased`, and tests hold it to the same
optimum.
"""

from __future__ import annotations

from typing import Any

import pyomo.environ as pyo

from formulations.phased import Equation, add_growth, add_one_line, add_spines_of_phases


def add_loose_uplinks(m: pyo.ConcreteModel) -> None:
    """The line that is taken has the uplinks its phases need; the constant is the most uplinks."""
    bounds = [(f, t) for f in m.F for t in m.T]
    m.loose_uplinks = pyo.ConstraintList(doc="[links]")
    for f, t in bounds:
        m.loose_uplinks.add(
            m.u[f, t]
            >= int(m.data.min_uplinks[f, t]) - int(m.data.max_uplinks.max()) * (1 - m.y[f])
        )


def add_loose_purchases(m: pyo.ConcreteModel) -> None:
    """What stands on the line that is taken was bought; the constant is the most that stands on any
    line.
    """
    m.loose_purchases = pyo.ConstraintList(doc="[units]")
    for f in m.F:
        for t in m.T:
            for i in m.I:
                standing, most = _standing(m, f, t, i), float(m.x[t, i].ub)
                if most:
                    bought = sum(m.x[before, i] for before in m.T if before <= t)
                    m.loose_purchases.add(bought >= standing - most * (1 - m.y[f]))


def add_loose_spending(m: pyo.ConcreteModel) -> None:
    """What is bought, with electricity and labour of the line that is taken; the constant is the
    most of all lines.
    """
    d = m.data
    m.extra = pyo.Var(domain=pyo.NonNegativeReals, bounds=(0.0, _most(m)))
    m.loose_extra = pyo.ConstraintList(doc="[cost]")
    for f in m.F:
        run = sum(
            float(d.run[t, i]) * _standing(m, f, t, i) for t in m.T for i in m.I if d.run[t, i]
        )
        labour = sum(float(d.labour[t]) * _added(m, f, t) for t in m.T if t)
        m.loose_extra.add(m.extra >= run + labour - _most(m) * (1 - m.y[f]))
    m.spending = pyo.Objective(
        expr=sum(float(d.price[t, i]) * m.x[t, i] for t in m.T for i in m.I) + m.extra, doc="[cost]"
    )


def _added(m: pyo.ConcreteModel, f: int, t: int) -> Any:
    d = m.data
    return int(d.stood[f, t]) * (m.u[f, t] - m.u[f, t - 1]) + int(d.trunks[f, t]) * m.u[f, t - 1]


def _standing(m: pyo.ConcreteModel, f: int, t: int, i: int) -> Any:
    d = m.data
    return (
        int(d.fixed[f, t, i])
        + int(d.uplink[f, t, i]) * m.u[f, t]
        + int(d.spine[f, t, i]) * m.s[f, t]
    )


def _most(m: pyo.ConcreteModel) -> float:
    """Electricity and labour of no line are more."""
    d = m.data
    run = sum(float(d.run[t, i]) * float(m.x[t, i].ub) for t in m.T for i in m.I)
    links = (d.stood * d.max_uplinks + d.trunks * d.max_uplinks).sum(axis=1).max()
    return run + float(d.labour.max()) * float(links) + 1.0


NAIVE: tuple[Equation, ...] = (
    add_loose_spending,
    add_one_line,
    add_loose_uplinks,
    add_growth,
    add_spines_of_phases,
    add_loose_purchases,
)
