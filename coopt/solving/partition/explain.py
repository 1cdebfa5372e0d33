"""Why no partition answers an instance: sentences that name the limit and how far it must give."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from coopt.columns.islands.options import list_options
from coopt.instance.schema import Instance, Solver
from coopt.instance.workload import Workload
from coopt.solving.backend import backend_of
from coopt.solving.explain import missing_optic, rounded_up
from coopt.solving.partition.arrays import Variant, partition_data
from coopt.solving.partition.search import search_partition
from coopt.solving.partition.valuation import Worth, worth
from coopt.solving.runs import Run, StoppedError
from formulations.partition_data import Floats, Ints, PartitionData

GPUS = "cluster.gpus"
MORE = 4  # times the GPUs there are, within which the least number that would do is looked for
UNTRIED = "no choice of islands keeps all limits, and there was no time to try every limit that may give"
GAP = 1e-6  # of the least that would do
CLOSE = 1e-4  # of a bound on time, within which the least that would do is found


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
