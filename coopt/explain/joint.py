"""Several limits that have to give together: all by the same share, or two of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations

from coopt.explain.limits import NumericLimit
from coopt.explain.numbers import Answers, least_number, solved, ways_out, with_numbers
from coopt.explain.thresholds import Threshold
from coopt.instance.numerics import SEARCHED
from coopt.instance.schema import Instance
from coopt.plan.explanation import Relaxation
from coopt.solving.resolves import Resolver

MOST_POWER = 64  # times the power of every site are worth a try, where that of all moves together
MOST_PAIRS = 5  # pairs of limits that are told; more would only repeat one of their two
ALIKE = "These limits were loosened together; smaller changes of some of them may be enough."


def all_sites(
    resolver: Resolver, instance: Instance, numbers: Sequence[NumericLimit]
) -> Relaxation | None:
    """The power of several sites by one share; None where it does not help, or where that of one
    site is enough.
    """
    sites = [
        replace(limit, loosest=limit.now * MOST_POWER)
        for limit in numbers
        if limit.key.startswith("site[")
    ]
    if len(sites) < 2 or resolver.any_plan(_gone(instance, sites)) is None:
        return None
    relaxation = _all_numbers(resolver, instance, sites)
    return relaxation if relaxation is not None and len(relaxation.changes) > 1 else None


def joint_limits(
    resolver: Resolver, instance: Instance, numbers: Sequence[NumericLimit]
) -> Relaxation | None:
    """All limits on use by one share."""
    if resolver.any_plan(_gone(instance, numbers)) is None:
        return None
    relaxation = _all_numbers(
        resolver, instance, [limit for limit in numbers if not limit.structural]
    )
    if relaxation is None or len(relaxation.changes) < 2:
        return relaxation
    return relaxation.model_copy(update={"notes": (*relaxation.notes, ALIKE)})


def pairs_of(
    resolver: Resolver,
    instance: Instance,
    pairs: Sequence[tuple[NumericLimit, NumericLimit]],
    answers: Answers,
) -> Iterator[Relaxation]:
    """Some pairs of limits that are enough."""
    count = 0
    for left, right in pairs:
        key = f"{left.key} with {right.key}"
        for way_out in ways_out(
            answers(key, partial(_two_numbers, resolver, instance, left, right))
        ):
            yield way_out
            count += 1
        if count == MOST_PAIRS:
            return


def _gone(instance: Instance, limits: Sequence[NumericLimit]) -> Instance:
    return with_numbers(instance, [(limit, limit.loosest) for limit in limits])


def promising_pairs(
    resolver: Resolver, instance: Instance, limits: Sequence[NumericLimit]
) -> list[tuple[NumericLimit, NumericLimit]]:
    """The pairs that hold every limit without which, kept as it is, there is no plan even when all
    others are gone.
    """
    if resolver.any_plan(_gone(instance, limits)) is None:
        return []
    members = [
        limit
        for limit in limits
        if resolver.any_plan(_gone(instance, [member for member in limits if member is not limit]))
        is None
    ]
    return [pair for pair in combinations(limits, 2) if all(limit in pair for limit in members)]


def _two_numbers(
    resolver: Resolver, instance: Instance, left: NumericLimit, right: NumericLimit
) -> Relaxation | None:
    """Two limits: the first by as little as can be when the second is gone, then the second; one
    of them alone where that is enough.
    """
    first = least_number(resolver, right.within(instance, right.loosest), left)
    if first is None:
        return None
    second = least_number(resolver, left.within(instance, left.enough(first.number)), right)
    if second is None:  # what is enough within a tolerance may be none within another
        return None
    moves = [
        (limit, threshold)
        for limit, threshold in ((left, first), (right, second))
        if limit.exceeded_by(threshold.number)
    ]
    return solved(resolver, instance, moves) if moves else None


def _all_numbers(
    resolver: Resolver, instance: Instance, limits: Sequence[NumericLimit]
) -> Relaxation | None:
    """Limits on use, each by the same share of itself, which is as small as can be; those that need
    not move do not.
    """

    def moved(factor: float) -> list[tuple[NumericLimit, float]]:
        return [(limit, _times(limit, factor)) for limit in limits]

    low, high = 1.0, 2.0
    while resolver.any_plan(with_numbers(instance, moved(high))) is None:
        if all(_times(limit, high) == limit.loosest for limit in limits):
            return None
        low, high = (
            high,
            high**2,
        )  # squared, as limits may be powers of ten away from what is enough
    while high / low > 1 + SEARCHED:
        middle = math.sqrt(low * high)
        low, high = (
            (middle, high)
            if resolver.any_plan(with_numbers(instance, moved(middle))) is None
            else (low, middle)
        )
    # each limit goes back where the others are enough without it, which the share of all may hide
    moves = moved(high)
    for move in reversed(moved(high)):
        fewer = [entry for entry in moves if entry[0] is not move[0]]
        if resolver.any_plan(with_numbers(instance, fewer)) is not None:
            moves = fewer
    return solved(
        resolver,
        instance,
        [(limit, Threshold(number=number, plan=None, within=SEARCHED)) for limit, number in moves],
    )


def _times(limit: NumericLimit, factor: float) -> float:
    number = limit.now / factor if limit.falling else limit.now * factor
    if limit.whole:
        number = math.ceil(number)
    return max(number, limit.loosest) if limit.falling else min(number, limit.loosest)
