"""See whether one network answers a question, without a search for the cheapest."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from operator import itemgetter

import numpy as np

from coopt.columns.feasible import FeasibleMappings, feasible_mappings
from coopt.columns.flows import NicLayout
from coopt.columns.grid import Context, DomainSet, context_of, domains_filled
from coopt.columns.pools import Pool, in_orders, meeting, pool
from coopt.columns.times import minimum_times_s
from coopt.instance.hardware import Gpu, HbDomain
from coopt.instance.numerics import EQUAL, REORDERED
from coopt.instance.schema import Instance, Limits, days_in_turn
from coopt.instance.workload import Workload
from coopt.network.family import Family, NicOption
from coopt.network.laying import laid_within, least_resources
from coopt.network.optics import values_of
from coopt.network.parts import (
    cost_of,
    domain_lines,
    included_lines,
    keeps_limits,
    racks_of,
    total,
    within_limits,
)
from coopt.network.space import Space
from coopt.perf.mapping import Floats, Ints
from coopt.plan.parts import line
from coopt.solving.days import demand, family_domain_lost, fewest_spares

FEW_MAPPINGS = 64
"""Mappings that are looked at first, in all their placements."""


def feasible(instance: Instance, check_clock: Callable[[], None] = lambda: None) -> bool:
    """Whether some design meets every bound and limit.

    Networks are listed only where a workload may be in time on the fastest NICs alone, and only
    until one serves. The fewest uplinks in time are tried on each, as no use of a limit falls when
    uplinks are added; and of optics only those that limits tell apart, as no time depends on them.
    Where failures interrupt training all more uplinks are tried too, each with the fewest spare
    domains (docs/days.md). `check_clock` is called before each kind of site and each family, and
    may raise.
    """
    space = _space_within_limits(instance)
    # sites of one number of GPUs follow each other, so that their mappings are listed once
    for gpus, of_size in groupby(space.all_sites(), key=itemgetter(0)):
        check_clock()
        sources = [
            feasible_mappings(workload, instance.cluster.gpu, gpus)
            for workload in instance.workload
        ]
        if not all(map(_quick, sources)):
            continue
        sources.sort(key=_quick)  # the workload with fewest mappings rules out a site soonest
        for _, hb, domains in of_size:
            for site, nic_options in _sites(space, gpus, hb, domains).items():
                check_clock()
                if _any_in_time(space, sources, hb, site, nic_options, check_clock):
                    return True
    return False


def _space_within_limits(instance: Instance) -> Space:
    """The families of an instance with the optics that are best by what its limits count."""
    measures = tuple(instance.limits.sums)
    values = values_of(instance, measures) if measures else lambda optic: ()
    return Space(instance=instance, measures=measures or None, values=values, unlaid=True)


def _sites(space: Space, gpus: int, hb: HbDomain, domains: int) -> dict[DomainSet, list[NicOption]]:
    """The NIC options that may join domains filled so within the limits, by how many GPUs share a
    NIC.
    """
    options_by_site = dict[DomainSet, list[NicOption]]()
    for nic_option in space.nic_options:
        if nic_option.fits(hb.size, gpus, domains) and _may_keep_limits(
            space.instance, gpus, hb, domains, nic_option
        ):
            options_by_site.setdefault(
                domains_filled(gpus, hb, domains, nic_option.gpus_per_nic if domains > 1 else 1), []
            ).append(nic_option)
    return options_by_site


def _may_keep_limits(
    instance: Instance, gpus: int, hb: HbDomain, domains: int, nic_option: NicOption
) -> bool:
    """Whether the domains keep the limits with no more than what joins them to leaves, as each
    network has at least.

    Every link of a NIC takes a port of a leaf and has a module at either end, or its share of one:
    the cheapest there is, and the one of least power.
    """
    if instance.limits == Limits():
        return True
    lines = domain_lines(instance.cluster.gpu, hb, gpus, domains * hb.size)
    if domains > 1:
        nic, leaf, nics = (
            nic_option.nic,
            nic_option.switch,
            domains * hb.size * nic_option.nics_per_gpu // nic_option.gpus_per_nic,
        )
        links = nics * nic_option.nic_planes
        lines += [
            line("nic", nic.name, nics, nic.usd, nic.w),
            line("switch", leaf.name, -(-links // leaf.radix), leaf.usd, leaf.w),
            line(
                "optics",
                "the least",
                2 * links,
                *_least_of_an_end(instance, nic.gbit_s / nic_option.nic_planes),
            ),
        ]
    floor = total(instance.objective, included_lines(instance, lines))
    return keeps_limits(instance.limits, floor, racks_of(hb, domains))


def _least_of_an_end(instance: Instance, gbit_s: float) -> tuple[float, float]:
    """The least price (USD) and power (W) of a link's end, each a hair less, so that no sum exceeds
    one of whole modules by rounding.
    """
    fitting_links = [(optic, optic.links_of(gbit_s)) for optic in instance.network.optics]
    ends = [(optic.usd / links, optic.w / links) for optic, links in fitting_links if links]
    usd, w = (min(figures) for figures in zip(*ends, strict=True)) if ends else (0.0, 0.0)
    return usd * (1.0 - REORDERED), w * (1.0 - REORDERED)


def _any_in_time(
    space: Space,
    sources: Sequence[FeasibleMappings],
    hb: HbDomain,
    site: DomainSet,
    nic_options: Sequence[NicOption],
    check_clock: Callable[[], None],
) -> bool:
    """Whether a family that some NIC options join serves: on mappings of each workload that may be
    fastest, which do more often than not, or else on all that dominance, which takes longest,
    leaves.
    """
    instance, gpu = space.instance, space.instance.cluster.gpu
    layout = NicLayout(domains=site.domains, span=site.domains)
    byte_s = max(nic_option.byte_s for nic_option in nic_options)
    ideal = Context(site=site, byte_s=byte_s, layout=layout, discipline=instance.network.discipline)

    def serve(pools: list[Pool]) -> bool:
        joined = space.families(site.gpus, hb, site.domains, nic_options)
        return _any_serves(instance, joined, pools, check_clock)

    candidates = list[Ints]()
    for source in sources:
        candidates.append(_may_be_in_time(source, gpu, hb, ideal))
        if not len(candidates[-1]):
            return False
    first = [
        in_orders(meeting(source, gpu, hb, site, ideal, rows[:FEW_MAPPINGS]), ideal.discipline)
        for source, rows in zip(sources, candidates, strict=True)
    ]
    if all(map(len, first)) and serve(first):
        return True
    if all(len(rows) <= FEW_MAPPINGS for rows in candidates):
        return False
    pools = [pool(source, gpu, hb, site, ideal)[0] for source in sources]
    return all(map(len, pools)) and serve(pools)


def _may_be_in_time(source: FeasibleMappings, gpu: Gpu, hb: HbDomain, best: Context) -> Ints:
    """Rows of the mappings that may meet their bound on the best network, first those that may be
    the fastest.
    """
    floor_s, bound_s = source.lower_bound_s(gpu, hb.gbyte_s, best.byte_s), source.workload.bound_s
    rows = np.flatnonzero((source.fastest_s <= bound_s) & (floor_s <= bound_s))
    return rows[np.argsort(floor_s[rows], kind="stable")]


def _quick(source: FeasibleMappings) -> int:
    """Mappings that could meet the bound; the fewer, the sooner a site is out."""
    return int((source.fastest_s <= source.workload.bound_s).sum())


def _any_serves(
    instance: Instance,
    families: Iterable[Family],
    pools: list[Pool],
    check_clock: Callable[[], None],
) -> bool:
    """Whether a family meets every time bound with uplinks that keep the limits."""
    fewest: dict[tuple[Context, tuple[int, ...]], int | None] = {}
    for family in families:
        check_clock()
        if not _within(instance, family, family.uplink_choices[0]) or not _may_train(
            instance, family, pools
        ):
            continue
        key = context_of(family), family.uplink_choices
        if key not in fewest:
            fewest[key] = _least_uplinks(*key, pools)
        uplinks = fewest[key]
        if uplinks is not None and _serves(instance, family, uplinks, pools):
            return True
    return False


def _may_train(instance: Instance, family: Family, pools: list[Pool]) -> bool:
    """Whether training would be in time if all traffic had the rate of the NICs, with the failures
    of the fewest uplinks; true where no failures count. No uplinks train more.
    """
    if instance.availability is None:
        return True
    byte_s = context_of(family).byte_s
    times = [
        (mappings.workload, mappings.contention_free_s(byte_s).min(keepdims=True))
        for mappings in pools
    ]
    return _trains(instance, family, family.uplink_choices[:1], times)


def _serves(instance: Instance, family: Family, fewest: int, pools: list[Pool]) -> bool:
    """Whether a family keeps the limits with the least uplinks in time; with more where workloads
    in turn need more, or these have cables that are long enough, and spares where failures count.
    """
    total = instance.limits.train_days_total
    if family.choices:
        return any(
            _serves(instance, one, u, pools) for one, u in _with_cables(instance, family, fewest)
        )
    is_within = _within(instance, family, fewest)
    if not is_within or (instance.availability is None and total is None):
        return is_within
    context, choices = context_of(family), family.uplink_choices
    enough = np.array(choices[bisect_left(choices, fewest) :])
    timed = [
        (mappings.workload, minimum_times_s(mappings, {context: enough})[context])
        for mappings in pools
    ]
    if instance.availability is not None:
        return _trains(instance, family, enough.tolist(), timed)
    days = days_in_turn(instance, (seconds for _, seconds in timed))
    return any(_within(instance, family, uplinks) for uplinks in enough[days <= total].tolist()[:1])


def _with_cables(instance: Instance, family: Family, fewest: int) -> Iterator[tuple[Family, int]]:
    """A family at each number of uplinks from the fewest on, with the cables of their lengths,
    which the limits choose anew for each number of spares.
    """
    availability, idle = instance.availability, family.spare_domains
    spares = (idle,) if availability is None else availability.spares_with(idle)
    for uplinks in family.uplink_choices:
        if uplinks >= fewest:
            if not _within(instance, family, uplinks):
                return
            for spare_domains in spares:
                spared = replace(family, spare_domains=spare_domains)
                if found := laid_within(instance, spared, uplinks):
                    yield found[0], uplinks


def _trains(
    instance: Instance,
    family: Family,
    uplinks: Sequence[int],
    timed: Sequence[tuple[Workload, Floats]],
) -> bool:
    """Whether training is in time with its failures, and the fewest spares for that keep the
    limits.
    """
    availability = instance.availability
    assert availability is not None
    loss, target = (
        family_domain_lost(availability, family),
        demand(instance, family, uplinks, timed),
    )
    for i, count in enumerate(uplinks):
        spares = fewest_spares(availability, loss, family, target, i)
        if spares is not None and _within(instance, replace(family, spare_domains=spares), count):
            return True
    return False


def _within(instance: Instance, family: Family, uplinks: int) -> bool:
    """Whether a network keeps the limits, or may where lengths have not chosen its cables."""
    if family.choices:
        uses = least_resources(instance, family)
        caps = instance.limits.model_dump()
        return all(
            float(use.at(family, uplinks)) <= caps[name] * (1.0 + EQUAL)
            for name, use in uses.items()
        )
    return instance.limits == Limits() or within_limits(
        instance, family, cost_of(instance, family, uplinks)
    )


def _least_uplinks(context: Context, choices: tuple[int, ...], pools: list[Pool]) -> int | None:
    """The fewest uplinks to choose from with which every time bound is met; None where all are too
    few.
    """

    def in_time(uplinks: int) -> bool:
        return all(
            (mappings.time_s(context, uplinks) <= mappings.workload.bound_s).any()
            for mappings in pools
        )

    return choices[bisect_left(choices, True, key=in_time)] if in_time(choices[-1]) else None
