"""What a small fleet pays, by trying every quantity of every product in every phase (docs/fleets.md, purchases)."""

import math
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate

import numpy as np

from coopt.instance.couplings import PriceFactors
from coopt.instance.schema import Instance
from coopt.instance.variants import years_of
from coopt.perf.mapping import Floats, Ints

Way = dict[str, float]
"""Factors on prices, by kind."""


def sold_as(kind: str) -> str:
    """The kind by whose prices and whose place in a bill a product goes: fibre by that of the optics that it joins."""
    return "optics" if kind == "fibre" else kind


class Prices:
    """The prices of a product in each phase, by quantity, and the least to pay for what has to stand."""

    def __init__(self, begins: list[int], usd: list[list[float]], *, all_units: bool) -> None:
        self.begins, self.usd, self.all_units = begins, usd, all_units
        self.least = cache(self._least)
        self._buying = cache(self._table)

    def _least(self, standing: tuple[int, ...]) -> float:
        """The least bill with which so many units can stand in each phase, bought in it or before."""
        whole = standing[-1]
        if len(self.begins) == 1 and (len(self.usd) == 1 or whole > 999):  # too many to try: fibre, in dollars
            cheapest = accumulate((usd for (usd,) in self.usd), min)
            rises = np.diff(standing, prepend=0).tolist()
            return sum(units * usd for units, usd in zip(rises, cheapest, strict=True))
        after = np.where(np.arange(whole + 1) == whole, 0.0, math.inf)  # by the units bought before a phase
        for t in range(len(standing) - 1, -1, -1):
            usd = self._buying(t, whole)[:, standing[t] :] + after[standing[t] :]
            after = usd.min(axis=1)
        return float(after[0])

    def _table(self, phase: int, whole: int) -> Floats:
        """What it costs to go from so many units to so many within a phase; to all of them, or to more."""
        most = max(whole, self.begins[-1])
        exactly = np.array(self.exactly(phase, most))
        table = np.full((whole + 1, whole + 1), math.inf)
        for had in range(whole + 1):
            table[had, had:] = exactly[: whole + 1 - had]
            table[had, whole] = exactly[whole - had :].min()
        return table

    def exactly(self, phase: int, most: int) -> list[float]:
        """The bill of exactly so many units in a phase, for every number up to `most`."""
        each = [self._price(phase, units) for units in range(most + 1)]
        if self.all_units:
            return [units * usd for units, usd in enumerate(each)]
        return list(accumulate(each[:-1], initial=0.0))

    def _price(self, phase: int, units: int) -> float:
        brackets = zip(self.begins, self.usd[phase], strict=True)
        return [usd for begin, usd in brackets if units >= begin][-1]


@dataclass(frozen=True, kw_only=True, eq=False)
class Book:
    """Products, prices and watts of an instance."""

    instance: Instance

    @cached_property
    def listed(self) -> dict[tuple[str, str], tuple[float, float]]:
        """USD and W of a unit of each product, GPUs last; idle ones before them where these cost something else."""
        network, gpu = self.instance.network, self.instance.cluster.gpu
        found = {("hb", hb.name): (hb.usd_per_gpu, hb.w_per_gpu) for hb in network.hb_domains}
        for kind, parts in (("nic", network.nics), ("switch", network.switches), ("optics", network.optics)):
            found |= {(kind, part.name): (part.usd, part.w) for part in parts}
        found |= {("fibre", "USD"): (1.0, 0.0)} if network.fibre else {}  # which all costs whole dollars
        idle = {("hb", f"{gpu.name} (idle)"): (gpu.usd, gpu.w)} if self.idle_apart else {}
        return {**found, **idle, ("gpu", gpu.name): (gpu.usd, gpu.w)}

    @property
    def idle_apart(self) -> bool:
        """Whether one network grows at known prices, which buys idle GPUs at the factor of HB domains."""
        instance = self.instance
        return bool(instance.phase) and instance.sharing.mode == "time" and instance.robust is None

    @cached_property
    def products(self) -> list[tuple[str, str]]:
        """Kind and name of each product; positions are those of all arrays."""
        return list(self.listed)

    @cached_property
    def watts(self) -> Floats:
        """W of a unit of each product, 0 where the bill does not count it."""
        return np.array([w * self._counts(kind) for (kind, _), (_, w) in self.listed.items()])

    def _counts(self, kind: str) -> bool:
        return (
            sold_as(kind) in self.instance.objective.include or kind == "gpu"
        )  # GPUs are left out of units where not counted

    @cached_property
    def links_of_core_module(self) -> int:
        """Links of one module of the core that the instance names."""
        core, network = self.instance.sharing.core, self.instance.network
        rate = next(switch.port_gbit_s for switch in network.switches if switch.name == core.switch)
        return round(next(optic.gbit_s for optic in network.optics if optic.name in core.optics) / rate)

    def core_ports(self, links: int) -> int:
        """Ports of the core that links of an island take, in modules that are its own."""
        if self.instance.sharing.core is None:
            return 0
        return math.ceil(links / self.links_of_core_module) * self.links_of_core_module

    def usd_per_w(self, phase: int, site: int) -> float:
        """What a watt costs from a phase to the next at a site."""
        terms, there = self.instance.objective, self.instance.site[site] if self.instance.site else None
        pue = terms.pue if there is None or there.pue is None else there.pue
        usd_per_kwh = terms.usd_per_kwh if there is None or there.usd_per_kwh is None else there.usd_per_kwh
        years, factor = terms.years, 1.0
        if self.instance.phase:
            years, factor = years_of(self.instance, phase), self.instance.phase[phase].price.energy
        return years * 8760 / 1000 * pue * usd_per_kwh * factor

    def work_usd(self, standing: Ints, way: Way) -> Floats:
        """Labour for what is bought, and support of what stands in each phase, at what a unit costs then (n,)."""
        terms, phases = self.instance.objective, self.instance.phase
        usd = self.capex_usd(standing, way)
        if not phases:
            return usd * (terms.labour_share + terms.years * terms.support_share)
        work = usd * terms.labour_share
        for t, phase in enumerate(phases):
            years = years_of(self.instance, t)
            for g, (kind, name) in enumerate(self.products):
                unit_usd = (
                    self.listed[kind, name][0]
                    * way[sold_as(kind)]
                    * getattr(phase.price, sold_as(kind))
                    * self._counts(kind)
                )
                work = work + standing[:, t, g] * unit_usd * years * terms.support_share
        return work

    def capex_usd(self, standing: Ints, way: Way) -> Floats:
        """The least bill of all products for what has to stand in each phase (n, T, G), at some prices (n,)."""
        usd = np.zeros(len(standing))
        for g, (kind, name) in enumerate(self.products):
            if self._counts(kind):
                rows, of = np.unique(standing[:, :, g], axis=0, return_inverse=True)
                prices = self._prices(kind, name, way[sold_as(kind)])
                usd += np.array([prices.least(tuple(row)) for row in rows.tolist()])[of.reshape(-1)]
        return usd

    @cached_property
    def _known(self) -> dict[tuple[str, str, float], Prices]:
        return {}

    def _prices(self, kind: str, name: str, factor: float) -> Prices:
        if (kind, name, factor) not in self._known:
            usd = self.listed[kind, name][0]
            found = next((d for d in self.instance.sharing.discount if (d.kind, d.item) == (kind, name)), None)
            steps = [(0, usd)] if found is None else [(0, usd), *zip(found.begins, found.prices(usd), strict=True)]
            phases = [phase.price for phase in self.instance.phase] or [PriceFactors()]
            self._known[kind, name, factor] = Prices(
                [begin for begin, _ in steps],
                [[price * factor * getattr(prices, sold_as(kind)) for _, price in steps] for prices in phases],
                all_units=found is not None and found.applies == "all-units",
            )
        return self._known[kind, name, factor]
