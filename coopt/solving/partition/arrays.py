"""From the islands each workload could have to the arrays of the formulation, and what those that are chosen cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from coopt.columns.islands.listing import Market
from coopt.columns.islands.options import Coupling, IslandOptions
from coopt.columns.islands.shapes import Sites
from coopt.instance.schema import Instance
from coopt.network.goods import Good, caps_of
from coopt.network.parts import usd_per_w, weigh
from formulations.partition_data import CoreLayer, Floats, Ints, Kind, LimitedUse, PartitionData, PriceOutlook, Product

ROUNDING = 1e-12  # of a limit, which sums in another order may exceed


def partition_data(instance: Instance, options: IslandOptions) -> PartitionData:
    """The numbers of a partition: what islands use of products and limits."""
    coupling = Coupling(market=Market(instance=instance))
    goods, units, limits = coupling.market.goods, options.islands.units, instance.limits
    only_watts = instance.objective.minimize == "power"
    watts, per_w = coupling.watts(units), _per_w(instance)
    return PartitionData(
        workloads=len(instance.workload),
        workload=options.workload,
        usd=np.zeros(len(units)),
        other=watts * per_w,
        quantity=units,
        products=tuple(_product(good, flat=only_watts and limits.capex_usd is None) for good in goods),
        kinds=tuple(_kinds(instance, goods)),
        limits=_limits(instance, options, coupling),
        budget=limits.capex_usd,
        weight=weigh(instance.objective, 1.0, 0.0),
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


def _limits(instance: Instance, options: IslandOptions, coupling: Coupling) -> tuple[LimitedUse, ...]:
    """GPUs, sums over products and racks as far as they are limited, by the names users know them by."""
    islands, limits = options.islands, instance.limits
    sites = Sites(gpus=islands.gpus, hb=islands.hb, active=islands.active)
    found = [LimitedUse(name="cluster.gpus", use=islands.gpus.astype(np.float64), cap=float(instance.cluster.gpus[0]))]
    market = coupling.market
    switch = [] if market.core is None else [market.place["switch", market.core.name]]
    for cap in caps_of(instance):
        core = tuple(cap.each[place] / cap.scale for place in switch)
        found.append(LimitedUse(name=cap.key, use=cap.used(islands.units), cap=cap.most, core=core))
    if limits.racks is not None:
        found.append(LimitedUse(name="limits.racks", use=coupling.racks(sites.hb, sites.domains), cap=limits.racks))
    return tuple(found)


@dataclass(frozen=True, kw_only=True, eq=False)
class Variant:
    """An instance whose core, if it has one, names its optic; the islands of its workloads, and the numbers."""

    instance: Instance
    options: IslandOptions
    data: PartitionData


@dataclass(frozen=True, kw_only=True, eq=False)
class Worth:
    """Objective, capex, units of each product needed (P,), use of each limited resource; whether all limits hold.

    Limits hold here up to rounding: whoever has bills written out asks these.
    """

    objective: float
    capex_usd: float
    quantity: Floats
    core_switches: tuple[int, ...]
    used: dict[str, float]
    within: bool


def worth(data: PartitionData, chosen: Ints) -> Worth:
    """Cost and use of one option for each workload, with the core switches they need and the least bill."""
    switches = switches_of(data, chosen)
    quantity = data.quantity[chosen].sum(axis=0)
    for core, count in zip(data.cores, switches, strict=True):
        quantity[core.product] += core.quantity * (count - (0 if core.before is None else switches[core.before]))
    capex = float(data.usd[chosen].sum()) + _bills(data, data.products, quantity)
    core_other = sum(core.other * count for core, count in zip(data.cores, switches, strict=True))
    objective = data.weight * capex + float(data.other[chosen].sum()) + core_other
    if data.outlooks:
        objective = max(0.0, *(_regret(data, one, chosen, switches, quantity) for one in data.outlooks))
    used = {
        limit.name: float(limit.use[chosen].sum()) + sum(a * n for a, n in zip(limit.core, switches, strict=False))
        for limit in data.limits
    }
    in_use = {int(p): bool(data.uses(int(p))[chosen].any()) for kind in data.kinds for p in kind.products}
    return Worth(
        objective=objective,
        capex_usd=capex,
        quantity=quantity,
        core_switches=switches,
        used=used,
        within=(data.budget is None or capex <= data.budget * (1 + ROUNDING))
        and all(used[limit.name] <= limit.cap * (1 + ROUNDING) for limit in data.limits)
        and all(sum(in_use[int(p)] for p in kind.products) <= kind.most for kind in data.kinds),
    )


def switches_of(data: PartitionData, chosen: Ints) -> tuple[int, ...]:
    """Whole switches of each core with a port for every link, and no fewer than in the phase before."""
    found: list[int] = []
    for core in data.cores:
        least = 0 if core.before is None else found[core.before]
        found.append(max(-int(-core.up[chosen].sum() // core.ports), least))
    return tuple(found)


def _regret(data: PartitionData, one: PriceOutlook, chosen: Ints, switches: Sequence[int], quantity: Floats) -> float:
    """What a choice costs beyond the best one in an outlook."""
    products = [replace(p, usd=usd) for p, usd in zip(data.products, one.prices, strict=True)]
    capex = float(one.usd[chosen].sum()) + _bills(data, products, quantity)
    core = sum(other * count for other, count in zip(one.core, switches, strict=True))
    return data.weight * capex + float(one.other[chosen].sum()) + core - one.best


def _bills(data: PartitionData, products: Sequence[Product], quantity: Floats) -> float:
    """The least bill of what is needed of all products, each in the phase that needs it or before (USD)."""
    last = set(range(len(products))) - {p.before for p in products}
    whole = 0.0
    for p in sorted(p for p in last if p is not None):
        chain = data.chain(p)[::-1]
        whole += orders([products[q] for q in chain], [float(quantity[q]) for q in chain])[0]
    return whole


def orders(phases: Sequence[Product], needed: Sequence[float]) -> tuple[float, tuple[float, ...]]:
    """The least bill of a product over its phases (USD), and how many units each phase buys.

    Given the bracket of every phase, bills and purchases are linear: at least its threshold is bought in each, and what
    is missing in some phase is bought in the cheapest phase so far, of equally cheap ones in the last. The best of all
    choices of brackets is the least bill.
    """
    if len(phases) == 1 and len(phases[0].usd) == 1:
        return float(phases[0].usd[0]) * needed[0], (needed[0],)
    brackets = product(*(range(len(phase.usd)) for phase in phases))
    return min((_in_brackets(phases, needed, chosen) for chosen in brackets), key=lambda one: (one[0], sum(one[1])))


def _in_brackets(
    phases: Sequence[Product], needed: Sequence[float], chosen: tuple[int, ...]
) -> tuple[float, tuple[float, ...]]:
    """The least bill with a bracket chosen in every phase, and the purchases."""
    usd = [float(phase.usd[b]) for phase, b in zip(phases, chosen, strict=True)]
    bought = [float(phase.start[b]) for phase, b in zip(phases, chosen, strict=True)]
    for t in range(len(phases)):
        short = sum(needed[: t + 1]) - sum(bought[: t + 1])
        if short > 0:
            bought[min(range(t, -1, -1), key=lambda earlier: usd[earlier])] += short
    given = sum(float(phase.given[b]) for phase, b in zip(phases, chosen, strict=True))
    return given + sum(price * units for price, units in zip(usd, bought, strict=True)), tuple(bought)
