"""Why no partition answers an instance: sentences that name the limit and how far it must give."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from coopt.columns.islands.options import list_options
from coopt.instance.workload import Workload
from coopt.solving.explain import rounded_up
from coopt.solving.partition.arrays import partition_data
from coopt.solving.partition.search import Partition, search_partition
from coopt.solving.runs import Run, StoppedError
from formulations.partition_data import Floats, PartitionData

GPUS = "cluster.gpus"
MORE = 4  # times the GPUs there are, within which the least number that would do is looked for
UNTRIED = "no choice of islands keeps all limits, and there was no time to try every limit that may give"
CLOSE = 1e-4  # of a bound on time, within which the least that would do is found


def no_island(run: Run, missing: list[int]) -> tuple[str, ...]:
    """Workloads that meet their bound on no island."""
    return tuple(_alone(run, run.instance.workload[w]) for w in missing)


def _alone(run: Run, workload: Workload) -> str:
    instance, gpus = run.instance, run.instance.cluster.gpus[0]
    sizes = "" if workload.gpus is None else " of a size its gpus list"
    where = f"workload {workload.name!r}: no island of up to {gpus:,} GPUs{sizes}"
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
        if _serves(run, workload, enough):
            break
        late = enough
    else:
        return None
    while enough > late * (1 + CLOSE):
        middle = (late * enough) ** 0.5
        if _serves(run, workload, middle):
            enough = middle
        else:
            late = middle
    return enough


def _serves(run: Run, workload: Workload, bound_s: float) -> bool:
    slower = {"max_iteration_time_s": bound_s, "min_tokens_per_s": None, "train_days": None, "train_tokens": None}
    alone = run.instance.model_copy(update={"workload": (workload.model_copy(update=slower),)})
    return list_options(alone, lambda _: None, run.check_clock).kept > 0


def over_limits(run: Run, data: PartitionData) -> tuple[str, ...]:
    """Every workload has islands, and no choice of them keeps all limits: what each limit alone would have to be."""
    found: list[str] = []
    try:
        for sentence in chain(_capped(run, data), _budgeted(run, data), _counted(run, data)):
            found.append(sentence)
        return tuple(found) or (_together(run, data),)
    except StoppedError:
        return (*found, UNTRIED)


def _together(run: Run, data: PartitionData) -> str:
    """No limit alone is to blame."""
    free = _searched(run, replace(data, limits=(), budget=None, kinds=()))
    assert free.worth is not None, "without limits every workload has its cheapest island"
    assert free.chosen is not None, "what is worth something was chosen"
    switches = free.worth.core_switches
    sums = {limit.name: float(limit.use[free.chosen].sum()) + limit.core * switches for limit in data.limits}
    takes = [f"{name} {rounded_up(use)}" for name, use in sums.items()]
    takes.append(f"limits.capex_usd {rounded_up(free.worth.capex_usd)}")
    return (
        "no choice of islands keeps all limits, and none of them alone is to blame: the cheapest without limits takes "
        f"{', '.join(takes)}; needs several of them looser"
    )


def _capped(run: Run, data: PartitionData) -> Iterator[str]:
    """GPUs, power and racks: the least with which every other limit holds."""
    for limit in data.limits:
        wider = _more_gpus(run) if limit.name == GPUS else data
        mine = next(one for one in wider.limits if one.name == limit.name)
        others = tuple(one for one in wider.limits if one is not mine)
        found = _searched(run, _counting(replace(wider, limits=others), mine.use, mine.core)).worth
        if found is not None:
            least = found.objective
            shown = f"{least:,.0f}" if limit.name == GPUS else rounded_up(least)
            yield _sentence(limit.name, limit.cap, shown, least)


def _counting(data: PartitionData, use: Floats, core: float) -> PartitionData:
    """The problem of least use, by options and by core switches, whatever is paid."""
    shared = None if data.core is None else replace(data.core, other=core)
    return replace(data, weight=0.0, other=use, core=shared)


def _budgeted(run: Run, data: PartitionData) -> Iterator[str]:
    """The least bill with which every other limit holds."""
    if data.budget is not None:
        found = _searched(run, replace(_counting(data, 0.0 * data.other, 0.0), budget=None, weight=1.0)).worth
        if found is not None:
            yield _sentence("limits.capex_usd", data.budget, rounded_up(found.capex_usd), found.capex_usd)


def _counted(run: Run, data: PartitionData) -> Iterator[str]:
    """The fewest products of a kind with which every other limit holds."""
    for kind in data.kinds:
        for most in range(kind.most + 1, len(kind.products) + 1):
            looser = tuple(replace(one, most=most) if one is kind else one for one in data.kinds)
            if _searched(run, replace(data, kinds=looser)).worth is not None:
                yield (f"sharing.most_products.{kind.name} = {kind.most}: with {most} every other limit can be kept")
                break


def _more_gpus(run: Run) -> PartitionData:
    """The problem with more GPUs than there are."""
    cluster = run.instance.cluster.model_copy(update={"gpus": (MORE * run.instance.cluster.gpus[0],)})
    wider = run.instance.model_copy(update={"cluster": cluster})
    return partition_data(wider, list_options(wider, lambda _: None, run.check_clock))


def _searched(run: Run, data: PartitionData) -> Partition:
    """The choice of least objective, if any; a search that ends without one or a proof is a StoppedError."""
    found = search_partition(data, gap=1e-6, deadline=run.deadline, cancel=run.backend.cancel)
    if found.outcome not in ("optimal", "infeasible"):
        raise StoppedError(found.outcome)
    return found


def _sentence(name: str, cap: float, shown: str, least: float) -> str:
    return (
        f"{name} = {cap:,.10g}: the least with which every other limit and bound is met is {shown} "
        f"({least / cap - 1:+.2%})"
    )
