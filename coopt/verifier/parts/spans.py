"""Which bandwidth a group of GPUs sees."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import combinations
from typing import Literal, NamedTuple

from coopt.instance.network import Discipline
from coopt.instance.numerics import REORDERED
from coopt.verifier.parts.layouts import Ports, ceil_ratio, core_count, leaf_count
from coopt.verifier.parts.loads import (
    KindValues,
    LeafLayout,
    Pattern,
    Senders,
    most_flows,
    most_flows_anywhere,
    patterns_of,
)
from coopt.verifier.parts.space import NO_CHARGE, DesignFamily
from coopt.verifier.training.communication import OtherWays, Speeds
from coopt.verifier.training.gathers import doublings, halving_shares
from coopt.verifier.training.iteration import iteration_s
from coopt.verifier.training.placing import Placement
from coopt.verifier.training.work import Work


class Slowdown(NamedTuple):
    """How much slower than a NIC traffic is, at least 1: what is rarely exceeded, and the mean;
    both are the same but on random paths.
    """

    sure: float
    mean: float

    @classmethod
    def certain(cls, slower: float) -> Slowdown:
        """What is not left to chance."""
        return cls(slower, slower)

    def unlucky(self, share: float) -> float:
        """So much of the way from the mean to what is rarely exceeded."""
        return self.mean + (self.sure - self.mean) * share


class WaySlowdowns(NamedTuple):
    """How much slower than a NIC a kind of traffic is by the ways that are no ring."""

    halving: Slowdown
    trees: Slowdown


class SharedLinks(NamedTuple):
    """Links that flows share: of one leaf and of one pod, and how many leaves and pods there are on
    all planes.

    Where bundles differ, they are those that serve all pairs of leaves, or of pods, alike.
    """

    leaf: float
    pod: float
    leaves: int
    pods: int


class Reach(NamedTuple):
    """Consecutive domains a leaf and a pod hold, and the ratio of ports down to links up in a
    leaf's pod and beyond it.

    `layout` and `links` are set where traffic is charged by the loads of links, and only on two
    tiers or more. `spare` is set after the loss of a domain: how many domains a job has left over,
    the lost one among them.
    """

    domains: int
    leaf_span: int
    pod_span: int
    in_pod: float
    beyond: float
    discipline: Discipline = NO_CHARGE
    layout: LeafLayout | None = None
    links: SharedLinks = SharedLinks(0, 0, 0, 0)
    spare: int | None = None

    def slowdown(self, block: int, kept_block: int | None = None) -> float:
        """What groups within `block` consecutive domains see by the ratio of ports: 1 at the full
        rate of the NIC.

        Ports up beyond those down, of a leaf whose modules hold several, make no NIC faster. After
        a loss blocks of `kept_block` domains are what has to be kept together.
        """
        if self.inside(self.leaf_span, block, kept_block):
            return 1.0
        ratio = self.in_pod if self.inside(self.pod_span, block, kept_block) else self.beyond
        return max(1.0, ratio * float(self.discipline.routing))

    def inside(self, span: int, block: int, kept_block: int | None = None) -> bool:
        """Whether every block of that many domains stays within a span."""
        divides = span > 0 and span % block == 0
        if self.spare is None:
            return span >= self.domains or divides
        # a span that holds all domains held the lost one too; else room has to be left to move
        # whole blocks
        return span > self.domains or (divides and (kept_block or block) <= self.spare)


def reach_of(family: DesignFamily, ports: Ports) -> Reach:
    """How far traffic of a design reaches without slowdown, and what slows it beyond."""
    domains = family.domains
    if ports.tiers <= 1:
        return Reach(domains, domains, domains, 1.0, 1.0)
    attachment, in_pod, has_pods = family.network, ports.down / ports.up, ports.tiers == 3
    beyond = in_pod * (ports.pod_down / ports.pod_up) if has_pods else in_pod
    span = pod_span(family, ports) if has_pods else domains
    reach = Reach(
        domains, leaf_span(family, ports.down), span, in_pod, beyond, attachment.discipline
    )
    # the ratio of ports knows nothing of who lies where
    if attachment.discipline.charge == "ratio":
        return reach
    leaves, pod_leaves = leaf_count(family, ports.down), ports.pod_leaves if has_pods else 0
    pods, planes = ceil_ratio(leaves, pod_leaves) if has_pods else 0, family.planes * family.copies
    return reach._replace(
        pod_span=whole_pod_span(family, ports) if has_pods else domains,
        layout=_layout(family, ports, pod_leaves),
        links=SharedLinks(*_serving(family, ports), leaves * planes, pods * planes),
    )


def _layout(family: DesignFamily, ports: Ports, pod_leaves: int) -> LeafLayout:
    """Who shares a leaf. Where leaves take turns in the rails of a domain, each holds its share of
    every stage there, as a leaf of domains with so many fewer NICs does.
    """
    attachment = family.network
    kind, rails, sharers = attachment.kind, family.rails, attachment.gpus_per_nic
    if family.takes_turns(ports.down):
        of_leaf, _ = family.leaf_block(ports.down)
        kind, rails, sharers = "clos", of_leaf, rails // of_leaf
    return LeafLayout(
        kind, family.domains, rails, attachment.per_gpu, ports.down, pod_leaves, sharers
    )


def _serving(family: DesignFamily, ports: Ports) -> tuple[float, float]:
    """Links of a leaf and of a pod that serve all others alike, of those that they have."""
    attachment, leaves = family.network, leaf_count(family, ports.down)
    leaf, pod, at_random = ports.up, ports.pod_up, attachment.discipline.routing == "ecmp"
    if ports.bundle:
        return leaf, ports.slices * pod
    if ports.tiers == 3:
        return leaf, ports.slices * links_in_common(
            pod, core_count(leaves, ports, attachment.at(3).radix), at_random
        )
    if ports.pod_down:  # one pod that will be joined to others, and has equal bundles
        return leaf, 0
    uplinks, radix = (
        range(leaf, max(leaf, attachment.switch.radix - ports.down) + 1),
        attachment.at(2).radix,
    )
    # more uplinks are not to be slower, though on more spines fewer may be in common
    return min(links_in_common(up, ceil_ratio(leaves * up, radix), at_random) for up in uplinks), 0


@lru_cache(maxsize=100_000)
def links_in_common(links: int, switches: int, at_random: bool) -> float:
    """Links up of one of two neighbours that both can use, which deal them to the switches above in
    turn.

    Of flows `at_random`, as many links as would leave none fuller than the narrowest bundle down
    from a switch is.
    """
    links_of_one, links_of_next = (
        Counter((start + i) % switches for i in range(links)) for start in (0, links)
    )
    if at_random:
        return links * min(links_of_one.values()) / max(links_of_one.values())
    return sum(min(links_of_one[switch], links_of_next[switch]) for switch in links_of_one)


def leaf_span(family: DesignFamily, down: int) -> int:
    """Consecutive domains on a leaf."""
    is_clos = family.network.kind == "clos"
    return down // family.rails if is_clos else family.leaf_block(down)[1]


def pod_span(family: DesignFamily, ports: Ports) -> int:
    """Consecutive domains in a pod of three tiers."""
    leaves = leaf_count(family, ports.down)
    if family.network.kind == "rail-optimized":
        leaves = ceil_ratio(family.domains, leaf_span(family, ports.down))
    leaf = leaf_span(family, ports.down)
    if leaves >= ports.pod_leaves and leaves % ports.pod_leaves == 0:
        return ports.pod_leaves * leaf
    return family.domains if ports.pod_leaves % leaves == 0 else leaf


def whole_pod_span(family: DesignFamily, ports: Ports) -> int:
    """Consecutive domains of each rail in a pod; all where it holds whole rails, 0 where parts of
    rails or domains.
    """
    if family.network.kind == "rail-optimized":
        leaves = ceil_ratio(family.domains, leaf_span(family, ports.down))
        if ports.pod_leaves % leaves == 0:
            return family.domains
        if leaves % ports.pod_leaves:
            return 0
    return min(ports.pod_leaves * leaf_span(family, ports.down), family.domains)


class CrossingFlows(NamedTuple):
    """Flows of one kind that share the links of the leaf and of the pod that most flows leave, in
    NIC rates each.
    """

    rate: float
    leaf: int
    pod: int


def blocks_of(place: Placement, domains: int) -> KindValues[int]:
    """Blocks by which the ratio is charged: CP groups, and copies of experts, lie in that of DP."""
    stage = place.stage_across
    return KindValues(
        place.tp_across, stage, stage, stage // place.copies_across, stage, domains, domains
    )


def crossing_flows(
    reach: Reach, active_gpus: int, place: Placement, *, looped: bool
) -> KindValues[CrossingFlows]:
    """The flows of each kind of traffic, where loads are charged."""
    any_links = reach._replace(links=SharedLinks(0, 0, 0, 0), in_pod=1.0, beyond=1.0)
    return _crossing_flows(any_links, active_gpus, place, looped)


@lru_cache(maxsize=200_000)
def _crossing_flows(
    reach: Reach, active_gpus: int, place: Placement, looped: bool
) -> KindValues[CrossingFlows]:
    senders, patterns = Senders(active_gpus, place.pp_in), patterns_of(place, looped)
    return KindValues(
        *(
            _flows_of(reach, senders, pattern, kept_block)
            for pattern, kept_block in zip(patterns, _kept_blocks(patterns), strict=True)
        )
    )


def _flows_of(reach: Reach, senders: Senders, pattern: Pattern, kept_block: int) -> CrossingFlows:
    """The flows of one pattern."""
    layout = reach.layout
    assert layout is not None
    if reach.spare is not None:
        return _after_a_loss(reach, layout, senders, pattern, kept_block)
    leaf, pod = (most_flows(pattern, senders, layout, leaves) for leaves in (1, layout.pod_down))
    if pattern.shape == "paths" and not reach.leaf_span:
        # of a leaf with part of a domain, wherever that lies, a NIC has two neighbours outside
        leaf = 2 * most_flows(pattern._replace(shape="hops"), senders, layout, 1)
    return CrossingFlows(pattern.rate, leaf, pod)


def kept_inside(
    reach: Reach, active_gpus: int, place: Placement
) -> KindValues[Literal["leaf", "pod", "network"]]:
    """What each kind of traffic is charged for not to leave."""
    if reach.layout is None:
        blocks = blocks_of(place, reach.domains)
        stays = [
            (reach.inside(reach.leaf_span, block), reach.inside(reach.pod_span, block))
            for block in blocks
        ]
    else:
        crossing = crossing_flows(reach, active_gpus, place, looped=True)
        stays = [(not flows.leaf, not flows.pod) for flows in crossing]
    return KindValues(*("leaf" if leaf else "pod" if pod else "network" for leaf, pod in stays))


def mean_loads(
    reach: Reach, active_gpus: int, place: Placement, *, looped: bool
) -> KindValues[float]:
    """What each kind of traffic loads the links of the fullest leaf or pod with, in rates of a NIC,
    evenly spread.
    """
    links = reach.links
    return KindValues(
        *(
            flows.rate * max(flows.leaf / links.leaf, flows.pod / links.pod if flows.pod else 0.0)
            for flows in crossing_flows(reach, active_gpus, place, looped=looped)
        )
    )


def _kept_blocks(patterns: KindValues[Pattern]) -> KindValues[int]:
    """Consecutive domains that a job keeps together after a loss, or has to, for groups of a kind
    to keep their places.

    Each is a multiple of the one before, so that what keeps a kind together keeps those before it
    as well.
    """
    tp, ep = patterns.tp.block, math.lcm(patterns.tp.block, patterns.ep.block)
    cp, stage = math.lcm(ep, patterns.cp.block), patterns.dp.block
    return KindValues(tp, cp, stage, ep, stage, patterns.pp.block, patterns.tied.block)


def _after_a_loss(
    reach: Reach, layout: LeafLayout, senders: Senders, pattern: Pattern, kept_block: int
) -> CrossingFlows:
    """The most flows of a job, wherever its groups begin; leaves that hold parts of domains have
    none inside.

    Of two trees each sender on such a leaf may then be one with four edges.
    """
    leaf, pod, repeated = 0, 0, pattern.block < reach.domains
    if not reach.inside(reach.leaf_span, pattern.block, kept_block):
        on_rest, all_send, each = layout._replace(domains=reach.domains), pattern, 1
        if pattern.shape == "trees":
            all_send, each = pattern._replace(shape="ring"), 4
        elif pattern.shape == "paths":
            all_send, each = pattern._replace(shape="hops"), 2
        leaf = (
            most_flows_anywhere(pattern, senders, layout, reach.leaf_span, repeated=repeated)
            if reach.leaf_span
            else each * most_flows(all_send, senders, on_rest, 1)
        )
    if layout.pod_down and not reach.inside(reach.pod_span, pattern.block, kept_block):
        pod = (
            most_flows_anywhere(pattern, senders, layout, reach.pod_span, repeated=repeated)
            if reach.pod_span
            else layout.pod_down * leaf
        )
    return CrossingFlows(pattern.rate, leaf, pod)


def slowdowns_of(
    reach: Reach, active_gpus: int, place: Placement, *, looped: bool
) -> KindValues[Slowdown]:
    """How much slower than a NIC each kind of traffic is.

    Parameters
    ----------
    active_gpus
        K: GPUs of a domain that train.
    looped
        Whether hops lead from the last stage to the first as well, as chunks that interleave ask
        for.
    """
    if reach.layout is None:
        blocks = blocks_of(place, reach.domains)
        kept_blocks = blocks._replace(ep=math.lcm(blocks.tp, blocks.ep))
        return KindValues(
            *(
                Slowdown.certain(reach.slowdown(block, kept_block))
                for block, kept_block in zip(blocks, kept_blocks, strict=True)
            )
        )
    crossing = crossing_flows(reach, active_gpus, place, looped=looped)
    two_neighbours = place.pp_in == 1 and (place.pp_across > 2 or (place.pp_across == 2 and looped))
    if reach.discipline.routing == "ecmp" and two_neighbours:
        # each NIC sends to the next stage and to the one before, by a path each
        patterns = patterns_of(place, looped)
        hops, kept_block = patterns.pp._replace(shape="paths"), _kept_blocks(patterns).pp
        senders = Senders(active_gpus, place.pp_in)
        crossing = crossing._replace(pp=_flows_of(reach, senders, hops, kept_block))
    return KindValues(*(slowdown_of(reach, flows) for flows in crossing))


def halving_rounds(ring: Pattern) -> list[Pattern]:
    """Rounds of halving and doubling among the members of a ring.

    Powers of two exchange with one partner each, others send round the ring.
    """
    rounds = range(doublings(ring.members))
    if ring.members & (ring.members - 1):
        return [ring._replace(far=2**j) for j in rounds]
    return [Pattern("ring", 2, ring.stride * 2**j) for j in rounds]


@lru_cache(maxsize=200_000)
def other_ways(
    reach: Reach, active_gpus: int, place: Placement, kind: Literal["tp", "dp", "edp"]
) -> WaySlowdowns:
    """How much slower than a NIC a kind of traffic is by ways that are no ring.

    After a loss groups may begin anywhere, as for rings.
    """
    lost_domains = reach.spare is not None
    if reach.layout is None or reach.leaf_span >= reach.domains + lost_domains:
        of_ring: Slowdown = getattr(slowdowns_of(reach, active_gpus, place, looped=False), kind)
        return WaySlowdowns(of_ring, of_ring)
    of_kinds = patterns_of(place, looped=False)
    ring: Pattern = getattr(of_kinds, kind)
    kept_block = getattr(_kept_blocks(of_kinds), kind)
    patterns = halving_rounds(ring)
    shares = halving_shares(ring.members)
    senders, trees = Senders(active_gpus, place.pp_in), ring._replace(shape="trees")
    *rounds, of_trees = (
        slowdown_of(reach, _flows_of(reach, senders, pattern, kept_block))
        for pattern in (*patterns, trees)
    )
    # what the rounds take is added up
    halving = Slowdown(
        sum(share * slow.sure for share, slow in zip(shares, rounds, strict=True)),
        sum(share * slow.mean for share, slow in zip(shares, rounds, strict=True)),
    )
    return WaySlowdowns(halving, of_trees)


def slowdown_of(reach: Reach, flows: CrossingFlows) -> Slowdown:
    """How much slower than a NIC flows are that cross the links of a leaf and of a pod."""
    links, discipline = reach.links, reach.discipline
    if discipline.routing == "ecmp":
        leaf, pod = (flows.leaf, links.leaf, links.leaves), (flows.pod, links.pod, links.pods)
        return on_random_paths(flows.rate, leaf, pod)
    return Slowdown.certain(
        max(
            1.0,
            link_load(discipline, flows.rate, flows.leaf, links.leaf),
            link_load(discipline, flows.rate, flows.pod, links.pod),
        )
    )


def link_load(discipline: Discipline, rate: float, flows: int, links: float) -> float:
    """What the fullest of some links carries, over what it can: `flows` of `rate` NIC rates share
    them.
    """
    if not flows:
        return 0.0
    if discipline.routing == "pinned":
        return rate * ceil_ratio(flows, int(links))  # bundles are even
    # what is spread fills all links alike but for the share that spraying loses, or by a factor
    # that is given
    routing = discipline.routing
    stretch = 1 / discipline.efficiency if isinstance(routing, str) else routing
    return rate * flows / links * stretch


MISFORTUNE = 0.05
"""Probability that a kind of traffic whose flows take their paths at random is slower than
`Slowdown.sure`.
"""

OutOfSwitch = tuple[int, float, int]
"""Flows out of a switch, the links that they take, and how many switches have as many."""


@lru_cache(maxsize=100_000)
def on_random_paths(rate: float, *tiers: OutOfSwitch) -> Slowdown:
    """How much slower than a NIC flows of `rate` NIC rates are that each take one link at random,
    of each tier.
    """
    paths, tiers = round(1 / rate), tuple(tier for tier in tiers if tier[0])
    # as many share the fullest link at least, and all at most
    least = max([1, *(min(flows, math.ceil(flows / max(links, 1))) for flows, links, _ in tiers)])
    sure, beyond = 0, float(max(0, least - paths))
    for most in range(least, max([least, *(flows for flows, *_ in tiers)]) + 1):
        chance = math.prod(_no_link_above(most, *tier) for tier in tiers)
        if not sure and chance >= 1 - MISFORTUNE:
            sure = most
        if most >= paths:
            beyond += 1 - chance
        if chance == 1.0:
            break
    return Slowdown(max(1.0, rate * sure), 1.0 + rate * beyond)


def _no_link_above(count: int, flows: int, links: float, switches: int) -> float:
    """Probability that no link, up or down, of any switch has more than so many flows, as if links
    knew nothing of each other.
    """
    if count < flows / links:
        return 0.0
    tail = _tail(flows, links, count + 1)
    return math.exp(2 * switches * links * math.log1p(-tail)) if tail < 1 else 0.0


def _tail(trials: int, links: float, least_hits: int) -> float:
    """Probability that `least_hits` or more of some trials succeed, each with probability
    1/links.
    """
    if links <= 1 or least_hits > trials:
        return float(least_hits <= trials)
    total = 0.0
    for hits in range(least_hits, trials + 1):
        ways = math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
        chance = math.exp(ways - hits * math.log(links) + (trials - hits) * math.log1p(-1 / links))
        total += chance
        # beyond the mean each term is below the one before, and what is left below rounding
        if hits > trials / links and chance < 1e-18 * total:
            break
    return total


def cases_of(
    family: DesignFamily, reach: Reach, place: Placement, *, looped: bool, ties: bool = True
) -> Iterator[Speeds]:
    """The rates a placement sees on a design, in each case that counts; `looped` says whether
    chunks of the pipeline interleave, `ties` whether its two ends send each other anything.

    Where paths are random these are all sets of kinds of traffic that are unlucky together, the
    smallest first, of which each is so by the less the more there are.
    """
    if family.attachment is None:
        yield Speeds.everywhere(family.hb.gbyte_s * 1e9, 0.0)
        return
    slowdowns = slowdowns_of(reach, place.filled, place, looped=looped)._asdict()
    ways = {
        kind: partial(other_ways, reach, place.filled, place, kind) for kind in ("tp", "dp", "edp")
    }
    varying: list[str] = []
    if reach.discipline.routing == "ecmp" and reach.layout is not None:
        varying = [
            kind
            for kind, slow in slowdowns.items()
            if (ties or kind != "tied")
            and any(one.sure > one.mean for one in (slow, *(ways[kind]() if kind in ways else ())))
        ]
    for count in range(len(varying) + 1):
        for kinds in combinations(varying, count):
            shares = dict.fromkeys(slowdowns, 0.0) | dict.fromkeys(kinds, (count or 1) ** (-1 / 3))
            yield _case(family, slowdowns, ways, shares)


def _case(
    family: DesignFamily,
    slowdowns: Mapping[str, Slowdown],
    ways: Mapping[str, Callable[[], WaySlowdowns]],
    shares: Mapping[str, float],
) -> Speeds:
    """The rates where each kind of traffic is unlucky by a share."""
    rate = family.nic_byte_s

    def ways_of(kind: str) -> OtherWays:
        assert kind in ways, "others have no choice of ways"
        return OtherWays(*(slow.unlucky(shares[kind]) / rate for slow in ways[kind]()))

    s_byte = (slow.unlucky(shares[kind]) / rate for kind, slow in slowdowns.items())
    speeds = Speeds._make([family.hb.gbyte_s * 1e9, *s_byte, ways_of])
    return speeds.behind(family.hb.to_nics_gbyte_s)


class TimedCase(NamedTuple):
    """Seconds of an iteration, and the rates that it sees."""

    seconds: float
    speed: Speeds


def slowest_case(family: DesignFamily, reach: Reach, work: Work, place: Placement) -> TimedCase:
    """The case in which a mapping takes longest on a design; of those that take as long the first,
    where the fewest kinds of traffic are unlucky.
    """
    looped, traffic = work.split.interleave > 1, work.traffic
    ties = bool(traffic.embedding_bytes or traffic.twin_bytes)
    slowest: TimedCase | None = None
    for speed in cases_of(family, reach, place, looped=looped, ties=ties):
        case = TimedCase(iteration_s(work, place, speed), speed)
        if slowest is None or case.seconds > slowest.seconds * (1 + REORDERED):
            slowest = case
    assert slowest is not None, "there is always the usual case"
    return slowest
