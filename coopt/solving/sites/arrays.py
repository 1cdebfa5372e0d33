"""From options and a ring to the arrays of the formulation, and what chosen options amount to."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, permutations
from typing import Any

import numpy as np

from coopt.instance.couplings import Site, Wan
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance, Objective, ObjectiveKind
from coopt.instance.variants import local_question
from coopt.network.borders import (
    channel_end,
    channel_items,
    link_items,
    priced_border,
    with_ends,
)
from coopt.network.cores import cores_of
from coopt.network.design_bills import lines_by_product
from coopt.network.parts import (
    cost_of,
    electricity_of,
    fed_share,
    included_lines,
    owned_usd,
    site_power,
    total,
    usd_per_w,
    weigh,
)
from coopt.perf.mapping import Floats
from coopt.plan.couplings import SharedCore, SitePower
from coopt.plan.parts import Cost, line
from coopt.solving.highs import LARGEST
from coopt.solving.sites.options import Networks, Option, gradient_bytes
from formulations.ring import Borders, RingData, SiteLimit


@dataclass(frozen=True, kw_only=True)
class SiteRing:
    """Sites by position in the instance, in ring order, and the links between neighbours; one site
    has no links.
    """

    sites: tuple[int, ...]
    links: tuple[Wan, ...]

    @property
    def latency_s(self) -> float:
        """Start-up of an exchange: a ring has 2(S - 1) steps, each as slow as its slowest link."""
        steps = 2 * (len(self.sites) - 1)
        return steps * max((link.latency_ms for link in self.links), default=0.0) / 1e3

    @property
    def share(self) -> float:
        """Bytes that each site sends in an exchange, over the bytes of the gradients: 2(S -
        1)/S.
        """
        return 2 * (len(self.sites) - 1) / len(self.sites)

    def exchange_s(self, gradient_bytes: float, gbit_s: float) -> float:
        """Seconds of an exchange whose slowest link has this rate each way."""
        return (
            self.latency_s + self.share * gradient_bytes * 8 / (gbit_s * 1e9) if self.links else 0.0
        )


def every_ring(instance: Instance) -> Iterator[SiteRing]:
    """Every ring over some of the sites: single sites, pairs that a link joins, and each cycle of
    links once.
    """
    links = {frozenset(wan.between): wan for wan in instance.wan}
    names = [site.name for site in instance.site]
    for count in range(1, len(names) + 1):
        for sites in combinations(range(len(names)), count):
            for order in _orders(sites):
                neighbour_links = [
                    links.get(frozenset((names[i], names[j]))) for i, j in _neighbours(order)
                ]
                links_there = tuple(link for link in neighbour_links if link is not None)
                if len(links_there) == len(neighbour_links):
                    yield SiteRing(sites=order, links=links_there)


def _orders(sites: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """The ways round: each cycle once, whichever way it is walked."""
    start, *rest_sites = sites
    for order in permutations(rest_sites):
        if len(order) < 2 or order[0] < order[-1]:
            yield (start, *order)


def _neighbours(order: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Neighbours on the ring; two sites share one link, which carries both directions."""
    yield from pairwise(order)
    if len(order) > 2:
        yield order[-1], order[0]


@dataclass(frozen=True, kw_only=True, eq=False)
class RingProblem:
    """One ring: `options[o]` is option o of `data`; `scale` is the objective (USD or W) in a unit
    of the model.
    """

    ring: SiteRing
    options: tuple[Option, ...]
    data: RingData
    scale: float

    @property
    def joined(self) -> RingProblem:
        """The ring whose borders have links for all channels that can be lit."""
        borders = self.data.borders
        assert borders is not None
        links = np.full_like(borders.links, (borders.modules * self.data.max_channels).sum())
        return replace(self, data=replace(self.data, borders=replace(borders, links=links)))


def may_feed(objective: Objective, site: Site, it_w: Any) -> Any:
    """Whether a site can feed that IT power, but for rounding: the bill of what is built decides on
    that; a number or an array.
    """
    return fed_share(objective, site, it_w) <= 1 + EQUAL


def channel_price(instance: Instance, link: Wan, kind: ObjectiveKind) -> float:
    """What one channel adds to the objective with its modules in borders: each end takes half of
    its power, at the site's electricity.
    """
    link = with_ends(instance, link)
    ends = [site for site in instance.site if site.name in link.between]
    halves = [
        weigh(electricity_of(instance.objective, site), link.usd / 2, link.w / 2, kind)
        for site in ends
    ]
    return math.fsum(halves)


def ring_problems(instance: Instance, options: Sequence[Option]) -> list[RingProblem]:
    """The problem of every ring on which each site has some option."""
    gradients = [gradient_bytes(workload) for workload in instance.workload]
    problems = (_assembled(instance, ring, options, gradients) for ring in every_ring(instance))
    return [problem for problem in problems if problem is not None]


def _assembled(
    instance: Instance, ring: SiteRing, options: Sequence[Option], gradient_bytes: Sequence[float]
) -> RingProblem | None:
    """The problem of one ring; None where some site has no option."""
    rows = list(_rows(instance, ring, options, gradient_bytes))
    if {s for s, _, _ in rows} != set(range(len(ring.sites))):
        return None
    kind = instance.objective.minimize
    local = [electricity_of(instance.objective, instance.site[s]) for s in ring.sites]
    cost = [weigh(local[s], option.usd, option.w, kind) for s, option, _ in rows]
    channel = [channel_price(instance, link, kind) for link in ring.links]
    borders = _borders(instance, ring, [option for _, option, _ in rows])
    switch = [] if borders is None else borders.cost.tolist()
    # 1 for a question in which nothing costs anything
    scale = max([*cost, *channel, *switch]) / LARGEST or 1.0
    assert instance.cluster.shares is not None
    data = RingData(
        sites=len(ring.sites),
        shares=instance.cluster.shares,
        site=np.array([s for s, _, _ in rows]),
        share=np.array([option.shares for _, option, _ in rows]),
        cost=np.array(cost) / scale,
        need=np.array([needs for _, _, needs in rows], dtype=np.int64).reshape(
            len(rows), len(ring.links)
        ),
        channel=np.array(channel) / scale,
        max_channels=np.array([link.most for link in ring.links], dtype=np.int64),
        limits=tuple(_limits(instance, ring, [(s, option) for s, option, _ in rows])),
        borders=None if borders is None else replace(borders, cost=borders.cost / scale),
    )
    return RingProblem(
        ring=ring, options=tuple(option for _, option, _ in rows), data=data, scale=scale
    )


def _borders(instance: Instance, ring: SiteRing, options: Sequence[Option]) -> Borders | None:
    """What options and channels take of the borders of sites, with the objective of a switch there;
    None where sites have no border.
    """
    switch, kind = priced_border(instance), instance.objective.minimize
    if switch is None:
        return None
    sites = [instance.site[i] for i in ring.sites]
    terms = [electricity_of(instance.objective, site) for site in sites]
    ends = [channel_end(instance, link) for link in ring.links]
    return Borders(
        radix=switch.radix,
        cost=np.array([weigh(local, switch.usd, switch.w, kind) for local in terms]),
        ports=np.array([option.border_ports for option in options]),
        links=np.array([option.family.core_links for option in options]),
        channel_ports=np.array([end.ports if end else 0 for end in ends], dtype=np.int64),
        modules=np.array([end.modules if end else 0 for end in ends], dtype=np.int64),
        ends=np.array([[site.name in link.between for link in ring.links] for site in sites]),
    )


Row = tuple[int, Option, list[int]]


def _rows(
    instance: Instance, ring: SiteRing, options: Sequence[Option], gradient_bytes: Sequence[float]
) -> Iterator[Row]:
    """Site by position on the ring, option, channels it needs on each link, as far as site and
    links allow.
    """
    sites = [instance.site[i] for i in ring.sites]
    for option in options:
        places = [s for s, site in enumerate(sites) if may_feed(instance.objective, site, option.w)]
        if places:
            needs = [
                max(
                    lost + _need(option, ring, link, gradient_bytes, lost * len(gradient_bytes))
                    for lost in range(2 if "channel" in instance.losses else 1)
                )
                for link in ring.links
            ]
            channels = [
                need for need, link in zip(needs, ring.links, strict=True) if need <= link.most
            ]
            if len(channels) == len(needs):
                yield from ((s, option, channels) for s in places)


def _need(
    option: Option, ring: SiteRing, link: Wan, gradient_bytes: Sequence[float], first: int
) -> int:
    """Least channels with which an option meets its bounds, of workloads from the first on, if this
    link is the slowest; beyond `most` if too few.

    They follow from the longest wait. Where it takes a whole number but for rounding, the time
    itself decides.
    """
    waits = zip(gradient_bytes, option.longest_s[first:], strict=False)
    channels = max(
        _channels(ring, link, workload_bytes, longest_s) for workload_bytes, longest_s in waits
    )
    # half a channel too many is no rounding: below that the time decides
    if channels > link.most + 0.5:
        return link.most + 1
    rounded_channels = max(round(channels), 1)
    if abs(channels - rounded_channels) > EQUAL * rounded_channels:
        return max(math.ceil(channels), 1)
    rate = rounded_channels * link.gbit_s
    is_enough = option.in_time([ring.exchange_s(held, rate) for held in gradient_bytes], first)
    return rounded_channels if is_enough else rounded_channels + 1


def _channels(ring: SiteRing, link: Wan, workload_bytes: float, longest_s: float) -> float:
    """Channels that fill the longest wait exactly (not whole); infinite where latency alone takes
    longer.
    """
    transfer_s = longest_s - ring.latency_s
    if math.isinf(longest_s):
        return 0.0
    return (
        ring.share * workload_bytes * 8 / (link.gbit_s * 1e9) / transfer_s
        if transfer_s > 0
        else math.inf
    )


def _limits(
    instance: Instance, ring: SiteRing, rows: Sequence[tuple[int, Option]]
) -> Iterator[SiteLimit]:
    """Each limit in units of its cap: power of every site, then power, purchase and racks of the
    whole.
    """
    objective, limits = instance.objective, instance.limits
    places = np.array([s for s, _ in rows])
    w, usd = (np.array([getattr(option, name) for _, option in rows]) for name in ("w", "usd"))
    links, switch = [with_ends(instance, link) for link in ring.links], priced_border(instance)
    link_w, link_usd = (np.array([getattr(link, name) for link in links]) for name in ("w", "usd"))
    switch_w, switch_usd = (0.0, 0.0) if switch is None else (switch.w, switch.usd)
    at_each = np.ones(len(ring.sites))
    for s, site in enumerate(instance.site[i] for i in ring.sites):
        ends = np.array([site.name in link.between for link in ring.links], dtype=bool)
        yield SiteLimit(
            name=f"power of {site.name}",
            use=fed_share(objective, site, np.where(places == s, w, 0.0)),
            channel=fed_share(objective, site, link_w / 2 * ends),
            cap=1.0,
            switch=fed_share(objective, site, switch_w) * (np.arange(len(ring.sites)) == s),
        )
    rack_counts = np.array([float(option.racks) for _, option in rows])
    channel_uses = limits.against(usd=link_usd, w=link_w, racks=np.zeros(len(ring.links)))
    switch_uses = limits.against(usd=switch_usd * at_each, w=switch_w * at_each, racks=0 * at_each)
    for key, (use, cap) in limits.against(usd=usd, w=w, racks=rack_counts).items():
        yield SiteLimit(
            name=key,
            use=use / cap,
            channel=channel_uses[key][0] / cap,
            cap=1.0,
            switch=switch_uses[key][0] / cap,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class RingDesign:
    """Options by position on the ring, channels of its links, the bill of each site and of
    everything, and the border of each site, if there are any.

    `broken_limits` names those that are exceeded.
    """

    problem: RingProblem
    choice: tuple[int, ...]
    channels: tuple[int, ...]
    costs: tuple[Cost, ...]
    site_powers: tuple[SitePower, ...]
    bill: Cost
    borders: tuple[SharedCore, ...]
    broken_limits: tuple[str, ...]

    @property
    def options(self) -> tuple[Option, ...]:
        """The option of each site of the ring."""
        return tuple(self.problem.options[o] for o in self.choice)

    @property
    def ring(self) -> SiteRing:
        """The sites and links that it is built for."""
        return self.problem.ring

    def exchange_s(self, gradient_bytes: float, lost: int = 0) -> float:
        """Seconds that adding up these gradients takes, also with so many channels of any one link
        lost.
        """
        rates = [
            (c - lost) * link.gbit_s for c, link in zip(self.channels, self.ring.links, strict=True)
        ]
        return self.ring.exchange_s(gradient_bytes, min(rates, default=1.0))


def design_ring(instance: Instance, problem: RingProblem, choice: tuple[int, ...]) -> RingDesign:
    """Bills, power and limits of one option for each site of a ring, with the fewest channels that
    do.
    """
    ring, objective = problem.ring, instance.objective
    options = [problem.options[o] for o in choice]
    channels = tuple(int(problem.data.need[list(choice), e].max()) for e in range(len(ring.links)))
    sites = [instance.site[i] for i in ring.sites]
    costs = []
    for site, option in zip(sites, options, strict=True):
        local = local_question(instance, option.shares)
        items = cost_of(local, option.family, option.uplinks).items
        items = lines_by_product((*items, *link_items(local, option.family)))
        costs.append(total(electricity_of(objective, site), items))
    lit = tuple(zip(ring.links, channels, strict=True))
    wan_lines = [line("wan", a.name, c, a.usd, a.w) for a, c in lit]
    wan_lines += [item for a, c in lit for item in channel_items(instance, a, c)]
    borders = _built_borders(instance, sites, options, lit)
    shared_w = {
        s.name: sum(c * with_ends(instance, a).w / 2 for a, c in lit if s.name in a.between)
        + sum(border.core.power_w for border in borders if border.site == s.name)
        for s in sites
    }
    powers = tuple(
        site_power(objective, site, cost.power_w + shared_w[site.name])
        for site, cost in zip(sites, costs, strict=True)
    )
    energy = sum(
        usd_per_w(electricity_of(objective, site)) * (cost.power_w + shared_w[site.name])
        for site, cost in zip(sites, costs, strict=True)
    )
    switch = priced_border(instance)
    if switch is not None:
        count = sum(border.core.switches for border in borders)
        box = line("switch", switch.name, count, switch.usd, switch.w)
        wan_lines += included_lines(instance, [box])
    built = (item for cost in costs for item in cost.items)
    purchase = total(objective, lines_by_product((*built, *wan_lines)))
    # each site pays for its electricity at its own price and PUE, its border and half of the power
    # of its channels included
    ring_bill = purchase.model_copy(
        update={"tco_usd": owned_usd(objective, purchase.capex_usd, 0.0) + energy}
    )
    racks = sum(option.racks for option in options)
    uses = instance.limits.against(usd=ring_bill.capex_usd, w=ring_bill.power_w, racks=racks)
    return RingDesign(
        problem=problem,
        choice=choice,
        channels=channels,
        costs=tuple(costs),
        site_powers=powers,
        bill=ring_bill,
        borders=borders,
        broken_limits=(
            *(f"power of {power.site}" for power in powers if not power.is_fed),
            *(f"limits.{key}" for key, (use, cap) in uses.items() if use > cap),
        ),
    )


def _built_borders(
    instance: Instance,
    sites: Sequence[Site],
    options: Sequence[Option],
    lit: Sequence[tuple[Wan, int]],
) -> tuple[SharedCore, ...]:
    """The border of each site with ports for its links and channels."""
    ends = [(link.between, c, channel_end(instance, link)) for link, c in lit]
    ports: dict[str | None, int] = {
        site.name: sum(c * end.ports for between, c, end in ends if end and site.name in between)
        for site in sites
    }
    stands = [
        (site.name, None, {site.name: option.family})
        for site, option in zip(sites, options, strict=True)
    ]
    return cores_of(instance, stands, ports)


SLACK = 1e-9  # of a bound: far more than the rounding of its sums and of a bill's


def least_with(instance: Instance, networks: Sequence[Networks]) -> dict[int, float]:
    """What a ring is worth at least that gives some site so many shares, by their number; infinite
    where none can.

    Of n shares a site costs at least what the cheapest network does that it can feed, however long
    an iteration takes on it; channels cost nothing or more. So no ring that gives n shares to some
    site is worth less than the least sum of such floors over all divisions of the shares among its
    sites in which one has n. Once some ring is known, numbers whose bound is not below its value
    are in no cheaper one: their options, which take long to list, are not needed.
    """
    all_shares = instance.cluster.shares
    assert all_shares is not None
    floors = np.full(
        (len(instance.site), all_shares + 1), math.inf
    )  # no site of a ring has 0 shares
    for of_shares in networks:
        floors[:, of_shares.shares] = [
            _floor(instance, s, of_shares) for s in range(len(instance.site))
        ]
    bounds = np.full(all_shares + 1, math.inf)
    for sites in {frozenset(ring.sites) for ring in every_ring(instance)}:
        for s in sites:
            sums = np.array([0.0, *(math.inf for _ in range(all_shares))])
            for neighbour in sites - {s}:
                sums = _divided(sums, floors[neighbour])
            # the others have the shares that the site leaves: sums of all_shares - n stand at n
            # when reversed
            bounds = np.minimum(bounds, floors[s] + sums[::-1])
    return {of_shares.shares: float(bounds[of_shares.shares]) for of_shares in networks}


def _floor(instance: Instance, s: int, networks: Networks) -> float:
    """The objective of the cheapest network that a site can feed, in time or not."""
    site, kind = instance.site[s], instance.objective.minimize
    local = electricity_of(instance.objective, site)
    fed = may_feed(instance.objective, site, networks.w)
    return float(weigh(local, networks.usd[fed], networks.w[fed], kind).min(initial=math.inf))


def least_sum(problem: RingProblem) -> float:
    """A bound of a ring by the cheapest option of each site for each number of shares, with the
    channels that every option of some site needs; infinite where no division has options.
    """
    data = problem.data
    sums = np.array([0.0, *(math.inf for _ in range(data.shares))])
    for s in range(data.sites):
        cheapest = np.full(data.shares + 1, math.inf)
        np.minimum.at(cheapest, data.share[data.site == s], data.cost[data.site == s])
        sums = _divided(sums, cheapest)
    needs = [data.need[data.site == s].min(axis=0) for s in range(data.sites)]
    lit = np.max(needs, axis=0) @ data.channel
    return float(sums[-1] + lit) * problem.scale * (1 - SLACK)


def _divided(a: Floats, b: Floats) -> Floats:
    """The least sum for each number of shares, divided in two."""
    return np.array([(a[: n + 1] + b[n::-1]).min() for n in range(len(a))])


def promising(
    floors: Mapping[int, float], listed_shares: Mapping[int, object], value: float
) -> list[int]:
    """Numbers of shares, not among `listed_shares` yet, that a ring may have which is worth less
    than `value`.

    Without a ring so far these are the most promising, as many again as are listed, and those as
    promising.
    """
    open_bounds = sorted(
        (bound, shares) for shares, bound in floors.items() if shares not in listed_shares
    )
    if math.isinf(value) and open_bounds:
        value = open_bounds[min(len(listed_shares), len(open_bounds) - 1)][0] * (1 + SLACK)
        return [shares for bound, shares in open_bounds if bound <= value]
    return [shares for bound, shares in open_bounds if bound * (1 - SLACK) < value]
