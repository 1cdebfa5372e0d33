"""Which kind of cable each link of a network has: the cheapest one that reaches as far as the link
is long in the hall (docs/network.md).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import chain, islice
from operator import add, itemgetter, le, mul

from coopt.instance.couplings import OF_SUM
from coopt.instance.hardware import Optic
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.network.cable_runs import RunOfLength, Stage, core_runs_of, runs_of
from coopt.network.family import CableRun, Family, LinkEnds
from coopt.network.fibres import FibreUnits, fibre_between, fibre_cables
from coopt.network.optics import EndsByLevel, OpticValues, optic_slopes, values_of
from coopt.network.parts import Affine, cost_of, resources, weigh, within_limits
from coopt.network.placing import SINGLE_BAY, Bay, PlacedChain, sold_m
from coopt.plan.parts import Cost, Design, TierCables, ends_of_length


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


def least_fibre_usd(instance: Instance, family: Family, uplinks: int) -> float:
    """What fibre costs at least where lengths have not chosen its cables: as if all were as short
    as can be.
    """
    listed, hall, rate = instance.network.fibre, instance.network.hall, family.link_gbit_s
    if not listed or not family.choices:
        return 0.0
    shortest_m = int(sold_m(min(hall.in_rack_m, 2 * hall.rise_m)))
    usd_per_link = [
        min(
            sum(
                one.units * one.usd for one in fibre_cables(listed, ends.below, rate, 1, shortest_m)
            )
            for ends in of_level
        )
        for of_level in family.choices
    ]
    links = (level.links for level in family.chain(uplinks).levels)
    return math.fsum(map(mul, usd_per_link, links))


def with_least(instance: Instance, family: Family, kind: ObjectiveKind | None = None) -> Family:
    """A family with the modules that add least to a bill where lengths are still to choose, those
    of its links into a core too.
    """
    core = (least_ends(instance, (some,), kind) for some in (family.core_choices,) if some)
    optics = least_ends(instance, family.choices, kind) if family.choices else family.optics
    return replace(family, optics=optics, core_choices=next(core, ()))


def least_resources(instance: Instance, family: Family) -> dict[str, Affine]:
    """What a family uses of each limit the instance sets, in the unit of the limit: at least, where
    lengths have not chosen its cables.
    """
    uses = resources(instance, family)
    for kind in instance.limits.sums if family.choices else ():
        name, _ = OF_SUM[kind]
        uses[name] = resources(instance, with_least(instance, family, kind))[name]
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
    bare, options = _options(instance, [family], uplinks)
    if options is None or not family.choices:
        return None if options is None else bare[-1]
    added = partial(_added, instance)
    cheapest = _with_cables(
        bare, [[min(cablings, key=added) for cablings in level] for level in options]
    )[-1]
    if not _limits_other_sums(instance) or _keeps_limits(instance, cheapest):
        return cheapest
    others = (_with_cables(bare, cables)[-1] for cables in _by_price_and_power(instance, options))
    return next((other for other in others if _keeps_limits(instance, other)), cheapest)


def laid_each(
    instance: Instance,
    family: Family,
    uplinks: int,
    values: OpticValues,
    check: Callable[[], None] = lambda: None,
    bay: Bay = SINGLE_BAY,
) -> Iterator[Family]:
    """A family at one number of uplinks with each choice of cables that no other beats, by the
    `values` of a module: which is best depends on what else there is. `check` ends the search when
    its time is up, and `bay` is where it stands before a core.
    """
    return (line[-1] for line in laid_lines(instance, [family], uplinks, values, check, bay))


def laid_lines(
    instance: Instance,
    line: Sequence[Family],
    uplinks: int,
    values: OpticValues,
    check: Callable[[], None] = lambda: None,
    bay: Bay = SINGLE_BAY,
) -> Iterator[tuple[Family, ...]]:
    """A network in all stages of its growth, with so many uplinks in the last one, with each choice
    of cables as in `laid_each`; each cable is as it is in the end.
    """
    bare, options = _options(instance, line, uplinks, bay)
    if not line[-1].unlaid:
        yield bare
    elif options is not None:
        compared = _with_fewest(_never_dearer(instance, options), line, uplinks)
        rows = _unbeaten(compared, values, check)
        for _, cables in rows:
            yield _with_cables(bare, [[one[-len(line) :] for one in level] for level in cables])


def _never_dearer(instance: Instance, options: Options) -> Options:
    """Cables that are not dearer than others of their length however many modules are bought, where
    prices depend on that: both ends of these cost at their first price no more than theirs at the
    last one, and draw no more. All have as many modules.
    """
    if instance.network.fibre or instance.sharing.most_products.optics is not None:
        return options
    usd_of = optic_slopes(instance)

    def no_dearer(one: Optic, other: Optic) -> bool:
        costs = usd_of[one.name][1] <= usd_of[other.name][0]
        return one.name == other.name or (costs and one.w <= other.w)

    def kept(some: list[Cabling]) -> list[Cabling]:
        found = list[Cabling]()
        for cabling in sorted(some, key=partial(_added, instance)):
            rivals = (rival[-1].ends for rival in found)
            if not any(all(map(no_dearer, ends, cabling[-1].ends)) for ends in rivals):
                found.append(cabling)
        return found

    return [[kept(some) for some in level] for level in options] if usd_of else options


def _with_fewest(options: Options, line: Sequence[Family], uplinks: int) -> Options:
    """Cables of stages that may have fewer uplinks than the end with the fewest of these, before
    all others: what is not beaten with any number of them is not with the fewest or the most.
    """
    fewest = [(t, one.uplink_choices[0]) for t, one in enumerate(line[:-1]) if one.tiers > 1]
    fewer = [(t, least) for t, least in fewest if least < uplinks]
    return [
        [
            [
                (*(one[t].times(least, uplinks) if up else one[t] for t, least in fewer), *one)
                for one in some
            ]
            for some in of_level
        ]
        for level, of_level in enumerate(options)
        for up in [0 < level < line[-1].tiers]
    ]


def laid_as(
    instance: Instance,
    line: Sequence[Family],
    design: Design,
    into_core: Sequence[TierCables] = (),
    bay: Bay = SINGLE_BAY,
) -> tuple[Family, ...] | None:
    """A network in all stages of its growth with the cables that the last design, and its links
    into a core, list by their lengths; None where it may not have these.
    """
    uplinks = design.fabric.tier[0].uplinks_per_switch if design.fabric.tiers > 1 else 0
    bare, options = _options(instance, line, uplinks, bay)
    if options is None:
        return None
    ends_at = [tier.ends_at for tier in design.fabric.tier]
    ends_at += [partial(ends_of_length, into_core, ("", ""))] if line[-1].core_choices else []
    cables = [
        [_named(some, ends(some[0][-1].length_m)) for some in level if some]
        for level, ends in zip(options, ends_at, strict=True)
    ]
    found = [[one for one in level if one is not None] for level in cables]
    return _with_cables(bare, found) if found == cables else None


def _named(cablings: Sequence[Cabling], names: tuple[str, str]) -> Cabling | None:
    return next((one for one in cablings if _names(one) == names), None)


Cabling = tuple[CableRun, ...]
"""The cables of one length with some ends, in each stage of a network."""
Options = list[list[list[Cabling]]]
"""The cables that each length of each level may have."""


def _options(
    instance: Instance,
    line: Sequence[Family],
    uplinks: int,
    bay: Bay = SINGLE_BAY,
) -> tuple[tuple[Family, ...], Options | None]:
    """The stages of a network, of which the last has so many uplinks, and what its cables may be,
    those into a core last; None where one is longer than any reaches.
    """
    waves = tuple(sorted({family.domains for family in line[:-1] if family.tiers}))
    waves = tuple(domains for domains in waves if domains < line[-1].domains)
    bare = tuple(replace(family, choices=(), core_choices=(), waves=waves) for family in line)
    family = replace(bare[-1], uplink_choices=(uplinks,))
    bare, choices = (*bare[:-1], family), line[-1].choices
    if not line[-1].unlaid:
        return bare, []
    placed_chain = PlacedChain.of(instance, family, uplinks)
    stages = tuple(
        Stage(bisect_left(waves, one.domains), one.chain(uplinks)) for one in bare if one.tiers
    )
    counted = iter(runs_of(placed_chain, family.per_module, stages))
    counts = [next(counted) if one.tiers else () for one in bare]
    if line[-1].core_choices:
        of_core = _core_runs(placed_chain, stages, family, line[-1].core_choices[0], bay)
        of_core *= 1 if stages else len(line)  # a domain alone is the same in each
        tiers = line[-1].tiers
        counts = [
            (*of, *((),) * (tiers - len(of)), runs)
            for of, runs in zip(counts, of_core, strict=True)
        ]
        choices = (*choices, line[-1].core_choices)
    options = [
        [
            [
                tuple(
                    _run(
                        instance,
                        family,
                        ends,
                        stage[level][at] if any(stage[level : level + 1]) else none,
                    )
                    for stage in counts
                )
                for ends in choices[level]
                if ends.reach_m >= none.length_m
            ]
            for at, none in enumerate(RunOfLength(run.length_m, 0, 0, 0) for run in runs)
        ]
        for level, runs in enumerate(counts[-1])
    ]
    return bare, options if all(some for level in options for some in level) else None


def unreached(
    instance: Instance, family: Family, uplinks: int
) -> Iterator[tuple[int, int, LinkEnds]]:
    """The levels with a cable longer than any of its choices reaches: the level, the longest cable
    (m), and the ends that reach farthest.
    """
    bare = replace(family, uplink_choices=(uplinks,), choices=())
    placed_chain = PlacedChain.of(instance, bare, uplinks)
    (runs,) = runs_of(placed_chain, family.per_module, ())
    for level, (lengths, ends_of_level) in enumerate(zip(runs, family.choices, strict=True)):
        longest_m = max((run.length_m for run in lengths), default=0)
        farthest = max(ends_of_level, key=lambda ends: ends.reach_m)
        if longest_m > farthest.reach_m:
            yield level, longest_m, farthest


def _run(instance: Instance, family: Family, ends: LinkEnds, counted: RunOfLength) -> CableRun:
    """The cables of one length with some ends, and their fibre."""
    length_m, links, below, above = counted
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


def _with_cables(line: Sequence[Family], cables: Sequence[Sequence[Cabling]]) -> tuple[Family, ...]:
    """The stages of a network with the cables of each level, the longest last."""
    tiers = line[-1].tiers
    runs = [
        tuple(tuple(one[t] for one in level if one[t].links) for level in cables)
        for t in range(len(line))
    ]
    return tuple(
        replace(
            family,
            optics=tuple(level[-1].ends for level in some[: family.tiers]),
            cables=some[: family.tiers],
            core_cables=next(iter(some[tiers:]), ()),
        )
        for family, some in zip(line, runs, strict=True)
    )


def _limits_other_sums(instance: Instance) -> bool:
    """Whether cables that cost more may keep a limit that the cheapest ones break."""
    objective = instance.objective
    others = [kind for kind in instance.limits.sums if kind != objective.billed]
    return bool(others) and "optics" in objective.include


def _keeps_limits(instance: Instance, family: Family) -> bool:
    return within_limits(instance, family, cost_of(instance, family, family.uplink_choices[0]))


def _by_price_and_power(instance: Instance, options: Options) -> Iterator[list[list[Cabling]]]:
    """The cables of all lengths, those that add least to the objective first, that no others beat
    in price and power.
    """
    rows = _unbeaten(options, _usd_and_w)
    rows.sort(key=lambda row: weigh(instance.objective, float(row[0][0]), float(row[0][1])))
    return (cables for _, cables in rows)


Sums = tuple[Fraction, ...]
Whole = tuple[int, ...]
"""Sums of measures in a unit of which each value is a whole multiple."""


def _unbeaten(
    options: Options, values: OpticValues, check: Callable[[], None] = lambda: None
) -> list[tuple[Sums, list[list[Cabling]]]]:
    """The cables of all lengths that no others beat in what modules and fibre add to the measures
    of any stage, with the sums; of equal ones those that cost and draw least, then those whose
    names come first.
    """
    lengths = list(chain.from_iterable(options))
    stages = _distinct_stages(lengths)
    (measured, unit), (cost, _) = _measure(lengths, values), _measure(lengths, _usd_and_w)

    def kept(rows: list[Row]) -> list[Row]:
        found = list[Row]()
        for row in sorted(rows, key=itemgetter(0, 1, 2)):
            check()
            # of two sums the last one that was kept has the least of the second
            rivals = found if len(row[0]) > 2 else found[-1:]
            if not any(all(map(le, rival, row[0])) for rival, *_ in rivals):
                found.append(row)
        return found

    rows: list[Row] = []
    for some in lengths:
        steps = kept(
            [
                (
                    tuple(chain.from_iterable(measured(one[t]) for t in stages)),
                    cost(one[-1]),
                    _names(one),
                    [one],
                )
                for one in some
            ]
        )
        rows = kept(
            [
                (_sum(sums, more), _sum(costs, dearer), names + further, of + run)
                for sums, costs, names, of in rows or [((), (), (), [])]
                for more, dearer, further, run in steps
            ]
        )
    counts = [len(level) for level in options]
    return [
        (tuple(Fraction(n, unit) for n in sums), _by_level(cables, counts))
        for sums, _, _, cables in rows
    ]


Row = tuple[Whole, Whole, tuple[str, ...], list[Cabling]]
"""Cables of some lengths, with what they add to the measures and to the bill, and their names."""


def _distinct_stages(lengths: Sequence[Sequence[Cabling]]) -> list[int]:
    """The stages in which different cables stand, of those with the same ones the first."""
    counts = [[(run.links, run.below, run.above) for run in some[0]] for some in lengths]
    stages = list(zip(*counts, strict=True))
    return [t for t, stage in enumerate(stages) if stage not in stages[:t]]


def _sum(sums: Whole, more: Whole) -> Whole:
    return tuple(map(add, sums, more)) if sums else more


def _by_level(cables: Iterable[Cabling], counts: Sequence[int]) -> list[list[Cabling]]:
    remaining = iter(cables)
    return [list(islice(remaining, count)) for count in counts]


def _measure(
    lengths: Iterable[Iterable[Cabling]], values: OpticValues
) -> tuple[Callable[[CableRun], Whole], int]:
    """What the modules and the fibre of cables add to each measure in a unit, and so many of these
    to one: whole numbers are added far faster than fractions.
    """
    parts = dict[tuple[bool, str], Optic | FibreUnits]()
    for run in chain.from_iterable(chain.from_iterable(lengths)):
        parts |= {_key(part): part for part in run.ends}
        parts |= {_key(part): part for part in run.fibre}
    ratios = {
        key: [value.as_integer_ratio() for value in values(part)] for key, part in parts.items()
    }
    # denominators of floats are powers of two
    unit = max((below for row in ratios.values() for _, below in row), default=1)
    whole_of = {key: [n * (unit // below) for n, below in row] for key, row in ratios.items()}

    def measured(run: CableRun) -> Whole:
        counted = [(run.below, run.ends.below), (run.above, run.ends.above)]
        columns = zip(
            *([n * each for each in whole_of[_key(part)]] for n, part in counted),
            *([one.units * each for each in whole_of[_key(one)]] for one in run.fibre),
            strict=True,
        )
        return tuple(map(sum, columns))

    return measured, unit


def _key(part: Optic | FibreUnits) -> tuple[bool, str]:
    """A part by its name, which a fibre may share with an optic."""
    return isinstance(part, FibreUnits), part.name


def _usd_and_w(part: Optic | FibreUnits) -> tuple[float, ...]:
    return part.usd, part.w


def _names(cabling: Cabling) -> tuple[str, str]:
    return cabling[-1].ends.below.name, cabling[-1].ends.above.name


def _added(instance: Instance, cabling: Cabling) -> tuple[object, ...]:
    """What cables add to the objective in the end, their price and their power; names decide
    between equal ones.
    """
    run = cabling[-1]
    below, above = run.ends
    usd, w = (
        run.below * lower + run.above * upper
        for lower, upper in ((below.usd, above.usd), (below.w, above.w))
    )
    usd += math.fsum(count * each for _, count, each, _ in run.fibre)
    is_counted = "optics" in instance.objective.include
    value = weigh(instance.objective, usd, w) if is_counted else 0.0
    return value, usd, w, below.name != above.name, *_names(cabling)


def _core_runs(
    placed_chain: PlacedChain, stages: tuple[Stage, ...], family: Family, ends: LinkEnds, bay: Bay
) -> tuple[tuple[RunOfLength, ...], ...]:
    """The cables into a core by length in each stage."""
    rate = family.link_gbit_s
    per_module = ends.below.links_of(rate), ends.above.links_of(rate)
    starts = family.core_ports if family.tiers else family.lone_links
    times = family.chassis // family.leaves if family.tiers else 1
    return core_runs_of(placed_chain, stages, starts, times, per_module, bay)
