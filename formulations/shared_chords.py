"""The slowdown of a shared network, family by family, from below by chords that are exact at whole uplinks."""

from __future__ import annotations

from itertools import pairwise

import pyomo.core as pyo


def add_slowdown(m: pyo.ConcreteModel) -> None:
    r"""(M3) The slowdown is down-ports over uplinks, exactly at every whole number of uplinks.

    The chord of :math:`d/u` between :math:`i` and :math:`i+1`, in perspective, lies below the curve outside that
    interval:

    .. math:: \rho_f \ge \frac{d_f}{i (i+1)} \left( (2i+1) y_f - u_f \right)
        \qquad \underline{u}_f \le i < \overline{u}_f

    A single number of uplinks needs no chord, :math:`\rho_f \ge d_f / \underline{u}_f \, y_f`, and without uplinks
    :math:`\rho_f \ge y_f`. No chord exceeds the slowdown at the fewest uplinks, which bounds the variable:
    :math:`\rho_f \le \max(1, d_f / \underline{u}_f)`. HiGHS 1.15.1 cuts off optima where it has no such bound.
    """
    m.rho = pyo.Var(m.F, domain=pyo.NonNegativeReals, bounds=lambda m, f: (0.0, _largest_slowdown(m, f)), doc="[1]")
    m.slowdown = pyo.ConstraintList(doc="M3 [1]")
    for f in m.F:
        d, least, most = int(m.data.down[f]), int(m.data.least[f]), int(m.data.most[f])
        if d == 0 or least == most:
            m.slowdown.add(m.rho[f] >= (d / least if d else 1.0) * m.y[f])
        for i, after in pairwise(range(least, most + 1)):
            if d:
                m.slowdown.add(m.rho[f] >= d / (i * after) * ((i + after) * m.y[f] - m.u[f]))


def _largest_slowdown(m: pyo.ConcreteModel, f: int) -> float:
    """The slowdown of a family at its fewest uplinks."""
    down, least = int(m.data.down[f]), int(m.data.least[f])
    return max(1.0, down / least) if down else 1.0


def add_time_bound(m: pyo.ConcreteModel) -> None:
    r"""(M4) No workload suffers a larger slowdown than its column bears within the time bound.

    .. math:: \sum_{f \in F_k} \rho_f \le \sum_{c \in C_{wk}} \min\left( r_c, \bar{d}_k \right) z_c
        \qquad \forall w, k

    with :math:`\bar{d}_k = \max(1, \max_{f \in F_k} d_f)`, the largest slowdown of the context.
    """

    @m.Constraint(m.WK, doc="M4 [1]")
    def time_bound(m, w, k):
        if not m.columns_of[w, k]:
            return pyo.Constraint.Skip
        return sum(m.rho[f] for f in m.families_of[k]) <= sum(
            _bounded_reach(m, c, k) * m.z[c] for c in m.columns_of[w, k]
        )


def _bounded_reach(m: pyo.ConcreteModel, c: int, k: int) -> float:
    """No family of a context slows down by more than its down-ports, so a larger reach says nothing more."""
    largest = max((float(m.data.down[f]) for f in m.families_of[k]), default=1.0)
    return min(float(m.data.reach[c]), max(largest, 1.0))
