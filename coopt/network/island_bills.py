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
from coopt.network.optics import optics_worth_having
from coopt.network.parts import domain_lines, ends_bought, included_lines, keeps_limits, racks, total
from coopt.plan.couplings import CoreLinks, CorePlan
from coopt.plan.parts import ItemKind, SwitchChoice, line
from coopt.plan.schema import Cost, Item

Units = Counter[tuple[CostKind, str]]
ROUNDING = 1e-12
"""Of sums, beside the one of a bill."""


def core_switch(instance: Instance) -> Switch | None:
    """The switch of the core, None where islands share none; where cages are kept with a port for each of them."""
    core = instance.sharing.core
    if core is None:
        return None
    switch = next(one for one in instance.network.switches if one.name == core.switch)
    if instance.network.switch_cages == "told":
        return switch
    return switch.model_copy(update={"radix": ports_of_modules(switch, 1)})


def core_optic(instance: Instance) -> Optic | None:
    """The optic at both ends of a link into the core: the one it names, else the first choice; None without a core."""
    return next(iter(_core_optics(instance)), None)


def with_core_optics(instance: Instance, *, beaten: bool = False) -> Iterator[Instance]:
    """The instance with each optic that its core may have named, on request those too that another one beats; itself
    without a core."""
    core = instance.sharing.core
    if core is None:
        yield instance
        return
    for optic in _core_optics(instance, beaten=beaten):
        sharing = instance.sharing.model_copy(update={"core": core.model_copy(update={"optic": optic.name})})
        yield instance.model_copy(update={"sharing": sharing})


def _core_optics(instance: Instance, *, beaten: bool = False) -> tuple[Optic, ...]:
    core, switch = instance.sharing.core, core_switch(instance)
    if core is None or switch is None:
        return ()
    if core.optic is not None:
        return tuple(optic for optic in instance.network.optics if optic.name == core.optic)
    reach_m = instance.network.link_reach_m[-1]
    if beaten:
        fitting = (optic for optic in instance.network.optics if optic.links_of(switch.port_gbit_s) == 1)
        return tuple(optic for optic in fitting if optic.reach_m >= reach_m)
    return optics_worth_having(instance, switch.port_gbit_s, reach_m)


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


def core_of(instance: Instance, islands: Mapping[str, Family]) -> CorePlan | None:
    """The core of these islands, by workload, written out."""
    switch, optic = core_switch(instance), core_optic(instance)
    if switch is None or optic is None:
        return None
    ports = sum(family.core_links for family in islands.values())
    count = core_switches(instance, ports)
    return CorePlan(
        switch=SwitchChoice(name=switch.name),
        switches=count,
        ports=ports,
        optic=optic.name,
        power_w=count * switch.w if "switch" in instance.objective.include else 0.0,
        islands=tuple(
            CoreLinks(workload=name, links=family.core_links, per_leaf=family.core_ports if family.tiers else 0)
            for name, family in islands.items()
        ),
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
        units["optics", far.name] += 2 * family.core_links
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
        links = sum(family.core_links for family, _ in built)
        units["switch", core.name] = core_switches(instance, links)
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
    return sum(family.gpus for family in built) <= instance.cluster.gpus[0] and keeps_limits(
        instance.limits, cost, together
    )
