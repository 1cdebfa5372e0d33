"""From islands over phases and sites to the arrays of the formulation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coopt.instance.couplings import PriceFactors, Site
from coopt.instance.schema import Instance, Objective
from coopt.network.family import Family
from coopt.network.goods import Cap, Good, caps_of, goods_of
from coopt.network.growth import energy_usd_per_w, factor, support_share
from coopt.network.island_bills import core_ports_of, core_switch, units_of
from coopt.network.parts import electricity_of, racks, usd_per_w, weigh
from coopt.solving.fleet.paths import IslandPath
from formulations.partition_data import CoreLayer, Floats, Ints, Kind, LimitedUse, PartitionData, PriceOutlook, Product


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


@dataclass(frozen=True, kw_only=True)
class Grid:
    """The places and times of a question: phases, sites, and the products that each phase buys.

    Columns of products go phase by phase, each with all products in the order of `goods`.
    """

    instance: Instance

    @cached_property
    def goods(self) -> tuple[Good, ...]:
        """The products, GPUs last."""
        return goods_of(self.instance)

    @cached_property
    def caps(self) -> tuple[Cap, ...]:
        """The limits on sums over products."""
        return caps_of(self.instance)

    @property
    def phases(self) -> int:
        """Phases; one where nothing grows."""
        return max(len(self.instance.phase), 1)

    @property
    def sites(self) -> tuple[Site | None, ...]:
        """Sites; None alone where there are none."""
        return self.instance.site or (None,)

    def prices(self, phase: int) -> PriceFactors:
        """Factors on the prices of a phase."""
        return self.instance.phase[phase].price if self.instance.phase else PriceFactors()

    def objective(self, site: Site | None) -> Objective:
        """The objective at the electricity of a site."""
        return self.instance.objective if site is None else electricity_of(self.instance.objective, site)

    def usd_per_w(self, phase: int, site: Site | None) -> float:
        """Price of drawing a watt from a phase to the next at a site (USD/W)."""
        local = self.instance.model_copy(update={"objective": self.objective(site)})
        return energy_usd_per_w(local, phase) if self.instance.phase else usd_per_w(local.objective)

    def per_w(self, phase: int, site: Site | None) -> float:
        """What a watt in a phase at a site adds to the objective."""
        kind = self.instance.objective.minimize
        return 0.0 if kind == "capex" else 1.0 if kind == "power" else self.usd_per_w(phase, site)

    @property
    def weight(self) -> float:
        """What a USD of purchase adds to the objective; where phases buy, their labour, and support beside it."""
        objective = self.instance.objective
        if not self.instance.phase or objective.minimize != "tco":
            return weigh(objective, 1.0, 0.0)
        return 1 + objective.labour_share

    @cached_property
    def support_usd(self) -> Floats:
        """What the support of a unit that stands takes in each phase (T, G), at its price in the phase before volume
        prices; nothing where all is bought at once, and a share of that."""
        found = np.zeros((self.phases, len(self.goods)))
        for t, phase in enumerate(self.instance.phase):
            prices = [good.usd[0] * factor(phase.price, good.kind) for good in self.goods]
            found[t] = support_share(self.instance, t) * np.array(prices)
        return found

    @property
    def support(self) -> Floats:
        """What it adds to the objective."""
        return self.support_usd * float(self.instance.objective.minimize == "tco")

    def placed_units(self, path: IslandPath) -> Floats:
        """Units of each product that stand in each phase, both ends of links into a core included (T, G)."""
        units = np.zeros((self.phases, len(self.goods)))
        for t, family, uplinks in path.stands:
            units[t] = self.units(family, uplinks)
        return units

    def all_units(self, paths: Sequence[IslandPath]) -> Floats:
        """Units as `placed_units` has them, of many paths (n, T, G); every network of theirs is counted once."""
        rows: dict[tuple[int, int], int] = {}
        counted = [np.zeros(len(self.goods))]
        row = np.zeros((len(paths), self.phases), dtype=np.int64)
        for n, path in enumerate(paths):
            for t, family, uplinks in path.stands:
                key = id(family), uplinks  # paths share their networks, which are slow to compare
                if key not in rows:
                    rows[key] = len(counted)
                    counted.append(self.units(family, uplinks))
                row[n, t] = rows[key]
        return np.array(counted)[row]

    def units(self, family: Family, uplinks: int) -> Floats:
        """Units of each product that a network takes (G,)."""
        include = self.instance.objective.include
        counted = units_of(self.instance, family, uplinks)
        units = np.array([float(counted[good.kind, good.name]) for good in self.goods])
        idle = family.installed_gpus - family.gpus
        units[-1] = family.gpus * ("gpu" in include) + idle * ("hb" in include)
        return units

    def watts(self, units: Floats) -> Floats:
        """Power of units of all products (..., G)."""
        return np.asarray(units @ np.array([good.w for good in self.goods]))

    def caps_gpus(self, phase: int) -> int:
        """GPUs that may train in a phase."""
        return self.instance.phase[phase].gpus if self.instance.phase else self.instance.cluster.gpus[0]

    def column(self, phase: int, kind: str, name: str) -> int:
        """The column of a product in a phase."""
        place = next(g for g, good in enumerate(self.goods) if (good.kind, good.name) == (kind, name))
        return phase * len(self.goods) + place


def fleet_data(instance: Instance, placed: Sequence[Placed]) -> PartitionData:
    """The numbers of islands over phases and sites, at the prices of an instance."""
    grid = Grid(instance=instance)
    units = grid.all_units([one.path for one in placed])
    rises = np.diff(units, axis=1, prepend=0.0)
    assert (rises >= 0).all(), "nothing is thrown away"
    sites = np.array([-1 if one.site is None else one.site for one in placed], dtype=np.int64)
    watts, only_watts = grid.watts(units), instance.objective.minimize == "power"
    per_w = np.array([[grid.per_w(t, site) for t in range(grid.phases)] for site in grid.sites])
    labour_usd = np.array([_labour_usd(instance, one.path) for one in placed])
    other = (watts * per_w[sites]).sum(axis=1)  # -1, no site, is the only entry where there are none
    other += (units * grid.support).sum(axis=(1, 2)) - (grid.weight - 1) * labour_usd
    cores = tuple(_cores(grid, placed, sites))
    flat = only_watts and instance.limits.capex_usd is None
    return PartitionData(
        workloads=len(slots_of(instance)),
        workload=np.array([one.slot for one in placed], dtype=np.int64),
        usd=labour_usd,
        other=other,
        quantity=rises.reshape(len(placed), grid.phases * len(grid.goods)),
        products=tuple(_products(grid, flat=flat)),
        kinds=tuple(_kinds(grid)),
        limits=tuple(_limits(grid, placed, sites, units, cores)),
        budget=instance.limits.capex_usd,
        weight=grid.weight,
        cores=cores,
    )


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
        prices=tuple(product.usd for product in _products(grid, flat=flat)),
        core=tuple(core.other + float(dearer.reshape(-1)[core.product]) for core in data.cores),
        best=best,
    )


def _labour_usd(instance: Instance, path: IslandPath) -> float:
    """Labour for links added to switches that stood (USD)."""
    return math.fsum(phase.retrofit_usd_per_link * path.retrofitted(t) for t, phase in enumerate(instance.phase))


def _products(grid: Grid, *, flat: bool) -> Iterator[Product]:
    """Each product in each phase, at one price where no bill counts; one without brackets has the least so far."""
    for t in range(grid.phases):
        for g, good in enumerate(grid.goods):
            begins, usd = ((0,), good.usd[:1]) if flat else (good.begins, good.usd)
            so_far = [factor(grid.prices(earlier), good.kind) for earlier in range(t + 1)]
            yield Product(
                name=f"{good.kind} {good.name}",
                start=np.array(begins, dtype=np.float64),
                usd=np.array(usd, dtype=np.float64) * (min(so_far) if len(usd) == 1 else so_far[-1]),
                discount="all-units" if good.all_units else "incremental",
                before=(t - 1) * len(grid.goods) + g if t else None,
            )


def _kinds(grid: Grid) -> Iterator[Kind]:
    last = (grid.phases - 1) * len(grid.goods)
    for name, most in grid.instance.sharing.most_products.model_dump().items():
        if most is not None:
            of_kind = np.array([last + g for g, good in enumerate(grid.goods) if good.kind == name])
            yield Kind(name=name, products=of_kind, most=most)


def _cores(grid: Grid, placed: Sequence[Placed], sites: Ints) -> Iterator[CoreLayer]:
    """A core for each phase at each site, phase by phase."""
    switch = core_switch(grid.instance)
    if switch is None:
        return
    good = grid.goods[grid.column(0, "switch", switch.name)]
    for t in range(grid.phases):
        standing = [one.path.families[t] for one in placed]
        links = [0 if family is None else family.core_links for family in standing]
        ports = np.array([core_ports_of(grid.instance, count) for count in links])
        for s, site in enumerate(grid.sites):
            here = ports if site is None else np.where(sites == s, ports, 0)
            yield CoreLayer(
                product=grid.column(t, "switch", switch.name),
                ports=switch.radix,
                up=here.astype(np.float64),
                other=good.w * grid.per_w(t, site) + float(grid.support[t, grid.column(0, "switch", switch.name)]),
                before=(t - 1) * len(grid.sites) + s if t else None,
            )


def _limits(
    grid: Grid, placed: Sequence[Placed], sites: Ints, units: Floats, cores: Sequence[CoreLayer]
) -> Iterator[LimitedUse]:
    """GPUs, sums over products, racks of every phase, and power of its sites, by the names users know them by."""
    instance, limits = grid.instance, grid.instance.limits
    switches, watts = [core.product % len(grid.goods) for core in cores], grid.watts(units)
    core_w = [grid.goods[place].w for place in switches]
    used = [(cap, cap.used(units)) for cap in grid.caps]
    core_phase = [c // len(grid.sites) for c in range(len(cores))]
    for t in range(grid.phases):
        when = f" in {instance.phase[t].year:g}" if instance.phase else ""
        standing = [one.path.families[t] for one in placed]
        gpus = np.array([0 if family is None else family.gpus for family in standing], dtype=np.float64)
        key = f"phase[{t}].gpus" if instance.phase else "cluster.gpus"
        yield LimitedUse(name=key, use=gpus, cap=float(grid.caps_gpus(t)), core=(0.0,) * len(cores))
        here = [core_phase[c] == t for c in range(len(cores))]
        for cap, use in used:
            each = tuple(cap.each[place] / cap.scale * now for place, now in zip(switches, here, strict=True))
            yield LimitedUse(name=f"{cap.key}{when}", use=use[:, t], cap=cap.most, core=each)
        if limits.racks is not None:
            filled = np.array([0 if family is None else racks(family) or 0 for family in standing], dtype=np.float64)
            yield LimitedUse(name=f"limits.racks{when}", use=filled, cap=limits.racks, core=(0.0,) * len(cores))
        for s, site in enumerate(grid.sites):
            if site is not None:
                pue = grid.objective(site).pue
                core = tuple(
                    w / 1e6 * pue * (now and c % len(grid.sites) == s)
                    for c, (w, now) in enumerate(zip(core_w, here, strict=True))
                )
                use = np.where(sites == s, watts[:, t], 0.0) / 1e6 * pue
                yield LimitedUse(name=f"power_mw of site {site.name}{when}", use=use, cap=site.power_mw, core=core)
