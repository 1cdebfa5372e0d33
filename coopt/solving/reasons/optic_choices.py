"""The optics that levels would take at other prices.

A price of an optic, or of electricity, changes which optics are worth having, and so designs and not only their bills.
At any price of one optic the rest are worth having, or not, as they are where it is not listed. Families are written
out with every choice that some price may bring about; one that no price does is no better than those that are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby, product

from coopt.instance.hardware import Nic, Optic
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.optics import optic_choices


def with_other_optics(instance: Instance, every: tuple[Family, ...]) -> Iterator[tuple[int, Family]]:
    """Families with optics they may have at other prices, each with the position of one that differs in optics only."""
    choices = {nic.name: dict.fromkeys(_choices(instance, nic)) for nic in instance.network.nics}
    for _, alike in groupby(enumerate(every), key=lambda pair: replace(pair[1], optics=())):
        there = list(alike)
        number, family = there[0]
        known = {one.optics for _, one in there}
        for optics in dict.fromkeys(choice[: family.tiers] for choice in choices[family.nic.name]):
            if optics not in known:
                yield number, replace(family, optics=optics)


def _choices(instance: Instance, nic: Nic) -> Iterator[tuple[Optic, ...]]:
    """The optics of all levels at every price of one optic, and at every price of electricity."""
    reaches_m = instance.network.link_reach_m[: len(optic_choices(instance, nic))]
    for optic in instance.network.optics:
        if optic.gbit_s == nic.gbit_s:
            others = optic_choices(_without(instance, optic), nic)
            levels = [others[n] if n < len(others) else () for n in range(len(reaches_m))]
            fits = [(optic,) if optic.reach_m >= reach_m else () for reach_m in reaches_m]
            yield from product(*((*level, *own) for level, own in zip(levels, fits, strict=True)))
    if instance.objective.minimize == "tco":
        yield from product(*optic_choices(instance, nic, ("capex", "power")))


def _without(instance: Instance, optic: Optic) -> Instance:
    listed = tuple(one for one in instance.network.optics if one != optic)
    return instance.model_copy(update={"network": instance.network.model_copy(update={"optics": listed})})
