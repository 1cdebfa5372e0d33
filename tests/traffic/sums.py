"""Plain sums over the flows of a demand, and every way to split a workload over a cluster, as plans say it."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from coopt.columns.grid import groups_of, mappings, placements_of
from coopt.instance.workload import Workload
from coopt.network.family import Family
from coopt.network.placing import leaf_numbers
from coopt.plan.parts import MappingChoice, WorkloadPlan
from coopt.solving.arrays import placement_of
from coopt.traffic.flows import TrafficDemand
from coopt.traffic.ranks import RankGrid, split_of
from coopt.traffic.summary import talking_pairs, tiers_crossed


def bytes_by_kind(demand: TrafficDemand) -> dict[str, float]:
    """Bytes of an iteration by kind, over all ranks."""
    found: dict[str, float] = defaultdict(float)
    for stream in demand.streams:
        found[stream.kind] += float(stream.size_bytes.sum())
    return dict(found)


def bytes_by_tier(family: Family, demand: TrafficDemand) -> dict[int, float]:
    """Bytes of an iteration by the highest tier they cross, 0 for those that stay in a domain."""
    found: dict[int, float] = defaultdict(float)
    for stream in demand.streams:
        tiers = tiers_crossed(family, demand.active, stream, leaf_numbers(family))
        for tier, size_bytes in zip(tiers.tolist(), stream.size_bytes.tolist(), strict=True):
            found[tier] += size_bytes
    return dict(found)


def silent_share(demand: TrafficDemand) -> float:
    """Share of the ordered pairs of GPUs that exchange nothing in an iteration."""
    return 1.0 - talking_pairs(demand) / (demand.ranks * (demand.ranks - 1))


def every_split(
    workload: Workload, gpus: int, active: int, *, every: int = 1
) -> Iterator[tuple[RankGrid, WorkloadPlan]]:
    """Mappings with their placements, or one in `every`, in every order; times and memory mean nothing."""
    whole, _ = mappings(workload, gpus)
    rows, places = placements_of(whole, active)
    turns = groups_of(workload, whole.take(rows), places).stages_can_adjoin
    listed = [(row, order) for row in range(0, len(rows), every) for order in range(1 + turns[row])]
    for i, outermost in listed:
        mapping, placement = whole.take(rows[[i]]), places.take(np.array([i]))
        mapping = replace(mapping, outermost=np.array([outermost]))
        chosen = WorkloadPlan(
            name=workload.name,
            gpus=gpus,
            mapping=MappingChoice.model_validate(mapping.choice(0)),
            placement=placement_of(workload, mapping, placement),
            iteration_time_s=1.0,
            bound_s=1.0,
            breakdown_s={},
            memory_gib=1.0,
            memory_limit_gib=1.0,
            mfu=0.5,
            mfu_causal=0.5,
            hfu=0.5,
            tokens_per_s=1.0,
        )
        yield split_of(workload, chosen), chosen
