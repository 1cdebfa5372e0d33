"""What a design costs: lines of the bill, sums and limits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from coopt.instance.hardware import Optic, Panel
from coopt.instance.schema import CostKind, Instance, Objective, ObjectiveKind
from coopt.verifier.layouts import Level
from coopt.verifier.space import Family


class Line(NamedTuple):
    """A line of the bill; `unit_usd` in USD, `unit_w` in W."""

    kind: CostKind | Literal["wan"]
    item: str
    amount: int
    unit_usd: float
    unit_w: float


class Total(NamedTuple):
    """Sums of a bill."""

    capex_usd: float
    power_w: float
    tco_usd: float

    def of(self, kind: ObjectiveKind) -> float:
        """The one an objective names."""
        return {"capex": self.capex_usd, "power": self.power_w, "tco": self.tco_usd}[kind]


def electricity_usd(objective: Objective, power_w: float) -> float:
    """Price of running `power_w` for all years (USD)."""
    return objective.years * 8760 * power_w / 1000 * objective.pue * objective.usd_per_kwh


def total(capex_usd: float, power_w: float, objective: Objective) -> Total:
    """The sums that follow from price and power."""
    return Total(capex_usd, power_w, capex_usd + electricity_usd(objective, power_w))


def total_of(lines: Iterable[Line], objective: Objective) -> Total:
    """Sums of a bill, alike for all orders and divisions of its lines: a limit at what a design takes holds exactly."""
    amounts: Counter[Line] = Counter()
    for line in lines:
        amounts[line._replace(amount=0)] += line.amount
    capex_usd = math.fsum(amount * unit.unit_usd for unit, amount in amounts.items())
    return total(capex_usd, math.fsum(amount * unit.unit_w for unit, amount in amounts.items()), objective)


def cheapest_panel(instance: Instance, kind: ObjectiveKind) -> Panel | None:
    """The panel whose ports add least to the objective, if any is listed."""
    panels = instance.network.panels
    return min(panels, key=lambda p: total(p.usd_per_port, p.w_per_port, instance.objective).of(kind), default=None)


def bill(instance: Instance, family: Family, levels: Sequence[Level], optics: Sequence[Optic]) -> list[Line]:
    """All lines of a design that `include` lets count and that are not empty."""
    domains, gear, lines = family.domains, family.gear, domain_lines(instance, family)
    if gear is not None:
        switches = sum(level.switches for level in levels)
        lines.append(Line("nic", gear.nic.name, domains * family.rails, gear.nic.usd, gear.nic.w))
        lines.append(Line("switch", gear.switch.name, switches, gear.switch.usd, gear.switch.w))
    for level, optic in zip(levels, optics, strict=True):
        lines.append(Line("optics", optic.name, 2 * level.links, optic.usd, optic.w))
    return [line for line in lines if line.kind in instance.objective.include and line.amount]


def domain_lines(instance: Instance, family: Family) -> list[Line]:
    """HB domains, the GPUs in them that stay idle, and those that train."""
    hb, gpu, domains = family.hb, instance.cluster.gpu, family.domains
    return [
        Line("hb", hb.name, domains * hb.size, hb.usd_per_gpu, hb.w_per_gpu),
        Line("hb", f"{gpu.name} (idle)", domains * (hb.size - family.active), gpu.usd, gpu.w),
        Line("gpu", gpu.name, family.gpus, gpu.usd, gpu.w),
    ]


def within_limits(instance: Instance, family: Family, sums: Total) -> bool:
    """Whether price, power and racks stay within their limits."""
    limits = instance.limits
    if limits.capex_usd is not None and sums.capex_usd > limits.capex_usd:
        return False
    if limits.power_mw is not None and sums.power_w / 1e6 > limits.power_mw:
        return False
    if limits.racks is None or family.hb.racks is None:
        return True
    return least_racks(family.domains, family.hb.racks) <= limits.racks


def least_racks(domains: int, racks: float, slack: float = 0.0) -> int:
    """Racks of all domains, rounded up after taking a relative `slack` off."""
    whole = domains * racks * (1 - slack)
    return -int(-whole // 1)
