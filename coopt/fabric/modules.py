"""The modules at the ends of a design's cables: several ends in one, none where a switch has its optics inside."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from coopt.fabric.chain import TierLevel
from coopt.fabric.designs import link_rates
from coopt.instance.designs import PublishedDesign
from coopt.instance.errors import InstanceError
from coopt.instance.hardware import Optic


@dataclass(frozen=True, kw_only=True)
class CableEnds:
    """One end of all cables below a tier: `links` at so many `holders` (NICs, or the cages that several share, or
    switches), in modules of an optic.

    `upper` ends are at the switches of the tier. `optic` is None where no product is named, `inside` says that holders
    need none. A module takes `in_module` ends.
    """

    tier: int
    upper: bool
    key: str
    optic: Optic | None
    inside: bool
    links: int
    holders: int
    in_module: int

    @property
    def modules(self) -> int:
        """Modules of all holders, over which cables are spread evenly; a module is never shared."""
        if self.inside or self.optic is None:
            return 0
        each, more = divmod(self.links, self.holders)
        least, most = (-(-ends // self.in_module) for ends in (each, each + 1))
        return (self.holders - more) * least + more * most


def cable_ends(design: PublishedDesign, tiers: tuple[TierLevel, ...], where: str) -> Iterator[CableEnds]:
    """Upper and lower ends of the cables below each tier.

    Raises
    ------
    InstanceError
        Where a module at a NIC would hold ends of several.
    """
    shared, rates = design.gpus_per_cage, link_rates(design, where)
    for number, (tier, form) in enumerate(zip(tiers, design.tiers, strict=True)):
        rate, below = rates[number], design.tiers[number - 1].switch if number else None
        lower_key = "optic" if form.optic_below is None else "optic_below"
        lower = form.optic_below or form.optic
        if not number and lower is not None and rate is not None and design.nic_ports * shared % lower.links_of(rate):
            holder = "a NIC has" if shared == 1 else f"{shared} NICs that share a cage have"
            raise InstanceError(
                f"{where}: tiers[0].{lower_key} = {lower.name!r}: holds {lower.links_of(rate)} ends and {holder} "
                f"{design.nic_ports * shared}, needs optic_below, for the ends at NICs, or gpus_per_cage"
            )
        sides = (
            (True, "optic", form.optic, form.switch, tier.switches),
            (False, lower_key, lower, below, tiers[number - 1].switches if number else design.gpus // shared),
        )
        for upper, key, optic, switch, holders in sides:
            yield CableEnds(
                tier=number,
                upper=upper,
                key=key,
                optic=optic,
                inside=switch is not None and switch.optics_inside,
                links=tier.links,
                holders=holders,
                in_module=1 if optic is None or rate is None else optic.links_of(rate),
            )
