"""Whole links for the demands of one grid: a bound from lengths, and step by step links on a ladder
of symmetries.
"""

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
from coopt.solving.direct.exchange import LinkExchange, own_links
from coopt.solving.direct.grid import (
    ANY_PAIR_DOMAINS,
    EXACT_DOMAINS,
    IN_TIME,
    Demands,
    paces_on,
    routes,
)
from coopt.solving.direct.lengths import LATE, FlowProgram, round_up
from coopt.solving.highs import SolverAnswer
from coopt.solving.runs import Backend, SearchStatistics
from formulations.links import FORMULATIONS, add_tangent, build
from formulations.links_data import LinksData

ROUNDS = 50  # of cuts at most
GRACE_S = 2.0  # after an interrupt, for the flows on links that were found
MOST_EXCHANGED = 1 << 15  # flows on orbits; programs of more take seconds
PATIENCE = 8  # of exchanges, where nothing else is left to try
SHARE = 5  # of the time left, a rung of the ladder gets one part in so many


@dataclass(frozen=True, kw_only=True, eq=False)
class LinkRouting:
    """Links (D, D) and the routes of each phase over them."""

    links: Ints
    routes: tuple[tuple[LinkRoute, ...], ...]

    @property
    def count(self) -> int:
        """How many links there are."""
        return int(self.links.sum()) // 2


class LinkStep(NamedTuple):
    """A group of symmetries to find links on: by exchanges, of so much patience, or by the program
    of whole links.
    """

    group: Ints
    patience: int


@dataclass(kw_only=True)
class LinkProgress(SearchStatistics):
    """What is known of one problem: the best links so far, a bound below all, what it took, and the
    steps left to try, the next one apart.
    """

    incumbent: LinkRouting | None = None
    bound: float = -math.inf
    interrupted: bool = False
    step: LinkStep | None = None
    steps: Iterator[LinkStep] | None = None

    @property
    def min_links(self) -> float:
        """The bound on whole links."""
        return round_up(self.bound)


def bound_links(demands: Demands, program: FlowProgram, deadline: float) -> LinkProgress:
    """Start with the bound that lengths prove; it is +inf where no paces are in time."""
    progress = LinkProgress(bound=float(demands.least_links()))
    if not demands.fits:
        progress.bound = math.inf
        return progress
    started = time.perf_counter()
    progress.bound = max(progress.bound, program.prove(demands, deadline))
    progress.solve_s += time.perf_counter() - started
    return progress


def climb(
    demands: Demands,
    progress: LinkProgress,
    backend: Backend,
    deadline: float,
    enough: float,
    max_links: float,
    *,
    is_alone: bool,
) -> bool:
    """Find links in a tree, or with the next step; whether there is another one to try.

    There is none once no more than `enough` of the links are unproven, or all that are left need
    more than `max_links`, which are of no use. The last group has the rest of the time where nobody
    else needs some of it.
    """
    if progress.steps is None:
        progress.steps = _steps(demands)
        progress.step = next(progress.steps, None)
        progress.incumbent = (
            _tree(demands) if progress.min_links < len(demands.ports) <= max_links + 1 else None
        )
    time_left_s = deadline - time.perf_counter()
    if progress.step is None or time_left_s <= 0 or _is_done(progress, enough, max_links):
        return False
    step, progress.step = progress.step, next(progress.steps, None)
    # A step that is not the last leaves time to the others, as nobody knows which of them finds
    # fewer links.
    until = (
        deadline
        if progress.step is None and is_alone
        else time.perf_counter() + time_left_s / SHARE
    )
    if step.patience:
        goal = max_links if enough >= 1 else min(max_links, int(progress.min_links / (1 - enough)))
        _exchange(demands, step, progress, backend, until, max_links, goal)
    else:
        _rung(demands, step.group, progress, backend, until, max_links)
    return progress.step is not None and not _is_done(progress, enough, max_links)


def _steps(demands: Demands) -> Iterator[LinkStep]:
    """All groups of the ladder by exchange, then by the program, then from the smallest one on with
    more patience.
    """
    groups = []
    for group in demands.grid.ladder(demands.ports, demands.sends, ANY_PAIR_DOMAINS):
        groups.append(group)
        yield LinkStep(group, 1)
    yield from (
        LinkStep(group, 0)
        for group in groups
        if len(group) > 1 or demands.grid.domains <= EXACT_DOMAINS
    )
    yield from (LinkStep(group, PATIENCE) for group in reversed(groups))


def _is_done(progress: LinkProgress, enough: float, max_links: float) -> bool:
    """Whether no other group is of use."""
    proven = (
        progress.incumbent is not None
        and progress.incumbent.count - progress.min_links <= enough * progress.incumbent.count
    )
    return proven or progress.min_links > max_links or progress.interrupted


def _tree(demands: Demands) -> LinkRouting | None:
    """Single links in a tree as flat as ports allow, where every demand has one path; None where
    phases are late.
    """
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
        tuple(
            LinkRoute(path=_on_tree(up[s], up[t]), share=1.0)
            for s, t in np.argwhere(phase_sends).tolist()
        )
        for phase_sends in demands.sends
    ]
    paces = np.array(
        [
            paces_on(links, phase_sends, phase_routes)
            for phase_sends, phase_routes in zip(demands.sends, paths, strict=True)
        ]
    )
    is_late = ((demands.weight / paces).sum(axis=1) > 1 + LATE).any()
    return None if is_late else LinkRouting(links=links, routes=tuple(paths))


def _on_tree(source: list[int], target: list[int]) -> tuple[int, ...]:
    """The path between two domains, from what is above each, itself first."""
    meets = next(domain for domain in source if domain in target)
    return (*source[: source.index(meets) + 1], *reversed(target[: target.index(meets)]))


def _useful(data: LinksData, progress: LinkProgress, max_links: float) -> float:
    """The most links of orbits that are of use; -inf where orbits of pairs add up to no number of
    links in between.
    """
    fewer = (
        max_links if progress.incumbent is None else min(max_links, progress.incumbent.count - 1)
    )
    # Links that are alike on orbits come in multiples of this only.
    orbit = math.gcd(*data.pairs.tolist())
    return fewer if progress.min_links <= fewer // orbit * orbit else -math.inf


def _exchange(
    demands: Demands,
    step: LinkStep,
    progress: LinkProgress,
    backend: Backend,
    deadline: float,
    max_links: float,
    goal: float,
) -> None:
    """Links that are alike on the orbits of one group, as few as exchanges of links find."""
    group, full_group, started = step.group, demands.symmetry, time.perf_counter()
    data = demands.on_orbits(group)
    fewer = _useful(data, progress, max_links)
    if fewer < 0 or full_group is None or data.flows > MOST_EXCHANGED:
        return
    search, links = (
        LinkExchange(data, group, full_group),
        _start(demands, step, data, progress.incumbent),
    )
    fewest = search.fewest(links, int(fewer), int(goal), deadline, backend.cancel, step.patience)
    progress.interrupted = progress.interrupted or search.interrupted
    progress.solve_s += time.perf_counter() - started
    routing = None if fewest is None else _routed(demands, group, data, fewest, backend, progress)
    if routing is not None:
        progress.incumbent = routing


def _start(
    demands: Demands, step: LinkStep, data: LinksData, incumbent: LinkRouting | None
) -> Ints:
    """Links of orbits to start from: those of each demand alone, or, with patience, the best so far
    if they are alike on each orbit.
    """
    group = step.group
    if incumbent is not None and step.patience > 1:
        links = incumbent.links[data.arcs[:, 0], data.arcs[:, 1]]
        of_orbits = np.zeros(len(data.pairs), dtype=np.int64)
        of_orbits[data.pair] = links
        # Links that a smaller group found may differ within an orbit of this one, and are no start
        # then.
        if (_matrix(group, data, of_orbits) == incumbent.links).all():
            return of_orbits
    return own_links(data, demands.sends, demands.slowest)


def _rung(
    demands: Demands,
    group: Ints,
    progress: LinkProgress,
    backend: Backend,
    deadline: float,
    max_links: float,
) -> None:
    """Links that are alike on the orbits of one group; without a symmetry its bound is one of the
    problem.
    """
    data = demands.on_orbits(group)
    fewer = _useful(data, progress, max_links)
    if fewer < 0:
        return
    model = _model(data, "links", progress)
    # Tangents are below the true time, so links may come out late: then cuts at their paces are
    # added.
    for _ in range(ROUNDS):
        answer = _solve(model, backend, deadline, progress)
        if len(group) == 1:
            proven = math.inf if answer.outcome == "infeasible" else answer.bound
            progress.bound = max(progress.bound, proven)
        if answer.value is None:
            return
        routing = _routed(
            demands,
            group,
            data,
            np.array([round(model.n[p].value) for p in model.P]),
            backend,
            progress,
        )
        if routing is not None:
            if routing.count <= fewer:
                progress.incumbent = routing
            return
        if progress.interrupted or not _cut(model, progress):
            return


def _routed(
    demands: Demands,
    group: Ints,
    data: LinksData,
    links: Ints,
    backend: Backend,
    progress: LinkProgress,
) -> LinkRouting | None:
    """The fastest flows on given links of each orbit of pairs; None where they are late."""
    model = _model(data, "pace", progress)
    for p in model.P:
        model.n[p].fix(int(links[p]))
    until = time.perf_counter() + GRACE_S if progress.interrupted else math.inf
    if _solve(model, backend, until, progress).outcome != "optimal":
        return None
    paces = np.array([model.pace[k].value for k in model.K])
    if ((data.weight / paces).sum(axis=1) > 1 + LATE).any():
        return None
    orbit, _ = demands.flow_orbits(group)
    values = np.array([[model.f[k, x].value for x in model.X] for k in model.K])
    flows = np.where(orbit >= 0, values[:, orbit], 0.0) / paces[:, None, None, None]
    link_routes = tuple(
        routes(phase_flows, phase_sends, group)
        for phase_flows, phase_sends in zip(flows, demands.sends, strict=True)
    )
    return LinkRouting(links=_matrix(group, data, links), routes=link_routes)


def _matrix(group: Ints, data: LinksData, links: Ints) -> Ints:
    """Links of every pair (D, D) from those of each orbit."""
    matrix = np.zeros((group.shape[1], group.shape[1]), dtype=np.int64)
    for (i, j), p in zip(data.arcs, data.pair, strict=True):
        matrix[group[:, i], group[:, j]] = links[p]
    return matrix


def _model(data: LinksData, name: str, progress: LinkProgress) -> pyo.ConcreteModel:
    started = time.perf_counter()
    model = build(data, FORMULATIONS[name])
    progress.build_s += time.perf_counter() - started
    return model


def _solve(
    model: pyo.ConcreteModel, backend: Backend, deadline: float, progress: LinkProgress
) -> SolverAnswer:
    answer = backend.solve(model, max(deadline - time.perf_counter(), 0.0))
    progress.add(answer)
    progress.interrupted = progress.interrupted or answer.outcome == "interrupted"
    return answer


def _cut(model: pyo.ConcreteModel, progress: LinkProgress) -> bool:
    """Add the tangents at the paces found where they are late; whether any were."""
    paces = np.array([model.pace[k].value for k in model.K])
    is_late = (model.data.weight / paces).sum(axis=1) > 1 + IN_TIME
    phases = np.flatnonzero(model.data.weight[is_late].any(axis=0)).tolist()
    for k in phases:
        add_tangent(model, k, float(paces[k]))
    progress.cuts += len(phases)
    return bool(phases)
