"""Which limits conflict: irreducible sets that no plan keeps together.

Leaving out limits finds them. A limit whose absence lets no plan in stays out; what is left at the
end conflicts, and without any one of it some plan does. Where several such sets keep every plan
out, each is found once the caps of those before it are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from coopt.explain.limits import MEMORY, numeric_limits, of_any_site, shorter_links
from coopt.explain.lists import lists_of
from coopt.instance.schema import Instance, with_part

Drop = Callable[[Instance], Instance]
IsFeasible = Callable[[Instance], bool]


def conflicts_of(instance: Instance, is_feasible: IsFeasible) -> tuple[tuple[str, ...], ...]:
    """Keys of limits that conflict, a tuple for each reason that lets no plan in; bounds on time
    first.

    Where no cap and no bound is to blame there is one reason; nothing else counts before there are
    networks.
    """
    drop_of = drops(instance)
    conflicts, freed = [conflict_of(instance, is_feasible)], instance
    while given_up := _caps_or_times(conflicts[-1]):
        freed = without(freed, given_up, drop_of)
        if is_feasible(freed):
            break
        conflicts.append(conflict_of(freed, is_feasible))
    order = list(drop_of)
    return tuple(sorted(filter(None, conflicts), key=lambda keys: order.index(keys[0])))


def _caps_or_times(conflict: tuple[str, ...]) -> tuple[str, ...]:
    """What has to go of a conflict before another shows: its caps, or else its bounds on time."""
    for begin in ("limits.", "workload["):
        keys = tuple(key for key in conflict if key.startswith(begin) and ".mapping." not in key)
        if keys:
            return keys
    return ()


def conflict_of(instance: Instance, is_feasible: IsFeasible) -> tuple[str, ...]:
    """Keys of limits that conflict in an infeasible instance; empty where it is so without any of
    them.

    Limits on use are left out one by one. Few of all others conflict: they are left out together,
    and halves of them where that lets a plan in, which tells of each key what leaving out one after
    the other does.
    """
    drop_of, freed, conflict = drops(instance), instance, list[str]()
    alone = {
        limit.key
        for limit in numeric_limits(instance)
        if limit.unit and not (limit.structural or limit.key.endswith(f".{MEMORY}"))
    }
    others = tuple(key for key in drop_of if key not in alone)
    waiting = [*((key,) for key in drop_of if key in alone), others]
    while waiting:
        group = waiting.pop(0)
        remainder = without(freed, group, drop_of)
        if not is_feasible(remainder):
            freed = remainder
        elif len(group) == 1:
            # without it and all that was dropped so far some plan gets in: every conflict of what
            # is left has it
            conflict += group
        else:
            middle = len(group) // 2
            waiting[:0] = group[:middle], group[middle:]
    return tuple(conflict)


def without(instance: Instance, keys: Iterable[str], drop_of: dict[str, Drop]) -> Instance:
    """The instance without some of its limits."""
    for key in keys:
        instance = drop_of[key](instance)
    return instance


def drops(instance: Instance) -> dict[str, Drop]:
    """Every limit by its key, with the instance free of it."""
    drop_of: dict[str, Drop] = {}
    for limit in map(of_any_site, numeric_limits(instance)):
        drop_of[limit.key] = partial(limit.within, number=limit.loosest)
    if shorter_links(instance):
        no_length = (0.0,) * len(instance.network.link_reach_m)
        drop_of["network.link_reach_m"] = partial(
            with_part, part="network", update={"link_reach_m": no_length}
        )
    return drop_of | {entry.key: entry.dropped for entry in lists_of(instance)}
