"""Campaigns of random questions: their values, and how one runs by hand."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

Value = TypeVar("Value")


def drawn(strategy: st.SearchStrategy[Value], count: int, start: int) -> Iterator[Value]:
    """So many values, each of a seed of its own: in one run of Hypothesis most are earlier ones, changed a little."""
    for number in range(count):
        found: list[Value] = []

        @seed(start * 1_000_003 + number)
        @settings(
            max_examples=2,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def draw(value: Value) -> None:
            found.append(value)  # noqa: B023

        draw()
        yield found[-1]  # the first one is the simplest


def by_hand(campaign: Callable[..., Counter[str]], *wrong: str) -> None:
    """Run a campaign on COUNT and SEED of the command line; code 1 where an outcome is wrong, or has such words."""
    found = campaign(*map(int, sys.argv[1:3]))
    sys.stdout.write("".join(f"{name}: {number}\n" for name, number in sorted(found.items())))
    sys.exit(int(any(number and word in name for name, number in found.items() for word in (wrong or ("wrong",)))))
