"""What crosses HB domains on direct links: who sends how much to whom, how fast, and the links that this needs.

Lengths of links prove how many demands take at least, and cuts how many whole links.

A demand takes its bytes times the length of its path, which no path cuts short (weak duality).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from itertools import product
from typing import NamedTuple

import networkx as nx

from coopt.instance.errors import InstanceError
from coopt.instance.errors import both as listed
from coopt.plan.parts import LinkLengths
from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.training.communication import Speeds
from coopt.verifier.training.iteration import iteration_s
from coopt.verifier.training.placing import Placement
from coopt.verifier.training.work import Work

SCALE = 10**15
"""Amounts of a proof are rounded down to this part of one."""

Paces = dict[str, float]

Sends = dict[tuple[int, int], Fraction]

LATENESS = 1e-6
"""Share by which an iteration on direct links may exceed its bound, because flows come out of a linear program."""
NEED_ROUNDING = 1e-6
"""Share of a need that may be rounding."""
SLOWEST_S_BYTE = 1.0
HALVINGS = 60


class RoundedCut(NamedTuple):
    """What leaves a set of domains in each phase at a pace of one link, and what a whole link across is priced."""

    price: int
    sent: dict[str, Fraction]


class PricedLinks(NamedTuple):
    """Lengths and prices of a proof, summed up: so much for each pace, the cuts, all ports, and the most for a link."""

    by_pace: dict[str, Fraction]
    cuts: tuple[RoundedCut, ...]
    ports: int
    link: int

    def least_links(self, paces: Paces, ports: int) -> Fraction:
        """No fewer links carry all demands at these paces, with so many ports a domain."""
        total = sum((each * Fraction(paces[phase]) for phase, each in self.by_pace.items()), Fraction())
        for cut in self.cuts:
            total += cut.price * max(math.ceil(share * Fraction(paces[phase])) for phase, share in cut.sent.items())
        return (total - self.ports * ports) / self.link


def priced_links(grid: StageGrid, lengths: LinkLengths) -> PricedLinks | None:
    """What lengths prove on their grid; None where they put no price on any link.

    Raises
    ------
    InstanceError
        When numbers of lengths, ports or domains are not those of the grid.
    """
    stages, turns = grid.stages, grid.replicas
    if others := set(lengths.lengths) - set(sends_on(grid)):
        raise InstanceError(f"proof: lengths of phase {min(others)!r}, needs {listed(sends_on(grid))} of their grid")
    by_phase = {phase: _whole(lengths.lengths.get(phase, ()), stages**2 * turns) for phase in sends_on(grid)}
    ports = _whole(lengths.ports or ("0",) * stages, stages)
    cuts = [(frozenset(cut.domains), _amount(cut.price)) for cut in lengths.cuts]
    if not all(0 <= domain < grid.domains for members, _ in cuts for domain in members):
        raise InstanceError(f"proof: a cut has a domain beyond {grid.domains - 1}, needs domains of its grid")
    across: defaultdict[tuple[int, int], int] = defaultdict(int)
    for members, price in cuts:
        for turn in range(turns):
            turned = {_turned(domain, turn, turns) for domain in members}
            for s in range(stages):
                for other in range(grid.domains):
                    across[s, other] += price * ((s * turns in turned) != (other in turned))
    link = 0
    for s, other in product(range(stages), range(grid.domains)):
        t, off = divmod(other, turns)
        if (t, off) != (s, 0):
            both = sum(
                each[_index(grid, s, t, off)] + each[_index(grid, t, s, -off % turns)] for each in by_phase.values()
            )
            link = max(link, both + across[s, other] - ports[s] - ports[t])
    if link <= 0:
        return None
    by_pace = {phase: _needed(grid, phase, each) for phase, each in by_phase.items()}
    rounded = tuple(RoundedCut(price * turns, _leaving(grid, members)) for members, price in cuts if price)
    return PricedLinks(by_pace, rounded, sum(ports) * turns, link)


def _amount(text: str) -> int:
    return int(Fraction(text) * SCALE)


def _whole(amounts: Sequence[str], count: int) -> list[int]:
    """Amounts of a proof as whole numbers."""
    if len(amounts) != count:
        raise InstanceError(f"proof: {len(amounts)} lengths or prices of ports where {count} are needed")
    return [_amount(text) for text in amounts]


def _index(grid: StageGrid, s: int, t: int, off: int) -> int:
    """Where the length from a domain of stage s to one of stage t stands that is so many replicas further."""
    return (s * grid.stages + t) * grid.replicas + off


def _turned(domain: int, turn: int, replicas: int) -> int:
    """The domain so many replicas further."""
    return domain - domain % replicas + (domain + turn) % replicas


def _needed(grid: StageGrid, phase: str, lengths: Sequence[int]) -> Fraction:
    """What all demands of a phase need at a pace of one link: each at least its share of the shortest distance.

    Turning all replicas changes nothing, so that the sources of the first replica stand for all.
    """
    sends, total = sends_on(grid)[phase], Fraction()
    for stage in range(grid.stages):
        source = stage * grid.replicas
        distances = _distances(grid, lengths, source)
        total += sum((share * distances[end] for (start, end), share in sends.items() if start == source), Fraction())
    return total * grid.replicas


def _distances(grid: StageGrid, lengths: Sequence[int], source: int) -> dict[int, int]:
    """The shortest distance from a domain to each (Dijkstra)."""
    nearest, found = {source: 0}, dict[int, int]()
    while nearest:
        here = min(nearest, key=nearest.__getitem__)
        found[here] = nearest.pop(here)
        s, at = divmod(here, grid.replicas)
        for other in range(grid.domains):
            if other not in found:
                t, there = divmod(other, grid.replicas)
                reached = found[here] + lengths[_index(grid, s, t, (there - at) % grid.replicas)]
                nearest[other] = min(nearest.get(other, reached), reached)
    return found


def _leaving(grid: StageGrid, members: frozenset[int]) -> dict[str, Fraction]:
    """What leaves a set of domains in each phase at a pace of one link."""
    return {
        phase: sum((share for (a, b), share in sends.items() if a in members and b not in members), Fraction())
        for phase, sends in sends_on(grid).items()
    }


class StageGrid(NamedTuple):
    """Domain s·`replicas` + d holds `inner` stages of replica d; a pipeline of several chunks is `closed`: it goes
    round."""

    stages: int
    replicas: int
    inner: int
    closed: bool

    @property
    def domains(self) -> int:
        """How many there are."""
        return self.stages * self.replicas


@cache
def sends_on(grid: StageGrid) -> dict[str, Sends]:
    """What domains send to each other in each phase at a pace of one link, where they send anything."""
    phases = {"pp": _hops(grid), "dp": _rings(grid.stages, grid.replicas)}
    return {name: sends for name, sends in phases.items() if sends}


def _hops(grid: StageGrid) -> Sends:
    """Sends of a stage to the next and the one before; a pipeline of several chunks goes round."""
    sends: Sends = {}
    for stage in range(grid.stages if grid.closed else grid.stages - 1):
        next_stage = (stage + 1) % grid.stages
        for replica in range(grid.replicas if grid.stages > 1 else 0):
            source, target = stage * grid.replicas + replica, next_stage * grid.replicas + replica
            sends[source, target] = sends[target, source] = Fraction(1, grid.inner)
    return sends


def _rings(stages: int, replicas: int) -> Sends:
    """Exchanges of replicas: half of the data goes round in each direction."""
    sends: defaultdict[tuple[int, int], Fraction] = defaultdict(Fraction)
    for stage in range(stages):
        for replica in range(replicas if replicas > 1 else 0):
            source, target = stage * replicas + replica, stage * replicas + (replica + 1) % replicas
            sends[source, target] += Fraction(1, 2)
            sends[target, source] += Fraction(1, 2)
    return dict(sends)


def ring_domains(place: Placement) -> int:
    """Domains of a ring of replicas or of contexts, of which one alone crosses domains; gradients go round the same."""
    return place.dp_across * place.cp_across


def joins_stages_and_rings(place: Placement, *, tied: bool) -> bool:
    """Whether links carry nothing but what stages send, and replicas or contexts; an embedding that both ends share
    only between neighbours, and so what GPUs with the same stages exchange, of one stage a domain."""
    others = {place.tp_across, place.ep_across, min(place.cp_across, place.dp_across)}
    if place.two_way and place.pp_across > 1 and place.pp_in * place.pp_across > 2:
        return False
    return others == {1} and not (tied and place.pp_across > 2)


class LinkedRun(NamedTuple):
    """A mapping of which only stages, and replicas or contexts, cross domains, on links of so many byte/s each way."""

    work: Work
    place: Placement
    family: DesignFamily
    link_byte_s: float
    bound_s: float

    @property
    def grid(self) -> StageGrid:
        """The domains as stages and replicas."""
        place = self.place
        return StageGrid(place.pp_across, ring_domains(place), place.pp_in, self.work.split.interleave > 1)

    def least_pace(self, phase: str, others: float = math.inf) -> float:
        """The pace below which an iteration is late, where the other phase has that pace; infinite where all are."""
        return _least_pace(self, phase, others)

    def in_time_below(self, links: int) -> bool:
        """Whether an iteration is in time at the paces at which each phase alone fills so many links."""
        filled = {phase: 2 * links / float(sum(shares.values())) for phase, shares in shares_sent(self.grid).items()}
        return not self.late({phase: self.s_byte(pace * (1 + 2 * NEED_ROUNDING)) for phase, pace in filled.items()})

    def late(self, s_byte: dict[str, float]) -> bool:
        """Whether an iteration is late at seconds a byte of each phase."""
        inside = self.family.hb.gbyte_s * 1e9
        speeds = Speeds.of_grid(inside, stages=s_byte.get("pp", 0.0), replicas=s_byte.get("dp", 0.0))
        return iteration_s(self.work, self.place, speeds) > self.bound_s * (1 + LATENESS)

    def s_byte(self, pace: float) -> float:
        """Seconds a byte of what has that pace."""
        return self.family.active / (pace * self.link_byte_s)


@lru_cache(maxsize=1 << 10)
def _least_pace(run: LinkedRun, phase: str, others: float) -> float:
    """As `LinkedRun.least_pace`, kept for whatever else is checked of the same plan."""
    other_s_byte = run.s_byte(others)

    def late(s_byte: float) -> bool:
        return run.late(dict.fromkeys(("pp", "dp"), other_s_byte) | {phase: s_byte})

    if late(0.0):
        return math.inf
    return run.family.active / (_first(late, SLOWEST_S_BYTE) * run.link_byte_s)


def _first(late: Callable[[float], bool], most: float) -> float:
    """The least argument that is late, where all greater ones are too, to so many halvings; `most` where none is."""
    if not late(most):
        return most
    halved = bisect_left(range(HALVINGS), True, key=lambda n: not late(math.ldexp(most, -n - 1)))
    low, high = math.ldexp(most, -halved - 1), math.ldexp(most, -halved)
    for _ in range(HALVINGS - 1 - halved):
        middle = (low + high) / 2
        low, high = (low, middle) if late(middle) else (middle, high)
    return high


def least_links(run: LinkedRun) -> int:
    """The fewest links that join all senders to receivers and give each domain whole links for all that it sends."""
    sends = sends_on(run.grid)
    paces = {phase: run.least_pace(phase) for phase in sends}
    return max(joining_links(run.grid), math.ceil(sum(whole_links(run.grid, paces).values()) / 2))


def whole_links(grid: StageGrid, paces: dict[str, float]) -> dict[int, int]:
    """The whole links that each domain needs for all that it sends at these paces."""
    links_by_domain: defaultdict[int, float] = defaultdict(float)
    for phase, share_by_source in shares_sent(grid).items():
        for source, share in share_by_source.items():
            links_by_domain[source] = max(links_by_domain[source], float(share) * paces[phase])
    return {source: math.ceil(links * (1 - NEED_ROUNDING)) for source, links in links_by_domain.items()}


@cache
def shares_sent(grid: StageGrid) -> dict[str, dict[int, Fraction]]:
    """What each domain sends altogether in each phase at a pace of one link."""
    found: dict[str, dict[int, Fraction]] = {}
    for phase, sends in sends_on(grid).items():
        shares: defaultdict[int, Fraction] = defaultdict(Fraction)
        for (source, _), share in sends.items():
            shares[source] += share
        found[phase] = dict(shares)
    return found


@cache
def joining_links(grid: StageGrid) -> int:
    """The fewest links that join all senders to receivers."""
    graph = nx.Graph()
    graph.add_nodes_from(range(grid.domains))
    for pairs in sends_on(grid).values():
        graph.add_edges_from(pairs)
    return grid.domains - int(nx.number_connected_components(graph))
