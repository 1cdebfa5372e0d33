"""What each limit alone would have to be where no choice of islands keeps all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from coopt.instance.schema import Solver
from coopt.instance.texts import change_text, grouped
from coopt.solving.explain import rounded_up
from coopt.solving.fleet.arrays import Worth, worth
from coopt.solving.fleet.search import search_partition
from coopt.solving.runs import Run, StoppedError, backend_of
from formulations.choice_data import ChoiceData, Floats, Ints, LimitedUse, ScenarioCosts

UNTRIED = (
    "no choice of networks meets all limits together, and the search stopped before it was known of"
    " each limit whether loosening it alone is enough"
)
GAP = 1e-6  # of the least that would do


def over_limits(
    run: Run,
    datas: Sequence[ChoiceData],
    with_more_gpus: Callable[[], Sequence[ChoiceData]] | None = None,
) -> tuple[str, ...]:
    """Every workload has islands, and no choice of them keeps all limits: what each limit alone
    would have to be.

    Parameters
    ----------
    with_more_gpus
        The same offers where more GPUs than there are widen what islands may be.
    """
    # Limits hold at the prices of the instance, whatever scenarios there are.
    certain = [replace(data, scenarios=()) for data in datas]
    sentences: list[str] = []
    try:
        for sentence in chain(
            _by_limits(run, certain, with_more_gpus),
            _by_budget(run, certain),
            _by_products(run, certain),
        ):
            sentences.append(sentence)
    except StoppedError:
        return (*sentences, UNTRIED)
    return tuple(sentences) or (_joint_reason(run, certain),)


def _joint_reason(run: Run, datas: Sequence[ChoiceData]) -> str:
    """The sentence that no limit alone is to blame, with what the cheapest choice without limits
    takes where that is found in time.
    """
    together = "no choice of networks meets all limits, and removing any single limit does not help"
    try:
        unlimited = _least_choice(
            run, [replace(data, limits=(), budget=None, kinds=()) for data in datas]
        )
    except StoppedError:
        return f"{together}: needs several looser limits"
    assert unlimited is not None, "without limits every workload has its cheapest island"
    number, rows, total = unlimited
    takes = ", ".join(
        f"{key} {rounded_up(use)}" for key, use in _exceeded(datas[number], rows, total)
    )
    return f"{together}: the best choice without limits takes {takes}; needs several looser limits"


def _exceeded(data: ChoiceData, rows: Ints, total: Worth) -> Iterator[tuple[str, float]]:
    """The limits that a choice exceeds, by their keys, and what it takes of each where it takes
    most.
    """
    uses = worth(data, rows).uses
    for limits in _by_key(data):
        use = max(uses[limit.name] for limit in limits)
        if use > limits[0].cap:
            yield limits[0].key, use
    if data.budget is not None and total.capex_usd > data.budget:
        yield "limits.capex_usd", total.capex_usd
    for kind in data.kinds:
        in_use = sum(bool(data.uses(int(p), rows).any()) for p in kind.products)
        if in_use > kind.max_products:
            yield f"sharing.most_products.{kind.name}", in_use


def _by_key(data: ChoiceData) -> list[list[LimitedUse]]:
    """Limits that are one number, which holds in every phase, together."""
    return list(grouped((limit.key, limit) for limit in data.limits).values())


def _by_limits(
    run: Run,
    datas: Sequence[ChoiceData],
    with_more_gpus: Callable[[], Sequence[ChoiceData]] | None,
) -> Iterator[str]:
    """GPUs, power and racks: the least of each with which every other limit holds."""
    for number, limits in enumerate(_by_key(datas[0])):
        limit, gpus = limits[0], limits[0].resource == "gpus"
        wider = with_more_gpus() if gpus and with_more_gpus is not None else datas
        fewest = _least_choice(run, [_least_use_of(data, _by_key(data)[number]) for data in wider])
        if fewest is not None:
            min_use = fewest[2].objective
            yield _sentence(
                limit.key, limit.cap, f"{min_use:,.0f}" if gpus else rounded_up(min_use), min_use
            )


def _least_use_of(data: ChoiceData, limits: Sequence[LimitedUse]) -> ChoiceData:
    """The problem of least use of a limited resource, by options and by core switches, whatever is
    paid.

    Where a number holds in several phases it is the use in that phase which takes most: the phases
    are what scenarios are to a regret, each measured from nothing.
    """
    other_limits = tuple(
        limit for limit in data.limits if all(limit is not counted for counted in limits)
    )
    most = np.max([limit.use for limit in limits], axis=0)
    question = _with_other(replace(data, limits=other_limits, weight=0.0), most, limits[0].core)
    if len(limits) == 1:
        return question
    prices = tuple(product.usd for product in data.products)
    phases = (
        ScenarioCosts(
            usd=data.usd,
            opex=limit.use,
            prices=prices,
            core=limit.core or (0.0,) * len(data.cores),
            min_value=0.0,
        )
        for limit in limits
    )
    return replace(question, scenarios=tuple(phases))


def _with_other(data: ChoiceData, use: Floats, core: tuple[float, ...]) -> ChoiceData:
    """The problem with another objective beside capex."""
    uses = core or (0.0,) * len(data.cores)
    return replace(
        data,
        opex=use,
        cores=tuple(replace(c, opex=w) for c, w in zip(data.cores, uses, strict=True)),
    )


def _by_budget(run: Run, datas: Sequence[ChoiceData]) -> Iterator[str]:
    """The least bill with which every other limit holds."""
    budget = datas[0].budget
    if budget is not None:
        cheapest_choice = _least_choice(
            run, [replace(_with_other(d, 0.0 * d.opex, ()), budget=None, weight=1.0) for d in datas]
        )
        if cheapest_choice is not None:
            yield _sentence(
                "limits.capex_usd",
                budget,
                rounded_up(cheapest_choice[2].capex_usd),
                cheapest_choice[2].capex_usd,
            )


def _by_products(run: Run, datas: Sequence[ChoiceData]) -> Iterator[str]:
    """The fewest products of a kind with which every other limit holds."""
    for number, kind in enumerate(datas[0].kinds):
        for max_products in range(kind.max_products + 1, len(kind.products) + 1):
            if (
                _least_choice(run, [_with_products(data, number, max_products) for data in datas])
                is not None
            ):
                limit = f"sharing.most_products.{kind.name} = {kind.max_products}"
                yield (
                    f"{limit}: needs at least {max_products}, with which every other limit can be"
                    " met"
                )
                break


def _with_products(data: ChoiceData, number: int, max_products: int) -> ChoiceData:
    """The problem with more products of a kind."""
    kinds = tuple(
        replace(kind, max_products=max_products) if n == number else kind
        for n, kind in enumerate(data.kinds)
    )
    return replace(data, kinds=kinds)


def _least_choice(run: Run, datas: Sequence[ChoiceData]) -> tuple[int, Ints, Worth] | None:
    """The best choice of all problems, with the number of the one it is of; None where there is
    none.

    Raises
    ------
    StoppedError
        When a search ended without a proof.
    """
    incumbent: tuple[int, Ints, Worth] | None = None
    backend = backend_of(Solver(gap=GAP), run.backend.cancel)
    for number, data in enumerate(datas):
        search = search_partition(data, gap=GAP, backend=backend, deadline=run.deadline)
        if search.outcome not in ("optimal", "infeasible"):
            raise StoppedError(search.outcome)
        if search.found is not None and (
            incumbent is None or search.value < incumbent[2].objective
        ):
            incumbent = number, search.found, worth(data, search.found)
    return incumbent


def _sentence(name: str, cap: float, amount: str, min_use: float) -> str:
    return (
        f"{name} = {cap:,.10g}: needs at least {amount} ({change_text(min_use / cap - 1)}), "
        "with which every other limit and bound can be met"
    )
