"""A plan whose mappings, placements and times are those of its instance, before anything is built on them."""

from __future__ import annotations

import math

import numpy as np

from coopt.columns.context import context_of
from coopt.columns.grid import mappings as every_mapping
from coopt.columns.pools import place
from coopt.instance.errors import InstanceError
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.network.family import Family
from coopt.network.plan_networks import family_of_plan
from coopt.plan.schema import Plan, WorkloadPlan
from coopt.solving.evaluate import pinned
from coopt.solving.workloads import placement_of

CLOSE = 1e-9  # of the time


def trusted_plan(instance: Instance, plan: Plan, asked: str) -> tuple[Family, int, list[tuple[Workload, WorkloadPlan]]]:
    """The family and uplinks of a plan, and its workloads beside the instance's.

    Parameters
    ----------
    asked
        What they are wanted for, as a refusal calls it.

    Raises
    ------
    InstanceError
        When the plan has no design of this instance, other workloads, or a mapping, placement or time that the model
        does not give.
    """
    family, uplinks = family_of_plan(instance, plan, asked)
    names = [workload.name for workload in instance.workload]
    if [chosen.name for chosen in plan.workloads] != names:
        raise InstanceError(f"{instance.name}: the plan is for other workloads, needs one for {', '.join(names)}")
    narrowed = pinned(instance, [chosen.mapping for chosen in plan.workloads])
    for workload, chosen in zip(narrowed, plan.workloads, strict=True):
        time_s = _time_s(instance, family, uplinks, workload, chosen)
        if time_s is None or not math.isclose(time_s, chosen.iteration_time_s, rel_tol=CLOSE):
            raise InstanceError(
                f"{instance.name}: what the plan says of workload {workload.name!r} is not what this instance gives, "
                "needs a plan that `coopt verify` accepts"
            )
    return family, uplinks, list(zip(instance.workload, plan.workloads, strict=True))


def _time_s(instance: Instance, family: Family, uplinks: int, workload: Workload, chosen: WorkloadPlan) -> float | None:
    """Iteration time of the mapping on the placement of a plan; None where there is no such placement."""
    context = context_of(family)
    whole, _ = every_mapping(workload, family.gpus)
    pool = place(workload, instance.cluster.gpu, family.hb, context.site, whole)
    for row in range(len(pool)):
        one = np.array([row])
        if placement_of(workload, pool.mappings.take(one), pool.placements.take(one)) == chosen.placement:
            return float(pool.time_s(context, uplinks)[row])
    return None
