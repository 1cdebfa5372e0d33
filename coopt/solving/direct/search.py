"""Find the cheapest mapping on direct links: a bound for every one first, then one by one while it may be cheaper.

Whole links for the demands of a grid lie between a lower bound from lengths and those of a ladder of symmetries.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

import numpy as np
import pyomo.core as pyo

from coopt.perf.mapping import Ints
from coopt.plan.parts import LinkLengths, LinkRoute
from coopt.solving.backend import Backend
from coopt.solving.direct.grid import IN_TIME, Demands, paces_on, routes
from coopt.solving.direct.lengths import LATE, FlowProgram, Programs, whole
from coopt.solving.direct.rows import Row
from coopt.solving.highs import SolverAnswer
from coopt.solving.runs import Effort, Toll
from formulations.direct import FORMULATIONS, add_tangent, build
from formulations.direct_data import DirectData

ROUNDS = 50  # of cuts at most
GRACE_S = 2.0  # after an interrupt, for the flows on links that were found
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


@dataclass(kw_only=True)
class TriedLinks(Toll):
    """What is known of one problem: the best links so far, a bound below all, what it took, and the groups left to try,
    the next one apart."""

    found: Linked | None = None
    bound: float = -math.inf
    interrupted: bool = False
    group: Ints | None = None
    ladder: Iterator[Ints] | None = None

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
    """Find links in a tree, or with the next group of the ladder; whether there is another one to try.

    There is none once no more than `enough` of the links are unproven, or all that are left need more than `most`,
    which are of no use. The last group has the rest of the time where nobody else needs some of it.
    """
    if tried.ladder is None:
        tried.ladder = demands.grid.ladder(demands.ports, demands.sends)
        tried.group = next(tried.ladder, None)
        tried.found = _tree(demands) if tried.least < len(demands.ports) <= most + 1 else None
    left = deadline - time.perf_counter()
    if tried.group is None or left <= 0 or _settled(tried, enough, most):
        return False
    group, tried.group = tried.group, next(tried.ladder, None)
    until = deadline if tried.group is None and alone else time.perf_counter() + left / SHARE
    _rung(demands, group, tried, backend, until, most)
    return tried.group is not None and not _settled(tried, enough, most)


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


def _rung(demands: Demands, group: Ints, tried: TriedLinks, backend: Backend, deadline: float, most: float) -> None:
    """Links that are alike on the orbits of one group; without a symmetry its bound is one of the problem."""
    data = demands.on_orbits(group)
    fewer = most if tried.found is None else min(most, tried.found.count - 1)
    if tried.least > fewer // (orbit := math.gcd(*data.pairs.tolist())) * orbit:
        return  # orbits of pairs add up to no number of links in between
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


@dataclass(frozen=True, kw_only=True)
class LinkedMapping:
    """A mapping with its links; no fewer than `least_links` can do for it."""

    row: Row
    linked: Linked
    least_links: int

    @property
    def value(self) -> float:
        """The objective."""
        return self.row.place.value(self.linked.count)


@dataclass(frozen=True, kw_only=True)
class DirectSearch(Effort):
    """How the search ended; `searched` of the mappings needed links, and `lengths` prove the bound."""

    found: LinkedMapping | None
    interrupted: bool
    searched: int
    lengths: tuple[LinkLengths, ...]


def search_links(
    rows: Sequence[Row], backend: Backend, *, gap: float, deadline: float, rival: float, tell: Callable[[str], None]
) -> DirectSearch:
    """The cheapest mapping on direct links, if it is cheaper than `rival` (objective units).

    Mappings are taken by rising bound, each with its largest group of symmetries before any has a smaller one; those
    whose bound is not below the best value, within the gap, cannot win.
    """
    found, value, stopped = None, rival, False
    bounds, known, programs = [row.least_value for row in rows], dict[int, TriedLinks](), Programs()
    waiting = [(0, bound, n) for n, bound in enumerate(bounds)]
    heapify(waiting)
    try:
        while waiting and not _over(known.values(), deadline):
            turn, low, n = heappop(waiting)
            row, tried = rows[n], known.get(n)
            if low >= value * (1 - gap):
                continue
            if tried is None:
                program = programs.of(row.demands)
                if program is not None:
                    known[n] = tried = bound_links(row.demands, program, deadline)
                    bounds[n] = max(_low(row, tried), low)
                    heappush(waiting, (turn, bounds[n], n))
                continue
            most, alone = row.place.most_links(value), all(other >= value * (1 - gap) for _, other, _ in waiting)
            further = climb(row.demands, tried, backend, deadline, _enough(row, tried, gap), most, alone=alone)
            bounds[n] = max(_low(row, tried), low)
            if further:
                heappush(waiting, (turn + 1, bounds[n], n))
            if tried.found is not None and row.place.value(tried.found.count) < value:
                found = LinkedMapping(row=row, linked=tried.found, least_links=int(tried.least))
                value, count, least = found.value, tried.found.count, tried.least
                tell(f"{count:,} links between {row.place.domains} domains, at least {least:,.0f} needed")
    except KeyboardInterrupt:
        stopped = True
    bound = min(bounds, default=math.inf)
    return _ended(found, bound, known.values(), programs.written(), interrupted=stopped)


def _ended(
    found: LinkedMapping | None,
    bound: float,
    efforts: Collection[TriedLinks],
    lengths: tuple[LinkLengths, ...],
    *,
    interrupted: bool,
) -> DirectSearch:
    """A search that ended, with what all mappings took together."""
    return DirectSearch(
        found=found,
        interrupted=interrupted or any(tried.interrupted for tried in efforts),
        searched=len(efforts),
        lengths=lengths,
        bound=bound,
        cuts=sum(tried.cuts for tried in efforts),
        nodes=sum(tried.nodes for tried in efforts),
        build_s=sum(tried.build_s for tried in efforts),
        handover_s=sum(tried.handover_s for tried in efforts),
        solve_s=sum(tried.solve_s for tried in efforts),
    )


def _over(efforts: Iterable[TriedLinks], deadline: float) -> bool:
    return time.perf_counter() >= deadline or any(tried.interrupted for tried in efforts)


def _low(row: Row, tried: TriedLinks) -> float:
    """The objective is no less; inf beyond ports and limits."""
    return math.inf if tried.least > row.place.most_links() else row.place.value(tried.least)


def _enough(row: Row, tried: TriedLinks, gap: float) -> float:
    """The share of links that may be unproven for the whole price to be within the gap."""
    nothing, some = row.place.value(0), row.place.value(tried.least)
    return gap * some / (some - nothing) if some > nothing else math.inf
