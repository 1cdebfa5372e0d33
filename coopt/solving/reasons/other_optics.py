"""Designs with other optics than are worth having at today's prices, and the least that any optics
make of a design.

Each price of an optic, or of electricity, brings about a choice of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby, product

import numpy as np

from coopt.instance.hardware import HbDomain, Nic, Optic, Switch, mate
from coopt.instance.network import MAX_TIERS
from coopt.instance.schema import Instance
from coopt.network.family import Family, LinkEnds, NicOption, levels
from coopt.network.optics import OpticValues, ends_of, fits, optic_choices, values_of
from coopt.network.parts import weigh
from coopt.network.space import Space
from coopt.perf.mapping import Floats, Ints
from coopt.solving.reasons.designs import Designs
from coopt.solving.reasons.limits import with_part


@dataclass(frozen=True, kw_only=True)
class Floors:
    """What some rows of designs are worth at least, with whatever fits at each end of their links.

    `values` has what a module of each of `optics` is worth, `counts` the modules that rows buy and
    `beside` what the rest of each is worth. `links` (tiers, rows) are those of each level; `shares`
    (kinds, tiers, 2, optics) the share of a module that a link takes of what fits at its lower and
    upper end, 0 of what does not, and `kind` says for each row where to look. No choice takes less,
    as modules are bought whole.
    """

    rows: Ints
    optics: tuple[str, ...]
    values: Floats
    counts: Ints
    beside: Floats
    links: Floats
    shares: Floats
    kind: Ints

    @classmethod
    def of(cls, designs: Designs, rows: Ints) -> Floors:
        """The floors of some rows."""
        instance = designs.instance
        optics = instance.network.optics if "optics" in instance.objective.include else ()
        column = {name: n for n, (kind, name) in enumerate(designs.lines) if kind == "optics"}
        modules = [
            (
                designs.counts[rows, column[optic.name]]
                if optic.name in column
                else np.zeros(len(rows))
            )
            for optic in optics
        ]
        counts = np.array(modules, dtype=np.int64).reshape(len(optics), len(rows)).T
        values = np.array(
            [weigh(instance.objective, optic.usd, optic.w) for optic in optics], dtype=np.float64
        )
        families = np.unique(designs.family[rows]).tolist()
        shares, of_family, links = (
            dict[object, Floats](),
            np.zeros(len(designs.families), dtype=np.int64),
            [],
        )
        for number in families:
            family = designs.families[number]
            of_family[number] = _numbered(shares, instance, family)
            links.append(_links(family))
        base, per_uplink = np.moveaxis(np.array(links).reshape(len(families), 2, MAX_TIERS), 0, -1)
        place = np.searchsorted(families, designs.family[rows])
        return cls(
            rows=rows,
            optics=tuple(optic.name for optic in optics),
            values=values,
            counts=counts,
            beside=designs.value[rows] - counts @ values,
            links=base[:, place] + per_uplink[:, place] * designs.uplinks[rows],
            shares=np.array(list(shares.values()))[..., : len(optics)],
            kind=of_family[designs.family[rows]],
        )

    def at(self, units: Floats, of_optic: Mapping[str, float], increase: float) -> Floats:
        """The floor of each row where a price is so much higher, of which each row of designs buys
        so many units and each module of an optic so many.
        """
        per_module = np.array([of_optic.get(name, 0.0) for name in self.optics], dtype=np.float64)
        modules = self.shares * (self.values + increase * per_module)
        of_ends = np.where(self.shares > 0, modules, np.inf).min(axis=-1, initial=np.inf)
        # nothing fits at levels that a family does not have, which take no modules
        of_links = np.where(np.isfinite(of_ends), of_ends, 0.0).sum(axis=-1)
        beside = self.beside + increase * (units[self.rows] - self.counts @ per_module)
        return np.asarray(
            beside + (self.links * of_links[self.kind].T).sum(axis=0), dtype=np.float64
        )


def would_do(instance: Instance, families: Iterable[Family]) -> set[str]:
    """The optics that some end of a link takes, whether they meet what is at the other or not."""
    if "optics" not in instance.objective.include:
        return set()
    shares = dict[object, Floats]()
    for family in families:
        _numbered(shares, instance, family)
    is_taken = np.sum([share.sum(axis=(0, 1)) for share in shares.values()], axis=0) > 0
    return {
        optic.name
        for optic, takes in zip(instance.network.optics, is_taken.tolist(), strict=True)
        if takes
    }


def _numbered(shares: dict[object, Floats], instance: Instance, family: Family) -> int:
    """The place of a family's shares of modules among those of all kinds of links, which hold them
    from then on.
    """
    key = (
        family.nic.name,
        family.nic_planes,
        tuple((switch.name, switch.port_gbit_s) for switch in family.switches),
    )
    if key not in shares:
        shares[key] = _shares(instance, family)
    return list(shares).index(key)


def _shares(instance: Instance, family: Family) -> Floats:
    """The share of a module that a link takes at the lower and the upper end of each level; 0 of
    what does not fit.
    """
    network, rate = instance.network, family.link_gbit_s
    shares = np.zeros((MAX_TIERS, 2, len(network.optics)))
    for level, upper_switch in enumerate(family.switches):
        lower_switch = family.switches[level - 1] if level else None
        for n, optic in enumerate(network.optics):
            links = optic.links_of(rate)
            if links and optic.reach_m >= network.link_reach_m[level]:
                # a cage of a NIC takes one module, which has to serve all ports of the cage
                at_nic = lower_switch is not None or links * family.nic.cages == family.nic_planes
                shares[level, :, n] = (
                    at_nic and fits(optic, rate, lower_switch),
                    fits(optic, rate, upper_switch),
                )
                shares[level, :, n] /= links
    return shares


def _links(family: Family) -> tuple[list[float], list[float]]:
    """Links of each level, and how many more of them an uplink adds: none of a NIC's, and else all
    there are.
    """
    fewest = family.uplink_choices[0]
    counts = [float(level.links) for level in levels(family, fewest)]
    counts = counts[: family.tiers] + [0.0] * (MAX_TIERS - family.tiers)
    return [counts[0], 0.0, 0.0], [0.0, *(links / max(fewest, 1) for links in counts[1:])]


def with_other_optics(
    instance: Instance, families: tuple[Family, ...]
) -> Iterator[tuple[int, Family]]:
    """Families with optics they may have at other prices, each with the position of one that
    differs in optics only.

    A price of an optic, or of electricity, changes which optics are worth having, and so designs
    and not only their bills. At any price of one optic the rest are worth having, or not, as they
    are where it is not listed. A choice that no price brings about is no better than those that are
    there.
    """
    if instance.network.link_ends != "same":
        yield from _with_other_ends(instance, families)
        return
    choices: dict[object, dict[tuple[LinkEnds, ...], None]] = {}
    for _, group in groupby(enumerate(families), key=lambda pair: replace(pair[1], optics=())):
        members = list(group)
        number, family = members[0]
        optics_in_use = {member.optics for _, member in members}
        per_module = {member.per_module for _, member in members}
        mating = family.switches if instance.network.tier_switches == "any" else ()
        key = (family.nic.name, family.nic_planes, *(member.name for member in mating))
        if key not in choices:
            choices[key] = dict.fromkeys(_choices(instance, family.nic, family.nic_planes, mating))
        for optics in dict.fromkeys(choice[: family.tiers] for choice in choices[key]):
            variant = replace(family, optics=optics)
            if optics not in optics_in_use and variant.per_module in per_module:
                yield number, variant


def _with_other_ends(
    instance: Instance, families: tuple[Family, ...]
) -> Iterator[tuple[int, Family]]:
    """The same where each end of links has its own product.

    Whatever the price of one optic, a choice is not worth having where another has as few of it,
    for no more beside.
    """
    numbers = {replace(family, optics=()): number for number, family in enumerate(families)}
    pairs = {(replace(family, optics=()), family.optics) for family in families}
    values = [_beside(instance, name) for name in _priced_alone(instance)]
    values += (
        [values_of(instance, ("capex", "power"))] if instance.objective.minimize == "tco" else []
    )
    sites: dict[tuple[int, HbDomain, int], list[Family]] = {}
    for family in families:
        sites.setdefault((family.gpus, family.hb, family.domains), []).append(family)
    for value, (site, members) in product(values, sites.items()):
        space = Space(
            instance=_with_fabrics(instance, {family.fabric for family in members}), values=value
        )
        joining = {_gear_key(family) for family in members}
        for variant in space.families(
            *site,
            [nic_option for nic_option in space.nic_options if _gear_key(nic_option) in joining],
        ):
            key = replace(variant, optics=())
            if key in numbers and (key, variant.optics) not in pairs:
                pairs.add((key, variant.optics))
                yield numbers[key], variant


def _with_fabrics(instance: Instance, kinds: Collection[str]) -> Instance:
    fabrics = tuple(kind for kind in instance.network.fabrics if kind in kinds)
    return with_part(instance, "network", {"fabrics": fabrics})


def _gear_key(nic_option: Family | NicOption) -> tuple[object, ...]:
    ports = nic_option.switch.name, nic_option.switch.port_gbit_s
    return (
        nic_option.nic.name,
        nic_option.nics_per_gpu,
        nic_option.gpus_per_nic,
        nic_option.nic_planes,
        *ports,
    )


def _priced_alone(instance: Instance) -> Iterator[str]:
    """The optics whose price a choice of ends may depend on."""
    if "optics" in instance.objective.include:
        yield from (optic.name for optic in instance.network.optics)


def _beside(instance: Instance, name: str) -> OpticValues:
    """How many of an optic one module is, then what it adds to each measure where that one costs
    nothing.
    """
    price = "w" if instance.objective.minimize == "power" else "usd"
    optics = tuple(
        entry.model_copy(update={price: 0.0}) if entry.name == name else entry
        for entry in instance.network.optics
    )
    network = instance.network.model_copy(update={"optics": optics})
    values = values_of(instance.model_copy(update={"network": network}))
    return lambda optic: (float(optic.name == name), *values(optic))


def _choices(
    instance: Instance, nic: Nic, planes: int, switches: tuple[Switch, ...]
) -> Iterator[tuple[LinkEnds, ...]]:
    """The optics of all levels, each at both ends, at every price of one, and at every price of
    electricity; those that mate with the switches of each tier, where there are any.
    """
    reaches_m = instance.network.link_reach_m[
        : len(optic_choices(instance, nic, None, planes, switches))
    ]
    for optic in instance.network.optics:
        if optic.links_of(nic.gbit_s / planes):
            alternatives = optic_choices(_without(instance, optic), nic, None, planes, switches)
            levels = [
                alternatives[n] if n < len(alternatives) else () for n in range(len(reaches_m))
            ]
            fits = [
                (
                    (optic,)
                    if optic.reach_m >= reach_m and mate(optic, *ends_of(nic, switches, level))
                    else ()
                )
                for level, reach_m in enumerate(reaches_m)
            ]
            yield from map(
                _at_both_ends,
                product(*((*level, *choices) for level, choices in zip(levels, fits, strict=True))),
            )
    if instance.objective.minimize == "tco":
        yield from map(
            _at_both_ends,
            product(*optic_choices(instance, nic, ("capex", "power"), planes, switches)),
        )


def _at_both_ends(optics: tuple[Optic, ...]) -> tuple[LinkEnds, ...]:
    return tuple(LinkEnds(optic, optic) for optic in optics)


def _without(instance: Instance, optic: Optic) -> Instance:
    optics = tuple(entry for entry in instance.network.optics if entry != optic)
    return instance.model_copy(
        update={"network": instance.network.model_copy(update={"optics": optics})}
    )
