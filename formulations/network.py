r"""One network, one or more workloads that use it in turn: data, equations and the formulations
made of them.

`NETWORK` states what a mapping demands of the network in whole links. `FRONT` has no mappings: what
they demand stands in the fewest uplinks of each family, which change from bound to bound.

Symbols:

- :math:`f \in F` ``m.F``: families, alike but for their uplinks
- :math:`k \in K` ``m.K``: contexts, which mappings tell apart
- :math:`F_k` ``families_of`` (over K): families of a context
- :math:`c \in C` ``m.C``: columns: a workload's mapping in a context
- :math:`w` ``m.WK``: workloads, paired with contexts
- :math:`C_{wk}` ``columns_of`` (over W x K): columns of a workload in a context
- :math:`\ell \in L` ``m.L``: limits on a resource
- :math:`y_f` ``m.y`` (over F; 0 or 1): family f is built
- :math:`u_f` ``m.u`` (over F; links): uplinks of a leaf
- :math:`s_f` ``m.s`` (over F; switches): spines of one plane
- :math:`z_c` ``m.z`` (over C; 0 or 1): column c is used
- :math:`a_f` ``fixed`` (over F; cost): price of a family
- :math:`b_f` ``uplink`` (over F; cost): price of an uplink of every leaf
- :math:`e_f` ``spine`` (over F; cost): price of a spine of every plane
- :math:`\underline{u}_f` ``min_uplinks`` (over F; links): fewest uplinks of a leaf
- :math:`\overline{u}_f` ``max_uplinks`` (over F; links): most uplinks of a leaf
- :math:`N_f` ``leaves`` (over F; switches): leaves of one plane, 0 without spines
- :math:`R_f` ``radix`` (over F; ports): ports of a spine for leaves
- :math:`n_c` ``need`` (over C; links): least uplinks with which c meets its bound
- :math:`a^\ell_f, b^\ell_f, e^\ell_f` ``resources`` (over L x F; resource): use of a resource, as
  the cost
- :math:`\bar{b}^\ell` ``cap`` (over L; resource): limit on a resource
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyomo.core as pyo
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Resource:
    """Use of one limited resource by families, affine as their cost; arrays of shape (F,)."""

    name: str
    fixed: Floats
    uplink: Floats
    spine: Floats
    cap: float


@dataclass(frozen=True, kw_only=True)
class NetworkData:
    """One network for workloads that use it in turn.

    Arrays named after families have shape (F,), those of columns (C,). `leaves` is 0 for a family
    without spines.
    """

    workloads: int
    contexts: int
    fixed: Floats
    uplink: Floats
    spine: Floats
    min_uplinks: Ints
    max_uplinks: Ints
    leaves: Ints
    radix: Ints
    context: Ints
    column_workload: Ints
    column_context: Ints
    need: Ints
    resources: tuple[Resource, ...] = ()


Equation = Callable[[pyo.ConcreteModel], None]


def build(data: NetworkData, equations: tuple[Equation, ...]) -> pyo.ConcreteModel:
    """A model with the variables of the shared network and the given equations."""
    m = pyo.ConcreteModel(name="network")
    m.data = data
    m.F = pyo.RangeSet(0, len(data.fixed) - 1)
    m.C = pyo.RangeSet(0, len(data.need) - 1)
    m.K = pyo.RangeSet(0, data.contexts - 1)
    m.WK = pyo.Set(
        initialize=[(w, k) for w in range(data.workloads) for k in range(data.contexts)], dimen=2
    )
    m.families_of = _groups(data.context, range(data.contexts))
    pairs = list(zip(data.column_workload.tolist(), data.column_context.tolist(), strict=True))
    m.columns_of = _groups(pairs, list(m.WK))
    m.y = pyo.Var(m.F, domain=pyo.Binary, doc="family is built")
    m.u = pyo.Var(
        m.F,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda _, f: (0, int(data.max_uplinks[f])),
        doc="[links]",
    )
    m.s = pyo.Var(
        m.F,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda _, f: (0, spines_at(data, f, int(data.max_uplinks[f]))),
        doc="[switches]",
    )
    m.z = pyo.Var(m.C, domain=pyo.Binary, doc="column is used")
    for add in equations:
        add(m)
    return m


def spines_at(data: NetworkData, f: int, uplinks: int) -> int:
    """Spines of a plane that so many uplinks of each leaf need."""
    return math.ceil(int(data.leaves[f]) * uplinks / int(data.radix[f]))


def _groups(keys: Iterable[Any], values: Iterable[Any]) -> dict[Any, list[int]]:
    """The positions of each value among the keys."""
    groups: dict[Any, list[int]] = {value: [] for value in values}
    for position, key in enumerate(keys):
        groups[key].append(position)
    return groups


def cheapest_design(data: NetworkData) -> tuple[int, int] | None:
    """The family, and its uplinks, of least cost with as few uplinks as all workloads need; None
    where none serves.

    Cost and use of a limited resource never fall as uplinks are added, so no other number of
    uplinks is better.
    """
    # the least uplinks with which every workload has a column in time, for each context
    least = np.full((data.workloads, data.contexts), np.iinfo(np.int64).max)
    np.minimum.at(least, (data.column_workload, data.column_context), data.need)
    uplinks_needed = least.max(axis=0, initial=0)[data.context]
    # A family that cannot serve still gets a number within its range, which `serves` then rules
    # out.
    uplinks = np.maximum(data.min_uplinks, np.minimum(uplinks_needed, data.max_uplinks))
    spines = -(-data.leaves * uplinks // data.radix)
    serves = uplinks_needed <= data.max_uplinks
    for r in data.resources:
        serves &= r.fixed + r.uplink * uplinks + r.spine * spines <= r.cap
    if not serves.any():
        return None
    cost = data.fixed + data.uplink * uplinks + data.spine * spines
    f = int(np.argmin(np.where(serves, cost, np.inf)))
    return f, int(uplinks[f])


def set_design(m: pyo.ConcreteModel, family: int, uplinks: int) -> None:
    """Give the whole variables of a model the values of a design; others have none."""
    data = m.data
    m.y.set_values({f: int(f == family) for f in m.F})
    m.u.set_values({f: uplinks * (f == family) for f in m.F})
    spines = -(-int(data.leaves[family]) * uplinks // int(data.radix[family]))
    m.s.set_values({f: spines * (f == family) for f in m.F})
    k = int(data.context[family])
    # Any column that serves would do; the one that needs fewest uplinks surely does.
    columns_used = {
        min(m.columns_of[w, k], key=lambda c: int(data.need[c])) for w in range(data.workloads)
    }
    m.z.set_values({c: int(c in columns_used) for c in m.C})


def add_cost(m: pyo.ConcreteModel) -> None:
    r"""(N0) The network costs what its switches, links and ends cost.

    .. math:: \min \sum_{f} a_f y_f + b_f u_f + e_f s_f
    """
    d = m.data
    m.cost = pyo.Objective(
        expr=sum(
            float(d.fixed[f]) * m.y[f] + float(d.uplink[f]) * m.u[f] + float(d.spine[f]) * m.s[f]
            for f in m.F
        ),
        doc="N0 [cost]",
    )


def add_one_family(m: pyo.ConcreteModel) -> None:
    r"""(N1) One family is built.

    .. math:: \sum_{f} y_f = 1
    """
    m.one_family = pyo.Constraint(expr=sum(m.y[f] for f in m.F) == 1, doc="N1 [1]")


def add_uplink_range(m: pyo.ConcreteModel) -> None:
    r"""(N2) Only the family that is built has uplinks, within its range.

    .. math:: \underline{u}_f y_f \le u_f \le \overline{u}_f y_f \qquad \forall f \in F
    """

    @m.Constraint(m.F, doc="N2 [links]")
    def least_uplinks(m, f):
        return m.u[f] >= int(m.data.min_uplinks[f]) * m.y[f]

    @m.Constraint(m.F, doc="N2 [links]")
    def most_uplinks(m, f):
        return m.u[f] <= int(m.data.max_uplinks[f]) * m.y[f]


def add_spine_ports(m: pyo.ConcreteModel) -> None:
    r"""(N3) The spines of a plane have a port for every uplink of its leaves; families without
    spines have none.

    .. math:: R_f s_f \ge N_f u_f \quad \forall f \in F : N_f > 0,
        \qquad s_f = 0 \quad \forall f \in F : N_f = 0
    """

    @m.Constraint(m.F, doc="N3 [ports]")
    def spine_ports(m, f):
        if m.data.leaves[f] == 0:
            return m.s[f] == 0
        return int(m.data.radix[f]) * m.s[f] >= int(m.data.leaves[f]) * m.u[f]


def add_least_spines(m: pyo.ConcreteModel) -> None:
    r"""(N6) The family that is built has the spines that its fewest uplinks need.

    .. math:: s_f \ge \left\lceil \frac{N_f \underline{u}_f}{R_f} \right\rceil y_f
        \qquad \forall f \in F : N_f > 0

    N2 and N3 say so of whole numbers; of fractions they do not, and with this row the cheapest
    fractions are whole.
    """

    @m.Constraint(m.F, doc="N6 [switches]")
    def least_spines(m, f):
        if m.data.leaves[f] == 0:
            return pyo.Constraint.Skip
        return m.s[f] >= spines_at(m.data, f, int(m.data.min_uplinks[f])) * m.y[f]


def add_mapping(m: pyo.ConcreteModel) -> None:
    r"""(M1) Each workload uses one column, of the context of the family that is built.

    .. math:: \sum_{c \in C_{wk}} z_c = \sum_{f \in F_k} y_f \qquad \forall w, k
    """

    @m.Constraint(m.WK, doc="M1 [1]")
    def mapping(m, w, k):
        return sum(m.z[c] for c in m.columns_of[w, k]) == sum(m.y[f] for f in m.families_of[k])


def add_uplinks_demanded(m: pyo.ConcreteModel) -> None:
    r"""(M2) Leaves have the uplinks that the used columns need to meet their bounds.

    .. math:: \sum_{f \in F_k} u_f \ge \sum_{c \in C_{wk}} n_c z_c \qquad \forall w, k

    Exact for any iteration time that does not grow with uplinks: :math:`n_c` is computed from the
    model itself.
    """

    @m.Constraint(m.WK, doc="M2 [links]")
    def uplinks_demanded(m, w, k):
        if not m.columns_of[w, k]:
            return pyo.Constraint.Skip
        return sum(m.u[f] for f in m.families_of[k]) >= sum(
            int(m.data.need[c]) * m.z[c] for c in m.columns_of[w, k]
        )


def add_limits(m: pyo.ConcreteModel) -> None:
    r"""(N4) What is built stays within each limited resource.

    .. math:: \sum_{f} a^\ell_f y_f + b^\ell_f u_f + e^\ell_f s_f \le \bar{b}^\ell
        \qquad \forall \ell \in L
    """
    resources = {resource.name: resource for resource in m.data.resources}
    m.L = pyo.Set(initialize=list(resources))

    @m.Constraint(m.L, doc="N4 [of the resource]")
    def limits(m, name):
        r = resources[name]
        use = sum(
            float(r.fixed[f]) * m.y[f] + float(r.uplink[f]) * m.u[f] + float(r.spine[f]) * m.s[f]
            for f in m.F
        )
        return use <= r.cap


def add_cut_list(m: pyo.ConcreteModel) -> None:
    """(M5, N5) Room for cuts, which recomputation adds between solves."""
    m.cuts = pyo.ConstraintList(doc="M5, N5 [links]")


def add_uplink_cut(m: pyo.ConcreteModel, column: int, uplinks: int) -> None:
    r"""(M5) Cut: column c turned out to need more uplinks than the model believed.

    .. math:: \sum_{f \in F_k} u_f \ge n'_c z_c
    """
    k = int(m.data.column_context[column])
    m.cuts.add(sum(m.u[f] for f in m.families_of[k]) >= uplinks * m.z[column])


def add_limit_cut(m: pyo.ConcreteModel, family: int, uplinks: int) -> None:
    r"""(N5) Cut: family f with more than u uplinks turned out to exceed a limit; use never falls
    with uplinks.

    .. math:: u_f \le u \, y_f
    """
    m.cuts.add(m.u[family] <= uplinks * m.y[family])


NETWORK = (
    add_cost,
    add_one_family,
    add_uplink_range,
    add_spine_ports,
    add_mapping,
    add_limits,
    add_cut_list,
    add_uplinks_demanded,
)
FRONT = (add_cost, add_one_family, add_uplink_range, add_spine_ports, add_least_spines)
FORMULATIONS = {"network": NETWORK}
