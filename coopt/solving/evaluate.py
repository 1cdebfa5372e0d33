"""The value of one given design and mapping, without optimisation; and which mappings of a network
are fastest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from coopt.columns.grid import Context, context_of
from coopt.columns.grid import mappings as every_mapping
from coopt.columns.pools import in_orders, place
from coopt.instance.schema import Instance, instance_of, require_one_network
from coopt.instance.texts import InstanceError, both
from coopt.instance.variants import inside_first, with_tp
from coopt.instance.workload import Workload
from coopt.network.family import Family
from coopt.network.plan_networks import design_of, part_network
from coopt.perf.mapping import Mappings
from coopt.perf.memory import memory_bytes
from coopt.plan.parts import Design, MappingChoice, WorkloadPlan
from coopt.plan.schema import InstanceId, Plan
from coopt.plan.store import (
    Evaluation,
    MappingRanking,
    RankedMappings,
    decided,
    limit_checks,
    plan_of,
)
from coopt.solving.arrays import fastest_row
from coopt.solving.days import allowed_s, run_on
from coopt.solving.explain import held_by, no_split
from coopt.solving.given_design import cheapest_design, open_design
from coopt.solving.given_mappings import open_mapping, pinned


def mappings(
    instance: Instance | str | Path,
    plan: Plan | str | Path | None = None,
    *,
    most: int = 10,
    part: str | None = None,
) -> MappingRanking:
    """Rank the mappings of every workload on one given network.

    All mappings that the instance lists and that fit into memory are ranked by their iteration
    time, each with its fastest placement; bounds are reported, not enforced.

    Parameters
    ----------
    instance
        The question, or the file that holds it.
    plan
        Whose network it is, or its file; None where the instance leaves a single network.
    most
        How many to return for each workload.
    part
        The part of the plan, where it has several.

    Raises
    ------
    InstanceError
        When the network is open or not one of the instance, no mapping divides its GPUs, or `most`
        is below 1.

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
        instance, plan = decided(instance, plan_of(plan))
        network = part_network(instance, plan, "a ranking of mappings", part)
        question, family, uplinks = (
            with_tp(network.question, across=plan.tp_across),
            network.family,
            network.uplinks,
        )
    else:
        require_one_network(instance, "a ranking of mappings without a plan")
        if complaints := list(open_design(instance)):
            raise InstanceError(f"{instance.place}: {text}" for text in complaints)
        question = instance
        family, uplinks, _ = cheapest_design(instance, None, _fastest_mapping)
    context = context_of(family)

    def ranked(variant: Instance) -> tuple[RankedMappings, ...]:
        return tuple(
            _ranked(variant, workload, family, context, uplinks, most)
            for workload in variant.workload
        )

    # the fastest mapping of each says whether it is in time
    rankings, _ = inside_first(
        question,
        ranked,
        lambda ranks: all(
            one.mappings and one.mappings[0].iteration_time_s <= one.bound_s for one in ranks
        ),
    )
    return MappingRanking(
        instance=InstanceId(name=instance.name, sha256=instance.sha256),
        design=design_of(family, uplinks),
        workloads=rankings,
    )


def _fastest_mapping(
    question: Instance, workload: Workload, family: Family, uplinks: int
) -> WorkloadPlan | None:
    ranked = _ranked(question, workload, family, context_of(family), uplinks, 1)
    return next(iter(ranked.mappings), None)


def _ranked(
    question: Instance,
    workload: Workload,
    family: Family,
    context: Context,
    uplinks: int,
    most: int,
) -> RankedMappings:
    """The fastest mappings of a workload on a network."""
    gpu = question.cluster.gpu
    choices, _ = every_mapping(workload, family.gpus)
    if not len(choices):
        raise InstanceError(f"{question.place}: {no_split(question, workload)}")
    fit = choices.take(memory_bytes(workload, choices) <= gpu.usable_bytes)
    pool = in_orders(place(workload, gpu, family.hb, context.site, fit), context.discipline)
    times = pool.mean_s(context, uplinks)
    fastest: list[int] = []
    seen: set[tuple[int, ...]] = set()
    keys = [field.name for field in fields(Mappings) if field.name != "outermost"]
    # rows of one mapping differ in placement and order alone: its fastest comes first, the others
    # are passed over
    for row in np.argsort(times, kind="stable"):
        key = tuple(int(getattr(pool.mappings, name)[row]) for name in keys)
        if key not in seen:
            seen.add(key)
            fastest.append(int(row))
        if len(fastest) == most:
            break
    # each is written out beside no more than the others
    told = pool.take(np.array(fastest, dtype=np.int64))
    return RankedMappings(
        name=workload.name,
        bound_s=allowed_s(question, family, uplinks, workload),
        listed=len(choices),
        fitting=len(fit),
        mappings=tuple(
            run_on(question, family, uplinks, workload, told, row) for row in range(len(told))
        ),
    )


def evaluate_instance(
    instance: Instance | str | Path,
    design: Design | None = None,
    mappings: Sequence[MappingChoice] | None = None,
) -> Evaluation:
    """Evaluate one design and one mapping for each workload.

    What has no key of its own follows: the cheapest wiring and optics of the pinned network, within
    the limits if any are, and the fastest placement of the pinned mapping. Where `cp` is left out,
    it follows from TP, PP and DP, or is 1 where these are not all given. Bounds and memory are
    reported, not enforced.

    Parameters
    ----------
    instance
        The question, or the file that holds it.
    design
        What is built, as in a plan of this instance; None where the instance leaves a single
        choice.
    mappings
        One for each workload, in the instance's order; None where the instance leaves a single
        choice.

    Raises
    ------
    InstanceError
        When a choice is open, with the keys to pin, or when nothing fits.

    Examples
    --------
    >>> import coopt
    >>> instance = coopt.load("instances/tiny-64.toml")
    >>> plan = coopt.solve(instance)
    >>> slower = plan.workloads[0].mapping.model_copy(update={"recompute": "full"})
    >>> again = coopt.evaluate(instance, plan.design, [slower])
    >>> again.workloads[0].iteration_time_s > plan.workloads[0].iteration_time_s
    True
    """
    instance = instance_of(instance)
    require_one_network(instance, "evaluate")
    workloads = pinned(instance, mappings)
    complaints = [] if design else list(open_design(instance))
    gpus = design.gpus if design else instance.cluster.most_gpus
    open_keys = [text for workload in workloads for text in open_mapping(workload, gpus)]
    if (
        open_keys
        and not complaints
        and all(len(every_mapping(workload, gpus)[0]) for workload in workloads)
    ):
        open_keys.append(
            "to rank the mappings that are left open on this network, use `coopt evaluate"
            " --mappings 10`"
        )
    complaints += open_keys
    if complaints:
        raise InstanceError(f"{instance.place}: {text}" for text in complaints)
    pinned_question = instance.model_copy(update={"workload": workloads})
    family, uplinks, cost = cheapest_design(pinned_question, design, _fastest_run)
    built_design = design_of(family, uplinks)
    plans, _ = inside_first(
        pinned_question,
        lambda variant: [
            _fastest_run(variant, workload, family, uplinks) for workload in variant.workload
        ],
        lambda runs: all(run is not None and run.iteration_time_s <= run.bound_s for run in runs),
    )
    runs = [run for run in plans if run is not None]
    if len(runs) < len(plans):
        workload = next(
            workload for workload, run in zip(workloads, plans, strict=True) if run is None
        )
        held = held_by(instance, workload)
        raise InstanceError(
            f"{instance.place}: workload {workload.name!r}: its degrees do not fill the"
            f" {family.active} active GPUs of each {family.hb.name}"
            f"{f' with {both(held)}' if held else ''}, needs degrees with divisors whose product is"
            f" {family.active}"
        )
    return Evaluation(
        instance=InstanceId(name=instance.name, sha256=instance.sha256),
        design=built_design,
        cost=cost,
        workloads=tuple(runs),
        limits=tuple(limit_checks(instance, built_design, cost, runs)),
    )


def _fastest_run(
    instance: Instance, workload: Workload, family: Family, uplinks: int
) -> WorkloadPlan | None:
    """How a workload runs with its fastest placement; None where nothing of its mapping fills the
    domains.
    """
    context = context_of(family)
    choices, _ = every_mapping(workload, family.gpus)
    pool = in_orders(
        place(workload, instance.cluster.gpu, family.hb, context.site, choices), context.discipline
    )
    if not len(pool):
        return None
    row, _ = fastest_row(pool, context, uplinks)
    return run_on(instance, family, uplinks, workload, pool, row)
