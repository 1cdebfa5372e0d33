"""The best design of a shared network by a pass over all families, for a search to start from."""

from __future__ import annotations

import numpy as np
import pyomo.environ as pyo

from formulations.shared_data import Ints, SharedData


def cheapest_design(data: SharedData) -> tuple[int, int] | None:
    """The family, and its uplinks, of least cost with as few uplinks as all workloads need; None where none serves.

    Cost and use of a limited resource never fall as uplinks are added, so no other number of uplinks is better.
    """
    needed = _needed(data)[data.context]
    uplinks = np.maximum(data.least, np.minimum(needed, data.most))
    spines = -(-data.leaves * uplinks // data.radix)
    serves = needed <= data.most
    for r in data.resources:
        serves &= r.fixed + r.uplink * uplinks + r.spine * spines <= r.cap
    if not serves.any():
        return None
    cost = data.fixed + data.uplink * uplinks + data.spine * spines
    f = int(np.argmin(np.where(serves, cost, np.inf)))
    return f, int(uplinks[f])


def _needed(data: SharedData) -> Ints:
    """The least uplinks with which every workload has a column in time, for each context; shape (K,)."""
    never = np.iinfo(np.int64).max
    least = np.full((data.workloads, data.contexts), never)
    np.minimum.at(least, (data.column_workload, data.column_context), data.need)
    return np.asarray(least.max(axis=0, initial=0), dtype=np.int64)


def set_design(m: pyo.ConcreteModel, family: int, uplinks: int) -> None:
    """Give the whole variables of a model the values of a design; others have none."""
    data = m.data
    m.y.set_values({f: int(f == family) for f in m.F})
    m.u.set_values({f: uplinks * (f == family) for f in m.F})
    spines = -(-int(data.leaves[family]) * uplinks // int(data.radix[family]))
    m.s.set_values({f: spines * (f == family) for f in m.F})
    k = int(data.context[family])
    used = {min(m.columns_of[w, k], key=lambda c: int(data.need[c])) for w in range(data.workloads)}
    m.z.set_values({c: int(c in used) for c in m.C})
