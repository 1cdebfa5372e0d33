"""The least that has to give for a plan to exist: one limit, two together, or all by the same
share; solved each time.

A limit alone is enough where the instance without it has a plan. The least number that is enough
then lies between what it is now and any number with a plan; the interval is halved until its ends
are close.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import attrgetter

from coopt.explain.gpus import (
    FEW_TRIES,
    TRIES,
    Attempt,
    another_gpu,
    has_one_number,
    nearby,
    other_number,
)
from coopt.explain.joint import all_sites, joint_limits, pairs_of, promising_pairs
from coopt.explain.limits import (
    MEMORY,
    NumericLimit,
    fewer_losses,
    numeric_limits,
    of_any_site,
    shorter_links,
)
from coopt.explain.lists import ListLimit, adds_unmated, lists_of, mating_lists, widened
from coopt.explain.numbers import Answers, keys_of, least_number, relaxation, solved, ways_out
from coopt.instance.rules.agreement import disagreements
from coopt.instance.schema import Instance, Limits, text_of, with_part
from coopt.plan.explanation import Change, Relaxation
from coopt.solving.resolves import Resolver

SLOW = ("network.nics_per_gpu", "network.hb_domains")
PARTS = ("network.nics", "network.switches", "network.optics")
Ask = Callable[[], Relaxation | None]


def relaxations_of(
    resolver: Resolver,
    instance: Instance,
    answers: Answers,
    in_vain: Callable[[str], None],
    conflict: frozenset[str] | None = None,
) -> Iterator[Relaxation]:
    """The powers of all sites by one share, then every limit that alone is enough; where none is,
    several together.

    Those are first all limits moved by the same share, then pairs, of which there are many.

    Parameters
    ----------
    in_vain
        Called with other GPUs that do not help.
    conflict
        The limits that are in all sets that conflict: no other one alone is enough. None where
        these are not known.
    """
    numbers = [of_any_site(limit) for limit in numeric_limits(instance)]
    of_sites = list(
        ways_out(
            answers(
                "raising the power of all sites together",
                partial(all_sites, resolver, instance, numbers),
            )
        )
    )
    yield from of_sites
    enough = [relaxation for relaxation in of_sites if len(relaxation.changes) == 1]
    for key, ask in _single_limits(resolver, instance, numbers, in_vain, conflict):
        for way_out in ways_out(answers(key, ask)):
            enough.append(way_out)
            yield way_out
    parts = tuple(entry for entry in lists_of(instance) if entry.key in PARTS)
    to_blame = conflict is None or not conflict.isdisjoint(PARTS)
    if len(parts) > 1 and to_blame and not any(keys_of(way) <= set(PARTS) for way in enough):
        for way_out in ways_out(
            answers("parts together", partial(_lists, resolver, instance, parts))
        ):
            enough.append(way_out)
            yield way_out
    if enough:
        return
    ask_jointly = partial(joint_limits, resolver, instance, numbers)
    known_keys = {keys_of(relaxation) for relaxation in of_sites}
    for way_out in ways_out(answers("loosening all limits together", ask_jointly)):
        if keys_of(way_out) not in known_keys:
            yield way_out
    for pairs in answers(
        "loosening two limits together", partial(promising_pairs, resolver, instance, numbers)
    ):
        yield from pairs_of(resolver, instance, pairs, answers)


def _single_limits(
    resolver: Resolver,
    instance: Instance,
    numbers: Sequence[NumericLimit],
    in_vain: Callable[[str], None],
    conflict: frozenset[str] | None,
) -> Iterator[tuple[str, Ask]]:
    """Every limit by its key, and the question whether it alone is enough; those first that are
    likely and quick.
    """
    lists = {entry.key: entry for entry in lists_of(instance)}
    asks: dict[str, Ask] = {
        **{limit.key: partial(_one_number, resolver, instance, limit) for limit in numbers},
        "network.link_reach_m": partial(_shorter_links, resolver, instance),
        **{key: partial(_lists, resolver, instance, (entry,)) for key, entry in lists.items()},
    }
    if conflict is not None:
        asks = {key: ask for key, ask in asks.items() if key in conflict}
    lighter = tuple(fewer_losses(instance))
    if lighter:
        asks[lighter[0][1].limit] = partial(_fewer_losses, resolver, instance, lighter)
    if instance.cluster.shares is not None:
        asks["cluster.shares"] = partial(_more_shares, resolver, instance)
    if has_one_number(instance):
        short = not conflict or any(map(_is_on_speed, conflict))
        capped = any(key.startswith(("limits.", "site[")) for key in conflict or ())
        if instance.cluster.shares is not None:
            ways: tuple[bool, ...] = (True,)
        elif conflict is None and instance.limits != Limits():
            ways = True, False
        else:
            ways = (not short,)
        if short or capped:
            asks["cluster.gpus"] = partial(_other_gpus, resolver, instance, in_vain, ways)
        if short:
            asks["cluster.gpu"] = lambda: _with_gpus(
                resolver, instance, another_gpu(instance, resolver.has_plan), in_vain
            )
    yield from sorted(asks.items(), key=lambda ask: _turn(instance, ask[0]))


def _is_on_speed(key: str) -> bool:
    """Whether a limit is one on time or memory, of which more or faster GPUs ask for less."""
    return key.endswith(f".{MEMORY}") or (key.startswith("workload[") and ".mapping." not in key)


def _turn(instance: Instance, key: str) -> int:
    """When a limit is asked about: what sites feed and share first, and last what lets in the most
    mappings.
    """
    if key in SLOW or key.endswith(f".{MEMORY}"):
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
        notes = tuple(f"Remove {key} as well." for key in idle)
        return way_out and way_out.model_copy(update={"notes": (*way_out.notes, *notes)})
    return None


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
    resolver: Resolver,
    instance: Instance,
    in_vain: Callable[[str], None],
    ways: tuple[bool, ...],
) -> Relaxation | None:
    """Another number of GPUs: the nearest that fill domains where these do not, else the most below
    or the fewest that are enough, in such turn.
    """

    def is_enough(question: Instance) -> bool:
        return not any(disagreements(question)) and resolver.has_plan(question)

    for change, question in nearby(instance):
        way_out = relaxation(instance, question, change, resolver.plan(question))
        if way_out is not None:
            return way_out
    outcome: Attempt = None, ""
    tries = FEW_TRIES if instance.beyond_one_network else TRIES
    for fewer in ways:
        if outcome[0] is None:
            outcome = other_number(instance, is_enough, fewer=fewer, tries=tries)
    return _with_gpus(resolver, instance, outcome, in_vain)


def _one_number(resolver: Resolver, instance: Instance, limit: NumericLimit) -> Relaxation | None:
    threshold = least_number(resolver, instance, limit)
    return None if threshold is None else solved(resolver, instance, [(limit, threshold)])


def _shorter_links(resolver: Resolver, instance: Instance) -> Relaxation | None:
    """Links no longer than some optic of the list reaches."""
    shorter_m = shorter_links(instance)
    if shorter_m is None:
        return None
    wider = with_part(instance, "network", {"link_reach_m": shorter_m})
    change = Change(
        limit="network.link_reach_m",
        now=text_of(instance.network.link_reach_m),
        to=text_of(shorter_m),
        least=None,
        share=None,
    )
    return relaxation(instance, wider, [change], resolver.plan(wider))


def _lists(
    resolver: Resolver, instance: Instance, lists: tuple[ListLimit, ...]
) -> Relaxation | None:
    """Lists with what the best plan among the widest uses of them: the best whose links mate."""
    wide = widened(instance, lists)
    plan = resolver.plan(wide, reasons=False)
    if adds_unmated(instance, wide, plan):
        plans = [
            (question, resolver.plan(question, reasons=False))
            for question in mating_lists(instance, lists)
        ]
        mating = [
            answer
            for question, answer in plans
            if answer.cost is not None and not adds_unmated(instance, question, answer)
        ]
        plan = min(mating, key=attrgetter("objective.value"), default=plan)
    wider, changes = instance, []
    for entry in lists:
        wider, to = entry.with_used(wider, plan)
        if len(to) > len(entry.now):
            changes.append(
                Change(
                    limit=entry.key, now=text_of(entry.now), to=text_of(to), least=None, share=None
                )
            )
    return relaxation(instance, wider, changes, resolver.plan(wider)) if changes else None
