r"""What the multipliers of a leaf prove, in whole numbers (docs/certificates.md).

Every choice of islands costs at least what is due beside the islands, plus the least price of an
island of each workload: limits are priced at what they leave, units that stand at what they may
save, purchases at their bill less that. All multipliers are 0 or more, so this is weak duality and
needs no trust in how they were found.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from coopt.instance.couplings import Site
from coopt.plan.schema import Leaf
from coopt.verifier.couplings.fleet import Fleet
from coopt.verifier.couplings.prices import ProductKey
from coopt.verifier.couplings.sites import feeds_w, objective_at, power_name
from coopt.verifier.parts.bills import decimal, owned_share
from coopt.verifier.parts.enumeration import SLACK
from coopt.verifier.parts.space import core_switch
from coopt.verifier.proofs.choices import ExactLimit
from coopt.verifier.proofs.rivals import GPUS, LABOUR, LINKS, RACKS, Measure, product_name
from coopt.verifier.training.caching import kept


class UnitRange(NamedTuple):
    """The least and the most units that are bought of a product in a phase; None where there is no
    most.
    """

    fewest: int = 0
    limit: int | None = None


class NothingProvenError(Exception):
    """Multipliers that prove nothing; the text says why."""


class Terms:
    """What a question charges and allows, in fractions, with its price scenarios.

    Parameters
    ----------
    scenarios
        The question in each price scenario, and what the best plan is worth there; none where cost
        is minimised.
    """

    def __init__(self, fleet: Fleet, scenarios: Sequence[tuple[Fleet, float]]) -> None:
        self.fleet, self.scenarios = fleet, scenarios
        self.products = {product_name(product): product for product in fleet.prices}
        self.core = core_switch(fleet.question)

    @cached_property
    def priced_products(self) -> dict[str, ProductKey]:
        """The products that have a price."""
        objective = self.fleet.question.objective
        return {
            name: product
            for name, product in self.products.items()
            for kind in [product[0]]
            if objective.counts(kind) or (kind == "gpu" and objective.counts("hb"))
        }

    @kept()
    def watts(self, product: ProductKey) -> Fraction:
        """What a unit draws."""
        return decimal(self.fleet.prices[product].w)

    @kept()
    def usd_per_w(self, phase: int, site: Site | None) -> Fraction:
        """What a watt in a phase at a site adds to the objective."""
        fleet = self.fleet
        if fleet.kind == "capex":
            return Fraction()
        if fleet.kind == "power":
            # the objective is the power of all that stands in the end
            return Fraction(phase == fleet.phases[-1])
        terms = objective_at(fleet.question, site)
        per_kwh = decimal(terms.usd_per_kwh) * decimal(fleet.price_factor(phase, "energy"))
        return decimal(fleet.years(phase)) * 8760 / 1000 * decimal(terms.pue) * per_kwh

    def support(self, phase: int, product: ProductKey, weights: Sequence[Fraction]) -> Fraction:
        """What support of a unit that stands in a phase adds to the objective, by the weights of
        all scenarios.
        """
        fleet, share = self.fleet, decimal(self.fleet.question.objective.support_share)
        if fleet.kind != "tco" or not fleet.supports_standing or not share:
            return Fraction()
        fleets = [scenario for scenario, _ in self.scenarios] or [fleet]
        usd = (
            weight * decimal(scenario.tariff(phase, product).steps[0][1])
            for weight, scenario in zip(weights, fleets, strict=True)
        )
        return share * decimal(fleet.years(phase)) * sum(usd, Fraction())

    def steps(
        self, phase: int, product: ProductKey, budget: Fraction, weights: Sequence[Fraction]
    ) -> list[Fraction]:
        """The prices of a product by its thresholds: `budget` times those of the bill, and
        `weights` times those of each scenario.
        """
        shares = [budget, *weights] if self.scenarios else [budget + sum(weights, Fraction())]
        return [
            sum((share * usd for share, usd in zip(shares, prices, strict=True)), Fraction())
            for prices in self._listed_steps(phase, product)
        ]

    @kept()
    def _listed_steps(self, phase: int, product: ProductKey) -> list[list[Fraction]]:
        """The price of each threshold, on the bill and in each scenario."""
        fleets = [self.fleet, *(fleet for fleet, _ in self.scenarios)]
        tariffs = [fleet.tariff(phase, product) for fleet in fleets]
        steps = zip(*(tariff.steps for tariff in tariffs), strict=True)
        return [[decimal(usd) for _, usd in of_threshold] for of_threshold in steps]


class LeafPrices:
    """The prices of a leaf, as whole numbers of 1 / `scale` units of the objective.

    Raises
    ------
    NothingProvenError
        Where units or core switches would be worth more than they cost, or something is not of the
        question.
    """

    def __init__(
        self, terms: Terms, leaf: Leaf, ranges: Mapping[tuple[int, str], UnitRange]
    ) -> None:
        self._terms, self._leaf, self._fleet = terms, leaf, terms.fleet
        self._check_names()
        self._weights = [Fraction(weight) for weight in leaf.outlooks]
        # the largest regret is no less than a mean of all of them, and no less than 0: weights may
        # sum to less than 1
        if sum(self._weights) > 1:
            raise NothingProvenError(
                "the weights of price scenarios in the proof add up to more than 1"
            )
        if terms.scenarios and not leaf.costs and any(self._weights):
            raise NothingProvenError("the proof leaves out costs, but weighs price scenarios")
        if not terms.scenarios:
            self._weights = [Fraction(leaf.costs)]
        self._total_weight = sum(self._weights, Fraction())
        prices = [self._prices(site) for site in self._fleet.sites]
        fixed_value = self._purchases(ranges) - self._caps()
        if terms.scenarios:
            for weight, (_, best_value) in zip(self._weights, terms.scenarios, strict=True):
                fixed_value -= weight * decimal(best_value)
        self.scale = math.lcm(
            fixed_value.denominator, *(p.denominator for site in prices for p in site.values())
        )
        self.fixed = int(fixed_value * self.scale)
        self.by_site = [
            {measure: int(price * self.scale) for measure, price in site.items()} for site in prices
        ]

    def _check_names(self) -> None:
        """Refuse what is not of the question."""
        sites = [site for site in self._fleet.sites if site is not None]
        limits = {GPUS, RACKS, *(cap.name for cap, _ in self._fleet.caps), *map(power_name, sites)}
        leaf, phases = self._leaf, len(self._fleet.phases)
        multipliers = {**leaf.units, **leaf.limits, **leaf.links}
        names = set(leaf.units) <= set(self._terms.priced_products) and set(leaf.limits) <= limits
        names = names and set(leaf.links) <= ({site.name for site in sites} or {""})
        names = names and len(leaf.outlooks) == len(self._terms.scenarios)
        if not names or any(len(amounts) != phases for amounts in multipliers.values()):
            raise NothingProvenError(
                "the products, limits, sites, phases or price scenarios of the proof are not the"
                " instance's"
            )

    def _multiplier(
        self, multipliers: Mapping[str, Sequence[str]], name: str, phase: int
    ) -> Fraction:
        return Fraction(multipliers[name][phase]) if name in multipliers else Fraction()

    def _prices(self, site: Site | None) -> dict[Measure, Fraction]:
        """What an island at a site pays for each measure of what it takes."""
        leaf, prices, fleet = self._leaf, dict[Measure, Fraction](), self._fleet
        # what a USD of labour on links is worth is the same in every scenario
        capex = Fraction(leaf.budget) + self._total_weight * (fleet.kind != "power")
        for t in fleet.phases:
            for name, product in self._terms.priced_products.items():
                price = self._multiplier(leaf.units, name, t)
                price += self._terms.watts(product) * self._watt(t, site)
                price += self._terms.support(t, product, self._weights)
                for cap, _ in fleet.caps:
                    unit_share = decimal(cap.of_unit(product, fleet.prices[product]))
                    price += self._multiplier(leaf.limits, cap.name, t) * unit_share
                prices[t, name] = price
            prices |= {
                (t, GPUS): self._multiplier(leaf.limits, GPUS, t),
                (t, RACKS): self._multiplier(leaf.limits, RACKS, t),
                (t, LINKS): self._multiplier(leaf.links, "" if site is None else site.name, t),
                (t, LABOUR): decimal(fleet.labour_usd(t)) * capex,
            }
            self._check_core(prices, t)
        return {measure: price for measure, price in prices.items() if price}

    @cached_property
    def _of_usd(self) -> Fraction:
        """What a USD of purchase adds to the objective; where phases buy, support is paid apart."""
        terms = self._fleet.question.objective
        if self._fleet.supports_standing:
            terms = terms.model_copy(update={"support_share": 0.0})
        return owned_share(terms, self._fleet.kind)

    def _watt(self, phase: int, site: Site | None) -> Fraction:
        """What a watt is worth: in the objective, and by the limit of its site."""
        limits, local = self._leaf.limits, Fraction()
        if site is not None:
            pue = decimal(objective_at(self._fleet.question, site).pue)
            local = self._multiplier(limits, power_name(site), phase) * pue
        return self._total_weight * self._terms.usd_per_w(phase, site) + local

    def _check_core(self, prices: Mapping[Measure, Fraction], phase: int) -> None:
        """Whether a core switch costs no less than its ports are worth, so that none is the
        cheapest number.
        """
        switch = self._terms.core
        if switch is None:
            if prices[phase, LINKS]:
                raise NothingProvenError(
                    "the proof prices links into a core, which the instance does not have"
                )
        elif switch.radix * prices[phase, LINKS] > prices.get((phase, f"switch {switch.name}"), 0):
            raise NothingProvenError(
                "the proof prices the ports of a core switch above the switch itself"
            )

    def _purchases(self, ranges: Mapping[tuple[int, str], UnitRange]) -> Fraction:
        """The least that all purchases cost beyond what their units are worth."""
        total = Fraction()
        capex = [weight * self._of_usd for weight in self._weights]
        for name, product in self._terms.priced_products.items():
            worth = Fraction()
            for t in reversed(
                self._fleet.phases
            ):  # what is bought in a phase stands in all later ones
                worth += self._multiplier(self._leaf.units, name, t)
                usd = self._terms.steps(t, product, Fraction(self._leaf.budget), capex)
                tariff = self._fleet.tariff(t, product)
                begins = [begin for begin, _ in tariff.steps]
                total += least_excess(
                    begins,
                    usd,
                    worth,
                    ranges.get((t, name), UnitRange()),
                    all_units=tariff.all_units,
                )
        return total

    def _caps(self) -> Fraction:
        """What all limits are worth that islands leave free."""
        leaf, limits = self._leaf, self._fleet.question.limits
        racks, budget = (
            None if limit is None else decimal(limit) for limit in (limits.racks, limits.capex_usd)
        )
        caps: dict[str, Fraction | None] = {RACKS: racks}
        caps |= {cap.name: decimal(limit) * cap.scale for cap, limit in self._fleet.caps}
        caps |= {power_name(site): feeds_w(site) for site in filter(None, self._fleet.sites)}
        total = self._cap(Fraction(leaf.budget), budget)
        for t in self._fleet.phases:
            total += self._multiplier(leaf.limits, GPUS, t) * self._fleet.gpus(t)
            for name, cap in caps.items():
                total += self._cap(self._multiplier(leaf.limits, name, t), cap)
        return total

    def _cap(self, price: Fraction, cap: Fraction | None) -> Fraction:
        if price and cap is None:
            raise NothingProvenError("the proof prices a limit that the instance does not set")
        # plans may be over a limit by the rounding of their sums, and a bound is to hold for them
        # as well
        return price * cap * (1 + SLACK) if price and cap is not None else Fraction()

    @cached_property
    def exact(self) -> ExactLimit:
        """The dearest limit of those that are counted in whole units; it has no price where none
        has.
        """
        leaf, racks = self._leaf, self._fleet.question.limits.racks
        limits = []
        for t in self._fleet.phases:
            caps = [(GPUS, Fraction(self._fleet.gpus(t)))]
            caps += [] if racks is None else [(RACKS, decimal(racks) * (1 + SLACK))]
            for name, cap in caps:
                price = int(self._multiplier(leaf.limits, name, t) * self.scale)
                # what the limit is worth is taken off, so that rounding it down keeps the bound
                limits.append(
                    ExactLimit((t, name), price, math.floor(cap), math.floor(price * cap))
                )
        return max(limits, key=lambda limit: limit.worth)

    def price(self, takes: Mapping[Measure, int], site: int) -> int:
        """What an island pays at a site, by its number."""
        prices = self.by_site[site]
        return sum(count * prices.get(measure, 0) for measure, count in takes.items())


def least_excess(
    begins: Sequence[int],
    usd: Sequence[Fraction],
    worth: Fraction,
    purchase: UnitRange,
    *,
    all_units: bool,
) -> Fraction:
    """The least bill of a number of units in a range, less what each unit is worth.

    Between thresholds both are straight, so that the ends of the pieces are all there is to look
    at.
    """
    if purchase.limit is None and usd[-1] < worth:
        raise NothingProvenError(
            "the multipliers of a product add up to more than its lowest price"
        )
    ends = {purchase.fewest, *([] if purchase.limit is None else [purchase.limit])}
    ends |= {
        end
        for begin in begins
        for end in (
            begin - 1,
            begin,
        )  # a bill may fall by one unit more, where a price then holds for all
        if end >= purchase.fewest and (purchase.limit is None or end <= purchase.limit)
    }
    return min(
        exact_bill(begins, usd, units, all_units=all_units) - worth * units for units in ends
    )


def exact_bill(
    begins: Sequence[int], usd: Sequence[Fraction], units: int, *, all_units: bool
) -> Fraction:
    """What exactly so many units cost."""
    if all_units:
        return units * usd[max(b for b, begin in enumerate(begins) if begin <= units)]
    ends: Iterable[int] = [*begins[1:], max(units, begins[-1])]
    pieces = zip(begins, ends, usd, strict=True)
    return sum(
        (max(min(units, end) - begin, 0) * price for begin, end, price in pieces), Fraction()
    )
