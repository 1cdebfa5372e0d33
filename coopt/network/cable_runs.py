"""The cables of a network in its hall: how many there are of each length, and the modules at both
ends of these (docs/network.md).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain, product
from typing import NamedTuple

import numpy as np

from coopt.network.family import Ints, TierChain, dealt, whole
from coopt.network.optics import PerModule
from coopt.network.placing import Bay, PlacedChain, Placing, to_core_m


class RunOfLength(NamedTuple):
    """Cables of one length (m) on a level, and the modules at their lower and their upper ends."""

    length_m: int
    links: int
    below: int
    above: int


class Stage(NamedTuple):
    """What stands of a network: as many waves of its domains beside the first, and its chain with
    the uplinks of the end.
    """

    waves: int
    chain: TierChain


MOST_LAID = 20_000
"""Networks whose lengths of cables are kept, of some 2 kB each."""


@lru_cache(maxsize=MOST_LAID)
def runs_of(
    placed_chain: PlacedChain, per_module: PerModule, stages: tuple[Stage, ...]
) -> tuple[tuple[tuple[RunOfLength, ...], ...], ...]:
    """The cables of each level by length in each stage, as many lengths as there are in the end;
    those of networks that differ in products or prices alone are counted once.
    """
    counted = length_runs(placed_chain.placed(), per_module, stages)
    return tuple(
        tuple(
            tuple(
                RunOfLength(m, *(level[m][key] for key in ("links", "below", "above")))
                for m in sorted(last)
            )
            for level, last in zip(of_stage, counted[-1], strict=False)
        )
        for of_stage in counted
    )


@lru_cache(maxsize=MOST_LAID)
def core_runs_of(
    placed_chain: PlacedChain,
    stages: tuple[Stage, ...],
    links: int,
    times: int,
    per_module: tuple[int, int],
    bay: Bay,
) -> tuple[tuple[RunOfLength, ...], ...]:
    """The cables into a core by length in each stage: so many from each leaf of as many networks,
    or from the first rack where there is no leaf, with whole modules of each below. Modules of the
    core are filled as those of spines are.
    """
    placing, (n_below, n_above) = placed_chain.placed(), per_module
    spots, waves = np.array([placing.switch_racks.spot(placing.hall.rack_of(0))]), np.array([0])
    if placing.amid:
        spots, waves = np.repeat(placing.spots[0], times), np.repeat(wave_of_leaves(placing), times)
    ways_m = np.asarray(to_core_m(placing.hall, spots, bay), dtype=np.int64)
    needs = needed_m(ways_m, waves, links, 1, n_above)
    return tuple(
        tuple(
            RunOfLength(
                length_m=int(m),
                links=int(count) * links,
                below=int(count) * -(-links // n_below),
                above=-(-int(count) * links // n_above),
            )
            for m in np.unique(needs)
            for count in [np.sum(needs[waves <= stage.waves] == m)]
        )
        for stage in stages or (Stage(0, placed_chain.chain),)
    )


Runs = defaultdict[int, Counter[str]]
"""`links`, and modules `below` and `above`, by the length that cables need (m)."""


def length_runs(
    placing: Placing, per_module: PerModule, stages: Sequence[Stage] = ()
) -> list[list[Runs]]:
    """The cables of each level by the length that they need (m), over all networks, in each stage
    of growth; in the only one where none are given.
    """
    stages = stages or (Stage(0, placing.chain),)
    found = [[Runs(Counter) for _ in stage.chain.levels] for stage in stages]
    if not per_module:
        return found
    of_nic = per_module[0][0]
    for times, together in _sharing(placing.chain):
        filled = filled_leaves(placing, together, per_module[0][1])
        for stage, runs in zip(stages, found, strict=True):
            for key, of in (("links", slice(None)), ("above", filled.first)):
                needs, waves = filled.needs_m[of], filled.wave[of]
                lengths = np.unique(needs[waves <= stage.waves], return_counts=True)
                for length_m, count in zip(*map(np.ndarray.tolist, lengths), strict=True):
                    runs[0][length_m][key] += times * count
    for run in chain.from_iterable(runs[0].values() for runs in found):
        # a module of a NIC leads to several planes, all of which are laid alike
        run["below"] = run["links"] // of_nic
    for fan, (stage, runs) in product(fans(placing, per_module), zip(stages, found, strict=True)):
        if fan.level < len(runs):
            (n_below, n_above), tiers = per_module[fan.level], stage.chain
            groups = tiers.core_groups if fan.level == 2 else 1
            switches = tiers.cores // groups if fan.level == 2 else tiers.pods[0].spines
            needs = fan.needs_m[fan.waves <= stage.waves]
            lengths = np.unique(needs, return_counts=True)
            for length_m, count in zip(*map(np.ndarray.tolist, lengths), strict=True):
                runs[fan.level][length_m].update(
                    links=tiers.networks * groups * count * fan.links,
                    below=tiers.networks * groups * count * -(-fan.links // n_below),
                    above=tiers.networks
                    * groups
                    * whole(dealt(1, count * fan.links, switches), n_above),
                )
    return found


class FilledLeaves(NamedTuple):
    """Cables of NICs in the order in which they fill modules of leaves: the leaf and the wave of
    each, the length that its module needs (m), and which are the first of their module.
    """

    leaf: Ints
    wave: Ints
    needs_m: Ints
    first: Ints


def filled_leaves(placing: Placing, together: int, of_leaf: int) -> FilledLeaves:
    """The cables of NICs of so many networks together: modules of a leaf are filled wave by wave,
    from the longest cable on, and each is of the kind of its longest.
    """
    below = placing.below
    lengths_m = placing.down_m(below.leaf, below.rack)
    order = np.lexsort((-lengths_m, below.wave, below.leaf))
    each = np.repeat(order, together * below.links[order])
    leaf = below.leaf[each]
    starts = np.flatnonzero(np.diff(leaf, prepend=-1))
    place = np.arange(len(leaf)) - np.repeat(starts, np.diff(starts, append=len(leaf)))
    first = np.flatnonzero(place % of_leaf == 0)
    longest_m = np.maximum.reduceat(lengths_m[each], first)
    needs_m = np.repeat(longest_m, np.diff(first, append=len(leaf)))
    return FilledLeaves(leaf, below.wave[each], needs_m, first)


class Fan(NamedTuple):
    """Switches below a level (from 0), by their `numbers`, whose cables are dealt to the same
    switches above: the wave of each, the length that its cables need (m), and how many it has.
    """

    level: int
    numbers: range
    waves: Ints
    needs_m: Ints
    links: int


def fans(placing: Placing, per_module: PerModule) -> Iterator[Fan]:
    """The leaves of each pod, and the pods, of which each has a spine in every group of cores, as
    far up as modules are given.
    """
    tiers = placing.chain
    if not tiers.pods or len(per_module) < 2:
        return
    ways_m = placing.leaf_up_m(np.arange(tiers.leaves), tiers.pod_of_leaf)
    wave = wave_of_leaves(placing)
    wave_of_pod = []
    for pod, leaves in tiers.each_pod():
        waves, of_pod = (of[leaves.start : leaves.stop] for of in (wave, ways_m))
        needs = needed_m(of_pod, waves, tiers.uplinks, pod.spines, per_module[1][1])
        wave_of_pod.append(int(waves.min()))
        yield Fan(1, leaves, waves, needs, tiers.uplinks)
    if tiers.cores and len(per_module) > 2:
        waves, ups = np.array(wave_of_pod), [pod.up for pod, _ in tiers.each_pod()]
        ways_m, cores = placing.pod_up_m(np.arange(len(ups))), tiers.cores // tiers.core_groups
        needs = needed_m(ways_m, waves, ups[0], cores, per_module[2][1])
        yield Fan(2, range(len(ups)), waves, needs, ups[0])


def wave_of_leaves(placing: Placing) -> Ints:
    """The wave with which each leaf comes."""
    wave = np.full(placing.chain.leaves, int(placing.below.wave.max(initial=0)))
    np.minimum.at(wave, placing.below.leaf, placing.below.wave)
    return wave


def _sharing(chain: TierChain) -> Iterator[tuple[int, int]]:
    """Leaf switches, and how many networks each holds: so many times as many."""
    if chain.pods:
        yield chain.networks, 1
        return
    each = chain.networks_per_switch
    full, rest = divmod(chain.networks // chain.planes, each)
    yield from ((chain.planes * n, of) for n, of in ((full, each), (1, rest)) if n and of)


def needed_m(ways_m: Ints, waves: Ints, links: int, switches: int, per_module: int) -> Ints:
    """The length that the cables of each of several switches need (m), which lead to the same
    switches above: as many of them as fill whole modules there, wave by wave from the longest on,
    are of the kind of the longest.

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
    order, firsts = np.lexsort((-ways_m, waves)), np.arange(0, len(ways_m), together)
    longest_m, needed = np.maximum.reduceat(ways_m[order], firsts), np.empty_like(ways_m)
    needed[order] = longest_m[np.arange(len(order)) // together]
    return needed
