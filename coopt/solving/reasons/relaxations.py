"""The least that has to give for a plan to exist, one limit at a time and jointly; each is solved to be sure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import attrgetter

import numpy as np

from coopt.instance.network import MOST_TIERS
from coopt.instance.schema import Instance
from coopt.perf.mapping import Bools
from coopt.plan.explanation import Change, Relaxation
from coopt.solving.reasons.again import WIDEST_RATIO, feasible, solved
from coopt.solving.reasons.designs import Designs, designs_of
from coopt.solving.reasons.limits import Limit, limits_of, typed, with_gpu, with_part, without_bound
from coopt.solving.reasons.lists import (
    Changed,
    Listed,
    adds_unmated,
    lists_of,
    mating_lists,
    relaxation,
    text_of,
    widened,
)
from coopt.solving.reasons.other_gpus import Tried, another_gpu, fewer, more_or_fewer, nearby
from coopt.solving.reasons.rivals import least_memory_bytes

PARTS = ("network.nics", "network.switches", "network.optics")


def relaxations_of(instance: Instance, conflicts: tuple[tuple[str, ...], ...]) -> Iterator[Relaxation]:
    """What lets a plan in.

    Parameters
    ----------
    conflicts
        Sets of limits that conflict: no single limit helps besides those that are in all of them.
    """
    conflict = set[str].intersection(*map(set, conflicts)) if conflicts else set[str]()
    designs = designs_of(instance)
    lists = {one.key: one for one in lists_of(instance)}
    numbers = [limit for limit in limits_of(instance) if limit.key in conflict]
    memory = _memory(designs) if "cluster.gpu.hbm_gb" in conflict else ()
    single = chain(
        *(_number(designs, limit) for limit in numbers),
        memory,
        _ratio(instance) if "network.oversubscription" in conflict else (),
        _tiers(instance) if "network.max_tiers" in conflict else (),
        _shorter_links(instance) if "network.link_reach_m" in conflict else (),
        *(_widened(instance, (one,)) for key, one in lists.items() if key in conflict),
    )
    verified = partial(_verified, instance)
    found = [one for one in map(verified, single) if one]
    yield from found
    together = tuple(lists[key] for key in PARTS if key in lists)
    if len(together) > 1 and set(PARTS) & conflict and not any(_keys(one) <= set(PARTS) for one in found):
        yield from filter(None, map(verified, _widened(instance, together)))
    joint = _jointly(designs) or (() if found else _after_memory(designs))
    yield from filter(None, map(verified, joint))
    if not len(designs):
        yield from _other_counts(instance)


def with_other_gpus(
    instance: Instance, conflicts: tuple[tuple[str, ...], ...]
) -> tuple[tuple[Relaxation, ...], tuple[str, ...]]:
    """What other numbers of GPUs or faster ones let in; and what of these was tried in vain.

    Where time or memory is short the fewest GPUs are sought; where limits alone are, the most that keep them.
    """
    shared = set[str].intersection(*map(set, conflicts)) if conflicts else set[str]()
    tries: tuple[Tried, ...]
    if any(map(_on_speed, shared)):
        tries = more_or_fewer(instance, feasible), another_gpu(instance, feasible)
    elif any(key.startswith("limits.") for key in shared):
        tries = (fewer(instance, feasible),)
    else:
        return (), ()
    found, in_vain = list[Relaxation](), list[str]()
    for changed, tried in tries:
        one = None if changed is None else _verified(instance, changed)
        if one is not None:
            found.append(one)
        elif tried:
            in_vain.append(tried)
    return tuple(found), tuple(in_vain)


def _on_speed(key: str) -> bool:
    """Whether a limit is one on time or memory, of which more or faster GPUs ask for less."""
    return key == "cluster.gpu.hbm_gb" or (key.startswith("workload[") and ".mapping." not in key)


def _keys(one: Relaxation) -> set[str]:
    return {change.limit for change in one.changes}


def _verified(instance: Instance, changed: Changed) -> Relaxation | None:
    """The relaxation with the plan it lets in; None where it lets none in, or parts in whose links do not mate."""
    changes, wider = changed
    return relaxation(instance, wider, changes, solved(wider))


def _moved(instance: Instance, limit: Limit, amount: float) -> Changed:
    """The limit at the first short number that lets through what takes `amount`."""
    now, least, to = limit.own(limit.cap), limit.own(amount), limit.enough(amount)
    change = Change(limit=limit.key, now=text_of(now), to=text_of(to), least=least, share=least / now - 1)
    moved = next(one for one in limits_of(instance) if one.key == limit.key)
    return (change,), moved.with_number(to)


def _number(designs: Designs, limit: Limit) -> Iterator[Changed]:
    use = designs.uses[limit.key]
    least = use[designs.met(limit.key)].min(initial=np.inf)
    if np.isfinite(least):
        yield _moved(designs.instance, limit, float(least))


def _memory(designs: Designs) -> Iterator[Changed]:
    times = tuple(key for key in designs.uses if key.startswith("workload"))
    yield from _with_memory(designs, designs.met(*times))


def _with_memory(designs: Designs, among: Bools) -> Iterator[Changed]:
    least = least_memory_bytes(designs, among)
    if least is not None:
        gpu = designs.instance.cluster.gpu
        now, least_gb = gpu.hbm_gb, gpu.whole_gb(least)
        to, share = typed(least_gb), least_gb / now - 1
        change = Change(limit="cluster.gpu.hbm_gb", now=text_of(now), to=text_of(to), least=least_gb, share=share)
        yield (change,), with_gpu(designs.instance, to)


def _ratio(instance: Instance) -> Iterator[Changed]:
    """An oversubscription that is enough: designs change at whole numbers and at ratios of whole ports.

    It may not be the least, as fillings of leaves do not grow with the ratio.
    """
    key, now = "oversubscription", instance.network.largest_ratio

    def at(ratio: float) -> Instance:
        return with_part(instance, "network", {key: ratio})

    widest = designs_of(at(WIDEST_RATIO))
    downs = np.array([family.slowdown(1) for family in widest.families])[widest.family]
    ratios = np.unique(np.append(downs / np.maximum(widest.uplinks, 1), np.arange(1, WIDEST_RATIO + 1)))
    ratios = ratios[(ratios > now) & (ratios <= WIDEST_RATIO)]
    low, high = -1, len(ratios) - 1
    if high < 0 or not feasible(at(float(ratios[high]))):
        return
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if feasible(at(float(ratios[middle]))) else (middle, high)
    least = float(ratios[high])
    share = least / now - 1
    to = typed(least)
    yield (
        (Change(limit=f"network.{key}", now=text_of(now), to=text_of(to), least=None, share=share),),
        at(to),
    )


def _tiers(instance: Instance) -> Iterator[Changed]:
    now = instance.network.max_tiers
    for tiers in range(now + 1, MOST_TIERS + 1):
        more = with_part(instance, "network", {"max_tiers": tiers})
        if feasible(more):
            change = Change(limit="network.max_tiers", now=str(now), to=str(tiers), least=tiers, share=tiers / now - 1)
            yield (change,), more
            return


def _shorter_links(instance: Instance) -> Iterator[Changed]:
    """Links no longer than some optic of the list reaches."""
    now = instance.network.link_reach_m
    reached_m = max(optic.reach_m for optic in instance.network.optics)
    to = tuple(min(length_m, reached_m) for length_m in now)
    if to != now:
        change = Change(limit="network.link_reach_m", now=text_of(now), to=text_of(to), least=None, share=None)
        yield (change,), with_part(instance, "network", {"link_reach_m": to})


def _widened(instance: Instance, lists: tuple[Listed, ...]) -> Iterator[Changed]:
    """The lists with what the best plan among the widest lists takes of them; the best whose links mate, where those of
    the best one do not."""
    wide = widened(instance, lists)
    plan = solved(wide)
    if adds_unmated(instance, wide, plan):
        every = [(other, solved(other)) for other in mating_lists(instance, lists)]
        mating = [found for other, found in every if found.design and not adds_unmated(instance, other, found)]
        if not mating:
            return
        plan = min(mating, key=attrgetter("objective.value"))
    if plan.design is None:
        return
    changes = []
    for one in lists:
        instance, to = one.with_used(instance, plan)
        if len(to) > len(one.now):
            changes.append(Change(limit=one.key, now=text_of(one.now), to=text_of(to), least=None, share=None))
    yield tuple(changes), instance


def _jointly(designs: Designs) -> tuple[Changed, ...]:
    """The limits of the design that misses none by more than another design misses one by; all set as numbers."""
    if not len(designs):
        return ()
    shares = np.stack([use / designs.caps[key] for key, use in designs.uses.items()])
    row = int(np.lexsort((np.maximum(shares, 1.0).sum(axis=0), shares.max(axis=0)))[0])
    if not np.isfinite(shares[:, row]).all():
        return ()
    missed = [limit for limit in limits_of(designs.instance) if designs.uses[limit.key][row] > limit.cap]
    if len(missed) < 2:
        return ()
    changes: tuple[Change, ...] = ()
    instance = designs.instance
    for limit in missed:
        more, instance = _moved(instance, limit, float(designs.uses[limit.key][row]))
        changes += more
    return ((changes, instance),)


def _after_memory(designs: Designs) -> Iterator[Changed]:
    """Memory for some mapping at all, and then whatever else has to give."""
    unbound = designs.instance
    for w in range(len(unbound.workload)):
        unbound = without_bound(unbound, w)
    everything = np.ones(len(designs), dtype=np.bool_)
    for (memory,), _ in _with_memory(replace(designs, instance=unbound), everything):
        roomy = with_gpu(designs.instance, float(memory.to))
        again = designs_of(roomy)
        numbers = chain(*(_number(again, limit) for limit in limits_of(roomy)), _jointly(again))
        yield from (((memory, *changes), instance) for changes, instance in numbers)


def _other_counts(instance: Instance) -> Iterator[Relaxation]:
    """The nearest number of GPUs that domains hold and some network joins in time."""
    for changed in nearby(instance):
        found = _verified(instance, changed)
        if found:
            yield found
            return
