"""What a site can be: networks of its shares of the GPUs, with the longest wait each can bear.

Options of as many shares compare by price, power, racks, wait and links into a border. One that is
nowhere better than another is never needed: whatever sites, links and limits there are, the other
takes its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from heapq import heappop, heappush
from operator import is_

import numpy as np

from coopt.columns.feasible import feasible_mappings, recalled, without_bound
from coopt.columns.grid import Context, DomainSet
from coopt.columns.islands.options import ListedIslands
from coopt.columns.pools import Pool
from coopt.columns.table import full_bandwidth
from coopt.columns.times import (
    DelayTolerance,
    delay_tolerance,
    of_sites,
    waiting,
)
from coopt.instance.schema import NO_LIMIT, Instance, ObjectiveKind
from coopt.instance.variants import after_a_loss, local_question, with_gpu_value
from coopt.instance.workload import Workload
from coopt.network.borders import link_counts, link_items
from coopt.network.cores import core_ports_of
from coopt.network.family import Family, LinkEnds
from coopt.network.laying import laid_each, least_ends, with_least
from coopt.network.optics import EndsByLevel, OpticValues
from coopt.network.parts import listed_units, racks, unit_worth
from coopt.network.space import Space
from coopt.perf.mapping import Floats, Ints, Mappings, held_expert_parameters, held_parameters
from coopt.plan.parts import WorkloadPlan
from coopt.solving.families import (
    CountedFamily,
    CountedNetworks,
    CountedTable,
    counted_networks,
    repriced,
)


def gpus_w(instance: Instance, shares: int) -> float:
    """Power of the GPUs alone of some shares (W)."""
    return local_question(instance, shares).cluster.most_gpus * instance.cluster.gpu.w


def gradient_bytes(workload: Workload) -> float:
    """Bytes of the gradients of all parameters, as one GPU would hold them that trains the model
    alone.
    """
    undivided = Mappings.of(tp=np.ones(1, dtype=np.int64))
    experts = held_expert_parameters(workload, undivided)
    return float(
        workload.options.software.gradient_bytes
        * (held_parameters(workload, undivided) + experts)[0]
    )


SUMS: tuple[tuple[ObjectiveKind, str], ...] = (("capex", "usd"), ("power", "w"))


@dataclass(frozen=True, kw_only=True, eq=False)
class Option:
    """A network for some of the shares, with the mappings of each workload on it.

    `longest_s` holds the wait with which the best mapping of each workload is just in time,
    `border_ports` the ports that its links take in the border of a site, and `runs` how workloads
    run on networks that were chosen before, at whatever prices.
    """

    shares: int
    family: Family
    uplinks: int
    usd: float
    w: float
    racks: int
    border_ports: int
    longest_s: tuple[float, ...]
    context: Context
    pools: tuple[Pool, ...]
    runs: dict[Hashable, WorkloadPlan]

    def fastest(self, w: int, wait_s: float) -> tuple[int, float]:
        """The mapping of a workload that runs fastest with that wait, and its seconds."""
        times = waiting(self.pools[w], wait_s).time_s(self.context, self.uplinks)
        row = int(np.argmin(times))
        return row, float(times[row])

    def in_time(self, waits_s: Sequence[float], first: int) -> bool:
        """Whether every workload from the first on meets its bound with its wait, by the time
        itself.
        """
        return all(
            self.fastest(w, wait_s)[1] <= self.pools[w].workload.bound_s
            for w, wait_s in enumerate(waits_s, start=first)
        )


@dataclass(frozen=True, kw_only=True)
class Offers:
    """The options of some number of shares that are worth having, and how much was looked at.

    `mappings` are those on which the options run, `gated` the others by what dropped them.
    """

    options: tuple[Option, ...]
    mappings: int
    gated: Counter[str]


@dataclass(frozen=True, kw_only=True, eq=False)
class _SitePlace:
    """A kind of HB domain: mappings of each workload on it, and the longest wait any bears at full
    bandwidth.
    """

    pools: tuple[Pool, ...]
    gated: Counter[str]
    patience: tuple[DelayTolerance, ...]
    roof_s: tuple[float, ...]

    @property
    def unloaded(self) -> _SitePlace:
        """The same without link loads, which take much memory."""
        patience = tuple(waits.of(waits.undelayed.workload) for waits in self.patience)
        pools = tuple(waits.undelayed for waits in patience)
        return replace(self, patience=patience, pools=pools)


@dataclass(frozen=True, kw_only=True, eq=False)
class Networks:
    """Every network for some of the shares, by rising price (`usd`) and power (`w`), with its
    family by number, the links into a border that it may have, and the question that they are for.

    Where lengths are still to choose its cables, both are the least that any of these add, whatever
    the lengths, and `values` say what cables are compared by.
    """

    shares: int
    links: range
    local: Instance
    values: OpticValues
    table: CountedTable
    usd: Floats
    w: Floats
    family: Ints
    uplinks: Ints


def networks(
    instance: Instance,
    shares: int,
    measures: tuple[ObjectiveKind, ...],
    listed: ListedIslands | None = None,
    check: Callable[[], None] = lambda: None,
) -> Networks:
    """Every network for so many shares, in time or not.

    Where the loss of a channel is to be survived, their question has every workload once more, in
    the same order, with the bound that holds meanwhile.

    Parameters
    ----------
    measures
        What optics are compared by in the question of all sites.
    listed
        What earlier questions listed; networks and their bills depend neither on bounds on time nor
        on memory.
    check
        Called now and then; may raise.
    """
    local = local_question(instance, shares)
    unbound = tuple(map(without_bound, local.workload))
    links = link_counts(instance, local.cluster.most_gpus)
    spares = instance.availability.at_each_site if instance.availability else 0
    space = Space(instance=local, measures=measures, links=links, unlaid=True, standing_by=spares)
    found = (listed or ListedIslands()).of_question(
        with_any_memory(local),
        (shares, measures, unbound, links, spares),
        lambda: _every_network(space, shares, links, check),
    )
    if "channel" in instance.losses:
        late = after_a_loss(local, instance.losses["channel"]).workload
        local = local.having(workload=(*local.workload, *late), robust=None)
    return replace(found, local=local)


def with_any_memory(local: Instance) -> Instance:
    """The question for which networks are kept, as they do not depend on memory: what does names
    its GPU.
    """
    return with_gpu_value(local.cluster.gpu.name, "hbm_gb", local, NO_LIMIT)


def _every_network(space: Space, shares: int, links: range, check: Callable[[], None]) -> Networks:
    local, table = space.instance, counted_networks(space).table(space, check)
    number, uplinks, _ = table.rows
    usd, w = _least_sums(local, table)
    order = np.lexsort((w, usd))
    return Networks(
        shares=shares,
        links=links,
        local=local,
        values=space.optic_values,
        table=table,
        usd=usd[order],
        w=w[order],
        family=number[order],
        uplinks=uplinks[order],
    )


def _least_sums(local: Instance, table: CountedTable) -> tuple[Floats, Floats]:
    """Price (USD) and power (W) of each row of a table with its links into a border; the least of
    any cables where lengths are still to choose them.
    """
    # modules of links into a border, which many families have alike
    ends = [
        (
            one.family.core_links,
            one.family.core_modules,
            one.family.core_end and one.family.core_end.name,
            one.family.core_cables,
        )
        for one in table.networks
    ]
    of_ends = dict(zip(ends, (one.family for one in table.networks), strict=True))
    families = list(repriced(local, of_ends.values()))
    number, units, sums = table.rows[0], list(listed_units(local)), list[Floats]()
    for kind, key in SUMS:
        added = {
            end: sum(getattr(item, key) for item in link_items(local, with_least(local, one, kind)))
            for end, one in zip(of_ends, families, strict=True)
        }
        worth = _with_least_ends(local, table, kind).worth(unit_worth(local.objective, kind, units))
        sums.append(worth + np.array([added[end] for end in ends])[number])
    usd, w = sums
    return usd, w


def _with_least_ends(local: Instance, table: CountedTable, kind: ObjectiveKind) -> CountedTable:
    """The same families with the modules that add least to a bill, where lengths are still to
    choose.
    """
    networks = CountedNetworks()

    @cache
    def least(choices: EndsByLevel) -> tuple[LinkEnds, ...]:
        return least_ends(local, choices, kind)

    def with_least(one: CountedFamily) -> CountedFamily:
        optics = least(one.family.choices) if one.family.choices else one.family.optics
        if optics == one.family.optics:
            return one
        (counted,) = networks.counted(local, [replace(one.family, optics=optics)])
        return counted

    networks_with_least = tuple(map(with_least, table.networks))
    # the table itself has its units added up already
    is_own = all(map(is_, networks_with_least, table.networks))
    return table if is_own else CountedTable(networks=networks_with_least)


def _laid(networks: Networks, family: Family, uplinks: int, check: Callable[[], None]) -> Laid:
    """A network with each choice of cables that may be the best, with its price and power."""
    local = networks.local
    every = laid_each(local, family, uplinks, networks.values, check)
    table = CountedTable(networks=tuple(CountedNetworks().counted(local, every)))
    sums = zip(*map(np.ndarray.tolist, _least_sums(local, table)), strict=True)
    return [(usd, w, one.family) for (usd, w), one in zip(sums, table.networks, strict=True)]


Laid = list[tuple[float, float, Family]]
"""Price (USD), power (W) and the network that they are of."""


def offers(
    networks: Networks, check: Callable[[], None], listed: ListedIslands | None = None
) -> Offers:
    """The options that some networks are, which may be in time.

    Parameters
    ----------
    check
        Called now and then; may raise.
    listed
        What earlier questions listed: how long a network can wait does not depend on prices.
    """
    local, table = networks.local, networks.table
    options, kept = list[Option](), np.zeros((0, 4 + len(local.workload)))
    contexts, contexts_of = [one.context for one in table.networks], of_sites(table.uplinks)
    gpu, rates = local.cluster.gpu.unpriced, tuple(hb.rates for hb in local.network.hb_domains)
    uplinks_of = tuple((context, uplinks.tobytes()) for context, uplinks in table.uplinks.items())
    found = (listed or ListedIslands()).of_listed((local.workload, gpu, rates, uplinks_of))
    unbound = tuple(map(without_bound, local.workload)), gpu, rates
    tolerances: dict[Hashable, Tolerated] = (listed or ListedIslands()).at_bounds(unbound)
    known = recalled(found, "places", lambda: _places(local, contexts_of, tolerances, check))
    places = {site: place.unloaded for site, place in known.items()}
    waits: dict[Context, dict[int, tuple[float, ...]]] = recalled(found, "waits", dict)
    runs: dict[Hashable, WorkloadPlan] = recalled(found, "runs", dict)

    @cache
    def load(site: DomainSet) -> None:
        for pool in places[site].pools:
            pool.load([context for context in contexts_of[site] if not context.layout.is_flat])

    def longest(context: Context) -> dict[int, tuple[float, ...]]:
        load(context.site)
        uplinks, patience = table.uplinks[context], places[context.site].patience
        each = [one.longest_s(context, uplinks).tolist() for one in patience]
        return dict(zip(uplinks.tolist(), zip(*each, strict=True), strict=True))

    traits = np.array(
        [
            (racks(one.family) or 0, core_ports_of(local, links), -links)
            for one in table.networks
            for links in [one.family.core_links]
        ],
        dtype=np.float64,
    ).reshape(-1, 3)
    roofs = [places[context.site].roof_s for context in contexts]
    roof_s = np.array(roofs).reshape(len(contexts), len(local.workload))
    # full bandwidth allows the longest waits: what loses with these need not be timed with its own
    roof = np.column_stack([networks.w, traits[networks.family], -roof_s[networks.family]])
    left = np.flatnonzero((roof_s.min(axis=1) >= 0)[networks.family])
    # networks with their cables, by price, power and place, until none that is left is cheaper
    laid = list[tuple[float, float, int, int, Family]]()
    while len(left) or laid:
        check()
        if laid and (
            not len(left)
            or laid[0][:3] < (networks.usd[left[0]], networks.w[left[0]], int(left[0]))
        ):
            usd, w, row, _, family = heappop(laid)
            is_laid = True
        else:
            row, left = int(left[0]), left[1:]
            usd, w = float(networks.usd[row]), float(networks.w[row])
            family = table.networks[networks.family[row]].family
            is_laid = not family.unlaid
        number, uplinks = int(networks.family[row]), int(networks.uplinks[row])
        context = contexts[number]
        longest_s = recalled(waits, context, partial(longest, context))[uplinks]
        offered = np.array([w, *roof[row, 1:4], *(-s for s in longest_s)])
        # all that are kept are no dearer
        if min(longest_s) < 0 or (kept <= offered).all(axis=1).any():
            continue
        if not is_laid:
            every = _laid(networks, family, uplinks, check)
            for place, (usd, w, built) in enumerate(every):
                heappush(laid, (usd, w, row, place, built))
            continue
        kept = np.vstack([kept, offered])
        left = left[~(offered <= roof[left]).all(axis=1)]
        options.append(
            Option(
                shares=networks.shares,
                family=family,
                uplinks=uplinks,
                usd=usd,
                w=w,
                racks=int(traits[number, 0]),
                border_ports=int(traits[number, 1]),
                longest_s=longest_s,
                context=context,
                pools=places[context.site].pools,
                runs=runs,
            )
        )
    families = repriced(local, [option.family for option in options])
    current = (
        replace(option, family=family) for option, family in zip(options, families, strict=True)
    )
    mappings = sum(len(pool) for place in places.values() for pool in place.pools)
    gated = sum((place.gated for place in places.values()), Counter[str]())
    return Offers(options=tuple(current), mappings=mappings, gated=gated)


Tolerated = tuple[DelayTolerance, Counter[str]]
"""Delays that mappings tolerate, and how many others there are by what dropped them."""


def _places(
    local: Instance,
    contexts: Mapping[DomainSet, Collection[Context]],
    known: dict[Hashable, Tolerated],
    check: Callable[[], None],
) -> dict[DomainSet, _SitePlace]:
    """What each kind of HB domain offers to the workloads; `known` is what was listed at other
    bounds.
    """
    gpu = local.cluster.gpu
    domains = {domain.name: domain for domain in local.network.hb_domains}

    def tolerated(w: int, site: DomainSet, ideal_context: Context) -> Tolerated:
        workload, key = local.workload[w], (w, site, ideal_context)
        if key not in known or not known[key][0].covers(workload):
            source = feasible_mappings(workload, gpu, site.gpus)
            known[key] = delay_tolerance(source, gpu, domains[site.hb], site, ideal_context)
        tolerance, gated = known[key]
        return tolerance.within(workload, ideal_context), gated

    places = {}
    for site, site_contexts in contexts.items():
        check()
        ideal_context = full_bandwidth(list(site_contexts))
        rows = [tolerated(w, site, ideal_context) for w in range(len(local.workload))]
        patience = tuple(workload_waits for workload_waits, _ in rows)
        gated = sum((drops for _, drops in rows), Counter[str]())
        roof_s = tuple(
            float(waits.longest_s(ideal_context, np.array([1]))[0]) for waits in patience
        )
        pools = tuple(waits.undelayed for waits in patience)
        places[site] = _SitePlace(pools=pools, gated=gated, patience=patience, roof_s=roof_s)
    return places
