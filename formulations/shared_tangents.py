"""The slowdown of a shared network as the reciprocal of one bandwidth, from below by its tangents.

All families share two variables, the bandwidth of whichever is built and its reciprocal, so that there is one time row
for each workload and none for each context.
"""

from __future__ import annotations

import numpy as np
import pyomo.core as pyo

TANGENTS = 24


def add_bandwidth(m: pyo.ConcreteModel) -> None:
    r"""(M6) The bandwidth beyond a leaf, as a share of that within, is that of the family that is built.

    .. math:: B = \sum_{f \in F : d_f > 0} \frac{u_f}{d_f} + \sum_{f \in F : d_f = 0} y_f

    with :math:`0 \le B \le \overline{B}`, the largest share of any family.
    """
    down = m.data.down
    m.B = pyo.Var(domain=pyo.NonNegativeReals, bounds=(0.0, shares(m)[1]), doc="[1]")
    m.bandwidth = pyo.Constraint(
        expr=sum(m.u[f] * (1 / int(down[f])) if down[f] else m.y[f] for f in m.F) == m.B, doc="M6 [1]"
    )


def add_tangents(m: pyo.ConcreteModel) -> None:
    r"""(M7) The slowdown is at least the reciprocal of the bandwidth: above its tangents at B', 24 in geometric steps.

    .. math:: \rho \ge \frac{2}{B'} - \frac{B}{B'^2} \qquad
        B' = \underline{B} \left( \overline{B} / \underline{B} \right)^{i/23}, \quad 0 \le i < 24

    A tangent lies nowhere above the curve, so no slowdown that there is violates it. The slowdown at the least share
    :math:`\underline{B}` that a family can have bounds the variable: :math:`\rho \le 1 / \underline{B}`.
    """
    least, most = shares(m)
    m.r = pyo.Var(domain=pyo.NonNegativeReals, bounds=(0.0, 1 / least), doc="[1]")
    points = np.geomspace(least, most, TANGENTS if least < most else 1).tolist()
    m.tangents = pyo.Constraint(range(len(points)), rule=lambda m, i: m.r >= _tangent(m, points[i]), doc="M7 [1]")
    m.tangent_cuts = pyo.ConstraintList(doc="M9 [1]")


def add_slowdown_bound(m: pyo.ConcreteModel) -> None:
    r"""(M8) No workload suffers a larger slowdown than its column bears within the time bound.

    .. math:: \rho \le \sum_{c \in C_w} \min\left( r_c, 1 / \underline{B} \right) z_c \qquad \forall w

    A reach beyond the largest slowdown there is says nothing more.
    """
    largest = 1 / shares(m)[0]

    @m.Constraint(range(m.data.workloads), doc="M8 [1]")
    def slowdown_bound(m, w):
        mine = np.flatnonzero(m.data.column_workload == w).tolist()
        if not mine:
            return pyo.Constraint.Skip
        return m.r <= sum(min(float(m.data.reach[c]), largest) * m.z[c] for c in mine)


def add_tangent_cut(m: pyo.ConcreteModel, family: int, uplinks: int) -> None:
    r"""(M9) Cut: the tangent at the bandwidth of a family with u uplinks, where it is exact.

    .. math:: \rho \ge \frac{2}{B'} - \frac{B}{B'^2}, \qquad B' = u / d_f
    """
    down = int(m.data.down[family])
    m.tangent_cuts.add(m.r >= _tangent(m, uplinks / down if down else 1.0))


def _tangent(m: pyo.ConcreteModel, at: float) -> pyo.Expression:
    return 2 / at - m.B * (1 / at**2)


def shares(m: pyo.ConcreteModel) -> tuple[float, float]:
    """The least and the largest bandwidth beyond a leaf that a family can have, as a share of that within."""
    down = m.data.down
    least = (int(m.data.least[f]) / int(down[f]) if down[f] else 1.0 for f in m.F)
    most = (int(m.data.most[f]) / int(down[f]) if down[f] else 1.0 for f in m.F)
    return min(least, default=1.0), max(most, default=1.0)
