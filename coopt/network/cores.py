"""The core that joins islands: its switch, the optics of links into it, and how much of it islands
take (docs/partition.md).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import product

from coopt.instance.catalog import ports_of_modules
from coopt.instance.hardware import Optic, Switch, mate
from coopt.instance.network import Network
from coopt.instance.schema import Instance
from coopt.instance.texts import grouped
from coopt.network.family import Family, LinkEnds
from coopt.network.optics import (
    OpticValues,
    cable_kinds,
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
    if switch is None or not instance.network.keeps_cages:
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
    if switch is None or core is None or not network.has_own_ends:
        return (None,)
    if network.cables == "hall":
        ends = grouped(
            (pair.below.links_of(switch.port_gbit_s), pair.below)
            for pair in core_pairs(instance, leaf)
        )
        # the least stands for those that carry as many links
        return tuple(
            min(some, key=lambda optic: (*values(optic), optic.usd, optic.w))
            for _, some in sorted(ends.items())
        )
    # Links into a core are as long as those of the uppermost level.
    rate, reach_m = switch.port_gbit_s, network.link_reach_m[-1]
    meeting = [
        optic
        for optic in network.optics
        if optic.reach_m >= reach_m and optic.links_of(rate) and optic.meets(core)
        if leaf is None or not network.mates or mate(optic, leaf)
    ]
    fitting = [
        optic
        for optic in meeting
        if (fits(optic, rate, leaf) if leaf else optic.links_of(rate) == 1)
    ]
    return modules_worth_having(fitting, rate, values, lambda optic: _plug(network, optic))


def core_pairs(
    instance: Instance, leaf: Switch | None, like: Optic | None = None
) -> tuple[LinkEnds, ...]:
    """The ends that links into the core may have where their lengths decide: in a leaf, or in NICs
    where there is none, and in the core; those below carry as many links as another one, where it
    is given.
    """
    network, switch = instance.network, _core_box(instance)
    if switch is None or network.cables == "tier":
        return ()
    rate = switch.port_gbit_s
    lower = [
        optic
        for optic in network.optics
        if optic.links_of(rate)
        and (optic.links_of(rate) == 1 if leaf is None else fits(optic, rate, leaf))
        and (leaf is None or not network.mates or mate(optic, leaf))
        and (like is None or optic.links_of(rate) == like.links_of(rate))
    ]
    return tuple(
        LinkEnds(below, above)
        for below, above in product(lower, _core_optics(instance))
        if below.meets(above)
    )


def _plug(network: Network, optic: Optic) -> Hashable:
    """What the fibre of a module depends on, beside its links, where fibre is billed."""
    return network.fibre and (optic.fibre, optic.connectors, optic.whole_cable)


def with_core_optics(instance: Instance, *, beaten: bool = False) -> Iterator[Instance]:
    """The instance with each optic that its core may have named, on request those too that another
    one beats; itself without a core.
    """
    if instance.sharing.core is None:
        yield instance
    if instance.network.cables == "hall":
        for some in _core_classes(instance):
            yield _with_core_optic(instance, tuple(optic.name for optic in some))
        return
    for optic in _core_optics(instance, beaten=beaten):
        yield _with_core_optic(instance, optic.name)


def with_core_optic(instance: Instance, optic: str) -> Instance:
    """The instance whose core, if it has one, has this optic, or where lengths decide one of those
    that carry as many links.
    """
    classes = _core_classes(instance) if instance.network.cables == "hall" else []
    like = next((some for some in classes if optic in {one.name for one in some}), None)
    return _with_core_optic(instance, tuple(one.name for one in like) if like else optic)


def _with_core_optic(instance: Instance, optic: str | tuple[str, ...]) -> Instance:
    core = instance.sharing.core
    return instance if core is None else instance.having(sharing={"core": core.having(optic=optic)})


def _core_classes(instance: Instance) -> list[list[Optic]]:
    """The optics that the core may have where lengths decide, by the links of a module."""
    core, switch, network = instance.sharing.core, _core_box(instance), instance.network
    if core is None or switch is None:
        return []
    # A module carries links of one island, so that a switch has to take at least one for each.
    fitting = [
        optic
        for optic in network.optics
        if (not core.optics or optic.name in core.optics)
        and (not network.mates or mate(optic, switch))
        and module_places(network, switch, optic) >= len(instance.workload)
    ]
    by_links = grouped((optic.links_of(switch.port_gbit_s), optic) for optic in fitting)
    return [some for _, some in sorted(by_links.items())]


def with_core_of(instance: Instance, source: Instance) -> Instance:
    """An instance with the core of another one."""
    return instance.having(sharing={"core": source.sharing.core})


def _core_optics(instance: Instance, *, beaten: bool = False) -> tuple[Optic, ...]:
    core, switch, network = instance.sharing.core, _core_box(instance), instance.network
    if core is None or switch is None:
        return ()
    if network.cables == "hall" and core.optics:  # asked for with every network
        named = [optic for optic in network.optics if optic.name in core.optics]
        links = [optic.links_of(switch.port_gbit_s) for optic in named]
        return tuple(one for one, count in zip(named, links, strict=True) if count == links[0])
    if network.cables == "hall":
        return tuple(next(iter(_core_classes(instance)), ()))
    if core.optic is not None:
        return tuple(optic for optic in network.optics if optic.name == core.optic)
    rate, reach_m = switch.port_gbit_s, network.link_reach_m[-1]
    reaching = [
        optic
        for optic in network.optics
        if optic.reach_m >= reach_m and (not network.mates or mate(optic, switch))
    ]
    if not network.has_own_ends:
        fitting = [optic for optic in reaching if optic.links_of(rate) == 1]
        return tuple(fitting) if beaten else optics_worth_having(instance, fitting, rate)
    # A module carries links of one island, so that a switch has to take at least one for each.
    islands = len(instance.workload)
    fitting = [optic for optic in reaching if module_places(network, switch, optic) >= islands]
    if beaten:
        return tuple(fitting)
    return modules_worth_having(
        fitting,
        rate,
        values_of(instance),
        lambda optic: (optic.fibre or ("product", optic.name), _plug(network, optic)),
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


def cores_of(
    instance: Instance,
    stands: Iterable[IslandsAt],
    channel_ports: Mapping[str | None, int] | None = None,
) -> tuple[SharedCore, ...]:
    """The cores of islands, wherever and whenever some stand, written out, with the ports that
    channels take at some sites; nothing where islands share none.
    """
    switch, optic = core_switch(instance), core_optic(instance)
    if switch is None or optic is None:
        return ()
    ports = channel_ports or {}
    return tuple(
        SharedCore(
            site=site,
            phase=phase,
            core=_core(instance, switch, optic, islands, ports.get(site, 0)),
        )
        for site, phase, islands in stands
    )


def _core(
    instance: Instance,
    switch: Switch,
    optic: Optic,
    islands: Mapping[str, Family],
    channel_ports: int,
) -> CorePlan:
    ports = sum(core_ports_of(instance, island.core_links) for island in islands.values())
    count = core_switches(instance, ports + channel_ports)
    longest = max(
        (island.core_cables[-1] for island in islands.values() if island.core_cables),
        key=lambda run: run.length_m,
        default=None,
    )
    optic = optic if longest is None else longest.ends.above
    ends = [
        family.core_cables[-1].ends.below if family.core_cables else family.core_end
        for family in islands.values()
    ]
    return CorePlan(
        switch=SwitchChoice(name=switch.name),
        switches=count,
        ports=sum(family.core_links for family in islands.values()),
        channel_ports=channel_ports,
        optic=optic.name,
        power_w=count * switch.w if "switch" in instance.objective.include else 0.0,
        islands=tuple(
            CoreLinks(
                workload=name,
                links=family.core_links,
                per_leaf=family.core_ports if family.tiers else 0,
                optic_below=None if end is None or end.name == optic.name else end.name,
                cables=cable_kinds(family.core_cables),
            )
            for (name, family), end in zip(islands.items(), ends, strict=True)
        ),
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
            f"Not orderable as listed: a {way.name} of the core has only {cages:,} cages for"
            f" {modules:,} modules. Set network.switch_cages = 'kept' to plan no more modules than"
            " cages."
        )
