"""The least that has to give for a plan to exist, one limit at a time and jointly; each is solved
to be sure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import attrgetter

import numpy as np

from coopt.instance.errors import counted
from coopt.instance.network import MAX_TIERS
from coopt.instance.schema import Instance
from coopt.perf.mapping import Bools
from coopt.plan.contents import built
from coopt.plan.explanation import Change, Relaxation
from coopt.plan.schema import Design, Plan
from coopt.solving.reasons.again import WIDEST_RATIO, feasible, solved
from coopt.solving.reasons.designs import Designs, designs_of
from coopt.solving.reasons.limits import (
    Limit,
    ListLimit,
    adds_unmated,
    limits_of,
    lists_of,
    mating_lists,
    text_of,
    typed,
    widened,
    with_gpu,
    with_part,
    without_bound,
)
from coopt.solving.reasons.other_gpus import (
    Attempt,
    WayOut,
    another_gpu,
    fewer,
    more_or_fewer,
    nearby,
)
from coopt.solving.reasons.rivals import least_memory_bytes

PARTS = ("network.nics", "network.switches", "network.optics")


def relaxations_of(
    instance: Instance, conflicts: tuple[tuple[str, ...], ...]
) -> Iterator[Relaxation]:
    """What lets a plan in.

    Parameters
    ----------
    conflicts
        Sets of limits that conflict: no single limit helps besides those that are in all of them.
    """
    conflict = set[str].intersection(*map(set, conflicts)) if conflicts else set[str]()
    designs = designs_of(instance)
    lists = {entry.key: entry for entry in lists_of(instance)}
    numbers = [limit for limit in limits_of(instance) if limit.key in conflict]
    memory = _memory(designs) if "cluster.gpu.hbm_gb" in conflict else ()
    single = chain(
        *(_number(designs, limit) for limit in numbers),
        memory,
        _ratio(instance) if "network.oversubscription" in conflict else (),
        _tiers(instance) if "network.max_tiers" in conflict else (),
        _shorter_links(instance) if "network.link_reach_m" in conflict else (),
        *(_widened(instance, (entry,)) for key, entry in lists.items() if key in conflict),
    )
    verified = partial(_verified, instance)
    relaxations = [entry for entry in map(verified, single) if entry]
    yield from relaxations
    part_lists = tuple(lists[key] for key in PARTS if key in lists)
    if (
        len(part_lists) > 1
        and set(PARTS) & conflict
        and not any(_keys(entry) <= set(PARTS) for entry in relaxations)
    ):
        yield from filter(None, map(verified, _widened(instance, part_lists)))
    # no design has a finite time where no mapping fits: then memory gives first, and the rest after
    # it
    joint = _jointly(designs) or (() if relaxations else _after_memory(designs))
    yield from filter(None, map(verified, joint))
    if not len(designs):
        yield from _other_counts(instance)


def with_other_gpus(
    instance: Instance, conflicts: tuple[tuple[str, ...], ...]
) -> tuple[tuple[Relaxation, ...], tuple[str, ...]]:
    """What other numbers of GPUs or faster ones let in; and what of these was tried in vain.

    Where time or memory is short the fewest GPUs are sought; where limits alone are, the most that
    keep them.
    """
    keys = set[str].intersection(*map(set, conflicts)) if conflicts else set[str]()
    tries: tuple[Attempt, ...]
    if any(map(_on_speed, keys)):
        tries = more_or_fewer(instance, feasible), another_gpu(instance, feasible)
    elif any(key.startswith("limits.") for key in keys):
        tries = (fewer(instance, feasible),)
    else:
        return (), ()
    relaxations, in_vain = list[Relaxation](), list[str]()
    for change, attempt in tries:
        relaxation = None if change is None else _verified(instance, change)
        if relaxation is not None:
            relaxations.append(relaxation)
        elif attempt:
            in_vain.append(attempt)
    return tuple(relaxations), tuple(in_vain)


def _on_speed(key: str) -> bool:
    """Whether a limit is one on time or memory, of which more or faster GPUs ask for less."""
    return key == "cluster.gpu.hbm_gb" or (key.startswith("workload[") and ".mapping." not in key)


def _keys(relaxation: Relaxation) -> set[str]:
    return {change.limit for change in relaxation.changes}


def relaxation(
    instance: Instance, wider: Instance, changes: Sequence[Change], plan: Plan
) -> Relaxation | None:
    """A way out of an instance with the plan of the wider one; None where that has none, or adds
    parts that do not mate.
    """
    if plan.cost is None or plan.objective.value is None or adds_unmated(instance, wider, plan):
        return None
    gpu, domain_names = wider.cluster.gpu.name, {network.hb_domain.name for network in built(plan)}
    domain_names -= {domain.name for domain in instance.network.hb_domains}
    notes = [
        domain.study_note(gpu) for domain in wider.network.hb_domains if domain.name in domain_names
    ]
    value, design = plan.objective.value, plan.design
    if (
        design is not None
        and design.spare_gpus
        and wider.cluster.most_gpus != instance.cluster.most_gpus
    ):
        notes.append(_idle_note(design))
    return Relaxation(
        changes=tuple(changes), value=value, design=design, notes=tuple(filter(None, notes))
    )


def _idle_note(design: Design) -> str:
    """Which GPUs a design has beside those that train."""
    domains = counted(design.spare_domains, "domain")
    standing_by = f" ({domains} standing by)" if design.spare_domains else ""
    return (
        f"Besides the {design.gpus:,} GPUs that train it has"
        f" {counted(design.spare_gpus, 'idle spare')}{standing_by}."
    )


def _verified(instance: Instance, change: WayOut) -> Relaxation | None:
    """The relaxation with the plan it lets in; None where it lets none in, or parts in whose links
    do not mate.
    """
    changes, wider = change
    return relaxation(instance, wider, changes, solved(wider))


def _moved(instance: Instance, limit: Limit, amount: float) -> WayOut:
    """The limit at the first short number that lets through what takes `amount`."""
    number, minimum, to = limit.own(limit.cap), limit.own(amount), limit.enough(amount)
    change = Change(
        limit=limit.key,
        now=text_of(number),
        to=text_of(to),
        least=minimum,
        share=minimum / number - 1,
    )
    moved = next(entry for entry in limits_of(instance) if entry.key == limit.key)
    return (change,), moved.with_number(to)


def _number(designs: Designs, limit: Limit) -> Iterator[WayOut]:
    use = designs.uses[limit.key]
    minimum = use[designs.met(limit.key)].min(initial=np.inf)
    if np.isfinite(minimum):
        yield _moved(designs.instance, limit, float(minimum))


def _memory(designs: Designs) -> Iterator[WayOut]:
    times = tuple(key for key in designs.uses if key.startswith("workload"))
    yield from _with_memory(designs, designs.met(*times))


def _with_memory(designs: Designs, among: Bools) -> Iterator[WayOut]:
    need_bytes = least_memory_bytes(designs, among)
    if need_bytes is not None:
        gpu = designs.instance.cluster.gpu
        hbm_gb, least_gb = gpu.hbm_gb, gpu.whole_gb(need_bytes)
        to, share = typed(least_gb), least_gb / hbm_gb - 1
        change = Change(
            limit="cluster.gpu.hbm_gb",
            now=text_of(hbm_gb),
            to=text_of(to),
            least=least_gb,
            share=share,
        )
        yield (change,), with_gpu(designs.instance, to)


def _ratio(instance: Instance) -> Iterator[WayOut]:
    """An oversubscription that is enough: designs change at whole numbers and at ratios of whole
    ports.

    It may not be the least, as fillings of leaves do not grow with the ratio.
    """
    key, ratio_now = "oversubscription", instance.network.largest_ratio

    def at(ratio: float) -> Instance:
        return with_part(instance, "network", {key: ratio})

    widest = designs_of(at(WIDEST_RATIO))
    downs = np.array([family.slowdown(1) for family in widest.families])[widest.family]
    ratios = np.unique(
        np.append(downs / np.maximum(widest.uplinks, 1), np.arange(1, WIDEST_RATIO + 1))
    )
    ratios = ratios[(ratios > ratio_now) & (ratios <= WIDEST_RATIO)]
    low, high = -1, len(ratios) - 1
    if high < 0 or not feasible(at(float(ratios[high]))):
        return
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if feasible(at(float(ratios[middle]))) else (middle, high)
    minimum = float(ratios[high])
    share = minimum / ratio_now - 1
    to = typed(minimum)
    yield (
        (
            Change(
                limit=f"network.{key}",
                now=text_of(ratio_now),
                to=text_of(to),
                least=None,
                share=share,
            ),
        ),
        at(to),
    )


def _tiers(instance: Instance) -> Iterator[WayOut]:
    tiers_now = instance.network.max_tiers
    for tiers in range(tiers_now + 1, MAX_TIERS + 1):
        question = with_part(instance, "network", {"max_tiers": tiers})
        if feasible(question):
            change = Change(
                limit="network.max_tiers",
                now=str(tiers_now),
                to=str(tiers),
                least=tiers,
                share=tiers / tiers_now - 1,
            )
            yield (change,), question
            return


def _shorter_links(instance: Instance) -> Iterator[WayOut]:
    """Links no longer than some optic of the list reaches."""
    lengths_m = instance.network.link_reach_m
    reached_m = max(optic.reach_m for optic in instance.network.optics)
    to = tuple(min(length_m, reached_m) for length_m in lengths_m)
    if to != lengths_m:
        change = Change(
            limit="network.link_reach_m",
            now=text_of(lengths_m),
            to=text_of(to),
            least=None,
            share=None,
        )
        yield (change,), with_part(instance, "network", {"link_reach_m": to})


def _widened(instance: Instance, lists: tuple[ListLimit, ...]) -> Iterator[WayOut]:
    """The lists with what the best plan among the widest lists takes of them; the best whose links
    mate, where those of the best one do not.
    """
    wide = widened(instance, lists)
    plan = solved(wide)
    if adds_unmated(instance, wide, plan):
        answers = [(question, solved(question)) for question in mating_lists(instance, lists)]
        mating = [
            answer
            for question, answer in answers
            if answer.design and not adds_unmated(instance, question, answer)
        ]
        if not mating:
            return
        plan = min(mating, key=attrgetter("objective.value"))
    if plan.design is None:
        return
    changes = []
    for entry in lists:
        instance, to = entry.with_used(instance, plan)
        if len(to) > len(entry.now):
            changes.append(
                Change(
                    limit=entry.key, now=text_of(entry.now), to=text_of(to), least=None, share=None
                )
            )
    yield tuple(changes), instance


def _jointly(designs: Designs) -> tuple[WayOut, ...]:
    """The limits of the design that misses none by more than another design misses one by; all set
    as numbers.
    """
    if not len(designs):
        return ()
    shares = np.stack([use / designs.caps[key] for key, use in designs.uses.items()])
    row = int(np.lexsort((np.maximum(shares, 1.0).sum(axis=0), shares.max(axis=0)))[0])
    if not np.isfinite(shares[:, row]).all():
        return ()
    missed = [
        limit for limit in limits_of(designs.instance) if designs.uses[limit.key][row] > limit.cap
    ]
    if len(missed) < 2:
        return ()
    changes: tuple[Change, ...] = ()
    instance = designs.instance
    for limit in missed:
        moves, instance = _moved(instance, limit, float(designs.uses[limit.key][row]))
        changes += moves
    return ((changes, instance),)


def _after_memory(designs: Designs) -> Iterator[WayOut]:
    """Memory for some mapping at all, and then whatever else has to give."""
    unbound = designs.instance
    for w in range(len(unbound.workload)):
        unbound = without_bound(unbound, w)
    everything = np.ones(len(designs), dtype=np.bool_)
    for (memory,), _ in _with_memory(replace(designs, instance=unbound), everything):
        roomy = with_gpu(designs.instance, float(memory.to))
        designs_with_room = designs_of(roomy)
        numbers = chain(
            *(_number(designs_with_room, limit) for limit in limits_of(roomy)),
            _jointly(designs_with_room),
        )
        yield from (((memory, *changes), instance) for changes, instance in numbers)


def _other_counts(instance: Instance) -> Iterator[Relaxation]:
    """The nearest number of GPUs that domains hold and some network joins in time."""
    for change in nearby(instance):
        relaxation = _verified(instance, change)
        if relaxation:
            yield relaxation
            return
