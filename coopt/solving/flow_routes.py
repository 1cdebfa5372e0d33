"""The flows of a workload with the switches they take above their leaves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyomo.core as pyo

from coopt.instance.texts import InstanceError
from coopt.network.family import Family
from coopt.network.routing.algorithms import ALGORITHMS, greedy_cores
from coopt.network.routing.layers import (
    Flows,
    Ints,
    TwoLayer,
    degrees,
    hops,
    least_level,
    link_loads,
)
from coopt.network.routing.tiers import Plane, PlaneRoutes, plane_of, route_tiers, spread_tiers
from coopt.solving.highs import options, solve
from coopt.traffic.flows import TrafficDemand
from coopt.traffic.of_plan import LeafFlows, leaf_flows
from formulations.routing import ROUTES, RoutingData, build

EXACT, SPRAY = "exact", "spray"
NAMES = (*ALGORITHMS, EXACT, SPRAY)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How to route."""

    algorithm: str
    seed: int
    failed_cores: int
    time_limit_s: float


def routed_flows(
    family: Family, uplinks: int, demand: TrafficDemand, choice: Choice
) -> Iterator[tuple[LeafFlows, PlaneRoutes]]:
    """Everything that crosses domains on a network of several tiers, with its routes."""
    plane = plane_of(family, uplinks)
    for flows in leaf_flows(family, demand):
        yield flows, _routed(plane, flows, choice)


def _routed(plane: Plane, crossing: LeafFlows, choice: Choice) -> PlaneRoutes:
    flows = Flows(src=crossing.src, dst=crossing.dst, group=crossing.group)
    if choice.algorithm == SPRAY:
        return spread_tiers(plane, flows, seed=choice.seed, failed_cores=choice.failed_cores)
    if choice.algorithm != EXACT:
        return route_tiers(
            plane,
            flows,
            algorithm_name=choice.algorithm,
            seed=choice.seed,
            failed_cores=choice.failed_cores,
        )
    if plane.pods:
        raise InstanceError(
            "algorithm 'exact': works on two tiers only, but the plan has three, needs 'best' or"
            " another algorithm"
        )
    (layer,) = plane.without_cores(choice.failed_cores, choice.seed)
    exact = route_exactly(layer, flows, time_limit_s=choice.time_limit_s)
    return PlaneRoutes(
        middle=exact.cores,
        core=np.full(len(flows), -1, dtype=np.int64),
        loads=(link_loads(layer, flows, exact.cores),),
        hops=hops(layer, flows, exact.cores),
        alpha=exact.alpha,
        bound=exact.bound,
        seconds=exact.seconds,
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class ExactRoutes:
    """Cores of flows, -1 inside a leaf; their alpha, and a proven lower bound on that of any
    routing.
    """

    cores: Ints
    alpha: float
    bound: float
    seconds: float


def route_exactly(
    clos: TwoLayer, flows: Flows, *, time_limit_s: float = 60.0, threads: int = 1
) -> ExactRoutes:
    """The routes of least alpha, or the best found within the time limit.

    HiGHS looks for what is better than the greedy routes by a whole unit of load, 1/`clos.unit`;
    that there is nothing proves these. It is not asked where they meet the lower bound already.

    Raises
    ------
    InstanceError
        When two leaves with a flow between them share no core.
    """
    started = time.perf_counter()
    cores = greedy_cores(clos, flows)
    floor = least_level(clos, degrees(clos.leaves, flows), copies=1)
    level = _level(clos, flows, cores)
    if level > floor:
        data, pair = routing_data(clos, flows, least=floor, most=level - 1)
        model = build(data, ROUTES)
        left_s = max(time_limit_s - (time.perf_counter() - started), 0.0)
        answer = solve(model, time_limit_s=left_s, settings=options(gap=0.0, threads=threads))
        if answer.value is not None:
            cores[flows.between] = _dealt(model, pair)
            level = _level(clos, flows, cores)
        if answer.outcome in ("optimal", "infeasible"):
            floor = level
        elif np.isfinite(answer.bound):
            # loads are whole numbers of 1/unit: a bound between two of them proves the upper one
            floor = max(floor, min(level, int(np.ceil(answer.bound - 1e-6))))
    return ExactRoutes(
        cores=cores,
        alpha=level / clos.unit,
        bound=floor / clos.unit,
        seconds=time.perf_counter() - started,
    )


def routing_data(
    clos: TwoLayer, flows: Flows, *, least: int, most: int
) -> tuple[RoutingData, Ints]:
    """The problem, and the pair of each flow that leaves its leaf."""
    out = flows.between
    names, pair, count = np.unique(
        flows.src[out] * clos.leaves + flows.dst[out], return_inverse=True, return_counts=True
    )
    src, dst = np.divmod(names, clos.leaves)
    return (
        RoutingData(src=src, dst=dst, flows=count, step=clos.steps, min_load=least, max_load=most),
        pair,
    )


def _level(clos: TwoLayer, flows: Flows, cores: Ints) -> int:
    """The load per link of the worst bundle, in 1/unit."""
    loads = link_loads(clos, flows, cores)
    return int((np.maximum(loads.up, loads.down) * clos.steps).max(initial=0))


def _dealt(model: pyo.ConcreteModel, pair: Ints) -> Ints:
    """A core for each flow: those of a pair in turn onto the cores that the model gives the
    pair.
    """
    through: list[list[int]] = [[] for _ in model.P]
    for p, core in model.PM:
        through[p] += [core] * round(model.x[p, core].value)
    order = np.argsort(pair, kind="stable")
    cores = np.empty(pair.size, dtype=np.int64)
    cores[order] = [core for pair_cores in through for core in pair_cores]
    return cores
