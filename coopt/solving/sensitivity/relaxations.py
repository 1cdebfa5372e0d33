"""The least that has to give for a plan to exist: one limit, two together, or all by the same
share; solved each time.

A limit alone is enough where the instance without it has a plan. The least number that is enough
then lies between what it is now and any number with a plan; the interval is halved until its ends
are close.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Any, Protocol, TypeVar

from coopt.instance.numerics import SEARCHED
from coopt.instance.rules.agreement import disagreements
from coopt.instance.schema import Instance, Limits
from coopt.plan.explanation import Change, Relaxation
from coopt.solving.reasons.again import feasible
from coopt.solving.reasons.limits import (
    ListLimit,
    adds_unmated,
    lists_of,
    mating_lists,
    text_of,
    with_part,
)
from coopt.solving.reasons.other_gpus import (
    FEW_TRIES,
    TRIES,
    Attempt,
    another_gpu,
    fewer,
    more_or_fewer,
)
from coopt.solving.reasons.relaxations import relaxation
from coopt.solving.sensitivity.limits import NO_LIMIT, NumericLimit, fewer_losses, numeric_limits
from coopt.solving.sensitivity.resolves import Resolver

MOST_POWER = 64  # times the power of every site are worth a try, where that of all moves together
SLOW = ("network.nics_per_gpu", "network.hb_domains", "cluster.gpu.hbm_gb")
MOST_PAIRS = 5  # pairs of limits that are told; more would only repeat one of their two


Answer = TypeVar("Answer")


ALIKE = "All of these move by the same share; less may be enough of some."


class Answers(Protocol):
    """The answer to a question by its key; nothing where it was not proven in time."""

    def __call__(self, key: str, ask: Callable[[], Answer], /) -> Iterable[Answer]:
        """Ask."""


def relaxations_of(
    resolver: Resolver, instance: Instance, answers: Answers, in_vain: Callable[[str], None]
) -> Iterator[Relaxation]:
    """The powers of all sites by one share, then every limit that alone is enough; where none is,
    several together.

    Those are first all limits moved by the same share, then pairs, of which there are many.

    Parameters
    ----------
    in_vain
        Called with other GPUs that do not help.
    """
    numbers = [_of_any_site(limit) for limit in numeric_limits(instance)]
    of_sites = list(
        _ways_out(
            answers(
                "the power of all sites together", partial(_all_sites, resolver, instance, numbers)
            )
        )
    )
    yield from of_sites
    enough = any(len(relaxation.changes) == 1 for relaxation in of_sites)
    for key, ask in _single_limits(resolver, instance, numbers, in_vain):
        for way_out in _ways_out(answers(key, ask)):
            enough = True
            yield way_out
    if enough:
        return
    ask_jointly = partial(_joint_limits, resolver, instance, numbers)
    known_keys = {_keys(relaxation) for relaxation in of_sites}
    for way_out in _ways_out(answers("all limits together", ask_jointly)):
        if _keys(way_out) not in known_keys:
            yield way_out
    for pairs in answers("pairs of limits", partial(_promising_pairs, resolver, instance, numbers)):
        yield from _pairs(resolver, instance, pairs, answers)


def _of_any_site(limit: NumericLimit) -> NumericLimit:
    """The limit, which on the power of a site may give as much as it takes: how little there is now
    says nothing.
    """
    return replace(limit, loosest=NO_LIMIT) if limit.key.startswith("site[") else limit


def _ways_out(answers: Iterable[Relaxation | None]) -> Iterator[Relaxation]:
    return (answer for answer in answers if answer is not None)


def _single_limits(
    resolver: Resolver,
    instance: Instance,
    numbers: Sequence[NumericLimit],
    in_vain: Callable[[str], None],
) -> Iterator[tuple[str, Callable[[], Relaxation | None]]]:
    """Every limit by its key, and the question whether it alone is enough; those first that are
    likely and quick.
    """
    asks: dict[str, Callable[[], Relaxation | None]] = {
        **{limit.key: partial(_one_number, resolver, instance, limit) for limit in numbers},
        **{
            entry.key: partial(_one_list, resolver, instance, entry) for entry in lists_of(instance)
        },
    }
    lighter = tuple(fewer_losses(instance))
    if lighter:
        asks[lighter[0][1].limit] = partial(_fewer_losses, resolver, instance, lighter)
    if instance.cluster.shares is not None:
        asks["cluster.shares"] = partial(_more_shares, resolver, instance)
    parted = instance.sharing.mode == "partition" or instance.phase
    if not (parted or instance.open_keys or instance.asks("direct")):
        asks["cluster.gpus"] = partial(_other_gpus, resolver, instance, in_vain)
    if not instance.beyond_one_network:
        asks["cluster.gpu"] = partial(_another_gpu, resolver, instance, in_vain)
    yield from sorted(asks.items(), key=lambda ask: _turn(instance, ask[0]))


def _turn(instance: Instance, key: str) -> int:
    """When a limit is asked about: what sites feed and share first, and last what lets in the most
    mappings.
    """
    if key in SLOW:
        return 2
    shared_out = instance.cluster.shares is not None and key.startswith("cluster.")
    return 0 if shared_out or key.startswith(("site[", "wan[")) else 1


def _more_shares(resolver: Resolver, instance: Instance) -> Relaxation | None:
    """The least number of shares that is enough, of those that divide GPUs and batches."""
    shares_now = instance.cluster.shares
    assert shares_now is not None
    divisor = math.gcd(
        *instance.cluster.gpus, *(workload.global_batch for workload in instance.workload)
    )
    least_domain = min(domain.size for domain in instance.network.hb_domains)
    ceiling = min(divisor, instance.cluster.gpus[0] // least_domain)
    for shares in (
        number for number in range(shares_now + 1, ceiling + 1) if divisor % number == 0
    ):
        question = with_part(instance, "cluster", {"shares": shares})
        if resolver.any_plan(question) is not None:
            change = Change(
                limit="cluster.shares",
                now=str(shares_now),
                to=str(shares),
                least=shares,
                share=shares / shares_now - 1,
            )
            return relaxation(instance, question, [change], resolver.plan(question))
    return None


def _fewer_losses(
    resolver: Resolver,
    instance: Instance,
    lighter: Iterable[tuple[Instance, Change, tuple[str, ...]]],
) -> Relaxation | None:
    """The fewest losses that need not be survived."""
    for question, change, idle in lighter:
        if resolver.any_plan(question) is None:
            continue
        way_out = relaxation(instance, question, [change], resolver.plan(question))
        notes = tuple(f"{key} has to go as well." for key in idle)
        return way_out and way_out.model_copy(update={"notes": (*way_out.notes, *notes)})
    return None


def _another_gpu(
    resolver: Resolver, instance: Instance, in_vain: Callable[[str], None]
) -> Relaxation | None:
    """A faster kind of GPU."""
    return _with_gpus(resolver, instance, another_gpu(instance, feasible), in_vain)


def _with_gpus(
    resolver: Resolver, instance: Instance, outcome: Attempt, in_vain: Callable[[str], None]
) -> Relaxation | None:
    """The relaxation with other GPUs that are enough; None where none are, which is told."""
    change, reason = outcome
    if change is not None:
        return relaxation(instance, change[1], change[0], resolver.plan(change[1]))
    if reason:
        in_vain(reason)
    return None


def _other_gpus(
    resolver: Resolver, instance: Instance, in_vain: Callable[[str], None]
) -> Relaxation | None:
    """Another number of GPUs: the most that keep the limits, or that sites feed, or else on one
    network the fewest.
    """
    is_one_network = not instance.beyond_one_network

    def is_enough(question: Instance) -> bool:
        resolver.check_clock()
        if any(disagreements(question)):
            return False
        return feasible(question) if is_one_network else resolver.any_plan(question) is not None

    tries = TRIES if is_one_network else FEW_TRIES
    shared_out = instance.cluster.shares is not None
    capped = shared_out or instance.limits != Limits()
    outcome: Attempt = fewer(instance, is_enough, tries=tries) if capped else (None, "")
    if outcome[0] is None and not shared_out:
        outcome = more_or_fewer(instance, is_enough, tries=tries)
    return _with_gpus(resolver, instance, outcome, in_vain)


def _all_sites(
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


def _joint_limits(
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


def _pairs(
    resolver: Resolver,
    instance: Instance,
    pairs: Sequence[tuple[NumericLimit, NumericLimit]],
    answers: Answers,
) -> Iterator[Relaxation]:
    """Some pairs of limits that are enough."""
    count = 0
    for left, right in pairs:
        key = f"{left.key} with {right.key}"
        for way_out in _ways_out(
            answers(key, partial(_two_numbers, resolver, instance, left, right))
        ):
            yield way_out
            count += 1
        if count == MOST_PAIRS:
            return


def _keys(relaxation: Relaxation) -> frozenset[str]:
    return frozenset(change.limit for change in relaxation.changes)


def _gone(instance: Instance, limits: Sequence[NumericLimit]) -> Instance:
    return _with_numbers(instance, [(limit, limit.loosest) for limit in limits])


def _promising_pairs(
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


def _one_number(resolver: Resolver, instance: Instance, limit: NumericLimit) -> Relaxation | None:
    number = least_number(resolver, instance, limit)
    return None if number is None else _solved(resolver, instance, [(limit, number)])


def least_number(resolver: Resolver, instance: Instance, limit: NumericLimit) -> float | None:
    """A number for a limit that is enough and at most `SEARCHED` beyond the least; None where none
    is enough.
    """
    plan = resolver.any_plan(limit.within(instance, limit.loosest))
    if plan is None:
        return None
    low, high = limit.now, _use_within(limit, plan, limit.loosest)
    while abs(high - low) > (1 if limit.whole else SEARCHED * abs(high)):
        middle = math.sqrt(
            low * high
        )  # takes the root of the ratio: the loosest number may be powers of ten away
        if limit.whole:  # strictly between the ends, so that the interval shrinks
            middle = min(max(round(middle), low + 1), high - 1)
        plan = resolver.any_plan(limit.within(instance, middle))
        if plan is None:
            low = middle
        else:
            high = _use_within(limit, plan, middle)
    return high


def _use_within(limit: NumericLimit, plan: Any, number: float) -> float:
    """What a plan within a number takes of the limit, which is enough as well."""
    use = limit.used(plan)
    if use is None or use <= 0 or limit.moves_use:
        return number
    return max(number, use) if limit.falling else min(number, use)


def _two_numbers(
    resolver: Resolver, instance: Instance, left: NumericLimit, right: NumericLimit
) -> Relaxation | None:
    """Two limits: the first by as little as can be when the second is gone, then the second."""
    without = right.within(instance, right.loosest)
    minimum = least_number(resolver, without, left)
    if minimum is None:
        return None
    enough = left.enough(minimum)
    right_number = least_number(resolver, left.within(instance, enough), right)
    if right_number is None:  # what is enough within a tolerance may be none within another
        return None
    return _solved(resolver, instance, [(left, enough), (right, right_number)])


def _all_numbers(
    resolver: Resolver, instance: Instance, limits: Sequence[NumericLimit]
) -> Relaxation | None:
    """Limits on use, each by the same share of itself, which is as small as can be; those that need
    not move do not.
    """

    def moved(factor: float) -> list[tuple[NumericLimit, float]]:
        return [(limit, _times(limit, factor)) for limit in limits]

    low, high = 1.0, 2.0
    while resolver.any_plan(_with_numbers(instance, moved(high))) is None:
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
            if resolver.any_plan(_with_numbers(instance, moved(middle))) is None
            else (low, middle)
        )
    # each limit goes back where the others are enough without it, which the share of all may hide
    moves = moved(high)
    for move in reversed(moved(high)):
        fewer = [entry for entry in moves if entry[0] is not move[0]]
        if resolver.any_plan(_with_numbers(instance, fewer)) is not None:
            moves = fewer
    return _solved(resolver, instance, moves)


def _times(limit: NumericLimit, factor: float) -> float:
    number = limit.now / factor if limit.falling else limit.now * factor
    if limit.whole:
        number = math.ceil(number)
    return max(number, limit.loosest) if limit.falling else min(number, limit.loosest)


def _with_numbers(instance: Instance, numbers: Sequence[tuple[NumericLimit, float]]) -> Instance:
    for limit, number in numbers:
        instance = limit.within(instance, number)
    return instance


def _solved(
    resolver: Resolver, instance: Instance, numbers: Sequence[tuple[NumericLimit, float]]
) -> Relaxation | None:
    """The relaxation with the plan that its numbers, as they are typed, let in; None where they let
    none in.
    """
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
        within=None if limit.whole else SEARCHED,
    )


def _one_list(resolver: Resolver, instance: Instance, entry: ListLimit) -> Relaxation | None:
    """A list with what a plan among the widest list uses of it: one whose links mate."""
    wide = entry.dropped(instance)
    plan = resolver.any_plan(wide)
    if plan is not None and adds_unmated(instance, wide, plan):
        answers = (
            (question, resolver.any_plan(question)) for question in mating_lists(instance, (entry,))
        )
        plan = next(
            (
                answer
                for question, answer in answers
                if answer and not adds_unmated(instance, question, answer)
            ),
            None,
        )
    if plan is None:
        return None
    wider, to = entry.with_used(instance, plan)
    change = Change(limit=entry.key, now=text_of(entry.now), to=text_of(to), least=None, share=None)
    return (
        relaxation(instance, wider, [change], resolver.plan(wider))
        if len(to) > len(entry.now)
        else None
    )
