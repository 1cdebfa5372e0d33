"""Which optics a level may take, and prices by quantity: the cheapest way to have enough."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coopt.instance.schema import Instance
from coopt.network.optics import measures_of, optic_choices
from coopt.network.parts import PricedProduct
from coopt.network.space import families
from tests.conftest import ask


@st.composite
def goods(draw: st.DrawFn) -> PricedProduct:
    """Products of up to three brackets with falling whole prices."""
    count = draw(st.integers(1, 3))
    prices = sorted(draw(st.lists(st.integers(1, 50), min_size=count, max_size=count, unique=True)), reverse=True)
    begins = sorted(draw(st.lists(st.integers(1, 30), min_size=count - 1, max_size=count - 1, unique=True)))
    return PricedProduct(
        kind="nic", name="nic", begins=(0, *begins), usd=tuple(map(float, prices)), w=1.0, all_units=draw(st.booleans())
    )


def price_of_exactly(good: PricedProduct, units: int) -> float:
    """Looked up unit by unit."""
    at = [usd for begin, usd in zip(good.begins, good.usd, strict=True) if begin <= units]
    if good.all_units:
        return units * at[-1]
    return sum(
        next(p for b, p in reversed(list(zip(good.begins, good.usd, strict=True))) if n >= b) for n in range(units)
    )


def least_bill(good: PricedProduct, units: int) -> float:
    """Of that many units or more: a price for all units may make the threshold cheaper."""
    return min(price_of_exactly(good, n) for n in range(units, max(units, good.begins[-1]) + 1))


@given(goods())
def test_a_bill_rises_with_a_unit_by_a_slope_between_least_and_most(good: PricedProduct) -> None:
    bills = [least_bill(good, n) for n in range(61)]
    least, most = good.slopes
    assert all(least <= later - earlier <= most for earlier, later in pairwise(bills))


CHEAP = {"name": "cheap", "gbit_s": 400, "reach_m": 60, "usd": 100, "w": 20}
FRUGAL = {"name": "frugal", "gbit_s": 400, "reach_m": 600, "usd": 300, "w": 8}
WORSE = {"name": "worse", "gbit_s": 400, "reach_m": 600, "usd": 310, "w": 8}
OPTICS = [CHEAP, FRUGAL, WORSE]


def asked(**changes: Any) -> Instance:
    """A small instance with three optics."""
    return ask(network__optics=OPTICS, **changes)


def names(instance: Instance) -> list[list[str]]:
    """The choices of each level by name."""
    return [[optic.name for optic in level] for level in optic_choices(instance, instance.network.nics[0])]


@pytest.mark.parametrize(
    ("changes", "first"),
    [
        ({}, ["cheap"]),
        ({"limits": {"capex_usd": 1e6}}, ["cheap"]),
        ({"limits": {"power_mw": 1}}, ["cheap", "frugal"]),
        ({"objective": {"minimize": "power"}}, ["frugal"]),
        ({"objective": {"minimize": "power"}, "limits": {"power_mw": 1}}, ["frugal"]),
        ({"objective": {"minimize": "power"}, "limits": {"capex_usd": 1e6}}, ["frugal", "cheap"]),
        ({"objective": {"minimize": "tco", "usd_per_kwh": 0.0}}, ["cheap"]),
        ({"objective": {"minimize": "tco"}, "limits": {"power_mw": 1}}, ["cheap", "frugal"]),
        ({"limits": {"racks": 8}}, ["cheap"]),
        ({"limits": {"power_mw": 1}, "objective": {"include": ["nic", "switch"]}}, ["cheap"]),
    ],
)
def test_an_optic_that_adds_more_is_a_choice_where_another_measure_counts(changes, first) -> None:
    assert names(asked(**changes))[0] == first


def test_every_level_chooses_for_itself() -> None:
    instance = asked(cluster__gpus=512, limits={"power_mw": 1})
    assert names(instance) == [["cheap", "frugal"], ["frugal"], ["frugal"]]
    two_tiers = [family for family in families(instance) if family.tiers == 2]
    assert {tuple(ends.above.name for ends in family.optics) for family in two_tiers} == {
        ("cheap", "frugal"), ("frugal", "frugal")
    }  # fmt: skip


def test_where_few_products_may_be_in_use_reach_counts_and_a_price_that_falls_with_the_quantity() -> None:
    few, dear = {"mode": "partition", "most_products": {"optics": 1}}, FRUGAL | {"w": 30}
    assert names(ask(network__optics=[CHEAP, dear], sharing=few)) == [["cheap", "frugal"], ["frugal"], ["frugal"]]
    assert names(ask(network__optics=[CHEAP, dear], sharing={"mode": "partition"}))[0] == ["cheap"]
    for terms, first in (({"usd": 90}, ["cheap", "frugal"]), ({"usd": 110, "applies": "incremental"}, ["cheap"])):
        discount = {"kind": "optics", "item": "frugal", "from": 1000, **terms}
        assert names(asked(sharing={"mode": "partition", "discount": discount}))[0] == first


def test_a_watt_costs_differently_in_each_phase_and_at_each_turn_of_prices() -> None:
    tco, phases = {"objective": {"minimize": "tco"}}, [{"year": 1, "gpus": 32}, {"year": 2, "gpus": 64}]
    doubt = {"aim": "regret", "prices": {"optics": [0.5, 2.0]}}
    assert [measures_of(asked(**changes)) for changes in (tco, {"phase": phases})] == [("tco",), ("capex",)]
    for changes in ({"robust": doubt}, {"phase": phases}):
        assert measures_of(asked(**tco, **changes)) == ("tco", "capex", "power")
