"""Routes of least alpha by integer programming, starting from the greedy ones."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pyomo.environ as pyo

from coopt.network.routing.algorithms import greedy_cores
from coopt.network.routing.layers import Flows, Ints, TwoLayer
from coopt.network.routing.loads import degrees, least_level, link_loads
from coopt.solving.highs import options, solve
from formulations.routing import ROUTES, build
from formulations.routing_data import RoutingData


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactRoutes:
    """Cores of flows, -1 inside a leaf; their alpha, and a proven lower bound on that of any routing."""

    cores: Ints
    alpha: float
    bound: float
    nodes: int
    seconds: float

    @property
    def proven(self) -> bool:
        """Whether no routing is better."""
        return self.alpha == self.bound


def route_exactly(clos: TwoLayer, flows: Flows, *, time_limit_s: float = 60.0, threads: int = 1) -> ExactRoutes:
    """The routes of least alpha, or the best found within the time limit.

    HiGHS looks for what is better than the greedy routes by a whole unit of load, 1/`clos.unit`; that there is nothing
    proves these. It is not asked where they meet the lower bound already.

    Raises
    ------
    InstanceError
        When two leaves with a flow between them share no core.
    """
    started = time.perf_counter()
    cores = greedy_cores(clos, flows)
    least = least_level(clos, degrees(clos.leaves, flows), copies=1)
    level = _level(clos, flows, cores)
    nodes = 0
    if level > least:
        data, pair = routing_data(clos, flows, least=least, most=level - 1)
        model = build(data, ROUTES)
        left = max(time_limit_s - (time.perf_counter() - started), 0.0)
        answer = solve(model, time_limit_s=left, settings=options(gap=0.0, threads=threads))
        nodes = answer.nodes
        if answer.value is not None:
            cores[flows.between] = _dealt(model, pair)
            level = _level(clos, flows, cores)
        if answer.outcome in ("optimal", "infeasible"):
            least = level
        elif np.isfinite(answer.bound):
            least = max(least, min(level, int(np.ceil(answer.bound - 1e-6))))
    return ExactRoutes(
        cores=cores,
        alpha=level / clos.unit,
        bound=least / clos.unit,
        nodes=nodes,
        seconds=time.perf_counter() - started,
    )


def routing_data(clos: TwoLayer, flows: Flows, *, least: int, most: int) -> tuple[RoutingData, Ints]:
    """The problem, and the pair of each flow that leaves its leaf."""
    out = flows.between
    names, pair, count = np.unique(
        flows.src[out] * clos.leaves + flows.dst[out], return_inverse=True, return_counts=True
    )
    src, dst = np.divmod(names, clos.leaves)
    return RoutingData(src=src, dst=dst, flows=count, step=clos.steps, least=least, most=most), pair


def _level(clos: TwoLayer, flows: Flows, cores: Ints) -> int:
    """The load per link of the worst bundle, in 1/unit."""
    loads = link_loads(clos, flows, cores)
    return int((np.maximum(loads.up, loads.down) * clos.steps).max(initial=0))


def _dealt(model: pyo.ConcreteModel, pair: Ints) -> Ints:
    """A core for each flow: those of a pair in turn onto the cores that the model gives the pair."""
    through: list[list[int]] = [[] for _ in model.P]
    for p, core in model.PM:
        through[p] += [core] * round(model.x[p, core].value)
    order = np.argsort(pair, kind="stable")
    cores = np.empty(pair.size, dtype=np.int64)
    cores[order] = [core for one in through for core in one]
    return cores
