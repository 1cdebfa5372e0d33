"""Values of a strategy for campaigns."""

from __future__ import annotations

from collections.abc import Iterator
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
