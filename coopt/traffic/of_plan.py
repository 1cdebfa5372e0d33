"""Traffic of a plan on its network: what workloads send, and flows between the leaves of a
plane.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from coopt.instance.schema import Instance
from coopt.instance.texts import InstanceError, alternatives, counted
from coopt.network.family import Family
from coopt.network.placing import leaf_numbers
from coopt.network.plan_networks import (
    part_named,
    part_network,
    question_of,
    require_workload,
)
from coopt.perf.collectives import Flows as WayFlows
from coopt.perf.mapping import Floats, Ints
from coopt.plan.couplings import network_of
from coopt.plan.parts import WorkloadPlan
from coopt.plan.schema import Plan
from coopt.traffic.flows import Stream, TrafficDemand, demand
from coopt.traffic.ranks import RankGrid, split_of
from coopt.traffic.volumes import TrafficClass

CHECK = "needs a plan that `coopt verify` accepts"


@dataclass(frozen=True, kw_only=True)
class LeafFlows:
    """Simultaneous flows of one collective on each of `planes`, from leaf `src[i]` to leaf
    `dst[i]`.

    `group[i]` is the number of the ring, tree or all-to-all; at most `per_nic` flows share a NIC in
    one direction. `flows`, `round_index` and `share` are those of their streams. Arrays of shape
    (flows,); planes with equal flows are combined. Values that differ between these planes have
    shape (planes, flows): GPU `src_gpu` sends `size_bytes` per iteration to `dst_gpu`, both through
    their NIC number `adapter`.
    """

    kind: TrafficClass
    collective: str
    flows: WayFlows
    round_index: int
    share: float
    planes: tuple[int, ...]
    src: Ints
    dst: Ints
    group: Ints
    per_nic: int
    src_gpu: Ints
    dst_gpu: Ints
    adapter: Ints
    size_bytes: Floats

    @property
    def round(self) -> int:
        """Number of the round of halving and doubling, from 1; 0 for other algorithms."""
        return self.round_index + 1 if self.flows == "halving" else 0


def leaf_flows(family: Family, demand: TrafficDemand) -> Iterator[LeafFlows]:
    """Yield all flows that cross domains, by collective, round and plane.

    All phases of a collective have the same flows, so each pair of a group counts once.
    """
    streams_by_flows: dict[tuple[str, str, str, int], list[Stream]] = {}
    for stream in demand.streams:
        streams_by_flows.setdefault(
            (stream.kind, stream.collective, stream.flows, stream.round_index), []
        ).append(stream)
    for streams in streams_by_flows.values():
        table, size_bytes = _pairs(streams, demand.active)
        if len(table) and family.tiers:
            yield from _on_planes(family, demand.active, streams, table, size_bytes)


def _pairs(streams: Sequence[Stream], per_domain: int) -> tuple[Ints, Floats]:
    """Return source, destination and group of pairs in different domains, shape (pairs, 3), and
    their bytes per iteration.
    """
    rows, sizes = [], []
    for stream in streams:
        across = stream.src // per_domain != stream.dst // per_domain
        rows.append(np.stack([stream.src, stream.dst, stream.group], axis=1)[across])
        sizes.append(stream.size_bytes[across])
    pairs, place = np.unique(np.concatenate(rows), axis=0, return_inverse=True)
    totals = np.bincount(place.ravel(), np.concatenate(sizes), len(pairs))
    return np.asarray(pairs, dtype=np.int64), np.asarray(totals, dtype=np.float64)


def _on_planes(
    family: Family, per_domain: int, streams: Sequence[Stream], table: Ints, size_bytes: Floats
) -> Iterator[LeafFlows]:
    stream, *_ = (
        candidate
        for candidate in streams
        if (candidate.src // per_domain != candidate.dst // per_domain).any()
    )
    per_gpu, leaves = family.nics_per_gpu, leaf_numbers(family)
    rows = family.nics_of_domain // family.planes
    src, dst, group = (np.repeat(column, per_gpu) for column in table.T)
    # every NIC of a GPU carries an equal part, on the rail of its number
    adapter, sizes = (
        np.tile(np.arange(per_gpu), len(table)),
        np.repeat(size_bytes / per_gpu, per_gpu),
    )
    rail = (src % per_domain * per_gpu + adapter) // family.gpus_per_nic
    plane, row = rail // rows, rail % rows
    ends = np.stack([leaves[row, src // per_domain], leaves[row, dst // per_domain], group], axis=1)
    per_nic = max(
        int(np.unique(gpu // family.gpus_per_nic, return_counts=True)[1].max())
        for gpu in (table[:, 0], table[:, 1])
    )
    for plane_ends, planes in _planes_alike(ends, plane):
        (a, b, g), flows = (
            plane_ends.T,
            np.stack([numbers_of_plane for _, numbers_of_plane in planes]),
        )
        yield LeafFlows(
            kind=stream.kind,
            collective=stream.collective,
            flows=stream.flows,
            round_index=stream.round_index,
            share=stream.share,
            planes=tuple(number for number, _ in planes),
            src=a,
            dst=b,
            group=g,
            per_nic=per_nic,
            src_gpu=src[flows],
            dst_gpu=dst[flows],
            adapter=adapter[flows],
            size_bytes=sizes[flows],
        )


def _planes_alike(ends: Ints, plane: Ints) -> Iterator[tuple[Ints, list[tuple[int, Ints]]]]:
    """Yield leaves and groups of the flows of planes with equal flows, and each such plane with its
    flow numbers.

    `ends` has shape (flows, 3), `plane` (flows,).
    """
    order = np.argsort(plane, kind="stable")
    numbers, starts = np.unique(plane[order], return_index=True)
    planes_by_flows: dict[bytes, tuple[Ints, list[tuple[int, Ints]]]] = {}
    for number, numbers_of_plane in zip(numbers.tolist(), np.split(order, starts[1:]), strict=True):
        plane_ends = ends[numbers_of_plane]
        # groups are numbered anew in each plane, so that planes with the same flows have the same
        # key
        plane_ends[:, 2] = np.unique(plane_ends[:, 2], return_inverse=True)[1]
        _, planes = planes_by_flows.setdefault(plane_ends.tobytes(), (plane_ends, []))
        planes.append((number, numbers_of_plane))
    yield from planes_by_flows.values()


def demands(
    instance: Instance,
    plan: Plan,
    *,
    workload: str | None = None,
    trees: bool = False,
    part: str | None = None,
) -> tuple[Family | None, tuple[TrafficDemand, ...]]:
    """Return the traffic of every workload of a part of a plan, or of a named one; the family is
    None for direct links.

    Collectives use the algorithms named in the plan; rings on direct links send half each way.

    Parameters
    ----------
    trees
        Whether all-reduces of data parallelism use two binary trees across domains instead of a
        ring.
    part
        The name of the part, if the plan has several.

    Raises
    ------
    InstanceError
        As in `workload_splits`.
    """
    family, splits = workload_splits(instance, plan, workload=workload, part=part)
    return family, tuple(
        demand(split.workload, workload_plan, trees=trees, both_ways=family is None)
        for split, workload_plan in splits
    )


def workload_splits(
    instance: Instance, plan: Plan, *, workload: str | None = None, part: str | None = None
) -> tuple[Family | None, tuple[tuple[RankGrid, WorkloadPlan], ...]]:
    """Return how every workload of a part of a plan, or a named one, is split over its GPUs;
    parameters as in `demands`.

    Raises
    ------
    InstanceError
        If the part has no design of this instance, or does not split its workloads over its GPUs.
    """
    chosen_part = part_named(instance, plan, part)
    question, network = question_of(instance, chosen_part), network_of(chosen_part)
    family = None
    if chosen_part.design is not None:
        family = part_network(instance, plan, "the split of a workload over GPUs", part).family
    require_workload(plan, workload, chosen_part)
    splits, domains = [], network.hb_domain.count
    for question_workload, workload_plan in zip(
        question.workload, chosen_part.workloads, strict=True
    ):
        if workload in (None, question_workload.name):
            split = split_of(question_workload, workload_plan)
            if (split.ranks, split.domains) != (network.gpus, domains):
                raise InstanceError(
                    f"{instance.place}: workload {question_workload.name!r} is split over"
                    f" {counted(split.ranks, 'GPU')} in {counted(split.domains, 'domain')}, and its"
                    f" network has {network.gpus:,} in {domains:,}, {CHECK}"
                )
            splits.append((split, workload_plan))
    return family, tuple(splits)


def parts_with(plan: Plan, names: Sequence[str], workload: str | None) -> tuple[str, ...]:
    """Select the parts that train a workload; all parts if none is named, or if none of them trains
    it.

    Raises
    ------
    InstanceError
        If no part of the plan trains it.
    """
    if plan.parts:  # what has none is refused for that
        require_workload(plan, workload)
    training_parts = [
        part.name for part in plan.parts if workload in [run.name for run in part.workloads]
    ]
    return tuple(name for name in names if name in training_parts) or tuple(names)


def single_demand(all_demands: tuple[TrafficDemand, ...], option: str) -> TrafficDemand:
    """Return the only demand, for files that hold one.

    Raises
    ------
    InstanceError
        If there are several, or none, as for a part that no longer trains.
    """
    require_one_workload([demand.workload for demand in all_demands], option)
    if not all_demands:
        raise InstanceError(
            f"{option}: nothing trains on this part, needs --part with one that trains a workload"
        )
    return all_demands[0]


def require_one_workload(workloads: Sequence[str], option: str) -> None:
    """Refuse several workloads, for files that hold one.

    Raises
    ------
    InstanceError
        With the names to choose from.
    """
    if len(workloads) > 1:
        names = alternatives(workloads)
        raise InstanceError(
            f"{option}: holds one workload and there are {len(workloads)}, needs --workload {names}"
        )
