"""Which kind of cable each link of a network has: the cheapest one that reaches as far as the link
is long in the hall (docs/network.md).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import chain, islice
from operator import add, itemgetter, le
from typing import NamedTuple

import numpy as np

from coopt.instance.couplings import OF_SUM
from coopt.instance.hardware import Optic
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.network.family import CableRun, Family, Ints, LinkEnds, TierChain, dealt, whole
from coopt.network.fibres import FibreUnits, fibre_between
from coopt.network.optics import EndsByLevel, OpticValues, PerModule, values_of
from coopt.network.parts import Affine, cost_of, resources, weigh, within_limits
from coopt.network.placing import PlacedChain, Placing
from coopt.plan.parts import Cost, Design


def least_ends(
    instance: Instance, choices: EndsByLevel, kind: ObjectiveKind | None = None
) -> tuple[LinkEnds, ...]:
    """Modules at both ends of each level that add no more to the objective, or to another `kind` of
    bill, than those of any of its choices, whatever the lengths; they need not meet, and what
    stands has no price.
    """
    stands = instance.stands
    names = {optic.name for ends in stands.ends for optic in ends} if stands else set()

    def free(optic: Optic) -> Optic:
        return optic.model_copy(update={"usd": 0.0}) if optic.name in names else optic

    def added(optic: Optic) -> tuple[object, ...]:
        return weigh(instance.objective, optic.usd, optic.w, kind), optic.usd, optic.w, optic.name

    return tuple(
        LinkEnds(*(min(map(free, optics), key=added) for optics in zip(*level, strict=True)))
        for level in choices
    )


def least_resources(instance: Instance, family: Family) -> dict[str, Affine]:
    """What a family uses of each limit the instance sets, in the unit of the limit: at least, where
    lengths have not chosen its cables.
    """
    uses = resources(instance, family)
    for kind in instance.limits.sums if family.choices else ():
        name, _ = OF_SUM[kind]
        optics = least_ends(instance, family.choices, kind)
        uses[name] = resources(instance, replace(family, optics=optics))[name]
    return uses


def laid(instance: Instance, family: Family, uplinks: int) -> Family | None:
    """A family at one number of uplinks with the cheapest of its choices for each length of its
    cables that keep the limits, the cheapest where none do; None where some cable is longer than
    any of them reaches.

    No length has more modules than the level as a whole, so that `least_ends` are a lower bound.
    """
    if instance.stands is not None:  # of which some modules have no price
        every = laid_each(instance, family, uplinks, values_of(instance))
        costs = [(cost_of(instance, one, uplinks), one) for one in every]
        costs.sort(key=lambda row: row[0].of(instance.objective.billed))
        within = (one for cost, one in costs if within_limits(instance, one, cost))
        return next(within, costs[0][1] if costs else None)
    bare, options = _options(instance, family, uplinks)
    if options is None or not family.choices:
        return None if options is None else bare
    cheapest = _with_cables(
        bare, [[min(runs, key=partial(_added, instance)) for runs in level] for level in options]
    )
    if not _limits_other_sums(instance) or _keeps_limits(instance, cheapest):
        return cheapest
    others = (_with_cables(bare, cables) for cables in _by_price_and_power(instance, options))
    return next((other for other in others if _keeps_limits(instance, other)), cheapest)


def laid_each(
    instance: Instance,
    family: Family,
    uplinks: int,
    values: OpticValues,
    check: Callable[[], None] = lambda: None,
) -> Iterator[Family]:
    """A family at one number of uplinks with each choice of cables that no other beats, by the
    `values` of a module: which is best depends on what else there is. `check` ends the search when
    its time is up.
    """
    bare, options = _options(instance, family, uplinks)
    if not family.choices:
        yield bare
    elif options is not None:
        rows = _unbeaten(options, lambda run: _of_parts(run, values), check)
        yield from (_with_cables(bare, cables) for _, cables in rows)


def laid_as(instance: Instance, family: Family, design: Design) -> Family | None:
    """A family with the cables that a design lists by their lengths; None where it may not have
    these.
    """
    uplinks = design.fabric.tier[0].uplinks_per_switch if design.fabric.tiers > 1 else 0
    bare, options = _options(instance, family, uplinks)
    if options is None:
        return None
    cables = [
        [_named(runs, tier.ends_at(runs[0].length_m)) for runs in level if runs]
        for level, tier in zip(options, design.fabric.tier, strict=True)
    ]
    found = [[run for run in level if run is not None] for level in cables]
    return _with_cables(bare, found) if found == cables else None


def _named(runs: Sequence[CableRun], names: tuple[str, str]) -> CableRun | None:
    return next((run for run in runs if (run.ends.below.name, run.ends.above.name) == names), None)


Options = list[list[list[CableRun]]]
"""The cables that each length of each level may have."""


def _options(instance: Instance, family: Family, uplinks: int) -> tuple[Family, Options | None]:
    """A family at one number of uplinks, and what its cables may be; None where one is longer than
    any reaches.
    """
    family, choices = replace(family, uplink_choices=(uplinks,), choices=()), family.choices
    if not choices:
        return family, []
    placed_chain = PlacedChain.of(instance, family, uplinks)
    options = [
        [
            [
                _run(instance, family, length_m, ends, *counts)
                for ends in ends_of_level
                if ends.reach_m >= length_m
            ]
            for length_m, *counts in level
        ]
        for level, ends_of_level in zip(
            _runs_of(placed_chain, family.per_module), choices, strict=True
        )
    ]
    return family, options if all(runs for level in options for runs in level) else None


def unreached(
    instance: Instance, family: Family, uplinks: int
) -> Iterator[tuple[int, int, LinkEnds]]:
    """The levels with a cable longer than any of its choices reaches: the level, the longest cable
    (m), and the ends that reach farthest.
    """
    bare = replace(family, uplink_choices=(uplinks,), choices=())
    runs = _runs_of(PlacedChain.of(instance, bare, uplinks), family.per_module)
    for level, (lengths, ends_of_level) in enumerate(zip(runs, family.choices, strict=True)):
        longest_m = max((run.length_m for run in lengths), default=0)
        farthest = max(ends_of_level, key=lambda ends: ends.reach_m)
        if longest_m > farthest.reach_m:
            yield level, longest_m, farthest


def _run(
    instance: Instance,
    family: Family,
    length_m: int,
    ends: LinkEnds,
    links: int,
    below: int,
    above: int,
) -> CableRun:
    """The cables of one length with some ends, and their fibre."""
    listed, rate = instance.network.fibre, family.link_gbit_s
    fibre = fibre_between(listed, ends, rate, links, (below, above), length_m)
    return CableRun(length_m, ends, links, below, above, fibre)


def laid_within(instance: Instance, family: Family, uplinks: int) -> tuple[Family, Cost] | None:
    """A family at one number of uplinks with its cables, and its bill; None where some cable is
    longer than any kind reaches, or where it is beyond a limit.
    """
    built = laid(instance, family, uplinks)
    cost = None if built is None else cost_of(instance, built, uplinks)
    if built is None or cost is None or not within_limits(instance, built, cost):
        return None
    return built, cost


def least_laid(
    instance: Instance,
    floors: Iterable[tuple[float, int, Family]],
    value: Callable[[Family, int], float],
) -> Family | None:
    """The network of least value with its cables, of families at so many uplinks with lower bounds
    on their values; None where no cable is long enough.
    """
    best, least = None, math.inf
    for floor, uplinks, family in sorted(floors, key=itemgetter(0)):
        if floor >= least:
            break
        built = laid(instance, family, uplinks)
        if built is not None and value(built, uplinks) < least:
            best, least = built, value(built, uplinks)
    return best


def _with_cables(family: Family, cables: Sequence[Sequence[CableRun]]) -> Family:
    """A family with the cables of each level, the longest last."""
    optics = tuple(level[-1].ends for level in cables)
    return replace(family, optics=optics, cables=tuple(map(tuple, cables)))


def _limits_other_sums(instance: Instance) -> bool:
    """Whether cables that cost more may keep a limit that the cheapest ones break."""
    objective = instance.objective
    others = [kind for kind in instance.limits.sums if kind != objective.billed]
    return bool(others) and "optics" in objective.include


def _keeps_limits(instance: Instance, family: Family) -> bool:
    return within_limits(instance, family, cost_of(instance, family, family.uplink_choices[0]))


def _by_price_and_power(instance: Instance, options: Options) -> Iterator[list[list[CableRun]]]:
    """The cables of all lengths, those that add least to the objective first, that no others beat
    in price and power.
    """
    rows = _unbeaten(options, _costs)
    rows.sort(key=lambda row: weigh(instance.objective, float(row[0][0]), float(row[0][1])))
    return (cables for _, cables in rows)


Sums = tuple[Fraction, ...]


def _unbeaten(
    options: Options,
    measured: Callable[[CableRun], Sums],
    check: Callable[[], None] = lambda: None,
) -> list[tuple[Sums, list[list[CableRun]]]]:
    """The cables of all lengths that no others beat in what is measured, with the sums; of equal
    ones those that cost and draw least, then those whose names come first.
    """
    rows: list[tuple[Sums, Sums, tuple[str, ...], list[CableRun]]] = []
    for runs in chain.from_iterable(options):
        steps = [(measured(run), _costs(run), _names(run), run) for run in runs]
        longer = [
            (_sum(sums, more), _sum(costs, dearer), names + further, [*of, run])
            for sums, costs, names, of in rows or [((), (), (), [])]
            for more, dearer, further, run in steps
        ]
        rows = []
        for row in sorted(longer, key=itemgetter(0, 1, 2)):
            check()
            # of two sums the last one that was kept has the least of the second
            rivals = rows if len(row[0]) > 2 else rows[-1:]
            if not any(all(map(le, rival, row[0])) for rival, *_ in rivals):
                rows.append(row)
    counts = [len(level) for level in options]
    return [(sums, _by_level(cables, counts)) for sums, _, _, cables in rows]


def _sum(sums: Sums, more: Sums) -> Sums:
    return tuple(map(add, sums, more)) if sums else more


def _by_level(cables: Iterable[CableRun], counts: Sequence[int]) -> list[list[CableRun]]:
    remaining = iter(cables)
    return [list(islice(remaining, count)) for count in counts]


def _of_parts(run: CableRun, values: OpticValues) -> Sums:
    """What the modules and the fibre of cables add to each measure."""
    parts: list[tuple[Optic | FibreUnits, int]] = [
        *zip(run.ends, (run.below, run.above), strict=True),
        *((one, one.units) for one in run.fibre),
    ]
    each = [[count * Fraction(value) for value in values(part)] for part, count in parts]
    return tuple(sum(column, Fraction(0)) for column in zip(*each, strict=True))


def _costs(run: CableRun) -> Sums:
    """What cables cost and draw, exactly."""
    return _of_parts(run, lambda part: (part.usd, part.w))


def _names(run: CableRun) -> tuple[str, str]:
    return run.ends.below.name, run.ends.above.name


def _added(instance: Instance, run: CableRun) -> tuple[object, ...]:
    """What cables add to the objective, their price and their power; names decide between equal
    ones.
    """
    below, above = run.ends
    usd, w = (
        run.below * lower + run.above * upper
        for lower, upper in ((below.usd, above.usd), (below.w, above.w))
    )
    usd += math.fsum(count * each for _, count, each, _ in run.fibre)
    is_counted = "optics" in instance.objective.include
    value = weigh(instance.objective, usd, w) if is_counted else 0.0
    return value, usd, w, below.name != above.name, *_names(run)


class RunOfLength(NamedTuple):
    """Cables of one length (m) on a level, and the modules at their lower and their upper ends."""

    length_m: int
    links: int
    below: int
    above: int


MOST_LAID = 20_000
"""Networks whose lengths of cables are kept, of some 2 kB each."""


@lru_cache(maxsize=MOST_LAID)
def _runs_of(
    placed_chain: PlacedChain, per_module: PerModule
) -> tuple[tuple[RunOfLength, ...], ...]:
    """The cables of each level by length; those of networks that differ in products or prices
    alone are counted once.
    """
    return tuple(
        tuple(
            RunOfLength(m, run["links"], run["below"], run["above"])
            for m, run in sorted(level.items())
        )
        for level in length_runs(placed_chain.placed(), per_module)
    )


Runs = defaultdict[int, Counter[str]]
"""`links`, and modules `below` and `above`, by the length that cables need (m)."""


def length_runs(placing: Placing, per_module: PerModule) -> list[Runs]:
    """The cables of each level by the length that they need (m), over all networks."""
    chain, runs = placing.chain, [Runs(Counter) for _ in per_module]
    if not runs:
        return []
    of_nic, of_leaf = per_module[0]
    below = placing.below
    sold_m, at = np.unique(placing.down_m(below.leaf, below.rack), return_inverse=True)
    of_plane = np.zeros((chain.leaves, len(sold_m)), dtype=np.int64)
    np.add.at(of_plane, (below.leaf, len(sold_m) - 1 - at), below.links)
    for times, together in _sharing(chain):
        # modules are filled from the longest cable on, and each is of the kind of its longest
        filled = np.cumsum(together * of_plane, axis=1)
        modules = -(-filled // of_leaf)
        links = np.minimum(modules * of_leaf, filled[:, -1:])
        counts = (np.diff(number, axis=1, prepend=0).sum(axis=0) for number in (links, modules))
        for length_m, links_here, above in zip(sold_m[::-1], *counts, strict=True):
            if links_here:
                run = {"links": times * int(links_here), "above": times * int(above)}
                runs[0][int(length_m)].update(run)
    for run in runs[0].values():
        # a module of a NIC leads to several planes, all of which are laid alike
        run["below"] = run["links"] // of_nic
    for fan in fans(placing, per_module):
        n_below, n_above = per_module[fan.level]
        lengths = zip(*np.unique(fan.needs_m, return_counts=True), strict=True)
        for length_m, count in ((int(m), int(number)) for m, number in lengths):
            runs[fan.level][length_m].update(
                links=fan.times * count * fan.links,
                below=fan.times * count * -(-fan.links // n_below),
                above=fan.times * whole(dealt(1, count * fan.links, fan.switches), n_above),
            )
    return runs


class Fan(NamedTuple):
    """Switches below a level (from 0), by their `numbers`, whose cables are dealt to the same
    switches above, so many `times`: the length that those of each need (m), and how many each has.
    """

    level: int
    numbers: range
    needs_m: Ints
    links: int
    switches: int
    times: int


def fans(placing: Placing, per_module: PerModule) -> Iterator[Fan]:
    """The leaves of each pod, and the pods, of which each has a spine in every group of cores."""
    chain = placing.chain
    if not chain.pods:
        return
    ways_m = placing.leaf_up_m(np.arange(chain.leaves), chain.pod_of_leaf)
    for pod, leaves in chain.each_pod():
        of_pod = ways_m[leaves.start : leaves.stop]
        needs = needed_m(of_pod, chain.uplinks, pod.spines, per_module[1][1])
        yield Fan(1, leaves, needs, chain.uplinks, pod.spines, chain.networks)
    if chain.cores:
        groups, ups = chain.core_groups, [pod.up for pod, _ in chain.each_pod()]
        ways_m, cores = placing.pod_up_m(np.arange(len(ups))), chain.cores // groups
        needs = needed_m(ways_m, ups[0], cores, per_module[2][1])
        yield Fan(2, range(len(ups)), needs, ups[0], cores, chain.networks * groups)


def _sharing(chain: TierChain) -> Iterator[tuple[int, int]]:
    """Leaf switches, and how many networks each holds: so many times as many."""
    if chain.pods:
        yield chain.networks, 1
        return
    each = chain.networks_per_switch
    full, rest = divmod(chain.networks // chain.planes, each)
    yield from ((chain.planes * n, of) for n, of in ((full, each), (1, rest)) if n and of)


def needed_m(ways_m: Ints, links: int, switches: int, per_module: int) -> Ints:
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
    order = np.argsort(-ways_m, kind="stable")
    needed = np.empty_like(ways_m)
    needed[order] = ways_m[order[np.arange(len(order)) // together * together]]
    return needed
