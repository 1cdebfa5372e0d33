"""The least that has to give for a plan to exist: one limit, two together, or all by the same share; solved each time.

A limit alone is enough where the instance without it has a plan. The least number that is enough then lies between what
it is now and any number with a plan; the interval is halved until its ends are close.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, Protocol, TypeVar

from coopt.instance.rules.agreement import disagreements
from coopt.instance.schema import Instance, Limits
from coopt.plan.explanation import Change, Relaxation
from coopt.solving.reasons.again import feasible
from coopt.solving.reasons.limits import with_part
from coopt.solving.reasons.lists import Listed, adds_unmated, lists_of, mating_lists, relaxation, text_of
from coopt.solving.reasons.other_gpus import FEW_TRIES, TRIES, Tried, another_gpu, fewer, more_or_fewer
from coopt.solving.sensitivity.limits import NumericLimit, numeric_limits
from coopt.solving.sensitivity.resolves import Resolver

TOLERANCE = 1e-3
"""How near to the least number the one found is, as a share of it."""
MOST_POWER = 64  # times the power of every site are worth a try, where that of all moves together
SLOW = ("network.nics_per_gpu", "network.hb_domains", "cluster.gpu.hbm_gb")
MOST_PAIRS = 5  # pairs of limits that are told; more would only repeat one of their two


Found = TypeVar("Found")


ALIKE = "All of these move by the same share; less may be enough of some."


class Answers(Protocol):
    """The answer to a question by its key; nothing where it was not proven in time."""

    def __call__(self, key: str, ask: Callable[[], Found], /) -> Iterable[Found]:
        """Ask."""


def relaxations_of(
    resolver: Resolver, instance: Instance, answers: Answers, in_vain: Callable[[str], None]
) -> Iterator[Relaxation]:
    """The powers of all sites by one share, then every limit that alone is enough; where none is, several together.

    Those are first all limits moved by the same share, then pairs, of which there are many.

    Parameters
    ----------
    in_vain
        Called with other GPUs that do not help.
    """
    numbers = numeric_limits(instance)
    some = list(_told(answers("the power of all sites together", partial(_all_sites, resolver, instance, numbers))))
    yield from some
    enough = any(len(one.changes) == 1 for one in some)
    for key, ask in _alone(resolver, instance, numbers, in_vain):
        for one in _told(answers(key, ask)):
            enough = True
            yield one
    if enough:
        return
    together = partial(_together, resolver, instance, numbers)
    told = {_keys(one) for one in some}
    for one in _told(answers("all limits together", together)):
        if _keys(one) not in told:
            yield one
    for pairs in answers("pairs of limits", partial(_promising_pairs, resolver, instance, numbers)):
        yield from _pairs(resolver, instance, pairs, answers)


def _told(found: Iterable[Relaxation | None]) -> Iterator[Relaxation]:
    return (one for one in found if one is not None)


def _alone(
    resolver: Resolver, instance: Instance, numbers: Sequence[NumericLimit], in_vain: Callable[[str], None]
) -> Iterator[tuple[str, Callable[[], Relaxation | None]]]:
    """Every limit by its key, and the question whether it alone is enough; those first that are likely and quick."""
    asks: dict[str, Callable[[], Relaxation | None]] = {
        **{limit.key: partial(_one_number, resolver, instance, limit) for limit in numbers},
        **{one.key: partial(_one_list, resolver, instance, one) for one in lists_of(instance)},
    }
    if instance.cluster.shares is not None:
        asks["cluster.shares"] = partial(_more_shares, resolver, instance)
    if instance.problem in ("shared", "robust", "sites"):
        asks["cluster.gpus"] = partial(_other_gpus, resolver, instance, in_vain)
    if instance.problem == "shared":
        asks["cluster.gpu"] = partial(_another_gpu, resolver, instance, in_vain)
    yield from sorted(asks.items(), key=lambda ask: _turn(instance, ask[0]))


def _turn(instance: Instance, key: str) -> int:
    """When a limit is asked about: what sites feed and share first, and last what lets in the most mappings."""
    if key in SLOW:
        return 2
    shared_out = instance.cluster.shares is not None and key.startswith("cluster.")
    return 0 if shared_out or key.startswith(("site[", "wan[")) else 1


def _more_shares(resolver: Resolver, instance: Instance) -> Relaxation | None:
    """The least number of shares that is enough, of those that divide GPUs and batches."""
    now = instance.cluster.shares
    assert now is not None
    whole = math.gcd(*instance.cluster.gpus, *(workload.global_batch for workload in instance.workload))
    least_domain = min(domain.size for domain in instance.network.hb_domains)
    most = min(whole, instance.cluster.gpus[0] // least_domain)
    for shares in (number for number in range(now + 1, most + 1) if whole % number == 0):
        changed = with_part(instance, "cluster", {"shares": shares})
        if resolver.any_plan(changed) is not None:
            change = Change(limit="cluster.shares", now=str(now), to=str(shares), least=shares, share=shares / now - 1)
            return relaxation(instance, changed, [change], resolver.plan(changed))
    return None


def _another_gpu(resolver: Resolver, instance: Instance, in_vain: Callable[[str], None]) -> Relaxation | None:
    """A faster kind of GPU."""
    return _with_gpus(resolver, instance, another_gpu(instance, feasible), in_vain)


def _with_gpus(
    resolver: Resolver, instance: Instance, tried: Tried, in_vain: Callable[[str], None]
) -> Relaxation | None:
    """The relaxation with other GPUs that are enough; None where none are, which is told."""
    changed, why = tried
    if changed is not None:
        return relaxation(instance, changed[1], changed[0], resolver.plan(changed[1]))
    if why:
        in_vain(why)
    return None


def _other_gpus(resolver: Resolver, instance: Instance, in_vain: Callable[[str], None]) -> Relaxation | None:
    """Another number of GPUs: the most that keep the limits, or that sites feed, or else on one network the fewest."""
    alone = instance.problem == "shared"

    def is_enough(asked: Instance) -> bool:
        resolver.check_clock()
        if any(disagreements(asked)):
            return False
        return feasible(asked) if alone else resolver.any_plan(asked) is not None

    tries = TRIES if alone else FEW_TRIES
    shared_out = instance.cluster.shares is not None
    capped = shared_out or instance.limits != Limits()
    found: Tried = fewer(instance, is_enough, tries=tries) if capped else (None, "")
    if found[0] is None and not shared_out:
        found = more_or_fewer(instance, is_enough, tries=tries)
    return _with_gpus(resolver, instance, found, in_vain)


def _all_sites(resolver: Resolver, instance: Instance, numbers: Sequence[NumericLimit]) -> Relaxation | None:
    """The power of several sites by one share; None where it does not help, or where that of one site is enough.

    One site is told here only where it needs more than it is asked about alone.
    """
    sites = [replace(limit, loosest=limit.now * MOST_POWER) for limit in numbers if limit.key.startswith("site[")]
    if len(sites) < 2 or resolver.any_plan(_gone(instance, sites)) is None:
        return None
    found = _all_numbers(resolver, instance, sites)
    if found is None or len(found.changes) > 1:
        return found
    (change,) = found.changes
    asked_alone = next(limit.loosest for limit in numbers if limit.key == change.limit)
    return found if float(change.to) > asked_alone else None


def _together(resolver: Resolver, instance: Instance, numbers: Sequence[NumericLimit]) -> Relaxation | None:
    """All limits on use by one share."""
    if resolver.any_plan(_gone(instance, numbers)) is None:
        return None
    found = _all_numbers(resolver, instance, [limit for limit in numbers if not limit.structural])
    if found is None or len(found.changes) < 2:
        return found
    return found.model_copy(update={"notes": (*found.notes, ALIKE)})


def _pairs(
    resolver: Resolver, instance: Instance, pairs: Sequence[tuple[NumericLimit, NumericLimit]], answers: Answers
) -> Iterator[Relaxation]:
    """Some pairs of limits that are enough."""
    told = 0
    for first, second in pairs:
        key = f"{first.key} with {second.key}"
        for one in _told(answers(key, partial(_two_numbers, resolver, instance, first, second))):
            yield one
            told += 1
        if told == MOST_PAIRS:
            return


def _keys(one: Relaxation) -> frozenset[str]:
    return frozenset(change.limit for change in one.changes)


def _gone(instance: Instance, limits: Sequence[NumericLimit]) -> Instance:
    return _with_numbers(instance, [(limit, limit.loosest) for limit in limits])


def _promising_pairs(
    resolver: Resolver, instance: Instance, limits: Sequence[NumericLimit]
) -> list[tuple[NumericLimit, NumericLimit]]:
    """The pairs that hold every limit without which, kept as it is, there is no plan even when all others are gone."""
    if resolver.any_plan(_gone(instance, limits)) is None:
        return []
    needed = [
        limit
        for limit in limits
        if resolver.any_plan(_gone(instance, [other for other in limits if other is not limit])) is None
    ]
    return [pair for pair in combinations(limits, 2) if all(limit in pair for limit in needed)]


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
    if used is None or used <= 0 or limit.moves_use:
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
    if rest is None:  # what is enough within a tolerance may be none within another
        return None
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
    wider = _with_numbers(instance, typed)
    return relaxation(instance, wider, [_change(*pair) for pair in typed], resolver.plan(wider))


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
    """A list with what a plan among the widest list uses of it: one whose links mate."""
    wide = one.dropped(instance)
    plan = resolver.any_plan(wide)
    if plan is not None and adds_unmated(instance, wide, plan):
        asked = ((other, resolver.any_plan(other)) for other in mating_lists(instance, (one,)))
        plan = next((found for other, found in asked if found and not adds_unmated(instance, other, found)), None)
    if plan is None:
        return None
    wider, to = one.with_used(instance, plan)
    change = Change(limit=one.key, now=text_of(one.now), to=text_of(to), least=None, share=None)
    return relaxation(instance, wider, [change], resolver.plan(wider)) if len(to) > len(one.now) else None
