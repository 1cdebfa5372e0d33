"""Answer a partition: an island for each workload at the least cost of all together, or what stands against it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Literal

import numpy as np

from coopt.columns.islands.listing import Market
from coopt.columns.islands.options import has_island, list_options
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
from coopt.solving.partition.choice import Settled, best_choice, over_limits
from coopt.solving.runs import Counted, Run, StoppedError
from formulations.partition_data import Ints, PartitionData

FORMULATION: Literal["totals"] = "totals"

MORE = 4  # times the GPUs there are, within which the least number that would do is looked for
CLOSE = 1e-4  # of a bound on time, within which the least that would do is found


def answer_partition(run: Run) -> Plan:
    """The plan of a run whose instance is a partition."""
    instance = run.instance
    run.formulation = FORMULATION
    variants = _variants(run)
    missing = np.setdiff1d(np.arange(len(instance.workload)), variants[0].options.workload)
    if len(missing):
        return infeasible(run, partial(no_island, run, missing.tolist()))
    table = run.log.table
    assert table is not None
    run.tell("build", f"{table.enumerated:,} islands enumerated, {table.kept:,} kept")
    run.tell("solve", f"formulation {FORMULATION!r} handed to {run.backend.name}")
    choice = best_choice(
        run,
        [(one.data, partial(_allowed, one)) for one in variants],
        lambda: over_limits(
            run, [one.data for one in variants], lambda: [_with_more_gpus(run, one) for one in variants]
        ),
    )
    return choice if isinstance(choice, Plan) else _plan(run, variants[choice.offer], choice)


def _variants(run: Run) -> list[Variant]:
    """The islands that workloads may have, for each optic that a core may have."""
    found = []
    for asked in with_core_optics(run.instance):
        options = list_options(
            asked, lambda w: run.tell("columns", f"islands of {w.name}"), run.check_clock, run.listed
        )
        found.append(Variant(instance=asked, options=options, data=partition_data(asked, options)))
    gated = sum((Counter(one.options.gated) for one in found), Counter[str]())
    run.log.table = Counted(gated=dict(gated), kept=sum(one.options.kept for one in found))
    run.log.columns_s = run.elapsed_s()
    return found


def _built(variant: Variant, chosen: Ints) -> list[tuple[Family, int]]:
    """The chosen islands as families with their uplinks."""
    market, islands = Market(instance=variant.instance), variant.options.islands
    return [(market.family(islands, row), int(islands.uplinks[row])) for row in chosen.tolist()]


def _allowed(variant: Variant, chosen: Ints) -> bool:
    """Whether islands keep the limits when they are written out."""
    built = _built(variant, chosen)
    return island_limits(variant.instance, [family for family, _ in built], island_bill(variant.instance, built))


def _plan(run: Run, variant: Variant, choice: Settled) -> Plan:
    instance, built = variant.instance, _built(variant, choice.rows)
    cost = island_bill(instance, built)
    claim = claim_of(instance.objective.minimize, cost.of(instance.objective.minimize), choice.bound)
    pairs = list(zip(instance.workload, built, strict=True))
    islands = {workload.name: family for workload, (family, _) in pairs}
    return answered(
        run,
        ending(run, choice.outcome, claim),
        claim,
        cost=cost,
        parts=tuple(island_part(instance, *one, (workload,), name=workload.name) for workload, one in pairs),
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


def no_island(run: Run, missing: list[int]) -> tuple[str, ...]:
    """Workloads that meet their bound on no island."""
    return tuple(_alone(run, run.instance.workload[w]) for w in missing)


def _alone(run: Run, workload: Workload) -> str:
    instance, gpus = run.instance, run.instance.cluster.gpus[0]
    sizes = "" if workload.gpus is None else " of a size its gpus list"
    where = f"workload {workload.name!r}: no island of up to {gpus:,} GPUs{sizes}"
    short = missing_optic(instance, lambda asked: _serves(run, asked, workload, workload.bound_s))
    if short is not None:
        return f"{where} meets its bound of {workload.bound_s:.6g} s: {short}"
    try:
        least = _least_bound_s(run, workload)
    except StoppedError:
        return f"{where} meets its bound of {workload.bound_s:.6g} s, and there was no time to find one that would do"
    if least is None:
        return (
            f"{where} holds it: no mapping divides evenly and fits into memory, or no network joins its domains"
            f"{'' if core_switch(instance) is None else ' and has ports left for the core'}: "
            "needs another batch, wider mapping lists, more memory or other parts"
        )
    change = f"{least / workload.bound_s - 1:+.2%}"
    own = f", that is {workload.in_own_units(least)}" if workload.max_iteration_time_s is None else ""
    return (
        f"{where} meets its bound of {workload.bound_s:.6g} s: needs a bound of {rounded_up(least)} s ({change}){own} "
        "or more GPUs"
    )


def _least_bound_s(run: Run, workload: Workload) -> float | None:
    """A bound that some island meets, hardly longer than the least there is; None where none helps."""
    if not _serves(run, run.instance, workload, workload.bound_s * 2.0**40):
        return None
    late, enough = workload.bound_s, 2 * workload.bound_s
    while not _serves(run, run.instance, workload, enough):
        late, enough = enough, 2 * enough
    while enough > late * (1 + CLOSE):
        middle = (late * enough) ** 0.5
        if _serves(run, run.instance, workload, middle):
            enough = middle
        else:
            late = middle
    return enough


def _serves(run: Run, instance: Instance, workload: Workload, bound_s: float) -> bool:
    slower = {"max_iteration_time_s": bound_s, "min_tokens_per_s": None, "train_days": None, "train_tokens": None}
    alone = instance.model_copy(update={"workload": (workload.model_copy(update=slower),)})
    return has_island(alone, alone.workload[0], run.check_clock)


def _with_more_gpus(run: Run, variant: Variant) -> PartitionData:
    """The problem with more GPUs than there are."""
    cluster = variant.instance.cluster.model_copy(update={"gpus": (MORE * run.instance.cluster.gpus[0],)})
    wider = variant.instance.model_copy(update={"cluster": cluster})
    return partition_data(wider, list_options(wider, lambda _: None, run.check_clock))
