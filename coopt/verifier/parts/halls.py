"""Where switches stand in a hall, how long cables are, and which kinds are the cheapest that reach:
rack by rack, switch by switch and cable by cable (docs/network.md).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import groupby, islice, product
from math import ceil, fsum, inf
from operator import itemgetter
from typing import NamedTuple

from coopt.instance.hardware import Optic
from coopt.instance.network import NetworkHallRows
from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance
from coopt.instance.texts import both, counted
from coopt.plan.parts import Fabric
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.parts.bills import (
    bill,
    bill_total,
    keeps,
    levels,
    priced_total,
    within_limits,
)
from coopt.verifier.parts.fibres import Bought, fibre_between
from coopt.verifier.parts.layouts import (
    Ports,
    ceil_ratio,
    core_count,
    planes_on_switch,
    spine_count,
)
from coopt.verifier.parts.optics import numbered_optics
from coopt.verifier.parts.space import DesignFamily, OpticPair
from coopt.verifier.parts.stages import (
    GrowthStage,
    Laid,
    LaidCables,
    chain_groups,
    grown_from,
    last_stage,
)
from coopt.verifier.parts.wiring import numbering_of

SOLD_M = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000)
"""Lengths on sale (m); farther ones are cut to whole kilometres."""

NEARLY = 1e-9
"""By which share of a switch the rest of a rack may be too small by rounding."""

Choices = Sequence[Sequence[OpticPair]]
"""The ends that cables of each level may have, of as many links to a module."""


Line = Sequence[GrowthStage]
"""A network in each stage of its growth; of the last one uplinks are decided."""


def laid_cables(
    instance: Instance, kind: ObjectiveKind, family: DesignFamily, ports: Ports, choices: Choices
) -> Laid | None:
    """The cheapest kinds of all cables of a network that keep the limits, the cheapest where none
    do; None where one is longer than any reach.
    """
    cheapest: Laid | None = None
    for (laid,) in _every_cabling(instance, kind, [_alone(family, ports)], choices):
        cheapest = laid if cheapest is None else cheapest
        if not _limits_others(instance, kind) or _keeps_limits(instance, family, ports, laid):
            return laid
    return cheapest


def _limits_others(instance: Instance, kind: ObjectiveKind) -> bool:
    """Whether a sum is limited that is not what is minimised."""
    return any(limited != kind for limited in instance.limits.sums)


def _alone(family: DesignFamily, ports: Ports) -> GrowthStage:
    """A network that does not grow."""
    return last_stage(family, ports, (ports.up,), ())


def _every_cabling(
    instance: Instance, kind: ObjectiveKind, line: Line, choices: Choices
) -> Iterator[tuple[Laid, ...]]:
    """The kinds of all cables of a network in each stage, the cheapest in the end first, then those
    that others do not beat in price and power of any stage; none where one is longer than any
    reach.
    """
    family = line[-1].family
    if family.attachment is None:
        yield ((),) * len(line)
        return
    needs = _needs(instance, line, choices)
    fitting = [
        [
            [ends for ends in of_level if min(optic.reach_m for optic in ends) >= need.length_m]
            for need in level
        ]
        for level, of_level in zip(needs[-1], choices, strict=True)
    ]
    if not all(ends for level in fitting for ends in level):
        return
    fibre = partial(_fibre, instance, family)
    worth = partial(_worth, instance, kind, fibre)
    yield _kinds(
        fibre,
        needs,
        [
            [min(pairs, key=partial(worth, need)) for pairs, need in zip(level, of, strict=True)]
            for level, of in zip(fitting, needs[-1], strict=True)
        ],
    )
    if "optics" in instance.objective.include:
        for chosen in _by_worth(instance, kind, fibre, needs, fitting):
            yield _kinds(fibre, needs, chosen)


def _fibre(
    instance: Instance, family: DesignFamily, need: Need, ends: OpticPair
) -> tuple[Bought, ...]:
    """The fibre between the modules of one length with some ends."""
    listed, network = instance.network.fibre, family.network
    rate, modules = Fraction(network.nic.gbit_s) / network.nic_planes, (need.below, need.above)
    carried = network.carried(ends)
    return fibre_between(listed, rate, ends, carried, modules, need.links, need.length_m)


def _keeps_limits(instance: Instance, family: DesignFamily, ports: Ports, laid: Laid) -> bool:
    """Whether a network with these cables is within the limits."""
    stage = laid_stage(_alone(family, ports), ports.up, laid)
    lines = bill(instance, family, stage.levels(ports.up), stage.optics)
    return within_limits(instance, family, bill_total(lines, instance.objective))


def _by_worth(
    instance: Instance,
    kind: ObjectiveKind,
    fibre_of: FibreOf,
    needs: Needs,
    fitting: Sequence[Sequence[Sequence[OpticPair]]],
) -> Iterator[list[list[OpticPair]]]:
    """All choices of ends for the lengths of a network, but for those that cost and draw no less
    than another in any stage, by what they are worth in the end.
    """
    # what depends on how many there are of a product is measured by these, beside the price of all
    # others
    by_number = numbered_optics(instance)
    # from the last length to the first, so that of equal sums the first names are the least
    chosen = {(Fraction(0),) * (len(needs) * (3 + len(by_number))): list[OpticPair]()}
    stages = [[need for level in of for need in level] for of in reversed(needs)]
    flat = zip(*stages, [pairs for level in fitting for pairs in level], strict=True)
    for *needed, pairs in reversed(list(flat)):
        longer = dict[tuple[Fraction, ...], list[OpticPair]]()
        for sums, rest in chosen.items():
            for ends in pairs:
                added = list[Fraction | int]()
                for need in needed:
                    bought = list(zip((need.below, need.above), ends, strict=True))
                    fibre = [(n, each) for _, n, each in fibre_of(need, ends)]
                    modules = [(n, optic.usd) for n, optic in bought]
                    others = [(n, optic.usd) for n, optic in bought if optic.name not in by_number]
                    added += [
                        sum(n * Fraction(usd) for n, usd in modules + fibre),
                        sum(n * Fraction(optic.w) for n, optic in bought),
                        sum(n * Fraction(usd) for n, usd in others + fibre),
                        *(sum(n for n, one in bought if one.name == name) for name in by_number),
                    ]
                key = tuple(so_far + more for so_far, more in zip(sums, added, strict=True))
                row = [ends, *rest]
                if key not in longer or list(map(_names, row)) < list(map(_names, longer[key])):
                    longer[key] = row
        chosen = {
            key: row
            for key, row in longer.items()
            if not any(
                other != key and all(a <= b for a, b in zip(other, key, strict=True))
                for other in longer
            )
        }

    def worth(key: tuple[Fraction, ...]) -> float:
        return priced_total(float(key[0]), float(key[1]), instance.objective).of(kind)

    for key in sorted(chosen, key=lambda key: (worth(key), key)):
        pairs_left = iter(chosen[key])
        yield [list(islice(pairs_left, len(level))) for level in needs[-1]]


def laid_stage(stage: GrowthStage, up: int, laid: Laid) -> GrowthStage:
    """A network with each kind of its cables as a level, the first kind of each tier before all
    others; as it is without any.
    """
    kinds = [of[0] for of in laid] + [kind for of in laid for kind in of[1:]]
    optics = tuple(kind.ends for kind in kinds) or stage.optics
    return stage._replace(optics=optics, laid=laid, laid_up=up)


def _least_ends(instance: Instance, kind: ObjectiveKind, ends: Sequence[OpticPair]) -> OpticPair:
    """The cheapest module at either end, whether or not the two meet."""

    def worth(optic: Optic) -> float:
        return priced_total(optic.usd, optic.w, instance.objective).of(kind)

    below, above = zip(*ends, strict=True)
    return OpticPair(min(below, key=worth), min(above, key=worth))


def laid_stages(
    instance: Instance,
    kind: ObjectiveKind,
    stage: GrowthStage,
    choices: Sequence[tuple[OpticPair, ...]],
    answers: Callable[[GrowthStage], Sequence[int]],
) -> Iterator[GrowthStage]:
    """Networks with the cheapest cables, for each number of links that modules may carry at either
    end of each level: one for each of those uplinks that `answers` leaves of a network whose
    modules are each the cheapest of its level, as cables by length need no fewer; that network for
    all others.
    """
    groups = defaultdict[object, list[tuple[OpticPair, ...]]](list)
    for choice in choices:
        groups[tuple(map(stage.family.network.carried, choice)) if choice else ()].append(choice)
    for group in groups.values():
        ends = [list(dict.fromkeys(level)) for level in zip(*group, strict=True)]
        least = stage._replace(optics=tuple(_least_ends(instance, kind, level) for level in ends))
        ups = [up for up in answers(least) if _may_keep_limits(instance, least, ends, up)]
        others = [up for up in stage.uplinks if up not in ups]
        if others:
            yield least._replace(uplinks=others)
        for up in ups:
            one = stage._replace(uplinks=(up,))
            # limits count spares, which are not known yet
            if instance.availability is not None and _limits_others(instance, kind):
                every = [laid for (laid,) in _every_cabling(instance, kind, [one], ends)]
            else:
                best = laid_cables(instance, kind, stage.family, stage.with_up(up), ends)
                every = [] if best is None else [best]
            yield from (laid_stage(one, up, laid) for laid in every)


def _may_keep_limits(instance: Instance, least: GrowthStage, ends: Choices, up: int) -> bool:
    """Whether a network with the cheapest modules, or those that draw least, is within a limit."""
    for kind, limit in instance.limits.sums.items():
        optics = [_least_ends(instance, kind, level) for level in ends]
        lines = bill(instance, least.family, least.levels(up), optics)
        if not keeps(bill_total(lines, instance.objective).of(kind), limit, -1.0):
            return False
    return True


def every_laid_stage(
    instance: Instance,
    kind: ObjectiveKind,
    family: DesignFamily,
    optics_of: Callable[[int], Iterable[tuple[OpticPair, ...]]],
    core_end: Optic | None,
    earlier: Sequence[int] = (),
) -> Iterator[Line]:
    """Every whole network of a family, as `laid_each` has them."""
    for caged_family, (ports, uplinks), choices in chain_groups(
        instance.network, family, optics_of
    ):
        yield from laid_each(
            instance, kind, caged_family, ports, uplinks, choices, core_end, earlier
        )


def laid_each(
    instance: Instance,
    kind: ObjectiveKind,
    family: DesignFamily,
    ports: Ports,
    uplinks: Iterable[int],
    choices: Iterable[tuple[OpticPair, ...]],
    core_end: Optic | None,
    earlier: Sequence[int] = (),
) -> Iterator[Line]:
    """Networks with each number of uplinks and every choice of cables that others do not beat, in
    each stage of those that can have had so many GPUs earlier.
    """
    groups = defaultdict[object, list[tuple[OpticPair, ...]]](list)
    for choice in choices:
        groups[tuple(map(family.network.carried, choice)) if choice else ()].append(choice)
    for group, up in product(groups.values(), uplinks):
        ends = [list(dict.fromkeys(level)) for level in zip(*group, strict=True)]
        carried = [family.network.carried(pair) for pair in group[0]]
        apart = ports.pod_each > 1 or any(max(links) > 1 for links in carried[1:])
        menu = [one for one in uplinks if one == up or (one < up and not apart)]
        end = last_stage(family, ports, menu, group[0], core_end)
        line = stages_before(instance, end, earlier)
        if len(line) == len(earlier):
            line.append(end._replace(uplinks=(up,)))
            for laid in dict.fromkeys(_every_cabling(instance, kind, line, ends)):
                yield [laid_stage(one, up, of) for one, of in zip(line, laid, strict=True)]


def stages_before(
    instance: Instance, end: GrowthStage, earlier: Sequence[int]
) -> list[GrowthStage]:
    """What a network was with each of some numbers of GPUs; nothing of those it cannot have had."""
    stages = [grown_from(instance, end, gpus) for gpus in earlier]
    return [stage for stage in stages if stage is not None]


def named_cables(
    instance: Instance, line: Line, choices: Choices, fabric: Fabric
) -> tuple[Laid, ...] | None:
    """The cables in each stage of a network that has in the end the kinds which a plan names for
    their lengths; where one may not be had, or is too short, any that may; None where one is longer
    than any reach.
    """
    family = line[-1].family
    if family.attachment is None:
        return ((),) * len(line)
    needs = _needs(instance, line, choices)
    chosen = list[list[OpticPair]]()
    for level, pairs, tier in zip(needs[-1], choices, fabric.tier, strict=True):
        kinds = [(cables.longest_m, cables.ends) for cables in tier.cables]
        chosen.append([])
        for need in level:
            names = next((ends for most_m, ends in kinds if need.length_m <= most_m), tier.ends)
            fitting = [
                ends for ends in pairs if min(optic.reach_m for optic in ends) >= need.length_m
            ]
            if not fitting:
                return None
            named = (ends for ends in fitting if _names(ends) == names)
            chosen[-1].append(next(named, fitting[0]))
    return _kinds(partial(_fibre, instance, family), needs, chosen)


def check_cables(ledger: Ledger, fabric: Fabric, laid: Laid | None) -> None:
    """Check that the cables of a plan are those that its hall asks for."""
    claimed = tuple(
        _text(tier.level, cables.ends, cables.links, cables.longest_m)
        for tier in fabric.tier
        for cables in tier.cables
    ) + tuple(_text(tier.level, tier.ends, tier.links) for tier in fabric.tier)
    expected = (
        ()
        if laid is None
        else tuple(
            _text(level, _names(of.ends), of.links, of.longest_m)
            for level, kinds in enumerate(laid, start=1)
            for of in kinds
            if len(kinds) > 1
        )
        + tuple(
            _text(level, _names(kinds[-1].ends), sum(of.links for of in kinds))
            for level, kinds in enumerate(laid, start=1)
        )
    )
    ledger.holds(
        "cables",
        claimed == expected,
        claimed,
        expected,
        (
            "No optics of the instance reach as far as the cables in the hall, but the plan has"
            if laid is None
            else f"By their lengths in the hall, cables are {'; '.join(expected)}, but the plan has"
        )
        + f" {'; '.join(claimed)}.",
    )


def _names(ends: OpticPair) -> tuple[str, str]:
    return ends.below.name, ends.above.name


def _text(level: int, names: tuple[str, str], links: int, longest_m: int | None = None) -> str:
    """Some cables as a fault has them."""
    products, number = " below ".join(dict.fromkeys(names)), counted(links, "link")
    if longest_m is None:
        return f"{number} in all at tier {level}, the longest of {products}"
    return f"{number} of {products} up to {longest_m} m at tier {level}"


def check_one_kind(ledger: Ledger, fabric: Fabric) -> None:
    """Check that a plan lists no cables by length where each tier has one kind of them."""
    listed = tuple(f"tier {tier.level}" for tier in fabric.tier if tier.cables)
    if listed:
        ledger.holds(
            "cables",
            False,
            listed,
            (),
            f"The plan lists cables by length at {both(listed)}, but network.cables = 'tier'.",
        )


class Need(NamedTuple):
    """Modules that need one length: links in a module at either end, and how many of those."""

    length_m: int
    links: int
    below: int
    above: int


def _worth(
    instance: Instance, kind: ObjectiveKind, fibre_of: FibreOf, need: Need, ends: OpticPair
) -> tuple[object, ...]:
    """What ends for the modules of one length are worth, and what decides between equal ones."""
    bought = list(zip((need.below, need.above), ends, strict=True))
    usd = sum(count * optic.usd for count, optic in bought)
    usd += fsum(amount * each for _, amount, each in fibre_of(need, ends))
    w = sum(count * optic.w for count, optic in bought)
    counted = "optics" in instance.objective.include
    value = priced_total(usd, w, instance.objective).of(kind) if counted else 0.0
    return value, usd, w, ends.below.name != ends.above.name, _names(ends)


FibreOf = Callable[[Need, OpticPair], tuple[Bought, ...]]


def _kinds(
    fibre_of: FibreOf, needs: Needs, chosen: Sequence[Sequence[OpticPair]]
) -> tuple[Laid, ...]:
    """The cables of each level in each stage by their ends, those of neighbouring lengths
    together.
    """
    return tuple(
        tuple(
            tuple(
                LaidCables(
                    ends,
                    of[-1].length_m,
                    links=sum(need.links for need in of),
                    below=sum(need.below for need in of),
                    above=sum(need.above for need in of),
                    fibre=tuple(bought for need in of for bought in fibre_of(need, ends)),
                )
                for ends, group in groupby(
                    (row for row in zip(pairs, level, strict=True) if row[1].links),
                    key=itemgetter(0),
                )
                for of in [[need for _, need in group]]
            )
            for level, pairs in zip(of_stage, chosen, strict=True)
            if any(need.links for need in level)
        )
        for of_stage in needs
    )


class Places(NamedTuple):
    """Racks of domains amid which the switches of one network stand, and so many of them at each
    place of a tier.
    """

    leaves: list[int]
    pods: list[int]
    core: int
    spines: int
    cores: int


Needs = Sequence[Sequence[Sequence[Need]]]
"""What each length of each level needs in each stage, from the shortest on; in the stages before
nothing where none of them stands yet.
"""


def _needs(instance: Instance, line: Line, choices: Choices) -> Needs:
    """The cables of each level by the length that they need, in each stage of a network."""
    rows, end = instance.network.hall, line[-1]
    family, ports, racks_each = end.family, end.with_up(end.uplinks[-1]), end.family.hb.racks
    assert racks_each is not None, "the racks of a domain are known where cables follow the hall"
    carried = [family.network.carried(ends[0]) for ends in choices]
    rack_of = [
        int(domain * racks_each + max(0.0, racks_each - 1) / 2) for domain in range(family.domains)
    ]
    domains_below = _domains_below(family, ports)
    below_leaf = [[rack_of[domain] for domain in domains] for domains in domains_below]
    places = _places(family, ports, below_leaf, rows)
    domain_at, switch_at = _line(instance, family, ports, carried, places, max(rack_of) + 1)

    def sold(one: int, other: int) -> int:
        length_m = _between_m(rows, one, other)
        return next((m for m in SOLD_M if m >= length_m), 1000 * ceil(length_m / 1000))

    networked = [stage for stage in line if stage.family.attachment is not None]
    # each domain comes with the first of these that has it
    arrives = [
        next(n for n, stage in enumerate(networked) if domain < stage.family.domains)
        for domain in range(family.domains)
    ]
    leaf_arrives = [min(arrives[domain] for domain in domains) for domains in domains_below]
    down = [
        sorted(
            (arrives[domain], -sold(domain_at[rack_of[domain]], switch_at[0, place]))
            for domain in domains
        )
        for domains, place in zip(domains_below, places.leaves, strict=True)
    ]
    up = list[list[tuple[int, int]]]()
    size = ports.pod_leaves if ports.tiers == 3 else len(below_leaf)
    for number, pod in enumerate(places.pods):
        of_pod = range(number * size, min((number + 1) * size, len(below_leaf)))
        up.append(
            sorted(
                (leaf_arrives[n], -sold(switch_at[0, places.leaves[n]], switch_at[1, pod]))
                for n in of_pod
            )
        )
    trunks = sorted(
        (min(leaf_arrives[n * size : (n + 1) * size]), -sold(switch_at[1, pod], switch_at[2, core]))
        for n, (pod, core) in enumerate((pod, places.core) for pod in places.pods)
        if ports.tiers == 3
    )
    stages = list[list[list[Need]]]()
    for number, stage in enumerate(networked):
        there = stage.with_up(ports.up)
        found = [_down_needs(family, ports, carried[0], down, number)]
        networks, leaves = family.planes * family.copies, stage.leaves
        spines = places.spines
        if ports.tiers == 2 and there.tiers == 2:
            spines = spine_count(leaves, there, family.network.at(2).radix)
        if there.tiers > 1:
            found.append(
                [
                    need
                    for ways in up
                    for need in _up_needs(
                        ways, number, ports.up, (places.spines, spines), carried[1], networks
                    )
                ]
            )
        if there.tiers > 2:
            group, radix = places.cores // places.spines, family.network.at(3).radix
            groups = group, core_count(leaves, there, radix)
            found.append(
                _up_needs(
                    trunks, number, ports.pod_up, groups, carried[2], networks * places.spines
                )
            )
        stages.append(found)
    lengths = [sorted({need.length_m for need in level}) for level in stages[-1]]
    counted = iter(stages)
    return [
        [
            [_summed(m, of_stage[level] if level < len(of_stage) else []) for m in of_level]
            for level, of_level in enumerate(lengths)
        ]
        for stage in line
        for of_stage in [[] if stage.family.attachment is None else next(counted)]
    ]


def _summed(length_m: int, needs: Iterable[Need]) -> Need:
    """All that is needed of one length."""
    of = [need for need in needs if need.length_m == length_m]
    counts = (sum(column) for column in zip(*((0, 0, 0), *(need[1:] for need in of)), strict=True))
    return Need(length_m, *counts)


def _domains_below(family: DesignFamily, ports: Ports) -> list[list[int]]:
    """The domains of all end points of each leaf of one network."""
    domains = range(family.domains)
    if ports.tiers == 1:
        return [[domain for domain in domains for _ in range(family.rails // family.planes)]]
    order = numbering_of(family, ports.down)
    below: list[list[int]] = [[] for _ in range(order.leaves)]
    for domain in domains:
        for rail in range(order.rails):
            below[order.leaf(domain, rail)].append(domain)
    return below


def _places(
    family: DesignFamily,
    ports: Ports,
    below_leaf: Sequence[Sequence[int]],
    rows: NetworkHallRows,
) -> Places:
    """Amid what the switches of one network stand: a leaf amid its end points, spines amid the
    leaves of their pod, cores amid the pods.
    """
    leaves, count = [_amid(racks, rows) for racks in below_leaf], len(below_leaf)
    if ports.tiers == 1:
        return Places(leaves, [], 0, 0, 0)
    if ports.tiers == 2:
        return Places(
            leaves,
            [_amid(leaves, rows)],
            0,
            spine_count(count, ports, family.network.at(2).radix),
            0,
        )
    pods = [
        _amid(leaves[start : start + ports.pod_leaves], rows)
        for start in range(0, count, ports.pod_leaves)
    ]
    cores = ports.slices * core_count(count, ports, family.network.at(3).radix)
    return Places(leaves, pods, _amid(pods, rows, between=True), ports.slices, cores)


def _amid(racks: Sequence[int], rows: NetworkHallRows, *, between: bool = False) -> int:
    """The rack from which the ways to all of some are the shortest: amid their rows and places; of
    several the first, or the one between.
    """
    across, along = zip(*(divmod(rack, rows.racks_per_row) for rack in racks), strict=True)
    row, place = (
        (ordered[(len(ordered) - 1) // 2] + ordered[(len(ordered) - (not between)) // 2]) // 2
        for ordered in (sorted(across), sorted(along))
    )
    return int(min(row * rows.racks_per_row + place, max(racks)))


def _middle(racks: Sequence[int]) -> int:
    """The middle one of several racks, the former of two."""
    return sorted(racks)[(len(racks) - 1) // 2]


def _line(
    instance: Instance,
    family: DesignFamily,
    ports: Ports,
    carried: Sequence[tuple[int, int]],
    places: Places,
    racks: int,
) -> tuple[dict[int, int], dict[tuple[int, int], int]]:
    """The spots of racks of domains along the rows, and of the switches of a tier (from 0) that are
    amid a rack.
    """
    network, rows = family.network, instance.network.hall
    boxes = [network.at(tier) for tier in range(1, ports.tiers + 1)]
    amid = [places.leaves, places.pods, [places.core]][: ports.tiers]
    if not all(box.rack_units for box in boxes):
        spots = {(level, rack): rack for level, of in enumerate(amid) for rack in of}
        return {rack: rack for rack in range(racks)}, spots
    watts = _watts(instance, family, ports, carried)
    counts = levels(family, ports)
    queue: list[tuple[int, int]] = []
    for level, of in enumerate(amid):
        queue += [(rack, level) for rack in of for _ in range(counts[level].switches // len(of))]
    held: list[list[tuple[int, int]]] = []
    most_w = inf if rows.switch_rack_kw is None else 1e3 * rows.switch_rack_kw
    units_left = w_left = 0.0
    for rack, level in sorted(queue):
        units, w = boxes[level].rack_units or 0.0, watts[level]
        if not held or units_left < units * (1 - NEARLY) or w_left < w * (1 - NEARLY):
            held.append([])
            units_left, w_left = rows.switch_rack_units, most_w
        held[-1].append((rack, level))
        units_left, w_left = units_left - units, w_left - w
    standing = [(float(rack), -1) for rack in range(racks)]
    standing += [(_middle([rack for rack, _ in of]) + 0.5, n) for n, of in enumerate(held)]
    spot_of_rack, spot_of_held = dict[int, int](), dict[int, int]()
    for spot, (where, number) in enumerate(sorted(standing)):
        if number < 0:
            spot_of_rack[int(where)] = spot
        else:
            spot_of_held[number] = spot
    holding: dict[tuple[int, int], list[int]] = {}
    for number, switches in enumerate(held):
        for rack, level in switches:
            holding.setdefault((level, rack), []).append(number)
    return spot_of_rack, {place: spot_of_held[_middle(of)] for place, of in holding.items()}


def _watts(
    instance: Instance, family: DesignFamily, ports: Ports, carried: Sequence[tuple[int, int]]
) -> list[float]:
    """What a switch of each tier draws at most with the modules in it (W)."""
    network, counts = family.network, levels(family, ports)

    def hottest(links: int) -> float:
        return max(optic.w for optic in instance.network.optics if network.links_of(optic) == links)

    modules = [level.modules(of) for level, of in zip(counts, carried, strict=True)]
    drawn = [network.at(tier).w * level.switches for tier, level in enumerate(counts, start=1)]
    for level, ((n_below, n_above), (below, above)) in enumerate(
        zip(carried, modules, strict=True)
    ):
        drawn[level] += above * hottest(n_above)
        if level:
            drawn[level - 1] += below * hottest(n_below)
    return [w / level.switches for w, level in zip(drawn, counts, strict=True)]


def _between_m(rows: NetworkHallRows, one: int, other: int) -> float:
    """The way of a cable from a spot to another (m)."""
    if one == other:
        return rows.in_rack_m
    (row, place), (far_row, far_place) = (divmod(spot, rows.racks_per_row) for spot in (one, other))
    along, across = abs(place - far_place), abs(row - far_row)
    return 2 * rows.rise_m + along * rows.rack_pitch_m + across * rows.row_pitch_m


Way = tuple[int, int]
"""In which stage a cable or a switch comes, and the length of the way, below zero."""


def _down_needs(
    family: DesignFamily,
    ports: Ports,
    carried: tuple[int, int],
    ways: Sequence[Sequence[Way]],
    stage: int,
) -> list[Need]:
    """The cables of NICs in a stage: modules of a leaf are filled stage by stage, from the longest
    cable on.
    """
    n_below, n_above = carried
    switches = [(family.planes * family.copies, 1)]
    if ports.tiers == 1:
        together = planes_on_switch(family)
        switches = [
            (family.copies * (family.planes // together), together),
            (family.copies, family.planes % together),
        ]
    links, modules = Counter[int](), Counter[int]()
    for times, planes in switches:
        for way in ways:
            cables = [one for one in way for _ in range(planes)]
            for start in range(0, len(cables), n_above):
                module = cables[start : start + n_above]
                longest_m = -min(way_m for _, way_m in module)
                standing = sum(comes <= stage for comes, _ in module)
                if standing and times:
                    links[longest_m] += times * standing
                    modules[longest_m] += times
    return [Need(m, links[m], links[m] // n_below, modules[m]) for m in links]


def _up_needs(
    ways: Sequence[Way],
    stage: int,
    links: int,
    above: tuple[int, int],
    carried: tuple[int, int],
    times: int,
) -> list[Need]:
    """The cables of switches to the same ones above, so many in the end and in a stage, dealt in
    turn: as many switches have the kind of the longest of them as fill whole modules above.
    """
    n_below, n_above = carried
    in_end, there = above
    together = next(
        (
            n
            for n in range(1, n_above + 1)
            if links % in_end == 0 and n * links // in_end % n_above == 0
        ),
        1 if n_above == 1 else len(ways),
    )
    counts = Counter[int]()
    for start in range(0, len(ways), together):
        alike = ways[start : start + together]
        counts[-min(way_m for _, way_m in alike)] += sum(comes <= stage for comes, _ in alike)
    needs = []
    for length_m, number in (+counts).items():
        quotient, rest = divmod(number * links, there)
        modules = (there - rest) * ceil_ratio(quotient, n_above) + rest * ceil_ratio(
            quotient + 1, n_above
        )
        needs.append(
            Need(
                length_m,
                times * number * links,
                times * number * ceil_ratio(links, n_below),
                times * modules,
            )
        )
    return needs
