"""HB domains as a grid of pipeline stages and of the domains of a stage: what they send to each
other, and its symmetries.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import product
from typing import NamedTuple

import networkx as nx
import numpy as np

from coopt.perf.collectives import NO_NETWORK, Reciprocals
from coopt.perf.mapping import Bools, Floats, Ints
from coopt.plan.parts import LinkGrid, LinkRoute
from formulations.links_data import LinksData, flow_orbits, group_of, keeps, on_orbits

IN_TIME = 1e-9  # share of the time for all phases by which paces of a search may be late
EXACT_DOMAINS = 16  # up to here the problem is solved without a symmetry as well
MOST_FLOWS = 1 << 19  # of a phase, before orbits, that a program is made of
JOINED, VISITED = 4, 8
"""Messages from one domain to the next by which links reach, and flows leave their source, where
domains are many.
"""
ANY_PAIR_DOMAINS = 24
"""Up to here any two domains may be joined."""
KINDS = ("pp", "dp", "tp", "cp", "ep", "edp", "tied")
"""Kinds of traffic between domains; each phase has the name of its first one."""


class SendingGroups(NamedTuple):
    """Domains of a stage that send to each other, `members` of a group `stride` apart: round a
    ring, or to all.
    """

    stride: int
    members: int
    to_all: bool = False

    @property
    def span(self) -> int:
        """Domains from a group to the next ones."""
        return self.stride * self.members

    def sends(self) -> Floats:
        """What members send to each other: in both directions of a ring half of the data each."""
        y = self.members
        if self.to_all:
            return (1.0 - np.eye(y)) / (y - 1)
        ahead = np.roll(np.eye(y), 1, axis=1)
        return (ahead + ahead.T) / 2


class DomainGrid(LinkGrid):
    """A grid of domains, with what they send to each other and its symmetries."""

    @property
    def turn(self) -> int:
        """All domains of a stage may move on by so many places, and send as before."""
        blocks = (group.span for group in self.groups.values())
        return math.lcm(*(span for span in blocks if span < self.replicas))

    @cached_property
    def groups(self) -> dict[str, SendingGroups]:
        """The groups of each kind of traffic that have members in several domains of a stage."""
        t, copies = self.tensor, self.experts * self.apart
        all_of_a_stage = SendingGroups(t, self.replicas // t)
        candidates = {
            "dp": all_of_a_stage,
            "tp": SendingGroups(1, t),
            "cp": SendingGroups(t, self.contexts) if self.contexts > 1 else all_of_a_stage,
            "ep": SendingGroups(
                self.apart, self.experts, self.experts > 3
            ),  # in a ring of three all send to all
            "edp": SendingGroups(copies, self.replicas // copies),
        }
        return {kind: group for kind, group in candidates.items() if group.members > 1}

    @cached_property
    def phase_of(self) -> dict[str, str]:
        """The phase of each kind of traffic that crosses domains: kinds that send alike share
        one.
        """
        phases = dict.fromkeys(("pp", "tied") if self.stages > 1 else (), "pp")
        for kind, groups in self.groups.items():
            phases[kind] = next(
                twin for twin, twin_groups in self.groups.items() if twin_groups == groups
            )
        return phases

    def hops(self) -> Floats:
        """What a domain sends to that of its place in other blocks of stages: to both neighbours at
        once, by the GPUs of one stage (S, S).
        """
        sends = np.zeros((self.stages, self.stages))
        for s in range(self.stages if self.closed else self.stages - 1):
            following = (s + 1) % self.stages
            sends[s, following] = sends[following, s] = 1.0 / self.inner
        np.fill_diagonal(sends, 0.0)
        return sends

    def sends(self, phases: Sequence[str]) -> Floats:
        """What domain i sends to j at a pace of one link in each phase (K, D, D).

        The pace is in links that the bytes of all GPUs of a domain would need. Arrays are kept
        outside the grid: what it holds itself is compared where two are.
        """
        return _sends(self, tuple(phases))

    def sent(self, phases: Sequence[str]) -> Floats:
        """What a domain of each block of stages sends altogether (K, S)."""
        totals = np.ones((len(phases), self.stages))
        for k, phase in enumerate(phases):
            if phase not in self.groups:
                totals[k] = self.hops().sum(axis=1)
        return totals

    def reciprocals(self, s_byte: Mapping[str, float]) -> Reciprocals:
        """Seconds per byte of every kind of traffic from those of the phases."""
        seen = {kind: s_byte.get(self.phase_of.get(kind, ""), 0.0) for kind in KINDS}
        return replace(NO_NETWORK, **seen)  # type: ignore[arg-type]

    @cached_property
    def joining(self) -> int:
        """The fewest links that join all who send to each other."""
        x, graph = np.arange(self.domains), nx.empty_graph(self.domains)
        for group in self.groups.values():
            following = x - x % group.span + (x + group.stride) % group.span
            graph.add_edges_from(zip(x.tolist(), following.tolist(), strict=True))
        if self.stages > 1:
            graph.add_edges_from(
                (i, i + self.replicas) for i in range(self.domains - self.replicas)
            )
        return self.domains - int(nx.number_connected_components(graph))

    @property
    def neighbourhoods(self) -> tuple[Bools, Bools] | None:
        """Which domains may be joined, and which ones flows of each may visit (D, D); None where
        any may be.

        What counts is by how many messages one reaches the other, those from the last stage to the
        first among them.
        """
        return None if self.domains <= ANY_PAIR_DOMAINS else _neighbourhoods(self)

    def ladder(
        self, ports: Ints, sends: Floats, trivial_domains: int = EXACT_DOMAINS
    ) -> Iterator[Ints]:
        """Groups of symmetries of these demands, from the largest to smaller ones; on so few
        domains the trivial one.

        Each is generated by turns of a stage by so many places, with or without their mirror, with
        or without turns and mirrors of stages, and with or without turns of TP groups, as far as
        those leave the demands as they are.
        """
        turns, turn = self.replicas // self.turn, self.turn
        steps = [turn * step for step in range(1, turns + 1) if turns % step == 0]
        forms = sorted(
            product(steps, (1, 2), (1, 2), (1, 2) if 1 < self.tensor < self.replicas else (1,)),
            key=lambda form: (form[0] / math.prod(form[1:]), form[0]),
        )
        seen = set[bytes]()
        # Different forms may generate the same group.
        for step, mirrored, moved, turned in forms:
            group = self._group(step, mirrored > 1, moved > 1, turned > 1, ports, sends)
            if (
                group.tobytes() not in seen
                and (len(np.unique(group.min(axis=0))) * self._arcs <= MOST_FLOWS)
                and (len(group) > 1 or self.domains <= trivial_domains)
            ):
                seen.add(group.tobytes())
                yield group

    @property
    def _arcs(self) -> int:
        """Arcs that flows of a domain may take, at most."""
        if self.neighbourhoods is None:
            return self.domains**2
        is_joined, is_visited = self.neighbourhoods
        return int(is_visited.sum(axis=1).max()) * int(is_joined.sum(axis=1).max())

    def _group(
        self, step: int, mirrored: bool, moved: bool, turned: bool, ports: Ints, sends: Floats
    ) -> Ints:
        """Turns of a stage by so many places, their mirror, turns and mirrors of stages, turns of
        TP groups.
        """
        cells = np.arange(self.domains).reshape(self.stages, self.replicas)
        moves = [np.roll(cells, -step, axis=1)]
        if mirrored:
            moves.append(cells[:, ::-1])
        if moved:
            moves += [np.roll(cells, -1, axis=0), cells[::-1, :]]
        if turned:
            moves.append(np.roll(cells.reshape(-1, self.tensor), -1, axis=1))
        generators = [move.ravel() for move in moves if keeps(move.ravel(), ports, sends)]
        return group_of(self.domains, generators)


@lru_cache(maxsize=32)
def _neighbourhoods(grid: DomainGrid) -> tuple[Bools, Bools]:
    sends = (
        DomainGrid(**grid.model_dump() | {"closed": True})
        .sends(tuple(dict.fromkeys(grid.phase_of.values())))
        .any(axis=0)
    )
    stage, place = divmod(np.arange(grid.domains), grid.replicas)
    # Turns of a stage leave all as it is, so only senders in the first places are followed.
    is_reached = np.eye(grid.domains, dtype=np.bool_)[place < grid.turn]
    messages = np.where(is_reached, 0, VISITED + 1)
    for count in range(1, VISITED + 1):
        is_reached |= is_reached @ sends
        messages[is_reached & (messages > count)] = count
    moved = place % grid.turn
    back = (
        stage[None, :] * grid.replicas + (place[None, :] - (place - moved)[:, None]) % grid.replicas
    )
    messages = messages[(stage * grid.turn + moved)[:, None], back]
    return messages <= JOINED, messages <= VISITED


@lru_cache(maxsize=32)
def _sends(grid: DomainGrid, phases: tuple[str, ...]) -> Floats:
    sends = np.zeros((len(phases), grid.domains, grid.domains))
    for k, phase in enumerate(phases):
        groups = grid.groups.get(phase)
        if groups is None:
            sends[k] = np.kron(grid.hops(), np.eye(grid.replicas))
        else:
            # Kronecker products repeat the pattern of one group: over its stride within, and over
            # all groups outside.
            of_one = np.kron(groups.sends(), np.eye(groups.stride))
            sends[k] = np.kron(np.eye(grid.domains // groups.span), of_one)
    return sends


@dataclass(frozen=True, kw_only=True, eq=False)
class Demands:
    """A grid of domains with `ports` (D,), the K phases in which they send, and the weights (J, K)
    of D4.
    """

    grid: DomainGrid
    ports: Ints
    phases: tuple[str, ...]
    weight: Floats

    @property
    def sends(self) -> Floats:
        """What they send in each phase (K, D, D)."""
        return self.grid.sends(self.phases)

    @cached_property
    def sent(self) -> Floats:
        """What a domain of each block of stages sends altogether (K, S)."""
        return self.grid.sent(self.phases)

    @property
    def slowest(self) -> Floats:
        """The pace each phase needs if the others take no time (K,) [links]."""
        return np.asarray(self.weight.max(axis=0), dtype=np.float64)

    @property
    def symmetry(self) -> Ints | None:
        """The largest group; None where the flows of any are too many."""
        return next(self.grid.ladder(self.ports, self.sends), None)

    def on_orbits(self, group: Ints) -> LinksData:
        """The problem on the orbits of a group, between domains that are near."""
        return on_orbits(group, self.ports, self.sends, self.weight, self.grid.neighbourhoods)

    def flow_orbits(self, group: Ints) -> tuple[Ints, int]:
        """Orbits of the flows of the first domain of each orbit (`formulations.links_data`)."""
        return flow_orbits(group, self.grid.neighbourhoods)

    @cached_property
    def ends(self) -> Floats:
        """The fewest whole links at a domain of each block of stages (S,) that may do for all
        phases in turn.
        """
        return np.asarray(np.ceil((self.weight @ self.sent).max(axis=0) * (1 - IN_TIME)))

    @property
    def fits(self) -> bool:
        """Whether every domain has ports for all it sends."""
        return bool((self.ends.max() <= self.ports).all())

    def least_links(self) -> int:
        """The fewest links that may do: they join all that send to each other, and carry all that a
        domain sends.
        """
        return max(math.ceil(float(self.ends.sum()) * self.grid.replicas / 2), self.grid.joining)


DUST = 1e-7  # share of what a pair sends that may be left to rounding


def routes(flows: Floats, sends: Floats, group: Ints) -> tuple[LinkRoute, ...]:
    """The paths, with their shares, that carry what domains send to each other (D, D).

    Flows (source, from, to) are those of the first domain of each orbit of a group, which moves
    their paths to others.
    """
    link_routes, firsts = [], group.min(axis=0)
    for source, flow in zip(np.unique(firsts).tolist(), flows.copy(), strict=True):
        # One move for each domain of the orbit is enough: it takes the paths of the first domain to
        # that one.
        moves = [
            group[group[:, source] == domain][0] for domain in np.flatnonzero(firsts == source)
        ]
        for target in np.flatnonzero(sends[source]).tolist():
            parts = list(_peeled(flow, source, target, float(sends[source, target])))
            total = sum(amount for _, amount in parts)
            for move in moves:
                link_routes += [
                    LinkRoute(path=tuple(move[list(path)].tolist()), share=amount / total)
                    for path, amount in parts
                ]
    return tuple(link_routes)


def _peeled(
    flow: Floats, source: int, target: int, demand: float
) -> Iterator[tuple[tuple[int, ...], float]]:
    """Paths to one target, taken out of the flows that are left; at least one."""
    remainder, floor = demand, DUST * demand
    while remainder > floor:
        # The first path may use any flow at all, so that even a target with little flow has one.
        path = _shortest(flow, source, target, floor if remainder < demand else 0.0)
        if path is None:
            assert remainder < demand, "no flow leads to a target"
            return
        steps = (np.array(path[:-1]), np.array(path[1:]))
        amount = min(float(flow[steps].min()), remainder)
        flow[steps] -= amount
        remainder -= amount
        yield path, amount


def _shortest(flow: Floats, source: int, target: int, floor: float) -> tuple[int, ...] | None:
    """The path of fewest hops over flows above a floor."""
    predecessor: dict[int, int] = {source: source}
    queue = deque([source])
    while queue and target not in predecessor:
        domain = queue.popleft()
        for neighbour in np.flatnonzero(flow[domain] > floor).tolist():
            if neighbour not in predecessor:
                predecessor[neighbour] = domain
                queue.append(neighbour)
    if target not in predecessor:
        return None
    path = [target]
    while path[-1] != source:
        path.append(predecessor[path[-1]])
    return tuple(reversed(path))


def paces_on(links: Ints, sends: Floats, link_routes: tuple[LinkRoute, ...]) -> float:
    """The pace at which the busiest link is full."""
    load = np.zeros(links.shape)
    for route in link_routes:
        steps = (np.array(route.path[:-1]), np.array(route.path[1:]))
        load[steps] += route.share * sends[route.path[0], route.path[-1]]
    is_used = load > 0
    return float((links[is_used] / load[is_used]).min())
