"""The best choice among all that workloads are offered."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from coopt.plan.schema import Plan
from coopt.solving.driver import infeasible, unknown
from coopt.solving.fleet.search import LimitCheck, Partition, search_partition
from coopt.solving.highs import Outcome
from coopt.solving.runs import Run
from formulations.choice_data import ChoiceData, Ints


class BestChoice(NamedTuple):
    """An option for each workload from the offer of this number, why the search stopped and what is
    proven.
    """

    offer: int
    rows: Ints
    outcome: Outcome
    bound: float


def best_choice(
    run: Run,
    offers: Sequence[tuple[ChoiceData, LimitCheck]],
    why_not: Callable[[], tuple[str, ...]],
) -> BestChoice | Plan:
    """The choice of least objective in all offers; a plan that says why where there is none.

    Parameters
    ----------
    why_not
        The reasons why no offer has a choice that keeps all limits.
    """
    searches = [_searched(run, *offer) for offer in offers]
    possible = [ended for ended in searches if ended.outcome != "infeasible"]
    if not possible:
        return infeasible(run, why_not)
    bound = min(ended.bound for ended in possible)
    # Proven only as a whole: one search that stopped early leaves the choice among all offers open.
    outcome: Outcome = next(
        (ended.outcome for ended in possible if ended.outcome != "optimal"), "optimal"
    )
    values = [math.inf if ended.worth is None else ended.worth.objective for ended in searches]
    best_offer = min(range(len(searches)), key=values.__getitem__)
    rows = searches[best_offer].rows
    if rows is not None:
        return BestChoice(best_offer, rows, outcome, bound)
    assert outcome in ("time limit", "interrupted"), outcome
    return unknown(run, outcome, bound)


def _searched(run: Run, data: ChoiceData, is_allowed: LimitCheck) -> Partition:
    """How the search of one offer ended, which the run keeps."""
    ended = search_partition(
        data,
        gap=run.instance.solver.gap,
        backend=run.backend,
        deadline=run.deadline,
        is_allowed=is_allowed,
        on_standing=run.tell_standing,
    )
    run.log.searches.append(ended)
    return ended
