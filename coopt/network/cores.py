"""The core that islands share: its switch, its optics, and the links that lead into it (docs/partition.md)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction

from coopt.instance.hardware import Optic, Switch
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.optics import optics_worth_having
from coopt.plan.cores import Core, CoreLinks
from coopt.plan.parts import SwitchChoice


def core_switch(instance: Instance) -> Switch | None:
    """The switch of the core, None where islands share none."""
    core = instance.sharing.core
    return None if core is None else next(one for one in instance.network.switches if one.name == core.switch)


def core_optic(instance: Instance) -> Optic | None:
    """The optic at both ends of a link into the core: the one it names, else the first choice; None without a core."""
    return next(iter(_core_optics(instance)), None)


def with_core_optics(instance: Instance) -> Iterator[Instance]:
    """The instance with each optic that its core may have named; itself without a core."""
    core = instance.sharing.core
    if core is None:
        yield instance
        return
    for optic in _core_optics(instance):
        sharing = instance.sharing.model_copy(update={"core": core.model_copy(update={"optic": optic.name})})
        yield instance.model_copy(update={"sharing": sharing})


def _core_optics(instance: Instance) -> tuple[Optic, ...]:
    core, switch = instance.sharing.core, core_switch(instance)
    if core is None or switch is None:
        return ()
    if core.optic is not None:
        return tuple(optic for optic in instance.network.optics if optic.name == core.optic)
    return optics_worth_having(instance, switch.port_gbit_s, instance.network.link_reach_m[-1])


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
