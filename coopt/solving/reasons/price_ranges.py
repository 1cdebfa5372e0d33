r"""The range of each price within which a plan stays optimal, all other prices kept.

A design buys :math:`n_j` of what the price :math:`p` is for, so its objective is a straight line in it, and so is what
it takes of a budget. Design j takes over at prices where it is cheaper than the plan, a half line, and keeps every
limit, another half line: an interval on one side of today's price. The range ends where the nearest one begins, or
where the plan itself breaks a limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, product

import numpy as np

from coopt.instance.hardware import Nic, Optic, Switch, mate
from coopt.instance.schema import Instance
from coopt.network.family import Family, LinkEnds
from coopt.network.link_ends import OpticValues, values_of
from coopt.network.optics import ends_of, optic_choices
from coopt.network.parts import HOURS_PER_YEAR
from coopt.network.space import Space
from coopt.perf.mapping import Bools, Floats
from coopt.plan.explanation import PriceRange
from coopt.plan.schema import Design
from coopt.solving.reasons.designs import ROUNDING, Designs, Line, priced

HIGHEST, HIGHEST_USD_PER_KWH = 1e9, 1e3
"""The largest prices an instance may hold."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """A price and how many of its units every design buys; `limit` is what a purchase takes of, where that is capped.

    `scale` turns a unit of the price into the unit of the limit, `highest` is the largest price one may ask about.
    """

    item: str
    unit: str
    now: float
    bought: Floats
    limit: str
    scale: float
    highest: float = HIGHEST


def ranges_of(designs: Designs, chosen: int) -> Iterator[PriceRange]:
    """One for each price in the bill of some design, and for electricity where it counts."""
    wide = with_optics(designs)
    for price in _prices(wide):
        if price.bought[wide.met()].any():
            yield _range(wide, chosen, price)


def with_optics(designs: Designs) -> Designs:
    """All designs, then those in time that other prices of optics or electricity would bring about."""
    in_time = designs.met(*(key for key in designs.uses if not key.startswith("workload")))
    serving = np.unique(designs.family[in_time]).tolist()
    listed = with_other_optics(designs.instance, tuple(designs.families[number] for number in serving))
    others = tuple((serving[place], family) for place, family in listed)
    if not others:
        return designs
    sizes = [len(family.uplink_choices) for _, family in others]
    starts = np.searchsorted(designs.family, np.arange(len(designs.families)))
    rows = np.concatenate([starts[f] + np.arange(size) for (f, _), size in zip(others, sizes, strict=True)])
    every = np.concatenate([np.arange(len(designs)), rows])
    families = (*designs.families, *(family for _, family in others))
    again = len(designs.families) + np.repeat(np.arange(len(others)), sizes)
    times = {key: use[every] for key, use in designs.uses.items() if key.startswith("workload")}
    return priced(designs.instance, families, np.concatenate([designs.family, again]), designs.uplinks[every], times)


def _prices(designs: Designs) -> Iterator[Price]:
    instance = designs.instance
    watts = instance.objective.minimize == "power"
    columns: dict[Line, list[int]] = {}
    for column, line in enumerate(designs.lines):
        columns.setdefault(_sold_as(instance, line), []).append(column)
    for (_, item), which in columns.items():
        unit = list(designs.lines.values())[which[0]]
        bought = designs.counts[:, which].sum(axis=1).astype(np.float64)
        if watts:
            yield Price(item=item, unit="W", now=unit.unit_w, bought=bought, limit="limits.power_mw", scale=1e-6)
        else:
            yield Price(item=item, unit="USD", now=unit.unit_usd, bought=bought, limit="limits.capex_usd", scale=1.0)
    if instance.objective.minimize == "tco":
        objective = instance.objective
        kwh_per_w = objective.years * HOURS_PER_YEAR / 1000 * objective.pue
        yield Price(
            item="electricity",
            unit="USD/kWh",
            now=objective.usd_per_kwh,
            bought=designs.w * kwh_per_w,
            limit="",
            scale=0.0,
            highest=HIGHEST_USD_PER_KWH,
        )


def _sold_as(instance: Instance, line: Line) -> Line:
    """Idle GPUs have the price of those that train."""
    gpu = instance.cluster.gpu
    return ("gpu", gpu.name) if line == ("hb", gpu.idle_name) else line


def _range(designs: Designs, chosen: int, price: Price) -> PriceRange:
    """Where the nearest interval of another design begins on either side."""
    met, most = designs.met(price.limit), _dearest_within_limit(designs, price)
    more, extra = price.bought - price.bought[chosen], designs.value - designs.value[chosen]
    extra = np.where(np.abs(extra) <= abs(designs.value[chosen]) * ROUNDING, 0.0, extra)
    with np.errstate(divide="ignore", invalid="ignore"):
        even = price.now - extra / more
    cheaper_below = met & (more > 0)
    cheaper_within_budget = met & (extra < 0) & ((more == 0) | ((more < 0) & (even < most)))
    lows = np.where(cheaper_below, np.minimum(even, most), np.where(cheaper_within_budget, most, -np.inf))
    highs = np.where(met & (more < 0) & (extra >= 0) & (even < most), even, np.inf)
    low, high, own = float(lows.max()), float(highs.min()), float(most[chosen])
    return PriceRange(
        item=price.item,
        unit=price.unit,
        now=price.now,
        low=low if low > price.now * ROUNDING else 0.0,
        high=min(high, own) if min(high, own) < price.highest else None,
        below=_first(designs, lows == low) if low > price.now * ROUNDING else None,
        above=_first(designs, highs == high) if high < min(own, price.highest) else None,
    )


def _dearest_within_limit(designs: Designs, price: Price) -> Floats:
    """The price at which each design exhausts the limit on what it takes; infinite where none ever does."""
    if price.limit not in designs.caps:
        return np.full(len(designs), np.inf)
    left = designs.caps[price.limit] - designs.uses[price.limit]
    with np.errstate(divide="ignore", invalid="ignore"):
        bears = price.now + left / (price.bought * price.scale)
    return np.where(price.bought > 0, bears, np.where(left >= 0, np.inf, -np.inf))


def _first(designs: Designs, among: Bools) -> Design:
    row = designs.cheapest(among)
    assert row is not None, "an end of a range is somebody's"
    return designs.design(row)


def with_other_optics(instance: Instance, every: tuple[Family, ...]) -> Iterator[tuple[int, Family]]:
    """Families with optics they may have at other prices, each with the position of one that differs in optics only.

    A price of an optic, or of electricity, changes which optics are worth having, and so designs and not only their
    bills. At any price of one optic the rest are worth having, or not, as they are where it is not listed. A choice
    that no price brings about is no better than those that are there.
    """
    if instance.network.link_ends == "own":
        yield from _with_other_ends(instance, every)
        return
    choices: dict[object, dict[tuple[LinkEnds, ...], None]] = {}
    for _, alike in groupby(enumerate(every), key=lambda pair: replace(pair[1], optics=())):
        there = list(alike)
        number, family = there[0]
        known, per_module = {one.optics for _, one in there}, {one.per_module for _, one in there}
        mating = family.switches if instance.network.tier_switches == "any" else ()
        key = (family.nic.name, family.nic_planes, *(one.name for one in mating))
        if key not in choices:
            choices[key] = dict.fromkeys(_choices(instance, family.nic, family.nic_planes, mating))
        for optics in dict.fromkeys(choice[: family.tiers] for choice in choices[key]):
            other = replace(family, optics=optics)
            if optics not in known and other.per_module in per_module:
                yield number, other


def _with_other_ends(instance: Instance, every: tuple[Family, ...]) -> Iterator[tuple[int, Family]]:
    """The same where each end of links has its own product.

    Whatever the price of one optic, a choice is not worth having where another has as few of it, for no more beside.
    """
    numbers = {replace(family, optics=()): number for number, family in enumerate(every)}
    known = {(replace(family, optics=()), family.optics) for family in every}
    spaces = [Space(instance=instance, values=_beside(instance, name)) for name in _priced_alone(instance)]
    if instance.objective.minimize == "tco":
        spaces.append(Space(instance=instance, measures=("capex", "power")))
    sites = {(family.gpus, family.hb, family.active): None for family in every}
    for space, site in product(spaces, sites):
        for other in space.families(*site, space.gears):
            bare = replace(other, optics=())
            if bare in numbers and (bare, other.optics) not in known:
                known.add((bare, other.optics))
                yield numbers[bare], other


def _priced_alone(instance: Instance) -> Iterator[str]:
    """The optics whose price a choice of ends may depend on."""
    if "optics" in instance.objective.include:
        yield from (optic.name for optic in instance.network.optics)


def _beside(instance: Instance, name: str) -> OpticValues:
    """How many of an optic one module is, then what it adds to each measure where that one costs nothing."""
    price = "w" if instance.objective.minimize == "power" else "usd"
    optics = tuple(one.model_copy(update={price: 0.0}) if one.name == name else one for one in instance.network.optics)
    network = instance.network.model_copy(update={"optics": optics})
    rest = values_of(instance.model_copy(update={"network": network}))
    return lambda optic: (float(optic.name == name), *rest(optic))


def _choices(instance: Instance, nic: Nic, planes: int, switches: tuple[Switch, ...]) -> Iterator[tuple[LinkEnds, ...]]:
    """The optics of all levels, each at both ends, at every price of one, and at every price of electricity; those that
    mate with the switches of each tier, where there are any."""
    reaches_m = instance.network.link_reach_m[: len(optic_choices(instance, nic, None, planes, switches))]
    for optic in instance.network.optics:
        if optic.links_of(nic.gbit_s / planes):
            others = optic_choices(_without(instance, optic), nic, None, planes, switches)
            levels = [others[n] if n < len(others) else () for n in range(len(reaches_m))]
            fits = [
                (optic,) if optic.reach_m >= reach_m and mate(optic, *ends_of(nic, switches, level)) else ()
                for level, reach_m in enumerate(reaches_m)
            ]
            yield from map(_at_both_ends, product(*((*level, *own) for level, own in zip(levels, fits, strict=True))))
    if instance.objective.minimize == "tco":
        yield from map(_at_both_ends, product(*optic_choices(instance, nic, ("capex", "power"), planes, switches)))


def _at_both_ends(optics: tuple[Optic, ...]) -> tuple[LinkEnds, ...]:
    return tuple(LinkEnds(optic, optic) for optic in optics)


def _without(instance: Instance, optic: Optic) -> Instance:
    listed = tuple(one for one in instance.network.optics if one != optic)
    return instance.model_copy(update={"network": instance.network.model_copy(update={"optics": listed})})
