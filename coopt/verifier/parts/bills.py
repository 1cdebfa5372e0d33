"""What a design costs: lines of the bill, sums, whether they keep limits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NamedTuple

from coopt.instance.hardware import Panel
from coopt.instance.schema import CostKind, Instance, Objective, ObjectiveKind
from coopt.verifier.checks.verdict import ROUNDING
from coopt.verifier.parts.space import DesignFamily, OpticPair
from coopt.verifier.parts.switch_levels import SwitchLevel


class CountedItem(NamedTuple):
    """A line of the bill; `unit_usd` in USD, `unit_w` in W."""

    kind: CostKind | Literal["wan"]
    item: str
    amount: int
    unit_usd: float
    unit_w: float


class UnitPrice(NamedTuple):
    """List price (USD) and power (W) of one unit of an item."""

    usd: float
    w: float


@lru_cache(maxsize=4096)
def decimal(number: float) -> Fraction:
    """A number as it is written."""
    return Fraction(repr(number))


def exact_sum(terms: Iterable[tuple[int, Fraction]]) -> Fraction:
    """Amounts at a rate each, summed; those of one denominator as whole numbers, which takes a fraction of the time."""
    numerators: Counter[int] = Counter()
    for amount, rate in terms:
        numerators[rate.denominator] += amount * rate.numerator
    return sum((Fraction(total, denominator) for denominator, total in numerators.items()), Fraction())


class BillTotal(NamedTuple):
    """Sums of a bill."""

    capex_usd: float
    power_w: float
    tco_usd: float

    def of(self, kind: ObjectiveKind) -> float:
        """The sum that an objective names."""
        return {"capex": self.capex_usd, "power": self.power_w, "tco": self.tco_usd}[kind]


def electricity_usd(objective: Objective, power_w: float) -> float:
    """Price of running `power_w` for all years (USD)."""
    return objective.years * 8760 * power_w / 1000 * objective.pue * objective.usd_per_kwh


def priced_total(capex_usd: float, power_w: float, objective: Objective) -> BillTotal:
    """The sums that follow from price and power."""
    work = capex_usd * (objective.labour_share + objective.years * objective.support_share)
    return BillTotal(capex_usd, power_w, capex_usd + work + electricity_usd(objective, power_w))


def bill_total(lines: Iterable[CountedItem], objective: Objective) -> BillTotal:
    """Sums of a bill, exactly alike for all orders and divisions of its lines."""
    amounts: Counter[CountedItem] = Counter()
    for line in lines:
        amounts[line._replace(amount=0)] += line.amount
    capex_usd = math.fsum(amount * unit.unit_usd for unit, amount in amounts.items())
    return priced_total(capex_usd, math.fsum(amount * unit.unit_w for unit, amount in amounts.items()), objective)


def cheapest_panel(instance: Instance, kind: ObjectiveKind) -> Panel | None:
    """The panel whose ports add least to the objective, if any is listed."""
    panels = instance.network.panels
    return min(
        panels, key=lambda p: priced_total(p.usd_per_port, p.w_per_port, instance.objective).of(kind), default=None
    )


def bill(
    instance: Instance, family: DesignFamily, levels: Sequence[SwitchLevel], optics: Sequence[OpticPair]
) -> list[CountedItem]:
    """All lines of a design that `include` lets count and that are not empty."""
    domains, gear, lines = family.bought, family.gear, domain_lines(instance, family)
    if gear is not None:
        lines.append(CountedItem("nic", gear.nic.name, domains * family.rails, gear.nic.usd, gear.nic.w))
        for tier, level in enumerate(levels, start=1):
            box = gear.at(tier)
            lines.append(CountedItem("switch", box.name, level.switches, box.usd, box.w))
        for level, ends in zip(levels, optics, strict=True):
            for optic, count in zip(ends, level.modules(gear.carried(ends)), strict=True):
                lines.append(CountedItem("optics", optic.name, count, optic.usd, optic.w))
    return [line for line in lines if line.kind in instance.objective.include and line.amount]


def domain_lines(instance: Instance, family: DesignFamily) -> list[CountedItem]:
    """HB domains, the GPUs in them that stay idle, and those that train."""
    hb, gpu, domains = family.hb, instance.cluster.gpu, family.bought
    return [
        CountedItem("hb", hb.name, domains * hb.size, hb.usd_per_gpu, hb.w_per_gpu),
        CountedItem("hb", f"{gpu.name} (idle)", domains * hb.size - family.gpus, gpu.usd, gpu.w),
        CountedItem("gpu", gpu.name, family.gpus, gpu.usd, gpu.w),
    ]


def within_limits(instance: Instance, family: DesignFamily, sums: BillTotal, short: float = 0.0) -> bool:
    """Whether price, power and racks stay within their limits; a negative `short` puts rounding in their favour."""
    limits = instance.limits
    if not (keeps(sums.capex_usd, limits.capex_usd, short) and keeps(sums.power_w / 1e6, limits.power_mw, short)):
        return False
    if limits.racks is None or family.hb.racks is None:
        return True
    return least_racks(family.bought, family.hb.racks, max(-short, 0.0)) <= limits.racks


def keeps(total: float, limit: float | None, short: float) -> bool:
    """Whether a sum stays within a limit, if there is one; with a negative `short` to within its rounding."""
    return limit is None or total <= limit * (1 + ROUNDING if short < 0 else 1.0)


def least_racks(domains: int, racks: float, slack: float = 0.0) -> int:
    """Racks of all domains, rounded up after taking a relative `slack` off."""
    racks_filled = domains * racks * (1 - slack)
    return -int(-racks_filled // 1)


def exact_worth(
    instance: Instance, lines: Iterable[CountedItem], kind: ObjectiveKind, factors: Mapping[str, float] | None = None
) -> Fraction:
    """What a bill is worth, with prices, their factors by kind, watts and terms as they are written."""
    lines, terms, idle = tuple(lines), instance.objective, f"{instance.cluster.gpu.name} (idle)"
    factor = {name: decimal(value) for name, value in (factors or {}).items()}
    kinds = ["gpu" if line.item == idle else line.kind for line in lines]
    prices = (decimal(line.unit_usd) * factor.get(name, Fraction(1)) for name, line in zip(kinds, lines, strict=True))
    capex = exact_sum((line.amount, price) for line, price in zip(lines, prices, strict=True))
    if kind == "capex":
        return capex
    power_w = exact_sum((line.amount, decimal(line.unit_w)) for line in lines)
    if kind == "power":
        return power_w
    kwh = power_w * decimal(terms.years) * 8760 / 1000 * decimal(terms.pue)
    work = decimal(terms.labour_share) + decimal(terms.years) * decimal(terms.support_share)
    return capex * (1 + work) + kwh * decimal(terms.usd_per_kwh)
