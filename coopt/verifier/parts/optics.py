"""Which optics a level of links may have, at either end.

Where a plan is judged by its objective alone, a level has the optic that adds least to it. Where
something else counts as well, another may be the better one: a limit on another measure, sites that
feed so much and pay different prices of electricity, phases and intervals of prices with as many
weights of a watt, prices by quantity, few products. There any listed optic of the rate and the
reach will do, and all that may be better are gone through.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import product
from typing import NamedTuple

from coopt.instance.hardware import Nic, Optic, Switch
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.plan.parts import Fabric
from coopt.verifier.parts.bills import SwitchLevel, priced_total
from coopt.verifier.parts.layouts import Ports, ceil_ratio, held_for_core, planes_on_switch
from coopt.verifier.parts.space import DesignFamily, NetworkGear, OpticPair, linkable


def optics_open(instance: Instance, kind: ObjectiveKind) -> bool:
    """Whether an optic that adds more to the objective than another may still be the better one."""
    limits, sharing, robust = instance.limits, instance.sharing, instance.robust
    if sharing.most_products.optics is not None:
        return True
    if "optics" not in instance.objective.include:
        return False
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


Ends = Nic | NetworkGear
"""What links start at: a NIC whose one port has their rate, or all the gear of a network."""


def _links_of(ends: Ends, optic: Optic) -> int:
    """Links that one end with this optic carries; 0 where none has its rate."""
    return int(optic.gbit_s == ends.gbit_s) if isinstance(ends, Nic) else ends.links_of(optic)


def fitting_optics(instance: Instance, ends: Ends, level: int) -> list[Optic]:
    """The listed optics of a level (from 1) that have the rate and the reach, and mate where tiers
    may differ.

    Where NICs have ports on several planes, a module may break out into links: into the ports of
    its cage at a NIC, and at a switch into a share of its ports, where its cages are fast enough
    for it.
    """
    reach_m = instance.network.link_reach_m[level - 1]
    fitting = [
        optic
        for optic in instance.network.optics
        if optic.reach_m >= reach_m and _fits(ends, optic, level)
    ]
    if isinstance(ends, Nic) or instance.network.tier_switches == "same":
        return fitting
    boxes = [ends.at(tier) if tier else ends.nic for tier in (level - 1, level)]
    return [optic for optic in fitting if linkable(optic, *boxes)]


def _fits(ends: Ends, optic: Optic, level: int) -> bool:
    links = _links_of(ends, optic)
    if isinstance(ends, Nic) or not links:
        return links == 1
    # each module of a NIC breaks out into its share of the ports
    if level == 1 and links * ends.nic.cages != ends.nic_planes:
        return False
    boxes = [ends.at(tier) for tier in (level - 1, level) if tier]
    in_cages = all(box.radix % links == 0 and optic.gbit_s <= box.cage_gbit_s for box in boxes)
    return links == 1 or (ends.nic_planes > 1 and in_cages)


def cheapest_optic(
    instance: Instance, kind: ObjectiveKind, ends: Ends, level: int, links: int = 1
) -> Optic | None:
    """The optic that adds least to the objective, then costs and draws least, of those that carry
    so many links; None where none fits.
    """
    optics = [
        optic for optic in fitting_optics(instance, ends, level) if _links_of(ends, optic) == links
    ]
    return min(
        optics,
        key=lambda o: (priced_total(o.usd, o.w, instance.objective).of(kind), o.usd, o.w),
        default=None,
    )


def _cheapest_each(instance: Instance, kind: ObjectiveKind, ends: Ends, level: int) -> list[Optic]:
    """The cheapest optic of each number of links that one carries."""
    counts = dict.fromkeys(
        _links_of(ends, optic) for optic in fitting_optics(instance, ends, level)
    )
    optics = (cheapest_optic(instance, kind, ends, level, links) for links in counts)
    return [optic for optic in optics if optic is not None]


def allowed_optics(instance: Instance, kind: ObjectiveKind, ends: Ends, level: int) -> list[Optic]:
    """The optics a plan may have at a level: all that fit where the choice is open, or where optics
    do not count.
    """
    if optics_open(instance, kind) or "optics" not in instance.objective.include:
        return fitting_optics(instance, ends, level)
    return _cheapest_each(instance, kind, ends, level)


def candidate_optics(
    instance: Instance, kind: ObjectiveKind, ends: Ends, level: int
) -> list[Optic]:
    """The optics of a level to go through.

    Where the choice is open, one is left out only if another that fits and carries as many links
    costs no more, at any quantity, and draws no more: taking that one instead keeps every limit.
    Where products count, none is left out.
    """
    if not optics_open(instance, kind):
        return _cheapest_each(instance, kind, ends, level)
    optics, front = fitting_optics(instance, ends, level), list[Optic]()
    if instance.sharing.most_products.optics is not None:
        return optics
    # in this order whatever makes a candidate needless stands in front before it
    for candidate in sorted(
        optics, key=lambda optic: (_usd_of_units(instance, optic).most_usd, optic.w)
    ):
        rivals = (rival for rival in front if _links_of(ends, rival) == _links_of(ends, candidate))
        least_usd = _usd_of_units(instance, candidate).least_usd
        if not any(
            _usd_of_units(instance, rival).most_usd <= least_usd and rival.w <= candidate.w
            for rival in rivals
        ):
            front.append(candidate)
    return front


class _UnitPrices(NamedTuple):
    """What one unit more adds to the least bill, at least and at most, whatever the quantity
    (USD).
    """

    least_usd: float
    most_usd: float


def _usd_of_units(instance: Instance, optic: Optic) -> _UnitPrices:
    """A unit may add nothing where more than are needed reach a lower price for all, and never more
    than its own.
    """
    discounts = instance.sharing.discount
    discount = next(
        (entry for entry in discounts if (entry.kind, entry.item) == ("optics", optic.name)), None
    )
    if discount is None:
        return _UnitPrices(optic.usd, optic.usd)
    least_usd = discount.prices(optic.usd)[-1] if discount.applies == "incremental" else 0.0
    return _UnitPrices(least_usd, optic.usd)


def fitting_ends(instance: Instance, gear: NetworkGear, level: int) -> list[OpticPair]:
    """Every two listed products that may be the ends of the links of a level (from 1).

    Where each end has its own, a module fits where its links are as many as a cage of a NIC has
    ports, or a share of the ports of a switch whose cages are fast enough; two different ones meet
    where their fibres carry the same.
    """
    network = instance.network
    if network.link_ends == "same":
        return [OpticPair(optic, optic) for optic in fitting_optics(instance, gear, level)]
    box_below, box_above = (gear.at(level - 1) if level > 1 else None), gear.at(level)
    reaching = [
        optic for optic in network.optics if optic.reach_m >= network.link_reach_m[level - 1]
    ]
    lower_optics = [optic for optic in reaching if _goes_into(gear, optic, box_below)]
    upper_optics = [optic for optic in reaching if _goes_into(gear, optic, box_above)]
    pairs = [
        OpticPair(lower_optic, upper_optic)
        for lower_optic in lower_optics
        for upper_optic in upper_optics
        if interface(lower_optic) == interface(upper_optic)
    ]
    if network.tier_switches == "same":
        return pairs
    device = box_below or gear.nic
    return [ends for ends in pairs if _speaks(ends, device, box_above)]


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


def _goes_into(gear: NetworkGear, optic: Optic, box: Switch | None) -> bool:
    """Whether a module fits a cage of a switch, or of the NIC where there is none."""
    links = gear.links_of(optic)
    if box is None:
        return links * gear.nic.cages == gear.nic_planes
    return links == 1 or (links > 1 and box.radix % links == 0 and optic.gbit_s <= box.cage_gbit_s)


def _cheapest_of_ends(
    instance: Instance, kind: ObjectiveKind, gear: NetworkGear, fitting: Sequence[OpticPair]
) -> list[OpticPair]:
    """The ends than which no others that carry as many links are cheaper at one end, and no dearer
    at the other.
    """

    def adds(optic: Optic) -> tuple[float, float, float]:
        return priced_total(optic.usd, optic.w, instance.objective).of(kind), optic.usd, optic.w

    rivals_by_links: dict[
        tuple[int, int], list[tuple[tuple[float, ...], tuple[float, ...], OpticPair]]
    ] = {}
    for ends in fitting:
        rivals_by_links.setdefault(gear.carried(ends), []).append(
            (adds(ends.below), adds(ends.above), ends)
        )
    return [
        ends
        for rivals in rivals_by_links.values()
        for lower_price, upper_price, ends in rivals
        if not any(
            a <= lower_price and b <= upper_price and (a, b) != (lower_price, upper_price)
            for a, b, _ in rivals
        )
    ]


def allowed_ends(
    instance: Instance, kind: ObjectiveKind, gear: NetworkGear, level: int
) -> list[OpticPair]:
    """The ends a plan may have at a level: all that fit where the choice is open, or where optics
    do not count.
    """
    if instance.network.link_ends == "same":
        return [OpticPair(optic, optic) for optic in allowed_optics(instance, kind, gear, level)]
    fitting = fitting_ends(instance, gear, level)
    if optics_open(instance, kind) or "optics" not in instance.objective.include:
        return fitting
    return _cheapest_of_ends(instance, kind, gear, fitting)


def candidate_ends(
    instance: Instance, kind: ObjectiveKind, gear: NetworkGear, level: int
) -> list[OpticPair]:
    """The ends of a level to go through.

    Where the choice is open, two are left out only if two others that carry as many links cost and
    draw no more at either end.
    """
    if instance.network.link_ends == "same":
        return [OpticPair(optic, optic) for optic in candidate_optics(instance, kind, gear, level)]
    fitting, front = fitting_ends(instance, gear, level), list[OpticPair]()
    if instance.sharing.most_products.optics is not None:
        return fitting
    if not optics_open(instance, kind):
        fitting = _cheapest_of_ends(instance, kind, gear, fitting)

    def no_worse(rival: Optic, optic: Optic) -> bool:
        """Whether it costs no more at any quantity, or is the same, and draws no more."""
        if rival.name == optic.name:
            return True
        return (
            _usd_of_units(instance, rival).most_usd <= _usd_of_units(instance, optic).least_usd
            and rival.w <= optic.w
        )

    for ends in sorted(
        fitting, key=lambda ends: (ends.below.usd, ends.below.w, ends.above.usd, ends.above.w)
    ):
        rivals = (rival for rival in front if gear.carried(rival) == gear.carried(ends))
        if not any(all(map(no_worse, rival, ends)) for rival in rivals):
            front.append(ends)
    return front


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

    Where the choice is open, one need not be gone through only if another with its key costs no
    more, at any quantity, and draws no more.
    """
    if optics_open(instance, kind) or "optics" not in instance.objective.include:
        if all_allowed or instance.sharing.most_products.optics is not None:
            return list(fitting)
        front: list[Optic] = []
        for module in sorted(
            fitting, key=lambda optic: (_usd_of_units(instance, optic).most_usd, optic.w)
        ):
            rivals = [rival for rival in front if key(rival) == key(module)]
            least_usd = _usd_of_units(instance, module).least_usd
            if not any(
                _usd_of_units(instance, rival).most_usd <= least_usd and rival.w <= module.w
                for rival in rivals
            ):
                front.append(module)
        return front

    def adds(optic: Optic) -> tuple[float, float, float]:
        return priced_total(optic.usd, optic.w, instance.objective).of(kind), optic.usd, optic.w

    least_price = {
        key(module): min(adds(rival) for rival in fitting if key(rival) == key(module))
        for module in fitting
    }
    return [module for module in fitting if adds(module) == least_price[key(module)]]


def optics_choices(
    instance: Instance, kind: ObjectiveKind, family: DesignFamily, tiers: int
) -> Iterable[tuple[OpticPair, ...]]:
    """Every choice of ends of all levels to go through; none where some level has none."""
    if family.gear is None:
        return [()]
    return product(
        *(candidate_ends(instance, kind, family.gear, level) for level in range(1, tiers + 1))
    )


def spares_core(family: DesignFamily, optics: Sequence[OpticPair]) -> bool:
    """Whether whole modules of the switches of a single tier leave ports for their links into a
    core.
    """
    if (
        family.gear is None
        or len(optics) != 1
        or not family.to_core
        or not planes_on_switch(family)
    ):
        return True
    count, ends = (
        family.gear.links_of(optics[0].above),
        min(planes_on_switch(family), family.planes) * family.ends,
    )
    return ceil_ratio(ends, count) * count <= family.gear.switch.radix - held_for_core(
        family, Ports(1, family.ends)
    )


def least_choices(
    instance: Instance,
    kind: ObjectiveKind,
    gear: NetworkGear,
    choices: Sequence[tuple[OpticPair, ...]],
    networks: Sequence[Sequence[SwitchLevel]],
) -> list[tuple[OpticPair, ...]]:
    """Of choices of ends those to go through for some networks: with another one no network costs
    more, or draws more where that counts as well.
    """
    counts_optics = "optics" in instance.objective.include
    opened, front = (
        optics_open(instance, kind),
        list[tuple[tuple[float, ...], tuple[OpticPair, ...]]](),
    )
    for choice in choices:
        sums: list[float] = []
        for levels in networks if counts_optics else ():
            pairs = list(zip(levels, choice, strict=True))
            counts = [(level.modules(gear.carried(ends)), ends) for level, ends in pairs]
            usd = math.fsum(
                n * end.usd
                for numbers, ends in counts
                for n, end in zip(numbers, ends, strict=True)
            )
            w = math.fsum(
                n * end.w for numbers, ends in counts for n, end in zip(numbers, ends, strict=True)
            )
            sums += [usd, w] if opened else [priced_total(usd, w, instance.objective).of(kind)]
        choice_sums = tuple(sums)
        if not any(
            all(a <= b for a, b in zip(rival, choice_sums, strict=True)) for rival, _ in front
        ):
            front = [
                (rival, rival_choice)
                for rival, rival_choice in front
                if any(a < b for a, b in zip(rival, choice_sums, strict=True))
            ]
            front.append((choice_sums, choice))
    return [choice for _, choice in front]


def optic_names(fabric: Fabric) -> tuple[tuple[str, str], ...]:
    """The products that a plan names at the lower and the upper ends of links, level by level."""
    return tuple((tier.optic_below or tier.optic, tier.optic) for tier in fabric.tier)


def optics_named(
    instance: Instance, kind: ObjectiveKind, family: DesignFamily, names: Sequence[tuple[str, str]]
) -> tuple[OpticPair, ...] | None:
    """The optics of a plan by their names, level by level; None where it may not have them."""
    if family.gear is None:
        return ()
    levels = [
        allowed_ends(instance, kind, family.gear, level) for level in range(1, len(names) + 1)
    ]
    pairs = zip(names, levels, strict=True)
    optics = tuple(
        ends
        for pair, level_ends in pairs
        for ends in level_ends
        if (ends.below.name, ends.above.name) == pair
    )
    return optics if len(optics) == len(names) and spares_core(family, optics) else None
