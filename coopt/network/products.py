"""What networks and islands are made of: products by name, with their prices by quantity."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from coopt.instance.couplings import Discount
from coopt.instance.schema import CostKind, Instance


@dataclass(frozen=True, kw_only=True)
class PricedProduct:
    """A product: USD and W of a unit as far as `include` counts them, and its brackets.

    Bracket b begins at `begins[b]` units, the first at 0, and has the unit price `usd[b]`. With
    `all_units` a price holds for every unit, else for the units of its bracket.
    """

    kind: CostKind
    name: str
    begins: tuple[int, ...]
    usd: tuple[float, ...]
    w: float
    all_units: bool

    @property
    def key(self) -> tuple[CostKind, str]:
        """Kind and name."""
        return self.kind, self.name

    @property
    def slopes(self) -> tuple[float, float]:
        """What a unit adds to the bill at least and at most (USD); nothing where it reaches a price
        for all units.
        """
        return 0.0 if self.all_units and len(self.usd) > 1 else self.usd[-1], self.usd[0]

    def purchases(self, units: int) -> list[tuple[int, float]]:
        """The least bill of that many units or more, as (units, price of each in USD); spare units
        come last.

        More than needed is bought where a price for all units makes the threshold cheaper; of equal
        bills the one with fewer spare units counts.
        """
        if not self.all_units:
            ends = (*self.begins[1:], units)
            steps = zip(self.begins, ends, self.usd, strict=True)
            return [
                (min(end, units) - begin, usd)
                for begin, end, usd in steps
                if begin < min(end, units)
            ]
        brackets = zip(self.begins, self.usd, strict=True)
        # Of equal bills the smaller purchase is taken, which the second entry of the key says.
        units_bought, usd = min(
            ((max(units, begin), usd) for begin, usd in brackets), key=lambda b: (b[0] * b[1], b[0])
        )
        return [(count, usd) for count in (units, units_bought - units) if count]


@dataclass(frozen=True, kw_only=True)
class Cap:
    """A limit on what all units that stand take together: its key, and what goes by that key at
    most.

    A unit of each product takes `each`, in the order of `priced_products`, in a unit of which
    `scale` make one of the limit's. Multipliers of proofs go by `name`.
    """

    key: str
    name: str
    most: float
    scale: float
    each: tuple[float, ...]

    def used(self, units: NDArray[np.float64]) -> NDArray[np.float64]:
        """What units of all products (..., G) take, in the unit of the limit."""
        return np.asarray(units @ np.array(self.each)) / self.scale

    def used_exactly(self, units: NDArray[np.float64]) -> float:
        """What several rows (n, G) take together, summed as a bill is."""
        rows = (zip(row, self.each, strict=True) for row in units.tolist())
        return math.fsum(math.fsum(count * use for count, use in row) for row in rows) / self.scale


def caps_of(instance: Instance) -> tuple[Cap, ...]:
    """The limits that are set on sums over products."""
    products, caps = priced_products(instance), list[Cap]()
    if (power_mw := instance.limits.power_mw) is not None:
        watts = tuple(product.w for product in products)
        caps.append(
            Cap(key="limits.power_mw", name="power_w", most=power_mw, scale=1e6, each=watts)
        )
    return tuple(caps)


def priced_products(instance: Instance) -> tuple[PricedProduct, ...]:
    """Every product that islands of an instance may use, GPUs last."""
    network, gpu = instance.network, instance.cluster.gpu
    listed: list[tuple[CostKind, str, float, float]] = [
        *(("hb", hb.name, hb.usd_per_gpu, hb.w_per_gpu) for hb in network.hb_domains),
        *(("nic", nic.name, nic.usd, nic.w) for nic in network.nics),
        *(("switch", switch.name, switch.usd, switch.w) for switch in network.switches),
        *(("optics", optic.name, optic.usd, optic.w) for optic in network.optics),
    ]
    products = [
        _priced(instance, *entry, is_counted=entry[0] in instance.objective.include)
        for entry in listed
    ]
    idle_or_active = any(kind in instance.objective.include for kind in ("hb", "gpu"))
    return (
        *products,
        _priced(instance, "gpu", gpu.name, gpu.usd, gpu.w, is_counted=idle_or_active),
    )


def _priced(
    instance: Instance, kind: CostKind, name: str, usd: float, w: float, *, is_counted: bool
) -> PricedProduct:
    discount = next(
        (d for d in instance.sharing.discount if (d.kind, d.item) == (kind, name)), None
    )
    list_price = ((0,), (usd if is_counted else 0.0,))
    begins, prices = list_price if discount is None else _brackets(discount, usd)
    return PricedProduct(
        kind=kind,
        name=name,
        begins=begins,
        usd=prices,
        w=w if is_counted else 0.0,
        all_units=discount is not None and discount.applies == "all-units",
    )


def _brackets(discount: Discount, usd: float) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """Thresholds and prices from 0 units on; a price that stays opens no bracket."""
    pairs = [(0, usd), *zip(discount.begins, discount.prices(usd), strict=True)]
    steps = [pairs[0], *(pair for previous, pair in pairwise(pairs) if pair[1] < previous[1])]
    begins, prices = zip(*steps, strict=True)
    return begins, prices
