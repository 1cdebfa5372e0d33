"""Prices that lie twelve orders of magnitude and more apart, ties, and limits that are just met."""

from __future__ import annotations

from tests.solving.wide_prices import campaign


def test_answers_at_wide_prices_are_what_enumeration_finds() -> None:
    """A few of those that `python -m tests.solving.wide_prices COUNT` goes through."""
    found = campaign(12, 5)
    assert sum(found.values()) >= 12
    assert not [key for key in found if key.endswith("wrong")]
