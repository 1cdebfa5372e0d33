"""How many flows leave the leaf and the pod that most flows leave, by going through who sends to
whom.

Domains are numbered 0 to D - 1 along every rail. A leaf, or a pod, holds of each rail the domains
of one interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import Generic, Literal, NamedTuple, TypeVar

from coopt.instance.network import SwitchedKind
from coopt.verifier.training.placing import Placement


class LeafLayout(NamedTuple):
    """What decides who shares a leaf: all of a network but its uplinks.

    `rails` are the NICs of a domain, those of idle GPUs included; `pod_down` leaves make a pod, 0
    without pods.
    """

    kind: SwitchedKind
    domains: int
    rails: int
    per_gpu: int
    down: int
    pod_down: int = 0
    gpus_per_nic: int = 1

    def nics(self, gpus: int) -> int:
        """NICs of so many GPUs of a domain."""
        return gpus * self.per_gpu // self.gpus_per_nic


class Senders(NamedTuple):
    """GPUs of a domain that send, `gpus` of them; `stages` of the pipeline follow each other
    there.
    """

    gpus: int
    stages: int = 1


class Pattern(NamedTuple):
    """Who sends to whom among the domains of a rail.

    ring
        Each of `members` domains, `stride` apart, to the one `far` on, the next one unless said,
        the last to the first.
    trees
        Each to its parents and children in two trees, both ways.
    exchange
        Each of them to all others, as much to each.
    hops
        Each to those a stride farther and nearer; from the last to the first and back where
        `looped`.
    paths
        The same, where both of them count that a NIC sends to, at half its rate each.
    pair
        The first of them and the last to each other.
    mirror
        Each to that as far from the other end.
    """

    shape: Literal["ring", "exchange", "hops", "paths", "pair", "mirror", "trees"]
    members: int
    stride: int
    looped: bool = False
    far: int = 1

    @property
    def block(self) -> int:
        """S: consecutive domains that groups tile."""
        return self.members * self.stride

    @property
    def rate(self) -> float:
        """What one flow takes of the rate of its NIC."""
        if self.shape == "trees":
            return 1 / 4  # with parents in both trees a domain has two children in one of them
        if self.shape == "paths":
            return 1 / 2
        return 1 / (self.members - 1) if self.shape == "exchange" and self.members > 1 else 1.0


T = TypeVar("T")


class KindValues(NamedTuple, Generic[T]):
    """Something of each kind of traffic; `edp` are copies of experts, `tied` the embedding of first
    and last stage.
    """

    tp: T
    cp: T
    dp: T
    ep: T
    edp: T
    pp: T
    tied: T


def patterns_of(place: Placement, looped: bool) -> KindValues[Pattern]:
    """Who sends to whom; TP ranks are numbered fastest, then CP, then DP, then PP, or PP right
    after TP.

    Gradients go round DP and CP ranks together; GPUs that hold the same experts are an expert group
    apart.
    """
    stage, context, step = place.stage_across, place.cp_across, place.step
    expert_stride = stage // (place.copies_across * place.ep_across)
    return KindValues(
        tp=Pattern("ring", place.tp_across, 1),
        cp=Pattern("ring", context, place.tp_across * step),
        dp=Pattern("ring", context * place.dp_across, place.tp_across * step),
        ep=Pattern("exchange", place.ep_across, expert_stride * step),
        edp=Pattern("ring", place.copies_across, stage // place.copies_across * step),
        pp=Pattern("hops", place.pp_across, place.hop, looped),
        tied=Pattern("mirror" if place.two_way else "pair", place.pp_across, place.hop),
    )


class RailValues(NamedTuple, Generic[T]):
    """Something of the rails of a domain, out of it and into it.

    `any_rail` is of each rail where all of them carry the same, which leaves out pipelines of which
    a domain holds several stages: of these `opening` is of rails of GPUs of the first stage inside
    the domain, `closing` of those of the last.
    """

    any_rail: T
    opening: T
    closing: T
    into_opening: T
    into_closing: T


def partners(pattern: Pattern, domain: int) -> RailValues[list[int]]:
    """The domains that a domain sends to, and that it receives from where this is not the same.

    Stages run through a domain upwards and through the next one downwards, so that the hop after an
    even block of domains is on the rails of the last stage inside, after an odd one on those of the
    first. What leads back to the first block from an even one is on the rails of whoever receives
    it. First and last stage take the way back, too.
    """
    members, stride, targets = (
        pattern.members,
        pattern.stride,
        RailValues[list[int]]([], [], [], [], []),
    )
    place = domain // stride % members
    base = domain - place * stride
    if members == 1:
        return targets
    if pattern.shape == "ring":
        return targets._replace(any_rail=[base + (place + pattern.far) % members * stride])
    if pattern.shape == "mirror":
        twin = members - 1 - place
        return targets._replace(any_rail=[base + twin * stride] if twin != place else [])
    # the hop that leaves a domain for the next one, and the one that comes from the one before;
    # both go back as well
    for hop, ahead in ((place, True), ((place - 1) % members, False)):
        is_return = hop == members - 1
        if is_return != (pattern.shape == "pair") and not (is_return and pattern.looped):
            continue
        target = base + (hop + ahead) % members * stride
        onward_closing, backward_closing = (hop % 2 == 0 and not is_return), hop % 2 == 0
        out_closing, into_closing = (
            (onward_closing, backward_closing) if ahead else (backward_closing, onward_closing)
        )
        targets.any_rail.append(target)
        (targets.closing if out_closing else targets.opening).append(target)
        (targets.into_closing if into_closing else targets.into_opening).append(target)
    return targets


@lru_cache(maxsize=400_000)
def outgoing(pattern: Pattern, start: int, end: int) -> RailValues[int]:
    """How many of the domains from `start` up to `end` send to others, or receive; of an exchange,
    how many pairs.

    Whole groups among them send nothing out; of those that are cut at either end, which are alike
    wherever they lie, it is counted what they send.
    """
    block = pattern.block
    starts, stops = -(-start // block) * block, end // block * block
    if starts > stops:  # within one block
        return _out_of_block(
            pattern, *_like_part(pattern, start % block, end - start // block * block)
        )
    ends = ((start % block, block), (0, end % block))
    counts_of_ends = [
        _out_of_block(pattern, part_start, part_end)
        for part_start, part_end in ends
        if 0 < part_end - part_start < block
    ]
    if not counts_of_ends:
        return RailValues(0, 0, 0, 0, 0)
    return RailValues(*(sum(counts) for counts in zip(*counts_of_ends, strict=True)))


def _like_part(pattern: Pattern, start: int, end: int) -> tuple[int, int]:
    """A part of a block; away from the ends of a pipeline, the first one like it: two stages on all
    is alike.
    """
    # stages turn round in every second block of domains, after which all rails carry the same again
    period = 2 * pattern.stride
    if (
        pattern.shape not in ("hops", "paths")
        or start < pattern.stride
        or end > pattern.block - pattern.stride
    ):
        return start, end
    like_start = pattern.stride + (start - pattern.stride) % period
    return like_start, like_start + end - start


@lru_cache(maxsize=400_000)
def _out_of_block(pattern: Pattern, start: int, end: int) -> RailValues[int]:
    """What a part of a block sends to the rest of it."""
    stride = pattern.stride
    if pattern.shape == "exchange":
        inside = [len(range(start + i, end, stride)) for i in range(min(stride, end - start))]
        return RailValues(sum(m * (pattern.members - m) for m in inside), 0, 0, 0, 0)
    if pattern.shape == "trees":
        return RailValues(_edges_cut(pattern, start, end), 0, 0, 0, 0)
    counts = [0] * len(RailValues._fields)
    # the domains of a ring before that one send to others of this part
    last_inside = end - stride * pattern.far
    domain = max(start, last_inside) if pattern.shape == "ring" else start
    while domain < end:
        # all of them send equally far
        run = range(domain, min(end, domain // stride * stride + stride))
        for rail_kind, targets in enumerate(partners(pattern, domain)):
            shifts = [target - domain for target in targets]
            # a NIC sends to one of its neighbours at a time, or to both of them
            sends = [[shift] for shift in shifts] if pattern.shape == "paths" else [shifts]
            counts[rail_kind] += sum(len(run) - _staying(run, s, start, end) for s in sends)
        domain = run.stop
    return RailValues(*counts)


def _staying(run: range, shifts: list[int], start: int, end: int) -> int:
    """How many domains of a run send so far and no farther than among those from `start` up to
    `end`.
    """
    lowest = max([run.start, *(start - shift for shift in shifts)])
    return max(0, min([run.stop, *(end - shift for shift in shifts)]) - lowest)


def _edges_cut(pattern: Pattern, start: int, end: int) -> int:
    """Edges of both trees with one end in a part of a block; groups that have the same members
    there are alike.
    """
    stride = pattern.stride
    # of a group with this shift the members from the first at or after its start lie in the part, a
    # run of numbers
    parts = Counter(
        (-(-(start - shift) // stride), -(-(end - shift) // stride)) for shift in range(stride)
    )
    edges = tree_edges(pattern.members)
    return sum(
        count
        * sum(
            (part_start <= child < part_end) != (part_start <= parent < part_end)
            for child, parent in edges
        )
        for (part_start, part_end), count in parts.items()
    )


@lru_cache(maxsize=256)
def tree_edges(members: int) -> tuple[tuple[int, int], ...]:
    """Child and parent of every edge of two binary trees: odd members are leaves of the first, even
    ones of the second.

    The parent of a member is where its lowest bit gives way to the next higher one, as far as there
    is such a member. The second tree is the first in reverse, or, of an odd number, one further on.
    """
    edges = []
    for child in range(1, members):
        lowest_bit = child & -child
        parent = child - lowest_bit | lowest_bit << 1
        edges.append((child, parent if parent < members else child - lowest_bit))
    if members % 2:
        return tuple(edges + [((a + 1) % members, (b + 1) % members) for a, b in edges])
    return tuple(edges + [(members - 1 - a, members - 1 - b) for a, b in edges])


@lru_cache(maxsize=256)
def _widest_cut(members: int) -> int:
    """Edges between the first of some members and the others, for the number of these with most."""
    return max(
        sum((a < cut) != (b < cut) for a, b in tree_edges(members)) for cut in range(1, members)
    )


class Holding(NamedTuple):
    """Domains of one interval that a leaf or pod holds of `rails` NICs that send.

    `opening` of these belong to GPUs of the first stage inside a domain, `closing` to those of the
    last.
    """

    start: int
    end: int
    rails: int
    opening: int
    closing: int


RailRange = tuple[int, int, int, int]  # rails from, up to; domains from, up to


@lru_cache(maxsize=4096)
def holdings(layout: LeafLayout, senders: Senders, leaves: int) -> frozenset[tuple[Holding, ...]]:
    """What every `leaves` consecutive leaves of a plane hold together; alike ones once."""
    nics = layout.nics(senders.gpus)
    ends = -(-nics // senders.stages)

    @cache
    def sending(low: int, high: int) -> tuple[int, ...]:
        return tuple(
            max(0, min(high, b) - max(low, a))
            for a, b in ((0, nics), (0, ends), (nics - ends, nics))
        )

    switches = (
        [Holding(start, end, *sending(low, high)) for low, high, start, end in ranges]
        for ranges in _rail_ranges(layout, nics, leaves)
    )
    return frozenset(
        tuple(holding for holding in switch if holding.rails and holding.start < holding.end)
        for switch in switches
    )


def _rail_ranges(layout: LeafLayout, nics: int, leaves: int) -> Iterator[list[RailRange]]:
    """Rails and domains of every `leaves` consecutive leaves; of planes alike, those of the first
    and last rail.
    """
    domains, rails, down = layout.domains, layout.rails, layout.down
    if layout.kind == "rail-only":
        for start in range(0, domains, leaves * down):
            for rail in {0, nics - 1}:
                yield [(rail, rail + 1, start, min(start + leaves * down, domains))]
    elif layout.kind == "clos":
        for point in range(0, domains * rails, leaves * down):
            yield _clos_ranges(point, min(point + leaves * down, domains * rails), rails)
    elif domains <= down:
        yield [(0, rails, 0, domains)]  # whole rails, wherever they are
    else:
        spread = -(-domains // down)
        for point in range(0, rails * spread, leaves):
            stop = min(point + leaves, rails * spread)
            yield [
                (
                    rail,
                    rail + 1,
                    max(point - rail * spread, 0) * down,
                    min((stop - rail * spread) * down, domains),
                )
                for rail in range(point // spread, -(-stop // spread))
            ]


def _clos_ranges(start: int, stop: int, rails: int) -> list[RailRange]:
    """Rails and domains of end points that are numbered by domain, then by rail."""
    (a, low), (b, high) = divmod(start, rails), divmod(stop, rails)
    cuts = sorted({0, low, high, rails})
    return [(rail, until, a + (rail < low), b + (rail < high)) for rail, until in pairwise(cuts)]


@lru_cache(maxsize=400_000)
def most_flows(pattern: Pattern, senders: Senders, layout: LeafLayout, leaves: int) -> int:
    """Flows out of those `leaves` consecutive leaves that most flows leave, or into them where
    these are more.

    A NIC that has two stages to send to sends to one at a time.
    """
    if pattern.members == 1 or not leaves:
        return 0
    # all rails of a domain send alike but for hops of a pipeline of which it holds several stages
    is_uniform, flows_of_fullest = (
        pattern.shape in ("ring", "exchange", "mirror", "trees") or senders.stages == 1,
        0,
    )
    block = pattern.block
    for switch in holdings(layout, senders, leaves):
        out = into = 0
        for start, end, rails, opening, closing in switch:
            # blocks are alike
            flows = outgoing(pattern, start % block, end - start // block * block)
            out += (
                rails * flows.any_rail
                if is_uniform
                else opening * flows.opening + closing * flows.closing
            )
            into += 0 if is_uniform else opening * flows.into_opening + closing * flows.into_closing
        # links carry as much either way, so that the fuller one counts
        flows_of_fullest = max(flows_of_fullest, out, into)
    return flows_of_fullest


def most_flows_anywhere(
    pattern: Pattern, senders: Senders, layout: LeafLayout, window: int, *, repeated: bool
) -> int:
    """The most flows out of a switch that holds so many consecutive domains, wherever they begin.

    At either end of them they cut a group for each domain of a stride. Where pipelines are
    `repeated` along a rail, they cut two of these, and of a looped one the hop that leads back as
    well.
    """
    members, stride, stages = pattern.members, pattern.stride, senders.stages
    nics = layout.nics(senders.gpus) if layout.kind == "clos" else 1
    if members == 1:
        return 0
    if pattern.shape == "trees":
        # no domain has more than four edges, and at either end groups are cut where most edges
        # cross at worst
        return nics * min(4 * window, 2 * stride * _widest_cut(members))
    if pattern.shape == "ring":
        return nics * min(window, 2 * stride * pattern.far)
    if pattern.shape == "exchange":
        # at worst half of a group lies inside at either end
        return nics * min(
            window * (members - 1), 2 * stride * (members // 2) * (members - members // 2)
        )
    if pattern.shape == "mirror":
        return nics * window
    if pattern.shape == "paths":
        # as many to the next stage as to the one before
        crossing = stride * (1 + pattern.looped) if repeated else stride
        return nics * 2 * min(window, crossing)
    if pattern.shape == "hops" and repeated:
        return nics * min(window, 2 * stride * (1 + pattern.looped))
    if stages == 1 or layout.kind != "clos":
        return nics * min(window, 2 * stride)
    if pattern.shape == "hops":
        return nics // stages * 2 * min(window, stride)
    return nics // stages * min(window, 2 * stride)
