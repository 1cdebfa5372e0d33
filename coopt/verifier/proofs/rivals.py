"""Which islands a proof need not look at, since another of the same workload serves as well.

An island beats another if it joins no further product of a kind of which few may be used, has no
more GPUs, racks, links, labour and watts, and if the common bill is no higher with it, whatever
else is bought. In a choice it may then stand in the other's place: no limit breaks, and the choice
is worth no more. Islands that beat others are kept, so that every choice has one of kept islands
that is worth no more; that one lies in some case of a proof, if in another one.

One more unit of a product adds to the bill no more than its first price, as long as prices do not
rise with quantity. One less saves no less than its last price, or nothing where a price holds for
all units: a threshold may be missed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from coopt.verifier.couplings.fleet import Fleet
from coopt.verifier.couplings.prices import ProductKey
from coopt.verifier.parts.bills import decimal

Measure = tuple[int, str]
"""A phase, and what is measured there: a product by kind and name, GPUs, racks, links, or labour.
"""

GPUS, RACKS, LINKS, LABOUR = "gpus", "racks", "links", "labour"


def product_name(product: ProductKey) -> str:
    """A product as proofs name it."""
    return " ".join(product)


class Usage(NamedTuple):
    """What an island takes over the phases, and the products that it uses, with and without a
    price.
    """

    amounts: dict[Measure, int]
    uses: frozenset[str]


UnitWorth = tuple[int, ...]
"""What a unit of a product adds to the bill at most, saves at least, and draws, as whole numbers of
some unit.
"""


class UnbeatenIslands:
    """Islands that are not beaten, of one workload.

    Parameters
    ----------
    by_bill
        Whether bills are compared by prices; else no product may be taken more of. It takes one
        phase and one price scenario.
    """

    def __init__(self, fleet: Fleet, *, by_bill: bool) -> None:
        self._worths = _worths(fleet) if by_bill and len(fleet.phases) == 1 else {}
        limited_kinds = fleet.question.sharing.most_products.given
        self._few = {
            product_name(product) for product in fleet.prices if product[0] in limited_kinds
        }
        self._unbeaten: dict[frozenset[str], list[dict[Measure, int]]] = {}
        self.count = 0

    def add(self, usage: Usage) -> None:
        """Add an island that is not beaten."""
        self._unbeaten.setdefault(usage.uses & self._few, []).append(usage.amounts)
        self.count += 1

    def beat(self, usage: Usage) -> bool:
        """Whether one beats an island that takes this, or more."""
        limited_uses, amounts = usage.uses & self._few, usage.amounts
        return any(
            self._beats(rival, amounts)
            for uses, rivals in self._unbeaten.items()
            if uses <= limited_uses
            for rival in rivals
        )

    def beats(self, rival: Usage, island: Usage) -> bool:
        """Whether an island that takes this beats another one."""
        return rival.uses & self._few <= island.uses & self._few and self._beats(
            rival.amounts, island.amounts
        )

    def _beats(self, rival: Mapping[Measure, int], island: Mapping[Measure, int]) -> bool:
        usd = watts = 0
        for measure, count in rival.items():
            further_units = count - island.get(measure, 0)
            if further_units > 0:
                if measure not in self._worths:
                    return False
                added, _, w = self._worths[measure]
                usd, watts = usd + further_units * added, watts + further_units * w
        if not usd and not watts:
            return True
        for measure, count in island.items():
            # of what the island has more, only that saves for sure which has a worth
            spared_units = count - rival.get(measure, 0)
            if spared_units > 0 and measure in self._worths:
                _, saved, w = self._worths[measure]
                usd, watts = usd - spared_units * saved, watts - spared_units * w
        return usd <= 0 and watts <= 0


def _worths(fleet: Fleet) -> dict[Measure, UnitWorth]:
    """What units are worth in the only phase; products whose prices rise somewhere are left out."""
    values_of = dict[Measure, tuple[Fraction, Fraction, Fraction]]()
    for product, price in fleet.prices.items():
        tariff = fleet.tariff(0, product)
        usd = [decimal(step_usd) for _, step_usd in tariff.steps]
        if all(a >= b for a, b in pairwise(usd)):
            # one unit less may miss the threshold of a price that holds for all, and then saves
            # nothing
            spare = tariff.all_units and len(usd) > 1
            values_of[0, product_name(product)] = (
                usd[0],
                Fraction(0 if spare else usd[-1]),
                decimal(price.w),
            )
    scale = math.lcm(*(value.denominator for values in values_of.values() for value in values))
    return {
        measure: tuple(int(value * scale) for value in values)
        for measure, values in values_of.items()
    }
