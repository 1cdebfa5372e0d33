"""What crosses HB domains on direct links: who sends how much to whom, how fast, and the links that this needs."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import networkx as nx

from coopt.verifier.parts.space import DesignFamily
from coopt.verifier.training.communication import Speeds
from coopt.verifier.training.iteration import iteration_s
from coopt.verifier.training.placing import Placement
from coopt.verifier.training.work import Work

Sends = dict[tuple[int, int], Fraction]

LATENESS = 1e-6
"""Share by which an iteration on direct links may exceed its bound, because flows come out of a linear program."""
NEED_ROUNDING = 1e-6
"""Share of a need that may be rounding."""
SLOWEST_S_BYTE = 1.0
HALVINGS = 60


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


class LinkedRun(NamedTuple):
    """A mapping whose stages and replicas alone cross domains, on links of so many bytes a second each way."""

    work: Work
    place: Placement
    family: DesignFamily
    link_byte_s: float
    bound_s: float

    @property
    def grid(self) -> StageGrid:
        """The domains as stages and replicas."""
        place = self.place
        return StageGrid(place.pp_across, place.dp_across, place.pp_in, self.work.split.interleave > 1)

    def least_pace(self, phase: str, others: float = math.inf) -> float:
        """The pace below which an iteration is late, where the other phase has that pace; infinite where all are."""
        other_s_byte = self._s_byte(others)

        def late(s_byte: float) -> bool:
            return self._late(dict.fromkeys(("pp", "dp"), other_s_byte) | {phase: s_byte})

        if late(0.0):
            return math.inf
        return self.family.active / (_first(late, SLOWEST_S_BYTE) * self.link_byte_s)

    def in_time_below(self, links: int) -> bool:
        """Whether an iteration is in time at the paces at which each phase alone fills so many links."""
        filled = {phase: 2 * links / float(sum(shares.values())) for phase, shares in shares_sent(self.grid).items()}
        return not self._late({phase: self._s_byte(pace * (1 + 2 * NEED_ROUNDING)) for phase, pace in filled.items()})

    def _late(self, s_byte: dict[str, float]) -> bool:
        """Whether an iteration is late at seconds a byte of each phase."""
        inside = self.family.hb.gbyte_s * 1e9
        speeds = Speeds.of_grid(inside, stages=s_byte.get("pp", 0.0), replicas=s_byte.get("dp", 0.0))
        return iteration_s(self.work, self.place, speeds) > self.bound_s * (1 + LATENESS)

    def _s_byte(self, pace: float) -> float:
        return self.family.active / (pace * self.link_byte_s)


def _first(late: Callable[[float], bool], most: float) -> float:
    """The least argument that is late, where all greater ones are too, by halving from above; `most` where none is."""
    low, high = 0.0, most
    for _ in range(HALVINGS if late(most) else 0):
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
