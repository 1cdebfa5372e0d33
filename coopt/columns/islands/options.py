"""The possible islands of each workload: all that meet its bound, except those that no optimum
needs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np

from coopt.columns.feasible import recalled, without_bound
from coopt.columns.islands.coupling import Coupling, Usage
from coopt.columns.islands.listing import Islands, Market
from coopt.columns.islands.needs import RowsOnSites, fastest_byte_s, quick_mappings, rows_of
from coopt.columns.islands.shapes import Sites, quick_degrees, sites_of
from coopt.columns.islands.tables import (
    SiteNetworks,
    further_networks,
    passes,
    priced,
)
from coopt.columns.pools import Rows
from coopt.columns.times import FastestTimes
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.network.parts import network_key
from coopt.perf.mapping import Bools, Ints

Answer = TypeVar("Answer")
GROWTH = 1.15  # sizes up to this factor apart are searched together
SiteKey = tuple[int, int, int]
"""Number of GPUs of a site, index of its HB domain, and number of domains."""


@dataclass(frozen=True, kw_only=True, eq=False)
class IslandOptions:
    """The possible islands of each workload, one per row, and counts of them.

    `gated` counts dropped islands by cause; a site whose networks were all dropped counts once, and
    so do its networks of the same products.
    """

    workload: Ints
    islands: Islands
    gated: dict[str, int]


class _KnownSite(NamedTuple):
    """The list of rows of a site, none where no mapping is in time, with the number that the site
    has there, and the bound and the bandwidth that they were listed at.
    """

    bound_s: float
    byte_s: float
    rows: Rows | None
    number: int


class ListedIslands:
    """Cache of what a run lists, for searches of questions that differ in a part.

    The islands of a workload depend on the whole question except its other workloads, its names and
    its solver settings; networks do not depend on bounds either. Which mappings meet their bound on
    a site depends neither on prices nor on the number of products, and those that meet a longer
    bound include them. The most recent entries are kept. Not for concurrent searches.

    Parameters
    ----------
    prices_vary
        Whether many questions differ in prices or bounds alone: networks that some prices may need,
        and the times of networks at any bound, are then listed once, which takes as long as several
        listings at known prices and bounds.
    """

    MAX_ENTRIES = 32
    MAX_NETWORKS = 8  # lists of networks, each of which may be long

    def __init__(self, *, prices_vary: bool = False) -> None:
        self._prices_vary = prices_vary
        self._found: dict[Hashable, dict[Hashable, Any]] = {}
        self._at_bounds: dict[Hashable, dict[Hashable, Any]] = {}
        self._networks: dict[Hashable, Any] = {}
        self._rows: dict[Hashable, dict[Hashable, _KnownSite]] = {}
        self._fastest: dict[Hashable, FastestTimes] = {}
        self._serving: dict[Hashable, dict[SiteKey, bool]] = {}
        self._tables: dict[Hashable, SiteNetworks | None] = {}

    def of_question(
        self, instance: Instance, of: Hashable, listing: Callable[[], Answer]
    ) -> Answer:
        """Return what a question lists `of` something, which names all that counts of its
        workloads, computing it by `listing` if it is not cached.
        """
        found: dict[Hashable, Answer] = self.of_listed(question_key(instance))
        return recalled(found, of, listing)

    def of_listed(self, key: Hashable) -> dict[Hashable, Any]:
        """Return what was listed of a question, or of what its key names; callers add to it."""
        return self._recall(self._found, key, dict)

    def at_bounds(self, key: Hashable) -> dict[Hashable, Any]:
        """Return what was listed at other bounds of what its key names without them; callers add to
        it.
        """
        return self._recall(self._at_bounds, key, dict)

    def networks(self, instance: Instance, of: Hashable, listing: Callable[[], Answer]) -> Answer:
        """Return the networks that a question lists, whatever bounds its workloads have, computing
        them by `listing` if they are not cached.
        """
        key = question_key(instance), of, tuple(map(without_bound, instance.workload))
        return self.long_list(key, listing)

    def long_list(self, key: Hashable, listing: Callable[[], Answer]) -> Answer:
        """Return networks by all that they depend on, computing them by `listing` if they are not
        cached.
        """
        found: dict[Hashable, Answer] = self._networks
        return self._recall(found, key, listing, self.MAX_NETWORKS)

    def rows(
        self,
        workload: Workload,
        market: Market,
        sites: Sites,
        listing: Callable[[Sites], Iterable[Rows]],
    ) -> RowsOnSites:
        """Return the mappings of a workload that meet its bound on sites, computing those that are
        not cached by `listing`.
        """
        network, bound_s = market.instance.network, workload.bound_s
        timed = self._timed(without_bound(workload), market), network.discipline
        known: dict[Hashable, _KnownSite] = self._recall(self._rows, timed, dict)
        byte_s, rates = fastest_byte_s(network), [hb.rates for hb in network.hb_domains]
        columns = (sites.gpus.tolist(), sites.domains.tolist(), sites.hb.tolist())
        keys = [(gpus, domains, rates[hb]) for gpus, domains, hb in zip(*columns, strict=True)]
        unlisted = [
            n
            for n, key in enumerate(keys)
            if key not in known or known[key].bound_s < bound_s or known[key].byte_s < byte_s
        ]
        if unlisted:
            known.update((keys[n], _KnownSite(bound_s, byte_s, None, 0)) for n in unlisted)
            for rows in listing(sites.take(np.array(unlisted))):
                for number in np.unique(rows.site).tolist():
                    key = keys[unlisted[number]]
                    known[key] = _KnownSite(bound_s, byte_s, rows, number)
        lists: dict[int, tuple[int, Rows]] = {}
        of, numbers = np.full(len(keys), -1), np.zeros(len(keys), dtype=np.int64)
        for n, key in enumerate(keys):
            site = known[key]
            if site.rows is None:
                continue
            rows = site.rows
            if (site.bound_s, site.byte_s) != (bound_s, byte_s):
                rows = rows.within(bound_s, byte_s)
            at = np.searchsorted(rows.site, site.number)
            if at < len(rows.site) and rows.site[at] == site.number:
                of[n], _ = lists.setdefault(id(rows), (len(lists), rows))
                numbers[n] = site.number
        return RowsOnSites(lists=tuple(rows for _, rows in lists.values()), of=of, number=numbers)

    def fastest(self, instance: Instance) -> tuple[FastestTimes, ...] | None:
        """Return the times of the fastest mappings of each workload that are known so far, whatever
        its bound; callers add to them. None where few questions are asked.
        """
        if not self._prices_vary:
            return None
        gpu = instance.cluster.gpu
        return tuple(
            self._recall(
                self._fastest,
                (workload, gpu.unpriced),
                partial(FastestTimes, workload=workload, gpu=gpu),
            )
            for workload in map(without_bound, instance.workload)
        )

    def serving(self, workload: Workload, market: Market) -> dict[SiteKey, bool]:
        """Return, for the sites examined so far, whether a mapping of a workload meets its bound
        there; callers add to it.
        """
        network = market.instance.network
        wires = tuple(hb.rates for hb in network.hb_domains), fastest_byte_s(network)
        return self._recall(self._serving, (self._timed(workload, market), wires), dict)

    def table(self, coupling: Coupling, workload: Workload) -> SiteNetworks | None:
        """Return the networks of a workload that some prices may need; None where prices do not
        vary, it is asked for the first time, or fewer units may cost more.
        """
        market = coupling.market
        if not self._prices_vary or not (coupling.slopes.min_usd >= 0).all():
            return None
        key = self._timed(workload, market), network_key(market.instance)
        if key in self._tables and self._tables[key] is None:
            self._tables[key] = SiteNetworks(islands=market.no_islands())
        return self._recall(self._tables, key, lambda: None)

    def _timed(self, workload: Workload, market: Market) -> Hashable:
        """Return everything but rates that the times of mappings depend on without contention."""
        # objects rather than their JSON, which omits the margins of time and memory
        return workload.model_copy(update={"name": ""}), market.instance.cluster.gpu.unpriced

    def _recall(
        self,
        answers: dict[Hashable, Answer],
        key: Hashable,
        listing: Callable[[], Answer],
        most: int = MAX_ENTRIES,
    ) -> Answer:
        answers[key] = answer = answers.pop(key) if key in answers else listing()
        while len(answers) > most:
            del answers[next(iter(answers))]
        return answer


def question_key(instance: Instance) -> Hashable:
    """Return all of a question but its workloads, its solver, and the numbers of its limits: what
    is limited decides which islands are compared, and not by how much.
    """
    unlisted = {"workload", "name", "description", "solver", "limits"}
    question = instance.model_dump(mode="json", exclude=unlisted)
    for site in question["site"]:
        site["power_mw"] = None
    for phase in question["phase"]:
        phase["workloads"] = None
    question["sharing"]["most_products"] = [*instance.sharing.most_products.given]
    # the GPU itself, since JSON omits its margin of memory
    return json.dumps(question), (*instance.limits.given,), instance.cluster.gpu


def list_options(
    instance: Instance,
    on_workload: Callable[[Workload], None],
    on_step: Callable[[], None],
    listed: ListedIslands | None = None,
) -> IslandOptions:
    """Return the islands of every workload; workloads that differ only in name share theirs.

    Parameters
    ----------
    on_workload, on_step
        Called before each workload, and often during the search.
    listed
        Cache from earlier searches, which this one extends.
    """
    coupling = Coupling(market=Market(instance=instance))
    listings = ListedIslands() if listed is None else listed
    islands_of_workloads = [coupling.market.no_islands()]
    gated: Counter[str] = Counter()
    for workload in instance.workload:
        on_workload(workload)
        islands, dropped = listings.of_question(
            instance,
            workload.model_copy(update={"name": ""}),
            partial(islands_of, coupling, workload, on_step, listings),
        )
        gated.update(dropped)
        islands_of_workloads.append(islands)
    all_islands = reduce(Islands.followed_by, islands_of_workloads)
    return IslandOptions(
        workload=np.repeat(
            np.arange(len(islands_of_workloads) - 1),
            [len(islands) for islands in islands_of_workloads[1:]],
        ),
        islands=all_islands,
        gated=dict(gated),
    )


def islands_of(
    coupling: Coupling,
    workload: Workload,
    on_step: Callable[[], None],
    listings: ListedIslands | None = None,
) -> tuple[Islands, Counter[str]]:
    """Return the islands of one workload, by GPUs and then by capex, and the number of dropped
    ones by cause; sizes that can no longer win are skipped.
    """
    gated: Counter[str] = Counter()
    market, listings = coupling.market, listings or ListedIslands()
    by_size, kept = _SitesBySize.of(coupling, workload), [market.no_islands()]
    table = listings.table(coupling, workload)
    looked_into = 0
    for sites, rows in by_size.served(lambda: coupling.of_islands(kept[-1]), on_step, listings):
        looked_into += len(sites)
        if table is None or not table.has_room(market, sites, rows):
            kept.append(_networks(coupling, sites, rows, kept[-1], gated))
        else:
            networks = table.of(market, sites, rows)
            kept.append(priced(coupling, kept[-1], networks))
            gated["dominated"] += len(kept[-2]) + len(networks) - len(kept[-1])
    if len(by_size.sites):
        gated["dominated"] += len(by_size.sites) - looked_into
    islands = kept[-1]
    usd = islands.units @ coupling.slopes.max_usd
    return islands.take(np.lexsort((usd, islands.gpus))), gated


def within_bounds(
    instance: Instance, workload: Workload, on_step: Callable[[], None]
) -> Callable[[float], bool]:
    """Return a function that decides whether a workload has an island at a given bound, not longer
    than its own.

    The smallest islands are searched first. A mapping that meets a bound also meets a longer one,
    so mappings are listed once, at the workload's own bound.
    """
    coupling = Coupling(market=Market(instance=instance))
    nothing, byte_s = coupling.market.no_islands(), fastest_byte_s(instance.network)
    by_size, no_usage = _SitesBySize.of(coupling, workload), coupling.of_islands(nothing)
    unlisted = by_size.served(lambda: no_usage, on_step, ListedIslands())
    listed = list[tuple[Sites, RowsOnSites]]()

    def every() -> Iterator[tuple[Sites, RowsOnSites]]:
        yield from listed
        for sites, rows in unlisted:
            listed.append((sites, rows))
            yield sites, rows

    def is_served(bound_s: float) -> bool:
        for sites, rows in every():
            on_step()
            within = rows.with_bound(bound_s)
            if within.in_reach(byte_s).any() and len(
                _networks(coupling, sites, within, nothing, Counter())
            ):
                return True
        return False

    return is_served


@dataclass(frozen=True, kw_only=True, eq=False)
class _SitesBySize:
    """The sites of a workload, in rising order of size, and the HB domains on which no further site
    can win.
    """

    coupling: Coupling
    workload: Workload
    degrees: Ints
    sites: Sites
    is_closed: Bools

    @classmethod
    def of(cls, coupling: Coupling, workload: Workload) -> _SitesBySize:
        """Return all sites on which compute alone lets the workload meet its bound."""
        cluster, hb_domains = (
            coupling.market.instance.cluster,
            coupling.market.instance.network.hb_domains,
        )
        degrees = quick_degrees(workload, cluster.gpu, cluster.most_gpus)
        return cls(
            coupling=coupling,
            workload=workload,
            degrees=degrees,
            sites=sites_of(np.unique(degrees.prod(axis=1)), hb_domains),
            is_closed=np.zeros(len(hb_domains), dtype=np.bool_),
        )

    def open_sites(self, window: Ints, rivals: Usage) -> Sites:
        """Return the sites of some sizes that can hold an island not dominated by rivals."""
        self.is_closed[:] |= self.coupling.closed_domains(int(window[0]), rivals)
        sites = self.sites.take(np.isin(self.sites.gpus, window) & ~self.is_closed[self.sites.hb])
        is_beaten = self.coupling.beaten(sites, rivals)
        # what no network joins would be timed in vain
        is_possible = self.coupling.market.may_join(sites) & ~is_beaten
        return sites.take(np.flatnonzero(is_possible.any(axis=0)))

    def served(
        self, rivals: Callable[[], Usage], on_step: Callable[[], None], listings: ListedIslands
    ) -> Iterator[tuple[Sites, RowsOnSites]]:
        """Yield sites that can hold an island not dominated by the rivals so far, the smallest
        first, with the mappings that meet the bound there.
        """
        for window in windows(np.unique(self.degrees.prod(axis=1))):
            if self.is_closed.all():
                return
            sites = self.open_sites(window, rivals())
            if len(sites):
                on_step()
                yield sites, listings.rows(self.workload, self.coupling.market, sites, self.rows)

    def rows(self, sites: Sites) -> Iterable[Rows]:
        """Return the mappings that meet the bound on some sites at the full rate of NICs."""
        instance = self.coupling.market.instance
        of_size = self.degrees[np.isin(self.degrees.prod(axis=1), sites.gpus)]
        byte_s = fastest_byte_s(instance.network)
        mappings = quick_mappings(
            self.workload, instance.cluster.gpu, instance.network, of_size, byte_s
        )
        if not len(mappings):
            return ()
        return rows_of(
            self.workload, instance.cluster.gpu, instance.network, sites, mappings, byte_s
        )


def windows(sizes: Ints) -> Iterator[Ints]:
    """Yield sizes in rising order, some at a time."""
    while len(sizes):
        is_near = sizes <= sizes[0] * GROWTH
        yield sizes[is_near]
        sizes = sizes[~is_near]


def _networks(
    coupling: Coupling, sites: Sites, rows: RowsOnSites, rivals: Islands, gated: Counter[str]
) -> Islands:
    """Return the islands kept and all further networks of sites that may be needed."""
    served = np.flatnonzero(rows.of >= 0)
    sites, rows = sites.take(served), rows.take(served)
    for of in passes(coupling.market):
        rivals = further_networks(coupling, sites, rows, rivals, of, gated)
    return rivals
