"""Modules at the ends of links: one for each end, or fewer where a module breaks out into several slower links."""

from __future__ import annotations

from typing import NamedTuple

from coopt.network.family import Family, core_group, levels

Holders = tuple[tuple[int, int], ...]
"""How many NICs, cages of NICs or switches have so many links of a level."""


class EndHolders(NamedTuple):
    """What has the links of a level at their lower ends, and at their upper ones."""

    below: Holders
    above: Holders


class EndModules(NamedTuple):
    """Modules at the lower and at the upper ends of the links of a level."""

    below: int
    above: int


def modules(family: Family, uplinks: int) -> tuple[EndModules, ...]:
    """Modules at the ends of the links of each level, over all planes; one holds links of a single switch or NIC."""
    per_module = family.per_module
    if all(each == (1, 1) for each in per_module):
        return tuple(EndModules(level.links, level.links) for level in levels(family, uplinks))
    ends = zip(end_holders(family, uplinks), per_module, strict=True)
    return tuple(EndModules(whole(held.below, n), whole(held.above, m)) for held, (n, m) in ends)


def whole(holders: Holders, per_module: int) -> int:
    """Whole modules of all that hold links, where one takes so many."""
    return sum(count * -(-links // per_module) for count, links in holders)


def end_holders(family: Family, uplinks: int) -> tuple[EndHolders, ...]:
    """What has the links of each level at either end, over all planes."""
    if family.tiers == 0:
        return ()
    cages = family.nic.cages
    first = EndHolders(((family.nic_count * cages, family.nic_planes // cages),), _leaves(family))
    if family.tiers == 1:
        return (first,)
    planes, up = family.all_planes, ((family.all_planes * family.leaves, uplinks),)
    if family.pods is None:
        return first, EndHolders(up, _in_turn(planes, family.leaves * uplinks, family.spines(uplinks)))
    pods, slices, cores = family.pods, planes * family.slices(uplinks), core_group(family)
    full, rest = divmod(family.leaves * pods.each, pods.l)
    below = ((slices * full, pods.l), (slices, rest))
    trunks = _in_turn(slices, pods.count * pods.w, cores)
    return first, EndHolders(up, below), EndHolders(((slices * pods.count, pods.w),), trunks)


def _leaves(family: Family) -> Holders:
    """Leaves by their links to NICs; planes that share the switch of a single tier share its modules."""
    ports = family.nic_planes
    if family.tiers == 1:
        together = family.planes_together
        full, rest = divmod(family.planes, together)
        return (ports * full, together * family.down), (ports, rest * family.down)
    rails, domains, down = family.nics_of_domain // family.planes, family.domains, family.down
    rows, of_row = (rails, domains) if family.fabric != "clos" and domains > down else (1, rails * domains)
    filled = down if family.fabric == "clos" or domains > down else down // domains * domains  # of whole rails
    full, rest = divmod(of_row, filled)
    return (family.all_planes * rows * full, filled), (family.all_planes * rows, rest)


def _in_turn(times: int, links: int, switches: int) -> Holders:
    """Switches that take links in turn, so many times."""
    each, more = divmod(links, switches)
    return (times * (switches - more), each), (times * more, each + 1)
