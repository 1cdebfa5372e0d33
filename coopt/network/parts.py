"""The bill of materials of a design, and what the design costs."""

from __future__ import annotations

import math
from collections import Counter

from coopt.instance.hardware import Optic
from coopt.instance.schema import CostKind, Instance, Objective
from coopt.network.family import Family, levels
from coopt.network.prices import usd_per_w
from coopt.plan.schema import Cost, Item


def bill(instance: Instance, family: Family, uplinks: int) -> tuple[Item, ...]:
    """The lines that `include` counts; none with a count of 0."""
    tiers = levels(family, uplinks)
    gpu, hb, nic, switch = instance.cluster.gpu, family.hb, family.nic, family.switch
    idle = family.installed_gpus - family.gpus
    lines = [
        _line("gpu", gpu.name, family.gpus, gpu.usd, gpu.w),
        _line("hb", hb.name, family.installed_gpus, hb.usd_per_gpu, hb.w_per_gpu),
        _line("hb", f"{gpu.name} (idle)", idle, gpu.usd, gpu.w),
        _line("nic", nic.name, family.nic_count, nic.usd, nic.w),
        _line("switch", switch.name, sum(level.switches for level in tiers), switch.usd, switch.w),
    ]
    ends: Counter[Optic] = Counter()
    for optic, level in zip(family.optics, tiers, strict=True):
        ends[optic] += 2 * level.links
    lines += [_line("optics", optic.name, count, optic.usd, optic.w) for optic, count in ends.items()]
    return tuple(line for line in lines if line.count and line.kind in instance.objective.include)


def _line(kind: CostKind, item: str, count: int, unit_usd: float, unit_w: float) -> Item:
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
