"""Lengths of direct links that prove how many are needed: duals of the flow program at the paces
that need fewest.
"""

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
from coopt.solving.direct.grid import Demands
from coopt.solving.highs import multipliers_of
from coopt.solving.proofs.relaxation import amount
from formulations.links import AVERAGES, add_port_budget, add_time, build, links_at
from formulations.links_data import LinksData

if TYPE_CHECKING:
    from coopt.solving.direct.rows import Row

RANGES, HALVED, QUARTERED, NARROWED = 2000, 16, 4, 6
"""Boxes of paces at the start, and into how many, how often, those that decide are divided: of two
phases, of more.
"""
MOST_BOXES = 20_000
"""Boxes that are divided at most at a time."""
MOST_DOMAINS = 1024
"""Beyond it a mapping has a bound by the ports of each domain alone, and no links are looked for.
"""
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

    `by_pace` (K,) is what all demands of a phase need at a pace of one link, and `link` the most a
    link is priced.
    """

    arcs: Floats
    ends: Floats
    ports: Floats
    by_pace: Floats
    link: float

    def least_links(self, demands: Demands, paces: Floats) -> Floats:
        """The bound at paces (n, K) (n,)."""
        ends = self.ends.reshape(demands.grid.stages, -1).sum(axis=1)
        value = (
            paces @ self.by_pace + _whole_ends(demands, paces) @ ends - demands.ports @ self.ports
        )
        return np.asarray(value / self.link)


def _whole_ends(demands: Demands, paces: Floats) -> Floats:
    """Whole links at a domain of each block of stages (n, S) at paces (n, K)."""
    links_needed = np.max(paces[:, :, None] * demands.sent[None, :, :], axis=1)
    # A product that rounding puts a hair above a whole number must not ask for a link more.
    return np.asarray(np.ceil(links_needed * (1 - HARMLESS)))


def _distances(arcs: Floats, group: Ints) -> Floats:
    """The shortest distances between all domains (D, D), from lengths that a group keeps (Bellman
    and Ford).
    """
    distances = np.empty_like(arcs)
    for source in np.unique(group.min(axis=0)).tolist():
        nearest = np.full(len(arcs), np.inf)
        nearest[source] = 0.0
        while True:
            nearer = np.minimum(nearest, (nearest[:, None] + arcs).min(axis=0))
            if (nearer == nearest).all():
                break
            nearest = nearer
        distances[group[:, source, None], group] = nearest[None, :]
    return distances


def _filled(arcs: Floats, sends: Floats, group: Ints) -> tuple[Floats, float]:
    """Lengths (D, D) with infinite ones made as short as leaves the distances of demands, and what
    these need.

    The potential of a domain is half of the way from the source to its furthest target, as far as
    the distances from the source and to the targets allow. It rises along no arc by more than its
    length, and missing arcs become as long as it rises there at most.
    """
    distances = _distances(arcs, group)
    total_length = float((sends * distances)[sends > 0].sum())
    is_missing = np.isinf(arcs)
    np.fill_diagonal(is_missing, False)
    if is_missing.any():
        demand_distances = np.where(sends > 0, distances, 0.0)
        min_potential = np.zeros_like(distances)
        for source in np.unique(group.min(axis=0)).tolist():
            targets = np.flatnonzero(sends[source])
            remainders = distances[source, targets][:, None] - distances[:, targets].T
            min_potential[group[:, source, None], group] = np.maximum(
                remainders.max(axis=0, initial=0.0), 0.0
            )[None, :]
        halfway = np.minimum(distances, demand_distances.max(axis=1)[:, None] / 2)
        potential, rise = np.maximum(halfway, min_potential), np.zeros_like(arcs)
        for source_domain in np.unique(group.min(axis=0)).tolist():
            steps = (potential - potential[:, source_domain, None]).max(axis=0)
            rise[group[:, source_domain, None], group] = np.maximum(steps, 0.0)[None, :]
        arcs = np.where(is_missing, rise, arcs)
    np.fill_diagonal(arcs, 0.0)
    return arcs, total_length


class FlowProgram:
    """The flow program of one grid over the orbits of its largest group, and the lengths that it
    gave so far.
    """

    def __init__(self, demands: Demands) -> None:
        group = demands.symmetry
        assert group is not None, "too many flows"
        self.collection: list[Lengths] = []
        self._demands, self._group = demands, group
        self._data: LinksData = demands.on_orbits(self._group)
        self._model = m = build(
            self._data, tuple(add for add in AVERAGES if add not in (add_time, add_port_budget))
        )
        # At paces that are set all else is linear, and ports may be missed, so that there always
        # are multipliers.
        m.over = pyo.Var(m.W, domain=pyo.NonNegativeReals)
        m.budget = pyo.Constraint(
            m.W, rule=lambda m, w: links_at(m, w) - m.over[w] <= int(self._data.ports[w])
        )
        m.cost.expr += OVER * sum(int(self._data.domains[w]) * m.over[w] for w in m.W)
        for w in m.W:
            m.q[w].domain = pyo.NonNegativeReals

    def prove(self, demands: Demands, deadline: float, enough_links: float = math.inf) -> float:
        """The fewest links that can be shown to be needed at any paces in time, up to so many; +inf
        where none are.

        Lengths are added at the paces that need fewest, until no others prove a whole link more or
        time is up.
        """
        while True:
            bound, paces = fewest_links(demands, self.collection)
            if (
                not math.isfinite(bound)
                or round_up(bound) >= enough_links
                or time.perf_counter() >= deadline
            ):
                return bound
            lengths, known_links = (
                self.lengths(paces),
                bound_at(demands, self.collection, paces[None])[0],
            )
            proven = lengths.least_links(demands, paces[None])[0]
            # The program is at its optimum there: nothing more can be shown of these paces.
            if proven <= known_links * (1 + HARMLESS):
                return bound
            self.collection.append(lengths)
            if round_up(proven) <= round_up(bound):
                return bound

    def lengths(self, paces: Floats) -> Lengths:
        """The multipliers of the fewest links at paces (K,); ports that are missing have their
        price.
        """
        m, data = self._model, self._data
        for k in m.K:
            m.pace[k].setlb(float(paces[k]))
            m.pace[k].setub(float(paces[k]))
        ends = np.ceil((paces[:, None] * data.sent).max(axis=0) * (1 - HARMLESS))
        for w in m.W:
            m.q[w].setlb(float(ends[w]))
            m.q[w].setub(float(ends[w]))
        multipliers, count = multipliers_of(m), len(self._demands.ports)
        arcs = np.full((data.phases, count, count), np.inf)
        for e, (i, j) in enumerate(data.arcs.tolist()):
            members = self._group[:, i], self._group[:, j]
            # All arcs of an orbit are in one row, whose multiplier they share.
            size = len(np.unique(members[0] * count + members[1]))
            for k in range(data.phases):
                arcs[(k, *members)] = abs(multipliers[m.capacity[k, e]]) / size
        filled = [
            _filled(phase_arcs, phase_sends, self._group)
            for phase_arcs, phase_sends in zip(arcs, self._demands.sends, strict=True)
        ]
        ends, ports = (self._by_domain(multipliers, rows) for rows in (m.ends_of_links, m.budget))
        pair_prices = (
            sum(phase_arcs + phase_arcs.T for phase_arcs, _ in filled)
            + (ends - ports)[:, None]
            + (ends - ports)[None, :]
        )
        np.fill_diagonal(pair_prices, 0.0)
        return Lengths(
            arcs=np.array([phase_arcs for phase_arcs, _ in filled]),
            ends=ends,
            ports=ports,
            by_pace=np.array([total_length for _, total_length in filled]),
            link=float(pair_prices.max()),
        )

    def _by_domain(self, multipliers: pyo.ComponentMap, rows: pyo.Constraint) -> Floats:
        """The multiplier of every domain, from those of orbits."""
        orbit = np.unique(self._group.min(axis=0), return_inverse=True)[1].reshape(-1)
        values = np.array(
            [abs(multipliers[rows[w]]) / self._data.domains[w] for w in self._model.W]
        )
        return np.asarray(values[orbit])

    def plan_entries(self) -> tuple[LinkLengths, ...]:
        """The lengths in the words of a plan."""
        return tuple(_plan_entry(self._demands, lengths) for lengths in self.collection)


def round_up(links: float) -> float:
    """The least whole number of links that is no less, but for rounding."""
    return math.ceil(links - ROUNDED) if math.isfinite(links) else links


def bound_at(demands: Demands, collection: Sequence[Lengths], paces: Floats) -> Floats:
    """The most links that lengths, or whole links of each domain, prove at paces (n, K) (n,)."""
    proven = [lengths.least_links(demands, paces) for lengths in collection]
    return np.asarray(
        np.max(
            [_whole_ends(demands, paces).sum(axis=1) * demands.grid.replicas / 2, *proven], axis=0
        )
    )


def fewest_links(demands: Demands, collection: Sequence[Lengths]) -> tuple[float, Floats]:
    """The fewest links that may do at any paces in time, and paces that may need as few; inf
    without any.

    The paces of all phases but the last are in one of many boxes; a box needs what its least paces
    do. Boxes that may need a whole link less than the best paces are divided again.
    """
    min_paces, max_paces = (
        demands.slowest * (1 - LATE),
        demands.ports.min() / demands.sent.max(axis=1),
    )
    if len(min_paces) == 1:
        is_reachable = bool(min_paces[0] <= max_paces[0])
        return (
            float(bound_at(demands, collection, min_paces[None])[0]) if is_reachable else math.inf
        ), min_paces
    low_ends, high_ends = _first_boxes(min_paces[:-1], np.maximum(max_paces, min_paces)[:-1])
    bound, min_links, paces = math.inf, math.inf, min_paces
    parts, rounds = (
        (HALVED, NARROWED) if len(min_paces) == 2 else (QUARTERED, NARROWED * len(min_paces) ** 2)
    )
    for turn in range(rounds + 1):
        # The last phase has the most time where the others are at the highest paces of a box.
        beside = _last_pace(demands, high_ends)
        within = (low_ends <= max_paces[:-1]).all(axis=1) & (beside <= max_paces[-1])
        low_ends, high_ends, beside = low_ends[within], high_ends[within], beside[within]
        if not len(low_ends):
            break
        # Needs rise with every pace, so the lowest corner bounds a box, and its highest one is a
        # point in time.
        corners = bound_at(demands, collection, np.column_stack([low_ends, beside]))
        points = np.column_stack([high_ends, beside])
        values = bound_at(demands, collection, points)
        if values.min() < min_links:
            min_links, paces = float(values.min()), points[values.argmin()]
        # Boxes that may need a whole link less decide; for others, or where boxes are too many, the
        # corner stands.
        decides = np.ceil(corners - ROUNDED) < round_up(min_links)
        decides &= turn < rounds and decides.sum() <= MOST_BOXES
        bound = min([bound, *corners[~decides]])
        low_ends, high_ends = _divided(demands, low_ends[decides], high_ends[decides], parts)
    return bound, paces


def _first_boxes(min_paces: Floats, max_paces: Floats) -> tuple[Floats, Floats]:
    """Boxes (n, K - 1) that all paces between these lie in."""
    boxes_per_phase = round(RANGES ** (1 / len(min_paces)))
    edges = [
        np.geomspace(a, b, boxes_per_phase + 1) for a, b in zip(min_paces, max_paces, strict=True)
    ]
    lows, highs = (
        np.meshgrid(*(edge[part] for edge in edges), indexing="ij")
        for part in (slice(-1), slice(1, None))
    )
    return tuple(
        np.stack([coordinate.ravel() for coordinate in ends], axis=1) for ends in (lows, highs)
    )  # type: ignore[return-value]


def _divided(
    demands: Demands, low_ends: Floats, high_ends: Floats, parts: int
) -> tuple[Floats, Floats]:
    """Boxes cut into equal parts along the pace that matters most: for the links of its phase, and
    of the last one.
    """
    links_per_pace, beside = demands.sent.sum(axis=1), _last_pace(demands, high_ends)
    matters = (high_ends - low_ends) * links_per_pace[:-1]
    # A pace that falls gives time to the last phase, whose links count as well.
    for k in range(low_ends.shape[1] if low_ends.shape[1] > 1 else 0):
        slower = high_ends.copy()
        slower[:, k] = low_ends[:, k]
        with np.errstate(invalid="ignore"):
            matters[:, k] += (_last_pace(demands, slower) - beside) * links_per_pace[-1]
    axis = matters.argmax(axis=1)[None, :, None]
    shares = np.linspace(0.0, 1.0, parts + 1)[:, None]
    edges = low_ends[None, :, :] + np.zeros((parts + 1, 1, 1))
    a, b = (
        np.take_along_axis(box_ends[None], axis, axis=2)[0, :, 0]
        for box_ends in (low_ends, high_ends)
    )
    cut = a + (b - a) * shares
    np.put_along_axis(
        edges, np.broadcast_to(axis, (parts + 1, *axis.shape[1:])), cut[:, :, None], axis=2
    )
    ends = np.broadcast_to(high_ends, edges[1:].shape).copy()
    np.put_along_axis(
        ends, np.broadcast_to(axis, (parts, *axis.shape[1:])), cut[1:, :, None], axis=2
    )
    return edges[:-1].reshape(-1, low_ends.shape[1]), ends.reshape(-1, low_ends.shape[1])


def _last_pace(demands: Demands, paces: Floats) -> Floats:
    """The least pace of the last phase in time beside paces of the others (n, K - 1) (n,)."""
    weight = demands.weight[:, -1]
    time_left = 1 + LATE - (demands.weight[None, :, :-1] / paces[:, None, :]).sum(axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Without traffic in the last phase nothing is needed, unless the others are late already.
        pace_needed = np.where(
            weight > 0, weight / np.maximum(time_left, 0.0), np.where(time_left < 0, np.inf, 0.0)
        ).max(axis=1)
    return np.asarray(pace_needed * (1 - LATE))


def link_lengths(rows: Sequence[Row], target: float, deadline: float) -> tuple[LinkLengths, ...]:
    """Lengths for every grid on which a mapping may be worth less than a target by its whole links
    alone.
    """
    programs = Programs()
    for row in rows:
        if row.least_value < target and time.perf_counter() < deadline:
            program = programs.of(row.demands)
            if program is not None:
                program.prove(row.demands, deadline, row.place.most_links(target) + 1)
    return programs.plan_entries()


class Programs:
    """The flow program of each grid, made where it is first asked for."""

    def __init__(self) -> None:
        self._programs: dict[tuple[object, ...], FlowProgram | None] = {}

    def of(self, demands: Demands) -> FlowProgram | None:
        """The flow program of the grid of some demands; None where its flows are too many."""
        key = (demands.grid, demands.phases, int(demands.ports[0]))
        if key not in self._programs:
            large = demands.grid.domains > MOST_DOMAINS or demands.symmetry is None
            self._programs[key] = None if large else FlowProgram(demands)
        return self._programs[key]

    def plan_entries(self) -> tuple[LinkLengths, ...]:
        """All lengths in the words of a plan."""
        return tuple(
            entry
            for program in self._programs.values()
            if program is not None
            for entry in program.plan_entries()
        )


def _plan_entry(demands: Demands, lengths: Lengths) -> LinkLengths:
    """Lengths in the words of a plan."""
    grid = demands.grid
    domain = np.arange(grid.domains)
    representatives = domain[domain % grid.replicas < grid.turn]
    named_arcs = zip(demands.phases, lengths.arcs, strict=True)
    return LinkLengths(
        **grid.model_dump(),
        lengths={name: tuple(_amounts(arcs[representatives].ravel())) for name, arcs in named_arcs},
        cuts=tuple(
            LinkCut(domains=(domain,), price=price)
            for domain, price in zip(
                representatives.tolist(), _amounts(lengths.ends[representatives]), strict=True
            )
            if price != "0"
        ),
        ports=tuple(_amounts(lengths.ports[representatives])) if lengths.ports.any() else (),
    )


def _amounts(values: Floats) -> Iterator[str]:
    return (amount(round(value, 12)) for value in values.tolist())
