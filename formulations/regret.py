"""The network of least regret: prices may turn out in several ways, and after each somebody may say
what would have been best.

Regret is linear in each way prices turn out, so its largest value needs one row for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyomo.core as pyo

from formulations import shared
from formulations.shared import Floats, SharedData
from formulations.shared import build as build


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Prices as they may turn out, arrays of shape (F,) as in `SharedData`, and the least cost at
    them.
    """

    fixed: Floats
    uplink: Floats
    spine: Floats
    min_cost: float


@dataclass(frozen=True, kw_only=True)
class RegretData(SharedData):
    """A shared network with the ways its prices may turn out; every regret is below
    `max_regret`.
    """

    scenarios: tuple[Scenario, ...]
    max_regret: float


def add_least_regret(m: pyo.ConcreteModel) -> None:
    r"""(Q0) The largest regret is as small as possible.

    .. math:: \min \delta, \qquad 0 \le \delta \le \bar{\delta}

    with :math:`\bar{\delta}` above the regret of every family at its most uplinks, under any
    prices.
    """
    m.regret = pyo.Var(bounds=(0.0, m.data.max_regret), doc="[cost]")
    m.least_regret = pyo.Objective(expr=m.regret, doc="Q0 [cost]")


def add_regrets(m: pyo.ConcreteModel) -> None:
    r"""(Q1) It is no less than what the network costs beyond the best one, however prices turn out.

    .. math:: \delta \ge \sum_{f} a^q_f y_f + b^q_f u_f + e^q_f s_f - k^q \qquad \forall q
    """
    m.Q = pyo.RangeSet(0, len(m.data.scenarios) - 1)

    @m.Constraint(m.Q, doc="Q1 [cost]")
    def regrets(m, q):
        a = m.data.scenarios[q]
        cost = sum(
            float(a.fixed[f]) * m.y[f] + float(a.uplink[f]) * m.u[f] + float(a.spine[f]) * m.s[f]
            for f in m.F
        )
        return m.regret >= cost - a.min_cost


REGRET = (
    add_least_regret,
    add_regrets,
    *(equation for equation in shared.UPLINKS if equation is not shared.add_cost),
)
FORMULATIONS = {"regret": REGRET}
