"""At which price the choice turns: the range of each price within which a plan stays optimal.

With all other prices kept, what a plan costs is a straight line in the price of a product, since
its bill is. The range ends where the line of another plan goes below it. Solved at a price where
another plan is cheaper, the crossing of the two lines is the next price to solve at; where no plan
is cheaper there, the crossing is the end of the range. Each step finds another line, so that few
are needed, and fewer where lines of plans are known that were met on the way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from coopt.explain.inquiry import Inquiry
from coopt.instance.existing import Existing
from coopt.instance.numerics import PROVEN, REORDERED, SOLVED
from coopt.instance.schema import Instance, with_part
from coopt.instance.variants import with_gpu_value
from coopt.network.growth import (
    bought_share,
    energy_usd_per_w,
    factor,
    paid_as,
    support_share,
)
from coopt.network.parts import standing_units
from coopt.plan.contents import bought
from coopt.plan.explanation import PriceRange
from coopt.plan.parts import Design, Item
from coopt.plan.schema import Plan
from coopt.solving.resolves import UnprovenError, value_of

HIGHEST, HIGHEST_USD_PER_KWH = 1e9, 1e3
"""The largest prices an instance may hold."""
MOST_STEPS = 20  # each is a plan solved anew, whose line crosses nearer to today's price
KINDS = {
    "hb_domains": "hb",
    "nics": "nic",
    "switches": "switch",
    "optics": "optics",
    "fibre": "fibre",
    "panels": "switch",
}
USD = {"hb_domains": "usd_per_gpu", "panels": "usd_per_port"}
WATTS = {"hb_domains": "w_per_gpu", "panels": "w_per_port"}
STANDING = {"switches": ("switch",), "optics": ("optic", "optic_below")}
"""Keys of the tiers of a network that stands, by the list that has the same products."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """A price, or a power where that is minimised, and the instance with another; of electricity
    where there is no product.
    """

    item: str
    unit: str
    now: float
    with_price: Callable[[Instance, float], Instance]
    product: tuple[str, str] | None = None
    highest: float = HIGHEST

    def spending(self, plan: Plan) -> float:
        """What the plan spends on the product (USD or W)."""
        items = [item for item in bought(plan) if item.product == self.product]
        return sum(item.w if self.unit == "W" else item.usd for item in items)

    def slope(self, instance: Instance, plan: Plan, at: float) -> float:
        """How much the objective of a plan of such a price rises with it, with labour and
        support.
        """
        assert plan.cost is not None
        if self.product is None:
            return plan.cost.power_w * energy_usd_per_w(instance, 0) / self.now
        items = [item for item in bought(plan) if item.product == self.product]
        # what costs nothing is paid for at once: no phase has another price
        units = self.spending(plan) / at if at else self._bought(instance, items)
        if instance.objective.minimize != "tco":
            return units
        return units * bought_share(instance) + sum(self._supported(instance, plan))

    def _bought(self, instance: Instance, items: Sequence[Item]) -> float:
        """Units of the product beyond those that stand."""
        stands = 0 if self.unit == "W" else standing_units(instance)[self.product or ("", "")]
        return float(max(sum(item.count for item in items) - stands, 0))

    def _supported(self, instance: Instance, plan: Plan) -> Iterator[float]:
        """Support of the units that stand in each phase, for each USD of the price."""
        assert self.product is not None
        kinds: dict[tuple[str, str], str] = {
            item.product: paid_as(instance, item) for item in bought(plan)
        }
        kind = kinds.get(self.product, self.product[0])
        worst = instance.worst_prices.get(kind, 1.0)  # what is supported is priced as it is bought
        for t, count in enumerate(plan.couplings.installed_counts(self.product)):
            yield count * worst * factor(instance, t, kind) * support_share(instance, t)


def prices_of(instance: Instance) -> Iterator[Price]:
    """Every price of what an instance lists and its objective counts, and of electricity where it
    does; products with volume prices in USD are left out.
    """
    watts = instance.objective.minimize == "power"
    at_once = not (instance.phase or instance.worst_prices)
    discounted = {
        (discount.kind, discount.item)
        for discount in instance.sharing.discount
        if discount.usd is not None
    }
    for product, now, with_price in _listed(instance, watts):
        if (
            instance.objective.counts(product[0])
            and product not in discounted
            and (now > 0 or at_once)
        ):
            yield Price(
                item=product[1],
                unit="W" if watts else "USD",
                now=now,
                with_price=with_price,
                product=product,
            )
    usd_per_kwh = instance.objective.usd_per_kwh
    if instance.objective.minimize == "tco" and usd_per_kwh and at_once and not instance.site:
        yield Price(
            item="electricity",
            unit="USD/kWh",
            now=usd_per_kwh,
            with_price=lambda question, price: with_part(
                question, "objective", {"usd_per_kwh": price}
            ),
            highest=HIGHEST_USD_PER_KWH,
        )


def _listed(
    instance: Instance, watts: bool
) -> Iterator[tuple[tuple[str, str], float, Callable[[Instance, float], Instance]]]:
    """Every product that an instance lists, its price or power, and the instance with another."""
    keys, key = (WATTS, "w") if watts else (USD, "usd")
    for table, kind in KINDS.items():
        drawing = table != "fibre" or not watts
        listed = {entry.name: entry for entry in getattr(instance.network, table)}
        if table == "optics":
            listed = {optic.name: optic for link in instance.wan for optic in link.optics} | listed
        for item, entry in listed.items() if drawing else ():
            name = keys.get(table, key)
            yield (kind, item), getattr(entry, name), partial(_with_price, table, item, name)
    for gpu in instance.cluster.kinds:
        yield ("gpu", gpu.name), getattr(gpu, key), partial(with_gpu_value, gpu.name, key)


def price_count(instance: Instance) -> int:
    """How many prices, or powers, there are, those of products with volume prices in USD as
    well.
    """
    discounts = tuple(discount for discount in instance.sharing.discount if discount.usd is None)
    return sum(1 for _ in prices_of(with_part(instance, "sharing", {"discount": discounts})))


def _with_price(table: str, name: str, key: str, instance: Instance, price: float) -> Instance:
    """The instance with another price or power of a product, also where it stands already or ends
    channels.
    """
    ends = STANDING.get(table, ())

    def moved(part: Any) -> Any:
        is_same = part is not None and part.name == name
        return part.model_copy(update={key: price}) if is_same else part

    entries = tuple(map(moved, getattr(instance.network, table)))
    changed = with_part(instance, "network", {table: entries})

    def standing(stands: Existing) -> Existing:
        if table == "nics":
            return stands.model_copy(update={"nic": moved(stands.nic)})
        tiers = tuple(
            tier.model_copy(update={end: moved(getattr(tier, end)) for end in ends})
            for tier in stands.tiers
        )
        return stands.model_copy(update={"tiers": tiers})

    if table == "optics":
        wan = tuple(
            link.model_copy(update={"optics": tuple(map(moved, link.optics))})
            for link in instance.wan
        )
        changed = changed.model_copy(update={"wan": wan})
    existing = tuple(map(standing, instance.existing))
    return changed.model_copy(update={"existing": existing}) if existing else changed


class RangeEnd(NamedTuple):
    """An end of a range, and the design that takes over there; None where none does."""

    price: float
    taker: Design | None


class PlanLine(NamedTuple):
    """What a plan costs at the prices of an instance, and at which prices it was found where these
    are others, by product.
    """

    plan: Plan
    value: float
    at: dict[str, float]


class Turns:
    """Where the choice of a plan that costs `value` turns, one price of an instance at a time.

    `instance` is the question that is asked at other prices, `study` has that of the plan.
    """

    def __init__(self, study: Inquiry, instance: Instance, plan: Plan, value: float) -> None:
        self._study, self._instance, self._plan, self._value = study, instance, plan, value
        self._lines = [PlanLine(known, cost, {}) for known, cost in study.known]
        self._rounding = SOLVED if instance.sharing.discount else PROVEN

    def ranges(self, prices: Sequence[Price]) -> Iterator[PriceRange]:
        """Within which prices the plan stays optimal."""
        idle = [price for price in prices if price.now and not self._slope(price)]
        self._study.tell("prices of products that the plan does not buy")
        unmoved = self._unmoved(idle)
        for price in prices:
            range_of = partial(
                self._range, price, RangeEnd(0.0, None) if price in unmoved else None
            )
            noun = "power" if price.unit == "W" else "price"
            yield from self._study.answers(f"the {noun} of {price.item}", range_of)

    def _range(self, price: Price, low_end: RangeEnd | None) -> PriceRange:
        low, below = low_end or self._end(price, 0.0)
        highest = min(price.highest, self._affordable(price))
        high, above = self._end(price, highest)
        return PriceRange(
            item=price.item,
            unit=price.unit,
            now=price.now,
            low=low,
            high=None if high >= price.highest else high,
            below=below,
            above=above,
            tried=(0.0, highest),
        )

    def _slope(self, price: Price) -> float:
        return price.slope(self._instance, self._plan, price.now)

    def _cap(self, price: Price) -> float | None:
        """The limit on what is spent at a price."""
        if price.product is None:
            return None
        return self._instance.limits.sums.get("power" if price.unit == "W" else "capex")

    def _affordable(self, price: Price) -> float:
        """The price at which the plan exhausts the limit on purchase, or on power."""
        cap, cost = self._cap(price), self._plan.cost
        spending = price.spending(self._plan)
        if cap is None or cost is None or not spending:
            return price.highest
        use = cost.capex_usd if price.unit == "USD" else cost.power_w
        return price.now * (1 + max(cap - use, 0.0) / spending)

    def _unmoved(self, prices: Sequence[Price]) -> set[Price]:
        """Of prices that the plan does not pay, those at which it is optimal down to nothing, as
        far as they are found together.

        Where several such prices are nothing no plan costs more than with one of them so.
        """
        group = self._without_taker(prices)
        with contextlib.suppress(UnprovenError):
            while group and self._undercut(dict.fromkeys(group, 0.0)):
                left = self._without_taker(group)
                if len(left) == len(group):  # together they let in what none does alone
                    middle = len(group) // 2
                    halves = group[:middle], group[middle:]
                    return set.union(*map(self._unmoved, halves)) if middle else set()
                group = left
            return set(group)
        return set()

    def _without_taker(self, prices: Iterable[Price]) -> list[Price]:
        """The prices below which no known plan is cheaper, down to nothing."""
        return [price for price in prices if self._nearest(price, 0.0, self._lines).price == 0.0]

    def _end(self, price: Price, farthest: float) -> RangeEnd:
        """The end of the range towards a price; the price itself where nothing takes over."""
        if farthest == price.now or (farthest > price.now and not self._slope(price)):
            return RangeEnd(farthest, None)  # what the plan does not buy may cost more
        # a purchase that is capped may rule out what is cheaper today at a higher price
        capped = farthest > price.now and self._cap(price) is not None
        end, taker = self._nearest(price, farthest, () if capped else self._lines)
        for _ in range(MOST_STEPS):
            line = self._undercut({price: end})
            if line is None:
                break
            end, taker = self._nearest(price, end, (line,))
        return RangeEnd(end, taker)

    def _undercut(self, at: dict[Price, float]) -> PlanLine | None:
        """The plan that is cheaper than this one at some other prices; None where none is."""
        question, ours = self._instance, self._value
        for price, amount in at.items():
            question = price.with_price(question, amount)
            ours += self._slope(price) * (amount - price.now)
        plan = self._study.resolver.plan(question, reasons=False)
        value = value_of(plan)
        if value is None or value >= ours - abs(ours) * self._rounding:
            return None
        for price, amount in at.items():
            value -= price.slope(self._instance, plan, amount) * (amount - price.now)
        self._lines.append(PlanLine(plan, value, {price.item: to for price, to in at.items()}))
        return self._lines[-1]

    def _nearest(self, price: Price, farthest: float, lines: Iterable[PlanLine]) -> RangeEnd:
        """Where the first of some lines crosses that of the plan on the way to a price."""
        own, now, end = self._slope(price), price.now, RangeEnd(farthest, None)
        for plan, value, at in lines:
            steeper = price.slope(self._instance, plan, at.get(price.item, now)) - own
            if (steeper < 0) == (farthest > now) and abs(steeper) > REORDERED * abs(own):
                # rounding must not carry the crossing of lines that are almost equal past today's
                way = (self._value - value) / steeper
                way = max(way, 0.0) if farthest > now else min(way, 0.0)
                # nor call what is equal at the end, but for rounding, nearer
                if abs(way) < abs(end.price - now) * (1 - REORDERED):
                    end = RangeEnd(now + way, plan.design)
        return end
