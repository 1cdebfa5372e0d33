"""Which kinds of cables are the cheapest that reach as far as a hall needs (docs/network.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from itertools import groupby, islice, product
from math import fsum
from operator import itemgetter
from typing import NamedTuple

from coopt.instance.hardware import Optic
from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance
from coopt.instance.texts import both, counted
from coopt.plan.parts import Fabric, TierCables, ends_of_length
from coopt.verifier.checks.verdict import Ledger
from coopt.verifier.parts.bills import bill, bill_total, keeps, priced_total, within_limits
from coopt.verifier.parts.cable_lengths import (
    Choices,
    CoreBay,
    Line,
    Need,
    Needs,
    core_needs,
    lengths_needed,
)
from coopt.verifier.parts.fibres import Bought, fibre_between
from coopt.verifier.parts.layouts import Ports
from coopt.verifier.parts.optics import numbered_optics, undominated
from coopt.verifier.parts.space import (
    DesignFamily,
    OpticPair,
    core_links_carried,
    core_switch,
)
from coopt.verifier.parts.stages import (
    GrowthStage,
    Laid,
    LaidCables,
    chain_groups,
    grown_from,
    last_stage,
)


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
    needs, fibre = lengths_needed(instance, line, choices), partial(_fibre, instance, family)
    fewer = list(_with_fewest(line, needs))
    yield from _cablings(instance, kind, needs, choices, fibre, fewer)


def core_cablings(
    instance: Instance, kind: ObjectiveKind, line: Line, bay: CoreBay, pairs: Sequence[OpticPair]
) -> Iterator[tuple[tuple[LaidCables, ...], ...]]:
    """The kinds of cables into a core, as `_every_cabling` has those of a network."""
    needs, fibre = _core_needs(instance, line, bay)
    for stages in _cablings(instance, kind, needs, [pairs], fibre):
        yield tuple(laid[0] if laid else () for laid in stages)


def _core_needs(instance: Instance, line: Line, bay: CoreBay) -> tuple[Needs, FibreOf]:
    """What cables into a core need, and the fibre of these."""
    box, of_core = core_switch(instance), core_links_carried(instance)
    assert box is not None, "what leads into a core has one"
    carried, rate = (line[-1].family.core_module, of_core), Fraction(box.port_gbit_s)

    def fibre(need: Need, ends: OpticPair) -> tuple[Bought, ...]:
        listed, modules = instance.network.fibre, (need.below, need.above)
        return fibre_between(listed, rate, ends, carried, modules, need.links, need.length_m)

    return core_needs(instance, line, bay, of_core), fibre


def named_core_cables(
    instance: Instance,
    line: Line,
    bay: CoreBay,
    pairs: Sequence[OpticPair],
    named: Sequence[TierCables],
) -> tuple[tuple[LaidCables, ...], ...] | None:
    """The cables into a core in each stage with the kinds that a plan names for their lengths, as
    `named_cables` has those of a network.
    """
    needs, fibre = _core_needs(instance, line, bay)
    stages = _as_named(fibre, needs, [pairs], [partial(ends_of_length, named, ("", ""))])
    return None if stages is None else tuple(laid[0] if laid else () for laid in stages)


def _cablings(
    instance: Instance,
    kind: ObjectiveKind,
    needs: Needs,
    choices: Choices,
    fibre: FibreOf,
    further: Needs = (),
) -> Iterator[tuple[Laid, ...]]:
    """The kinds of cables for some needs in each stage, as `_every_cabling` has them, compared in
    some further ones too.
    """
    fitting = _reaching(needs, choices)
    if not all(ends for level in fitting for ends in level):
        return
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
        for chosen in _by_worth(instance, kind, fibre, [*further, *needs], fitting):
            yield _kinds(fibre, needs, chosen)


def _with_fewest(line: Line, needs: Needs) -> Iterator[list[list[Need]]]:
    """What lengths need in stages that may have fewer uplinks than the end, with the fewest: sums
    are no more with any number of them if they are not with the fewest and the most.
    """
    up = line[-1].uplinks[-1]
    for stage, of_stage in zip(line[:-1], needs[:-1], strict=True):
        if stage.ports.tiers > 1 and stage.uplinks and stage.uplinks[0] < up:
            share = Fraction(stage.uplinks[0], up)
            yield [
                [
                    Need(need.length_m, *(int(n * (share if tier else 1)) for n in need[1:]))
                    for need in of
                ]
                for tier, of in enumerate(of_stage)
            ]


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
                if key not in longer or _names(row) < _names(longer[key]):
                    longer[key] = row
        chosen = undominated(longer)

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


def _carrying_alike(
    family: DesignFamily, choices: Iterable[tuple[OpticPair, ...]]
) -> Iterator[list[list[OpticPair]]]:
    """The ends of each level, for each number of links that modules may carry there."""
    groups = defaultdict[object, list[tuple[OpticPair, ...]]](list)
    for choice in choices:
        groups[tuple(map(family.network.carried, choice)) if choice else ()].append(choice)
    for group in groups.values():
        yield [list(dict.fromkeys(level)) for level in zip(*group, strict=True)]


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
    for ends in _carrying_alike(stage.family, choices):
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
    joins: CoreEnds | None,
    earlier: Sequence[int] = (),
) -> Iterator[Line]:
    """Every whole network of a family, as `laid_each` has them."""
    for caged_family, (ports, uplinks), choices in chain_groups(
        instance.network, family, optics_of
    ):
        yield from laid_each(instance, kind, caged_family, ports, uplinks, choices, joins, earlier)


class CoreEnds(NamedTuple):
    """What links into a core may have at their ends, with the module that stands for those below,
    and the bay from which they lead.
    """

    end: Optic
    pairs: Sequence[OpticPair]
    bay: CoreBay


def laid_each(
    instance: Instance,
    kind: ObjectiveKind,
    family: DesignFamily,
    ports: Ports,
    uplinks: Iterable[int],
    choices: Iterable[tuple[OpticPair, ...]],
    joins: CoreEnds | None,
    earlier: Sequence[int] = (),
) -> Iterator[Line]:
    """Networks with each number of uplinks and every choice of cables that others do not beat, in
    each stage of those that can have had so many GPUs earlier.
    """
    core_end = None if joins is None else joins.end
    for ends, up in product(_carrying_alike(family, choices), uplinks):
        first = tuple(pairs[0] for pairs in ends)
        carried = [family.network.carried(pair) for pair in first]
        apart = ports.pod_each > 1 or any(max(links) > 1 for links in carried[1:])
        menu = [one for one in uplinks if one == up or (one < up and not apart)]
        end = last_stage(family, ports, menu, first, core_end)
        line = stages_before(instance, end, earlier)
        if len(line) == len(earlier):
            line.append(end._replace(uplinks=(up,)))
            into_core: list[tuple[tuple[LaidCables, ...], ...]] = [((),) * len(line)]
            if joins is not None:
                into_core = list(
                    dict.fromkeys(core_cablings(instance, kind, line, joins.bay, joins.pairs))
                )
            cablings = _every_cabling(instance, kind, line, ends) if into_core else ()
            for laid, core in product(dict.fromkeys(cablings), into_core):
                yield [
                    laid_stage(one, up, of)._replace(into_core=of_core)
                    for one, of, of_core in zip(line, laid, core, strict=True)
                ]


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
    fibre, needs = partial(_fibre, instance, family), lengths_needed(instance, line, choices)
    return _as_named(fibre, needs, choices, [tier.ends_at for tier in fabric.tier])


def _as_named(
    fibre: FibreOf,
    needs: Needs,
    choices: Choices,
    names_at: Sequence[Callable[[int], tuple[str, str]]],
) -> tuple[Laid, ...] | None:
    """The cables of each level in each stage, with the products that a plan names for a length."""
    chosen = list[list[OpticPair]]()
    for level, fitting, names in zip(needs[-1], _reaching(needs, choices), names_at, strict=True):
        if not all(fitting):
            return None
        chosen.append(
            [
                next((ends for ends in pairs if ends.names == names(need.length_m)), pairs[0])
                for need, pairs in zip(level, fitting, strict=True)
            ]
        )
    return _kinds(fibre, needs, chosen)


def _reaching(needs: Needs, choices: Choices) -> list[list[list[OpticPair]]]:
    """The ends that each length of each level may have."""
    return [
        [
            [ends for ends in of_level if min(optic.reach_m for optic in ends) >= need.length_m]
            for need in level
        ]
        for level, of_level in zip(needs[-1], choices, strict=True)
    ]


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
            _text(level, of.ends.names, of.links, of.longest_m)
            for level, kinds in enumerate(laid, start=1)
            for of in kinds
            if len(kinds) > 1
        )
        + tuple(
            _text(level, kinds[-1].ends.names, sum(of.links for of in kinds))
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


def _names(row: Sequence[OpticPair]) -> list[tuple[str, str]]:
    return [ends.names for ends in row]


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
    return value, usd, w, ends.below.name != ends.above.name, ends.names


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
