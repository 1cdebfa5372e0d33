"""What crosses HB domains on direct links: who sends how much to whom, and the links that this
needs at given paces.

Lengths of links prove how many demands take at least, and cuts how many whole links.

A demand takes its bytes times the length of its path, which no path cuts short (weak duality).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations
from typing import NamedTuple

import networkx as nx

from coopt.instance.numerics import SOLVED
from coopt.instance.texts import InstanceError, counted
from coopt.instance.texts import both as listed
from coopt.plan.parts import LinkGrid, LinkLengths
from coopt.verifier.training.communication import Speeds
from coopt.verifier.training.mappings import ScalarMapping
from coopt.verifier.training.placing import Placement

SCALE = 10**15
"""Amounts of a proof are rounded down to this part of one."""

Paces = dict[str, float]

Sends = dict[tuple[int, int], Fraction]


class RoundedCut(NamedTuple):
    """What leaves a set of domains in each phase at a pace of one link, and what a whole link
    across is priced.
    """

    price: int
    demands: dict[str, Fraction]


class PricedLinks(NamedTuple):
    """Lengths and prices of a proof, summed up: so much for each pace, the cuts, all ports, and the
    most for a link.
    """

    by_pace: dict[str, Fraction]
    cuts: tuple[RoundedCut, ...]
    ports: int
    link: int

    def least_links(self, paces: Paces, ports: int) -> Fraction:
        """No fewer links carry all demands at these paces, with so many ports a domain."""
        total = sum(
            (unit_price * Fraction(paces[phase]) for phase, unit_price in self.by_pace.items()),
            Fraction(),
        )
        for cut in self.cuts:
            total += cut.price * max(
                math.ceil(share * Fraction(paces[phase])) for phase, share in cut.demands.items()
            )
        # a link is worth `link` at most: what demands are worth, less what full ports give back,
        # takes so many
        return (total - self.ports * ports) / self.link


def priced_links(grid: StageGrid, lengths: LinkLengths) -> PricedLinks | None:
    """What lengths prove on their grid; None where they put no price on any link.

    Raises
    ------
    InstanceError
        When numbers of lengths, ports or domains are not those of the grid.
    """
    firsts, turns, count = grid.firsts, grid.replicas // grid.turn, grid.domains
    if unknown_phases := set(lengths.lengths) - set(sends_on(grid)):
        raise InstanceError(
            f"link lengths: given for phase {min(unknown_phases)!r}, needs"
            f" {listed(sends_on(grid))}, the phases of its grid"
        )
    by_phase = {
        phase: _amounts(lengths.lengths.get(phase, ()), len(firsts) * count)
        for phase in sends_on(grid)
    }
    ports = _amounts(lengths.ports or ("0",) * len(firsts), len(firsts))
    cuts = [(frozenset(cut.domains), _amount(cut.price)) for cut in lengths.cuts]
    if not all(0 <= domain < count for members, _ in cuts for domain in members):
        raise InstanceError(
            f"link lengths: a cut names a domain outside 0 to {count - 1}, needs domains of its"
            " grid"
        )
    # prices of the cuts that a link from one of the first domains crosses, in all places the cuts
    # are moved to
    across: defaultdict[tuple[int, int], int] = defaultdict(int)
    for members, price in cuts:
        for turn in range(turns):
            moved_members = {grid.moved(domain, turn * grid.turn) for domain in members}
            for source in firsts:
                for target in range(count):
                    across[source, target] += price * (
                        (source in moved_members) != (target in moved_members)
                    )
    # what a link is worth at most: lengths both ways and cuts, less its ports; over it, no link is
    # worth more than 1
    link = 0
    for number, source in enumerate(firsts):
        for target in range(count):
            if target != source:
                ends = ports[number] + ports[grid.origin_of(target)[0]]
                length = sum(
                    _length(grid, lengths_of_phase, *ways)
                    for lengths_of_phase in by_phase.values()
                    for ways in ((source, target), (target, source))
                )
                link = max(link, length + across[source, target] - ends)
    if link <= 0:
        return None
    by_pace = {
        phase: _demand_lengths(grid, phase, lengths_of_phase)
        for phase, lengths_of_phase in by_phase.items()
    }
    rounded = tuple(
        RoundedCut(price * turns, _leaving(grid, members)) for members, price in cuts if price
    )
    return PricedLinks(by_pace, rounded, sum(ports) * turns, link)


def _amount(text: str) -> int:
    # any lengths prove something, so that rounding makes the proof no worse than exact
    return int(Fraction(text) * SCALE)


def _amounts(amounts: Sequence[str], count: int) -> list[int]:
    """Amounts of a proof as whole numbers."""
    if len(amounts) != count:
        raise InstanceError(
            "link lengths: a list of lengths or of ports has"
            f" {counted(len(amounts), 'number')}, needs {count}"
        )
    return [_amount(text) for text in amounts]


def _length(grid: StageGrid, lengths: Sequence[int], source: int, target: int) -> int:
    """The length from one domain to another: that from the first domain that sends alike to one as
    far on.
    """
    number, back = grid.origin_of(source)
    return lengths[number * grid.domains + grid.moved(target, -back)]


def _demand_lengths(grid: StageGrid, phase: str, lengths: Sequence[int]) -> Fraction:
    """What all demands of a phase need at a pace of one link: each at least its share of the
    shortest distance.

    Moving all domains of each stage on changes nothing, so that the first ones stand for all.
    """
    total = Fraction()
    firsts = grid.firsts
    demands = [(ends, share) for ends, share in sends_on(grid)[phase].items() if ends[0] in firsts]
    for source in firsts:
        distances = _distances(grid, lengths, source)
        total += sum(
            (share * distances[end] for (start, end), share in demands if start == source),
            Fraction(),
        )
    return total * (grid.replicas // grid.turn)


def _distances(grid: StageGrid, lengths: Sequence[int], source: int) -> dict[int, int]:
    """The shortest distance from a domain to each (Dijkstra)."""
    tentative, distances = {source: 0}, dict[int, int]()
    # no heap: every domain has an arc to every other
    while tentative:
        domain = min(tentative, key=tentative.__getitem__)
        distances[domain] = tentative.pop(domain)
        for neighbour in range(grid.domains):
            if neighbour not in distances:
                distance = distances[domain] + _length(grid, lengths, domain, neighbour)
                tentative[neighbour] = min(tentative.get(neighbour, distance), distance)
    return distances


def _leaving(grid: StageGrid, members: frozenset[int]) -> dict[str, Fraction]:
    """What leaves a set of domains in each phase at a pace of one link."""
    return {
        phase: sum(
            (share for (a, b), share in sends.items() if a in members and b not in members),
            Fraction(),
        )
        for phase, sends in sends_on(grid).items()
    }


KINDS = ("pp", "dp", "tp", "cp", "ep", "edp", "tied")
"""Kinds of traffic; those that send alike make a phase, named after the first of them."""


class StageGrid(LinkGrid):
    """A grid of domains, with how they move and send alike."""

    @property
    def turn(self) -> int:
        """By so many places all domains of a stage move on and send as before."""
        blocks = [self.tensor, self.tensor * self.contexts]
        if self.experts > 1:
            blocks.append(self.experts * self.apart)
        return math.lcm(*(block for block in blocks if block < self.replicas))

    @property
    def firsts(self) -> list[int]:
        """The domains that all others are moved from."""
        return [s * self.replicas + x for s in range(self.stages) for x in range(self.turn)]

    def moved(self, domain: int, places: int) -> int:
        """The domain of the same stage so many places on."""
        return domain - domain % self.replicas + (domain + places) % self.replicas

    def origin_of(self, domain: int) -> tuple[int, int]:
        """Which of the firsts a domain is moved from, and by how many places."""
        stage, place = divmod(domain, self.replicas)
        return stage * self.turn + place % self.turn, place - place % self.turn


@cache
def sends_by_kind(grid: StageGrid) -> dict[str, Sends]:
    """What domains send to each other in traffic of each kind at a pace of one link, where they
    send anything.
    """
    replicas, t, copies = grid.replicas, grid.tensor, grid.experts * grid.apart
    all_sends = {
        "pp": _hops(grid),
        "dp": _rings(grid, t, replicas // t),
        "tp": _rings(grid, 1, t),
        "cp": _rings(grid, t, grid.contexts if grid.contexts > 1 else replicas // t),
        "ep": _exchanges(grid, grid.apart, grid.experts),
        "edp": _rings(grid, copies, replicas // copies),
        "tied": _hops(grid),
    }
    return {kind: sends for kind, sends in all_sends.items() if sends}


@cache
def phases_of(grid: StageGrid) -> dict[str, str]:
    """The phase of each kind of traffic: the first kind that sends alike."""
    kinds = sends_by_kind(grid)
    return {
        kind: next(leader for leader in KINDS if kinds.get(leader) == sends)
        for kind, sends in kinds.items()
    }


@cache
def sends_on(grid: StageGrid) -> dict[str, Sends]:
    """What domains send to each other in each phase at a pace of one link."""
    return {phase: sends_by_kind(grid)[phase] for phase in dict.fromkeys(phases_of(grid).values())}


def speeds_on(grid: StageGrid, inside_byte_s: float, s_byte: dict[str, float]) -> Speeds:
    """The rate of every kind of traffic from those of the phases (s/byte)."""
    seen = {f"{kind}_s_byte": s_byte.get(phase, 0.0) for kind, phase in phases_of(grid).items()}
    return Speeds.everywhere(inside_byte_s, 0.0)._replace(**seen)  # type: ignore[arg-type]


def _hops(grid: StageGrid) -> Sends:
    """Sends of a stage to the next and the one before; a pipeline of several chunks goes round."""
    sends: Sends = {}
    for stage in range(grid.stages if grid.closed else grid.stages - 1):
        next_stage = (stage + 1) % grid.stages
        for replica in range(grid.replicas if grid.stages > 1 else 0):
            source, target = stage * grid.replicas + replica, next_stage * grid.replicas + replica
            sends[source, target] = sends[target, source] = Fraction(1, grid.inner)
    return sends


def _members(grid: StageGrid, stride: int, count: int) -> Iterator[list[int]]:
    """The groups of so many domains, so far from each other, that tile the domains; none of one
    alone.
    """
    for start in range(0, grid.domains if count > 1 else 0, stride * count):
        for offset in range(stride):
            yield [start + offset + number * stride for number in range(count)]


def _rings(grid: StageGrid, stride: int, count: int) -> Sends:
    """What goes round rings: half of the data in each direction."""
    sends: defaultdict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for members in _members(grid, stride, count):
        for member, next_member in zip(members, [*members[1:], members[0]], strict=True):
            sends[member, next_member] += Fraction(1, 2)
            sends[next_member, member] += Fraction(1, 2)
    return dict(sends)


def _exchanges(grid: StageGrid, stride: int, count: int) -> Sends:
    """All-to-alls: every member sends to all others alike."""
    share = Fraction(1, max(count - 1, 1))
    return {
        ends: share
        for members in _members(grid, stride, count)
        for ends in permutations(members, 2)
    }


def has_neighbours(place: Placement, *, tied: bool) -> bool:
    """Whether stages that hold the same parameters are in one domain or in neighbours: the ends of
    a pipeline with one embedding, and all that are as far from its ends in two directions, of one
    stage a domain.
    """
    if place.two_way:
        return place.pp_across == 1 or place.pp_in * place.pp_across == 2
    return not (tied and place.pp_across > 2)


def grid_of(split: ScalarMapping, place: Placement) -> StageGrid:
    """The domains of a mapping as stages and the domains of each."""
    holders = place.ep_across * place.copies_across  # 1 without experts
    return StageGrid(
        stages=place.pp_across,
        replicas=place.stage_across,
        inner=place.pp_in,
        closed=split.interleave > 1,
        tensor=place.tp_across,
        contexts=place.cp_across if place.dp_across > 1 else 1,
        experts=place.ep_across,
        apart=place.tp_across if holders == 1 else place.stage_across // holders,
    )


def whole_links(grid: StageGrid, paces: Paces) -> int:
    """The whole links at all domains, enough for all that each sends at these paces."""
    stage_links = [0.0] * grid.stages
    for phase, share_by_source in shares_sent(grid).items():
        for stage in range(grid.stages):
            share = share_by_source.get(stage * grid.replicas, Fraction())
            stage_links[stage] = max(stage_links[stage], float(share) * paces[phase])
    return sum(math.ceil(links * (1 - SOLVED)) for links in stage_links) * grid.replicas


@cache
def shares_sent(grid: StageGrid) -> dict[str, dict[int, Fraction]]:
    """What each domain sends altogether in each phase at a pace of one link."""
    shares_by_phase: dict[str, dict[int, Fraction]] = {}
    for phase, sends in sends_on(grid).items():
        shares: defaultdict[int, Fraction] = defaultdict(Fraction)
        for (source, _), share in sends.items():
            shares[source] += share
        shares_by_phase[phase] = dict(shares)
    return shares_by_phase


@cache
def joining_links(grid: StageGrid) -> int:
    """The fewest links that join all senders to receivers."""
    graph = nx.Graph()
    graph.add_nodes_from(range(grid.domains))
    for pairs in sends_on(grid).values():
        graph.add_edges_from(pairs)
    return grid.domains - int(nx.number_connected_components(graph))
