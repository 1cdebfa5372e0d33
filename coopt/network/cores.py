"""The core that islands share: its switch, its optics, and the links that lead into it (docs/partition.md)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction

from coopt.instance.hardware import Optic, Switch
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.prices import weigh
from coopt.plan.cores import Core, CoreLinks
from coopt.plan.parts import SwitchChoice


def core_switch(instance: Instance) -> Switch | None:
    """The switch of the core, None where islands share none."""
    core = instance.sharing.core
    return None if core is None else next(one for one in instance.network.switches if one.name == core.switch)


def core_optic(instance: Instance) -> Optic | None:
    """The optic at both ends of a link into the core that adds least to the objective, then reaches farthest."""
    switch, (*_, reach_m) = core_switch(instance), instance.network.link_reach_m
    if switch is None:
        return None
    fitting = [o for o in instance.network.optics if o.gbit_s == switch.port_gbit_s and o.reach_m >= reach_m]
    return min(fitting, key=lambda o: (weigh(instance.objective, o.usd, o.w), -o.reach_m, o.usd, o.w))


def links_to_core(instance: Instance, gpus: int) -> int:
    """The fewest links with which that many GPUs send what each must; rates count as they are written, in decimals."""
    core, switch = instance.sharing.core, core_switch(instance)
    if core is None or switch is None:
        return 0
    return math.ceil(gpus * Fraction(repr(core.gbit_s_per_gpu)) / Fraction(repr(switch.port_gbit_s)))


def core_switches(instance: Instance, links: int) -> int:
    """Whole switches with a port for every link."""
    switch = core_switch(instance)
    return 0 if switch is None else -(-links // switch.radix)


def core_of(instance: Instance, islands: Mapping[str, Family]) -> Core | None:
    """The core of these islands, by workload, written out."""
    switch, optic = core_switch(instance), core_optic(instance)
    if switch is None or optic is None:
        return None
    ports = sum(family.core_links for family in islands.values())
    count = core_switches(instance, ports)
    return Core(
        switch=SwitchChoice(name=switch.name),
        switches=count,
        ports=ports,
        optic=optic.name,
        power_w=count * switch.w if "switch" in instance.objective.include else 0.0,
        islands=tuple(
            CoreLinks(workload=name, links=family.core_links, per_leaf=family.core_ports)
            for name, family in islands.items()
        ),
    )
