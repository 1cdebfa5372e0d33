"""Lengths of direct links that prove how many are needed: duals of the flow program at the paces that need fewest."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pyomo.core as pyo

from coopt.perf.mapping import Floats, Ints
from coopt.plan.direct_links import LinkCut, LinkLengths
from coopt.solving.direct.grid import DomainGrid
from coopt.solving.direct.links import Demands
from coopt.solving.direct.rows import Row
from coopt.solving.highs import multipliers_of
from coopt.solving.proofs.relaxation import amount
from formulations.direct import AVERAGES, add_port_budget, add_time, build, links_at
from formulations.direct_data import DirectData
from formulations.direct_orbits import on_orbits

SAMPLES = 2000
"""Paces of the first phase at which a bound is looked at."""
OVER = 1e4
"""Price of a port that is missing, in links: more than any price of a port that is there."""
HARMLESS = 1e-9
"""Share of the links by which further lengths have to prove more."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Lengths:
    """Multipliers of links: `arcs` (K, D, D), `ends` (D,) of whole links at a domain, `ports` (D,)."""

    arcs: Floats
    ends: Floats
    ports: Floats

    def least_links(self, demands: Demands, paces: Floats) -> Floats:
        """The bound at paces (n, K) (n,), by shortest distances."""
        link = np.max(sum(self.arcs + self.arcs.transpose(0, 2, 1)) + _both(self.ends - self.ports))
        each = np.array([(sent * _distances(arcs)).sum() for arcs, sent in zip(self.arcs, demands.sends, strict=True)])
        value = paces @ each + _whole(demands, paces) @ self.ends - demands.ports @ self.ports
        return np.asarray(value / link)


def _both(prices: Floats) -> Floats:
    """The sum of both ends of each pair, none of a domain with itself."""
    both = prices[:, None] + prices[None, :]
    np.fill_diagonal(both, -np.inf)
    return both


def _distances(arcs: Floats) -> Floats:
    """The shortest distances between all domains (Floyd and Warshall)."""
    found = arcs.copy()
    np.fill_diagonal(found, 0.0)
    for k in range(len(found)):
        np.minimum(found, found[:, k, None] + found[None, k, :], out=found)
    return found


def _whole(demands: Demands, paces: Floats) -> Floats:
    """Whole links at each domain (n, D) at paces (n, K)."""
    sent = demands.sends.sum(axis=2)
    return np.asarray(np.ceil(np.max(paces[:, :, None] * sent[None, :, :], axis=1) * (1 - HARMLESS)))


class FlowProgram:
    """The flow program of one grid over the orbits of its largest group, at paces that are given."""

    def __init__(self, demands: Demands) -> None:
        self._demands, self._group = demands, demands.symmetry
        self._data: DirectData = on_orbits(self._group, demands.ports, demands.sends, demands.weight)
        self._model = m = build(self._data, tuple(add for add in AVERAGES if add not in (add_time, add_port_budget)))
        m.over = pyo.Var(m.W, domain=pyo.NonNegativeReals)
        m.budget = pyo.Constraint(m.W, rule=lambda m, w: _port_budget(self._data, m, w))
        m.cost.expr += OVER * sum(int(self._data.domains[w]) * m.over[w] for w in m.W)
        for w in m.W:
            m.q[w].domain = pyo.NonNegativeReals

    def lengths(self, paces: Floats) -> Lengths:
        """The multipliers of the fewest links at paces (K,); ports that are missing have their price."""
        m, data = self._model, self._data
        for k in m.K:
            m.pace[k].setlb(float(paces[k]))
            m.pace[k].setub(float(paces[k]))
        whole = np.ceil((paces[:, None] * data.sent).max(axis=0) * (1 - HARMLESS))
        for w in m.W:
            m.q[w].setlb(float(whole[w]))
            m.q[w].setub(float(whole[w]))
        found = multipliers_of(m)
        arcs = np.zeros((data.phases, len(self._demands.ports), len(self._demands.ports)))
        sizes = np.bincount(np.unique(self._codes(), return_inverse=True)[1].reshape(-1))
        for e, (i, j) in enumerate(data.arcs.tolist()):
            members = self._group[:, i], self._group[:, j]
            for k in range(data.phases):
                arcs[(k, *members)] = abs(found[m.capacity[k, e]]) / sizes[e]
        ends, ports = (self._each(found, rows) for rows in (m.ends_of_links, m.budget))
        return Lengths(arcs=arcs, ends=ends, ports=ports)

    def _codes(self) -> Ints:
        """The orbit of each arc, by its least member."""
        count = len(self._demands.ports)
        i, j = (index.ravel() for index in np.indices((count, count)))
        codes = np.minimum.reduce([move[i] * count + move[j] for move in self._group])
        return np.asarray(codes[i != j])

    def _each(self, found: pyo.ComponentMap, rows: pyo.Constraint) -> Floats:
        """The multiplier of every domain, from those of orbits."""
        orbit = np.unique(self._group.min(axis=0), return_inverse=True)[1].reshape(-1)
        values = np.array([abs(found[rows[w]]) / self._data.domains[w] for w in self._model.W])
        return np.asarray(values[orbit])


def _port_budget(data: DirectData, m: pyo.ConcreteModel, w: int) -> pyo.Expression:
    """D1 that may be missed: a proof needs prices of ports where no links keep it, too."""
    return links_at(m, w) - m.over[w] <= int(data.ports[w])


def link_lengths(rows: list[Row], target: float, deadline: float) -> tuple[LinkLengths, ...]:
    """Lengths for every grid on which a mapping may be worth less than a target by its whole links alone."""
    open_rows = sorted((row for row in rows if row.least_value < target), key=_grid_key)
    found: list[LinkLengths] = []
    for _, alike in groupby(open_rows, key=_grid_key):
        known: list[Lengths] = []
        program = None
        for row in alike:
            program = program or FlowProgram(row.demands)
            _extend(known, program, row, row.place.most_links(target) + 1, deadline)
        found += [_written(row.demands.grid, row.phases, one) for one in known]
    return tuple(found)


def _grid_key(row: Row) -> tuple[int, int, int, bool, tuple[str, ...]]:
    grid = row.demands.grid
    return grid.stages, grid.replicas, grid.inner, grid.closed, row.phases


def _extend(known: list[Lengths], program: FlowProgram, row: Row, needed: int, deadline: float) -> None:
    """Add lengths until they prove so many links at every pace, or no more are to be had."""
    paces = _paces(row.demands)
    best = _whole(row.demands, paces).sum(axis=1) / 2
    for one in known:
        best = np.maximum(best, one.least_links(row.demands, paces))
    while len(best) and best.min() <= needed - 1 and time.perf_counter() < deadline:
        worst = int(best.argmin())
        one = program.lengths(paces[worst])
        proven = one.least_links(row.demands, paces)
        if proven[worst] <= best[worst] * (1 + HARMLESS):
            return
        known.append(one)
        best = np.maximum(best, proven)


def _paces(demands: Demands) -> Floats:
    """Paces in time (n, K), none of which could be lower, within what ports carry."""
    sent = demands.sends.sum(axis=2)
    slowest, fastest = demands.slowest, (demands.ports / sent.max(axis=1, keepdims=True)).min(axis=1)
    if len(slowest) == 1:
        paces = slowest[None, :]
    else:
        first = np.geomspace(slowest[0], max(fastest[0], slowest[0]), SAMPLES + 1)[1:]
        left = 1 - demands.weight[:, 0] / first[:, None]
        with np.errstate(divide="ignore"):
            second = (demands.weight[:, 1] / np.maximum(left, 0.0)).max(axis=1)
        paces = np.stack([first, second], axis=1)
    return np.asarray(paces[(paces <= fastest).all(axis=1)])


def _written(grid: DomainGrid, phases: tuple[str, ...], found: Lengths) -> LinkLengths:
    """Lengths in the words of a proof."""
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
