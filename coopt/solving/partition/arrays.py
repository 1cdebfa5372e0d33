"""From the islands each workload could have to the arrays of the formulation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coopt.columns.islands.listing import Market
from coopt.columns.islands.options import Coupling, IslandOptions
from coopt.columns.islands.sizes import Sites
from coopt.instance.schema import Instance
from coopt.network.goods import Good
from coopt.network.parts import usd_per_w
from formulations.partition_data import CoreLayer, Floats, Kind, LimitedUse, PartitionData, Product


def partition_data(instance: Instance, options: IslandOptions) -> PartitionData:
    """The numbers of a partition: what islands use of products and limits."""
    coupling = Coupling(market=Market(instance=instance))
    goods, units, limits = coupling.market.goods, options.islands.units, instance.limits
    only_watts = instance.objective.minimize == "power"
    watts, per_w = coupling.watts(units), _per_w(instance)
    every = _limits(instance, options, coupling, watts)
    return PartitionData(
        workloads=len(instance.workload),
        workload=options.workload,
        usd=np.zeros(len(units)),
        other=watts * per_w,
        quantity=units,
        products=tuple(_product(good, flat=only_watts and limits.capex_usd is None) for good in goods),
        kinds=tuple(_kinds(instance, goods)),
        limits=every,
        budget=limits.capex_usd,
        weight=0.0 if only_watts else 1.0,
        cores=tuple(_cores(coupling.market, options, per_w)),
    )


def _per_w(instance: Instance) -> float:
    """What a watt adds to the objective."""
    return {"capex": 0.0, "power": 1.0, "tco": usd_per_w(instance.objective)}[instance.objective.minimize]


def _cores(market: Market, options: IslandOptions, per_w: float) -> Iterator[CoreLayer]:
    """The switches that islands share, where they share any."""
    if market.core is not None:
        product = market.place["switch", market.core.name]
        up = options.islands.core_links.astype(np.float64)
        yield CoreLayer(product=product, ports=market.core.radix, up=up, other=market.goods[product].w * per_w)


def _product(good: Good, *, flat: bool) -> Product:
    """A product; at one price where no bill counts."""
    begins, usd = ((0,), good.usd[:1]) if flat else (good.begins, good.usd)
    return Product(
        name=f"{good.kind} {good.name}",
        start=np.array(begins, dtype=np.float64),
        usd=np.array(usd, dtype=np.float64),
        discount="all-units" if good.all_units else "incremental",
    )


def _kinds(instance: Instance, goods: tuple[Good, ...]) -> list[Kind]:
    found = []
    for name, most in instance.sharing.most_products.model_dump().items():
        if most is not None:
            of_kind = np.array([p for p, good in enumerate(goods) if good.kind == name])
            found.append(Kind(name=name, products=of_kind, most=most))
    return found


def _limits(instance: Instance, options: IslandOptions, coupling: Coupling, watts: Floats) -> tuple[LimitedUse, ...]:
    """GPUs, watts and racks as far as they are limited, by the names users know them by."""
    islands, limits = options.islands, instance.limits
    sites = Sites(gpus=islands.gpus, hb=islands.hb, active=islands.active)
    found = [LimitedUse(name="cluster.gpus", use=islands.gpus.astype(np.float64), cap=float(instance.cluster.gpus[0]))]
    if limits.power_mw is not None:
        market = coupling.market
        mw = () if market.core is None else (market.goods[market.place["switch", market.core.name]].w / 1e6,)
        found.append(LimitedUse(name="limits.power_mw", use=watts / 1e6, cap=limits.power_mw, core=mw))
    if limits.racks is not None:
        found.append(LimitedUse(name="limits.racks", use=coupling.racks(sites.hb, sites.domains), cap=limits.racks))
    return tuple(found)


@dataclass(frozen=True, kw_only=True, eq=False)
class Variant:
    """An instance whose core, if it has one, names its optic; the islands of its workloads, and the numbers."""

    instance: Instance
    options: IslandOptions
    data: PartitionData
