"""What each entry of the instance's lists is worth: the cheapest plan without it, or with nothing else in its list.

The range of each price within which a plan stays optimal is found by solving at other prices.

With all other prices kept, what a plan costs is a straight line in the price of a product, since its bill is. The range
ends where the line of another plan goes below it. Solved at a price where another plan is cheaper, the crossing of the
two lines is the next price to solve at; where no plan is cheaper there, the crossing is the end of the range. Each step
finds another line, so that few are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from coopt.instance.base import Entry
from coopt.instance.hardware import Gpu
from coopt.instance.rules.agreement import disagreements
from coopt.instance.schema import Instance
from coopt.network.growth import bought_share, factor, paid_as, support_share
from coopt.plan.contents import SOLD_AS, bought
from coopt.plan.explanation import PriceRange, Rival
from coopt.plan.parts import Design
from coopt.plan.schema import Plan
from coopt.solving.reasons.labels import why_worse
from coopt.solving.reasons.limits import with_entry, with_part
from coopt.solving.sensitivity.resolves import Resolver, cheaper, value_of

TIMES = 10.0
"""Prices are tried from one part in so many of what they are to so many times as much."""
ROUNDING = 1e-6
"""Costs closer than this share of themselves are equal: discounts as shares are rounded to cents."""
MOST_STEPS = 20  # each is a plan solved anew, whose line crosses nearer to today's price
KINDS = {"hb_domains": "hb", "nics": "nic", "switches": "switch", "optics": "optics", "panels": "switch"}
USD = {"hb_domains": "usd_per_gpu", "panels": "usd_per_port"}
WATTS = {"hb_domains": "w_per_gpu", "panels": "w_per_port"}


@dataclass(frozen=True, kw_only=True)
class ListedChoice:
    """An entry of a list with more than one, by the key of the list."""

    part: str
    entry: Any

    @property
    def name(self) -> str:
        """The entry as it stands in the instance."""
        return self.entry.name if isinstance(self.entry, Entry) else str(self.entry)

    def alone(self, instance: Instance) -> Instance:
        """The instance with nothing else in the list."""
        return _with_list(instance, self.part, (self.entry,))

    def excluded(self, instance: Instance) -> Instance:
        """The instance without it in the list."""
        return _with_list(instance, self.part, tuple(one for one in instance.lists[self.part] if one != self.entry))


def lists_of_choices(instance: Instance) -> Iterator[tuple[ListedChoice, ...]]:
    """The entries of every list with more than one, and the numbers of GPUs to choose from."""
    for part, entries in instance.lists.items():
        if len(entries) > 1 and part != "network.pod_bundles":
            yield tuple(ListedChoice(part=part, entry=entry) for entry in entries)


def rivals_in(
    resolver: Resolver, instance: Instance, plan: Plan, value: float, entries: tuple[ListedChoice, ...]
) -> list[Rival]:
    """The rivals of one list; of two entries, one alone is the list without the other, which is said once."""
    every = (_rival(resolver, instance, plan, value, choice) for choice in entries)
    found = [one for one in every if one is not None]
    missed = any(one.excluded for one in found)
    return [one for one in found if one.excluded or not (missed and len(entries) == 2)]


def _rival(resolver: Resolver, instance: Instance, plan: Plan, value: float, choice: ListedChoice) -> Rival | None:
    """What the plan costs more without an entry; where nothing, what it costs with that entry alone.

    None where the rest of the instance needs the list as it is.
    """
    without, alone = choice.excluded(instance), choice.alone(instance)
    if _goes_together(instance, without):
        found = _compared(resolver, instance, plan, value, choice, without, excluded=True)
        if found.value is None or cheaper(value, found.value):
            return found
    if _goes_together(instance, alone):
        return _compared(resolver, instance, plan, value, choice, alone, excluded=False)
    return None


def _compared(
    resolver: Resolver,
    instance: Instance,
    plan: Plan,
    value: float,
    choice: ListedChoice,
    asked: Instance,
    *,
    excluded: bool,
) -> Rival:
    other = resolver.plan(asked)
    found = value_of(other)
    if found is None or other.cost is None:
        why = "; ".join(other.explanation) or "nothing meets every bound"
        extra = None
    else:
        assert plan.cost is not None
        extra = found - value
        same = not cheaper(value, found)
        why = "costs the same" if same else why_worse(instance.objective, plan.cost, other.cost)
    return Rival(
        part=choice.part,
        choice=choice.name,
        value=found,
        extra=extra,
        design=other.design,
        why=why or "costs more in another way",
        excluded=excluded,
    )


def _with_list(instance: Instance, part: str, entries: tuple[Any, ...]) -> Instance:
    """The instance with another list, and without discounts and panels for what it lists no longer."""
    table, key = part.split(".")
    changed = with_part(instance, table, {key: entries})
    if key == "fabrics" and "direct" not in entries:
        changed = with_part(changed, "network", {"panels": ()})
    if key not in SOLD_AS or not instance.sharing.discount:
        return changed
    names = {entry.name for entry in entries}
    kept = tuple(one for one in instance.sharing.discount if one.kind != SOLD_AS[key] or one.item in names)
    return with_part(changed, "sharing", {"discount": kept})


def _goes_together(instance: Instance, changed: Instance) -> bool:
    """Whether the changed instance is a question, as far as the instance is one."""
    return set(disagreements(changed)) <= set(disagreements(instance))


@dataclass(frozen=True, kw_only=True)
class ProductPrice:
    """The price of a product, or its power where that is minimised, and the instance with another."""

    product: tuple[str, str]
    unit: str
    now: float
    changed: Callable[[Instance, float], Instance]

    def spent(self, plan: Plan) -> float:
        """What the plan spends on the product (USD or W)."""
        items = [item for item in bought(plan) if item.product == self.product]
        return sum(item.w if self.unit == "W" else item.usd for item in items)

    def slope(self, instance: Instance, plan: Plan, at: float) -> float:
        """How much the objective of a plan of such a price rises with it, with labour and support."""
        spent = self.spent(plan) / at
        if instance.objective.minimize != "tco":
            return spent
        return spent * bought_share(instance) + sum(self._supported(instance, plan))

    def _supported(self, instance: Instance, plan: Plan) -> Iterator[float]:
        """Support of the units that stand in each phase, for each USD of the price."""
        kinds: dict[tuple[str, str], str] = {item.product: paid_as(instance, item) for item in bought(plan)}
        for t, count in enumerate(plan.couplings.standing_counts(self.product)):
            by = factor(instance, t, kinds.get(self.product, self.product[0]))
            yield count * by * support_share(instance, t)


def prices_of(instance: Instance) -> Iterator[ProductPrice]:
    """Every price above 0 of what an instance lists; products with volume prices in USD are left out."""
    watts = instance.objective.minimize == "power"
    fixed = {(one.kind, one.item) for one in instance.sharing.discount if one.usd is not None}
    unit = "W" if watts else "USD"
    for table, kind in KINDS.items():
        key = (WATTS if watts else USD).get(table, "w" if watts else "usd")
        for place, entry in enumerate(getattr(instance.network, table)):
            if getattr(entry, key) > 0 and (kind, entry.name) not in fixed:
                yield ProductPrice(
                    product=(kind, entry.name),
                    unit=unit,
                    now=getattr(entry, key),
                    changed=partial(_with_price, table, place, key),
                )
    key = "w" if watts else "usd"
    for gpu in instance.cluster.generations or (instance.cluster.gpu,):
        now, changed = getattr(gpu, key), partial(_with_gpu, gpu.name, key)
        if now > 0 and ("gpu", gpu.name) not in fixed:
            yield ProductPrice(product=("gpu", gpu.name), unit=unit, now=now, changed=changed)


def _with_price(table: str, place: int, key: str, instance: Instance, price: float) -> Instance:
    entries = getattr(instance.network, table)
    return with_part(instance, "network", {table: with_entry(entries, place, {key: price})})


def _with_gpu(name: str, key: str, instance: Instance, price: float) -> Instance:
    def priced(gpu: Gpu) -> Gpu:
        return gpu.model_copy(update={key: price}) if gpu.name == name else gpu

    generations = tuple(map(priced, instance.cluster.generations))
    return with_part(instance, "cluster", {"gpu": priced(instance.cluster.gpu), "generations": generations})


def price_range(resolver: Resolver, instance: Instance, plan: Plan, value: float, price: ProductPrice) -> PriceRange:
    """Within which prices a plan that costs `value` stays optimal, as far as they are tried."""
    lowest, highest = price.now / TIMES, min(price.now * TIMES, _affordable(instance, plan, price))
    low, below = _end(resolver, instance, plan, value, price, lowest)
    high, above = _end(resolver, instance, plan, value, price, highest)
    return PriceRange(
        item=price.product[1],
        unit=price.unit,
        now=price.now,
        low=low,
        high=None if high >= price.now * TIMES else high,
        below=below,
        above=above,
        tried=(lowest, price.now * TIMES),
    )


def _affordable(instance: Instance, plan: Plan, price: ProductPrice) -> float:
    """The price at which the plan exhausts the limit on purchase, or on power."""
    assert plan.cost is not None
    spent, cap = price.spent(plan), instance.limits.sums.get("capex" if price.unit == "USD" else "power")
    if cap is None or spent == 0:
        return price.now * TIMES
    used = plan.cost.capex_usd if price.unit == "USD" else plan.cost.power_w
    return price.now * (1 + max(cap - used, 0.0) / spent)


def _end(
    resolver: Resolver, instance: Instance, plan: Plan, value: float, price: ProductPrice, farthest: float
) -> tuple[float, Design | None]:
    """The end of the range towards a price, and the design that takes over there; the price itself where none does."""
    slope, end, taker = price.slope(instance, plan, price.now), farthest, None
    if not slope and farthest >= price.now:
        return farthest, None  # what the plan does not buy may cost more
    for _ in range(MOST_STEPS):
        other = resolver.plan(price.changed(instance, end), reasons=False)
        found, ours = value_of(other), value + slope * (end - price.now)
        if found is None or found >= ours - abs(ours) * ROUNDING:
            return end, taker
        steeper = price.slope(instance, other, end) - slope
        crossing = end + (ours - found) / steeper if steeper else price.now
        taker = other.design
        end = min(max(crossing, min(price.now, end)), max(price.now, end))
    return end, taker
