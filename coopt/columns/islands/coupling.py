"""Comparison of islands by prices, limits and counted products, and dominance between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coopt.columns.islands.listing import Equipment, Islands, Market
from coopt.columns.islands.shapes import Sites
from coopt.columns.pools import Slopes, beaten_options, needed_options, undominated
from coopt.instance.schema import Instance
from coopt.network.parts import caps_of, priced_products
from coopt.perf.mapping import Bools, Floats, Ints

Usage = tuple[Floats, Floats, Bools]
"""What options use that must not grow (n, uses), units of products (n, P), and whether limited
products are in use (n, limited).
"""

# share of the remaining networks that are searched together with the undominated ones, the
# cheapest first
BATCH = 0.1
ROUNDS = 12  # of the sieve at any prices, which may keep networks that are not needed


@dataclass(frozen=True, kw_only=True)
class Coupling:
    """Comparison of islands: by prices, also in all `price_scenarios`, by limits, and by counted
    products.
    """

    market: Market
    price_scenarios: tuple[Instance, ...] = ()

    @cached_property
    def slopes(self) -> Slopes:
        """Minimum and maximum increase of the bill of each product per unit, over all price
        scenarios; zero where only power counts.
        """
        instance = self.market.instance
        weight = float(instance.objective.minimize != "power" or "capex" in instance.limits.sums)
        price_lists = [self.market.products, *map(priced_products, self.price_scenarios)]
        min_usd, max_usd = np.array(
            [[item.slopes for item in products] for products in price_lists]
        ).transpose(2, 0, 1)
        return Slopes(min_usd=weight * min_usd.min(axis=0), max_usd=weight * max_usd.max(axis=0))

    @cached_property
    def limited(self) -> Ints:
        """Indices of products whose kinds have a limited number of products in use."""
        limited_kinds = self.market.instance.sharing.most_products.given
        return np.array(
            [p for p, item in enumerate(self.market.products) if item.kind in limited_kinds],
            dtype=np.int64,
        )

    def joins(self, units: Floats) -> Bools:
        """Whether limited products are in use (n, limited); every island uses that of the core."""
        core = self.market.core
        core_product = -1 if core is None else self.market.place["switch", core.name]
        return np.asarray((units[:, self.limited] > 0) | (self.limited == core_product))

    @cached_property
    def summed(self) -> tuple[Floats, ...]:
        """Contributions per unit of each product to each sum that matters: to limits, and to power
        if it is paid for.
        """
        instance, sums = self.market.instance, dict[tuple[float, ...], None]()
        if instance.objective.minimize != "capex" or "power" in instance.limited_sums:
            sums[tuple(item.w for item in self.market.products)] = None
        sums |= dict.fromkeys(cap.each for cap in caps_of(instance))
        return tuple(map(np.array, sums))

    def racks(self, hb: Ints, domains: Ints) -> Floats:
        """Racks of HB domains (n,); 0 where unknown."""
        racks_per_domain = np.array(
            [domain.racks or 0.0 for domain in self.market.instance.network.hb_domains]
        )
        return np.asarray(np.ceil(domains * racks_per_domain[hb]))

    def usage(self, units: Floats, gpus: Ints, racks: Floats, core_ports: Ints) -> Usage:
        """Return the usage by which options are compared (n rows): GPUs, core ports, sums and racks
        where they count, and units.
        """
        instance = self.market.instance
        columns = [gpus.astype(np.float64)]
        if self.market.core is not None:
            columns.append(core_ports.astype(np.float64))
        columns += [np.asarray(units @ per_unit) for per_unit in self.summed]
        if instance.limits.racks is not None:
            columns.append(racks)
        return np.stack(columns, axis=1), units, self.joins(units)

    def usage_on(self, sites: Sites, units: Floats, links: Ints) -> Usage:
        """Return the usage of networks of sites with so many links into a core (n rows)."""
        racks = self.racks(sites.hb, sites.domains)
        return self.usage(units, sites.gpus, racks, self.market.core_ports(links))

    def of_islands(self, islands: Islands) -> Usage:
        """Return the usage of islands, as `usage` does for options."""
        return self.usage_on(islands.sites, islands.units, islands.core_links)

    def undominated(self, usage: Usage) -> Ints:
        """Return the positions of options that include an optimum if there is one."""
        uses, units, joins = usage
        return needed_options(np.zeros(len(units)), uses, units, joins, self.slopes)

    def dominated(self, rivals: Islands, usage: Usage) -> Bools:
        """Return which options are dominated by a kept island, given lower bounds on their
        usage.

        Networks whose rails are joined are preferred to equal ones, so a network with separate
        rails must be cheaper to dominate.
        """
        has_apart_rails = self.market.rail_only[rivals.fabric] & (rivals.uplinks > 0)
        is_beaten = beaten_options(
            self.of_islands(rivals.take(~has_apart_rails)), usage, self.slopes
        )
        return is_beaten | beaten_options(
            self.of_islands(rivals.take(has_apart_rails)), usage, self.slopes, cheaper=True
        )

    def promising(self, usage: Usage) -> Ints:
        """Return the positions of undominated options and of the cheapest ones."""
        usd = usage[1] @ self.slopes.max_usd
        return np.union1d(
            self.undominated(usage), np.argsort(usd, kind="stable")[: int(len(usd) * BATCH)]
        )

    def wholly_beaten(self, sites: Sites, rivals: Usage) -> Bools:
        """Whether kept options dominate every network on each site, with any NIC option (n,)."""
        return np.asarray(self.beaten(sites, rivals).all(axis=0))

    def beaten(self, sites: Sites, rivals: Usage) -> Bools:
        """Whether kept options dominate every network of a site with each NIC option (NIC options,
        sites).

        A NIC option is represented by a lower bound on the usage of its networks: an option that
        dominates the bound dominates all networks that use more.
        """
        market = self.market
        numbers, equipment = market.nic_fittings
        beaten = beaten_options(rivals, self.least_usage(sites, equipment), self.slopes)
        joins_none = np.logical_not(equipment.modules.any(axis=(1, 2)))
        joins_nothing = joins_none[:, None] & (sites.domains > 1)
        beaten_nics = np.ones((len(market.space.nic_options), len(sites)), dtype=np.bool_)
        np.logical_and.at(beaten_nics, numbers, beaten.reshape(joins_nothing.shape) | joins_nothing)
        return beaten_nics

    def least_usage(self, sites: Sites, equipment: Equipment) -> Usage:
        """Return lower bounds on the usage of any network with each equipment on each site, all
        sites of the first equipment first.
        """
        units = self.market.least_units(sites, equipment)
        sites = sites.take(np.tile(np.arange(len(sites)), len(equipment)))
        links = self.market.least_links(sites.gpus)
        return self.usage_on(sites, units.reshape(len(sites), units.shape[2]), links)

    def closed_domains(self, gpus: int, rivals: Usage) -> Bools:
        """HB domains on which every site with at least `gpus` GPUs is dominated (HB domains).

        Every such site has at least as many GPUs and domains, and so at least as many units, as
        `gpus` GPUs in full domains, rounded down. What dominates these dominates all of them. This
        holds for at least two domains, since sites of one domain have no switch.
        """
        sizes = self.market.sizes
        is_closed = gpus >= 2 * sizes
        candidates = np.flatnonzero(is_closed)
        domains = gpus // sizes[candidates]
        least_sites = Sites(gpus=domains * sizes[candidates], hb=candidates, domains=domains)
        is_closed[candidates] = self.wholly_beaten(least_sites, rivals)
        return is_closed


class AtAnyPrices(Coupling):
    """Comparison of the islands of one site at any prices at which no unit more makes a bill
    smaller: one dominates another only where it has no more units of any product and no more links
    into a core.

    By `coopt.columns.pools` it does so whatever is limited: both have the same GPUs and racks, sums
    over products are of weights that are never negative, and no product is in use that the
    dominated one does not use.
    """

    @cached_property
    def slopes(self) -> Slopes:
        """Any price may be anything."""
        return Slopes(min_usd=np.zeros(1), max_usd=np.ones(1))

    def usage_on(self, sites: Sites, units: Floats, links: Ints) -> Usage:
        """Return columns of which none is larger only at the same site and with no more links, and
        units.
        """
        site = self.market.site_numbers(sites)
        columns = np.stack([site, -site, links], axis=1)
        return columns.astype(np.float64), units, np.zeros((len(units), 0), dtype=np.bool_)

    def undominated(self, usage: Usage, rounds: int = 4 * ROUNDS) -> Ints:
        """Return the positions of options that some prices may need, and a few others."""
        uses, units, _ = usage
        amounts = np.column_stack([units, uses[:, -1]])
        return np.flatnonzero(undominated(amounts, uses[:, 0].astype(np.int64), rounds=rounds))

    def dominated(self, rivals: Islands, usage: Usage) -> Bools:
        """Return which options are dominated by a kept island, rails joined or not."""
        return beaten_options(self.of_islands(rivals), usage, self.slopes)

    def promising(self, usage: Usage) -> Ints:
        """Return the positions of options that hardly any other dominates."""
        return self.undominated(usage, ROUNDS)
