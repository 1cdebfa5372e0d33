"""Which optics may a level have, and which are gone through?

Where a plan is judged by its objective alone, a level has the optic that adds least to it. Where something else counts
as well, another may be the better one: a limit on another measure, sites that feed so much and pay different prices of
electricity, phases and intervals of prices with as many weights of a watt, prices by quantity, few products. There any
listed optic of the rate and the reach will do, and all that may be better are gone through.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from coopt.instance.hardware import Nic, Optic
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.plan.schema import Fabric
from coopt.verifier.parts import total
from coopt.verifier.space import Family


def optics_open(instance: Instance, kind: ObjectiveKind) -> bool:
    """Whether an optic that adds more to the objective than another may still be the better one."""
    limits, sharing, robust = instance.limits, instance.sharing, instance.robust
    if sharing.most_products.optics is not None:
        return True
    if "optics" not in instance.objective.include:
        return False
    if (limits.capex_usd is not None and kind != "capex") or (limits.power_mw is not None and kind != "power"):
        return True
    by_quantity = any(discount.kind == "optics" for discount in sharing.discount)
    if kind != "power" and (instance.site or by_quantity):
        return True
    uncertain = robust is not None and robust.aim == "regret" and robust.prices.optics[0] < robust.prices.optics[1]
    return kind == "tco" and (bool(instance.phase) or uncertain)


def fitting(instance: Instance, nic: Nic, level: int) -> list[Optic]:
    """The listed optics of a level (from 1) that have the rate and the reach."""
    network = instance.network
    return [o for o in network.optics if o.gbit_s == nic.gbit_s and o.reach_m >= network.link_reach_m[level - 1]]


def optic_for(instance: Instance, kind: ObjectiveKind, nic: Nic, level: int) -> Optic | None:
    """The one that adds least to the objective, then costs and draws least; None where none fits."""
    there = fitting(instance, nic, level)
    return min(there, key=lambda o: (total(o.usd, o.w, instance.objective).of(kind), o.usd, o.w), default=None)


def allowed(instance: Instance, kind: ObjectiveKind, nic: Nic, level: int) -> list[Optic]:
    """The optics a plan may have at a level: all that fit where the choice is open, or where optics do not count."""
    if optics_open(instance, kind) or "optics" not in instance.objective.include:
        return fitting(instance, nic, level)
    best = optic_for(instance, kind, nic, level)
    return [] if best is None else [best]


def worth_trying(instance: Instance, kind: ObjectiveKind, nic: Nic, level: int) -> list[Optic]:
    """The optics of a level to go through.

    Where the choice is open, one is left out only if another that fits costs no more and draws no more: taking that
    one instead keeps every limit. Where quantities and products count, none is left out.
    """
    if not optics_open(instance, kind):
        best = optic_for(instance, kind, nic, level)
        return [] if best is None else [best]
    there, sharing = fitting(instance, nic, level), instance.sharing
    if any(one.kind == "optics" for one in sharing.discount) or sharing.most_products.optics is not None:
        return there
    kept: list[Optic] = []
    for one in sorted(there, key=lambda optic: (optic.usd, optic.w)):
        if all(one.w < other.w for other in kept):
            kept.append(one)
    return kept


def optics_for(instance: Instance, kind: ObjectiveKind, family: Family, tiers: int) -> Iterable[tuple[Optic, ...]]:
    """Every choice of optics of all levels to go through; none where some level has no optic."""
    if family.gear is None:
        return [()]
    return product(*(worth_trying(instance, kind, family.gear.nic, level) for level in range(1, tiers + 1)))


def names_of(fabric: Fabric) -> tuple[str, ...]:
    """The optics that a plan names, level by level."""
    return tuple(tier.optic for tier in fabric.tier)


def optics_named(
    instance: Instance, kind: ObjectiveKind, family: Family, names: Sequence[str]
) -> tuple[Optic, ...] | None:
    """The optics of a plan by their names, level by level; None where it may not have them."""
    if family.gear is None:
        return ()
    levels = [allowed(instance, kind, family.gear.nic, level) for level in range(1, len(names) + 1)]
    pairs = zip(names, levels, strict=True)
    found = tuple(optic for name, there in pairs for optic in there if optic.name == name)
    return found if len(found) == len(names) else None
