"""What the ports of a design count to: switches, links and modules of each level, over all planes."""

from __future__ import annotations

from typing import NamedTuple

from coopt.verifier.parts.layouts import (
    Ports,
    ceil_ratio,
    chassis_count,
    core_count,
    leaf_count,
    planes_on_switch,
    spine_count,
)
from coopt.verifier.parts.space import DesignFamily


class SwitchLevel(NamedTuple):
    """Switches of one level and links to the level below, over all planes.

    `below` and `above` count what stands at the lower and at the upper ends of the links by how many of them it has:
    pairs of devices and links of each.
    """

    switches: int
    links: int
    below: tuple[tuple[int, int], ...] = ()
    above: tuple[tuple[int, int], ...] = ()

    def modules(self, each: tuple[int, int]) -> tuple[int, int]:
        """Modules at the lower and at the upper ends, of which each carries so many links of one device."""
        lower, upper = (
            self.links if count == 1 else sum(devices * ceil_ratio(links, count) for devices, links in devices_of_end)
            for count, devices_of_end in zip(each, (self.below, self.above), strict=True)
        )
        return lower, upper


def levels(family: DesignFamily, ports: Ports) -> tuple[SwitchLevel, ...]:
    """Switches and links of each level, over all planes."""
    if family.gear is None:
        return ()
    planes = family.planes * family.copies
    if ports.tiers == 1:
        return levels_of_switch(family, chassis_count(family), planes_on_switch(family))
    leaves = leaf_count(family, ports.down)
    leaf_level, cables = _leaf_level(family, ports), leaves * ports.up * planes
    if ports.tiers == 2:
        spines = spine_count(leaves, ports, family.gear.at(2).radix)
        ends = _ends(planes, [(leaves, ports.up)]), _ends(planes, _in_turn(leaves * ports.up, spines))
        return leaf_level, SwitchLevel(spines * planes, cables, *ends)
    pods, slices = ceil_ratio(leaves, ports.pod_leaves), ports.slices * planes
    cores, trunks = core_count(leaves, ports, family.gear.at(3).radix), pods * ports.pod_up
    whole, rest = divmod(leaves, ports.pod_leaves)
    below = [(whole, ports.pod_down), (1, rest * ports.pod_each)]
    middle = _ends(planes, [(leaves, ports.up)]), _ends(slices, below)
    top = _ends(slices, [(pods, ports.pod_up)]), _ends(slices, _in_turn(trunks, cores))
    return leaf_level, SwitchLevel(slices * pods, cables, *middle), SwitchLevel(slices * cores, slices * trunks, *top)


def levels_of_switch(family: DesignFamily, chassis: int, together: int) -> tuple[SwitchLevel, ...]:
    """The one level of so many switches, each with so many planes together."""
    links = family.domains * family.rails * family.copies
    return (SwitchLevel(chassis, links, *_nic_ends(family, _chassis_ends(family, together))),)


def levels_of_pod(family: DesignFamily, ports: Ports) -> tuple[SwitchLevel, ...]:
    """Leaves and aggregation switches of a single pod, above which nothing stands yet."""
    leaves, planes = leaf_count(family, ports.down), family.planes * family.copies
    ends = _ends(planes, [(leaves, ports.up)]), _ends(planes, [(ports.slices, leaves * ports.pod_each)])
    return _leaf_level(family, ports), SwitchLevel(ports.slices * planes, leaves * ports.up * planes, *ends)


def _leaf_level(family: DesignFamily, ports: Ports) -> SwitchLevel:
    """Leaves of all planes, and the links of NICs."""
    leaves = leaf_count(family, ports.down) * family.planes * family.copies
    links = family.domains * family.rails * family.copies
    return SwitchLevel(leaves, links, *_nic_ends(family, _leaf_ends(family, ports.down)))


DeviceLinks = list[tuple[int, int]]
"""Devices by how many links each has."""


def _ends(times: int, ends: DeviceLinks) -> tuple[tuple[int, int], ...]:
    """Ends that are there so many times."""
    return tuple((devices * times, links) for devices, links in ends if devices and links)


def _in_turn(links: int, switches: int) -> DeviceLinks:
    """Switches that take links in turn."""
    each, more = divmod(links, switches)
    return [(switches - more, each), (more, each + 1)]


def _nic_ends(
    family: DesignFamily, switches: DeviceLinks
) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """Both ends of the links of NICs, of which each has as many as a cage has ports."""
    assert family.gear is not None
    slots = family.gear.nic.cages
    nics = (family.domains * family.rails * slots, family.copies // slots)
    return (nics,), _ends(family.copies, switches)


def _chassis_ends(family: DesignFamily, together: int) -> DeviceLinks:
    """Switches of a single tier, each for so many planes together."""
    whole, rest = divmod(family.planes, together)
    return [(whole, together * family.ends), (1, rest * family.ends)]


def _leaf_ends(family: DesignFamily, down: int) -> DeviceLinks:
    """Leaves of all planes that one port of each NIC leads to, by the NICs they hold."""
    assert family.gear is not None
    domains, rails = family.domains, family.rails
    if family.gear.kind == "clos":
        return [(domains * rails // down, down), (1, domains * rails % down)]
    if family.gear.kind == "rail-optimized" and domains <= down:
        each = down // domains
        return [(rails // each, each * domains), (1, rails % each * domains)]
    return [(rails * (domains // down), down), (rails, domains % down)]
