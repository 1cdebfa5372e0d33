"""What a growing network buys in each phase, and what that costs (docs/phased.md).

A unit may be bought in any phase up to the one that needs it and stored until then, so each is bought where it is
cheapest; of equally cheap phases the last.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from coopt.instance.phases import PriceFactors
from coopt.instance.schema import Instance
from coopt.instance.variants import years_of
from coopt.network.growth import Line
from coopt.network.parts import bill
from coopt.network.prices import usd_per_w
from coopt.network.quantities import Key
from coopt.plan.phases import Stored
from coopt.plan.schema import Cost, Item

RETROFIT = "retrofit links"


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What one phase buys, keeps in store at its end, spends, draws and pays for electricity."""

    bought: tuple[Item, ...]
    stored: tuple[Stored, ...]
    capex_usd: float
    power_w: float
    energy_usd: float


def factor(prices: PriceFactors, kind: str) -> float:
    """What a phase pays for a kind of item over the price of the instance."""
    return float(getattr(prices, kind))


def buying_phase(instance: Instance, kind: str, needed: int) -> int:
    """The phase in which a unit is bought that is needed from a phase on."""
    return min(range(needed, -1, -1), key=lambda phase: factor(instance.phase[phase].price, kind))


def energy_usd_per_w(instance: Instance, phase: int) -> float:
    """Price of drawing one watt from a phase to the next."""
    whole = instance.objective.model_copy(update={"years": years_of(instance, phase)})
    return usd_per_w(whole) * instance.phase[phase].price.energy


def spending(instance: Instance, line: Line, uplinks: Sequence[int], *, ahead: bool = True) -> tuple[Spent, ...]:
    """What every phase buys and pays when its leaves have so many uplinks.

    Parameters
    ----------
    uplinks
        Of the first phases, as many as are looked at.
    ahead
        Whether units may be bought before the phase that needs them.
    """
    bills = [bill(instance, family, u) for family, u in zip(line.phases, uplinks, strict=False)]
    units: dict[Key, Item] = {(item.kind, item.item): item for lines in bills for item in lines}
    placed: list[Counter[Key]] = [Counter({(item.kind, item.item): item.count for item in lines}) for lines in bills]
    bought: list[Counter[Key]] = [Counter() for _ in bills]
    for t, counts in enumerate(placed):
        for key, count in counts.items():
            more = count - (placed[t - 1][key] if t else 0)
            assert more >= 0, "nothing is thrown away"
            bought[buying_phase(instance, key[0], t) if ahead else t][key] += more
    found, store = [], Counter[Key]()
    for t, lines in enumerate(bills):
        store.update(bought[t])
        items = (*_items(instance, t, bought[t], units), *_labour(instance, t, line, uplinks))
        power_w = math.fsum(item.w for item in lines)
        found.append(
            Spent(
                bought=items,
                stored=tuple(
                    Stored(item=item.item, kind=item.kind, count=store[key] - placed[t][key])
                    for key, item in units.items()
                    if store[key] > placed[t][key]
                ),
                capex_usd=math.fsum(item.usd for item in items),
                power_w=power_w,
                energy_usd=power_w * energy_usd_per_w(instance, t),
            )
        )
    return tuple(found)


def _items(instance: Instance, phase: int, bought: Counter[Key], units: dict[Key, Item]) -> list[Item]:
    """Lines of the bill at the prices of a phase, in the order of the bill."""
    lines = []
    for key, unit in units.items():
        if bought[key]:
            usd, count = unit.unit_usd * factor(instance.phase[phase].price, key[0]), bought[key]
            priced = {"count": count, "unit_usd": usd, "usd": count * usd, "w": count * unit.unit_w}
            lines.append(unit.model_copy(update=priced))
    return lines


def _labour(instance: Instance, phase: int, line: Line, uplinks: Sequence[int]) -> list[Item]:
    """The line for links added to switches that stood before; none where there are none or they cost nothing."""
    rate = instance.phase[phase].retrofit_usd_per_link
    count = line.retrofit(phase).links(uplinks[phase - 1], uplinks[phase]) if phase else 0
    if not (count and rate):
        return []
    return [Item(item=RETROFIT, kind="labour", count=count, unit_usd=rate, usd=count * rate, unit_w=0.0, w=0.0)]


def whole_cost(instance: Instance, spent: Sequence[Spent]) -> Cost:
    """The bill of the phases spent in, each line with its year, and electricity from the first phase on."""
    items = tuple(
        item.model_copy(update={"item": f"{item.item}, {phase.year:.10g}"})
        for phase, one in zip(instance.phase, spent, strict=False)
        for item in one.bought
    )
    capex_usd = math.fsum(item.usd for item in items)
    return Cost(
        capex_usd=capex_usd,
        power_w=math.fsum(item.w for item in items),
        tco_usd=capex_usd + math.fsum(one.energy_usd for one in spent),
        items=items,
    )
