"""Which optics a level of links may have, at either end.

Where a plan is judged by its objective alone, a level has the optic that adds least to it. Where
something else counts as well, another may be the better one: a limit on another measure, sites that
feed so much and pay different prices of electricity, phases and intervals of prices with as many
weights of a watt, prices by quantity, few products. There any listed optic of the rate and the
reach will do, and all that may be better are gone through.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import product
from operator import le
from typing import TypeVar

from coopt.instance.hardware import Nic, Optic, Switch
from coopt.instance.network import Network
from coopt.instance.question import ObjectiveKind
from coopt.instance.schema import Instance
from coopt.verifier.parts.bills import SwitchLevel, priced_total
from coopt.verifier.parts.layouts import Ports, ceil_ratio, held_for_core, planes_on_switch
from coopt.verifier.parts.space import DesignFamily, NicAttachment, OpticPair, linkable
from coopt.verifier.parts.standing import standing_network


def optics_open(instance: Instance, kind: ObjectiveKind) -> bool:
    """Whether an optic that adds more to the objective than another may still be the better one."""
    limits, sharing, robust = instance.limits, instance.sharing, instance.robust
    if sharing.most_products.optics is not None:
        return True
    if "optics" not in instance.objective.include:
        return False
    if instance.stands is not None:  # which has some at no price
        return True
    if (limits.capex_usd is not None and kind != "capex") or (
        limits.power_mw is not None and kind != "power"
    ):
        return True
    by_quantity = any(discount.kind == "optics" for discount in sharing.discount)
    # a site feeds so much power and no more, at a price of its own
    if kind != "power" and (instance.sites != (None,) or by_quantity):
        return True
    uncertain = (
        robust is not None
        and robust.aim == "regret"
        and robust.prices.optics[0] < robust.prices.optics[1]
    )
    return kind == "tco" and (len(instance.years) > 1 or uncertain)


def _reaching(network: Network, level: int) -> list[Optic]:
    return [optic for optic in network.optics if optic.reach_m >= network.needed_reach_m[level - 1]]


def optics_of(
    instance: Instance, kind: ObjectiveKind, nic: Nic, level: int, *, all_allowed: bool = True
) -> list[Optic]:
    """The optics that a plan may have on links of the rate of a NIC, with the reach of a level
    (from 1), or those of them to go through.
    """
    reaching = _reaching(instance.network, level)
    fitting = [optic for optic in reaching if optic.gbit_s == nic.gbit_s]
    return single_modules(instance, kind, fitting, lambda _: nic, all_allowed=all_allowed)


def fitting_ends(instance: Instance, attachment: NicAttachment, level: int) -> list[OpticPair]:
    """Every two listed products that may be the ends of the links of a level (from 1).

    A module fits where its links are as many as a cage of a NIC has ports, or a share of the ports
    of a switch whose cages are fast enough; two different ones meet where their fibres carry the
    same. Where both ends have one product, it breaks out into links for NICs with ports on several
    planes alone.
    """
    network, reaching = instance.network, _reaching(instance.network, level)
    lower_box, upper_box = (attachment.at(level - 1) if level > 1 else None), attachment.at(level)
    upper_optics = [optic for optic in reaching if _goes_into(attachment, optic, upper_box)]
    pairs = [
        OpticPair(lower_optic, upper_optic)
        for lower_optic in reaching
        if _goes_into(attachment, lower_optic, lower_box)
        for upper_optic in upper_optics
        if interface(lower_optic) == interface(upper_optic)
    ]
    if network.link_ends == "same":
        alike = [ends for ends in pairs if ends.below.name == ends.above.name]
        pairs = [
            ends
            for ends in alike
            if attachment.nic_planes > 1 or attachment.links_of(ends.below) == 1
        ]
    if not network.mates:
        return pairs
    return [ends for ends in pairs if _speaks(ends, lower_box or attachment.nic, upper_box)]


def interface(optic: Optic) -> tuple[str, str]:
    """What a module has to find at the other end: fibres that carry the same, or its own
    product.
    """
    return ("fibre", optic.fibre) if optic.fibre is not None else ("product", optic.name)


def _speaks(ends: OpticPair, lower_box: Nic | Switch, upper_box: Switch) -> bool:
    """Whether ends mate with what they are in; where they are one product, all three with each
    other.
    """
    if ends.below.name == ends.above.name:
        return linkable(ends.below, lower_box, upper_box)
    return linkable(ends.below, lower_box) and linkable(ends.above, upper_box)


def _goes_into(attachment: NicAttachment, optic: Optic, box: Switch | None) -> bool:
    """Whether a module fits a cage of a switch, or of the NIC where there is none."""
    links = attachment.links_of(optic)
    if box is None:
        return links * attachment.nic.cages == attachment.nic_planes
    return links == 1 or (links > 1 and box.radix % links == 0 and optic.gbit_s <= box.cage_gbit_s)


def ends_of(
    instance: Instance,
    kind: ObjectiveKind,
    attachment: NicAttachment,
    level: int,
    *,
    all_allowed: bool = True,
) -> list[OpticPair]:
    """The ends a plan may have at a level, or those of them to go through."""
    fitting = fitting_ends(instance, attachment, level)
    return _chosen(instance, kind, fitting, attachment.carried, all_allowed=all_allowed)


def single_modules(
    instance: Instance,
    kind: ObjectiveKind,
    fitting: Sequence[Optic],
    key: Callable[[Optic], Hashable],
    *,
    all_allowed: bool,
) -> list[Optic]:
    """Of modules that do the same where their keys are one, those that a plan may have, or those to
    go through.
    """
    singles = [(optic,) for optic in fitting]
    chosen = _chosen(
        instance, kind, singles, lambda single: key(single[0]), all_allowed=all_allowed
    )
    return [optic for (optic,) in chosen]


Modules = TypeVar("Modules", bound=tuple[Optic, ...])
Row = TypeVar("Row")
T = TypeVar("T", int, float, Fraction)


def _chosen(
    instance: Instance,
    kind: ObjectiveKind,
    fitting: Sequence[Modules],
    key: Callable[[Modules], Hashable],
    *,
    all_allowed: bool,
) -> list[Modules]:
    """Of choices of modules that do the same where their keys are one, those that a plan may have:
    all where the choice is open or optics do not count, else those than which no others are cheaper
    at one end and no dearer at the other. Or those to go through.

    Where the choice is open, modules need not be gone through only if others with their key cost no
    more, at any quantity, and draw no more: taking these instead keeps every limit. Where products
    count, none is left out.
    """
    is_open = optics_open(instance, kind)
    if instance.network.cables == "hall":  # lengths decide, network by network
        return list(fitting)
    if instance.sharing.most_products.optics is not None or (
        all_allowed and (is_open or "optics" not in instance.objective.include)
    ):
        return list(fitting)
    rivals_by_key: defaultdict[Hashable, list[Modules]] = defaultdict(list)
    for modules in fitting:
        rivals_by_key[key(modules)].append(modules)
    choices = [
        modules
        for rivals in rivals_by_key.values()
        for modules in rivals
        if is_open or not any(_is_cheaper(instance, kind, rival, modules) for rival in rivals)
    ]
    if all_allowed:
        return choices
    front: list[Modules] = []
    # in this order whatever makes modules needless stands in front before them
    for modules in sorted(choices, key=lambda modules: [(optic.usd, optic.w) for optic in modules]):
        rivals = [rival for rival in front if key(rival) == key(modules)]
        if not any(_no_worse(instance, rival, modules) for rival in rivals):
            front.append(modules)
    return front


def _is_cheaper(
    instance: Instance, kind: ObjectiveKind, rival: Sequence[Optic], modules: Sequence[Optic]
) -> bool:
    """Whether modules add less to the objective, or cost and draw less, at one end and no more at
    the other. Of those alike the first listed one counts where both ends have one product.
    """

    def price(optic: Optic) -> tuple[float, ...]:
        number = [listed.name for listed in instance.network.optics].index(optic.name)
        first = number if instance.network.link_ends == "same" else 0
        worth = priced_total(optic.usd, optic.w, instance.objective).of(kind)
        return worth, optic.usd, optic.w, first

    prices = [(price(a), price(b)) for a, b in zip(rival, modules, strict=True)]
    return all(a <= b for a, b in prices) and any(a < b for a, b in prices)


def _no_worse(instance: Instance, rival: Sequence[Optic], modules: Sequence[Optic]) -> bool:
    """Whether modules cost no more at any quantity, or are the same, and draw no more."""
    return all(
        a.name == b.name or (a.usd <= _least_usd(instance, b) and a.w <= b.w)
        for a, b in zip(rival, modules, strict=True)
    )


def _least_usd(instance: Instance, optic: Optic) -> float:
    """What one unit more adds to the least bill at least, whatever the quantity (USD); never more
    than its own price.

    A unit may add nothing where more than are needed reach a lower price for all.
    """
    if optic.name in _standing_optics(instance):
        return 0.0
    for discount in instance.sharing.discount:
        if (discount.kind, discount.item) == ("optics", optic.name):
            return discount.prices(optic.usd)[-1] if discount.applies == "incremental" else 0.0
    return optic.usd


def numbered_optics(instance: Instance) -> tuple[str, ...]:
    """Optics whose bill, or use, depends on how many there are of each."""
    sharing, names = instance.sharing, _standing_optics(instance)
    names |= {discount.item for discount in sharing.discount if discount.kind == "optics"}
    if sharing.most_products.optics is not None:
        names |= {optic.name for optic in instance.network.optics}
    return tuple(sorted(names))


def _standing_optics(instance: Instance) -> set[str]:
    """Optics of which some stand, and so have no price."""
    return {
        optic.name
        for network in instance.existing
        for tier in network.tiers
        for optic in (tier.optic, tier.optic_below)
        if optic is not None
    }


def optics_choices(
    instance: Instance, kind: ObjectiveKind, family: DesignFamily, tiers: int
) -> Iterable[tuple[OpticPair, ...]]:
    """Every choice of ends of all levels to go through; none where some level has none."""
    if family.attachment is None:
        return [()]
    return product(
        *(
            ends_of(instance, kind, family.attachment, level, all_allowed=False)
            for level in range(1, tiers + 1)
        )
    )


def spares_core(family: DesignFamily, optics: Sequence[OpticPair]) -> bool:
    """Whether whole modules of the switches of a single tier leave ports for their links into a
    core.
    """
    if (
        family.attachment is None
        or len(optics) != 1
        or not family.to_core
        or not planes_on_switch(family)
    ):
        return True
    count, ends = (
        family.attachment.links_of(optics[0].above),
        min(planes_on_switch(family), family.planes) * family.ends,
    )
    return ceil_ratio(ends, count) * count <= family.attachment.switch.radix - held_for_core(
        family, Ports(1, family.ends)
    )


def undominated(rows: Mapping[tuple[T, ...], Row]) -> dict[tuple[T, ...], Row]:
    """Of rows by what they come to those than which no other comes to less, or as much, in all."""
    front: dict[tuple[T, ...], Row] = {}
    # what comes to no more in anything has no larger sum, and so stands before
    for amounts in sorted(rows, key=lambda amounts: (sum(amounts), amounts)):
        if not any(all(map(le, rival, amounts)) for rival in front):
            front[amounts] = rows[amounts]
    return front


def least_choices(
    instance: Instance,
    kind: ObjectiveKind,
    attachment: NicAttachment,
    choices: Sequence[tuple[OpticPair, ...]],
    networks: Sequence[Sequence[SwitchLevel]],
) -> Collection[tuple[OpticPair, ...]]:
    """Of choices of ends those to go through for some networks: with another one no network costs
    more, or draws more where that counts as well.
    """
    counts_optics = "optics" in instance.objective.include
    opened, standing = optics_open(instance, kind), sorted(_standing_optics(instance))
    rows: dict[tuple[float, ...], tuple[OpticPair, ...]] = {}
    for choice in choices:
        sums: list[float] = []
        for levels in networks if counts_optics else ():
            modules = [
                bought
                for level, ends in zip(levels, choice, strict=True)
                for bought in zip(level.modules(attachment.carried(ends)), ends, strict=True)
            ]
            # of optics of which some stand fewer cost no more, whatever they cost
            sums += [float(sum(n for n, end in modules if end.name == name)) for name in standing]
            usd = math.fsum(n * end.usd for n, end in modules if end.name not in standing)
            w = math.fsum(n * end.w for n, end in modules)
            sums += [usd, w] if opened else [priced_total(usd, w, instance.objective).of(kind)]
        rows.setdefault(tuple(sums), choice)
    return undominated(rows).values()


def optics_named(
    instance: Instance, kind: ObjectiveKind, family: DesignFamily, names: Sequence[tuple[str, str]]
) -> tuple[OpticPair, ...] | None:
    """The optics of a plan by their names, level by level; None where it may not have them."""
    if family.attachment is None:
        return ()
    standing = standing_network(instance, family.gpus) if family.stands else None
    if standing is not None:
        return standing.optics
    levels = [
        ends_of(instance, kind, family.attachment, level) for level in range(1, len(names) + 1)
    ]
    pairs = zip(names, levels, strict=True)
    optics = tuple(ends for pair, level_ends in pairs for ends in level_ends if ends.names == pair)
    return optics if len(optics) == len(names) and spares_core(family, optics) else None
