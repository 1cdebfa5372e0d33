"""The bill of materials of a design, and what the design costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from coopt.instance.hardware import Gpu, HbDomain, Optic
from coopt.instance.schema import CostKind, Instance, Objective
from coopt.network.family import Family, levels
from coopt.network.prices import usd_per_w
from coopt.plan.schema import Cost, Item


def bill(instance: Instance, family: Family, uplinks: int) -> tuple[Item, ...]:
    """The lines that `include` counts; none with a count of 0."""
    tiers = levels(family, uplinks)
    nic, switch = family.nic, family.switch
    lines = [
        *domain_lines(instance.cluster.gpu, family.hb, family.gpus, family.installed_gpus),
        line("nic", nic.name, family.nic_count, nic.usd, nic.w),
        line("switch", switch.name, sum(level.switches for level in tiers), switch.usd, switch.w),
    ]
    ends: Counter[Optic] = Counter()
    for optic, level in zip(family.optics, tiers, strict=True):
        ends[optic] += 2 * level.links
    lines += [line("optics", optic.name, count, optic.usd, optic.w) for optic, count in ends.items()]
    return counted(instance, lines)


def domain_lines(gpu: Gpu, hb: HbDomain, gpus: int, installed: int) -> list[Item]:
    """GPUs that train, HB domains, and GPUs that stay idle."""
    return [
        line("gpu", gpu.name, gpus, gpu.usd, gpu.w),
        line("hb", hb.name, installed, hb.usd_per_gpu, hb.w_per_gpu),
        line("hb", gpu.idle_name, installed - gpus, gpu.usd, gpu.w),
    ]


def counted(instance: Instance, lines: Iterable[Item]) -> tuple[Item, ...]:
    """The lines that `include` counts; none with a count of 0."""
    return tuple(each for each in lines if each.count and each.kind in instance.objective.include)


def line(kind: CostKind, item: str, count: int, unit_usd: float, unit_w: float) -> Item:
    """A line of the bill."""
    return Item(
        item=item, kind=kind, count=count, unit_usd=unit_usd, usd=count * unit_usd, unit_w=unit_w, w=count * unit_w
    )


def total(objective: Objective, items: tuple[Item, ...]) -> Cost:
    """The sums of a bill."""
    capex_usd = math.fsum(item.usd for item in items)
    power_w = math.fsum(item.w for item in items)
    return Cost(capex_usd=capex_usd, power_w=power_w, tco_usd=capex_usd + power_w * usd_per_w(objective), items=items)


def cost_of(instance: Instance, family: Family, uplinks: int) -> Cost:
    """What a design costs."""
    return total(instance.objective, bill(instance, family, uplinks))


def racks(family: Family) -> int | None:
    """Racks that the HB domains fill, where the catalog knows."""
    return None if family.hb.racks is None else math.ceil(family.domains * family.hb.racks)
