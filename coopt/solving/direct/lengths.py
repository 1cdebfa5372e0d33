"""Lengths of direct links that prove how many are needed: duals of the flow program at the paces that need fewest."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
import pyomo.core as pyo

from coopt.perf.mapping import Floats, Ints
from coopt.plan.parts import LinkCut, LinkLengths
from coopt.solving.direct.grid import Demands
from coopt.solving.highs import multipliers_of
from coopt.solving.proofs.relaxation import amount
from formulations.direct import AVERAGES, add_port_budget, add_time, build, links_at
from formulations.direct_data import DirectData

if TYPE_CHECKING:
    from coopt.solving.direct.rows import Row

RANGES, HALVED, QUARTERED, NARROWED = 2000, 16, 4, 6
"""Boxes of paces at the start, and into how many, how often, those that decide are divided: of two phases, of more."""
MOST_BOXES = 20_000
"""Boxes that are divided at most at a time."""
MOST_DOMAINS = 1024
"""Beyond it a mapping has a bound by the ports of each domain alone, and no links are looked for."""
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
        ends = self.ends.reshape(demands.grid.stages, -1).sum(axis=1)
        value = paces @ self.by_pace + _whole(demands, paces) @ ends - demands.ports @ self.ports
        return np.asarray(value / self.link)


def _whole(demands: Demands, paces: Floats) -> Floats:
    """Whole links at a domain of each block of stages (n, S) at paces (n, K)."""
    needed = np.max(paces[:, :, None] * demands.sent[None, :, :], axis=1)
    return np.asarray(np.ceil(needed * (1 - HARMLESS)))


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
        group = demands.symmetry
        assert group is not None, "too many flows"
        self.known: list[Lengths] = []
        self._demands, self._group = demands, group
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

    def written(self) -> tuple[LinkLengths, ...]:
        """The lengths in the words of a plan."""
        return tuple(_written(self._demands, one) for one in self.known)


def _port_budget(data: DirectData, m: pyo.ConcreteModel, w: int) -> pyo.Expression:
    """D1 that may be missed: a proof needs prices of ports where no links keep it, too."""
    return links_at(m, w) - m.over[w] <= int(data.ports[w])


def whole(links: float) -> float:
    """No fewer whole links."""
    return math.ceil(links - ROUNDED) if math.isfinite(links) else links


def bound_at(demands: Demands, known: Sequence[Lengths], paces: Floats) -> Floats:
    """The most links that lengths, or whole links of each domain, prove at paces (n, K) (n,)."""
    proven = [one.least_links(demands, paces) for one in known]
    return np.asarray(np.max([_whole(demands, paces).sum(axis=1) * demands.grid.replicas / 2, *proven], axis=0))


def fewest_links(demands: Demands, known: Sequence[Lengths]) -> tuple[float, Floats]:
    """No fewer links do at any paces in time, and the paces that need fewest as far as is known; inf without any.

    The paces of all phases but the last are in one of many boxes; a box needs what its least paces do. Boxes that may
    need a whole link less than the best paces are divided again.
    """
    slowest, fastest = demands.slowest * (1 - LATE), demands.ports.min() / demands.sent.max(axis=1)
    if len(slowest) == 1:
        reached = bool(slowest[0] <= fastest[0])
        return (float(bound_at(demands, known, slowest[None])[0]) if reached else math.inf), slowest
    low, high = _first_boxes(slowest[:-1], np.maximum(fastest, slowest)[:-1])
    least, best, paces = math.inf, math.inf, slowest
    parts, rounds = (HALVED, NARROWED) if len(slowest) == 2 else (QUARTERED, NARROWED * len(slowest) ** 2)
    for turn in range(rounds + 1):
        beside = _last(demands, high)
        within = (low <= fastest[:-1]).all(axis=1) & (beside <= fastest[-1])
        low, high, beside = low[within], high[within], beside[within]
        if not len(low):
            break
        corners = bound_at(demands, known, np.column_stack([low, beside]))
        points = np.column_stack([high, beside])
        values = bound_at(demands, known, points)
        if values.min() < best:
            best, paces = float(values.min()), points[values.argmin()]
        decides = np.ceil(corners - ROUNDED) < whole(best)
        decides &= turn < rounds and decides.sum() <= MOST_BOXES
        least = min([least, *corners[~decides]])
        low, high = _divided(demands, low[decides], high[decides], parts)
    return least, paces


def _first_boxes(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Boxes (n, K - 1) that all paces between these lie in."""
    each = round(RANGES ** (1 / len(low)))
    edges = [np.geomspace(a, b, each + 1) for a, b in zip(low, high, strict=True)]
    lows, highs = (np.meshgrid(*(edge[part] for edge in edges), indexing="ij") for part in (slice(-1), slice(1, None)))
    return tuple(np.stack([one.ravel() for one in ends], axis=1) for ends in (lows, highs))  # type: ignore[return-value]


def _divided(demands: Demands, low: Floats, high: Floats, parts: int) -> tuple[Floats, Floats]:
    """Boxes cut into equal parts along the pace that matters most: for the links of its phase, and of the last one."""
    sent, beside = demands.sent.sum(axis=1), _last(demands, high)
    matters = (high - low) * sent[:-1]
    for k in range(low.shape[1] if low.shape[1] > 1 else 0):
        slower = high.copy()
        slower[:, k] = low[:, k]
        with np.errstate(invalid="ignore"):
            matters[:, k] += (_last(demands, slower) - beside) * sent[-1]
    axis = matters.argmax(axis=1)[None, :, None]
    shares = np.linspace(0.0, 1.0, parts + 1)[:, None]
    edges = low[None, :, :] + np.zeros((parts + 1, 1, 1))
    a, b = (np.take_along_axis(each[None], axis, axis=2)[0, :, 0] for each in (low, high))
    cut = a + (b - a) * shares
    np.put_along_axis(edges, np.broadcast_to(axis, (parts + 1, *axis.shape[1:])), cut[:, :, None], axis=2)
    ends = np.broadcast_to(high, edges[1:].shape).copy()
    np.put_along_axis(ends, np.broadcast_to(axis, (parts, *axis.shape[1:])), cut[1:, :, None], axis=2)
    return edges[:-1].reshape(-1, low.shape[1]), ends.reshape(-1, low.shape[1])


def _last(demands: Demands, others: Floats) -> Floats:
    """The least pace of the last phase in time beside paces of the others (n, K - 1) (n,)."""
    weight = demands.weight[:, -1]
    left = 1 + LATE - (demands.weight[None, :, :-1] / others[:, None, :]).sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        alone = np.where(left < 0, np.inf, 0.0)
        needed = np.where(weight > 0, weight / np.maximum(left, 0.0), alone).max(axis=1)
    return np.asarray(needed * (1 - LATE))


def link_lengths(rows: Sequence[Row], target: float, deadline: float) -> tuple[LinkLengths, ...]:
    """Lengths for every grid on which a mapping may be worth less than a target by its whole links alone."""
    programs = Programs()
    for row in rows:
        if row.least_value < target and time.perf_counter() < deadline:
            program = programs.of(row.demands)
            if program is not None:
                program.prove(row.demands, deadline, row.place.most_links(target) + 1)
    return programs.written()


class Programs:
    """The flow program of each grid, made where it is first asked for."""

    def __init__(self) -> None:
        self._programs: dict[tuple[object, ...], FlowProgram | None] = {}

    def of(self, demands: Demands) -> FlowProgram | None:
        """That of the grid of some demands; None where its flows are too many."""
        key = (demands.grid, demands.phases, int(demands.ports[0]))
        if key not in self._programs:
            large = demands.grid.domains > MOST_DOMAINS or demands.symmetry is None
            self._programs[key] = None if large else FlowProgram(demands)
        return self._programs[key]

    def written(self) -> tuple[LinkLengths, ...]:
        """All lengths in the words of a plan."""
        return tuple(one for program in self._programs.values() if program is not None for one in program.written())


def _written(demands: Demands, found: Lengths) -> LinkLengths:
    """Lengths in the words of a plan."""
    grid = demands.grid
    domain = np.arange(grid.domains)
    first = domain[domain % grid.replicas < grid.turn]
    lengths = zip(demands.phases, found.arcs, strict=True)
    return LinkLengths(
        **{one.name: getattr(grid, one.name) for one in fields(grid)},
        lengths={name: tuple(_amounts(arcs[first].ravel())) for name, arcs in lengths},
        cuts=tuple(
            LinkCut(domains=(domain,), price=price)
            for domain, price in zip(first.tolist(), _amounts(found.ends[first]), strict=True)
            if price != "0"
        ),
        ports=tuple(_amounts(found.ports[first])) if found.ports.any() else (),
    )


def _amounts(values: Floats) -> Iterator[str]:
    return (amount(round(value, 12)) for value in values.tolist())
