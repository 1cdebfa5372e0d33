"""The optics that levels would take at other prices.

Every level takes the cheapest optic that reaches, so a price of an optic, or of electricity, changes designs and not
only their bills. Each choice that some price brings about is found, and families are written out with all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise

from coopt.instance.hardware import Nic, Optic
from coopt.instance.schema import Instance, Network
from coopt.network.family import Family
from coopt.network.prices import lightest_optics, weigh


def with_other_optics(instance: Instance, every: tuple[Family, ...]) -> Iterator[tuple[int, Family]]:
    """Families with optics they have at other prices, each with the position of the one it comes from."""
    choices = {nic.name: dict.fromkeys(_choices(instance, nic)) for nic in instance.network.nics}
    for number, family in enumerate(every):
        for optics in dict.fromkeys(choice[: family.tiers] for choice in choices[family.nic.name]):
            if optics != family.optics:
                yield number, replace(family, optics=optics)


def _choices(instance: Instance, nic: Nic) -> Iterator[tuple[Optic, ...]]:
    """The optics of all levels at every price of one optic, and at every price of electricity."""
    network, objective = instance.network, instance.objective
    fitting = [optic for optic in network.optics if optic.gbit_s == nic.gbit_s]
    weights = {optic.name: weigh(objective, optic.usd, optic.w) for optic in fitting}
    for name in weights:
        for moved in _between(sorted(set(weights.values()))):
            yield _taken(network, nic, weights | {name: moved})
    if objective.minimize == "tco":
        crossings = {(a.usd - b.usd) / (b.w - a.w) for a, b in combinations(fitting, 2) if a.w != b.w}
        for usd_per_w in _between(sorted({0.0} | {x for x in crossings if x > 0}))[1:]:
            yield _taken(network, nic, {optic.name: optic.usd + usd_per_w * optic.w for optic in fitting})


def _taken(network: Network, nic: Nic, weights: dict[str, float]) -> tuple[Optic, ...]:
    return lightest_optics(network, nic, lambda optic: weights[optic.name])


def _between(marks: list[float]) -> list[float]:
    """A number below all marks, one between any two neighbours, and one above all."""
    return [marks[0] - 1.0, *((low + high) / 2 for low, high in pairwise(marks)), marks[-1] + 1.0]
