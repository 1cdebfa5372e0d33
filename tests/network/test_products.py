"""Prices by quantity: what is bought is the cheapest way to have enough."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from coopt.network.products import PricedProduct


@st.composite
def goods(draw: st.DrawFn) -> PricedProduct:
    """Products of up to three brackets with falling whole prices."""
    count = draw(st.integers(1, 3))
    prices = sorted(draw(st.lists(st.integers(1, 50), min_size=count, max_size=count, unique=True)), reverse=True)
    begins = sorted(draw(st.lists(st.integers(1, 30), min_size=count - 1, max_size=count - 1, unique=True)))
    return PricedProduct(
        kind="nic",
        name="nic",
        begins=(0, *begins),
        usd=tuple(map(float, prices)),
        w=1.0,
        all_units=draw(st.booleans()),
    )


def price_of_exactly(good: PricedProduct, units: int) -> float:
    """Looked up unit by unit."""
    at = [usd for begin, usd in zip(good.begins, good.usd, strict=True) if begin <= units]
    if good.all_units:
        return units * at[-1]
    return sum(
        next(p for b, p in reversed(list(zip(good.begins, good.usd, strict=True))) if n >= b) for n in range(units)
    )


@given(goods(), st.integers(0, 60))
def test_a_purchase_is_the_cheapest_of_that_many_or_more(good: PricedProduct, units: int) -> None:
    bought = good.purchases(units)
    assert sum(count for count, _ in bought) >= units
    most = max(units, good.begins[-1])
    least = min(price_of_exactly(good, n) for n in range(units, most + 1))
    assert sum(count * usd for count, usd in bought) == least


@given(goods())
def test_a_bill_rises_with_a_unit_by_a_slope_between_least_and_most(good: PricedProduct) -> None:
    bills = [sum(count * usd for count, usd in good.purchases(n)) for n in range(61)]
    least, most = good.slopes
    assert all(least <= later - earlier <= most for earlier, later in pairwise(bills))
