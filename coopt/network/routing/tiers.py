"""Routes over the tiers of a plane: two layers, or two layers within two layers on three tiers."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from coopt.network.routing.algorithms import algorithm
from coopt.network.routing.fairness import Hops, hops
from coopt.network.routing.layers import Flows, Ints, TwoLayer
from coopt.network.routing.loads import Loads, degrees, least_level, link_loads, lower_bound
from coopt.network.routing.planes import Plane


@dataclass(frozen=True, kw_only=True, eq=False)
class Routed:
    """Routes between the leaves of a plane.

    Parameters
    ----------
    middle
        Spine of each flow, or on three tiers the aggregation switch j of its pods; -1 inside a leaf. Shape (flows,).
    core
        Core of core group j; -1 inside a pod and on two tiers. Shape (flows,).
    loads
        From the leaves up: flows on the links of leaves, shape (leaves, spines or slices), and on three tiers those of
        aggregation switches, shape (slices·pods, cores of a group), switch j of pod P in row j·pods + P.
    hops
        Every bundle each flow crosses, for its fair rate.
    alpha, bound
        Flows per link on the worst bundle of any level, and the least that any routing has.
    seconds
        What the algorithm took over all tiers.
    """

    middle: Ints
    core: Ints
    loads: tuple[Loads, ...]
    hops: Hops
    alpha: float
    bound: float
    seconds: float


def route_tiers(
    plane: Plane, flows: Flows, *, algorithm_name: str = "best", seed: int = 0, failed_cores: int = 0
) -> Routed:
    """Route flows between leaves.

    On three tiers flows first choose one of `uplinks` slices: aggregation switch j of every pod and core group j.
    Leaves have a link to each slice. Then the flows between pods choose a core within their slice.

    Parameters
    ----------
    algorithm_name
        A key of `ALGORITHMS`, for both stages.
    failed_cores
        How many spines or core switches are out, drawn at random by `seed`.

    Raises
    ------
    InstanceError
        For flows between leaves that do not exist, and as the algorithm does.
    """
    assign = algorithm(algorithm_name)
    first, *second = plane.without_cores(failed_cores, seed)
    start = time.perf_counter()
    middle = assign(first, flows, seed)
    stages = [(first, flows, middle)]
    for layer in second:
        above = _between_pods(plane, flows, middle)
        stages.append((layer, above, assign(layer, above, seed + 1)))
    seconds = time.perf_counter() - start
    loads = tuple(link_loads(*stage) for stage in stages)
    return Routed(
        middle=middle,
        core=stages[1][2] if second else np.full(len(flows), -1, dtype=np.int64),
        loads=loads,
        hops=_joined([hops(*stage) for stage in stages]),
        alpha=max(level.alpha for level in loads),
        bound=plane_bound(plane, flows) if second else lower_bound(first, flows),
        seconds=seconds,
    )


def plane_bound(plane: Plane, flows: Flows) -> float:
    """The alpha that no routing undercuts, by the flows of each leaf and, between pods, by those of each pod."""
    least = lower_bound(plane.layers[0], flows)
    if plane.pods is None:
        return least
    pods = plane.pods
    slice_ = TwoLayer(links=plane.layers[1].links[: pods.count])
    between = Flows(src=flows.src // pods.l, dst=flows.dst // pods.l, group=flows.group)
    return max(least, least_level(slice_, degrees(pods.count, between), copies=plane.uplinks) / slice_.unit)


def _between_pods(plane: Plane, flows: Flows, middle: Ints) -> Flows:
    """The flows as rows of the second layer; inside a row where they stay in their pod."""
    assert plane.pods is not None
    row = np.maximum(middle, 0) * plane.pods.count
    return Flows(src=row + flows.src // plane.pods.l, dst=row + flows.dst // plane.pods.l, group=flows.group)


def _joined(stages: list[Hops]) -> Hops:
    bundles, start = [], 0
    for stage in stages:
        bundles.append(np.where(stage.bundles >= 0, stage.bundles + start, -1))
        start += stage.capacity.size
    return Hops(bundles=np.concatenate(bundles, axis=1), capacity=np.concatenate([s.capacity for s in stages]))
