"""Networks that may be needed on sites: at the prices of a question, or, listed once and priced
afterwards, at any prices.

Neither the units of a network nor the uplinks it needs depend on prices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from coopt.columns.islands.coupling import AtAnyPrices, Coupling, Usage
from coopt.columns.islands.listing import Equipment, Hardware, Islands, Market
from coopt.columns.islands.needs import RowsOnSites
from coopt.columns.islands.shapes import Shapes, Sites, shapes_of
from coopt.perf.mapping import Bools, Ints

UNKNOWN = -2  # number of uplinks not computed yet
NEVER = -1  # infeasible at any number of uplinks
MOST_SITES = 64  # of a workload: networks of many sites take longer than they save


def _offer_key(offer: Hardware) -> Hashable:
    """The hardware of an offer by its names, as prices may be others later."""
    ends = tuple(tuple(optic.name for optic in pair) for pair in offer.levels)
    core_end = None if offer.core_end is None else offer.core_end.name
    return offer.nic, offer.switch, ends, offer.box, core_end


@dataclass(kw_only=True)
class SiteNetworks:
    """The networks of a workload that some prices may need, of the sites and the offers that were
    asked for so far.

    `islands` have numbers of offers in the order in which these were met. `known` are pairs of
    offer and site, by the number of either.
    """

    islands: Islands
    known: Bools = field(default_factory=lambda: np.zeros((0, 0), dtype=np.bool_))
    sites: dict[Hashable, int] = field(default_factory=dict)
    offers: dict[Hashable, int] = field(default_factory=dict)

    def has_room(self, market: Market, sites: Sites, rows: RowsOnSites) -> bool:
        """Whether some sites are few enough, with those that are known: at prices at which sizes
        far apart may win, listing at these prices is quicker.
        """
        served = market.site_numbers(sites)[rows.of >= 0].tolist()
        return len({*served, *self.sites}) <= MOST_SITES

    def of(self, market: Market, sites: Sites, rows: RowsOnSites) -> Islands:
        """Return the networks of some sites from what a market offers, in the order in which
        `Market.builds` has them, those of few tiers and NICs first.
        """
        served = np.flatnonzero(rows.of >= 0)
        sites, rows = sites.take(served), rows.take(served)
        numbers = market.site_numbers(sites)
        site, offer = (
            np.array([known.setdefault(key, len(known)) for key in keys], dtype=np.int64)
            for known, keys in (
                (self.sites, list[Hashable](numbers.tolist())),
                (self.offers, list(map(_offer_key, market.offers))),
            )
        )
        grown = (len(self.offers) - self.known.shape[0], len(self.sites) - self.known.shape[1])
        self.known = np.pad(self.known, ((0, grown[0]), (0, grown[1])))
        fresh, coupling = ~self.known[np.ix_(offer, site)], AtAnyPrices(market=market)
        if fresh.any():
            for tiers, per_gpu in passes(market):
                self.islands = further_networks(
                    coupling, sites, rows, self.islands, (tiers, per_gpu), Counter(), offer, fresh
                )
        self.known[np.ix_(offer, site)] = True
        of_offer = np.full(len(self.offers), -1)
        # offers whose hardware has the same names have the same networks: the first has them
        of_offer[offer[::-1]] = np.arange(len(offer))[::-1]
        place = market.site_numbers(self.islands.sites)
        rows_here = np.flatnonzero((of_offer[self.islands.offer] >= 0) & np.isin(place, numbers))
        here, place = self.islands.take(rows_here), place[rows_here]
        here = replace(here, offer=of_offer[here.offer])
        boxes = [(market.boxes[one.box], one.box.tiers) for one in market.offers]
        box, tiers_of = np.array(boxes, dtype=np.int64).reshape(-1, 2)[here.offer].T
        rails_apart = market.rail_only[here.fabric] & (tiers_of > 1)
        parts = (place, here.offer, here.wiring, box, here.fabric, rails_apart)
        return here.take(np.lexsort((*parts, here.nics_per_gpu, tiers_of)))


def passes(market: Market) -> list[tuple[int, int]]:
    """Numbers of tiers and of NICs for each GPU, in the order in which networks are listed: what is
    kept of few dominates most of the others by what they take at least, so that only few are
    wired.
    """
    tiers = sorted({box.tiers for box in market.boxes})
    return list(product(tiers, sorted(market.instance.network.nics_per_gpu)))


def further_networks(
    coupling: Coupling,
    sites: Sites,
    rows: RowsOnSites,
    rivals: Islands,
    of: tuple[int, int],
    gated: Counter[str],
    number: Ints | None = None,
    asked: Bools | None = None,
) -> Islands:
    """Return the islands kept and all further networks of so many tiers and NICs that may be
    needed, each with the minimum number of uplinks that meets the bound.

    Finding the minimum number of uplinks is slow. With the minimum number that its switches allow,
    a network uses no more than with the number it needs, so a network is dropped if a kept island
    dominates even that. Undominated and cheapest networks are searched first, since most others are
    dropped then.

    Parameters
    ----------
    gated
        Counts of dropped networks by cause, which grow.
    number
        The number that islands have of each offer of the market.
    asked
        Which offers are asked for on which sites; all if left out (offers, sites).
    """
    market, (tiers, nics_per_gpu) = coupling.market, of
    offers, equipment = market.of_tiers(tiers, nics_per_gpu)
    wanted = np.ones((len(offers), len(sites)), dtype=np.bool_) if asked is None else asked[offers]
    wanted = wanted & ((sites.domains > 1) == (tiers > 0))
    is_open = wanted & served_at_full_rate(rows, equipment) if wanted.any() else wanted
    gated["communication"] += int(wanted.sum()) - int(is_open.sum())
    offer, site = np.nonzero(is_open)
    if not len(offer):
        return rivals
    least = coupling.least_usage(sites, equipment)
    is_open[offer, site] = ~coupling.dominated(rivals, _of_rows(least, np.flatnonzero(is_open)))
    gated["dominated"] += len(offer) - int(is_open.sum())
    offered = {
        int(number): is_offered
        for number, is_offered in zip(offers, is_open, strict=True)
        if is_offered.any()
    }
    if not offered:
        return rivals
    shapes = shapes_of(
        sites,
        market.sizes[sites.hb],
        market.instance.network,
        nics_per_gpu,
        market.least_links(sites.gpus),
        market.sites_of_boxes(offered),
        market.wirings,
    )
    builds = market.builds(sites, shapes, offered)
    least_usage = coupling.of_islands(market.islands(builds, builds.minimum_uplinks))
    nics = len(market.instance.network.nics)
    uplinks_of_pairs = np.full((nics, len(shapes)), UNKNOWN)
    uplinks = np.full(len(builds), UNKNOWN)
    survivors, undecided = rivals, np.arange(len(builds))
    while len(
        undecided := undecided[~coupling.dominated(survivors, _of_rows(least_usage, undecided))]
    ):
        batch = builds.take(undecided[coupling.promising(_of_rows(least_usage, undecided))])
        pairs = np.zeros(uplinks_of_pairs.shape, dtype=np.bool_)
        # builds that differ in switches or optics alone need the same uplinks
        pairs[batch.nic, batch.shape] = True
        uplinks_of_pairs[pairs] = uplinks_of(market, rows, shapes, *np.nonzero(pairs))
        uplinks[undecided] = uplinks_of_pairs[builds.nic[undecided], builds.shape[undecided]]
        undecided = undecided[uplinks[undecided] == UNKNOWN]
        served = np.flatnonzero(uplinks >= 0)
        networks = market.islands(builds.take(served), uplinks[served])
        if number is not None:
            networks = replace(networks, offer=number[networks.offer])
        survivors = priced(coupling, rivals, networks)
    late_builds = int((uplinks == NEVER).sum())
    gated["communication"] += late_builds
    gated["dominated"] += len(rivals) + len(builds) - late_builds - len(survivors)
    return survivors


def _of_rows(usage: Usage, rows: Ints) -> Usage:
    uses, units, joins = usage
    return uses[rows], units[rows], joins[rows]


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
