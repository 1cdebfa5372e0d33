"""Whole links for the demands of one grid: a bound from lengths, and step by step links on a ladder of symmetries."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyomo.core as pyo

from coopt.perf.mapping import Ints
from coopt.plan.parts import LinkRoute
from coopt.solving.backend import Backend
from coopt.solving.direct.exchange import LinkExchange, own_links
from coopt.solving.direct.grid import ANY_PAIR_DOMAINS, EXACT_DOMAINS, IN_TIME, Demands, paces_on, routes
from coopt.solving.direct.lengths import LATE, FlowProgram, whole
from coopt.solving.highs import SolverAnswer
from coopt.solving.runs import Toll
from formulations.direct import FORMULATIONS, add_tangent, build
from formulations.direct_data import DirectData

ROUNDS = 50  # of cuts at most
GRACE_S = 2.0  # after an interrupt, for the flows on links that were found
MOST_EXCHANGED = 1 << 15  # flows on orbits; programs of more take seconds
PATIENCE = 8  # of exchanges, where nothing else is left to try
SHARE = 5  # of the time left, a rung of the ladder gets one part in so many


@dataclass(frozen=True, kw_only=True, eq=False)
class Linked:
    """Links (D, D) and the routes of each phase over them."""

    links: Ints
    routes: tuple[tuple[LinkRoute, ...], ...]

    @property
    def count(self) -> int:
        """How many links there are."""
        return int(self.links.sum()) // 2


class LinkStep(NamedTuple):
    """A group of symmetries to find links on: by exchanges, of so much patience, or by the program of whole links."""

    group: Ints
    patience: int


@dataclass(kw_only=True)
class TriedLinks(Toll):
    """What is known of one problem: the best links so far, a bound below all, what it took, and the steps left to try,
    the next one apart."""

    found: Linked | None = None
    bound: float = -math.inf
    interrupted: bool = False
    step: LinkStep | None = None
    steps: Iterator[LinkStep] | None = None

    def prove(self, answer: SolverAnswer) -> None:
        """Keep the bound of a search below all links."""
        self.bound = max(self.bound, math.inf if answer.outcome == "infeasible" else answer.bound)

    @property
    def least(self) -> float:
        """The bound on whole links."""
        return whole(self.bound)


def bound_links(demands: Demands, program: FlowProgram, deadline: float) -> TriedLinks:
    """No links are fewer than lengths prove; +inf where no paces are in time."""
    tried = TriedLinks(bound=float(demands.least_links()))
    if not demands.fits:
        tried.bound = math.inf
        return tried
    started = time.perf_counter()
    tried.bound = max(tried.bound, program.prove(demands, deadline))
    tried.solve_s += time.perf_counter() - started
    return tried


def climb(
    demands: Demands, tried: TriedLinks, backend: Backend, deadline: float, enough: float, most: float, *, alone: bool
) -> bool:
    """Find links in a tree, or with the next step; whether there is another one to try.

    There is none once no more than `enough` of the links are unproven, or all that are left need more than `most`,
    which are of no use. The last group has the rest of the time where nobody else needs some of it.
    """
    if tried.steps is None:
        tried.steps = _steps(demands)
        tried.step = next(tried.steps, None)
        tried.found = _tree(demands) if tried.least < len(demands.ports) <= most + 1 else None
    left = deadline - time.perf_counter()
    if tried.step is None or left <= 0 or _settled(tried, enough, most):
        return False
    step, tried.step = tried.step, next(tried.steps, None)
    until = deadline if tried.step is None and alone else time.perf_counter() + left / SHARE
    if step.patience:
        goal = most if enough >= 1 else min(most, int(tried.least / (1 - enough)))
        _exchange(demands, step, tried, backend, until, most, goal)
    else:
        _rung(demands, step.group, tried, backend, until, most)
    return tried.step is not None and not _settled(tried, enough, most)


def _steps(demands: Demands) -> Iterator[LinkStep]:
    """All groups of the ladder by exchange, then by the program, then from the smallest one on with more patience."""
    groups = []
    for group in demands.grid.ladder(demands.ports, demands.sends, ANY_PAIR_DOMAINS):
        groups.append(group)
        yield LinkStep(group, 1)
    yield from (LinkStep(group, 0) for group in groups if len(group) > 1 or demands.grid.domains <= EXACT_DOMAINS)
    yield from (LinkStep(group, PATIENCE) for group in reversed(groups))


def _settled(tried: TriedLinks, enough: float, most: float) -> bool:
    """Whether no other group is of use."""
    proven = tried.found is not None and tried.found.count - tried.least <= enough * tried.found.count
    return proven or tried.least > most or tried.interrupted


def _tree(demands: Demands) -> Linked | None:
    """Single links in a tree as flat as ports allow, where every demand has one path; None where phases are late."""
    count, ports = len(demands.ports), int(demands.ports.min())
    width = count - 1 if ports >= count - 1 else ports - 1
    if width < 1:
        return None
    up = [[0]]
    for domain in range(1, count):
        up.append([domain, *up[(domain - 1) // width]])
    links = np.zeros((count, count), dtype=np.int64)
    for domain, parent, *_ in up[1:]:
        links[domain, parent] = links[parent, domain] = 1
    paths = [
        tuple(LinkRoute(path=_on_tree(up[s], up[t]), share=1.0) for s, t in np.argwhere(sent).tolist())
        for sent in demands.sends
    ]
    paces = np.array([paces_on(links, sent, each) for sent, each in zip(demands.sends, paths, strict=True)])
    late = ((demands.weight / paces).sum(axis=1) > 1 + LATE).any()
    return None if late else Linked(links=links, routes=tuple(paths))


def _on_tree(source: list[int], target: list[int]) -> tuple[int, ...]:
    """The path between two domains, from what is above each, itself first."""
    meets = next(domain for domain in source if domain in target)
    return (*source[: source.index(meets) + 1], *reversed(target[: target.index(meets)]))


def _useful(data: DirectData, tried: TriedLinks, most: float) -> float:
    """The most links of orbits that are of use; -inf where orbits of pairs add up to no number of links in between."""
    fewer = most if tried.found is None else min(most, tried.found.count - 1)
    orbit = math.gcd(*data.pairs.tolist())
    return fewer if tried.least <= fewer // orbit * orbit else -math.inf


def _exchange(
    demands: Demands, step: LinkStep, tried: TriedLinks, backend: Backend, deadline: float, most: float, goal: float
) -> None:
    """Links that are alike on the orbits of one group, as few as exchanges of links find."""
    group, full, started = step.group, demands.symmetry, time.perf_counter()
    data = demands.on_orbits(group)
    fewer = _useful(data, tried, most)
    if fewer < 0 or full is None or data.flows > MOST_EXCHANGED:
        return
    search, links = LinkExchange(data, group, full), _start(demands, step, data, tried.found)
    found = search.fewest(links, int(fewer), int(goal), deadline, backend.cancel, step.patience)
    tried.interrupted = tried.interrupted or search.interrupted
    tried.solve_s += time.perf_counter() - started
    linked = None if found is None else _routed(demands, group, data, found, backend, tried)
    if linked is not None:
        tried.found = linked


def _start(demands: Demands, step: LinkStep, data: DirectData, found: Linked | None) -> Ints:
    """Links of orbits to start from: those of each demand alone, or, with patience, the best so far if they are alike
    on each orbit."""
    group = step.group
    if found is not None and step.patience > 1:
        links = found.links[data.arcs[:, 0], data.arcs[:, 1]]
        of_orbits = np.zeros(len(data.pairs), dtype=np.int64)
        of_orbits[data.pair] = links
        if (_matrix(group, data, of_orbits) == found.links).all():
            return of_orbits
    return own_links(data, demands.sends, demands.slowest)


def _rung(demands: Demands, group: Ints, tried: TriedLinks, backend: Backend, deadline: float, most: float) -> None:
    """Links that are alike on the orbits of one group; without a symmetry its bound is one of the problem."""
    data = demands.on_orbits(group)
    fewer = _useful(data, tried, most)
    if fewer < 0:
        return
    model = _model(data, "links", tried)
    for _ in range(ROUNDS):
        answer = _solve(model, backend, deadline, tried)
        if len(group) == 1:
            tried.prove(answer)
        if answer.value is None:
            return
        linked = _routed(demands, group, data, np.array([round(model.n[p].value) for p in model.P]), backend, tried)
        if linked is not None:
            if linked.count <= fewer:
                tried.found = linked
            return
        if tried.interrupted or not _cut(model, tried):
            return


def _routed(
    demands: Demands, group: Ints, data: DirectData, links: Ints, backend: Backend, tried: TriedLinks
) -> Linked | None:
    """The fastest flows on given links of each orbit of pairs; None where they are late."""
    model = _model(data, "pace", tried)
    for p in model.P:
        model.n[p].fix(int(links[p]))
    until = time.perf_counter() + GRACE_S if tried.interrupted else math.inf
    if _solve(model, backend, until, tried).outcome != "optimal":
        return None
    paces = np.array([model.pace[k].value for k in model.K])
    if ((data.weight / paces).sum(axis=1) > 1 + LATE).any():
        return None
    orbit, _ = demands.flow_orbits(group)
    values = np.array([[model.f[k, x].value for x in model.X] for k in model.K])
    flows = np.where(orbit >= 0, values[:, orbit], 0.0) / paces[:, None, None, None]
    found = tuple(routes(each, sent, group) for each, sent in zip(flows, demands.sends, strict=True))
    return Linked(links=_matrix(group, data, links), routes=found)


def _matrix(group: Ints, data: DirectData, links: Ints) -> Ints:
    """Links of every pair (D, D) from those of each orbit."""
    matrix = np.zeros((group.shape[1], group.shape[1]), dtype=np.int64)
    for (i, j), p in zip(data.arcs, data.pair, strict=True):
        matrix[group[:, i], group[:, j]] = links[p]
    return matrix


def _model(data: DirectData, name: str, tried: TriedLinks) -> pyo.ConcreteModel:
    started = time.perf_counter()
    model = build(data, FORMULATIONS[name])
    tried.build_s += time.perf_counter() - started
    return model


def _solve(model: pyo.ConcreteModel, backend: Backend, deadline: float, tried: TriedLinks) -> SolverAnswer:
    answer = backend.solve(model, max(deadline - time.perf_counter(), 0.0))
    tried.add(answer)
    tried.interrupted = tried.interrupted or answer.outcome == "interrupted"
    return answer


def _cut(model: pyo.ConcreteModel, tried: TriedLinks) -> bool:
    """Add the tangents at the paces found where they are late; whether any were."""
    paces = np.array([model.pace[k].value for k in model.K])
    late = (model.data.weight / paces).sum(axis=1) > 1 + IN_TIME
    phases = np.flatnonzero(model.data.weight[late].any(axis=0)).tolist()
    for k in phases:
        add_tangent(model, k, float(paces[k]))
    tried.cuts += len(phases)
    return bool(phases)
