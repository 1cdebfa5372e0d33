"""Islands that need not grow, from the smallest on: what cannot win any more is neither wired nor
timed.

An island that serves dominates whatever takes no less than it does (`coopt.columns.pools`).
What networks of a site and a NIC option take at least is known before they are wired, and what a
network takes before it is timed. So both are left out where an island that is kept dominates that
least already, whatever slows, interrupts or breaks them.

A workload that asks the same in all its phases is served in all of them by a network that serves in
the first. That stays as it is, takes no labour, and nothing that grows ever takes less than it
began with. So an island that dominates what another one takes in its first phase dominates it in
all: lines are looked at only from where none does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from coopt.columns.feasible import possibly_in_time
from coopt.columns.grid import DomainSet, degrees
from coopt.columns.islands.coupling import Coupling, Usage
from coopt.columns.islands.listing import Market
from coopt.columns.islands.needs import fastest_byte_s, quick_mappings, rows_of
from coopt.columns.islands.options import ListedIslands, SiteKey, windows
from coopt.columns.islands.shapes import Sites, quick_degrees
from coopt.columns.pools import beaten_options, place
from coopt.instance.couplings import BillKind, Losses
from coopt.instance.hardware import HbDomain
from coopt.instance.schema import Instance
from coopt.instance.variants import at_prices
from coopt.network.cores import core_ports_of, links_to_core
from coopt.network.family import Family
from coopt.network.growth import factors_paid
from coopt.network.laying import laid_each, with_least
from coopt.network.optics import measures_of
from coopt.network.parts import racks
from coopt.network.placing import Bay, bay_of
from coopt.network.space import Space
from coopt.perf.mapping import Bools, Ints
from coopt.solving.fleet.arrays import Grid
from coopt.solving.fleet.paths import (
    Check,
    Listing,
    Prune,
    Stages,
    asked_in,
    list_paths,
    paths_on,
    served_on,
    sizes_of,
    stages_of,
    stretched,
    trained_on,
)
from coopt.solving.fleet.placed import units_at

Choice = tuple[Family, int]
"""A network with the uplinks of a leaf."""


def list_islands(
    instance: Instance,
    names: Collection[str],
    original: Instance,
    check: Check,
    listed: ListedIslands,
    prune: Prune | None = None,
) -> Listing:
    """Every island that may be needed, of those that meet the bounds of some workloads in all
    phases.

    Parameters
    ----------
    instance
        The question at the prices of a bill and an efficiency, without intervals.
    names, check, prune
        As in `coopt.solving.fleet.paths.list_paths`.
    original
        The same question with what prices may turn out to be and what may be lost.
    listed
        What was listed before, and this adds to.
    """
    losses, measures = original.losses, measures_of(original)
    asked = asked_in(instance, names)
    first, *later = asked.values()
    if later and (
        instance.sharing.mode == "time" or any(one.workload != first.workload for one in later)
    ):
        return list_paths(instance, names, losses, measures, check, listed, prune)
    start = min(asked)
    factors = original.price_scenarios
    if paid := factors_paid(instance, start):
        factors = [
            {kind: by * one.get(kind, 1.0) for kind, by in of.items()}
            for of in paid
            for one in factors or [{}]
        ]
    scenarios = tuple(at_prices(first, one) for one in factors)
    coupling = Coupling(market=Market(instance=first, measures=measures), price_scenarios=scenarios)
    bay = bay_of(instance, next(iter(names)))
    search = _IslandSearch(question=first, coupling=coupling, check=check, listed=listed, bay=bay)
    search.list_all(losses)
    listing, phases = search.found, len(instance.years)
    listing.paths = [
        stretched({start: uplinks}, {start: family}, phases) for family, uplinks in search.kept
    ]
    if later:
        sizes = {t: sizes_of(question) for t, question in asked.items()}
        begun = list(_begun(search, instance, asked[max(asked)], sizes))
        trained = {
            t: [
                starts if t == start else trained_on(stages, sizes[t], last=t == max(asked))
                for stages, starts in begun
            ]
            for t in asked
        }
        lines = [stages for stages, _ in begun]
        grown = paths_on(instance, asked, lines, trained, losses, listed, measures, check, bay)
        listing.paths += grown.paths
        listing.families += grown.families
        listing.gated += grown.gated
    return listing


def _begun(
    search: _IslandSearch, instance: Instance, final: Instance, sizes: Mapping[int, Sequence[int]]
) -> Iterator[tuple[Stages, tuple[int, ...]]]:
    """Networks of the last phase that began smaller, and the GPUs they may have begun with: no
    island that stays takes as little of everything. `sizes` are those of each phase that trains.
    """
    first_sizes, *between_sizes, last_sizes = sizes.values()
    between = {gpus for some in between_sizes for gpus in some}
    open_nic_options = search.open_nic_options(np.array(first_sizes, dtype=np.int64))
    measures = search.coupling.market.measures
    space = Space(instance=final, measures=measures, grow=True, unlaid=True)
    ratio = instance.network.largest_ratio
    links = {gpus: links_to_core(instance, gpus) for some in sizes.values() for gpus in some}
    for gpus in last_sizes:
        for hb, domains in space.sites(gpus):
            for number, starts in open_nic_options.get((hb.name, -(-gpus // domains)), {}).items():
                search.check()
                smaller = [one for one in starts if one < gpus]
                lasts = (
                    space.families(gpus, hb, domains, [space.nic_options[number]])
                    if smaller
                    else ()
                )
                lines = [
                    stages_of(last, smaller, ratio, links)
                    for last in lasts
                    if last.core_links >= links[gpus]
                ]
                for stages, left in zip(lines, search.unbeaten_starts(lines), strict=True):
                    if left:
                        yield stages_of(stages[gpus], between.union(left), ratio, links), left


@dataclass(kw_only=True)
class _IslandSearch:
    """The islands of a question that are kept so far, and what they take."""

    question: Instance
    coupling: Coupling
    check: Check
    listed: ListedIslands
    bay: Bay
    kept: list[Choice] = field(default_factory=list)
    found: Listing = field(default_factory=Listing)

    def __post_init__(self) -> None:
        self.taken = self._taken([])

    def list_all(self, losses: Losses) -> None:
        """Keep every island that may be needed."""
        closed = np.zeros(len(self.question.network.hb_domains), dtype=np.bool_)
        for some in windows(np.array(sizes_of(self.question), dtype=np.int64)):
            closed |= self.coupling.closed_domains(int(some[0]), self.taken)
            if closed.all():
                break
            sites = self.in_time(self.unbeaten_sites(some, closed))
            for n in range(len(sites)):
                self.look_at(sites.take(np.array([n])), losses)

    def open_nic_options(self, sizes: Ints) -> dict[tuple[str, int], dict[int, list[int]]]:
        """By HB domain and GPUs of it that train: for each NIC option the sizes at which no island
        that is kept dominates what it takes at least.
        """
        sites = self.in_time(
            self.unbeaten_sites(
                sizes, np.zeros(len(self.question.network.hb_domains), dtype=np.bool_)
            )
        )
        found: dict[tuple[str, int], dict[int, list[int]]] = {}
        for nic_option, n in np.argwhere(~self.coupling.beaten(sites, self.taken)).tolist():
            key = self.question.network.hb_domains[sites.hb[n]].name, int(sites.active[n])
            found.setdefault(key, {}).setdefault(nic_option, []).append(int(sites.gpus[n]))
        return found

    def unbeaten_starts(self, lines: Sequence[Stages]) -> list[tuple[int, ...]]:
        """For each line the smaller sizes at which it takes less of something than every island
        that is kept.
        """
        begun = [
            (n, family)
            for n, stages in enumerate(lines)
            for gpus, family in stages.items()
            if gpus < max(stages)
        ]
        taken = self._least_taken([(family, family.uplink_choices[0]) for _, family in begun])
        left: list[tuple[int, ...]] = [()] * len(lines)
        for k in np.flatnonzero(~beaten_options(self.taken, taken, self.coupling.slopes)).tolist():
            n, family = begun[k]
            left[n] = (*left[n], family.gpus)
        return left

    def unbeaten_sites(self, sizes: Ints, closed: Bools) -> Sites:
        """Sites of some sizes on which an island that is not dominated may stand."""
        space, place = (
            self.coupling.market.space,
            {hb.name: n for n, hb in enumerate(self.question.network.hb_domains)},
        )
        listed = [
            (gpus, place[hb.name], domains)
            for gpus in sizes.tolist()
            for hb, domains in space.sites(gpus)
        ]
        gpus, hb, domains = np.array(listed, dtype=np.int64).reshape(-1, 3).T
        sites = Sites(gpus=gpus, hb=hb, domains=domains).take(~closed[hb])
        return sites.take(~self.coupling.wholly_beaten(sites, self.taken))

    def in_time(self, sites: Sites) -> Sites:
        """The sites on which a mapping of a workload of its own is in time at the full rate of the
        fastest NICs, those of few domains first; domains that are not filled alike are looked at
        later, one by one.
        """
        order = np.argsort(sites.domains * self.coupling.market.sizes[sites.hb], kind="stable")
        sites = sites.take(order)
        if self.question.sharing.mode == "time":
            return sites
        keys = list(
            zip(sites.gpus.tolist(), sites.hb.tolist(), sites.domains.tolist(), strict=True)
        )
        if fresh := [n for n, key in enumerate(keys) if key not in self._serving]:
            served = self._serve(sites.take(np.array(fresh)))
            self._serving.update(
                (keys[n], one) for n, one in zip(fresh, served.tolist(), strict=True)
            )
        return sites.take(np.array([self._serving[key] for key in keys], dtype=np.bool_))

    @cached_property
    def _serving(self) -> dict[SiteKey, bool]:
        (workload,) = self.question.workload
        return self.listed.serving(workload, self.coupling.market)

    def _serve(self, sites: Sites) -> Bools:
        """Sites on which a mapping is in time, as `in_time` has it."""
        (workload,), network, gpu = (
            self.question.workload,
            self.question.network,
            self.question.cluster.gpu,
        )
        byte_s = fastest_byte_s(network)
        mine = self._degrees[np.isin(self._degrees.prod(axis=1), sites.gpus)]
        whole = quick_mappings(workload, gpu, network, mine, byte_s)
        quick, even = (
            np.zeros(len(sites), dtype=np.bool_),
            np.flatnonzero(sites.gpus % sites.domains == 0),
        )
        if len(whole):
            for rows in rows_of(workload, gpu, network, sites.take(even), whole, byte_s):
                quick[even[rows.site]] = True
            quick |= (sites.gpus % sites.domains > 0) & np.isin(
                sites.gpus, whole.tp * whole.cp * whole.pp * whole.dp
            )
        return quick

    @cached_property
    def _degrees(self) -> Ints:
        (workload,) = self.question.workload
        return quick_degrees(workload, self.question.cluster.gpu, self.question.cluster.most_gpus)

    def _late(self, gpus: int, hb: HbDomain, domains: int) -> bool:
        """Whether no mapping of a workload of its own is in time on domains that are not filled
        alike.
        """
        if gpus % domains == 0 or self.question.sharing.mode == "time":
            return False
        (workload,), gpu, byte_s = (
            self.question.workload,
            self.question.cluster.gpu,
            fastest_byte_s(self.question.network),
        )
        mine = possibly_in_time(
            workload, gpu, degrees(workload, gpus), hb_gbyte_s=hb.gbyte_s, byte_s=byte_s
        )
        there = DomainSet(gpus=gpus, hb=hb.name, domains=domains, size=hb.size)
        placed = place(workload, gpu, hb, there, mine)
        return bool(placed.contention_free_s(byte_s).min(initial=np.inf) > workload.bound_s)

    def look_at(self, site: Sites, losses: Losses) -> None:
        """Keep what serves on a site and nothing kept dominates."""
        self.check()
        market, gpus, domains = self.coupling.market, int(site.gpus[0]), int(site.domains[0])
        beaten = self.coupling.beaten(site, self.taken)[:, 0]
        hb, links = self.question.network.hb_domains[site.hb[0]], links_to_core(self.question, gpus)
        if beaten.all() or self._late(gpus, hb, domains):
            return
        nic_options = [
            nic_option
            for nic_option, done in zip(market.space.nic_options, beaten, strict=True)
            if not done
        ]
        listed = list[Family]()
        for family in market.space.families(gpus, hb, domains, nic_options):
            self.check()
            if family.core_links >= links:
                listed.append(family)
        least = self._least_taken([(family, family.uplink_choices[0]) for family in listed])
        few = np.flatnonzero(~beaten_options(self.taken, least, self.coupling.slopes))
        self.found.families += len(listed)
        self.found.gated["dominated"] += len(listed) - len(few)
        networks = [listed[n] for n in few]
        served = served_on(
            self.question, networks, losses, self.listed, self.check, self.found.gated
        )
        serving = [family for some in served.values() for family in some]
        # those that are kept spare others their cables
        groups = [[one] for one in serving] if self._by_length else [serving]
        for group in groups:
            self._keep(choice for family in group for choice in self._built(family))

    def _built(self, family: Family) -> Iterator[Choice]:
        """A network that serves with the fewest uplinks; where lengths choose its cables, with
        each number of them, which may have cheaper ones.
        """
        if not family.unlaid:
            # with more uplinks and as many spare domains there is no less of anything
            yield family, family.uplink_choices[0]
            return
        least = self._least_taken([(family, uplinks) for uplinks in family.uplink_choices])
        beaten = beaten_options(self.taken, least, self.coupling.slopes).tolist()
        for uplinks, is_beaten in zip(family.uplink_choices, beaten, strict=True):
            self.check()
            values = self.coupling.market.space.optic_values
            if not is_beaten:
                each = laid_each(self.question, family, uplinks, values, self.check, self.bay)
                yield from ((laid, uplinks) for laid in each)

    def _keep(self, built: Iterable[Choice]) -> None:
        """Keep those that nothing kept dominates."""
        new = list(built)
        if not new:
            return
        choices = [*self.kept, *new]
        (uses, units, joins), rows = self.taken, self._taken(new)
        joined = (
            np.vstack([uses, rows[0]]),
            np.vstack([units, rows[1]]),
            np.vstack([joins, rows[2]]),
        )
        left = self.coupling.undominated(joined)
        self.found.gated["dominated"] += len(choices) - len(left)
        self.kept, self.taken = (
            [choices[n] for n in left],
            (joined[0][left], joined[1][left], joined[2][left]),
        )

    def _least_taken(self, choices: Sequence[Choice]) -> Usage:
        """What networks take with their uplinks, at least where lengths are to choose their cables:
        modules of the least sum for each sum that counts. Where prices differ from case to case, or
        few products may be in use, none of their modules count.
        """
        if not self._by_length:
            return self._taken(choices)
        slopes, limits = self.coupling.slopes, self.question.sharing.most_products
        kinds: tuple[BillKind, ...] = ("capex", "power")
        rows = [
            self._taken(
                [(with_least(self.question, family, kind), uplinks) for family, uplinks in choices]
            )
            for kind in kinds
        ]
        (uses, units, joins), (other_uses, *_) = rows
        if limits.optics is not None or not np.array_equal(slopes.min_usd, slopes.max_usd):
            goods = self._grid.goods
            units = units * np.array([float(good.kind != "optics") for good in goods])
            joins = self.coupling.joins(units)
        return np.minimum(uses, other_uses), units, joins

    @property
    def _by_length(self) -> bool:
        return self.question.network.cables == "hall"

    @cached_property
    def _grid(self) -> Grid:
        return Grid(instance=self.question)

    def _taken(self, choices: Sequence[Choice]) -> Usage:
        """What networks take with their uplinks."""
        units = np.array([units_at(self._grid, *one) for one in choices]).reshape(
            len(choices), len(self._grid.goods)
        )
        gpus = np.array([family.gpus for family, _ in choices], dtype=np.int64)
        filled = np.array([racks(family) or 0 for family, _ in choices], dtype=np.float64)
        ports = [core_ports_of(self.question, family.core_links) for family, _ in choices]
        return self.coupling.usage(units, gpus, filled, np.array(ports, dtype=np.int64))
