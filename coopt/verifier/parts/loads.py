"""How many flows leave the leaf and the pod that most flows leave, by going through who sends to whom.

Domains are numbered 0 to D - 1 along every rail. A leaf, or a pod, holds of each rail the domains of one interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import pairwise
from typing import Generic, Literal, NamedTuple, TypeVar

from coopt.instance.schema import SwitchedKind
from coopt.verifier.training.placing import Placement


class LeafLayout(NamedTuple):
    """What decides who shares a leaf: all of a network but its uplinks.

    `rails` are the NICs of a domain, those of idle GPUs included; `pod_down` leaves make a pod, 0 without pods.
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
    """GPUs of a domain that send, `active` of them; `inner` stages of the pipeline follow each other in a domain."""

    active: int
    inner: int = 1


class Pattern(NamedTuple):
    """Who sends to whom among the domains of a rail.

    ring
        Each of `members` domains, `stride` apart, to the one `far` on, the next one unless said, the last to the first.
    trees
        Each to its parents and children in two trees, both ways.
    exchange
        Each of them to all others, as much to each.
    hops
        Each to those a stride farther and nearer; from the last to the first and back where `looped`.
    pair
        The first of them and the last to each other.
    mirror
        Each to that as far from the other end.
    """

    shape: Literal["ring", "exchange", "hops", "pair", "mirror", "trees"]
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
        return 1 / (self.members - 1) if self.shape == "exchange" and self.members > 1 else 1.0


T = TypeVar("T")


class OfKinds(NamedTuple, Generic[T]):
    """Something of each kind of traffic; `edp` are copies of experts, `tied` the embedding of first and last stage."""

    tp: T
    cp: T
    dp: T
    ep: T
    edp: T
    pp: T
    tied: T


def patterns_of(place: Placement, looped: bool) -> OfKinds[Pattern]:
    """Who sends to whom; TP ranks are numbered fastest, then CP, then DP, then PP, or PP right after TP.

    Gradients go round DP and CP ranks together; GPUs that hold the same experts are an expert group apart.
    """
    stage, context, step = place.stage_across, place.cp_across, place.step
    expert_stride = stage // (place.copies_across * place.ep_across)
    return OfKinds(
        tp=Pattern("ring", place.tp_across, 1),
        cp=Pattern("ring", context, place.tp_across * step),
        dp=Pattern("ring", context * place.dp_across, place.tp_across * step),
        ep=Pattern("exchange", place.ep_across, expert_stride * step),
        edp=Pattern("ring", place.copies_across, stage // place.copies_across * step),
        pp=Pattern("hops", place.pp_across, place.hop, looped),
        tied=Pattern("mirror" if place.two_way else "pair", place.pp_across, place.hop),
    )


class OfRails(NamedTuple, Generic[T]):
    """Something of the rails of a domain, out of it and into it.

    `every` is of any rail where all of them carry the same, which leaves out pipelines of which a domain holds several
    stages: of these `opening` is of rails of GPUs of the first stage inside the domain, `closing` of those of the last.
    """

    every: T
    opening: T
    closing: T
    into_opening: T
    into_closing: T


def partners(pattern: Pattern, domain: int) -> OfRails[list[int]]:
    """The domains that a domain sends to, and that it receives from where this is not the same.

    Stages run through a domain upwards and through the next one downwards, so that the hop after an even block of
    domains is on the rails of the last stage inside, after an odd one on those of the first. What leads back to the
    first block from an even one is on the rails of whoever receives it. First and last stage take the way back, too.
    """
    members, stride, found = pattern.members, pattern.stride, OfRails[list[int]]([], [], [], [], [])
    place = domain // stride % members
    base = domain - place * stride
    if members == 1:
        return found
    if pattern.shape == "ring":
        return found._replace(every=[base + (place + pattern.far) % members * stride])
    if pattern.shape == "mirror":
        twin = members - 1 - place
        return found._replace(every=[base + twin * stride] if twin != place else [])
    for hop, ahead in ((place, True), ((place - 1) % members, False)):
        back = hop == members - 1
        if back != (pattern.shape == "pair") and not (back and pattern.looped):
            continue
        other = base + (hop + ahead) % members * stride
        onward_closing, backward_closing = (hop % 2 == 0 and not back), hop % 2 == 0
        out_closing, into_closing = (onward_closing, backward_closing) if ahead else (backward_closing, onward_closing)
        found.every.append(other)
        (found.closing if out_closing else found.opening).append(other)
        (found.into_closing if into_closing else found.into_opening).append(other)
    return found


@lru_cache(maxsize=400_000)
def outgoing(pattern: Pattern, first: int, end: int) -> OfRails[int]:
    """How many of the domains from `first` up to `end` send to others, or receive; of an exchange, how many pairs.

    Whole groups among them send nothing out; of those that are cut at either end, which are alike wherever they lie, it
    is counted what they send.
    """
    block = pattern.block
    starts, stops = -(-first // block) * block, end // block * block
    if starts > stops:  # within one block
        return _out_of_block(pattern, *_middle(pattern, first % block, end - first // block * block))
    ends = ((first % block, block), (0, end % block))
    sent = [_out_of_block(pattern, low, high) for low, high in ends if 0 < high - low < block]
    return OfRails(*(sum(counts) for counts in zip(*sent, strict=True))) if sent else OfRails(0, 0, 0, 0, 0)


def _middle(pattern: Pattern, first: int, end: int) -> tuple[int, int]:
    """A part of a block; away from the ends of a pipeline, the first one like it: two stages on all is alike."""
    period = 2 * pattern.stride
    if pattern.shape != "hops" or first < pattern.stride or end > pattern.block - pattern.stride:
        return first, end
    start = pattern.stride + (first - pattern.stride) % period
    return start, start + end - first


@lru_cache(maxsize=400_000)
def _out_of_block(pattern: Pattern, first: int, end: int) -> OfRails[int]:
    """What a part of a block sends to the rest of it."""
    stride = pattern.stride
    if pattern.shape == "ring" and pattern.far == 1:
        # Of each ring it holds an arc, out of which one member sends, or all members.
        whole = max(0, end - first - (pattern.block - stride))
        return OfRails(min(stride, end - first) - whole, 0, 0, 0, 0)
    if pattern.shape == "exchange":
        inside = [len(range(first + i, end, stride)) for i in range(min(stride, end - first))]
        return OfRails(sum(m * (pattern.members - m) for m in inside), 0, 0, 0, 0)
    if pattern.shape == "trees":
        return OfRails(_edges_cut(pattern, first, end), 0, 0, 0, 0)
    counts = [0] * len(OfRails._fields)
    near = end - stride * pattern.far  # the domains of a ring before that one send to others of this part
    domain = max(first, near) if pattern.shape == "ring" else first
    while domain < end:
        run = range(domain, min(end, domain // stride * stride + stride))  # all of them send equally far
        for way, others in enumerate(partners(pattern, domain)):
            counts[way] += len(run) - _staying(run, [other - domain for other in others], first, end)
        domain = run.stop
    return OfRails(*counts)


def _staying(run: range, far: list[int], first: int, end: int) -> int:
    """How many domains of a run send so far and no farther than among those from `first` up to `end`."""
    low = max([run.start, *(first - shift for shift in far)])
    return max(0, min([run.stop, *(end - shift for shift in far)]) - low)


def _edges_cut(pattern: Pattern, first: int, end: int) -> int:
    """Edges of both trees with one end in a part of a block; groups that have the same members there are alike."""
    stride = pattern.stride
    parts = Counter((-(-(first - shift) // stride), -(-(end - shift) // stride)) for shift in range(stride))
    edges = tree_edges(pattern.members)
    return sum(
        count * sum((low <= one < high) != (low <= other < high) for one, other in edges)
        for (low, high), count in parts.items()
    )


@lru_cache(maxsize=256)
def tree_edges(members: int) -> tuple[tuple[int, int], ...]:
    """Child and parent of every edge of two binary trees: odd members are leaves of the first, even ones of the second.

    The parent of a member is where its lowest bit gives way to the next higher one, as far as there is such a member.
    The second tree is the first in reverse, or, of an odd number, one further on.
    """
    found = []
    for child in range(1, members):
        low = child & -child
        parent = child - low | low << 1
        found.append((child, parent if parent < members else child - low))
    if members % 2:
        return tuple(found + [((a + 1) % members, (b + 1) % members) for a, b in found])
    return tuple(found + [(members - 1 - a, members - 1 - b) for a, b in found])


@lru_cache(maxsize=256)
def _widest_cut(members: int) -> int:
    """Edges between the first of some members and the others, for the number of these with most."""
    return max(sum((a < first) != (b < first) for a, b in tree_edges(members)) for first in range(1, members))


class Held(NamedTuple):
    """Domains of one interval that a leaf or pod holds of `rails` NICs that send.

    `opening` of these belong to GPUs of the first stage inside a domain, `closing` to those of the last.
    """

    first: int
    end: int
    rails: int
    opening: int
    closing: int


RailRange = tuple[int, int, int, int]  # rails from, up to; domains from, up to


@lru_cache(maxsize=4096)
def holdings(layout: LeafLayout, senders: Senders, leaves: int) -> frozenset[tuple[Held, ...]]:
    """What every `leaves` consecutive leaves of a plane hold together; alike ones once."""
    nics = layout.nics(senders.active)
    ends = nics // senders.inner

    @cache
    def sending(low: int, high: int) -> tuple[int, ...]:
        return tuple(max(0, min(high, b) - max(low, a)) for a, b in ((0, nics), (0, ends), (nics - ends, nics)))

    def held(rails: RailRange) -> Held:
        low, high, first, end = rails
        return Held(first, end, *sending(low, high))

    switches = (map(held, ranges) for ranges in _rail_ranges(layout, nics, leaves))
    return frozenset(tuple(one for one in switch if one.rails and one.first < one.end) for switch in switches)


def _rail_ranges(layout: LeafLayout, nics: int, leaves: int) -> Iterator[list[RailRange]]:
    """Rails and domains of every `leaves` consecutive leaves; of planes alike, those of the first and last rail."""
    domains, rails, down = layout.domains, layout.rails, layout.down
    if layout.kind == "rail-only":
        for first in range(0, domains, leaves * down):
            for rail in {0, nics - 1}:
                yield [(rail, rail + 1, first, min(first + leaves * down, domains))]
    elif layout.kind == "clos":
        for start in range(0, domains * rails, leaves * down):
            yield _clos_ranges(start, min(start + leaves * down, domains * rails), rails)
    elif domains <= down:
        yield [(0, rails, 0, domains)]  # whole rails, wherever they are
    else:
        each = -(-domains // down)
        for start in range(0, rails * each, leaves):
            stop = min(start + leaves, rails * each)
            yield [
                (rail, rail + 1, max(start - rail * each, 0) * down, min((stop - rail * each) * down, domains))
                for rail in range(start // each, -(-stop // each))
            ]


def _clos_ranges(start: int, stop: int, rails: int) -> list[RailRange]:
    """Rails and domains of end points that are numbered by domain, then by rail."""
    (a, low), (b, high) = divmod(start, rails), divmod(stop, rails)
    cuts = sorted({0, low, high, rails})
    return [(rail, until, a + (rail < low), b + (rail < high)) for rail, until in pairwise(cuts)]


@lru_cache(maxsize=400_000)
def most_flows(pattern: Pattern, senders: Senders, layout: LeafLayout, leaves: int) -> int:
    """Flows out of those `leaves` consecutive leaves that most flows leave, or into them where these are more.

    A NIC that has two stages to send to sends to one at a time.
    """
    if pattern.members == 1 or not leaves:
        return 0
    alike, most = pattern.shape in ("ring", "exchange", "mirror", "trees") or senders.inner == 1, 0
    block = pattern.block
    for switch in holdings(layout, senders, leaves):
        out = into = 0
        for first, end, rails, opening, closing in switch:
            sent = outgoing(pattern, first % block, end - first // block * block)  # blocks are alike
            out += rails * sent.every if alike else opening * sent.opening + closing * sent.closing
            into += 0 if alike else opening * sent.into_opening + closing * sent.into_closing
        most = max(most, out, into)
    return most


def most_flows_anywhere(pattern: Pattern, senders: Senders, layout: LeafLayout, window: int, *, repeated: bool) -> int:
    """The most flows out of a switch that holds so many consecutive domains, wherever they begin.

    At either end of them they cut a group for each domain of a stride. Where pipelines are `repeated` along a rail,
    they cut two of these, and of a looped one the hop that leads back as well.
    """
    members, stride, inner = pattern.members, pattern.stride, senders.inner
    nics = layout.nics(senders.active) if layout.kind == "clos" else 1
    if members == 1:
        return 0
    if pattern.shape == "trees":
        return nics * min(4 * window, 2 * stride * _widest_cut(members))
    if pattern.shape == "ring":
        return nics * min(window, 2 * stride * pattern.far)
    if pattern.shape == "exchange":
        return nics * min(window * (members - 1), 2 * stride * (members // 2) * (members - members // 2))
    if pattern.shape == "mirror":
        return nics * window
    if pattern.shape == "hops" and repeated:
        return nics * min(window, 2 * stride * (1 + pattern.looped))
    if inner == 1 or layout.kind != "clos":
        return nics * min(window, 2 * stride)
    if pattern.shape == "hops":
        return nics // inner * 2 * min(window, stride)
    return nics // inner * min(window, 2 * stride)
