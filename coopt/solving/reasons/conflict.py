"""Irreducible sets of limits that no design keeps together, by leaving out one after the other.

A limit whose absence lets no design in stays out; what is left at the end conflicts, and without any one of it some
design does. Where several such sets keep every design out, each is found once the caps of those before it are gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from coopt.instance.schema import Instance
from coopt.network.space import Space, families
from coopt.solving.reasons.again import feasible
from coopt.solving.reasons.limits import limits_of, with_gpu, with_part, without_bound
from coopt.solving.reasons.lists import lists_of

MOST_TIERS = 3
WIDEST_RATIO = 8.0  # of down to up bandwidth that is worth a try
NO_MEMORY_LIMIT_GB = 1e15
Drop = Callable[[Instance], Instance]


def conflicts_of(instance: Instance) -> tuple[tuple[str, ...], ...]:
    """Keys of limits that conflict, a tuple for each reason that lets no design in; bounds on time first.

    Where no network joins the GPUs there is one reason; nothing else counts before there are networks.
    """
    found = [conflict_of(instance)]
    if next(families(instance), None) is None:
        return tuple(filter(None, found))
    without = instance
    while found[-1]:
        without = dropped(without, _given_up(found[-1]))
        if feasible(without):
            break
        found.append(conflict_of(without))
    order = list(drops(instance))
    return tuple(sorted(filter(None, found), key=lambda keys: order.index(keys[0])))


def _given_up(conflict: tuple[str, ...]) -> tuple[str, ...]:
    """What has to go of a conflict before another shows: its caps, or else its bounds on time, or else all of it."""
    for begin in ("limits.", "workload["):
        some = tuple(key for key in conflict if key.startswith(begin) and ".mapping." not in key)
        if some:
            return some
    return conflict


def conflict_of(instance: Instance) -> tuple[str, ...]:
    """Keys of limits that conflict in an infeasible instance; empty where it is so without any of them."""
    without, kept = instance, []
    for key, drop in drops(instance).items():
        less = drop(without)
        if feasible(less):
            kept.append(key)
        else:
            without = less
    return tuple(kept)


def dropped(instance: Instance, keys: Iterable[str]) -> Instance:
    """The instance without some of its limits."""
    every = drops(instance)
    for key in keys:
        instance = every[key](instance)
    return instance


def drops(instance: Instance) -> dict[str, Drop]:
    """Every limit by its key, with the instance free of it."""
    network, found = instance.network, dict[str, Drop]()
    for w, limit in enumerate(limits_of(instance)):
        name = limit.key.rpartition(".")[2]
        found[limit.key] = (
            partial(without_bound, w=w)
            if w < len(instance.workload)
            else partial(with_part, part="limits", update={name: None})
        )
    found["cluster.gpu.hbm_gb"] = partial(with_gpu, hbm_gb=NO_MEMORY_LIMIT_GB)
    if network.max_tiers < MOST_TIERS:
        found["network.max_tiers"] = partial(with_part, part="network", update={"max_tiers": MOST_TIERS})
    if network.largest_ratio < WIDEST_RATIO:
        found["network.oversubscription"] = partial(
            with_part, part="network", update={"oversubscription": WIDEST_RATIO}
        )
    if any(network.link_reach_m) and _ends_short(instance):
        no_length = (0.0,) * len(network.link_reach_m)
        found["network.link_reach_m"] = partial(with_part, part="network", update={"link_reach_m": no_length})
    return found | {one.key: one.dropped for one in lists_of(instance)}


def _ends_short(instance: Instance) -> bool:
    """Whether links of some level that networks may have are longer than every optic that fits them reaches."""
    space = Space(instance=instance)
    return max((len(space.optics(gear)) for gear in space.gears), default=0) < instance.network.max_tiers
