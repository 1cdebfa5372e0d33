"""Islands that proofs go without: those that others beat, whatever else is bought, and those too dear for a case."""

import random
from types import SimpleNamespace
from typing import Any

import pytest

from coopt.verifier.couplings.fleet import Fleet
from coopt.verifier.couplings.orders import least_usd
from coopt.verifier.parts.optics import optics_of
from coopt.verifier.proofs.cases import CaseLimits, CheapIslands
from coopt.verifier.proofs.menus import PriceFloors
from coopt.verifier.proofs.rivals import GPUS, LINKS, UnbeatenIslands, Usage, product_name
from tests.verifier.cases import ask
from tests.verifier.fleets import ISLANDS

DISCOUNTS = [
    {"kind": "switch", "item": "64x400g", "from": [5, 9], "off": [0.2, 0.5]},
    {"kind": "optics", "item": "400g-199", "from": [6, 14], "off": [0.1, 0.3], "applies": "incremental"},
]


def fleet(**sharing: object) -> Fleet:
    """Islands whose switches cost less from a threshold on, all of them, and whose optics do beyond one."""
    hardware = {"network__switches": "64x400g", "network__optics": "400g-199"}
    return Fleet(
        ask(**ISLANDS | hardware | {"sharing": {"mode": "partition", "discount": DISCOUNTS, **sharing}}), "capex"
    )


def test_whoever_is_beaten_is_never_cheaper_whatever_else_is_bought() -> None:
    asked, chance = fleet(), random.Random(3)
    names = {product_name(product): product for product in asked.prices if product[0] in ("switch", "optics", "nic")}
    beaten = 0
    for _ in range(400):
        one, other = ({(0, name): chance.randint(0, 12) for name in names} for _ in range(2))
        rivals = UnbeatenIslands(asked, by_bill=True)
        rivals.add(Usage(one, frozenset()))
        if not rivals.beat(Usage(other, frozenset())):
            continue
        beaten += any(one[measure] > other[measure] for measure in one)
        rest = {name: chance.randint(0, 20) for name in names}
        assert _bill(asked, names, one, rest) <= _bill(asked, names, other, rest) + 1e-9
    assert beaten > 20


def _bill(asked: Fleet, names, taken, rest) -> float:
    return sum(
        least_usd((asked.tariff(0, product),), (taken[0, name] + rest[name],)) for name, product in names.items()
    )


def test_fewer_units_at_a_price_for_all_units_save_nothing_for_sure() -> None:
    """Eight switches cost more than nine do."""
    rivals = UnbeatenIslands(fleet(), by_bill=True)
    rivals.add(Usage({(0, "switch 64x400g"): 8, (0, "optics 400g-199"): 1}, frozenset()))
    assert rivals.beat(Usage({(0, "switch 64x400g"): 9, (0, "optics 400g-199"): 1}, frozenset()))
    assert not rivals.beat(Usage({(0, "switch 64x400g"): 9}, frozenset()))


def test_what_is_no_product_must_not_be_more_and_few_products_must_be_shared() -> None:
    cheap = {(0, "optics 400g-199"): 1, (0, GPUS): 8}
    dear = {(0, "optics 400g-199"): 100, (0, GPUS): 8}
    switches = frozenset({"switch 64x400g"})
    rivals = UnbeatenIslands(fleet(most_products={"switch": 1}), by_bill=True)
    rivals.add(Usage(cheap, switches))
    assert rivals.beat(Usage(dear, switches))
    assert not rivals.beat(Usage(dear, frozenset()))
    assert not rivals.beat(Usage(dear | {(0, GPUS): 7}, switches))
    rivals.add(Usage({**cheap, (0, LINKS): 1}, frozenset()))
    assert not rivals.beat(Usage(dear, frozenset()))


def test_with_several_ways_for_prices_to_turn_out_no_product_may_be_taken_more_of() -> None:
    rivals = UnbeatenIslands(fleet(), by_bill=False)
    rivals.add(Usage({(0, "switch 64x400g"): 1, (0, "optics 400g-199"): 1}, frozenset()))
    assert rivals.beat(Usage({(0, "switch 64x400g"): 1, (0, "optics 400g-199"): 100}, frozenset()))
    assert not rivals.beat(Usage({(0, "optics 400g-199"): 10_000}, frozenset()))


def test_neither_dollars_nor_watts_alone_make_up_for_more_of_the_other() -> None:
    optics = [
        {"name": "passive", "gbit_s": 400, "reach_m": 100, "usd": 100, "w": 0},
        {"name": "given", "gbit_s": 400, "reach_m": 100, "usd": 0, "w": 8},
    ]
    asked = Fleet(ask(**ISLANDS | {"network__optics": optics, "sharing": {"mode": "partition"}}), "tco")
    for name in ("optics passive", "optics given"):
        rivals = UnbeatenIslands(asked, by_bill=True)
        rivals.add(Usage({(0, name): 5}, frozenset()))
        assert rivals.beat(Usage({(0, name): 5}, frozenset()))
        assert not rivals.beat(Usage({(0, name): 4}, frozenset()))


def test_more_units_are_bought_where_all_of_them_cost_less() -> None:
    asked, product = fleet(), ("switch", "64x400g")
    usd = asked.prices[product].usd  # type: ignore[index]
    for needed, bought, factor in ((2, 2, 1.0), (4, 9, 0.5), (8, 9, 0.5), (10, 10, 0.5)):
        cheapest_usd = least_usd((asked.tariff(0, product),), (needed,))  # type: ignore[arg-type]
        assert cheapest_usd == pytest.approx(usd * min(needed, bought * factor))


@pytest.mark.parametrize(
    ("applies", "off", "kept"),
    [
        ("incremental", [0.3], ["short"]),
        ("incremental", [0.6], ["short", "long"]),
        ("all-units", [0.3], ["short", "long"]),
    ],
)
def test_optics_are_gone_through_that_a_discount_may_make_the_cheaper_ones(applies, off, kept):
    optics = [
        {"name": name, "gbit_s": 400, "reach_m": reach_m, "usd": usd, "w": w}
        for name, reach_m, usd, w in (("long", 2000, 200, 9), ("short", 600, 100, 8))
    ]
    discount = {"kind": "optics", "item": "long", "from": [10], "off": off, "applies": applies}
    sharing = {"mode": "partition", "discount": [discount]}
    instance = ask(**ISLANDS | {"network__optics": optics, "sharing": sharing})
    nic = instance.network.nics[0]
    assert [optic.name for optic in optics_of(instance, "tco", nic, 1, all_allowed=False)] == kept


def test_networks_count_exactly_beside_prices_that_a_float_rounds() -> None:
    domains: Any = SimpleNamespace(usage=SimpleNamespace(uses=frozenset(), amounts={}), installed=8)
    for price in (2**60 + 200, -(2**60) - 56, 10**30):
        prices: Any = SimpleNamespace(price=lambda amounts, site, price=price: price)
        floors = PriceFloors(0.0, 0.0, [[(1.0, 7), (1.5, 8)]])
        cheap = CheapIslands(prices, CaseLimits(), "w", floors, price + 10)
        assert 7 in cheap.attachments(domains)
        assert 8 not in cheap.attachments(domains)
