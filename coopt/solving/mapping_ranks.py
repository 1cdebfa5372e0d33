"""Given a network, which mapping: those that fit into memory, the fastest first."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np

from coopt.columns.context import Context, context_of
from coopt.columns.grid import mappings as every_mapping
from coopt.columns.pools import in_orders, place
from coopt.instance.errors import InstanceError
from coopt.instance.files import instance_of
from coopt.instance.kinds import require_one_network
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.network.family import Family
from coopt.network.part_networks import part_network
from coopt.network.plan_networks import design_of
from coopt.perf.mapping import Mappings
from coopt.perf.memory import memory_bytes
from coopt.plan.evaluation import MappingRanking, RankedMappings
from coopt.plan.schema import InstanceId, Plan, WorkloadPlan
from coopt.plan.store import decided
from coopt.solving.days import allowed_s, run_on
from coopt.solving.evaluate import cheapest_design, open_design
from coopt.solving.explain import no_split


def mappings(
    instance: Instance | str | Path, plan: Plan | None = None, *, most: int = 10, part: str | None = None
) -> MappingRanking:
    """Rank the mappings of every workload on one given network.

    All mappings that the instance lists and that fit into memory are ranked by their iteration time, each with its
    fastest placement; bounds are reported, not enforced.

    Parameters
    ----------
    instance
        The question, or the file that holds it.
    plan
        Whose network it is; None where the instance leaves a single network.
    most
        How many to return for each workload.
    part
        The part of the plan, where it has several.

    Raises
    ------
    InstanceError
        When the network is open or not one of the instance, no mapping divides its GPUs, or `most` is below 1.

    Examples
    --------
    >>> import coopt
    >>> instance = coopt.load("instances/tiny-64.toml")
    >>> plan = coopt.solve(instance)
    >>> (training,) = coopt.mappings(instance, plan, most=3).workloads
    >>> training.mappings[0].iteration_time_s <= plan.workloads[0].iteration_time_s
    True
    """
    instance = instance_of(instance)
    if most < 1:
        raise InstanceError(f"mappings: most = {most}, needs at least 1")
    if plan is not None:
        instance, plan = decided(instance, plan)
        found = part_network(instance, plan, "a ranking of mappings", part)
        question, family, uplinks = found.question, found.family, found.uplinks
    else:
        require_one_network(instance, "a ranking of mappings without a plan")
        if complaints := list(open_design(instance)):
            raise InstanceError(f"{instance.name}: {text}" for text in complaints)
        question, (family, uplinks, _) = instance, cheapest_design(instance, None)
    context = context_of(family)
    return MappingRanking(
        instance=InstanceId(name=instance.name, sha256=instance.sha256),
        design=design_of(family, uplinks),
        workloads=tuple(_ranked(question, workload, family, context, uplinks, most) for workload in question.workload),
    )


def _ranked(
    question: Instance, workload: Workload, family: Family, context: Context, uplinks: int, most: int
) -> RankedMappings:
    """The fastest mappings of a workload on a network."""
    gpu = question.cluster.gpu
    whole, _ = every_mapping(workload, family.gpus)
    if not len(whole):
        raise InstanceError(f"{question.name}: {no_split(question, workload)}")
    fit = whole.take(memory_bytes(workload, whole) <= gpu.usable_bytes)
    pool = in_orders(place(workload, gpu, family.hb, context.site, fit), context.discipline)
    times = pool.mean_s(context, uplinks)
    shown: list[WorkloadPlan] = []
    known: set[tuple[int, ...]] = set()
    named = [field.name for field in fields(Mappings) if field.name != "outermost"]
    for row in np.argsort(times, kind="stable"):
        key = tuple(int(getattr(pool.mappings, name)[row]) for name in named)
        if key not in known:
            known.add(key)
            shown.append(run_on(question, family, uplinks, workload, pool, int(row)))
        if len(shown) == most:
            break
    return RankedMappings(
        name=workload.name,
        bound_s=allowed_s(question, family, uplinks, workload),
        listed=len(whole),
        fitting=len(fit),
        mappings=tuple(shown),
    )
