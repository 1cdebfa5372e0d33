"""An irreducible set of limits that no design keeps together, by leaving out one after the other.

A limit whose absence lets no design in stays out; what is left at the end conflicts, and without any one of it some
design does. Lists are tried first, so that a limit set as a number is named rather than a list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from coopt.instance.schema import Instance
from coopt.solving.reasons.again import feasible
from coopt.solving.reasons.limits import limits_of, with_gpu, with_part, without_bound
from coopt.solving.reasons.lists import lists_of

MOST_TIERS = 3
WIDEST_RATIO = 8.0  # of down to up bandwidth that is worth a try
NO_MEMORY_LIMIT_GB = 1e15
Drop = Callable[[Instance], Instance]


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
    return found | {one.key: one.dropped for one in lists_of(instance)}
