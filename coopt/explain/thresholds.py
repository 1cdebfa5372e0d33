"""The number on which an answer turns, found by solving at some numbers between.

A plan within a number is the answer down to what it takes. Just below there is another one, or
the search ends exactly there; in turn with that the interval between a number without an answer and
one with is halved. Of numbers that no plan takes it is halved until it is small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from coopt.explain.limits import NumericLimit
from coopt.instance.numerics import EQUAL, SEARCHED
from coopt.plan.schema import Plan

Answer = Callable[[float], Plan | None]
"""The plan that answers at a number; looser numbers answer as well."""


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """The first number with an answer, and the plan there where it is known.

    No number farther from it than the share `within` has one.
    """

    number: float
    plan: Plan | None
    within: float | None = None


def first_number(limit: NumericLimit, answer: Answer, farthest: Plan) -> Threshold:
    """The number nearest to what a limit is now at which there is an answer, of which the
    `farthest` is that at its loosest number; what it is now where an answer takes no more.
    """
    low, best = limit.now, _of(limit, farthest, limit.loosest)
    halve = best.within is not None
    while not _is_first(limit, low, best):
        number = _middle(limit, low, best) if halve else just_below(limit, best.number)
        # few plans lie between: often none takes less than one that is known
        halve = not halve or best.within is not None
        plan = answer(number)
        if plan is None:
            low = number
        elif exceeds(limit, plan, number):  # within the tolerance of a solver's rows
            break
        else:
            best = _of(limit, plan, number)
    return best if limit.exceeded_by(best.number) else replace(best, number=limit.now, within=None)


def just_below(limit: NumericLimit, use: float) -> float:
    """The loosest number that forbids a use."""
    if limit.whole:
        return use + (1 if limit.falling else -1)
    return use * (1 + EQUAL / 2 if limit.falling else 1 - EQUAL / 2)


def _is_first(limit: NumericLimit, low: float, best: Threshold) -> bool:
    """Whether no number between one without an answer and the best one is told apart from this:
    none is where what is best lies on this side of what the limit is now.
    """
    closest = (SEARCHED if best.within else EQUAL) * abs(best.number)
    distance = low - best.number if limit.falling else best.number - low
    return distance <= (1 if limit.whole else closest)


def _middle(limit: NumericLimit, low: float, best: Threshold) -> float:
    """A number between, by the ratio of the ends, which may be powers of ten apart; strictly so
    where it counts.
    """
    ends = sorted((low, best.number))
    middle = math.sqrt(low * best.number) or best.number / 2
    return min(max(round(middle), ends[0] + 1), ends[1] - 1) if limit.whole else middle


def _of(limit: NumericLimit, plan: Plan, number: float) -> Threshold:
    """The number, or what the plan takes where that is less."""
    use = limit.used(plan)
    if use is None or use <= 0 or limit.moves_use:
        return Threshold(number=number, plan=plan, within=None if limit.whole else SEARCHED)
    return Threshold(number=max(number, use) if limit.falling else min(number, use), plan=plan)


def exceeds(limit: NumericLimit, plan: Plan, number: float) -> bool:
    """Whether a plan takes more than it may, if by a hair."""
    use = limit.used(plan)
    if use is None or limit.moves_use:
        return False
    return use < number if limit.falling else use > number
