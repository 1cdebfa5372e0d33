"""Answer a partition: an island for each workload at the least cost of all together, or what stands
against it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Literal

import numpy as np

from coopt.columns.islands.listing import Market
from coopt.columns.islands.options import ListedIslands, list_options, within_bounds
from coopt.instance.couplings import Site
from coopt.instance.schema import Instance
from coopt.instance.workload import Workload
from coopt.network.core import core_switch, cores_of, with_core_optics
from coopt.network.family import Family
from coopt.network.island_bills import island_bill, island_limits, part_cost
from coopt.network.parts import electricity_of
from coopt.network.plan_networks import design_of
from coopt.plan.couplings import Couplings, Part
from coopt.plan.schema import Plan
from coopt.solving.days import fastest_on
from coopt.solving.explain import missing_optic, rounded_up
from coopt.solving.outcome import answered, claim_of, ending, infeasible
from coopt.solving.partition.arrays import Variant, partition_data
from coopt.solving.partition.choice import BestChoice, best_choice, over_limits
from coopt.solving.partition.parts import scaled
from coopt.solving.runs import (
    Counted,
    Method,
    NamedPrograms,
    Program,
    Run,
    StoppedError,
    no_programs,
)
from formulations.partition import FORMULATIONS, build
from formulations.partition_data import Ints, PartitionData

FORMULATION: Literal["totals"] = "totals"

GPU_FACTOR = (
    4  # times the GPUs there are, within which the least number that would do is looked for
)
CLOSE = 1e-4  # of a bound on time, within which the least that would do is found


def answer_partition(run: Run) -> Plan:
    """The plan of a run whose instance is a partition."""
    instance = run.instance
    run.formulation = FORMULATION
    variants = _variants(run)
    unserved = np.setdiff1d(np.arange(len(instance.workload)), variants[0].options.workload)
    if len(unserved):
        return infeasible(run, partial(no_island, run, unserved.tolist()))
    table = run.log.table
    assert table is not None
    run.tell("build", f"{table.enumerated:,} islands enumerated, {table.kept:,} kept")
    run.tell("solve", f"formulation {FORMULATION!r} handed to {run.backend.name}")
    choice = best_choice(
        run,
        [(variant.data, partial(_keeps_limits, variant)) for variant in variants],
        lambda: over_limits(
            run,
            [variant.data for variant in variants],
            lambda: [_with_more_gpus(run, variant) for variant in variants],
        ),
    )
    return choice if isinstance(choice, Plan) else _plan(run, variants[choice.offer], choice)


def _variants(run: Run) -> list[Variant]:
    """The islands that workloads may have, for each optic that a core may have."""
    variants, listed = [], run.listed or ListedIslands()
    for question in with_core_optics(run.instance):
        options = list_options(
            question, lambda w: run.tell("columns", f"islands of {w.name}"), run.check_clock, listed
        )
        variants.append(
            Variant(instance=question, options=options, data=partition_data(question, options))
        )
    gated = sum((Counter(variant.options.gated) for variant in variants), Counter[str]())
    run.log.table = Counted(
        gated=dict(gated), kept=sum(variant.options.kept for variant in variants)
    )
    run.log.columns_s = run.elapsed_s()
    return variants


def _networks(variant: Variant, rows: Ints) -> list[tuple[Family, int]]:
    """The chosen islands as families with their uplinks."""
    market, islands = Market(instance=variant.instance), variant.options.islands
    return [(market.family(islands, row), int(islands.uplinks[row])) for row in rows.tolist()]


def _keeps_limits(variant: Variant, rows: Ints) -> bool:
    """Whether islands keep the limits when they are written out."""
    networks = _networks(variant, rows)
    return island_limits(
        variant.instance,
        [family for family, _ in networks],
        island_bill(variant.instance, networks),
    )


def _plan(run: Run, variant: Variant, choice: BestChoice) -> Plan:
    instance, networks = variant.instance, _networks(variant, choice.rows)
    cost = island_bill(instance, networks)
    claim = claim_of(
        instance.objective.minimize, cost.of(instance.objective.minimize), choice.bound
    )
    pairs = list(zip(instance.workload, networks, strict=True))
    islands = {workload.name: family for workload, (family, _) in pairs}
    return answered(
        run,
        ending(run, choice.outcome, claim),
        claim,
        cost=cost,
        parts=tuple(
            island_part(instance, *network, (workload,), name=workload.name)
            for workload, network in pairs
        ),
        couplings=Couplings(cores=cores_of(instance, [(None, None, islands)])),
    )


def island_part(
    instance: Instance,
    family: Family,
    uplinks: int,
    workloads: Sequence[Workload],
    *,
    name: str,
    site: Site | None = None,
    year: float | None = None,
) -> Part:
    """An island where and when it stands, with its bill at the prices of one unit."""
    cost = part_cost(instance, electricity_of(instance.objective, site), family, uplinks)
    return Part(
        name=name,
        site=None if site is None else site.name,
        phase=year,
        design=design_of(family, uplinks),
        workloads=tuple(fastest_on(instance, family, uplinks, workload) for workload in workloads),
        cost=cost,
        power_w=cost.power_w,
    )


def no_island(run: Run, workloads: list[int]) -> tuple[str, ...]:
    """Workloads that meet their bound on no island."""
    return tuple(_why_no_island(run, run.instance.workload[w]) for w in workloads)


def _why_no_island(run: Run, workload: Workload) -> str:
    instance, gpus = run.instance, run.instance.cluster.most_gpus
    sizes = "" if workload.gpus is None else " of a size its gpus list"
    subject = f"workload {workload.name!r}: no island of up to {gpus:,} GPUs{sizes}"
    missing_part = missing_optic(
        instance, lambda question: _served(run, question, workload)(workload.bound_s)
    )
    if missing_part is not None:
        return f"{subject} meets its bound of {workload.bound_s:.6g} s: {missing_part}"
    try:
        bound_s = _least_bound_s(run, workload)
    except StoppedError:
        return (
            f"{subject} meets its bound of {workload.bound_s:.6g} s, and there was no time to find"
            " one that would do"
        )
    if bound_s is None:
        return (
            f"{subject} holds it: no mapping divides evenly and fits into memory, or no network"
            " joins its domains"
            f"{'' if core_switch(instance) is None else ' and has ports left for the core'}:"
            " needs another batch, wider mapping lists, more memory or other parts"
        )
    change = f"{bound_s / workload.bound_s - 1:+.2%}"
    own_units = (
        f", that is {workload.in_own_units(bound_s)}"
        if workload.max_iteration_time_s is None
        else ""
    )
    return (
        f"{subject} meets its bound of {workload.bound_s:.6g} s: needs a bound of"
        f" {rounded_up(bound_s)} s ({change}){own_units} or more GPUs"
    )


def _least_bound_s(run: Run, workload: Workload) -> float | None:
    """A bound that some island meets, hardly longer than the least there is; None where none
    helps.
    """
    # A bound this long is as good as none: what does not meet it meets no bound.
    if not _served(run, run.instance, workload, 2.0**40)(workload.bound_s * 2.0**40):
        return None
    too_short, long_enough = workload.bound_s, 2 * workload.bound_s
    while not (is_served := _served(run, run.instance, workload, long_enough / workload.bound_s))(
        long_enough
    ):
        too_short, long_enough = long_enough, 2 * long_enough
    while long_enough > too_short * (1 + CLOSE):
        # The geometric mean leaves the root of the ratio on either side, and the ratio is what
        # `CLOSE` bounds.
        middle = (too_short * long_enough) ** 0.5
        if is_served(middle):
            long_enough = middle
        else:
            too_short = middle
    return long_enough


def _served(
    run: Run, instance: Instance, workload: Workload, slower: float = 1.0
) -> Callable[[float], bool]:
    """Whether a workload has an island in a question at bounds up to so many times its own."""
    longer = {"max_iteration_time_s": workload.bound_s * slower}
    alone = workload.model_copy(
        update=longer | dict.fromkeys(("min_tokens_per_s", "train_days", "train_tokens"))
    )
    return within_bounds(instance.model_copy(update={"workload": (alone,)}), alone, run.check_clock)


def _with_more_gpus(run: Run, variant: Variant) -> PartitionData:
    """The problem with more GPUs than there are."""
    cluster = variant.instance.cluster.model_copy(
        update={"gpus": (GPU_FACTOR * run.instance.cluster.most_gpus,)}
    )
    wider = variant.instance.model_copy(update={"cluster": cluster})
    return partition_data(wider, list_options(wider, lambda _: None, run.check_clock))


def partition_programs(run: Run) -> NamedPrograms:
    """All islands of all workloads, in a program for each optic that a core may have."""
    small = []
    for asked in with_core_optics(run.instance):
        options = list_options(asked, lambda _: None, run.check_clock)
        if len(set(options.workload.tolist())) < len(run.instance.workload):
            return no_programs
        small.append(scaled(partition_data(asked, options)))
    return lambda name: (
        Program(model=build(data, FORMULATIONS[name]), unit=unit) for data, unit in small
    )


PARTITION = Method(
    plan=answer_partition, programs=partition_programs, formulations=lambda _: tuple(FORMULATIONS)
)
