"""Lengths of direct links that prove how many are needed: duals of the flow program at the paces that need fewest."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyomo.core as pyo

from coopt.perf.mapping import Floats, Ints
from coopt.plan.parts import LinkCut, LinkLengths
from coopt.solving.direct.grid import Demands, DomainGrid
from coopt.solving.highs import multipliers_of
from coopt.solving.proofs.relaxation import amount
from formulations.direct import AVERAGES, add_port_budget, add_time, build, links_at
from formulations.direct_data import DirectData

if TYPE_CHECKING:
    from coopt.solving.direct.rows import Row

RANGES, HALVED, NARROWED = 2000, 16, 6
"""Ranges of the pace of the first phase at the start, and into how many, how often, those that decide are divided."""
OVER = 1e4
"""Price of a port that is missing, in links: more than any price of a port that is there."""
HARMLESS = 1e-9
"""Share of the links by which further lengths have to prove more."""
LATE = 1e-7
"""Share by which paces may be late: flows come out of a linear program."""
ROUNDED = 1e-6
"""Links above a whole number that may be rounding."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lengths:
    """Multipliers of links: `arcs` (K, D, D), `ends` (D,) of whole links at a domain, `ports` (D,).

    `by_pace` (K,) is what all demands of a phase need at a pace of one link, and `link` the most a link is priced.
    """

    arcs: Floats
    ends: Floats
    ports: Floats
    by_pace: Floats
    link: float

    def least_links(self, demands: Demands, paces: Floats) -> Floats:
        """The bound at paces (n, K) (n,)."""
        value = paces @ self.by_pace + _whole(demands, paces) @ self.ends - demands.ports @ self.ports
        return np.asarray(value / self.link)


def _whole(demands: Demands, paces: Floats) -> Floats:
    """Whole links at each domain (n, D) at paces (n, K)."""
    sent = demands.sends.sum(axis=2)
    return np.asarray(np.ceil(np.max(paces[:, :, None] * sent[None, :, :], axis=1) * (1 - HARMLESS)))


def _distances(arcs: Floats, group: Ints) -> Floats:
    """The shortest distances between all domains (D, D), from lengths that a group keeps (Bellman and Ford)."""
    found = np.empty_like(arcs)
    for source in np.unique(group.min(axis=0)).tolist():
        near = np.full(len(arcs), np.inf)
        near[source] = 0.0
        while True:
            nearer = np.minimum(near, (near[:, None] + arcs).min(axis=0))
            if (nearer == near).all():
                break
            near = nearer
        found[group[:, source, None], group] = near[None, :]
    return found


def _filled(arcs: Floats, sent: Floats, group: Ints) -> tuple[Floats, float]:
    """Lengths (D, D) with infinite ones made as short as leaves the distances of demands, and what these need.

    The potential of a domain is half of the way from the source to its furthest target, as far as the distances from
    the source and to the targets allow. It rises along no arc by more than its length, and missing arcs become as long
    as it rises there at most.
    """
    distances = _distances(arcs, group)
    needed = float((sent * distances)[sent > 0].sum())
    missing = np.isinf(arcs)
    np.fill_diagonal(missing, False)
    if missing.any():
        asked = np.where(sent > 0, distances, 0.0)
        least = np.zeros_like(distances)
        for source in np.unique(group.min(axis=0)).tolist():
            targets = np.flatnonzero(sent[source])
            rest = distances[source, targets][:, None] - distances[:, targets].T
            least[group[:, source, None], group] = np.maximum(rest.max(axis=0, initial=0.0), 0.0)[None, :]
        halfway = np.minimum(distances, asked.max(axis=1)[:, None] / 2)
        potential, rise = np.maximum(halfway, least), np.zeros_like(arcs)
        for first in np.unique(group.min(axis=0)).tolist():
            steps = (potential - potential[:, first, None]).max(axis=0)
            rise[group[:, first, None], group] = np.maximum(steps, 0.0)[None, :]
        arcs = np.where(missing, rise, arcs)
    np.fill_diagonal(arcs, 0.0)
    return arcs, needed


class FlowProgram:
    """The flow program of one grid over the orbits of its largest group, and the lengths that it gave so far."""

    def __init__(self, demands: Demands) -> None:
        self.known: list[Lengths] = []
        self._demands, self._group = demands, demands.symmetry
        self._data: DirectData = demands.on_orbits(self._group)
        self._model = m = build(self._data, tuple(add for add in AVERAGES if add not in (add_time, add_port_budget)))
        m.over = pyo.Var(m.W, domain=pyo.NonNegativeReals)
        m.budget = pyo.Constraint(m.W, rule=lambda m, w: _port_budget(self._data, m, w))
        m.cost.expr += OVER * sum(int(self._data.domains[w]) * m.over[w] for w in m.W)
        for w in m.W:
            m.q[w].domain = pyo.NonNegativeReals

    def prove(self, demands: Demands, deadline: float, needed: float = math.inf) -> float:
        """The fewest links that can be shown to be needed at any paces in time, up to so many; +inf where none are.

        Lengths are added at the paces that need fewest, until no others prove a whole link more or time is up.
        """
        while True:
            bound, paces = fewest_links(demands, self.known)
            if not math.isfinite(bound) or whole(bound) >= needed or time.perf_counter() >= deadline:
                return bound
            one, before = self.lengths(paces), bound_at(demands, self.known, paces[None])[0]
            proven = one.least_links(demands, paces[None])[0]
            if proven <= before * (1 + HARMLESS):
                return bound
            self.known.append(one)
            if whole(proven) <= whole(bound):
                return bound

    def lengths(self, paces: Floats) -> Lengths:
        """The multipliers of the fewest links at paces (K,); ports that are missing have their price."""
        m, data = self._model, self._data
        for k in m.K:
            m.pace[k].setlb(float(paces[k]))
            m.pace[k].setub(float(paces[k]))
        ends = np.ceil((paces[:, None] * data.sent).max(axis=0) * (1 - HARMLESS))
        for w in m.W:
            m.q[w].setlb(float(ends[w]))
            m.q[w].setub(float(ends[w]))
        found, count = multipliers_of(m), len(self._demands.ports)
        arcs = np.full((data.phases, count, count), np.inf)
        for e, (i, j) in enumerate(data.arcs.tolist()):
            members = self._group[:, i], self._group[:, j]
            size = len(np.unique(members[0] * count + members[1]))
            for k in range(data.phases):
                arcs[(k, *members)] = abs(found[m.capacity[k, e]]) / size
        each = [_filled(one, sent, self._group) for one, sent in zip(arcs, self._demands.sends, strict=True)]
        ends, ports = (self._each(found, rows) for rows in (m.ends_of_links, m.budget))
        priced = sum(one + one.T for one, _ in each) + (ends - ports)[:, None] + (ends - ports)[None, :]
        np.fill_diagonal(priced, 0.0)
        return Lengths(
            arcs=np.array([one for one, _ in each]),
            ends=ends,
            ports=ports,
            by_pace=np.array([needed for _, needed in each]),
            link=float(priced.max()),
        )

    def _each(self, found: pyo.ComponentMap, rows: pyo.Constraint) -> Floats:
        """The multiplier of every domain, from those of orbits."""
        orbit = np.unique(self._group.min(axis=0), return_inverse=True)[1].reshape(-1)
        values = np.array([abs(found[rows[w]]) / self._data.domains[w] for w in self._model.W])
        return np.asarray(values[orbit])

    def written(self, phases: Sequence[str]) -> tuple[LinkLengths, ...]:
        """The lengths in the words of a plan."""
        return tuple(_written(self._demands.grid, phases, one) for one in self.known)


def _port_budget(data: DirectData, m: pyo.ConcreteModel, w: int) -> pyo.Expression:
    """D1 that may be missed: a proof needs prices of ports where no links keep it, too."""
    return links_at(m, w) - m.over[w] <= int(data.ports[w])


def whole(links: float) -> float:
    """No fewer whole links."""
    return math.ceil(links - ROUNDED) if math.isfinite(links) else links


def bound_at(demands: Demands, known: Sequence[Lengths], paces: Floats) -> Floats:
    """The most links that lengths, or whole links of each domain, prove at paces (n, K) (n,)."""
    proven = [one.least_links(demands, paces) for one in known]
    return np.asarray(np.max([_whole(demands, paces).sum(axis=1) / 2, *proven], axis=0))


def fewest_links(demands: Demands, known: Sequence[Lengths]) -> tuple[float, Floats]:
    """No fewer links do at any paces in time, and the paces that need fewest as far as is known; inf without any.

    The pace of the first phase is in one of many ranges; a range needs what its least paces do. Ranges that may need a
    whole link less than the best paces are divided again.
    """
    sent = demands.sends.sum(axis=2)
    slowest, fastest = demands.slowest * (1 - LATE), (demands.ports / sent.max(axis=1, keepdims=True)).min(axis=1)
    if len(slowest) == 1:
        reached = bool(slowest[0] <= fastest[0])
        return (float(bound_at(demands, known, slowest[None])[0]) if reached else math.inf), slowest
    edges = np.geomspace(slowest[0], max(fastest[0], slowest[0]), RANGES + 1)
    low, high, least, best, paces = edges[:-1], edges[1:], math.inf, math.inf, slowest
    for last in [False] * NARROWED + [True]:
        beside = _second(demands, high)
        within = (low <= fastest[0]) & (beside <= fastest[1])
        low, high, beside = low[within], high[within], beside[within]
        if not len(low):
            break
        corners = bound_at(demands, known, np.stack([low, beside], axis=1))
        points = np.stack([high, beside], axis=1)
        values = bound_at(demands, known, points)
        if values.min() < best:
            best, paces = float(values.min()), points[values.argmin()]
        decides = (np.ceil(corners - ROUNDED) < whole(best)) & (not last)
        least = min([least, *corners[~decides]])
        low, high = _divided(low[decides], high[decides])
    return least, paces


def _divided(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Ranges cut into equal parts."""
    edges = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, HALVED + 1)[None, :]
    return edges[:, :-1].ravel(), edges[:, 1:].ravel()


def _second(demands: Demands, first: Floats) -> Floats:
    """The least pace of the second phase in time beside paces of the first (n,)."""
    weight, left = demands.weight[:, 1], 1 + LATE - demands.weight[:, 0] / first[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = np.where(left < 0, np.inf, 0.0)
        needed = np.where(weight > 0, weight / np.maximum(left, 0.0), alone).max(axis=1)
    return np.asarray(needed * (1 - LATE))


def link_lengths(rows: Sequence[Row], target: float, deadline: float) -> tuple[LinkLengths, ...]:
    """Lengths for every grid on which a mapping may be worth less than a target by its whole links alone."""
    programs = Programs()
    for row in rows:
        if row.least_value < target and time.perf_counter() < deadline:
            programs.of(row).prove(row.demands, deadline, row.place.most_links(target) + 1)
    return programs.written()


class Programs:
    """The flow program of each grid, made where it is first asked for."""

    def __init__(self) -> None:
        self._programs: dict[tuple[object, ...], tuple[FlowProgram, tuple[str, ...]]] = {}

    def of(self, row: Row) -> FlowProgram:
        """That of the grid of a mapping."""
        key = (row.demands.grid, row.phases, row.place.ports)
        if key not in self._programs:
            self._programs[key] = FlowProgram(row.demands), row.phases
        return self._programs[key][0]

    def written(self) -> tuple[LinkLengths, ...]:
        """All lengths in the words of a plan."""
        return tuple(one for program, phases in self._programs.values() for one in program.written(phases))


def _written(grid: DomainGrid, phases: Sequence[str], found: Lengths) -> LinkLengths:
    """Lengths in the words of a plan."""
    first = np.arange(grid.stages) * grid.replicas
    return LinkLengths(
        stages=grid.stages,
        replicas=grid.replicas,
        inner=grid.inner,
        closed=grid.closed,
        lengths={name: tuple(_amounts(arcs[first].ravel())) for name, arcs in zip(phases, found.arcs, strict=True)},
        cuts=tuple(
            LinkCut(domains=(domain,), price=price)
            for domain, price in zip(first.tolist(), _amounts(found.ends[first]), strict=True)
            if price != "0"
        ),
        ports=tuple(_amounts(found.ports[first])) if found.ports.any() else (),
    )


def _amounts(values: Floats) -> Iterator[str]:
    return (amount(round(value, 12)) for value in values.tolist())
