"""Cables of a design by length, where it says how its racks stand (docs/designs.md), and the
modules at their ends.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from coopt.instance.designs import PublishedDesign
from coopt.instance.hardware import Optic
from coopt.instance.texts import InstanceError, counted
from coopt.network.designs import leaf_numbers, link_rates
from coopt.network.family import Holders, TierChain, dealt, whole
from coopt.network.placing import Lengths, SwitchBox, placed, placed_leaves

MOST_ENDS = 5_000_000


@dataclass(frozen=True, kw_only=True)
class DesignHall:
    """A design in its hall: cables below each tier over all networks by the length they are bought
    in (m), and the racks that its switches fill; None where some have no height, or no product.
    """

    cables: tuple[Lengths, ...]
    switch_racks: int | None


def design_hall(
    design: PublishedDesign, chain: TierChain, ends: Sequence[CableEnds], origin: str
) -> DesignHall | None:
    """Where a design stands; None where it names no hall.

    A switch stands amid what hangs below it, or where all have a height in a rack for switches
    behind it.

    Raises
    ------
    InstanceError
        Where it has more end points than can be placed.
    """
    if design.hall is None:
        return None
    if chain.ends > MOST_ENDS:
        raise InstanceError(
            f"{origin}: hall: {chain.ends:,} end points are too many to place"
            f" one by one, needs at most {MOST_ENDS:,} or no hall"
        )
    optics_w = [0.0] * len(design.tiers)
    for end in ends:
        if end.at >= 0 and end.optic is not None:
            optics_w[end.at] += end.modules * end.optic.w
    boxes = [
        SwitchBox(
            units=form.switch.rack_units if form.switch else None,
            w=form.switch.w + w / tier.switches if form.switch else 0.0,
        )
        for form, tier, w in zip(design.tiers, chain.levels, optics_w, strict=True)
    ]
    below = placed_leaves(design.hall, leaf_numbers(design, chain))
    placing = placed(chain, design.hall, below, boxes)
    return DesignHall(
        cables=placing.cables(placing, range(chain.leaves)),
        switch_racks=(len(placing.switch_racks.after) if all(box.units for box in boxes) else None),
    )


@dataclass(frozen=True, kw_only=True)
class CableEnds:
    """One end of all cables below a tier, at its `holders` (NICs, or the cages that several share,
    or switches), in modules of an optic.

    Upper ends (`is_upper`) are at the switches of the tier. `optic` is None where no product is
    named, `inside` says that holders need none. A module takes `in_module` ends.
    """

    tier: int
    is_upper: bool
    key: str
    optic: Optic | None
    inside: bool
    holders: Holders
    in_module: int

    @property
    def at(self) -> int:
        """The tier of the switches that have these ends; -1 for NICs."""
        return self.tier if self.is_upper else self.tier - 1

    @property
    def most_ends(self) -> int:
        """Ends at the holder that has the most of them."""
        return max(links for count, links in self.holders if count)

    @property
    def modules(self) -> int:
        """Modules of all holders, none of which is shared."""
        return 0 if self.inside or self.optic is None else whole(self.holders, self.in_module)


def cable_ends(design: PublishedDesign, chain: TierChain, origin: str) -> Iterator[CableEnds]:
    """Upper and lower ends of the cables below each tier.

    Raises
    ------
    InstanceError
        Where a module at a NIC would hold ends of several.
    """
    nics_per_cage, rates = design.gpus_per_cage, link_rates(design, origin)
    of_nic = design.nic_ports // design.nics_per_gpu
    # NICs that share a cage have no more than that
    cages = math.gcd(design.nic.cages, of_nic) if design.nic and nics_per_cage == 1 else 1
    of_cage = of_nic * nics_per_cage // cages
    # end points are spread evenly over leaves, as units have room for domains to come
    holders = chain.end_holders(
        ((design.gpus * design.nics_per_gpu * cages // nics_per_cage, of_cage),),
        dealt(1, chain.ends, chain.leaf_switches),
    )
    for number, (at, form) in enumerate(zip(holders, design.tiers, strict=True)):
        rate, lower_switch = rates[number], design.tiers[number - 1].switch if number else None
        lower_key = "optic" if form.optic_below is None else "optic_below"
        lower = form.optic_below or form.optic
        if not number and lower is not None and rate is not None and of_cage % lower.links_of(rate):
            holder = (
                f"the {nics_per_cage} NICs of a cage"
                if nics_per_cage > 1
                else "a NIC"
                if cages == 1
                else "a cage of a NIC"
            )
            raise InstanceError(
                f"{origin}: tiers[0].{lower_key} = {lower.name!r}: a module holds"
                f" {lower.links_of(rate)} cable ends, which does not divide the"
                f" {counted(of_cage, 'cable end')} of {holder}, needs an optic_below with fewer"
                " cable ends, or another gpus_per_cage"
            )
        sides = (
            (True, "optic", form.optic, form.switch, at.above),
            (False, lower_key, lower, lower_switch, at.below),
        )
        for is_upper, key, optic, switch, having in sides:
            yield CableEnds(
                tier=number,
                is_upper=is_upper,
                key=key,
                optic=optic,
                inside=switch is not None and switch.optics_inside,
                holders=having,
                in_module=1 if optic is None or rate is None else optic.links_of(rate),
            )
