"""From families and columns to the arrays of a formulation."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from coopt.columns.context import context_of
from coopt.columns.table import Column, Columns, needs
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.parts import Affine, price, resources
from coopt.solving.highs import COARSE, LARGEST, NEAR
from formulations.shared import Floats, Ints, Resource, SharedData


@dataclass(frozen=True, kw_only=True)
class SharedProblem:
    """Families that can serve every workload, the columns on them, and their numbers.

    `columns[i]` is column i of `data`; `families[i]` is family i. `scale` is the objective (USD or
    W) in one unit of the model.
    """

    families: tuple[Family, ...]
    columns: tuple[Column, ...]
    data: SharedData
    scale: float


def viable(instance: Instance, families: tuple[Family, ...], table: Columns) -> tuple[Family, ...]:
    """Families whose uplinks can meet every workload's bound."""
    need = needs(table.columns, len(instance.workload))
    kept = []
    for family in families:
        uplinks = need.get(table.numbers[context_of(family)])
        if uplinks is not None and uplinks <= family.uplink_choices[-1]:
            kept.append(family)
    return tuple(kept)


def assemble(instance: Instance, families: tuple[Family, ...], table: Columns) -> SharedProblem:
    """The formulation's arrays for the viable families."""
    contexts = [table.numbers[context_of(family)] for family in families]
    dense = {k: i for i, k in enumerate(dict.fromkeys(contexts))}
    used = tuple(column for column in table.columns if column.context in dense)
    cost = [price(instance, family, instance.objective.minimize) for family in families]
    dearest = max(a.at(family, family.uplink_choices[-1]) for a, family in zip(cost, families, strict=True))
    scale = dearest / LARGEST or 1.0
    data = SharedData(
        workloads=len(instance.workload),
        contexts=len(dense),
        fixed=floats(a.fixed / scale for a in cost),
        uplink=floats(a.uplink / scale for a in cost),
        spine=floats(a.spine / scale for a in cost),
        least=_ints(f.uplink_choices[0] for f in families),
        most=_ints(f.uplink_choices[-1] for f in families),
        leaves=_ints(f.leaves if f.tiers == 2 else 0 for f in families),
        radix=_ints(f.spine_ports for f in families),
        context=_ints(dense[k] for k in contexts),
        column_workload=_ints(c.workload for c in used),
        column_context=_ints(dense[c.context] for c in used),
        need=_ints(c.uplinks for c in used),
        resources=_resources(instance, families),
    )
    return SharedProblem(families=families, columns=used, data=data, scale=scale)


def _resources(instance: Instance, families: tuple[Family, ...]) -> tuple[Resource, ...]:
    """Each limit in units of its cap, so that rows stay near 1; a cap of nothing stays as it is."""
    rows: dict[str, list[Affine]] = {}
    for family in families:
        for name, use in resources(instance, family).items():
            rows.setdefault(name, []).append(use)
    caps = {name: float(getattr(instance.limits, name)) for name in rows}
    return tuple(
        Resource(
            name=name,
            fixed=floats(a.fixed / (caps[name] or 1.0) for a in use),
            uplink=floats(a.uplink / (caps[name] or 1.0) for a in use),
            spine=floats(a.spine / (caps[name] or 1.0) for a in use),
            cap=1.0 if caps[name] else 0.0,
        )
        for name, use in rows.items()
    )


def floats(values: Iterable[float]) -> Floats:
    """Numbers as an array."""
    return np.fromiter(values, dtype=np.float64)


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, dtype=np.int64)


def in_units_of(problem: SharedProblem, value: float) -> SharedProblem | None:
    """The problem in units of what a design is worth; None where it is in such units, or the design costs nothing.

    Costs are cut off far above that value: a design with one of these was no better, and still is not.
    """
    if not 0 < value < COARSE * problem.scale:
        return None
    scale, most = value / LARGEST, NEAR * LARGEST
    shrink = problem.scale / scale
    costs = {name: np.minimum(getattr(problem.data, name) * shrink, most) for name in ("fixed", "uplink", "spine")}
    return replace(problem, data=replace(problem.data, **costs), scale=scale)
