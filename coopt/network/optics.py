"""Which optics a level may take: those that no other one beats in all that counts.

Where each end of a link has its own product, these are the ones that fit there and meet the other
end.

Where nothing but the objective counts this is the one that adds least to it. Where a limit, a site,
a later phase or a discount counts as well, an optic that adds more may still be the better one, and
each that may be is a choice.

A module in a cage of a switch may hold the ends of several links that start at NICs, or at other
switches, in modules of one each: they meet where their fibres carry the same. A product without
fibres of its own is at both ends.

What the ends of a level add to a bill follows from how many modules stand at either end, so that
for given switches and uplinks each level chooses for itself, but for the ports of a switch that its
modules have together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, groupby, pairwise, product
from operator import le
from typing import TypeVar

from coopt.instance.catalog import ports_of_modules
from coopt.instance.couplings import BillKind
from coopt.instance.hardware import Nic, Optic, Switch, mate
from coopt.instance.network import Network
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.network.family import CableRun, EndHolders, Family, LinkEnds, whole
from coopt.network.fibres import FibreUnits
from coopt.network.parts import end_holders, priced_products, weigh
from coopt.plan.parts import Fabric, TierCables

T = TypeVar("T")
K = TypeVar("K")
Joined = Nic | Optic | Switch
Levels = tuple[tuple[Optic, ...], ...]
"""The choices of each level, from the leaves up."""


Values = tuple[float, ...]
OpticValues = Callable[[Optic | FibreUnits], Values]
"""What a module, or a unit of fibre, adds to each measure."""
EndsByLevel = tuple[tuple[LinkEnds, ...], ...]
"""The ends that links of each level may have, from the leaves up."""
PerModule = tuple[tuple[int, int], ...]
"""Links that a module carries at the lower and at the upper end of each level."""


def values_of(instance: Instance, measures: tuple[ObjectiveKind, ...] | None = None) -> OpticValues:
    """What a module of the list adds to each measure; to those of the instance where there are
    none.

    Where the price of a product depends on how many are bought, or few products may be in use, how
    many of it there are is a measure of its own.
    """
    is_counted, sharing = "optics" in instance.objective.include, instance.sharing
    # Where optics are not in the bill none is better than another, so there is nothing to compare
    # them by.
    kinds = (measures or measures_of(instance)) if is_counted else ()
    discounted = _by_quantity(instance) if is_counted else set()
    optics = instance.network.optics
    names = [
        entry.name
        for entry in optics
        if entry.name in discounted or sharing.most_products.optics is not None
    ]
    values = {
        optic.name: (
            *(
                weigh(instance.objective, optic.usd * (optic.name not in discounted), optic.w, kind)
                for kind in kinds
            ),
            *(float(optic.name == name) for name in names),
        )
        for optic in optics
    }
    of_fibre = {  # whose names may be those of optics
        name: (
            *(weigh(instance.objective, usd, 0.0, kind) for kind in kinds),
            *(0.0 for _ in names),
        )
        for one in instance.network.fibre
        for name, usd in one.sold
    }
    return lambda part: (of_fibre if isinstance(part, FibreUnits) else values)[part.name]


def _by_quantity(instance: Instance) -> set[str]:
    """Optics whose price depends on how many are bought: some at volume prices, and some stand."""
    stands = instance.stands
    standing = {optic.name for ends in stands.ends for optic in ends} if stands else set()
    discounts = instance.sharing.discount
    return {entry.item for entry in discounts if entry.kind == "optics"} | standing


def optic_slopes(instance: Instance) -> dict[str, tuple[float, float]]:
    """What a module of each optic adds to the bill at least and at most (USD) where that depends on
    how many of some are bought; nothing where it does not.
    """
    priced = priced_products(instance) if _by_quantity(instance) else ()
    return {sold.name: sold.slopes for sold in priced if sold.kind == "optics"}


def own_ends(
    network: Network, nic: Nic, planes: int, switches: Sequence[Switch], values: OpticValues
) -> EndsByLevel:
    """The ends worth having on each level of networks that the ports of a NIC lead to, as far up as
    some reach.

    Parameters
    ----------
    planes
        Networks that the ports of the NIC lead to.
    switches
        Those of each tier; ends have to mate with them where tiers may have several products.
    values
        What ends are compared by.
    """
    rate, levels = nic.gbit_s / planes, list[tuple[LinkEnds, ...]]()
    for level, reach_m in enumerate(network.needed_reach_m[: len(switches)]):
        lower_box, upper_box = (switches[level - 1] if level else None), switches[level]
        reaching = [
            optic for optic in network.optics if optic.reach_m >= reach_m and optic.links_of(rate)
        ]
        upper_optics = [optic for optic in reaching if fits(optic, rate, upper_box)]
        lower_optics = [optic for optic in reaching if fits(optic, rate, lower_box)]
        # A NIC's ports are all used, so that its modules must carry just as many links as there are
        # planes.
        if lower_box is None:
            lower_optics = [
                optic for optic in lower_optics if optic.links_of(rate) * nic.cages == planes
            ]
        pairs = [
            LinkEnds(*pair)
            for pair in product(lower_optics, upper_optics)
            if pair[0].meets(pair[1])
        ]
        if network.mates:
            pairs = [ends for ends in pairs if _mates(ends, lower_box or nic, upper_box)]
        if not pairs:
            break
        # a dearer module may be the one that reaches
        by_length = network.cables == "hall"
        levels.append(tuple(pairs) if by_length else _worth_having(pairs, rate, values))
    return tuple(levels)


def fits(optic: Optic, gbit_s: float, switch: Switch | None) -> bool:
    """Whether a module goes into a cage of a switch, or of a NIC where there is none, for links of
    a rate: those of one that breaks out are neighbouring ports.
    """
    count = optic.links_of(gbit_s)
    return (
        count == 1
        or switch is None
        or (switch.radix % count == 0 and optic.gbit_s <= switch.cage_gbit_s)
    )


def module_places(network: Network, switch: Switch, optic: Optic) -> int:
    """How many of a module a switch takes for links of its ports; 0 where it takes none."""
    links = optic.links_of(switch.port_gbit_s)
    if not links or not fits(optic, switch.port_gbit_s, switch):
        return 0
    ports = ports_of_modules(switch, links) if network.keeps_cages else switch.radix
    return ports // links


def _mates(ends: LinkEnds, lower_box: Nic | Switch, upper_box: Switch) -> bool:
    if ends.below.name == ends.above.name:
        return mate(ends.below, lower_box, upper_box)
    return mate(ends.below, lower_box) and mate(ends.above, upper_box)


def first_unmated(
    network: Network, fabric: Fabric
) -> tuple[int, tuple[Nic | Optic | Switch, ...]] | None:
    """The first tier of a network, from 1, below which links do not mate, with ends that do not;
    None where all do.
    """
    parts: tuple[Nic | Optic | Switch, ...] = (*network.switches, *network.optics)
    part_of = {part.name: part for part in parts}
    lower_part: Nic | Optic | Switch | None = next(
        (nic for nic in network.nics if nic.name == fabric.nic.name), None
    )
    for tier in fabric.tier:
        switch = part_of.get(tier.switch or fabric.switch.name)
        for names in (tier.ends, *(cables.ends for cables in tier.cables)):
            below, above = map(part_of.get, names)
            if unmated := unmated_joint(lower_part, below, above, switch):
                return tier.level, unmated
        lower_part = switch
    return None


def unmated_joint(
    lower_box: Joined | None, below: Joined | None, above: Joined | None, upper_box: Joined | None
) -> tuple[Joined, ...]:
    """Of what a link joins, by way of the products at its ends, the first parts that do not mate:
    each product with the box it is in, and the boxes; all three where both ends have one. Nothing
    where all do, as far as they are known.
    """
    joints = ((lower_box, below), (above, upper_box), (lower_box, upper_box))
    for joint in [(lower_box, above, upper_box)] if below == above else joints:
        parts = tuple(part for part in joint if part is not None)
        if not mate(*parts):
            return parts
    return ()


def _worth_having(
    candidates: list[LinkEnds], rate: float, values: OpticValues
) -> tuple[LinkEnds, ...]:
    """Of ends with as many links to a module those that no others beat, however many modules there
    are; the first of equal ones, one product before two.
    """

    def rank(ends: LinkEnds) -> tuple[float, ...]:
        figures = [figure for end in ends for figure in (*values(end), end.usd, end.w)]
        return (*figures, float(ends.below.name != ends.above.name))

    def added(ends: LinkEnds) -> Values:
        return (*values(ends.below), *values(ends.above))

    groups = _unbeaten(
        sorted(candidates, key=rank),
        lambda ends: (ends.below.links_of(rate), ends.above.links_of(rate)),
        added,
    )
    return tuple(ends for _, group in sorted(groups.items()) for ends in group)


def modules_worth_having(
    optics: Iterable[Optic],
    rate: float,
    values: OpticValues,
    interface: Callable[[Optic], Hashable] = lambda _: None,
) -> tuple[Optic, ...]:
    """Of modules with as many links of a rate, and the same interface, those that no others beat;
    the first of equal ones.
    """
    ranked = sorted(optics, key=lambda optic: (*values(optic), optic.usd, optic.w))
    groups = _unbeaten(ranked, lambda optic: (optic.links_of(rate), interface(optic)), values)
    return tuple(chain.from_iterable(groups.values()))


def _unbeaten(
    ranked: Iterable[T],
    group: Callable[[T], K],
    added: Callable[[T], Values],
    spared: Callable[[T], Values] | None = None,
) -> dict[K, list[T]]:
    """Candidates that none of their group beats, by group.

    Parameters
    ----------
    ranked
        In an order in which none beats one before it but for equal ones.
    added, spared
        What a candidate adds to each measure at most and, where that depends on the quantity, at
        least: one beats another that adds no less, whatever the quantity.
    """
    survivors: dict[K, list[T]] = {}
    for candidate in ranked:
        rivals = survivors.setdefault(group(candidate), [])
        least = (spared or added)(candidate)
        if not any(_no_more(added(rival), least) for rival in rivals):
            rivals.append(candidate)
    return survivors


def _no_more(values: Values, rival_values: Values) -> bool:
    return all(map(le, values, rival_values))


def cages_of(per_module: PerModule) -> tuple[int, int]:
    """Ports of a leaf, and of an aggregation switch, that face one way together: those of whole
    modules of both the levels that meet there.
    """
    pairs = [(lower_level[1], upper_level[0]) for lower_level, upper_level in pairwise(per_module)]
    leaf, pod = (*(math.lcm(*pair) for pair in pairs), 1, 1)[:2]
    return leaf, pod


@lru_cache(maxsize=1 << 12)
def in_cages(
    switches: tuple[Switch, ...], per_module: PerModule, of_core: int
) -> tuple[Switch, ...]:
    """Switches of each tier with ports for no more modules than they have cages: for those that
    carry fewest links, of its two levels and, of leaves, of those into a core, `of_core` (0 without
    any). Tiers without links stay as they are.
    """
    boxes = list(switches)
    for tier, (_, upper_links) in enumerate(per_module):
        counts = [upper_links, *(lower_links for lower_links, _ in per_module[tier + 1 : tier + 2])]
        counts += [of_core] if of_core and tier == 0 else []
        ports = ports_of_modules(switches[tier], min(counts))
        boxes[tier] = switches[tier].model_copy(update={"radix": ports})
    return tuple(boxes)


def uplinks_alike(
    family: Family, choices: Sequence[tuple[LinkEnds, ...]]
) -> Iterator[tuple[int, ...]]:
    """The uplinks of a family in groups over which its bill is affine in uplinks and spines,
    whatever the ends.

    Where modules of spines hold several links, the last one of each may not be full, and each
    number is alone.
    """
    rate = family.link_gbit_s
    if family.tiers == 2 and any(ends[1].above.links_of(rate) > 1 for ends in choices):
        yield from ((uplinks,) for uplinks in family.uplink_choices)
    else:
        yield family.uplink_choices


def unbeaten_ends(
    family: Family, choices: Sequence[tuple[LinkEnds, ...]], values: OpticValues
) -> list[tuple[LinkEnds, ...]]:
    """The choices of ends of all levels of a family than which no other adds as little, at any of
    its uplinks.

    What a choice adds is affine in uplinks where there are several, so that the fewest and the most
    stand for all.
    """
    if len(choices) == 1:
        return [*choices]
    uplink_range, rate = family.uplink_choices, family.link_gbit_s
    # Affine in between: what is no worse at both ends of the range is no worse anywhere.
    holders = [
        end_holders(family, family.chain(uplinks))
        for uplinks in dict.fromkeys((uplink_range[0], uplink_range[-1]))
    ]
    costs: dict[tuple[int, str, str], Values] = {}
    survivors: list[tuple[Values, tuple[LinkEnds, ...]]] = []
    for choice in choices:
        added = []
        for level, ends in enumerate(choice):
            key = level, ends.below.name, ends.above.name
            if key not in costs:
                costs[key] = _added(ends, [levels[level] for levels in holders], rate, values)
            added.append(costs[key])
        total = tuple(map(sum, zip(*added, strict=True)))
        if not any(_no_more(rival, total) for rival, _ in survivors):
            survivors = [
                (rival, rival_choice)
                for rival, rival_choice in survivors
                if not _no_more(total, rival)
            ]
            survivors.append((total, choice))
    return [choice for _, choice in survivors]


def _added(
    ends: LinkEnds, holders: Sequence[EndHolders], rate: float, values: OpticValues
) -> Values:
    """What the ends of a level add to each measure, at each number of uplinks."""
    n, m = ends.below.links_of(rate), ends.above.links_of(rate)
    figures = list(zip(values(ends.below), values(ends.above), strict=True))
    added: list[float] = []
    for level in holders:
        lower_modules, upper_modules = whole(level.below, n), whole(level.above, m)
        added += [
            lower_modules * lower_figure + upper_modules * upper_figure
            for lower_figure, upper_figure in figures
        ]
    return tuple(added)


def measures_of(instance: Instance) -> tuple[ObjectiveKind, ...]:
    """What optics are compared by: the objective, and each measure that something else depends
    on.
    """
    kind = instance.objective.billed
    if "optics" not in instance.objective.include:
        return (kind,)
    repriced = len({factors["optics"] for factors in instance.price_scenarios}) > 1
    moves = kind == "tco" and (
        instance.electricity_differs or repriced
    )  # a watt has no one price in USD
    sums: tuple[BillKind, ...] = ("capex", "power")
    return kind, *(
        measure
        for measure in sums
        if (moves or measure in instance.limited_sums) and measure != kind
    )


def optic_choices(
    instance: Instance,
    nic: Nic,
    measures: tuple[ObjectiveKind, ...] | None = None,
    planes: int = 1,
    switches: tuple[Switch, ...] = (),
) -> Levels:
    """The optics worth having on each level of networks that the ports of a NIC lead to, as far up
    as one reaches.

    The first of a level is the one that adds least to the objective, then costs and draws least,
    among those that carry as many links. An end at a NIC carries as many as its module has ports.
    Above leaves ends break out only where NICs have several planes.

    Parameters
    ----------
    measures
        What optics are compared by; as `measures_of` has it where left out.
    planes
        Networks that the ports of each NIC lead to.
    switches
        Those of each tier, with which optics have to mate; any optic will do where left out.
    """
    rate, of_nic = nic.gbit_s / planes, planes // nic.cages
    levels: list[tuple[Optic, ...]] = []
    for level, reach_m in enumerate(instance.network.link_reach_m):
        fitting = [
            optic
            for optic in instance.network.optics
            if optic.reach_m >= reach_m and mate(optic, *ends_of(nic, switches, level))
            for links in [optic.links_of(rate)]
            if (links == of_nic if level == 0 else links == 1 or (links and planes > 1))
        ]
        if not fitting:
            break
        levels.append(optics_worth_having(instance, fitting, rate, measures))
    return tuple(levels)


def ends_of(nic: Nic, switches: tuple[Switch, ...], level: int) -> tuple[Nic | Switch, ...]:
    """What the links of a level join, from 0: a NIC or a switch, and the switch above it; nothing
    without switches.
    """
    chain: tuple[Nic | Switch, ...] = (nic, *switches)
    return chain[level : level + 2] if switches else ()


def optics_worth_having(
    instance: Instance,
    optics: Iterable[Optic],
    rate: float,
    measures: tuple[ObjectiveKind, ...] | None = None,
) -> tuple[Optic, ...]:
    """Of optics with as many links of a rate those that no other beats wherever it is used; where
    few may be in use, the one in use in any case stays.

    Discounts set apart what a unit adds at least and at most, as that depends on the quantity.
    Where few optics may be in use, one that reaches farther can stand for another on every level.
    """
    sharing, kinds = instance.sharing, measures or measures_of(instance)
    is_limited = sharing.most_products.optics is not None
    discounted, slopes = _by_quantity(instance), optic_slopes(instance)

    def values(optic: Optic, end: int) -> Values:
        usd = slopes[optic.name][end] if optic.name in discounted else optic.usd
        added = (weigh(instance.objective, usd, optic.w, kind) for kind in kinds)
        return (*added, -optic.reach_m if is_limited else 0.0)

    def spared(optic: Optic) -> Values:
        stays = is_limited and optic.name == sharing.optic_in_use
        return (-math.inf,) * (len(kinds) + 1) if stays else values(optic, 0)

    def added(optic: Optic) -> Values:
        return values(optic, 1)

    ranked = sorted(optics, key=lambda optic: (*added(optic), optic.usd, optic.w))
    groups = _unbeaten(ranked, lambda optic: optic.links_of(rate), added, spared)
    return tuple(optic for _, group in sorted(groups.items()) for optic in group)


def cable_kinds(runs: Iterable[CableRun]) -> tuple[TierCables, ...]:
    """The kinds of cables that lengths choose, from the shortest on."""
    kinds = [(ends, list(of)) for ends, of in groupby(runs, key=lambda run: run.ends)]
    return tuple(
        TierCables(
            optic=ends.above.name,
            optic_below=ends.below.name if ends.below.name != ends.above.name else None,
            longest_m=of[-1].length_m,
            links=sum(run.links for run in of),
        )
        for ends, of in kinds
    )
