"""What islands are compared by, and which of them others beat: prices, limits, and products that
count.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coopt.columns.dominance import Slopes, beaten_options, needed_options
from coopt.columns.islands.listing import Islands, Market
from coopt.columns.islands.shapes import Sites
from coopt.instance.schema import Instance
from coopt.network.products import caps_of, priced_products
from coopt.perf.mapping import Bools, Floats, Ints

Usage = tuple[Floats, Floats, Bools]
"""What options use that must not grow (n, uses), units of products (n, P), and limited products in
use (n, limited).
"""

# share of the networks left that are looked into at once, the cheapest beside those that none
# dominates
BATCH = 0.1


@dataclass(frozen=True, kw_only=True)
class Coupling:
    """What islands are compared by: prices, those of `outlooks` too, limits and products that
    count.
    """

    market: Market
    outlooks: tuple[Instance, ...] = ()

    @cached_property
    def slopes(self) -> Slopes:
        """How much the bill of each product rises with a unit, at the prices of any outlook too;
        nothing where only watts count.
        """
        instance = self.market.instance
        weight = float(instance.objective.minimize != "power" or "capex" in instance.limits.sums)
        price_lists = [self.market.goods, *map(priced_products, self.outlooks)]
        least_usd, most_usd = np.array(
            [[good.slopes for good in goods] for goods in price_lists]
        ).transpose(2, 0, 1)
        return Slopes(
            least_usd=weight * least_usd.min(axis=0), most_usd=weight * most_usd.max(axis=0)
        )

    @cached_property
    def limited(self) -> Ints:
        """Products of the kinds of which few may be in use."""
        limited_kinds = self.market.instance.sharing.most_products.given
        return np.array(
            [p for p, good in enumerate(self.market.goods) if good.kind in limited_kinds],
            dtype=np.int64,
        )

    def joins(self, units: Floats) -> Bools:
        """Which of the limited products are in use (n, limited); that of the core by every
        island.
        """
        core = self.market.core
        core_product = -1 if core is None else self.market.place["switch", core.name]
        return np.asarray((units[:, self.limited] > 0) | (self.limited == core_product))

    @cached_property
    def summed(self) -> tuple[Floats, ...]:
        """What units of each product take of a sum that matters: of a limit, and of the watts that
        are paid for.
        """
        instance, sums = self.market.instance, dict[tuple[float, ...], None]()
        if instance.objective.minimize != "capex" or "power" in instance.limited_sums:
            sums[tuple(good.w for good in self.market.goods)] = None
        sums |= dict.fromkeys(cap.each for cap in caps_of(instance))
        return tuple(map(np.array, sums))

    def watts(self, units: Floats) -> Floats:
        """Power that units of products draw (W); shape (n,)."""
        return np.asarray(units @ np.array([good.w for good in self.market.goods]))

    def racks(self, hb: Ints, domains: Ints) -> Floats:
        """Racks that HB domains fill (n,); 0 where nobody knows."""
        racks_per_domain = np.array(
            [domain.racks or 0.0 for domain in self.market.instance.network.hb_domains]
        )
        return np.asarray(np.ceil(domains * racks_per_domain[hb]))

    def usage(self, units: Floats, gpus: Ints, racks: Floats, core_ports: Ints) -> Usage:
        """What options are compared by (n rows): GPUs, core ports, sums and racks as far as they
        count, and units.
        """
        instance = self.market.instance
        columns = [gpus.astype(np.float64)]
        if self.market.core is not None:
            columns.append(core_ports.astype(np.float64))
        columns += [np.asarray(units @ per_unit) for per_unit in self.summed]
        if instance.limits.racks is not None:
            columns.append(racks)
        return np.stack(columns, axis=1), units, self.joins(units)

    def of_islands(self, islands: Islands) -> Usage:
        """What islands are compared by."""
        sites = Sites(gpus=islands.gpus, hb=islands.hb, domains=islands.domains)
        return self.usage(
            islands.units, islands.gpus, self.racks(sites.hb, sites.domains), islands.core_links
        )

    def undominated(self, usage: Usage) -> Ints:
        """Positions of options that hold an optimum whenever there is one."""
        uses, units, joins = usage
        return needed_options(np.zeros(len(units)), uses, units, joins, self.slopes)

    def dominated(self, rivals: Islands, usage: Usage) -> Bools:
        """Which options a kept island dominates, by what they use at least.

        Of equal networks those whose rails meet are preferred, so one whose rails do not has to be
        cheaper.
        """
        rail_only = np.array(
            [kind == "rail-only" for kind in self.market.instance.network.switched]
        )
        has_apart_rails = rail_only[rivals.fabric] & (rivals.uplinks > 0)
        is_beaten = beaten_options(
            self.of_islands(rivals.take(~has_apart_rails)), usage, self.slopes
        )
        return is_beaten | beaten_options(
            self.of_islands(rivals.take(has_apart_rails)), usage, self.slopes, cheaper=True
        )

    def promising(self, usage: Usage) -> Ints:
        """Positions of options that no other dominates, and of the cheapest."""
        usd = usage[1] @ self.slopes.most_usd
        return np.union1d(
            self.undominated(usage), np.argsort(usd, kind="stable")[: int(len(usd) * BATCH)]
        )

    def needed_islands(self, islands: Islands) -> Islands:
        """Islands that hold an optimum whenever there is one."""
        return islands.take(self.undominated(self.of_islands(islands)))

    def wholly_beaten(self, sites: Sites, rivals: Usage) -> Bools:
        """Sites on which options kept already beat every network, whatever its gear (n,)."""
        return np.asarray(self.beaten(sites, rivals).all(axis=0))

    def beaten(self, sites: Sites, rivals: Usage) -> Bools:
        """Gears with which every network of a site is dominated by an option that is kept already
        (gears, sites).

        Each is compared by what networks of its gear use at least: an option that dominates this,
        dominates whatever uses more.
        """
        market, beaten_gears = (
            self.market,
            np.ones((len(self.market.space.gears), len(sites)), dtype=np.bool_),
        )
        ends = [
            (g, gear, optics)
            for g, gear in enumerate(market.space.gears)
            for optics in market.space.ends(gear) or (None,)
        ]
        if not ends:
            return beaten_gears
        units = np.concatenate(
            [market.least_units(sites, gear, optics) for _, gear, optics in ends]
        )
        racks, gpus = (
            np.tile(self.racks(sites.hb, sites.domains), len(ends)),
            np.tile(sites.gpus, len(ends)),
        )
        usage = self.usage(units, gpus, racks, market.least_links(gpus))
        beaten = beaten_options(rivals, usage, self.slopes)
        for (g, _, optics), of_end in zip(ends, beaten.reshape(len(ends), len(sites)), strict=True):
            beaten_gears[g] &= of_end | (sites.domains > 1 if optics is None else False)
        return beaten_gears

    def closed_domains(self, gpus: int, rivals: Usage) -> Bools:
        """HB domains on which every site of that many GPUs or more is beaten (HB domains).

        Another such site has no fewer GPUs, no fewer domains and so no fewer units of anything than
        `gpus` in full domains, rounded down. What dominates this dominates them all; where it is
        two domains or more, for sites of one domain have no switch.
        """
        sizes = self.market.sizes
        is_closed = gpus >= 2 * sizes
        candidates = np.flatnonzero(is_closed)
        domains = gpus // sizes[candidates]
        least_sites = Sites(gpus=domains * sizes[candidates], hb=candidates, domains=domains)
        is_closed[candidates] = self.wholly_beaten(least_sites, rivals)
        return is_closed
