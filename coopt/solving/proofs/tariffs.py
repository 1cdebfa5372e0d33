"""What exactly so many units of a product cost, between thresholds of its volume prices.

A bill is linear in prices, so that at a mix of several price lists it is the same mix of their bills: those at the
ends of a range are looked up once, whatever multipliers make of prices.
"""

from __future__ import annotations

import numpy as np

from formulations.partition_data import Floats, PartitionData, Product, given


def corners(product: Product, least: float, most: float) -> Floats:
    """The quantities of a range between which the bill of exactly so many units is straight; the end may be
    infinite."""
    inner = [t - step for t in product.start[1:].tolist() for step in (1, 0)]
    return np.array([least, *(q for q in inner if least < q < most), *([most] if most > least else [])])


class Tariffs:
    """Bills of all products at the prices of a problem, then at those of each of its outlooks (K price lists)."""

    def __init__(self, data: PartitionData) -> None:
        self._products = data.products
        self._usd = [
            np.stack([product.usd, *(one.prices[p] for one in data.outlooks)])
            for p, product in enumerate(data.products)
        ]
        self._given = [
            np.stack([given(product.start, usd, product.discount) for usd in table])
            for product, table in zip(data.products, self._usd, strict=True)
        ]
        self._known: dict[tuple[int, float, float], tuple[Floats, Floats]] = {}

    def last(self, p: int) -> Floats:
        """The last price of a product (K,)."""
        return np.asarray(self._usd[p][:, -1])

    def bills(self, p: int, units: Floats) -> Floats:
        """What exactly so many units cost, by price list (K, N)."""
        bracket = np.searchsorted(self._products[p].start, units, side="right") - 1
        return np.asarray(self._given[p][:, bracket] + self._usd[p][:, bracket] * units)

    def over(self, p: int, least: float, most: float) -> tuple[Floats, Floats]:
        """The corners of a range (N,) with their bills (K, N); at an end that is infinite, what a unit more costs."""
        key = p, least, most
        if key not in self._known:
            ends = corners(self._products[p], least, most)
            endless = bool(np.isinf(ends[-1]))
            finite = self.bills(p, ends[:-1] if endless else ends)
            self._known[key] = ends, np.column_stack([finite, self.last(p)]) if endless else finite
        return self._known[key]
