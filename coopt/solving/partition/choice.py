"""The best choice among all that workloads are offered, or what each limit alone would have to be for one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from coopt.instance.schema import Solver
from coopt.plan.schema import Plan
from coopt.solving.backend import backend_of
from coopt.solving.explain import rounded_up
from coopt.solving.highs import Outcome
from coopt.solving.outcome import infeasible, unknown
from coopt.solving.partition.arrays import Worth, worth
from coopt.solving.partition.search import Allowed, Partition, search_partition
from coopt.solving.runs import Run, StoppedError
from formulations.partition_data import Floats, Ints, PartitionData

UNTRIED = "no choice of islands keeps all limits, and there was no time to try every limit that may give"
GAP = 1e-6  # of the least that would do


class Settled(NamedTuple):
    """An option for each workload from the offer of this number, why the search stopped and what is proven."""

    offer: int
    rows: Ints
    outcome: Outcome
    bound: float


def best_choice(
    run: Run, offers: Sequence[tuple[PartitionData, Allowed]], why_not: Callable[[], tuple[str, ...]]
) -> Settled | Plan:
    """The choice of least objective in all offers; a plan that says why where there is none.

    Parameters
    ----------
    why_not
        The reasons why no offer has a choice that keeps all limits.
    """
    tried = [_searched(run, *offer) for offer in offers]
    possible = [ended for ended in tried if ended.outcome != "infeasible"]
    if not possible:
        return infeasible(run, why_not)
    bound = min(ended.bound for ended in possible)
    outcome: Outcome = next((ended.outcome for ended in possible if ended.outcome != "optimal"), "optimal")
    values = [math.inf if ended.worth is None else ended.worth.objective for ended in tried]
    best = min(range(len(tried)), key=values.__getitem__)
    rows = tried[best].chosen
    if rows is not None:
        return Settled(best, rows, outcome, bound)
    assert outcome in ("time limit", "interrupted"), outcome
    return unknown(run, outcome, bound)


def _searched(run: Run, data: PartitionData, allowed: Allowed) -> Partition:
    """How the search of one offer ended, which the run keeps."""
    ended = search_partition(
        data,
        gap=run.instance.solver.gap,
        backend=run.backend,
        deadline=run.deadline,
        allowed=allowed,
        on_standing=run.tell_standing,
    )
    run.log.searches.append(ended)
    return ended


def over_limits(
    run: Run,
    datas: Sequence[PartitionData],
    with_more_gpus: Callable[[], Sequence[PartitionData]] | None = None,
) -> tuple[str, ...]:
    """Every workload has islands, and no choice of them keeps all limits: what each limit alone would have to be.

    Parameters
    ----------
    with_more_gpus
        The same offers where more GPUs than there are widen what islands may be.
    """
    plain = [replace(data, outlooks=()) for data in datas]
    found: list[str] = []
    try:
        for sentence in chain(_capped(run, plain, with_more_gpus), _budgeted(run, plain), _counted(run, plain)):
            found.append(sentence)
        return tuple(found) or (_together(run, plain),)
    except StoppedError:
        return (*found, UNTRIED)


def _together(run: Run, datas: Sequence[PartitionData]) -> str:
    """No limit alone is to blame."""
    free = _least_choice(run, [replace(data, limits=(), budget=None, kinds=()) for data in datas])
    assert free is not None, "without limits every workload has its cheapest island"
    number, chosen, whole = free
    takes = [f"{name} {rounded_up(use)}" for name, use in worth(datas[number], chosen).used.items()]
    takes.append(f"limits.capex_usd {rounded_up(whole.capex_usd)}")
    return (
        "no choice of islands keeps all limits, and none of them alone is to blame: the cheapest without limits takes "
        f"{', '.join(takes)}; needs several of them looser"
    )


def _capped(
    run: Run, datas: Sequence[PartitionData], with_more_gpus: Callable[[], Sequence[PartitionData]] | None
) -> Iterator[str]:
    """GPUs, power and racks: the least of each with which every other limit holds."""
    for number, limit in enumerate(datas[0].limits):
        gpus = limit.resource == "gpus"
        wider = with_more_gpus() if gpus and with_more_gpus is not None else datas
        found = _least_choice(run, [_counting(data, number) for data in wider])
        if found is not None:
            least = found[2].objective
            yield _sentence(limit.name, limit.cap, f"{least:,.0f}" if gpus else rounded_up(least), least)


def _counting(data: PartitionData, number: int) -> PartitionData:
    """The problem of least use of a limited resource, by options and by core switches, whatever is paid."""
    mine = data.limits[number]
    others = tuple(one for one in data.limits if one is not mine)
    return _with_other(replace(data, limits=others, weight=0.0), mine.use, mine.core)


def _with_other(data: PartitionData, use: Floats, core: tuple[float, ...]) -> PartitionData:
    """The problem with another objective beside capex."""
    uses = core or (0.0,) * len(data.cores)
    return replace(data, other=use, cores=tuple(replace(c, other=w) for c, w in zip(data.cores, uses, strict=True)))


def _budgeted(run: Run, datas: Sequence[PartitionData]) -> Iterator[str]:
    """The least bill with which every other limit holds."""
    budget = datas[0].budget
    if budget is not None:
        found = _least_choice(run, [replace(_with_other(d, 0.0 * d.other, ()), budget=None, weight=1.0) for d in datas])
        if found is not None:
            yield _sentence("limits.capex_usd", budget, rounded_up(found[2].capex_usd), found[2].capex_usd)


def _counted(run: Run, datas: Sequence[PartitionData]) -> Iterator[str]:
    """The fewest products of a kind with which every other limit holds."""
    for number, kind in enumerate(datas[0].kinds):
        for most in range(kind.most + 1, len(kind.products) + 1):
            if _least_choice(run, [_looser(data, number, most) for data in datas]) is not None:
                yield (f"sharing.most_products.{kind.name} = {kind.most}: with {most} every other limit can be kept")
                break


def _looser(data: PartitionData, number: int, most: int) -> PartitionData:
    """The problem with more products of a kind."""
    kinds = tuple(replace(kind, most=most) if n == number else kind for n, kind in enumerate(data.kinds))
    return replace(data, kinds=kinds)


def _least_choice(run: Run, datas: Sequence[PartitionData]) -> tuple[int, Ints, Worth] | None:
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


def _sentence(name: str, cap: float, shown: str, least: float) -> str:
    return (
        f"{name} = {cap:,.10g}: needs at least {shown} ({least / cap - 1:+.2%}), "
        "with which every other limit and bound can be met"
    )
