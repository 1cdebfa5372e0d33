"""The networks of a site with what each is worth.

Which networks there are, and how many units of each product one takes, does not depend on prices
but for a choice of optics. Questions that differ in prices, or leave products out, share what was
listed and counted once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from itertools import chain, count
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from coopt.columns.grid import Context, context_of
from coopt.columns.times import uplinks_by_context
from coopt.instance.base import Entry
from coopt.instance.hardware import HbDomain
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.network.family import Family, LinkEnds
from coopt.network.laying import least_ends
from coopt.network.optics import Values, unbeaten_ends
from coopt.network.parts import (
    Affine,
    Key,
    listed_units,
    network_key,
    open_bill,
    price,
    unit_worth,
)
from coopt.network.space import EndsByModule, Parts, Space

Product = TypeVar("Product", bound=Entry)

MOST_COUNTED, MOST_TABLES = 50_000, 256
"""Networks of a question that are kept at different prices of optics, of 2.5 kB each, and tables of
them.
"""


class PricedFamily(NamedTuple):
    """A family in its context, and what it is worth in the unit of the objective."""

    context: Context
    family: Family
    worth: Affine

    @classmethod
    def of(cls, instance: Instance, family: Family) -> PricedFamily:
        """A family at the prices of an instance."""
        return cls(context_of(family), family, price(instance, family, instance.objective.minimize))


class CountedFamily(NamedTuple):
    """A family with products as they were priced when it was listed, and its bill at any prices:
    fixed + uplink·u + spine·s units of each product.

    `rivals` is equal for families that differ in switches above the leaves alone.
    """

    family: Family
    context: Context
    bill: tuple[tuple[Key, Affine], ...]
    rivals: int

    def worth(self, unit: Mapping[Key, float]) -> Affine:
        """What it is worth where a unit of each product is worth so much."""
        each = [(unit[key], units) for key, units in self.bill]
        return Affine(
            fixed=math.fsum(worth * units.fixed for worth, units in each),
            uplink=math.fsum(worth * units.uplink for worth, units in each),
            spine=math.fsum(worth * units.spine for worth, units in each),
        )


Menu = tuple[Family, list[tuple[LinkEnds, ...]], dict[tuple[tuple[str, str], ...], CountedFamily]]
"""A family with the ends that its links may have, and what was counted with some of them, by
names.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class CountedTable:
    """Networks with their bills, whatever these cost; of each row a family, by number, with so
    many uplinks.
    """

    networks: tuple[CountedFamily, ...]

    @cached_property
    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The family, the uplinks and the spines of each row (N,)."""
        choices = [np.array(one.family.uplink_choices) for one in self.networks]
        counts = [len(uplinks) for uplinks in choices]
        spines = [
            np.broadcast_to(one.family.spines(uplinks), uplinks.shape)
            for one, uplinks in zip(self.networks, choices, strict=True)
        ]
        nothing = np.zeros(0, dtype=np.int64)
        number = np.repeat(np.arange(len(choices)), counts)
        return number, np.concatenate([nothing, *choices]), np.concatenate([nothing, *spines])

    @cached_property
    def uplinks(self) -> dict[Context, NDArray[np.int64]]:
        """The numbers of uplinks of the families in each context, in rising order."""
        return uplinks_by_context(one.family for one in self.networks)

    @cached_property
    def _units(self) -> tuple[list[Key], NDArray[np.float64]]:
        """Keys of bills, and the units of each: fixed, by uplink and by spine (3, F, keys)."""
        keys = dict.fromkeys(key for one in self.networks for key, _ in one.bill)
        place = {key: k for k, key in enumerate(keys)}
        units = np.zeros((3, len(self.networks), len(place)))
        for number, one in enumerate(self.networks):
            for key, each in one.bill:
                units[:, number, place[key]] = each
        return list(place), units

    def worth(self, unit: Mapping[Key, float]) -> NDArray[np.float64]:
        """What each row is worth where a unit of each product is worth so much (N,)."""
        keys, units = self._units
        each = units * np.array([unit[key] for key in keys])
        fixed, uplink, spine = (np.array([*map(math.fsum, of.tolist())]) for of in each)
        number, uplinks, spines = self.rows
        return np.asarray(fixed[number] + uplink[number] * uplinks + spine[number] * spines)


def counted_networks(space: Space) -> CountedNetworks:
    """The networks that this process has counted for a question, or for one that differs in its
    workloads, limits, objective and prices alone.
    """
    unlaid = space.unlaid and space.instance.network.cables == "hall"
    return _networks_of((_unpriced_key(space.instance), unlaid, space.standing_by))


def _unpriced_key(instance: Instance) -> Hashable:
    """Return all of a question that networks of given products depend on, whatever these cost; all
    of it where lengths in the hall choose cables, by their prices and by where racks have power.
    """
    unlisted: dict[str, Any] = dict.fromkeys(
        ("workload", "name", "description", "solver", "limits"), True
    )
    if instance.network.cables == "hall":
        question = instance.model_dump(mode="json", exclude=unlisted)
        return json.dumps(question), instance.cluster.gpu
    products = {"hb_domains", "nics", "switches", "optics", "panels"}
    parts = {"objective": True, "cluster": True, "network": products}
    question = instance.model_dump(mode="json", exclude=unlisted | parts)
    return json.dumps(question), instance.cluster.gpu.name, instance.objective.include


class CountedNetworks:
    """New networks by what they are built from, whatever that costs."""

    def __init__(self) -> None:
        # drawn from a counter, so that threads that share networks never number two alike
        self._next = count()
        self._products: dict[Entry, int] = {}
        self._unpriced: dict[Entry, int] = {}
        self._rivals: dict[Hashable, int] = {}
        self._counted: dict[Hashable, tuple[CountedFamily, ...]] = {}
        self._menus: dict[Hashable, list[Menu]] = {}
        self._tables: dict[Hashable, CountedTable] = {}

    def table(self, space: Space, check: Callable[[], None]) -> CountedTable:
        """Every family of all sites of a question; `check` is called for each that is listed."""
        # of equal optics the cheapest is taken
        optics = [
            (space.optic_values(one), one.usd, one.w) for one in space.instance.network.optics
        ]
        market = network_key(space.instance)
        key = market, space.links, space.measures, tuple(optics)
        if key not in self._tables:
            networks = tuple(
                one for site in space.all_sites() for one in self.families(space, *site, check)
            )
            if len(self._tables) == MOST_TABLES:
                self._tables.clear()
            self._tables[key] = CountedTable(networks=networks)
        return self._tables[key]

    def families(
        self, space: Space, gpus: int, hb: HbDomain, domains: int, check: Callable[[], None]
    ) -> Iterator[CountedFamily]:
        """Every family of a site, as `space` lists them.

        Parameters
        ----------
        check
            Called for each family that is listed; may raise.
        """
        for parts, levels in space.parts(gpus, hb, domains, space.nic_options):
            built, values = self._key(space, parts, levels)
            found = self._counted.get((built, values))
            if found is None:
                listed = []
                for family in self._fitted(space, parts, levels, built):
                    check()
                    listed.append(family)
                found = self._kept((built, values), tuple(listed))
            yield from found

    def _fitted(
        self, space: Space, parts: Parts, levels: EndsByModule, built: Hashable
    ) -> Iterator[CountedFamily]:
        """The families of some parts, `built` at whatever prices: at others only their ends are
        chosen anew.
        """
        if space.grow or space.instance.network.cables == "hall":
            yield from self.counted(space.instance, space.fitted(parts, levels))
            return
        menus = self._menus.get(built)
        if menus is None:
            menus = [(*menu, {}) for menu in space.with_any_ends(parts, levels)]
            self._menus[built] = menus
        for family, choices, known in menus:
            for optics in unbeaten_ends(family, choices, space.optic_values):
                names = tuple((ends.below.name, ends.above.name) for ends in optics)
                if names not in known:
                    chosen = family if optics is family.optics else replace(family, optics=optics)
                    (known[names],) = self.counted(space.instance, [chosen])
                yield known[names]

    def _kept(self, key: Hashable, found: tuple[CountedFamily, ...]) -> tuple[CountedFamily, ...]:
        """Keep a list; of prices that never end only the last ones."""
        if sum(map(len, list(self._counted.values()))) > MOST_COUNTED:
            self._counted.clear()
            self._menus.clear()
            self._products.clear()
            self._tables.clear()
        self._counted[key] = found
        return found

    def counted(self, instance: Instance, families: Iterable[Family]) -> Iterator[CountedFamily]:
        """Families with their bills."""
        has_rivals, rivals = instance.network.tier_switches == "any", 0
        for family in families:
            if has_rivals:
                rivals = self._rivals.setdefault(_below_upper(family), next(self._next))
            bill = open_bill(instance, family).each
            yield CountedFamily(family, context_of(family), bill, rivals)

    def _key(
        self, space: Space, parts: Parts, levels: EndsByModule
    ) -> tuple[Hashable, tuple[Values, ...]]:
        """All that the families of some parts depend on where the rest of the question is equal:
        what they are built from, and what its modules add where ends are compared by that.
        """
        built = [
            self._number(value) if isinstance(value, Entry) else value
            for name, value in vars(parts).items()
            if name != "upper"
        ]
        ends = tuple(
            tuple((count, tuple(map(self._numbers, of_count))) for count, of_count in level.items())
            for level in levels
        )
        listed = [choice for level in levels for of_count in level.values() for choice in of_count]
        # where a level leaves a choice, its ends are compared by what they add
        optics = dict.fromkeys(chain.from_iterable(listed)) if len(listed) > len(levels) else ()
        values = tuple(map(space.optic_values, optics))
        return (*built, self._numbers(parts.upper), ends), values

    def _numbers(self, products: Iterable[Entry]) -> tuple[int, ...]:
        return tuple(map(self._number, products))

    def _number(self, product: Entry) -> int:
        """The number of a product, the same at each of its prices."""
        number = self._products.get(product)
        if number is None:
            number = self._unpriced.setdefault(product.unpriced, next(self._next))
            self._products[product] = number
        return number


@lru_cache(maxsize=4)  # each may be long
def _networks_of(unpriced: Hashable) -> CountedNetworks:
    return CountedNetworks()


def every_family(
    space: Space, sites: Iterable[tuple[int, HbDomain, int]], check: Callable[[], None]
) -> Iterator[PricedFamily]:
    """Every family of some sites at the prices of an instance, with products as they were priced
    when it was listed.

    Parameters
    ----------
    check
        Called for each family that is listed; may raise.
    """
    instance = space.instance
    if instance.stands is not None:
        for site in sites:
            for family in space.families(*site, space.nic_options):
                check()
                yield PricedFamily.of(instance, family)
        return
    objective, networks = instance.objective, counted_networks(space)
    unit = unit_worth(objective, objective.minimize, listed_units(instance))
    for site in sites:
        for one in networks.families(space, *site, check):
            yield PricedFamily(one.context, one.family, one.worth(unit))


def priced(
    instance: Instance, counted: Iterable[CountedFamily], measures: tuple[ObjectiveKind, ...]
) -> list[PricedFamily]:
    """Families at the prices of an instance; where switches of tiers may differ, those than which
    no other is as good, whatever the mappings: of equal ones the first.

    One beats another that differs in switches above the leaves alone where, for each number of
    uplinks of that, it has some number that is no less at a price and a power that are no higher.
    Time never rises with uplinks, so that it can take the place of the other in every design.

    Parameters
    ----------
    measures
        What bills are compared by, as `coopt.network.optics.measures_of` has it.
    """
    objective, products = instance.objective, list(listed_units(instance))
    units = {
        kind: unit_worth(objective, kind, products) for kind in {objective.minimize, *measures}
    }
    # where lengths are still to choose cables, bills are lower bounds, which beat none
    if instance.network.tier_switches != "any" or instance.network.cables == "hall":
        unit = units[objective.minimize]
        return [PricedFamily(one.context, one.family, one.worth(unit)) for one in counted]
    groups: dict[int, list[tuple[PricedFamily, _Menu]]] = {}
    for one in counted:
        worths = {kind: one.worth(unit) for kind, unit in units.items()}
        family = PricedFamily(one.context, one.family, worths[objective.minimize])
        menu = _Menu.of(one.family, [worths[kind] for kind in measures])
        rivals = groups.setdefault(one.rivals, [])
        if not any(rival.beats(menu) for _, rival in rivals):
            rivals[:] = [
                (rival_family, rival) for rival_family, rival in rivals if not menu.beats(rival)
            ]
            rivals.append((family, menu))
    return [family for rivals in groups.values() for family, _ in rivals]


def repriced(instance: Instance, families: Iterable[Family]) -> Iterator[Family]:
    """Families with their products at the prices of an instance; those of what stands need not be
    listed.
    """
    network = instance.network
    listed = (*network.hb_domains, *network.nics, *network.switches, *network.optics)
    prices = {(type(product), product.name): product.prices for product in listed}

    @cache
    def at_its_price(product: Product) -> Product:
        current = prices.get((type(product), product.name), product.prices)
        return product if product.prices == current else product.model_copy(update=current)

    def ends_at_price(ends: LinkEnds) -> LinkEnds:
        return LinkEnds(*map(at_its_price, ends))

    for family in families:
        choices = tuple(tuple(map(ends_at_price, level)) for level in family.choices)
        yield replace(
            family,
            hb=at_its_price(family.hb),
            nic=at_its_price(family.nic),
            switch=at_its_price(family.switch),
            upper=tuple(map(at_its_price, family.upper)),
            optics=(
                least_ends(instance, choices)
                if choices
                else tuple(map(ends_at_price, family.optics))
            ),
            choices=choices,
            cables=tuple(
                tuple(run._replace(ends=ends_at_price(run.ends)) for run in runs)
                for runs in family.cables
            ),
            core_end=family.core_end and at_its_price(family.core_end),
            core_choices=tuple(map(ends_at_price, family.core_choices)),
            core_cables=tuple(
                run._replace(ends=ends_at_price(run.ends)) for run in family.core_cables
            ),
        )


def _below_upper(family: Family) -> tuple[object, ...]:
    """What families have in common that differ in switches above the leaves alone, on which uneven
    bundles depend.
    """
    traits = {
        name: value
        for name, value in vars(family).items()
        if name not in ("upper", "bundle", "uplink_choices", "choices", "core_choices")
    }
    traits["dealt"] = family.tiers == 2 and not family.bundle and family.spine_ports
    traits["cores"] = family.pods is not None and not family.pods.bundle and family.core_group
    traits["pods"] = family.pods and replace(family.pods, bundle=0)
    traits["optics"] = tuple((ends.below.name, ends.above.name) for ends in family.optics)
    return tuple(value.name if isinstance(value, Entry) else value for value in traits.values())


@dataclass(frozen=True, kw_only=True)
class _Menu:
    """Numbers of uplinks (n,), ascending, and what each comes to in every measure (measures, n)."""

    uplinks: NDArray[np.int64]
    sums: NDArray[np.float64]

    @classmethod
    def of(cls, family: Family, worths: Sequence[Affine]) -> _Menu:
        uplinks = np.array(family.uplink_choices)
        sums = [worth.at(family, uplinks) for worth in worths]
        return cls(uplinks=uplinks, sums=np.array(sums, dtype=np.float64).reshape(len(worths), -1))

    def beats(self, rival: _Menu) -> bool:
        """Whether, for each number of the other, the least of its own that is no less is no
        dearer.
        """
        # both lists ascend, so that a last number without a match is the only one that need be
        # asked for
        at = np.searchsorted(self.uplinks, rival.uplinks)
        return bool(at[-1] < len(self.uplinks) and (self.sums[:, at] <= rival.sums).all())
