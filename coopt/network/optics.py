"""Which optics a level may take: those that no other one beats in all that counts.

Where nothing but the objective counts this is the one that adds least to it. Where a limit, a site, a later phase or
a discount counts as well, an optic that adds more may still be the better one, and each that may be is a choice.
"""

from __future__ import annotations

from dataclasses import dataclass

from coopt.instance.hardware import Nic, Optic, Switch, mate
from coopt.instance.schema import Instance, ObjectiveKind
from coopt.network.goods import goods_of
from coopt.network.parts import weigh

Levels = tuple[tuple[Optic, ...], ...]
"""The choices of each level, from the leaves up."""


def measures_of(instance: Instance) -> tuple[ObjectiveKind, ...]:
    """What optics are compared by: the objective, and each measure that something else depends on."""
    kind, limits, robust = instance.objective.billed, instance.limits, instance.robust
    if "optics" not in instance.objective.include:
        return (kind,)
    repriced = robust is not None and robust.aim == "regret" and len(set(robust.prices.optics)) > 1
    moves = kind == "tco" and bool(instance.site or instance.phase or repriced)  # a watt has no one price in USD
    measures: list[ObjectiveKind] = [kind]
    if limits.capex_usd is not None or moves:
        measures.append("capex")
    if limits.power_mw is not None or instance.site or moves:
        measures.append("power")
    return tuple(dict.fromkeys(measures))


def optic_choices(
    instance: Instance,
    nic: Nic,
    measures: tuple[ObjectiveKind, ...] | None = None,
    planes: int = 1,
    switches: tuple[Switch, ...] = (),
) -> Levels:
    """The optics worth having on each level of networks that the ports of a NIC lead to, as far up as one reaches.

    The first of a level is the one that adds least to the objective, then costs and draws least, among those that
    carry as many links. An end at a NIC carries as many as its module has ports. Above leaves ends break out only
    where NICs have several planes.

    Parameters
    ----------
    measures
        What optics are compared by; as `measures_of` has it where left out.
    planes
        Networks that the ports of each NIC lead to.
    switches
        Those of each tier, with which optics have to mate; any optic will do where left out.
    """
    gbit_s, of_nic = nic.gbit_s / planes, planes // nic.cages
    counts = sorted({optic.links_of(gbit_s) for optic in instance.network.optics} - {0})
    levels: list[tuple[Optic, ...]] = []
    for level, reach_m in enumerate(instance.network.link_reach_m):
        kept = [n for n in counts if (n == of_nic if level == 0 else n == 1 or planes > 1)]
        ends = ends_of(nic, switches, level)
        worth = (optics_worth_having(instance, gbit_s, reach_m, measures, n, ends) for n in kept)
        found = tuple(optic for of_count in worth for optic in of_count)
        if not found:
            break
        levels.append(found)
    return tuple(levels)


def ends_of(nic: Nic, switches: tuple[Switch, ...], level: int) -> tuple[Nic | Switch, ...]:
    """What the links of a level join, from 0: a NIC or a switch, and the switch above it; nothing without switches."""
    chain: tuple[Nic | Switch, ...] = (nic, *switches)
    return chain[level : level + 2] if switches else ()


def optics_worth_having(
    instance: Instance,
    gbit_s: float,
    reach_m: float,
    measures: tuple[ObjectiveKind, ...] | None = None,
    links: int = 1,
    ends: tuple[Nic | Switch, ...] = (),
) -> tuple[Optic, ...]:
    """The optics of a reach that carry so many links of a rate, mate with both ends and that no other one beats; where
    few may be in use, that of a core stays."""
    few, core = instance.sharing.most_products.optics is not None, instance.sharing.core
    rivals = [
        _Rival.of(instance, optic, measures or measures_of(instance))
        for optic in instance.network.optics
        if optic.links_of(gbit_s) == links and optic.reach_m >= reach_m and mate(optic, *ends)
    ]
    stays = core.optic if few and core is not None else None
    return tuple(one.optic for one in _unbeaten(rivals, stays))


@dataclass(frozen=True, kw_only=True)
class _Rival:
    """An optic with what a unit adds to each measure, at least and at most; `reach_m` is 0 where it does not count.

    Discounts set the two apart: what a unit adds then depends on the quantity. Where few optics may be in use, one
    that reaches farther can stand for another on every level.
    """

    optic: Optic
    least: tuple[float, ...]
    most: tuple[float, ...]
    reach_m: float

    @classmethod
    def of(cls, instance: Instance, optic: Optic, measures: tuple[ObjectiveKind, ...]) -> _Rival:
        objective, few = instance.objective, instance.sharing.most_products.optics is not None
        discounted = any((d.kind, d.item) == ("optics", optic.name) for d in instance.sharing.discount)
        low, high = _slopes(instance, optic) if discounted else (optic.usd, optic.usd)
        return cls(
            optic=optic,
            least=tuple(weigh(objective, low, optic.w, kind) for kind in measures),
            most=tuple(weigh(objective, high, optic.w, kind) for kind in measures),
            reach_m=optic.reach_m if few else 0.0,
        )

    @property
    def rank(self) -> tuple[float, ...]:
        """No optic beats another of lower rank."""
        return (*self.most, -self.reach_m, self.optic.usd, self.optic.w)

    def beats(self, other: _Rival) -> bool:
        """Whether it can take the place of another wherever that is used, whatever the rest."""
        return self.reach_m >= other.reach_m and all(a <= b for a, b in zip(self.most, other.least, strict=True))


def _slopes(instance: Instance, optic: Optic) -> tuple[float, float]:
    """What a unit adds to the bill at least and at most (USD)."""
    return next(good.slopes for good in goods_of(instance) if (good.kind, good.name) == ("optics", optic.name))


def _unbeaten(rivals: list[_Rival], stays: str | None) -> list[_Rival]:
    kept: list[_Rival] = []
    for one in sorted(rivals, key=lambda rival: rival.rank):
        if one.optic.name == stays or not any(better.beats(one) for better in kept):
            kept.append(one)
    return kept
