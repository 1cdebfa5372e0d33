"""The border of a site: switches in which its network and its channels to other sites end
(docs/sites.md).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from coopt.instance.couplings import Wan
from coopt.instance.hardware import Optic, Switch, mate
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.optics import (
    core_links_of_module,
    core_optic,
    core_ports_of,
    core_switch,
    cores_of,
)
from coopt.network.parts import included_lines
from coopt.plan.couplings import SharedCore
from coopt.plan.parts import Item, line


class ChannelModules(NamedTuple):
    """What ends a channel at a site: so many modules, each of which takes so many ports."""

    optic: Optic
    modules: int
    ports_of_module: int

    @property
    def ports(self) -> int:
        """Ports of the border that a channel takes."""
        return self.modules * self.ports_of_module


def channel_end(instance: Instance, link: Wan) -> ChannelModules | None:
    """What ends a channel in the border: the cheapest optic that reaches, as many as have its rate.

    A module fills a cage, and so takes as many ports as one of links from leaves. None where sites
    have no border.
    """
    switch = core_switch(instance)
    if switch is None or link.km is None:
        return None
    reaching = [
        optic
        for optic in link.optics
        if optic.links_of(switch.port_gbit_s) == 1 and optic.reach_m / 1000 >= link.km
        if not instance.network.mates or mate(optic, switch)
    ]
    optic = min(reaching, key=lambda optic: (optic.usd, optic.w, optic.name))
    modules = math.ceil(link.gbit_s / switch.port_gbit_s)
    return ChannelModules(optic, modules, core_links_of_module(instance))


def with_ends(instance: Instance, link: Wan) -> Wan:
    """The link with price and power of a channel's modules at both ends, as far as they count."""
    end = channel_end(instance, link)
    if end is None or "optics" not in instance.objective.include:
        return link
    count = 2 * end.modules
    return link.having(usd=link.usd + count * end.optic.usd, w=link.w + count * end.optic.w)


def channel_items(instance: Instance, link: Wan, channels: int) -> tuple[Item, ...]:
    """The modules at both ends of channels, as lines of a bill."""
    end = channel_end(instance, link)
    if end is None:
        return ()
    count = 2 * channels * end.modules
    item = line("optics", end.optic.name, count, end.optic.usd, end.optic.w)
    return included_lines(instance, [item])


def link_items(instance: Instance, family: Family) -> tuple[Item, ...]:
    """The modules at both ends of the links from leaves into the border, as lines of a bill."""
    above = core_optic(instance)
    if above is None:
        return ()
    below = family.core_end or above
    modules_above = -(-family.core_links // core_links_of_module(instance))
    ends = ((below, family.core_modules), (above, modules_above))
    items = [line("optics", end.name, count, end.usd, end.w) for end, count in ends]
    return included_lines(instance, items)


def priced_border(instance: Instance) -> Switch | None:
    """The switch of borders with the ports that can be used; free where switches do not count."""
    switch = core_switch(instance)
    counts = switch is None or "switch" in instance.objective.include
    return switch if counts or switch is None else switch.having(usd=0.0, w=0.0)


def border_ports(instance: Instance, family: Family) -> int:
    """Ports of the border that links from leaves take."""
    return core_ports_of(instance, family.core_links)


def border_of(instance: Instance, site: str, family: Family, channel_ports: int) -> SharedCore:
    """The border of a site, in which so many ports are for channels."""
    ((border),) = cores_of(instance, [(site, None, {site: family})])
    switch = priced_border(instance)
    assert switch is not None
    switches = -(-(border_ports(instance, family) + channel_ports) // switch.radix)
    changes = {
        "switches": switches,
        "channel_ports": channel_ports,
        "power_w": switches * switch.w,
    }
    return border.model_copy(update={"core": border.core.model_copy(update=changes)})
