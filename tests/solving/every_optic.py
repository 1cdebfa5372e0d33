"""Networks with every listed optic that fits each of their levels, and random lists in which several do."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from hypothesis import strategies as st

from coopt.instance.hardware import Optic, Switch
from coopt.instance.schema import Instance
from coopt.network.family import Family, LinkEnds


def with_every_optic(instance: Instance, families: Iterable[Family]) -> Iterator[Family]:
    """Each network with every choice of optics, whatever optics it comes with.

    Ports are split by the modules of a network's ends, so that others split them alike.
    """
    split_by: dict[Family, set[tuple[int, int]]] = {}
    for family in families:
        split_by.setdefault(replace(family, optics=()), set()).add(cages(family.per_module))
    for base, split in split_by.items():
        for optics in choices(instance, base):
            family = replace(base, optics=optics)
            if instance.network.link_ends == "same" or cages(family.per_module) in split:
                yield family


def cages(per_module: tuple[tuple[int, int], ...]) -> tuple[int, int]:
    """Ports of a leaf, and of an aggregation switch, that the modules of two levels take together."""
    leaf = math.lcm(per_module[0][1], per_module[1][0]) if len(per_module) > 1 else 1
    return leaf, math.lcm(per_module[1][1], per_module[2][0]) if len(per_module) > 2 else 1


def choices(instance: Instance, family: Family) -> Iterator[tuple[LinkEnds, ...]]:
    """Every choice of optics with the reach for each level: of one for both ends that carries as many links as the
    network's, or one, or of one for each end; with lanes of both ends where these are compared."""
    network = instance.network
    own = network.link_ends != "same"
    whole = {(way.name, way.port_gbit_s): way for way in network.switch_modes} if own else {}
    carried = family.per_module or ((1, 1),) * family.tiers
    levels = []
    for level, (reach_m, links) in enumerate(zip(network.link_reach_m, carried, strict=False)):
        reaching = [optic for optic in network.optics if optic.reach_m >= reach_m]
        if not own:
            fit = [LinkEnds(one, one) for one in reaching if (one.links_of(family.link_gbit_s),) * 2 == links]
        else:
            chain = [family.switches[level - 1] if level else None, family.switches[level]]
            boxes = [one and whole[one.name, one.port_gbit_s] for one in chain]
            fit = [LinkEnds(*pair) for pair in product(reaching, repeat=2) if _stand(family, boxes, *pair)]
        if network.tier_switches == "any":
            fit = [ends for ends in fit if _has_lanes(family, level, ends)]
        levels.append(fit)
    return product(*levels)


def _stand(family: Family, boxes: list[Switch | None], below: Optic, above: Optic) -> bool:
    """Whether two optics fit a NIC, which is None, or switches with all of their ports, and meet."""
    if below != above and (below.fibre is None or below.fibre != above.fibre):
        return False
    for optic, box in zip((below, above), boxes, strict=True):
        links = optic.gbit_s / family.link_gbit_s
        if links not in (1, *optic.breakout):
            return False
        if box is None and links != family.nic_planes / family.nic.cages:
            return False
        if box is not None and links > 1 and (box.radix % links or optic.gbit_s > box.cage_gbit_s):
            return False
    return True


def _has_lanes(family: Family, level: int, ends: LinkEnds) -> bool:
    below = set(family.nic.lane_gbit_s) if not level else {family.switches[level - 1].lane_gbit_s} - {None}
    above = {family.switches[level].lane_gbit_s} - {None}
    if ends.below == ends.above:
        able = [lanes for lanes in (below, above) if lanes]
        return not able or ends.above.lane_gbit_s in {None, *set.intersection(*able)}
    both = ((ends.below, below), (ends.above, above))
    return all(not lanes or optic.lane_gbit_s in {None, *lanes} for optic, lanes in both)


def optics(draw: st.DrawFn, rates: list[int], counts: tuple[int, ...] = (1, 1, 1, 2)) -> list[dict[str, Any]]:
    """One to three optics of each rate: the first reaches everywhere, the others may be dearer, hungrier or shorter."""
    return [
        {
            "name": f"o{rate}-{n}" if n else f"o{rate}", "gbit_s": rate,
            "reach_m": draw(st.sampled_from([60, 150, 600])) if n else 500, "usd": draw(st.integers(0, 3000)),
            "w": draw(st.integers(0, 30)),
        }
        for rate in rates
        for n in range(draw(st.sampled_from(counts)))
    ]  # fmt: skip
