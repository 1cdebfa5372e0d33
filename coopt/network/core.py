"""The core that joins islands: its switch, the optics of links into it, and how much of it islands
take (docs/partition.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from coopt.instance.catalog import ports_of_modules
from coopt.instance.hardware import Optic, Switch
from coopt.instance.schema import Instance
from coopt.network.family import Family
from coopt.network.optics import (
    OpticValues,
    fits,
    module_places,
    modules_worth_having,
    optics_worth_having,
    values_of,
)
from coopt.plan.couplings import CoreLinks, CorePlan, SharedCore
from coopt.plan.parts import SwitchChoice

IslandsAt = tuple[str | None, float | None, Mapping[str, Family]]
"""A site, a phase, and the islands that stand there then, by workload."""


def _core_box(instance: Instance) -> Switch | None:
    """The switch of the core as it is listed."""
    core = instance.sharing.core
    return (
        None
        if core is None
        else next(box for box in instance.network.switches if box.name == core.switch)
    )


def core_switch(instance: Instance) -> Switch | None:
    """The switch of the core, None where islands share none; where cages are kept with ports for
    that many modules.
    """
    switch = _core_box(instance)
    if switch is None or instance.network.switch_cages == "told":
        return switch
    return switch.model_copy(
        update={"radix": ports_of_modules(switch, core_links_of_module(instance))}
    )


def core_optic(instance: Instance) -> Optic | None:
    """The optic of links into the core, at their upper ends: the one it names, else the first
    choice; None without a core.
    """
    return next(iter(_core_optics(instance)), None)


def core_links_of_module(instance: Instance) -> int:
    """Links that a module of the core carries, all of one island."""
    switch, optic = _core_box(instance), core_optic(instance)
    return 1 if switch is None or optic is None else optic.links_of(switch.port_gbit_s)


def core_ports_of(instance: Instance, links: int) -> int:
    """Ports of the core that links of one island take, in whole modules."""
    of_module = core_links_of_module(instance)
    return -(-links // of_module) * of_module


def core_ends(
    instance: Instance, leaf: Switch | None, values: OpticValues
) -> tuple[Optic | None, ...]:
    """The products worth having at the lower ends of links into the core: in a leaf, or in NICs
    where there is none, which carry one link each; None where that is the one at the upper ends, or
    there is no core.
    """
    network, switch, core = instance.network, _core_box(instance), core_optic(instance)
    if switch is None or core is None or network.link_ends == "same":
        return (None,)
    # Links into a core are as long as those of the uppermost level.
    rate, reach_m = switch.port_gbit_s, network.link_reach_m[-1]
    meeting = [
        optic
        for optic in network.optics
        if optic.reach_m >= reach_m and optic.links_of(rate) and optic.meets(core)
    ]
    fitting = [
        optic
        for optic in meeting
        if (fits(optic, rate, leaf) if leaf else optic.links_of(rate) == 1)
    ]
    return modules_worth_having(fitting, rate, values)


def with_core_optics(instance: Instance, *, beaten: bool = False) -> Iterator[Instance]:
    """The instance with each optic that its core may have named, on request those too that another
    one beats; itself without a core.
    """
    if instance.sharing.core is None:
        yield instance
        return
    for optic in _core_optics(instance, beaten=beaten):
        yield with_core_optic(instance, optic.name)


def with_core_optic(instance: Instance, optic: str | None) -> Instance:
    """The instance whose core, if it has one, has this optic."""
    if instance.sharing.core is None:
        return instance
    core = instance.sharing.core.model_copy(update={"optic": optic})
    return instance.model_copy(
        update={"sharing": instance.sharing.model_copy(update={"core": core})}
    )


def with_core_of(instance: Instance, source: Instance) -> Instance:
    """An instance with the core of another one."""
    sharing = instance.sharing.model_copy(update={"core": source.sharing.core})
    return instance.model_copy(update={"sharing": sharing})


def _core_optics(instance: Instance, *, beaten: bool = False) -> tuple[Optic, ...]:
    core, switch, network = instance.sharing.core, _core_box(instance), instance.network
    if core is None or switch is None:
        return ()
    if core.optic is not None:
        return tuple(optic for optic in network.optics if optic.name == core.optic)
    rate, reach_m = switch.port_gbit_s, network.link_reach_m[-1]
    if network.link_ends == "same":
        fitting = [
            optic
            for optic in network.optics
            if optic.links_of(rate) == 1 and optic.reach_m >= reach_m
        ]
        return tuple(fitting) if beaten else optics_worth_having(instance, fitting, rate)
    # A module carries links of one island, so that a switch has to take at least one for each.
    reaching = [optic for optic in network.optics if optic.reach_m >= reach_m]
    islands = len(instance.workload)
    fitting = [optic for optic in reaching if module_places(network, switch, optic) >= islands]
    if beaten:
        return tuple(fitting)
    return modules_worth_having(
        fitting, rate, values_of(instance), lambda optic: optic.fibre or ("product", optic.name)
    )


def links_to_core(instance: Instance, gpus: int) -> int:
    """The fewest links with which that many GPUs send what each must; rates count as they are
    written, in decimals.
    """
    core, switch = instance.sharing.core, _core_box(instance)
    if core is None or switch is None:
        return 0
    # In fractions, as floats could make one link more of rates that divide each other.
    return math.ceil(
        gpus * Fraction(repr(core.gbit_s_per_gpu)) / Fraction(repr(switch.port_gbit_s))
    )


def core_switches(instance: Instance, ports: int) -> int:
    """Whole switches with so many ports."""
    switch = core_switch(instance)
    return 0 if switch is None else -(-ports // switch.radix)


def cores_of(instance: Instance, stands: Iterable[IslandsAt]) -> tuple[SharedCore, ...]:
    """The cores of islands, wherever and whenever some stand, written out; nothing where islands
    share none.
    """
    switch, optic = core_switch(instance), core_optic(instance)
    if switch is None or optic is None:
        return ()
    return tuple(
        SharedCore(site=site, phase=phase, core=_core(instance, switch, optic, islands))
        for site, phase, islands in stands
    )


def _core(
    instance: Instance, switch: Switch, optic: Optic, islands: Mapping[str, Family]
) -> CorePlan:
    count = core_switches(
        instance, sum(core_ports_of(instance, island.core_links) for island in islands.values())
    )
    return CorePlan(
        switch=SwitchChoice(name=switch.name),
        switches=count,
        ports=sum(family.core_links for family in islands.values()),
        optic=optic.name,
        power_w=count * switch.w if "switch" in instance.objective.include else 0.0,
        islands=tuple(_core_links(name, family, optic) for name, family in islands.items()),
    )


def _core_links(name: str, family: Family, optic: Optic) -> CoreLinks:
    """The links of an island into a core with such an optic, as plans tell them."""
    lower_optic = family.core_end or optic
    return CoreLinks(
        workload=name,
        links=family.core_links,
        per_leaf=family.core_ports if family.tiers else 0,
        optic_below=None if lower_optic.name == optic.name else lower_optic.name,
    )


def core_notes(instance: Instance, core: CorePlan) -> Iterator[str]:
    """That a core has more modules to a switch than that has cages, where it has."""
    way = next(
        (switch for switch in instance.network.switches if switch.name == core.switch.name), None
    )
    optic = next((optic for optic in instance.network.optics if optic.name == core.optic), None)
    of_module = 0 if way is None or optic is None else optic.links_of(way.port_gbit_s)
    if way is None or not of_module:
        return
    modules = -(-sum(-(-island.links // of_module) for island in core.islands) // core.switches)
    if modules > (cages := ports_of_modules(way, 1)):
        yield (
            f"The core has {modules:,} modules for each {way.name}, which has room for {cages:,}:"
            " network.switch_cages = 'kept' plans with no more, and with network.link_ends = 'any'"
            " those of several links are taken where the list has them."
        )
