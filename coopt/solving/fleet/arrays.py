"""From islands over phases and sites to the arrays of the formulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.island_bills import core_ports_of, units_of
from coopt.network.parts import racks
from coopt.solving.fleet.paths import IslandPath
from coopt.solving.partition.arrays import Grid, OptionUses, coupled, products_of
from formulations.partition_data import Floats, PartitionData, PriceOutlook


@dataclass(frozen=True, kw_only=True)
class Slot:
    """What an island is asked for: the workloads that it trains, in turn where there are several."""

    name: str
    workloads: tuple[str, ...]


def slots_of(instance: Instance) -> tuple[Slot, ...]:
    """An island for each workload, or one network for all of them."""
    names = tuple(workload.name for workload in instance.workload)
    if instance.sharing.mode == "time":
        return (Slot(name="network", workloads=names),)
    return tuple(Slot(name=name, workloads=(name,)) for name in names)


@dataclass(frozen=True, kw_only=True, eq=False)
class Placed:
    """An island of a slot, by its number, with its site, None where the question has no sites."""

    slot: int
    path: IslandPath
    site: int | None


def placed_units(grid: Grid, path: IslandPath) -> Floats:
    """Units of each product that stand in each phase, both ends of links into a core included (T, G)."""
    units = np.zeros((grid.phases, len(grid.goods)))
    for t, family, uplinks in path.stands:
        units[t] = units_at(grid, family, uplinks)
    return units


def all_units(grid: Grid, paths: Sequence[IslandPath]) -> Floats:
    """Units as `placed_units` has them, of many paths (n, T, G); every network of theirs is counted once."""
    rows: dict[tuple[int, int], int] = {}
    counted = [np.zeros(len(grid.goods))]
    row = np.zeros((len(paths), grid.phases), dtype=np.int64)
    for n, path in enumerate(paths):
        for t, family, uplinks in path.stands:
            key = id(family), uplinks  # paths share their networks, which are slow to compare
            if key not in rows:
                rows[key] = len(counted)
                counted.append(units_at(grid, family, uplinks))
            row[n, t] = rows[key]
    return np.array(counted)[row]


def units_at(grid: Grid, family: Family, uplinks: int) -> Floats:
    """Units of each product that a network takes (G,)."""
    include = grid.instance.objective.include
    counted = units_of(grid.instance, family, uplinks)
    units = np.array([float(counted[good.kind, good.name]) for good in grid.goods])
    idle = family.installed_gpus - family.gpus
    units[-1] = family.gpus * ("gpu" in include) + idle * ("hb" in include)
    return units


def fleet_data(instance: Instance, placed: Sequence[Placed]) -> PartitionData:
    """The numbers of islands over phases and sites, at the prices of an instance."""
    grid = Grid(instance=instance)

    def in_phases(taken: Callable[[Family], int]) -> Floats:
        rows = [[0 if family is None else taken(family) for family in one.path.families] for one in placed]
        return np.array(rows, dtype=np.float64).reshape(len(placed), grid.phases)

    uses = OptionUses(
        slots=len(slots_of(instance)),
        slot=np.array([one.slot for one in placed], dtype=np.int64),
        site=np.array([-1 if one.site is None else one.site for one in placed], dtype=np.int64),
        gpus=in_phases(lambda family: family.gpus),
        racks=in_phases(lambda family: racks(family) or 0),
        core_ports=in_phases(lambda family: core_ports_of(instance, family.core_links)),
        units=all_units(grid, [one.path for one in placed]),
        labour_usd=np.array([_labour_usd(instance, one.path) for one in placed]),
    )
    return coupled(grid, uses)


def outlook_at(data: PartitionData, listed: Instance, then: Instance, best: float) -> PriceOutlook:
    """What the options of a question, `listed` at its prices, cost at others, where the least objective is `best`.

    Products keep the brackets they have in the question: one where no bill counts. Support of what stands is at the
    prices that turn out.
    """
    flat = data.weight == 0.0 and data.budget is None
    grid = Grid(instance=then)
    dearer = grid.support - Grid(instance=listed).support
    units = np.cumsum(data.quantity.reshape(-1, *dearer.shape), axis=1)
    return PriceOutlook(
        usd=data.usd,
        other=data.other + (units * dearer).sum(axis=(1, 2)),
        prices=tuple(product.usd for product in products_of(grid, flat=flat)),
        core=tuple(core.other + float(dearer.reshape(-1)[core.product]) for core in data.cores),
        best=best,
    )


def _labour_usd(instance: Instance, path: IslandPath) -> float:
    """Labour for links added to switches that stood (USD)."""
    return math.fsum(phase.retrofit_usd_per_link * path.retrofitted(t) for t, phase in enumerate(instance.phase))
