"""Answer a partition: an island for each workload at the least cost of all together, or what stands against it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Literal

import numpy as np

from coopt.columns.context import context_of
from coopt.columns.islands.listing import Market
from coopt.columns.islands.options import list_options
from coopt.columns.pools import timely_pool
from coopt.instance.schema import Instance, Solver
from coopt.instance.workload import Workload
from coopt.network.family import Family
from coopt.network.island_bills import core_of, island_bill, island_limits, part_cost, with_core_optics
from coopt.network.plan_networks import design_of
from coopt.plan.couplings import Couplings, Part, SharedCore
from coopt.plan.schema import Plan, WorkloadPlan
from coopt.solving.arrays import fastest_row, workload_plan
from coopt.solving.backend import backend_of
from coopt.solving.explain import missing_optic, rounded_up
from coopt.solving.highs import Outcome
from coopt.solving.outcome import answered, claim_of, ending, infeasible, unknown
from coopt.solving.partition.arrays import Variant, Worth, partition_data, worth
from coopt.solving.partition.search import Partition, search_partition
from coopt.solving.runs import Counted, Run, StoppedError
from formulations.partition_data import Floats, Ints, PartitionData

FORMULATION: Literal["totals"] = "totals"

GPUS = "cluster.gpus"
MORE = 4  # times the GPUs there are, within which the least number that would do is looked for
UNTRIED = "no choice of islands keeps all limits, and there was no time to try every limit that may give"
GAP = 1e-6  # of the least that would do
CLOSE = 1e-4  # of a bound on time, within which the least that would do is found


def answer_partition(run: Run) -> Plan:
    """The plan of a run whose instance is a partition."""
    instance = run.instance
    run.formulation = FORMULATION
    variants = _variants(run)
    missing = np.setdiff1d(np.arange(len(instance.workload)), variants[0].options.workload)
    if len(missing):
        return infeasible(run, no_island(run, missing.tolist()) if run.reasons else ())
    table = run.log.table
    assert table is not None
    run.tell("build", f"{table.enumerated:,} islands enumerated, {table.kept:,} kept")
    run.tell("solve", f"formulation {FORMULATION!r} handed to {run.backend.name}")
    tried = [(variant, _searched(run, variant)) for variant in variants]
    possible = [ended for _, ended in tried if ended.outcome != "infeasible"]
    if not possible:
        return infeasible(run, over_limits(run, variants))
    bound, found = min(ended.bound for ended in possible), [pair for pair in tried if pair[1].worth is not None]
    outcome: Outcome = next((ended.outcome for ended in possible if ended.outcome != "optimal"), "optimal")
    assert outcome in ("optimal", "time limit", "interrupted"), outcome
    if not found:
        return unknown(run, outcome, bound)
    variant, best = min(found, key=lambda pair: pair[1].worth.objective if pair[1].worth else math.inf)
    assert best.chosen is not None, "what is worth something was chosen"
    return _plan(run, variant, best.chosen, outcome, bound)


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


def _searched(run: Run, variant: Variant) -> Partition:
    ended = search_partition(
        variant.data,
        formulation=FORMULATION,
        gap=run.instance.solver.gap,
        backend=run.backend,
        deadline=run.deadline,
        allowed=lambda rows: _allowed(variant, rows),
        on_standing=run.tell_standing,
    )
    run.log.searches.append(ended)
    return ended


def _built(variant: Variant, chosen: Ints) -> list[tuple[Family, int]]:
    """The chosen islands as families with their uplinks."""
    market, islands = Market(instance=variant.instance), variant.options.islands
    return [(market.family(islands, row), int(islands.uplinks[row])) for row in chosen.tolist()]


def _allowed(variant: Variant, chosen: Ints) -> bool:
    """Whether islands keep the limits when they are written out."""
    built = _built(variant, chosen)
    return island_limits(variant.instance, [family for family, _ in built], island_bill(variant.instance, built))


def _plan(run: Run, variant: Variant, chosen: Ints, outcome: Outcome, bound: float) -> Plan:
    instance, built = variant.instance, _built(variant, chosen)
    cost = island_bill(instance, built)
    claim = claim_of(instance.objective.minimize, cost.of(instance.objective.minimize), bound)
    pairs = list(zip(instance.workload, built, strict=True))
    core = core_of(instance, {workload.name: family for workload, (family, _) in pairs})
    return answered(
        run,
        ending(run, outcome, claim),
        claim,
        cost=cost,
        parts=tuple(_part(run, instance, workload, *one) for workload, one in pairs),
        couplings=Couplings(cores=() if core is None else (SharedCore(core=core),)),
    )


def _part(run: Run, instance: Instance, workload: Workload, family: Family, uplinks: int) -> Part:
    """An island with its bill at the prices of one unit."""
    cost = part_cost(instance, instance.objective, family, uplinks)
    return Part(
        name=workload.name,
        design=design_of(family, uplinks),
        workloads=(_workload(run, workload, family, uplinks),),
        cost=cost,
        power_w=cost.power_w,
    )


def _workload(run: Run, workload: Workload, family: Family, uplinks: int) -> WorkloadPlan:
    """The fastest mapping on an island, recomputed from what was decided."""
    gpu, context = run.instance.cluster.gpu, context_of(family)
    pool = timely_pool(workload, gpu, family.hb, context)
    row, time_s = fastest_row(pool, context, uplinks)
    assert time_s <= workload.bound_s, f"workload {workload.name!r} is late on its island"
    return workload_plan(pool, gpu, context, uplinks, row)


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
            f"{'' if instance.sharing.core is None else ' and has ports left for the core'}: "
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
    late, enough = workload.bound_s, workload.bound_s
    for _ in range(40):
        enough *= 2
        if _serves(run, run.instance, workload, enough):
            break
        late = enough
    else:
        return None
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
    return list_options(alone, lambda _: None, run.check_clock).kept > 0


def over_limits(run: Run, variants: Sequence[Variant]) -> tuple[str, ...]:
    """Every workload has islands, and no choice of them keeps all limits: what each limit alone would have to be."""
    found: list[str] = []
    datas = [variant.data for variant in variants]
    try:
        for sentence in chain(_capped(run, variants), _budgeted(run, datas), _counted(run, datas)):
            found.append(sentence)
        return tuple(found) or (_together(run, datas),)
    except StoppedError:
        return (*found, UNTRIED)


def _together(run: Run, datas: Sequence[PartitionData]) -> str:
    """No limit alone is to blame."""
    free = least_choice(run, [replace(data, limits=(), budget=None, kinds=()) for data in datas])
    assert free is not None, "without limits every workload has its cheapest island"
    number, chosen, whole = free
    takes = [f"{name} {rounded_up(use)}" for name, use in worth(datas[number], chosen).used.items()]
    takes.append(f"limits.capex_usd {rounded_up(whole.capex_usd)}")
    return (
        "no choice of islands keeps all limits, and none of them alone is to blame: the cheapest without limits takes "
        f"{', '.join(takes)}; needs several of them looser"
    )


def _capped(run: Run, variants: Sequence[Variant]) -> Iterator[str]:
    """GPUs, power and racks: the least with which every other limit holds."""
    for number, limit in enumerate(variants[0].data.limits):
        gpus = limit.name == GPUS
        wider = [_more_gpus(run, variant) if gpus else variant.data for variant in variants]
        found = least_choice(run, [counting(data, number) for data in wider])
        if found is not None:
            least = found[2].objective
            yield least_sentence(limit.name, limit.cap, f"{least:,.0f}" if gpus else rounded_up(least), least)


def counting(data: PartitionData, number: int) -> PartitionData:
    """The problem of least use of a limited resource, by options and by core switches, whatever is paid."""
    mine = data.limits[number]
    others = tuple(one for one in data.limits if one is not mine)
    return with_other(replace(data, limits=others, weight=0.0), mine.use, mine.core)


def with_other(data: PartitionData, use: Floats, core: tuple[float, ...]) -> PartitionData:
    """The problem with another objective beside capex."""
    uses = core or (0.0,) * len(data.cores)
    return replace(data, other=use, cores=tuple(replace(c, other=w) for c, w in zip(data.cores, uses, strict=True)))


def _budgeted(run: Run, datas: Sequence[PartitionData]) -> Iterator[str]:
    """The least bill with which every other limit holds."""
    budget = datas[0].budget
    if budget is not None:
        found = least_choice(run, [replace(with_other(d, 0.0 * d.other, ()), budget=None, weight=1.0) for d in datas])
        if found is not None:
            yield least_sentence("limits.capex_usd", budget, rounded_up(found[2].capex_usd), found[2].capex_usd)


def _counted(run: Run, datas: Sequence[PartitionData]) -> Iterator[str]:
    """The fewest products of a kind with which every other limit holds."""
    for number, kind in enumerate(datas[0].kinds):
        for most in range(kind.most + 1, len(kind.products) + 1):
            if least_choice(run, [_looser(data, number, most) for data in datas]) is not None:
                yield (f"sharing.most_products.{kind.name} = {kind.most}: with {most} every other limit can be kept")
                break


def _looser(data: PartitionData, number: int, most: int) -> PartitionData:
    """The problem with more products of a kind."""
    kinds = tuple(replace(kind, most=most) if n == number else kind for n, kind in enumerate(data.kinds))
    return replace(data, kinds=kinds)


def _more_gpus(run: Run, variant: Variant) -> PartitionData:
    """The problem with more GPUs than there are."""
    cluster = variant.instance.cluster.model_copy(update={"gpus": (MORE * run.instance.cluster.gpus[0],)})
    wider = variant.instance.model_copy(update={"cluster": cluster})
    return partition_data(wider, list_options(wider, lambda _: None, run.check_clock))


def least_choice(run: Run, datas: Sequence[PartitionData]) -> tuple[int, Ints, Worth] | None:
    """The best choice of all problems, with the number of the one it is of; None where there is none.

    Raises
    ------
    StoppedError
        When a search ended without a proof.
    """
    best: tuple[int, Ints, Worth] | None = None
    backend = backend_of(Solver(gap=GAP), run.backend.cancel)
    for number, data in enumerate(datas):
        found = search_partition(data, gap=GAP, backend=backend, deadline=run.deadline)
        if found.outcome not in ("optimal", "infeasible"):
            raise StoppedError(found.outcome)
        chosen, whole = found.chosen, found.worth
        if chosen is not None and whole is not None and (best is None or whole.objective < best[2].objective):
            best = number, chosen, whole
    return best


def least_sentence(name: str, cap: float, shown: str, least: float) -> str:
    return (
        f"{name} = {cap:,.10g}: needs at least {shown} ({least / cap - 1:+.2%}), "
        "with which every other limit and bound can be met"
    )
