"""Islands in their places and phases: what they use, as arrays of the formulation, and what chosen
ones cost.

Bills are recomputed from the decisions: purchases of every phase, power and limits.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from coopt.instance.schema import Instance
from coopt.network.cores import core_ports_of, core_switch, core_switches
from coopt.network.family import Family
from coopt.network.growth import (
    PhaseBill,
    factor,
    labour_lines,
    link_labour_usd,
    retrofit,
    spendings,
    work_usd,
)
from coopt.network.part_bills import units_of
from coopt.network.parts import PricedProduct, racks, site_power
from coopt.plan.couplings import NETWORK, Couplings, SitePower, Stored
from coopt.plan.parts import Cost, Item, line
from coopt.solving.fleet.arrays import (
    Grid,
    orders,
    product_of,
    products_of,
)
from coopt.solving.fleet.paths import IslandPath
from formulations.choice_data import ChoiceData, Floats, Ints, Product, ScenarioCosts


@dataclass(frozen=True, kw_only=True)
class Slot:
    """What an island is asked for: the workloads that it trains, in turn where there are
    several.
    """

    name: str
    workloads: tuple[str, ...]


def slots_of(instance: Instance) -> tuple[Slot, ...]:
    """An island for each workload, or one network for all of them."""
    names = tuple(workload.name for workload in instance.workload)
    if instance.sharing.mode == "time":
        return (Slot(name=NETWORK, workloads=names),)
    return tuple(Slot(name=name, workloads=(name,)) for name in names)


@dataclass(frozen=True, kw_only=True, eq=False)
class Placed:
    """An island of a slot, by its number, with its site, None where the question has no sites."""

    slot: int
    path: IslandPath
    site: int | None


def distinct_networks(
    paths: Sequence[IslandPath], phases: int
) -> tuple[list[tuple[Family, int]], Ints]:
    """The networks of many paths with their uplinks, each once, and the number of that of each path
    in each phase (n, T), -1 where none stands.
    """
    numbers: dict[tuple[int, int], int] = {}
    networks = list[tuple[Family, int]]()
    row = np.full((len(paths), phases), -1, dtype=np.int64)
    for n, path in enumerate(paths):
        for t, family, uplinks in path.stands:
            key = id(family), uplinks  # paths share their networks, which are slow to compare
            if key not in numbers:
                numbers[key] = len(networks)
                networks.append((family, uplinks))
            row[n, t] = numbers[key]
    return networks, row


def units_at(grid: Grid, family: Family, uplinks: int) -> Floats:
    """Units of each product that a network takes (G,)."""
    include = grid.instance.objective.include
    counted = units_of(grid.instance, family, uplinks)
    units = np.array([float(counted[good.kind, good.name]) for good in grid.goods])
    gpu = grid.place["gpu", grid.gpu_of_domain[family.hb.name]]
    units[gpu] = family.gpus * ("gpu" in include)
    units[-2 if grid.idle_apart else gpu] += (family.installed_gpus - family.gpus) * (
        "hb" in include
    )
    return units


def scenario_at(data: ChoiceData, listed: Instance, then: Instance, best: float) -> ScenarioCosts:
    """What the options of a question, `listed` at its prices, cost at others, where the least
    objective is `best`.

    Products keep the brackets they have in the question: one where no bill counts. Support of what
    stands is at the prices that turn out.
    """
    flat = data.weight == 0.0 and data.budget is None
    grid = Grid(instance=then)
    dearer = grid.support - Grid(instance=listed).support
    units = np.cumsum(data.quantity.reshape(-1, *dearer.shape), axis=1)
    return ScenarioCosts(
        usd=data.usd,
        opex=data.opex + (units * dearer).sum(axis=(1, 2)),
        prices=tuple(product.usd for product in products_of(grid, flat=flat)),
        core=tuple(core.opex + float(dearer.reshape(-1)[core.product]) for core in data.cores),
        min_value=best,
    )


def labour_usd(instance: Instance, networks: Sequence[tuple[Family, int]], row: Ints) -> Floats:
    """Labour for links added to switches that stood (USD), of paths through distinct networks as
    `distinct_networks` numbers them (n,).
    """
    usd, count = np.zeros(row.shape), len(networks)
    for t in range(1, row.shape[1]):
        standing = np.flatnonzero(row[:, t - 1] >= 0)
        steps, step = np.unique(
            row[standing, t - 1] * count + row[standing, t], return_inverse=True
        )
        pairs = [(*networks[k // count], *networks[k % count]) for k in steps]
        links = np.array([retrofit(old, new).links(was, now) for old, was, new, now in pairs])
        usd[standing, t] = link_labour_usd(instance, t) * links[step]
    return np.array([math.fsum(of_path) for of_path in usd])


@dataclass(frozen=True, kw_only=True, eq=False)
class FleetBill:
    """The bill of everything, with what each phase spends and each site feeds in it, and whether
    limits are kept.
    """

    cost: Cost
    couplings: Couplings
    within: bool


def core_counts(grid: Grid, chosen: Sequence[Placed]) -> dict[tuple[int, int], tuple[int, int]]:
    """Links and switches of the core of each phase and site (by their numbers), where islands
    stand.
    """
    links, ports = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    if core_switch(grid.instance) is not None:
        for one in chosen:
            for t, family, _ in one.path.stands:
                links[t, one.site or 0] += family.core_links
                ports[t, one.site or 0] += core_ports_of(grid.instance, family.core_links)
    return {key: (links[key], core_switches(grid.instance, count)) for key, count in ports.items()}


def units_in_place(grid: Grid, chosen: Sequence[Placed]) -> Floats:
    """Units of each product that stand in each phase at each site, cores included (T, S, G)."""
    units = np.zeros((grid.phases, len(grid.sites), len(grid.goods)))
    for one in chosen:
        for t, family, uplinks in one.path.stands:
            units[t, one.site or 0] += units_at(grid, family, uplinks)
    switch = core_switch(grid.instance)
    for (t, s), (_, switches) in core_counts(grid, chosen).items():
        assert switch is not None
        units[t, s, grid.column(0, "switch", switch.name)] += switches
    return units


def fleet_bill(instance: Instance, chosen: Sequence[Placed], *, ahead: bool = True) -> FleetBill:
    """What islands cost together and whether they keep every limit, exactly as written out.

    Parameters
    ----------
    ahead
        Whether units may be bought before the phase that needs them.
    """
    grid, include = Grid(instance=instance), instance.objective.include
    watts_of = np.array([good.w for good in grid.goods])
    units = units_in_place(grid, chosen)
    watts = np.array(
        [
            [math.fsum(units[t, s] * watts_of) for s in range(len(grid.sites))]
            for t in range(grid.phases)
        ]
    )
    needed = np.diff(units.sum(axis=1), axis=0, prepend=0.0)
    # which units of a phase stand idle in a later one is not told
    idle_gpus = Counter[str]()
    for one in chosen if "hb" in include and not instance.phase else ():
        idle_gpus += _idle_gpus(grid, one)
    bought = [
        tuple(
            map(
                round,
                # where units are cheapest, of equally cheap phases in the last
                orders([_at(grid, good, t) for t in range(grid.phases)], needed[:, g].tolist())[1]
                if ahead
                else needed[:, g].tolist(),
            )
        )
        for g, good in enumerate(grid.goods)
    ]
    spent = [
        PhaseBill(
            purchases=(
                *_lines(grid, t, bought, needed, idle_gpus),
                *labour_lines(instance, t, sum(one.path.retrofitted(t) for one in chosen)),
            ),
            stored=tuple(_stored(grid, t, bought, needed)),
            power_w=math.fsum(watts[t]),
            energy_usd=math.fsum(
                watts[t, s] * grid.usd_per_w(t, site) for s, site in enumerate(grid.sites)
            ),
        )
        for t in range(grid.phases)
    ]
    support = [math.fsum(row) for row in (units.sum(axis=1) * grid.support_usd).tolist()]
    work = work_usd(instance, [one.products_usd for one in spent], support)
    named = tuple(
        item if year is None else item.bought_in(year)
        for year, one in zip(instance.years, spent, strict=True)
        for item in one.purchases
    )
    bought_usd = math.fsum(item.usd for item in named)
    cost = Cost(
        capex_usd=bought_usd,
        power_w=math.fsum(item.w for item in named),
        tco_usd=bought_usd + math.fsum(work) + math.fsum(one.energy_usd for one in spent),
        items=named,
    )
    sites = tuple(
        site_power(instance.objective, site, float(watts[t, s]), year)
        for t, year in enumerate(instance.years)
        for s, site in enumerate(grid.sites)
        if site is not None
    )
    couplings = Couplings(sites=sites, growth=spendings(instance, spent, work))
    return FleetBill(
        cost=cost, couplings=couplings, within=_within(grid, chosen, units, cost, sites)
    )


def _idle_gpus(grid: Grid, one: Placed) -> Counter[str]:
    """GPUs of the HB domains of an island that do not train, over the phases, by kind."""
    idle = Counter[str]()
    for _, family, _ in one.path.stands:
        idle[grid.gpu_of_domain[family.hb.name]] += family.installed_gpus - family.gpus
    return idle


def _at(grid: Grid, good: PricedProduct, phase: int) -> Product:
    """A product at the prices of a phase."""
    return product_of(good, factor(grid.instance, phase, good.kind))


def _lines(
    grid: Grid,
    phase: int,
    bought: Sequence[tuple[int, ...]],
    needed: Floats,
    idle_gpus: Mapping[str, int],
) -> Iterator[Item]:
    """Lines of the bill of a phase: a line for each price, idle GPUs apart; units that nobody ever
    needs are spare and draw nothing.
    """
    include = grid.instance.objective.include
    # GPUs first, as in any bill
    for g in sorted(range(len(grid.goods)), key=lambda g: grid.goods[g].kind != "gpu"):
        good, count = grid.goods[g], bought[g][phase]
        if not _counted(grid, good):
            continue
        useful = min(max(round(float(needed[:, g].sum())) - sum(bought[g][:phase]), 0), count)
        only_idle = good.kind == "gpu" and "gpu" not in include
        idle = useful if only_idle else idle_gpus.get(good.name, 0) if good.kind == "gpu" else 0
        left = {False: useful - idle, True: idle}
        for units, usd in _priced(_at(grid, good, phase), count):
            for is_idle, units_left in left.items():
                used = min(units_left, units)
                left[is_idle] -= used
                units -= used
                if used:
                    yield _item(grid, good, used, usd, idle=is_idle)
            if units:
                yield _item(grid, good, units, usd, idle=only_idle, spare=True)


def _counted(grid: Grid, good: PricedProduct) -> bool:
    """Whether the bill has the product; idle GPUs count with HB domains."""
    return grid.instance.objective.counts(good.kind) or good.kind == "gpu"


def _priced(product: Product, count: int) -> Iterator[tuple[int, float]]:
    """Units at each price when exactly so many are bought."""
    if product.discount == "all-units":
        usd = float(product.usd[int(np.flatnonzero(product.start <= count)[-1])])
        yield count, usd
        return
    ends = [*product.start[1:].tolist(), math.inf]
    for start, end, usd in zip(product.start.tolist(), ends, product.usd.tolist(), strict=True):
        units = int(min(end, count) - start)
        if units > 0:
            yield units, usd


def _item(
    grid: Grid, good: PricedProduct, count: int, usd: float, *, idle: bool, spare: bool = False
) -> Item:
    gpu, w = grid.instance.cluster.gpu, 0.0 if spare else good.w
    is_apart = (good.kind, good.name) == ("hb", gpu.idle_name)
    kind, name = "hb" if idle or is_apart else good.kind, gpu.name if is_apart else good.name
    return line(kind, name, count, usd, w, idle=idle or is_apart, spare=spare)


def _stored(
    grid: Grid, phase: int, bought: Sequence[tuple[int, ...]], needed: Floats
) -> Iterator[Stored]:
    """Units that are bought and not in place yet."""
    for g, good in enumerate(grid.goods):
        if _counted(grid, good):
            waits = sum(bought[g][: phase + 1]) - round(float(needed[: phase + 1, g].sum()))
            if waits:
                yield Stored(item=good.name, kind=good.kind, count=waits)


def _within(
    grid: Grid, chosen: Sequence[Placed], units: Floats, cost: Cost, sites: Sequence[SitePower]
) -> bool:
    """Whether every limit of every phase is kept, exactly."""
    limits = grid.instance.limits
    for t, gpus in enumerate(grid.instance.gpu_caps.values()):
        standing = [family for one in chosen if (family := one.path.families[t]) is not None]
        if sum(family.gpus for family in standing) > gpus:
            return False
        if any(cap.used_exactly(units[t]) > cap.most for cap in grid.caps):
            return False
        if (
            limits.racks is not None
            and sum(racks(family) or 0 for family in standing) > limits.racks
        ):
            return False
    return (limits.capex_usd is None or cost.capex_usd <= limits.capex_usd) and all(
        one.is_fed for one in sites
    )
