"""The variables of the shared network, which all its formulations have in common."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import pyomo.environ as pyo

from formulations.shared_data import SharedData

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
