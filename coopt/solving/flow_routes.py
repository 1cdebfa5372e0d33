"""The flows of a workload with the switches they take above their leaves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coopt.instance.errors import InstanceError
from coopt.network.family import Family
from coopt.network.routing.algorithms import ALGORITHMS
from coopt.network.routing.layers import Flows
from coopt.network.routing.loads import hops, link_loads
from coopt.network.routing.tiers import Plane, PlaneRoutes, plane_of, route_tiers
from coopt.solving.exact_routes import route_exactly
from coopt.traffic.flows import TrafficDemand
from coopt.traffic.of_plan import LeafFlows, leaf_flows

EXACT = "exact"
NAMES = (*ALGORITHMS, EXACT)


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


def _routed(plane: Plane, found: LeafFlows, choice: Choice) -> PlaneRoutes:
    flows = Flows(src=found.src, dst=found.dst, group=found.group)
    if choice.algorithm != EXACT:
        return route_tiers(
            plane, flows, algorithm_name=choice.algorithm, seed=choice.seed, failed_cores=choice.failed_cores
        )
    if plane.pods is not None:
        raise InstanceError("algorithm 'exact': works on two tiers and the plan has three, needs 'best' or another one")
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
