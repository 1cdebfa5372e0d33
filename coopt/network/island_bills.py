"""What islands have together: the core that joins them (docs/partition.md), one bill, and the limits they keep.

Prices by volume look at the quantity of the whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

import numpy as np

from coopt.instance.catalog import ports_of_modules
from coopt.instance.hardware import Optic, Switch
from coopt.instance.schema import CostKind, Instance, Objective
from coopt.network.family import Family, levels
from coopt.network.goods import Good, caps_of, goods_of
from coopt.network.optics import OpticValues, fits, module_places, modules_worth_having, optics_worth_having, values_of
from coopt.network.parts import domain_lines, ends_bought, included_lines, keeps_limits, racks, total
from coopt.plan.couplings import CoreLinks, CorePlan
from coopt.plan.parts import ItemKind, SwitchChoice, line
from coopt.plan.schema import Cost, Item

Units = Counter[tuple[CostKind, str]]
ROUNDING = 1e-12
"""Of sums, beside the one of a bill."""


def _core_box(instance: Instance) -> Switch | None:
    """The switch of the core as it is listed."""
    core = instance.sharing.core
    return None if core is None else next(one for one in instance.network.switches if one.name == core.switch)


def core_switch(instance: Instance) -> Switch | None:
    """The switch of the core, None where islands share none; where cages are kept with ports for that many modules."""
    switch = _core_box(instance)
    if switch is None or instance.network.switch_cages == "told":
        return switch
    return switch.model_copy(update={"radix": ports_of_modules(switch, core_links_of_module(instance))})


def core_optic(instance: Instance) -> Optic | None:
    """The optic of links into the core, at their upper ends: the one it names, else the first choice; None without a
    core."""
    return next(iter(_core_optics(instance)), None)


def core_links_of_module(instance: Instance) -> int:
    """Links that a module of the core carries, all of one island."""
    switch, optic = _core_box(instance), core_optic(instance)
    return 1 if switch is None or optic is None else optic.links_of(switch.port_gbit_s)


def core_ports_of(instance: Instance, links: int) -> int:
    """Ports of the core that links of one island take, in whole modules."""
    of_module = core_links_of_module(instance)
    return -(-links // of_module) * of_module


def core_ends(instance: Instance, leaf: Switch | None, values: OpticValues) -> tuple[Optic | None, ...]:
    """The products worth having at the lower ends of links into the core: in a leaf, or in NICs where there is none,
    which carry one link each; None where that is the one at the upper ends, or there is no core."""
    network, switch, core = instance.network, _core_box(instance), core_optic(instance)
    if switch is None or core is None or network.link_ends == "same":
        return (None,)
    rate, reach_m = switch.port_gbit_s, network.link_reach_m[-1]
    meeting = [one for one in network.optics if one.reach_m >= reach_m and one.links_of(rate) and one.meets(core)]
    fitting = [one for one in meeting if (fits(one, rate, leaf) if leaf else one.links_of(rate) == 1)]
    return modules_worth_having(fitting, rate, values)


def with_core_optics(instance: Instance, *, beaten: bool = False) -> Iterator[Instance]:
    """The instance with each optic that its core may have named, on request those too that another one beats; itself
    without a core."""
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
    return instance.model_copy(update={"sharing": instance.sharing.model_copy(update={"core": core})})


def _core_optics(instance: Instance, *, beaten: bool = False) -> tuple[Optic, ...]:
    core, switch, network = instance.sharing.core, _core_box(instance), instance.network
    if core is None or switch is None:
        return ()
    if core.optic is not None:
        return tuple(optic for optic in network.optics if optic.name == core.optic)
    rate, reach_m = switch.port_gbit_s, network.link_reach_m[-1]
    if network.link_ends == "same":
        fitting = [optic for optic in network.optics if optic.links_of(rate) == 1 and optic.reach_m >= reach_m]
        return tuple(fitting) if beaten else optics_worth_having(instance, rate, reach_m)
    reaching, islands = [one for one in network.optics if one.reach_m >= reach_m], len(instance.workload)
    fitting = [one for one in reaching if module_places(network, switch, one) >= islands]
    if beaten:
        return tuple(fitting)
    return modules_worth_having(fitting, rate, values_of(instance), lambda one: one.fibre or ("product", one.name))


def links_to_core(instance: Instance, gpus: int) -> int:
    """The fewest links with which that many GPUs send what each must; rates count as they are written, in decimals."""
    core, switch = instance.sharing.core, _core_box(instance)
    if core is None or switch is None:
        return 0
    return math.ceil(gpus * Fraction(repr(core.gbit_s_per_gpu)) / Fraction(repr(switch.port_gbit_s)))


def core_switches(instance: Instance, ports: int) -> int:
    """Whole switches with so many ports."""
    switch = core_switch(instance)
    return 0 if switch is None else -(-ports // switch.radix)


def core_of(instance: Instance, islands: Mapping[str, Family]) -> CorePlan | None:
    """The core of these islands, by workload, written out."""
    switch, optic = core_switch(instance), core_optic(instance)
    if switch is None or optic is None:
        return None
    count = core_switches(instance, sum(core_ports_of(instance, one.core_links) for one in islands.values()))
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
    below = family.core_end or optic
    return CoreLinks(
        workload=name,
        links=family.core_links,
        per_leaf=family.core_ports if family.tiers else 0,
        optic_below=None if below.name == optic.name else below.name,
    )


def units_of(instance: Instance, family: Family, uplinks: int) -> Units:
    """How many units of each product an island takes, with both ends of its links into a core."""
    tiers = levels(family, uplinks)
    units: Units = Counter(
        {
            ("hb", family.hb.name): family.installed_gpus,
            ("nic", family.nic.name): family.nic_count + family.spare_nics,
        }
    )
    for tier, switch in zip(tiers, family.switches, strict=True):
        units["switch", switch.name] += tier.switches
    for name, count in ends_bought(family, uplinks).items():
        units["optics", name] += count
    if (far := core_optic(instance)) is not None:
        units["optics", (family.core_end or far).name] += family.core_modules
        units["optics", far.name] += -(-family.core_links // core_links_of_module(instance))
    return units


def part_cost(instance: Instance, objective: Objective, family: Family, uplinks: int) -> Cost:
    """The bill of one network with its links into a core, at prices without volume and the electricity of its site."""
    units = units_of(instance, family, uplinks)
    lines = domain_lines(instance.cluster.gpu, family.hb, family.gpus, family.installed_gpus)
    for good in goods_of(instance)[:-1]:
        if good.kind != "hb":
            lines.append(line(good.kind, good.name, units[good.kind, good.name], good.usd[0], good.w))
    return total(objective, included_lines(instance, lines))


def island_bill(instance: Instance, islands: Iterable[tuple[Family, int]]) -> Cost:
    """What islands and their core cost: a line for every product and bracket, spare units on lines of their own."""
    built = list(islands)
    core = core_switch(instance)
    units: Units = Counter()
    if core is not None:
        ports = sum(core_ports_of(instance, family.core_links) for family, _ in built)
        units["switch", core.name] = core_switches(instance, ports)
    return _bill(instance, built, units)


def _bill(instance: Instance, islands: Iterable[tuple[Family, int]], units: Units) -> Cost:
    """What islands cost together with further units."""
    active = idle = 0
    for family, uplinks in islands:
        units.update(units_of(instance, family, uplinks))
        active += family.gpus
        idle += family.installed_gpus - family.gpus
    *goods, gpu = goods_of(instance)
    pools: list[tuple[CostKind, int]] = [("gpu", active), ("hb", idle)]
    items = _lines(gpu, [pool for pool in pools if pool[0] in instance.objective.include])
    for good in goods:
        if good.kind in instance.objective.include:
            items += _lines(good, [(good.kind, units[good.kind, good.name])])
    return total(instance.objective, tuple(items))


def _lines(good: Good, pools: list[tuple[CostKind, int]]) -> list[Item]:
    """The purchases of a product laid out over the kinds that it is billed with; spare units draw no power.

    GPUs that are billed with HB domains are idle.
    """
    left = [*pools, (pools[0][0] if pools else good.kind, 0)]
    items = []
    for bought, usd in good.purchases(sum(count for _, count in pools)):
        rest = bought
        while rest:
            while not left[0][1] and len(left) > 1:
                left = left[1:]
            kind, needed = left[0]
            spare, idle = len(left) == 1, kind != good.kind
            count = rest if spare else min(rest, needed)
            items.append(line(kind, good.name, count, usd, 0.0 if spare else good.w, idle=idle, spare=spare))
            left = [(kind, needed - count), *left[1:]]
            rest -= count
    return items


def island_limits(instance: Instance, families: Iterable[Family], cost: Cost) -> bool:
    """Whether islands together keep the instance's limits, exactly, and sums over products to within their rounding."""
    built, stand = list(families), Counter[tuple[ItemKind, str]]()
    for item in cost.items:
        stand[item.product] += 0 if item.spare else item.count
    units = np.array([[float(stand[good.kind, good.name]) for good in goods_of(instance)]])
    if any(cap.used_exactly(units) > cap.most * (1 + ROUNDING) for cap in caps_of(instance)):
        return False
    filled = [racks(family) for family in built]
    known = [count for count in filled if count is not None]
    together = sum(known) if len(known) == len(filled) else None
    (most,) = instance.gpu_caps.values()
    return sum(family.gpus for family in built) <= most and keeps_limits(instance.limits, cost, together)
