"""Networks of sites that some prices may need, listed once and priced afterwards.

Neither the units of a network nor the uplinks it needs depend on prices. So a network is dropped
here only where another one of the same site has no more units of any product and no more links into
a core. By `coopt.columns.pools` that one dominates it at any prices at which no unit more makes a
bill smaller: both have the same GPUs and racks, sums over products are of weights that are never
negative, and no product is in use that the dropped one does not use.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from coopt.columns.islands.coupling import Coupling
from coopt.columns.islands.listing import Builds, Equipment, Hardware, Islands, Market
from coopt.columns.islands.needs import RowsOnSites
from coopt.columns.islands.shapes import Shapes, Sites, shapes_of
from coopt.columns.pools import Slopes, beaten_options, undominated
from coopt.perf.mapping import Bools, Floats, Ints

UNKNOWN = -2  # number of uplinks not computed yet
NEVER = -1  # infeasible at any number of uplinks
ROUNDS = 12  # of the sieve, which may keep networks that are not needed
MOST_SITES = 64  # of a workload: networks of many sites take longer than they save
ANY_PRICES = Slopes(min_usd=np.zeros(1), max_usd=np.ones(1))
"""Slopes at which an option dominates another one only where it has no more of anything."""


def network_key(market: Market) -> Hashable:
    """All that the units of an island, the products counted and the lists of hardware depend on."""
    instance = market.instance
    return (
        market.unpriced,
        instance.objective.include,
        instance.cluster.model_copy(update={"gpu": instance.cluster.gpu.unpriced}),
        instance.sharing.model_copy(update={"discount": ()}),
        instance.existing,
        tuple(item.key for item in market.products),
    )


def _offer_key(offer: Hardware) -> Hashable:
    """The hardware of an offer by its names, as prices may be others later."""
    ends = tuple(tuple(optic.name for optic in pair) for pair in offer.levels)
    core_end = None if offer.core_end is None else offer.core_end.name
    return offer.nic, offer.switch, ends, offer.box, core_end


@dataclass(kw_only=True)
class SiteNetworks:
    """The networks of a workload that some prices may need, of the sites and the offers that were
    asked for so far.

    `islands` have numbers of offers in the order in which these were met; `site` and `tiers` of
    each are beside them (n,). `known` are pairs of offer and site.
    """

    islands: Islands
    site: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    tiers: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    known: Bools = field(default_factory=lambda: np.zeros((0, 0), dtype=np.bool_))
    sites: dict[Hashable, int] = field(default_factory=dict)
    offers: dict[Hashable, int] = field(default_factory=dict)

    def has_room(self, sites: Sites, rows: RowsOnSites) -> bool:
        """Whether some sites are few enough, with those that are known: at prices at which sizes
        far apart may win, listing at these prices is quicker.
        """
        served = sites.take(np.flatnonzero(rows.of >= 0))
        return len({*_site_keys(served), *self.sites}) <= MOST_SITES

    def of(self, market: Market, sites: Sites, rows: RowsOnSites) -> Islands:
        """Return the networks of some sites from what a market offers, in the order in which
        `Market.builds` has them, those of few tiers and NICs first.
        """
        served = np.flatnonzero(rows.of >= 0)
        sites, rows = sites.take(served), rows.take(served)
        at = [self.sites.setdefault(key, len(self.sites)) for key in _site_keys(sites)]
        site = np.array(at, dtype=np.int64)
        keys = [_offer_key(offer) for offer in market.offers]
        offer = np.array([self.offers.setdefault(key, len(self.offers)) for key in keys], np.int64)
        grown = (len(self.offers) - self.known.shape[0], len(self.sites) - self.known.shape[1])
        self.known = np.pad(self.known, ((0, grown[0]), (0, grown[1])))
        for tiers, per_gpu in passes(market):
            self._extend(market, tiers, per_gpu, (offer, site), sites, rows)
        self.known[np.ix_(offer, site)] = True
        of_offer = np.full(len(self.offers), -1)
        # offers whose hardware has the same names have the same networks: the first has them
        of_offer[offer[::-1]] = np.arange(len(offer))[::-1]
        place = np.full(len(self.sites), -1)
        place[site] = np.arange(len(site))
        rows_here = np.flatnonzero((of_offer[self.islands.offer] >= 0) & (place[self.site] >= 0))
        here = self.islands.take(rows_here)
        here = replace(here, offer=of_offer[here.offer])
        box = np.array([market.boxes[one.box] for one in market.offers], dtype=np.int64)
        of_tiers = self.tiers[rows_here]
        rail_only = np.array([kind == "rail-only" for kind in market.instance.network.switched])
        order = np.lexsort(
            (
                place[self.site[rows_here]],
                here.offer,
                here.wiring,
                box[here.offer],
                here.fabric,
                rail_only[here.fabric] & (of_tiers > 1),
                here.nics_per_gpu,
                of_tiers,
            )
        )
        return here.take(order)

    def _extend(
        self,
        market: Market,
        tiers: int,
        per_gpu: int,
        numbers: tuple[Ints, Ints],
        sites: Sites,
        rows: RowsOnSites,
    ) -> None:
        """Add the networks of so many tiers and NICs of those pairs that are not known."""
        offers, equipment = market.of_tiers(tiers, per_gpu)
        offer, site = numbers
        is_new = ~self.known[np.ix_(offer[offers], site)] & ((sites.domains > 1) == (tiers > 0))
        if not is_new.any():
            return
        is_new &= served_at_full_rate(rows, equipment)
        of_pair, at = np.nonzero(is_new)
        least, links = market.least_units(sites, equipment), market.least_links(sites.gpus)
        is_beaten = self._beaten(least[of_pair, at], links[at], site[at])
        is_new[of_pair[is_beaten], at[is_beaten]] = False
        offered = {
            int(number): is_offered
            for number, is_offered in zip(offers, is_new, strict=True)
            if is_offered.any()
        }
        if not offered:
            return
        shapes = shapes_of(
            sites,
            market.sizes[sites.hb],
            market.instance.network,
            per_gpu,
            links,
            market.sites_of_boxes(offered),
            market.wirings,
        )
        builds = market.builds(sites, shapes, offered)
        self._add(market, tiers, builds, (offer, site), rows)

    def _add(
        self,
        market: Market,
        tiers: int,
        builds: Builds,
        numbers: tuple[Ints, Ints],
        rows: RowsOnSites,
    ) -> None:
        """Add those of some builds that some prices may need, at the uplinks they need."""
        offer, site = numbers
        shapes = builds.shapes
        least = market.islands(builds, builds.minimum_uplinks)
        of_site = site[shapes.site[builds.shape]]
        pair_uplinks = np.full((len(market.instance.network.nics), len(shapes)), UNKNOWN)
        undecided = np.arange(len(builds))
        while len(undecided):
            is_beaten = self._beaten(
                least.units[undecided], least.core_links[undecided], of_site[undecided]
            )
            undecided = undecided[~is_beaten]
            if not len(undecided):
                return
            first = undominated(_amounts(least.take(undecided)), of_site[undecided], rounds=ROUNDS)
            batch = builds.take(undecided[first])
            pairs = np.zeros(pair_uplinks.shape, dtype=np.bool_)
            pairs[batch.nic, batch.shape] = True
            pair_uplinks[pairs] = uplinks_of(market, rows, shapes, *np.nonzero(pairs))
            uplinks = pair_uplinks[builds.nic[undecided], builds.shape[undecided]]
            served = uplinks >= 0
            found = market.islands(builds.take(undecided[served]), uplinks[served])
            found = replace(found, offer=offer[found.offer])
            self.islands = self.islands.followed_by(found)
            self.site = np.concatenate([self.site, of_site[undecided[served]]])
            self.tiers = np.concatenate([self.tiers, np.full(len(found), tiers)])
            kept = np.flatnonzero(undominated(_amounts(self.islands), self.site, rounds=4 * ROUNDS))
            self.islands = self.islands.take(kept)
            self.site, self.tiers = self.site[kept], self.tiers[kept]
            undecided = undecided[uplinks == UNKNOWN]

    def _beaten(self, units: Floats, links: Ints, site: Ints) -> Bools:
        """Whether a network of the same site has no more of anything (n,)."""
        rivals = _uses(self.islands.core_links, self.site), self.islands.units
        options = _uses(links, site), units
        no_joins = (np.zeros((len(one[0]), 0), dtype=np.bool_) for one in (rivals, options))
        rival_joins, joins = no_joins
        return beaten_options((*rivals, rival_joins), (*options, joins), ANY_PRICES)


def _site_keys(sites: Sites) -> list[tuple[int, int, int]]:
    columns = sites.gpus.tolist(), sites.hb.tolist(), sites.domains.tolist()
    return list(zip(*columns, strict=True))


def _amounts(islands: Islands) -> Floats:
    """Units of every product and links into a core (n, P + 1)."""
    return np.column_stack([islands.units, islands.core_links])


def _uses(links: Ints, site: Ints) -> Floats:
    """Columns of which none is larger only at the same site and with no more links."""
    return np.column_stack([site, -site, links]).astype(np.float64)


def passes(market: Market) -> list[tuple[int, int]]:
    """Numbers of tiers and of NICs for each GPU, in the order in which networks are listed."""
    tiers = sorted({box.tiers for box in market.boxes})
    return list(product(tiers, sorted(market.instance.network.nics_per_gpu)))


def served_at_full_rate(rows: RowsOnSites, equipment: Equipment) -> Bools:
    """Whether some row meets the bound on each site at the full rate of the NICs of each equipment
    (equipment, sites).
    """
    is_served = np.zeros((len(equipment), len(rows.of)), dtype=np.bool_)
    for rate in np.unique(equipment.byte_s).tolist():
        is_served[equipment.byte_s == rate] = rows.in_reach(rate)
    return is_served


def uplinks_of(market: Market, rows: RowsOnSites, shapes: Shapes, nic: Ints, shape: Ints) -> Ints:
    """Minimum number of uplinks of every pair of NIC and shape (n,); `NEVER` where no number
    suffices.
    """
    gbit_s = np.array([nic_kind.gbit_s for nic_kind in market.instance.network.nics])
    # bandwidth of a GPU between domains with all uplinks (bytes/s)
    byte_s = np.asarray(shapes.nics_per_gpu[shape] * gbit_s[nic] * 1e9 / 8)
    return rows.uplinks_needed(shapes.take(shape), byte_s, market.instance.network.discipline)


def priced(coupling: Coupling, rivals: Islands, networks: Islands) -> Islands:
    """Return the islands kept and those of further networks that may be needed at the prices of a
    coupling.
    """
    standing = rivals.followed_by(networks)
    return standing.take(coupling.undominated(coupling.of_islands(standing)))
