"""Which kind of cable each link of a network has: the cheapest one that reaches as far as the link
is long in the hall (docs/network.md).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from coopt.instance.schema import Instance
from coopt.network.family import CableRun, Family, TierChain, dealt, whole
from coopt.network.optics import EndsByLevel
from coopt.network.parts import weigh
from coopt.network.placing import Lengths, PlacedLeaves, Placing, placing_of


def laid(
    instance: Instance, family: Family, below: PlacedLeaves, choices: EndsByLevel
) -> Family | None:
    """A family of one number of uplinks with the cheapest cables of their lengths; None where some
    cable is longer than any ends of the choices reach.

    Parameters
    ----------
    below
        Where its leaves stand.
    choices
        The ends that links of each level may have, of as many links to a module.
    """
    runs = length_runs(placing_of(instance, family, family.uplink_choices[0], below), family)
    cables = list[tuple[CableRun, ...]]()
    for level, ends_of_level in zip(runs, choices, strict=True):
        of_level = list[CableRun]()
        for length_m, run in sorted(level.items()):
            laid_runs = (
                CableRun(length_m, ends, run["links"], run["below"], run["above"])
                for ends in ends_of_level
                if ends.reach_m >= length_m
            )
            cheapest = min(laid_runs, key=partial(_added, instance), default=None)
            if cheapest is None:
                return None
            of_level.append(cheapest)
        cables.append(tuple(of_level))
    optics = tuple(level[-1].ends for level in cables)
    return replace(family, optics=optics, cables=tuple(cables))


def _added(instance: Instance, run: CableRun) -> tuple[object, ...]:
    """What cables add to the objective, their price and their power; names decide between equal
    ones.
    """
    below, above = run.ends
    usd, w = (
        run.below * lower + run.above * upper
        for lower, upper in ((below.usd, above.usd), (below.w, above.w))
    )
    is_counted = "optics" in instance.objective.include
    value = weigh(instance.objective, usd, w) if is_counted else 0.0
    return value, usd, w, below.name != above.name, below.name, above.name


Runs = defaultdict[int, Counter[str]]
"""`links`, and modules `below` and `above`, by the length that cables need (m)."""


def length_runs(placing: Placing, family: Family) -> list[Runs]:
    """The cables of each level by the length that they need (m), over all networks."""
    chain, runs = placing.chain, [Runs(Counter) for _ in family.optics]
    if not runs:
        return []
    of_nic, of_leaf = family.per_module[0]
    for leaf, ends in placing.ends.items():
        of_plane = placing.leaf_lengths(leaf, ends)
        for times, together in _sharing(chain):
            lengths = Lengths({m: together * n for m, n in of_plane.items()})
            for length_m, links in in_modules(lengths, of_leaf).items():
                above = -(-links // of_leaf)
                runs[0][length_m].update(links=times * links, above=times * above)
    for run in runs[0].values():
        # a module of a NIC leads to several planes, all of which are laid alike
        run["below"] = run["links"] // of_nic
    for fan in fans(placing, family):
        n_below, n_above = family.per_module[fan.level]
        for length_m, count in Counter(fan.needs_m.values()).items():
            runs[fan.level][length_m].update(
                links=fan.times * count * fan.links,
                below=fan.times * count * -(-fan.links // n_below),
                above=fan.times * whole(dealt(1, count * fan.links, fan.switches), n_above),
            )
    return runs


class Fan(NamedTuple):
    """Switches below a level (from 0) whose cables are dealt to the same switches above, so many
    `times`: the length that those of each need (m), by its number, and how many each has.
    """

    level: int
    needs_m: Mapping[int, int]
    links: int
    switches: int
    times: int


def fans(placing: Placing, family: Family) -> Iterator[Fan]:
    """The leaves of each pod, and the pods, of which each has a spine in every group of cores."""
    chain = placing.chain
    for number, (pod, leaves) in enumerate(chain.each_pod()):
        ways_m = [placing.leaf_up_m(leaf, number) for leaf in leaves]
        needs = needed_m(ways_m, chain.uplinks, pod.spines, family.per_module[1][1])
        yield Fan(
            1, dict(zip(leaves, needs, strict=True)), chain.uplinks, pod.spines, chain.networks
        )
    if chain.cores:
        groups, ups = chain.core_groups, [pod.up for pod, _ in chain.each_pod()]
        ways_m, cores = (
            [placing.pod_up_m(number) for number in range(len(ups))],
            chain.cores // groups,
        )
        needs = needed_m(ways_m, ups[0], cores, family.per_module[2][1])
        yield Fan(2, dict(enumerate(needs)), ups[0], cores, chain.networks * groups)


def _sharing(chain: TierChain) -> Iterator[tuple[int, int]]:
    """Leaf switches, and how many networks each holds: so many times as many."""
    if chain.pods:
        yield chain.networks, 1
        return
    each = chain.networks_per_switch
    full, rest = divmod(chain.networks // chain.planes, each)
    yield from ((chain.planes * n, of) for n, of in ((full, each), (1, rest)) if n and of)


def in_modules(lengths: Lengths, per_module: int) -> Lengths:
    """Cables of a switch by the length that they need (m): modules are filled from the longest on,
    and each is of the kind of its longest.
    """
    needed, last_m, room = Lengths(), 0, 0
    for length_m in sorted(lengths, reverse=True):
        filling = min(room, lengths[length_m])
        rest = lengths[length_m] - filling
        needed[last_m] += filling
        room -= filling
        if rest:
            needed[length_m] += rest
            last_m, room = length_m, -rest % per_module
    return +needed


def needed_m(ways_m: Sequence[int], links: int, switches: int, per_module: int) -> list[int]:
    """The length that the cables of each of several switches need (m), which lead to the same
    switches above: as many of them as fill whole modules there are of the kind of the longest.

    Parameters
    ----------
    links
        Cables of each of them, dealt to so many switches.
    per_module
        Cables of a module above.
    """
    bundle, rest = divmod(links, switches)
    together = per_module // math.gcd(per_module, bundle)
    if rest and per_module > 1:
        together = len(ways_m)  # uneven bundles fill modules of each switch otherwise
    order = sorted(range(len(ways_m)), key=lambda number: -ways_m[number])
    needed = [0] * len(ways_m)
    for place, number in enumerate(order):
        needed[number] = ways_m[order[place // together * together]]
    return needed
