"""Every way to split a workload over a cluster, as plans say it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from coopt.columns.context import groups_of
from coopt.columns.grid import mappings, placements_of
from coopt.instance.workload import Workload
from coopt.plan.schema import MappingChoice, WorkloadPlan
from coopt.solving.arrays import placement_of
from coopt.traffic.ranks import RankGrid, split_of


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
            hfu=0.5,
            tokens_per_s=1.0,
        )
        yield split_of(workload, chosen), chosen
