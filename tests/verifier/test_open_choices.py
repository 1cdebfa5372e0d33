"""Choices that the prices of a leaf leave open are those that enumeration finds, with one limit kept exactly."""

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coopt.verifier.couplings.fleet_paths import TooManyError
from coopt.verifier.proofs.choices import ExactLimit, OpenChoices, OpenIsland
from coopt.verifier.proofs.menus import MenuIsland
from coopt.verifier.proofs.rivals import RACKS, Usage

MEASURE = 0, RACKS


def island(racks: int, price: int) -> OpenIsland:
    """An island that takes so many racks, their price included in its own."""
    return OpenIsland(price, 0, MenuIsland((), Usage({MEASURE: racks}, frozenset())))


def racks(one: OpenIsland) -> int:
    """The racks of an island."""
    return one.island.usage.amounts[MEASURE]


def worth_of(chosen: Sequence[OpenIsland], limit: ExactLimit) -> int:
    """The prices of islands, and that of what they leave of the limit."""
    return sum(one.price - limit.price * racks(one) for one in chosen) + limit.worth


@st.composite
def leaves(draw: st.DrawFn) -> tuple[list[list[OpenIsland]], ExactLimit, int]:
    """Menus of islands, a limit on racks, and the ceiling of what is left open."""
    price, cap = draw(st.integers(0, 5)), draw(st.integers(0, 12))
    alone = st.tuples(st.integers(0, 6), st.integers(0, 20))
    menus = draw(st.lists(st.lists(alone, min_size=1, max_size=4), min_size=1, max_size=4))
    islands = [[island(units, usd + price * units) for units, usd in menu] for menu in menus]
    return islands, ExactLimit(MEASURE, price, cap, price * cap), draw(st.integers(0, 120))


@given(leaves())
def test_what_is_left_open_is_what_enumeration_finds(leaf: tuple[list[list[OpenIsland]], ExactLimit, int]) -> None:
    menus, limit, ceiling = leaf
    found = OpenChoices(menus, limit, ceiling)
    within = (chosen for chosen in product(*menus) if sum(map(racks, chosen)) <= limit.cap)
    cheap = sorted(worth for chosen in within if (worth := worth_of(chosen, limit)) < ceiling)
    assert min(cheap, default=ceiling) == found.least
    listed = [worth_of(chosen, limit) for chosen in found.choices_below(10**6)]
    assert sorted(listed) == cheap


def test_a_limit_that_is_kept_exactly_says_more_than_its_price() -> None:
    menus = [[island(4, 40), island(2, 41)] for _ in range(3)]  # 10 USD a rack: all with 4 racks cost least
    assert OpenChoices(menus, ExactLimit(MEASURE, 10, 11, 110), 1_000).least == 40 + 40 + 41 + 10 * (11 - 10)
    assert sum(min(one.price for one in menu) for menu in menus) == 120


def test_too_many_choices_are_not_gone_through() -> None:
    choices = OpenChoices([[island(0, 1)] * 10] * 4, ExactLimit(MEASURE, 0, 0, 0), 100)
    with pytest.raises(TooManyError):
        list(choices.choices_below(1_000))
    assert choices.looked_at > 1_000
