"""What chosen islands cost, recomputed from the decisions: purchases of every phase, power and limits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from coopt.instance.schema import Instance
from coopt.instance.variants import years_of
from coopt.network.goods import Good
from coopt.network.growth import factor, labour_lines
from coopt.network.island_bills import core_ports_of, core_switch, core_switches
from coopt.network.parts import owned_usd, racks, site_power
from coopt.plan.couplings import PhaseSpending, SitePower, Stored
from coopt.plan.parts import Cost, Item, line
from coopt.solving.fleet.arrays import Placed, placed_units
from coopt.solving.partition.arrays import Grid, orders, product_of
from formulations.partition_data import Floats, Product


@dataclass(frozen=True, kw_only=True, eq=False)
class FleetBill:
    """The bill of everything, what each phase spends, and the power of each site in each phase (W)."""

    cost: Cost
    growth: tuple[PhaseSpending, ...]
    sites: tuple[SitePower, ...]
    within: bool


def core_counts(grid: Grid, chosen: Sequence[Placed]) -> dict[tuple[int, int], tuple[int, int]]:
    """Links and switches of the core of each phase and site (by their numbers), where islands stand."""
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
        units[:, one.site or 0] += placed_units(grid, one.path)
    switch = core_switch(grid.instance)
    for (t, s), (_, switches) in core_counts(grid, chosen).items():
        assert switch is not None
        units[t, s, grid.column(0, "switch", switch.name)] += switches
    return units


def fleet_bill(instance: Instance, chosen: Sequence[Placed]) -> FleetBill:
    """What islands cost together and whether they keep every limit, exactly as written out."""
    grid = Grid(instance=instance)
    units = units_in_place(grid, chosen)
    watts = np.array(
        [[math.fsum(_watts(grid, units[t, s])) for s in range(len(grid.sites))] for t in range(grid.phases)]
    )
    needed = np.diff(units.sum(axis=1), axis=0, prepend=0.0)
    bought = [_ordered(grid, g, needed[:, g]) for g in range(len(grid.goods))]
    items = [[*_lines(grid, t, bought, needed)] for t in range(grid.phases)]
    for t, phase in enumerate(instance.phase):
        items[t] += labour_lines(phase, sum(one.path.retrofitted(t) for one in chosen))
    energy = [
        math.fsum(watts[t, s] * grid.usd_per_w(t, site) for s, site in enumerate(grid.sites))
        for t in range(grid.phases)
    ]
    capex = [math.fsum(item.usd for item in of_phase) for of_phase in items]
    work = _work_usd(grid, items, units.sum(axis=1))
    dates = zip(instance.years, items, strict=True)
    named = tuple(item if year is None else item.bought_in(year) for year, lines in dates for item in lines)
    bought_usd = math.fsum(item.usd for item in named)
    cost = Cost(
        capex_usd=bought_usd,
        power_w=math.fsum(item.w for item in named),
        tco_usd=bought_usd + math.fsum(work) + math.fsum(energy),
        items=named,
    )
    growth = tuple(
        PhaseSpending(
            year=phase.year,
            years=years_of(instance, t),
            bought=tuple(items[t]),
            stored=tuple(_stored(grid, t, bought, needed)),
            capex_usd=capex[t],
            power_w=math.fsum(watts[t]),
            energy_usd=energy[t],
            work_usd=work[t],
        )
        for t, phase in enumerate(instance.phase)
    )
    sites = tuple(_fed(grid, watts))
    return FleetBill(cost=cost, growth=growth, sites=sites, within=_within(grid, chosen, units, cost, sites))


def _work_usd(grid: Grid, items: Sequence[Sequence[Item]], standing: Floats) -> list[float]:
    """Labour for what each phase buys, and support of what stands in it; of what is bought at once, for all years."""
    terms = grid.instance.objective
    goods_usd = [math.fsum(item.usd for item in of_phase if item.kind != "labour") for of_phase in items]
    if not grid.instance.phase:
        return [owned_usd(terms, usd, 0.0) - usd for usd in goods_usd]
    support = (standing * grid.support_usd).tolist()
    return [usd * terms.labour_share + math.fsum(row) for usd, row in zip(goods_usd, support, strict=True)]


def _watts(grid: Grid, units: Floats) -> Iterator[float]:
    for good, count in zip(grid.goods, units.tolist(), strict=True):
        yield count * good.w


def _at(grid: Grid, good: Good, phase: int) -> Product:
    """A product at the prices of a phase."""
    return product_of(good, factor(grid.instance, phase, good.kind))


def _ordered(grid: Grid, g: int, needed: Floats) -> tuple[int, ...]:
    """Units of a product that each phase buys: where they are cheapest, of equally cheap phases in the last."""
    _, units = orders([_at(grid, grid.goods[g], t) for t in range(grid.phases)], needed.tolist())
    return tuple(round(count) for count in units)


def _lines(grid: Grid, phase: int, bought: Sequence[tuple[int, ...]], needed: Floats) -> Iterator[Item]:
    """Lines of the bill of a phase: a line for each price; units that nobody ever needs are spare and draw nothing."""
    for g in (len(grid.goods) - 1, *range(len(grid.goods) - 1)):  # GPUs first, as in any bill
        good, count = grid.goods[g], bought[g][phase]
        if not _counted(grid, good):
            continue
        before = sum(bought[g][:phase])
        useful = min(max(round(float(needed[:, g].sum())) - before, 0), count)
        product = _at(grid, good, phase)
        left = useful
        for units, usd in _priced(product, count):
            used = min(left, units)
            left -= used
            if used:
                yield _item(grid, good, used, usd, spare=False)
            if units > used:
                yield _item(grid, good, units - used, usd, spare=True)


def _counted(grid: Grid, good: Good) -> bool:
    """Whether the bill has the product; idle GPUs count with HB domains."""
    return good.kind in grid.instance.objective.include or good.kind == "gpu"


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


def _item(grid: Grid, good: Good, count: int, usd: float, *, spare: bool) -> Item:
    idle = good.kind == "gpu" and "gpu" not in grid.instance.objective.include
    kind = "hb" if idle else good.kind
    return line(kind, good.name, count, usd, 0.0 if spare else good.w, idle=idle, spare=spare)


def _stored(grid: Grid, phase: int, bought: Sequence[tuple[int, ...]], needed: Floats) -> Iterator[Stored]:
    """Units that are bought and not in place yet."""
    for g, good in enumerate(grid.goods):
        if _counted(grid, good):
            waits = sum(bought[g][: phase + 1]) - round(float(needed[: phase + 1, g].sum()))
            if waits:
                yield Stored(item=good.name, kind=good.kind, count=waits)


def _fed(grid: Grid, watts: Floats) -> Iterator[SitePower]:
    for t in range(grid.phases):
        for s, site in enumerate(grid.sites):
            if site is not None:
                yield site_power(grid.instance.objective, site, float(watts[t, s]), grid.instance.years[t])


def _within(grid: Grid, chosen: Sequence[Placed], units: Floats, cost: Cost, sites: Sequence[SitePower]) -> bool:
    """Whether every limit of every phase is kept, exactly."""
    limits = grid.instance.limits
    for t, gpus in enumerate(grid.instance.gpu_caps.values()):
        standing = [family for one in chosen if (family := one.path.families[t]) is not None]
        if sum(family.gpus for family in standing) > gpus:
            return False
        if any(cap.used_exactly(units[t]) > cap.most for cap in grid.caps):
            return False
        if limits.racks is not None and sum(racks(family) or 0 for family in standing) > limits.racks:
            return False
    return (limits.capex_usd is None or cost.capex_usd <= limits.capex_usd) and all(one.is_fed for one in sites)
