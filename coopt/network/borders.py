"""The border of a site: switches in which its network and its channels to other sites end
(docs/sites.md).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

from coopt.instance.couplings import Wan
from coopt.instance.hardware import Optic, Switch
from coopt.instance.numerics import EQUAL
from coopt.instance.schema import Instance
from coopt.network.cores import core_links_of_module, core_switch, links_to_core
from coopt.network.family import Family
from coopt.network.part_bills import into_core
from coopt.network.parts import included_lines
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
    fitting = link.optics_in(switch, mates=instance.network.mates)
    reaching = [optic for optic in fitting if optic.reach_m / 1000 >= link.km]
    optic = min(reaching, key=lambda optic: (optic.usd, optic.w, optic.name))
    # in fractions, as floats could make one module more of rates that divide each other
    modules = math.ceil(Fraction(repr(link.gbit_s)) / Fraction(repr(switch.port_gbit_s)))
    return ChannelModules(optic, modules, core_links_of_module(instance))


def link_counts(instance: Instance, gpus: int) -> range:
    """How many links may lead from so many GPUs into the border of a site: as many as they ask for,
    or more where two links of a ring may have more channels and NICs of the GPUs have the rate.
    """
    fewest, switch = links_to_core(instance, gpus), core_switch(instance)
    if switch is None:
        return range(fewest, fewest + 1)
    ends = [(link, channel_end(instance, link)) for link in instance.wan]
    modules = [
        sum(
            sorted(link.most * end.modules for link, end in ends if end and name in link.between)[
                -2:
            ]
        )
        for name in (site.name for site in instance.site)
    ]
    # a rate that several GPUs share has no last digit
    ports_of_gpu = instance.network.gbit_s_into(switch) / switch.port_gbit_s
    of_nics = math.floor(gpus * ports_of_gpu * (1.0 + EQUAL))
    return range(fewest, max(fewest, min(max(modules), of_nics)) + 1)


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
    """The modules at both ends of the links from leaves into the border and the fibre between
    these, as lines of a bill.
    """
    return included_lines(instance, (item.line for item in into_core(instance, family)))


def priced_border(instance: Instance) -> Switch | None:
    """The switch of borders with the ports that can be used; free where switches do not count."""
    switch = core_switch(instance)
    if switch is None or "switch" in instance.objective.include:
        return switch
    return switch.having(usd=0.0, w=0.0)
