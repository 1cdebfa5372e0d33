"""The least that has to give for a plan to exist: one limit, two together, or all by the same share; solved each time.

A limit alone is enough where the instance without it has a plan. The least number that is enough then lies between what
it is now and any number with a plan; the interval is halved until its ends are close.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from coopt.instance.schema import Instance
from coopt.plan import contents
from coopt.plan.explanation import Change, Relaxation
from coopt.solving.reasons.lists import Listed, lists_of, text_of
from coopt.solving.sensitivity.limits import NumericLimit, numeric_limits
from coopt.solving.sensitivity.resolves import Resolver, value_of

TOLERANCE = 1e-3
"""How near to the least number the one found is, as a share of it."""
MOST_PAIRS = 5  # pairs of limits that are told; more would only repeat one of their two


def relaxations_of(resolver: Resolver, instance: Instance) -> Iterator[Relaxation]:
    """Every limit that alone is enough; where none is, pairs of limits, and all limits moved by the same share."""
    numbers = numeric_limits(instance)
    alone = [_one_number(resolver, instance, limit) for limit in numbers]
    alone += [_one_list(resolver, instance, one) for one in lists_of(instance)]
    found = [one for one in alone if one is not None]
    yield from found
    if found or resolver.any_plan(_gone(instance, numbers)) is None:
        return
    told: set[frozenset[str]] = set()
    for pair in _promising_pairs(resolver, instance, numbers):
        one = _two_numbers(resolver, instance, *pair)
        if one is not None:
            yield one
            told.add(_keys(one))
        if len(told) == MOST_PAIRS:
            break
    every = _all_numbers(resolver, instance, [limit for limit in numbers if not limit.structural])
    if every is not None and _keys(every) not in told:
        yield every


def _keys(one: Relaxation) -> frozenset[str]:
    return frozenset(change.limit for change in one.changes)


def _gone(instance: Instance, limits: Sequence[NumericLimit]) -> Instance:
    return _with_numbers(instance, [(limit, limit.loosest) for limit in limits])


def _promising_pairs(
    resolver: Resolver, instance: Instance, limits: Sequence[NumericLimit]
) -> Iterator[tuple[NumericLimit, NumericLimit]]:
    """The pairs that hold every limit without which, kept as it is, there is no plan even when all others are gone."""
    needed = [
        limit
        for limit in limits
        if resolver.any_plan(_gone(instance, [other for other in limits if other is not limit])) is None
    ]
    if len(needed) <= 2:
        yield from (pair for pair in combinations(limits, 2) if all(limit in pair for limit in needed))


def _one_number(resolver: Resolver, instance: Instance, limit: NumericLimit) -> Relaxation | None:
    number = least_number(resolver, instance, limit)
    return None if number is None else _solved(resolver, instance, [(limit, number)])


def least_number(resolver: Resolver, instance: Instance, limit: NumericLimit) -> float | None:
    """A number for a limit that is enough and at most `TOLERANCE` beyond the least; None where none is enough."""
    plan = resolver.any_plan(limit.within(instance, limit.loosest))
    if plan is None:
        return None
    low, high = limit.now, _taken(limit, plan, limit.loosest)
    while abs(high - low) > (1 if limit.whole else TOLERANCE * abs(high)):
        middle = math.sqrt(low * high)
        if limit.whole:
            middle = min(max(round(middle), low + 1), high - 1)
        plan = resolver.any_plan(limit.within(instance, middle))
        if plan is None:
            low = middle
        else:
            high = _taken(limit, plan, middle)
    return high


def _taken(limit: NumericLimit, plan: Any, number: float) -> float:
    """What a plan within a number takes of the limit, which is enough as well."""
    used = limit.used(plan)
    if used is None or used <= 0:
        return number
    return max(number, used) if limit.falling else min(number, used)


def _two_numbers(
    resolver: Resolver, instance: Instance, first: NumericLimit, second: NumericLimit
) -> Relaxation | None:
    """Two limits: the first by as little as can be when the second is gone, then the second."""
    without = second.within(instance, second.loosest)
    least = least_number(resolver, without, first)
    if least is None:
        return None
    enough = first.enough(least)
    rest = least_number(resolver, first.within(instance, enough), second)
    assert rest is not None, "the loosest number is enough"
    return _solved(resolver, instance, [(first, enough), (second, rest)])


def _all_numbers(resolver: Resolver, instance: Instance, limits: Sequence[NumericLimit]) -> Relaxation | None:
    """Limits on use, each by the same share of itself, which is as small as can be; those that need not move do not."""

    def moved(factor: float) -> list[tuple[NumericLimit, float]]:
        return [(limit, _times(limit, factor)) for limit in limits]

    low, high = 1.0, 2.0
    while resolver.any_plan(_with_numbers(instance, moved(high))) is None:
        if all(_times(limit, high) == limit.loosest for limit in limits):
            return None
        low, high = high, high**2
    while high / low > 1 + TOLERANCE:
        middle = math.sqrt(low * high)
        low, high = (
            (middle, high) if resolver.any_plan(_with_numbers(instance, moved(middle))) is None else (low, middle)
        )
    kept = moved(high)
    for one in reversed(moved(high)):
        fewer = [other for other in kept if other[0] is not one[0]]
        if resolver.any_plan(_with_numbers(instance, fewer)) is not None:
            kept = fewer
    return _solved(resolver, instance, kept)


def _times(limit: NumericLimit, factor: float) -> float:
    number = limit.now / factor if limit.falling else limit.now * factor
    if limit.whole:
        number = math.ceil(number)
    return max(number, limit.loosest) if limit.falling else min(number, limit.loosest)


def _with_numbers(instance: Instance, numbers: Sequence[tuple[NumericLimit, float]]) -> Instance:
    for limit, number in numbers:
        instance = limit.within(instance, number)
    return instance


def _solved(resolver: Resolver, instance: Instance, numbers: Sequence[tuple[NumericLimit, float]]) -> Relaxation | None:
    """The relaxation with the plan that its numbers, as they are typed, let in; None where they let none in."""
    typed = [(limit, limit.enough(number)) for limit, number in numbers]
    return _with_plan(resolver, _with_numbers(instance, typed), [_change(*pair) for pair in typed])


def _change(limit: NumericLimit, to: float) -> Change:
    return Change(
        limit=limit.key,
        now=text_of(limit.now),
        to=text_of(to),
        least=to if limit.whole else None,
        share=to / limit.now - 1,
        within=None if limit.whole else TOLERANCE,
    )


def _one_list(resolver: Resolver, instance: Instance, one: Listed) -> Relaxation | None:
    """A list with what a plan among the widest list uses of it."""
    plan = resolver.any_plan(one.dropped(instance))
    if plan is None:
        return None
    wider, to = one.with_entries(instance, contents.entries_used(instance, plan, one.key))
    change = Change(limit=one.key, now=text_of(one.now), to=text_of(to), least=None, share=None)
    return _with_plan(resolver, wider, [change]) if len(to) > len(one.now) else None


def _with_plan(resolver: Resolver, instance: Instance, changes: Sequence[Change]) -> Relaxation | None:
    plan = resolver.plan(instance)
    value = value_of(plan)
    return None if value is None else Relaxation(changes=tuple(changes), value=value, design=plan.design)
