"""The data and the variables of the shared network, which all its formulations have in common."""

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
class SharedData:
    """One network for workloads that use it in turn.

    Arrays named after families have shape (F,), those of columns (C,). `leaves` is 0 for a family without spines.
    """

    workloads: int
    contexts: int
    fixed: Floats
    uplink: Floats
    spine: Floats
    least: Ints
    most: Ints
    leaves: Ints
    radix: Ints
    context: Ints
    column_workload: Ints
    column_context: Ints
    need: Ints
    resources: tuple[Resource, ...] = ()


Equation = Callable[[pyo.ConcreteModel], None]


def build(data: SharedData, equations: tuple[Equation, ...]) -> pyo.ConcreteModel:
    """A model with the variables of the shared network and the given equations."""
    m = pyo.ConcreteModel(name="shared")
    m.data = data
    m.F = pyo.RangeSet(0, len(data.fixed) - 1)
    m.C = pyo.RangeSet(0, len(data.need) - 1)
    m.K = pyo.RangeSet(0, data.contexts - 1)
    m.WK = pyo.Set(initialize=[(w, k) for w in range(data.workloads) for k in range(data.contexts)], dimen=2)
    m.families_of = _groups(data.context, range(data.contexts))
    pairs = list(zip(data.column_workload.tolist(), data.column_context.tolist(), strict=True))
    m.columns_of = _groups(pairs, list(m.WK))
    m.y = pyo.Var(m.F, domain=pyo.Binary, doc="family is built")
    m.u = pyo.Var(m.F, domain=pyo.NonNegativeIntegers, bounds=lambda _, f: (0, int(data.most[f])), doc="[links]")
    m.s = pyo.Var(
        m.F,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda _, f: (0, spines_at(data, f, int(data.most[f]))),
        doc="[switches]",
    )
    m.z = pyo.Var(m.C, domain=pyo.Binary, doc="column is used")
    for add in equations:
        add(m)
    return m


def spines_at(data: SharedData, f: int, uplinks: int) -> int:
    """Spines of a plane that so many uplinks of each leaf need."""
    return math.ceil(int(data.leaves[f]) * uplinks / int(data.radix[f]))


def _groups(keys: Iterable[Any], values: Iterable[Any]) -> dict[Any, list[int]]:
    """The positions of each value among the keys."""
    found: dict[Any, list[int]] = {value: [] for value in values}
    for position, key in enumerate(keys):
        found[key].append(position)
    return found


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
