"""Networks with every listed optic that fits each of their levels, and random lists in which several do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from hypothesis import strategies as st

from coopt.instance.hardware import Optic
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.growth import Line


def with_every_optic(instance: Instance, families: Iterable[Family]) -> Iterator[Family]:
    """Each network with every choice of optics, whatever optics it comes with."""
    for base in dict.fromkeys(replace(family, optics=()) for family in families):
        for optics in choices(instance, base):
            yield replace(base, optics=optics)


def lines_with_every_optic(instance: Instance, lines: Iterable[Line]) -> Iterator[Line]:
    """Each way to grow with every choice of optics, the same in all phases."""
    bare = (tuple(replace(family, optics=()) for family in line.phases) for line in lines)
    for phases in dict.fromkeys(bare):
        for optics in choices(instance, phases[-1]):
            yield Line(phases=tuple(replace(family, optics=optics[: family.tiers]) for family in phases))


def choices(instance: Instance, family: Family) -> Iterator[tuple[Optic, ...]]:
    """Every choice of an optic with the reach for each level that carries as many links as the network's, or one, and
    has lanes of both ends where these are compared."""
    network, rate = instance.network, family.link_gbit_s
    carried = family.per_module or (1,) * family.tiers
    levels = []
    for level, (reach_m, links) in enumerate(zip(network.link_reach_m, carried, strict=False)):
        able = [set(lanes) for lanes in (family.nic.lane_gbit_s,) if lanes and not level]
        able += [{box.lane_gbit_s} for box in family.switches[max(level - 1, 0) : level + 1] if box.lane_gbit_s]
        fit = [optic for optic in network.optics if optic.links_of(rate) == links and optic.reach_m >= reach_m]
        if network.tier_switches == "any" and able:
            fit = [optic for optic in fit if optic.lane_gbit_s in {None, *set.intersection(*able)}]
        levels.append(fit)
    return product(*levels)


def optics(draw: st.DrawFn, rates: list[int], counts: tuple[int, ...] = (1, 1, 1, 2)) -> list[dict[str, Any]]:
    """One to three optics of each rate: the first reaches everywhere, the others may be dearer, hungrier or shorter."""
    return [
        {
            "name": f"o{rate}-{n}" if n else f"o{rate}",
            "gbit_s": rate,
            "reach_m": draw(st.sampled_from([60, 150, 600])) if n else 500,
            "usd": draw(st.integers(0, 3000)),
            "w": draw(st.integers(0, 30)),
        }
        for rate in rates
        for n in range(draw(st.sampled_from(counts)))
    ]
