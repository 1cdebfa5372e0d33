"""The tiers of a plane as two layers, or as two layers within two layers, and routes over them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coopt.instance.texts import InstanceError, counted
from coopt.network.family import Family, TierChain
from coopt.network.routing.algorithms import algorithm
from coopt.network.routing.colouring import even_slices
from coopt.network.routing.layers import (
    Floats,
    Flows,
    Hops,
    Ints,
    Loads,
    TwoLayer,
    degrees,
    fail_cores,
    hops,
    least_level,
    link_loads,
    lower_bound,
    require_paths,
    spread_loads,
    striped_clos,
)

COLOURED = ("colouring", "sheltered", "best")
"""Algorithms whose slices are made even for pods, too; the others know nothing of the tier above.
"""


@dataclass(frozen=True)
class Plane:
    """One of the equal networks of a chain with two tiers or three, as layers."""

    chain: TierChain

    @property
    def slices(self) -> int:
        """Equal networks above the leaves: on three tiers the aggregation switches of a pod,
        otherwise 1.
        """
        return self.chain.core_groups

    @property
    def pods(self) -> int:
        """Pods that cores join; 0 on two tiers."""
        return sum(pods.number for pods in self.chain.pods) if self.chain.cores else 0

    @property
    def pod_leaves(self) -> int:
        """Leaves of a pod, the last of which may have fewer."""
        return self.chain.pods[0].leaves

    def between_pods(self, flows: Flows) -> Flows:
        """The flows by pods in place of leaves."""
        src, dst = flows.src // self.pod_leaves, flows.dst // self.pod_leaves
        return Flows(src=src, dst=dst, group=flows.group)

    @cached_property
    def layers(self) -> tuple[TwoLayer, ...]:
        """From the leaves up: leaves and spines; on three tiers leaves and slices, then aggregation
        switches and cores.

        A slice is aggregation switch j of every pod. Row j·pods + P of the second layer is switch j
        of pod P. Switches of different slices share no core, so that a column stands for a core of
        every slice; as a flow stays in its slice, one routing of these rows is a routing of each
        slice.
        """
        chain = self.chain
        spines = chain.pods[0].spines if chain.pods else 0
        leaf_layer = striped_clos(chain.leaves, chain.uplinks, spines)
        if not self.pods:
            return (leaf_layer,)
        slice_ = striped_clos(self.pods, chain.pods[0].up, chain.cores // self.slices)
        return leaf_layer, TwoLayer(links=np.tile(slice_.links, (self.slices, 1)))

    @property
    def top_switches(self) -> int:
        """Spines, or core switches of all groups."""
        return self.layers[-1].cores * self.slices

    def without_cores(self, n: int, seed: int) -> tuple[TwoLayer, ...]:
        """The layers after n of the spines or core switches failed, drawn at random.

        On three tiers a slice whose cores no longer join all pods is left out.
        """
        most = max(self.top_switches - 1, 0)
        if not 0 <= n <= most:
            raise InstanceError(
                f"failed cores: {n}, but a rail or plane has"
                f" {counted(self.top_switches, 'top switch')} and one has to work,"
                f" needs {f'0 to {most}' if most else '0'}"
            )
        if not self.pods:
            return (fail_cores(self.layers[0], n, seed),)
        leaf_layer, top_layer = self.layers
        links = top_layer.links.reshape(self.slices, self.pods, top_layer.cores).copy()
        slices, cores = np.divmod(
            np.random.default_rng(seed).permutation(self.top_switches)[:n], top_layer.cores
        )
        links[slices, :, cores] = 0
        # Two pods are joined where some core has links to both: a product of the incidences counts
        # such cores.
        joins = (links > 0).astype(np.int64)
        is_whole = ((joins @ joins.transpose(0, 2, 1)) > 0).all(axis=(1, 2))
        if not is_whole.any():
            raise InstanceError(
                f"failed cores: {n}, which leaves no aggregation switch that reaches all pods,"
                " needs fewer"
            )
        return TwoLayer(links=leaf_layer.links * is_whole), TwoLayer(
            links=links.reshape(-1, top_layer.cores)
        )


def plane_of(family: Family, uplinks: int) -> Plane:
    """One plane of a family at u uplinks."""
    return Plane(family.chain(uplinks))


@dataclass(frozen=True, kw_only=True, eq=False)
class PlaneRoutes:
    """Routes between the leaves of a plane.

    Parameters
    ----------
    middle
        Spine of each flow, or on three tiers the aggregation switch j of its pods; -1 inside a
        leaf, and where flows are spread over all. Shape (flows,).
    core
        Core of core group j; -1 inside a pod and on two tiers. Shape (flows,).
    loads
        From the leaves up: flows on the links of leaves, shape (leaves, spines or slices), and on
        three tiers those of aggregation switches, shape (slices·pods, cores of a group), switch j
        of pod P in row j·pods + P.
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
    plane: Plane,
    flows: Flows,
    *,
    algorithm_name: str = "best",
    seed: int = 0,
    failed_cores: int = 0,
) -> PlaneRoutes:
    """Route flows between leaves.

    On three tiers flows first choose a slice: aggregation switch j of every pod and core group j.
    Leaves have equally many links to each slice. Algorithms that colour flows make slices even for
    pods as well. Then the flows between pods choose a core within their slice.

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
    leaf_layer, *upper_layers = plane.without_cores(failed_cores, seed)
    start = time.perf_counter()
    switches = assign(leaf_layer, flows, seed)
    if algorithm_name in COLOURED:
        switches = _even_for_pods(plane, leaf_layer, flows, switches)
    stages = [(leaf_layer, flows, switches)]
    for layer in upper_layers:
        pod_flows = _between_pods(plane, flows, switches)
        # A seed of its own: with the same one the second stage would repeat what the first one
        # drew.
        stages.append((layer, pod_flows, assign(layer, pod_flows, seed + 1)))
    seconds = time.perf_counter() - start
    loads = tuple(link_loads(*stage) for stage in stages)
    return PlaneRoutes(
        middle=switches,
        core=stages[1][2] if upper_layers else np.full(len(flows), -1, dtype=np.int64),
        loads=loads,
        hops=_all_hops([hops(*stage) for stage in stages]),
        alpha=max(level.alpha for level in loads),
        bound=plane_bound(plane, flows) if upper_layers else lower_bound(leaf_layer, flows),
        seconds=seconds,
    )


def spread_tiers(
    plane: Plane, flows: Flows, *, seed: int = 0, failed_cores: int = 0
) -> PlaneRoutes:
    """Flows spread evenly over all links of a switch that lead on, as switches do that spray
    packets.

    The bound is the mean load of the links of a leaf, or of a pod. Rates are those of flows that
    share all links of a switch as if they were one.

    Raises
    ------
    InstanceError
        For flows between leaves that do not exist or that nothing joins.
    """
    leaf_layer, *upper_layers = plane.without_cores(failed_cores, seed)
    require_paths(leaf_layer, flows)
    start = time.perf_counter()
    src, dst, count = _pair_counts(flows, plane.chain.leaves)
    loads = [spread_loads(leaf_layer, src, dst, count)]
    ends = [(flows, leaf_layer.links.sum(axis=1))]
    if plane.pods:
        pods, (top_layer,) = plane.pods, upper_layers
        slices = np.flatnonzero(leaf_layer.links.any(axis=0))
        between = plane.between_pods(flows)
        src, dst, count = _pair_counts(between, pods)
        rows = pods * slices[:, None]
        # Flows are spread over the slices first, so each slice has an equal share of those between
        # two pods.
        counts = np.tile(count / len(slices), len(slices))
        loads.append(spread_loads(top_layer, (rows + src).ravel(), (rows + dst).ravel(), counts))
        ends.append((between, top_layer.links.reshape(-1, pods, top_layer.cores).sum(axis=(0, 2))))
    return PlaneRoutes(
        middle=np.full(len(flows), -1, dtype=np.int64),
        core=np.full(len(flows), -1, dtype=np.int64),
        loads=tuple(loads),
        hops=_all_hops([_as_one(*level) for level in ends]),
        alpha=max(level.alpha for level in loads),
        bound=max(
            float((degrees(len(n), level) / np.maximum(n, 1)).max(initial=0.0)) for level, n in ends
        ),
        seconds=time.perf_counter() - start,
    )


def _pair_counts(flows: Flows, switches: int) -> tuple[Ints, Ints, Floats]:
    """Pairs of switches with flows between them, and how many."""
    out = flows.between
    pairs, count = np.unique(flows.src[out] * switches + flows.dst[out], return_counts=True)
    return pairs // switches, pairs % switches, count.astype(np.float64)


def _as_one(flows: Flows, links: Ints) -> Hops:
    """The links of each switch as one bundle up and one down."""
    ends = np.stack([flows.src, flows.dst + len(links)], axis=1)
    inside = flows.src == flows.dst
    return Hops(bundles=np.where(inside[:, None], -1, ends), capacity=np.tile(links, 2))


def plane_bound(plane: Plane, flows: Flows) -> float:
    """The alpha that no routing undercuts, by the flows of each leaf and, between pods, by those of
    each pod.
    """
    leaf_bound = lower_bound(plane.layers[0], flows)
    if not plane.pods:
        return leaf_bound
    slice_ = TwoLayer(links=plane.layers[1].links[: plane.pods])
    degree = degrees(plane.pods, plane.between_pods(flows))
    return max(leaf_bound, least_level(slice_, degree, copies=plane.slices) / slice_.unit)


def _between_pods(plane: Plane, flows: Flows, slices: Ints) -> Flows:
    """The flows as rows of the second layer; inside a row where they stay in their pod."""
    row, between = np.maximum(slices, 0) * plane.pods, plane.between_pods(flows)
    return Flows(src=row + between.src, dst=row + between.dst, group=flows.group)


def _even_for_pods(plane: Plane, leaf_layer: TwoLayer, flows: Flows, slices: Ints) -> Ints:
    """The slices of flows, dealt anew where links above a pod would carry more than those above a
    leaf or its share.
    """
    if not plane.pods or not leaf_layer.links.all():
        return slices
    of_pods = degrees(plane.pods, plane.between_pods(flows)).max(initial=0)
    pods = plane.chain.pods[0]
    level = max(
        link_loads(leaf_layer, flows, slices).alpha,
        -(-int(of_pods) // (plane.slices * pods.up)),
    )
    # Levels are floats: the little that is added keeps a whole number from being cut to the one
    # below.
    return even_slices(
        flows,
        slices,
        count=plane.slices,
        pod_leaves=plane.pod_leaves,
        max_flows=round(level * (plane.chain.uplinks // pods.spines)),
        max_pod_flows=int(level * pods.up + 1e-9),
    )


def _all_hops(stages: list[Hops]) -> Hops:
    bundles, start = [], 0
    for stage in stages:
        bundles.append(np.where(stage.bundles >= 0, stage.bundles + start, -1))
        start += stage.capacity.size
    return Hops(
        bundles=np.concatenate(bundles, axis=1),
        capacity=np.concatenate([s.capacity for s in stages]),
    )
