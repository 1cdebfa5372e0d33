"""Why no network stands every loss: which loss it is, and what would help."""

from __future__ import annotations

import math
from collections.abc import Callable

from coopt.columns.context import context_of
from coopt.instance.robust import Lost, Robust
from coopt.instance.schema import Instance
from coopt.instance.variants import after_a_loss
from coopt.network.family import Family
from coopt.solving.explain import rounded_up
from coopt.solving.robust.survival import Jobs, surviving
from coopt.solving.runs import StoppedError

Check = Callable[[], None]
FARTHEST = 16.0
"""How much longer than asked for a bound is looked into."""

HELP: dict[Lost, str] = {
    "nic": "more NICs for each GPU, or faster ones",
    "leaf": "another fabric (a lost Clos leaf cuts whole domains off), or more NICs for each GPU",
    "plane": "another fabric (one plane has no other), or more NICs for each GPU",
    "domain": "more and smaller domains, or a longer bound",
}


def no_survivor(instance: Instance, robust: Robust, families: tuple[Family, ...], check: Check) -> tuple[str, ...]:
    """One sentence for each loss that no network which meets the bounds stands; else one for all of them together."""

    def fatal(part: Lost) -> bool:
        only = robust.model_copy(update={"survive": (part,)})
        return only == robust or not surviving(instance, only, families, check)

    alone = [part for part in robust.survive if fatal(part)]
    if alone:
        return tuple(_alone(instance, robust.slower.of_part[part], part, families, check) for part in alone)
    parts = ", ".join(robust.survive)
    return (
        f"robust.survive = {parts}: each of these losses is survived by some network that meets the bounds, all of "
        "them by none: needs a larger robust.slower, or fewer losses to survive",
    )


def _alone(instance: Instance, slower: float, part: Lost, families: tuple[Family, ...], check: Check) -> str:
    said = (
        f"robust.survive = {part}: no network that meets the bounds still meets them, {slower:g} times as long, after "
        f"the loss of any one {part}: needs "
    )
    if part != "domain":
        return f"{said}a larger robust.slower.{part}, {HELP[part]}"
    try:
        least = least_slower(instance, families, slower, check)
    except StoppedError:  # what is proven stays proven, and how much would be enough open
        return f"{said}a larger robust.slower.{part}, {HELP[part]}"
    if math.isinf(least):
        return f"{said}{HELP[part]} (no robust.slower.{part} up to {slower * FARTHEST:g} is enough)"
    return f"{said}robust.slower.{part} of at least {rounded_up(least)}, {HELP[part]}"


def least_slower(instance: Instance, families: tuple[Family, ...], slower: float, check: Check) -> float:
    """The least factor with which some network survives the loss of a domain; infinite where it is far off."""
    different = {_seen(family): family for family in families}
    least, within = math.inf, slower
    while math.isinf(least) and within < FARTHEST * slower:
        within *= 2
        jobs = Jobs(after_a_loss(instance, within))
        for family in sorted(different.values(), key=_taper):
            check()
            runs = jobs.runs(family, family.uplink_choices[-1], min(least / within, 1.0))
            if runs is not None:
                pairs = zip(runs, instance.workload, strict=True)
                least = min(least, max(run.iteration_time_s / workload.bound_s for run, workload in pairs))
    return least


def _seen(family: Family) -> object:
    """Families with all their uplinks that are the same to every job, whichever domain is lost."""
    layout = context_of(family).layout
    leaves = () if layout.is_flat else (layout, family.uplink_choices[-1], family.leaf_span, family.pods)
    return family.gpus, family.hb.name, family.active, family.byte_s, leaves


def _taper(family: Family) -> float:
    """How many ports below a leaf share one that leads all the way up, with all uplinks."""
    return family.slowdown(family.uplink_choices[-1]) * family.pod_ratio
