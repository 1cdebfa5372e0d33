"""The best plan with another choice of one part, the runner-up, and why they lose."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np

from coopt.instance.listings import both
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.parts import cost_of
from coopt.network.space import active_choices
from coopt.perf.mapping import Bools
from coopt.plan.explanation import Rival, RunnerUp
from coopt.solving.reasons.designs import Designs
from coopt.solving.reasons.labels import SAYINGS, number, why_dearer
from coopt.solving.reasons.limits import limits_of

CHOICES: dict[str, Callable[[Family], tuple[str, ...]]] = {
    "cluster.gpus": lambda family: (str(family.gpus),),
    "network.hb_domains": lambda family: (family.hb.name,),
    "network.fabrics": lambda family: (family.fabric,),
    "network.nics": lambda family: (family.nic.name,),
    "network.nics_per_gpu": lambda family: (str(family.nics_per_gpu),),
    "network.gpus_per_nic": lambda family: (str(family.gpus_per_nic),),
    "network.nic_planes": lambda family: (str(family.nic_planes),),
    "network.switches": lambda family: (family.switch.name, *(switch.name for switch in family.upper)),
}
"""What a network uses of each list; of switches those of any tier."""


def rivals_of(designs: Designs, chosen: int) -> Iterator[Rival]:
    """One for every entry of the instance's lists that the chosen design does not use."""
    taken, _ = designs.of(chosen)
    for part, choice_of in CHOICES.items():
        used = [choice_of(family) for family in designs.families]
        for choice in _listed(designs.instance, part):
            if choice not in choice_of(taken):
                among = np.array([choice in names for names in used], dtype=np.bool_)
                yield _rival(designs, chosen, part, choice, among[designs.family])


def runner_up(designs: Designs, chosen: int) -> RunnerUp | None:
    """The best design besides the chosen one."""
    row = designs.cheapest(designs.met() & ~designs.same_as(chosen))
    if row is None:
        return None
    return RunnerUp(
        value=float(designs.value[row]),
        regret=designs.extra(row, chosen),
        design=designs.design(row),
        why=_difference(designs, chosen, row),
    )


def _listed(instance: Instance, part: str) -> list[str]:
    table, key = part.split(".")
    return [str(getattr(entry, "name", entry)) for entry in getattr(getattr(instance, table), key)]


def _rival(designs: Designs, chosen: int, part: str, choice: str, among: Bools) -> Rival:
    row = designs.cheapest(designs.met() & among)
    if row is None:
        why = _obstacle(designs, among) if among.any() else _no_design(designs.instance, part, choice)
        return Rival(part=part, choice=choice, value=None, extra=None, design=None, why=why)
    return Rival(
        part=part,
        choice=choice,
        value=float(designs.value[row]),
        extra=designs.extra(row, chosen),
        design=designs.design(row),
        why=_difference(designs, chosen, row),
    )


def _difference(designs: Designs, chosen: int, row: int) -> str:
    """Why a design that meets everything is not the chosen one."""
    if designs.same_as(chosen)[row]:
        return "is the same network by another name"
    instance = designs.instance
    ours, theirs = ((designs.design(i), cost_of(instance, *designs.of(i))) for i in (chosen, row))
    if not designs.extra(row, chosen):
        if designs.is_timed:
            return f"{SAYINGS[instance.objective.minimize].same}, and {why_dearer(instance.objective, ours, theirs)}"
        return f"{SAYINGS[instance.objective.minimize].same}, and is no faster"
    return why_dearer(instance.objective, ours, theirs)


def _obstacle(designs: Designs, among: Bools) -> str:
    """The limit that comes nearest to being met where all others are; without one, those of the nearest design."""
    limits = {limit.key: limit for limit in limits_of(designs.instance)}
    nearest: list[tuple[float, str]] = []
    for key, limit in limits.items():
        rows = among & designs.met(key) & np.isfinite(designs.uses[key])
        if rows.any():
            best = float(designs.uses[key][rows].min())
            own, reached = number(limit.own(limit.cap)), number(limit.enough(best))
            text = f"the best of them comes to {reached} {limit.unit}, and {key} is {own} {limit.unit}"
            nearest.append((best / limit.cap, text))
    if nearest:
        return min(nearest)[1]
    shares = np.stack([designs.uses[key] / cap for key, cap in designs.caps.items()])[:, among]
    row = int(np.argmin(shares.max(axis=0)))
    if not np.isfinite(shares[:, row]).all():
        return "no mapping divides evenly and fits into memory"
    missed = [key for key, share in zip(designs.caps, shares[:, row], strict=True) if share > 1]
    return f"it misses {both(missed)} together"


def _no_design(instance: Instance, part: str, choice: str) -> str:
    """Why not even one family has that part."""
    network, counts = instance.network, instance.cluster.gpus
    if part == "network.hb_domains":
        hb = next(one for one in network.hb_domains if one.name == choice)
        if not any(active_choices(gpus, hb, network.domain_fill) for gpus in counts):
            return f"the GPUs do not spread evenly over domains of {hb.size} with more than half of each in use"
    listed = [(nic, planes) for nic, planes in product(network.nics, network.nic_planes) if planes in nic.ports]
    rates = {nic.gbit_s / planes for nic, planes in listed}
    ports = {way.port_gbit_s for way in network.switch_ways if way.name == choice}
    if part == "network.switches" and ports.isdisjoint(rates):
        return "no NIC has the rate of its ports"
    if part == "network.nics":
        own = {nic.gbit_s / planes for nic, planes in listed if nic.name == choice}
        if own.isdisjoint(way.port_gbit_s for way in network.switch_ways):
            return "no switch has ports of its rate"
    longest_m, reach_m = network.link_reach_m[1], max(optic.reach_m for optic in network.optics)
    if part == "network.fabrics" and network.max_tiers > 1 and reach_m < longest_m:
        return f"no optic listed reaches the {longest_m:g} m from one tier to the next (network.link_reach_m)"
    return f"it joins the GPUs by no network of at most {network.max_tiers} tiers, whatever else is chosen"
