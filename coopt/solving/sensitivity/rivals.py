"""What each entry of the instance's lists is worth: the cheapest plan without it, or with nothing
else in its list.

The range of each price within which a plan stays optimal is found by solving at other prices.

With all other prices kept, what a plan costs is a straight line in the price of a product, since
its bill is. The range ends where the line of another plan goes below it. Solved at a price where
another plan is cheaper, the crossing of the two lines is the next price to solve at; where no plan
is cheaper there, the crossing is the end of the range. Each step finds another line, so that few
are needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from coopt.instance.base import Entry
from coopt.instance.hardware import Gpu
from coopt.instance.numerics import SOLVED
from coopt.instance.rules.agreement import disagreements
from coopt.instance.schema import Instance
from coopt.network.growth import bought_share, factor, paid_as, support_share
from coopt.plan.contents import SOLD_AS, bought, built, parts_used
from coopt.plan.explanation import PriceRange, Rival
from coopt.plan.parts import Design, DirectLinks
from coopt.plan.schema import Plan
from coopt.solving.reasons.labels import why_worse
from coopt.solving.reasons.limits import with_entry, with_part
from coopt.solving.sensitivity.resolves import Resolver, value_of

TIMES = 10.0
"""Prices are tried from one part in so many of what they are to so many times as much."""
MOST_STEPS = 20  # each is a plan solved anew, whose line crosses nearer to today's price
KINDS = {
    "hb_domains": "hb",
    "nics": "nic",
    "switches": "switch",
    "optics": "optics",
    "panels": "switch",
}
USD = {"hb_domains": "usd_per_gpu", "panels": "usd_per_port"}
IDLE_WHERE_NOT_BUILT = (*SOLD_AS, "fabrics", "nics_per_gpu", "gpus_per_nic", "nic_planes")
"""Lists of whose entries a plan shows which ones it has."""
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

    def as_only(self, instance: Instance) -> Instance:
        """The instance with nothing else in the list."""
        return _with_list(instance, self.part, (self.entry,))

    def excluded(self, instance: Instance) -> Instance:
        """The instance without it in the list."""
        return _with_list(
            instance,
            self.part,
            tuple(entry for entry in instance.lists[self.part] if entry != self.entry),
        )

    def is_idle_in(self, plan: Plan) -> bool:
        """Whether a plan stands as it is without it; not where lists are told apart by more than
        what is built.
        """
        key = self.part.rpartition(".")[2]
        if key not in IDLE_WHERE_NOT_BUILT:
            return False
        used = {*map(str, parts_used(plan, key))}
        if key == "nics":  # GPUs of a single domain have theirs, which no bill counts
            used |= {
                (one if isinstance(one, DirectLinks) else one.fabric).nic.name
                for one in built(plan)
            }
        return self.name not in used


def lists_of_choices(instance: Instance) -> Iterator[tuple[ListedChoice, ...]]:
    """The entries of every list with more than one, and the numbers of GPUs to choose from."""
    for part, entries in instance.lists.items():
        if len(entries) > 1:
            yield tuple(ListedChoice(part=part, entry=entry) for entry in entries)


def rivals_in(
    resolver: Resolver,
    instance: Instance,
    plan: Plan,
    optimum: Plan,
    value: float,
    entries: tuple[ListedChoice, ...],
) -> list[Rival]:
    """The rivals of one list to a plan that costs `value`, which may be more than the optimum does.

    Of two entries, one alone is the list without the other, which is said once.
    """
    answers = (_rival(resolver, instance, plan, optimum, value, choice) for choice in entries)
    rivals = [rival for rival in answers if rival is not None]
    missed = any(rival.excluded for rival in rivals)
    return [rival for rival in rivals if rival.excluded or not (missed and len(entries) == 2)]


def _rival(
    resolver: Resolver,
    instance: Instance,
    plan: Plan,
    optimum: Plan,
    value: float,
    choice: ListedChoice,
) -> Rival | None:
    """What the plan costs more without an entry; where nothing, what it costs with that entry
    alone.

    None where the rest of the instance needs the list as it is.
    """
    without, restricted = choice.excluded(instance), choice.as_only(instance)
    # without what the optimum does not have nothing costs more than it does
    if not choice.is_idle_in(optimum) and _goes_together(instance, without):
        rival = _compared(resolver, instance, plan, value, choice, without, excluded=True)
        if rival.extra is None or rival.extra > 0:
            return rival
    if _goes_together(instance, restricted):
        return _compared(resolver, instance, plan, value, choice, restricted, excluded=False)
    return None


def _compared(
    resolver: Resolver,
    instance: Instance,
    plan: Plan,
    value: float,
    choice: ListedChoice,
    question: Instance,
    *,
    excluded: bool,
) -> Rival:
    answer = resolver.plan(question)
    rival_value = value_of(answer)
    if rival_value is None or answer.cost is None:
        reason = "; ".join(answer.explanation) or "nothing meets every bound"
        extra = None
    else:
        assert plan.cost is not None
        extra = resolver.beyond(rival_value, value)
        reason = (
            "costs the same" if not extra else why_worse(instance.objective, plan.cost, answer.cost)
        )
    return Rival(
        part=choice.part,
        choice=choice.name,
        value=rival_value,
        extra=extra,
        design=answer.design,
        why=reason
        or f"costs {'less' if extra is not None and extra < 0 else 'more'} in another way",
        excluded=excluded,
    )


def _with_list(instance: Instance, part: str, entries: tuple[Any, ...]) -> Instance:
    """The instance with another list, and without discounts and panels for what it lists no
    longer.
    """
    table, key = part.split(".")
    question = with_part(instance, table, {key: entries})
    if key == "fabrics" and "direct" not in entries:
        question = with_part(question, "network", {"panels": ()})
    if key not in SOLD_AS or not instance.sharing.discount:
        return question
    names = {entry.name for entry in entries}
    discounts = tuple(
        discount
        for discount in instance.sharing.discount
        if discount.kind != SOLD_AS[key] or discount.item in names
    )
    return with_part(question, "sharing", {"discount": discounts})


def _goes_together(instance: Instance, question: Instance) -> bool:
    """Whether the changed instance is a question, as far as the instance is one."""
    return set(disagreements(question)) <= set(disagreements(instance))


@dataclass(frozen=True, kw_only=True)
class ProductPrice:
    """The price of a product, or its power where that is minimised, and the instance with
    another.
    """

    product: tuple[str, str]
    unit: str
    now: float
    with_price: Callable[[Instance, float], Instance]

    def spending(self, plan: Plan) -> float:
        """What the plan spends on the product (USD or W)."""
        items = [item for item in bought(plan) if item.product == self.product]
        return sum(item.w if self.unit == "W" else item.usd for item in items)

    def slope(self, instance: Instance, plan: Plan, at: float) -> float:
        """How much the objective of a plan of such a price rises with it, with labour and
        support.
        """
        per_price = self.spending(plan) / at
        if instance.objective.minimize != "tco":
            return per_price
        return per_price * bought_share(instance) + sum(self._supported(instance, plan))

    def _supported(self, instance: Instance, plan: Plan) -> Iterator[float]:
        """Support of the units that stand in each phase, for each USD of the price."""
        kinds: dict[tuple[str, str], str] = {
            item.product: paid_as(instance, item) for item in bought(plan)
        }
        kind = kinds.get(self.product, self.product[0])
        worst = instance.worst_prices.get(kind, 1.0)  # what is supported is priced as it is bought
        for t, count in enumerate(plan.couplings.installed_counts(self.product)):
            yield count * worst * factor(instance, t, kind) * support_share(instance, t)


def prices_of(instance: Instance) -> Iterator[ProductPrice]:
    """Every price above 0 of what an instance lists; products with volume prices in USD are left
    out.
    """
    watts = instance.objective.minimize == "power"
    discounted = {
        (discount.kind, discount.item)
        for discount in instance.sharing.discount
        if discount.usd is not None
    }
    unit = "W" if watts else "USD"
    for table, kind in KINDS.items():
        key = (WATTS if watts else USD).get(table, "w" if watts else "usd")
        for place, entry in enumerate(getattr(instance.network, table)):
            if getattr(entry, key) > 0 and (kind, entry.name) not in discounted:
                yield ProductPrice(
                    product=(kind, entry.name),
                    unit=unit,
                    now=getattr(entry, key),
                    with_price=partial(_with_price, table, place, key),
                )
    key = "w" if watts else "usd"
    for gpu in instance.cluster.generations or (instance.cluster.gpu,):
        amount, with_price = getattr(gpu, key), partial(_with_gpu, gpu.name, key)
        if amount > 0 and ("gpu", gpu.name) not in discounted:
            yield ProductPrice(
                product=("gpu", gpu.name), unit=unit, now=amount, with_price=with_price
            )


def price_count(instance: Instance) -> int:
    """How many prices, or powers, above 0 there are, those of products with volume prices in USD as
    well.
    """
    discounts = tuple(discount for discount in instance.sharing.discount if discount.usd is None)
    return sum(1 for _ in prices_of(with_part(instance, "sharing", {"discount": discounts})))


def _with_price(table: str, place: int, key: str, instance: Instance, price: float) -> Instance:
    entries = getattr(instance.network, table)
    return with_part(instance, "network", {table: with_entry(entries, place, {key: price})})


def _with_gpu(name: str, key: str, instance: Instance, price: float) -> Instance:
    def priced(gpu: Gpu) -> Gpu:
        return gpu.model_copy(update={key: price}) if gpu.name == name else gpu

    generations = tuple(map(priced, instance.cluster.generations))
    return with_part(
        instance, "cluster", {"gpu": priced(instance.cluster.gpu), "generations": generations}
    )


def price_range(
    resolver: Resolver, instance: Instance, plan: Plan, value: float, price: ProductPrice
) -> PriceRange:
    """Within which prices a plan that costs `value` stays optimal, as far as they are tried."""
    lowest, highest = price.now / TIMES, min(price.now * TIMES, _affordable(instance, plan, price))
    lower_end, lower_design = _end(resolver, instance, plan, value, price, lowest)
    upper_end, upper_design = _end(resolver, instance, plan, value, price, highest)
    return PriceRange(
        item=price.product[1],
        unit=price.unit,
        now=price.now,
        low=lower_end,
        high=None if upper_end >= price.now * TIMES else upper_end,
        below=lower_design,
        above=upper_design,
        tried=(lowest, price.now * TIMES),
    )


def _affordable(instance: Instance, plan: Plan, price: ProductPrice) -> float:
    """The price at which the plan exhausts the limit on purchase, or on power."""
    assert plan.cost is not None
    spending, cap = (
        price.spending(plan),
        instance.limits.sums.get("capex" if price.unit == "USD" else "power"),
    )
    if cap is None or spending == 0:
        return price.now * TIMES
    use = plan.cost.capex_usd if price.unit == "USD" else plan.cost.power_w
    return price.now * (1 + max(cap - use, 0.0) / spending)


def _end(
    resolver: Resolver,
    instance: Instance,
    plan: Plan,
    value: float,
    price: ProductPrice,
    farthest: float,
) -> tuple[float, Design | None]:
    """The end of the range towards a price, and the design that takes over there; the price itself
    where none does.
    """
    slope, end, taker = price.slope(instance, plan, price.now), farthest, None
    if not slope and farthest >= price.now:
        return farthest, None  # what the plan does not buy may cost more
    for _ in range(MOST_STEPS):
        rival = resolver.plan(price.with_price(instance, end), reasons=False)
        rival_value, ours = value_of(rival), value + slope * (end - price.now)
        if rival_value is None or rival_value >= ours - abs(ours) * SOLVED:
            return end, taker
        steeper = price.slope(instance, rival, end) - slope
        crossing = end + (ours - rival_value) / steeper if steeper else price.now
        taker = rival.design
        # rounding of two lines that are almost parallel must not carry the crossing out of the
        # range
        end = min(max(crossing, min(price.now, end)), max(price.now, end))
    return end, taker
