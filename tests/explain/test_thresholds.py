"""The first number with an answer is found in few tries, wherever a limit stands beside what plans take."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coopt.explain.limits import NumericLimit
from coopt.explain.thresholds import first_number
from coopt.instance.numerics import EQUAL, SEARCHED

MOST_TRIES = 200
USES = st.lists(st.integers(1, 2000), min_size=1, max_size=6, unique=True)


def found(now: float, loosest: float, uses: list[Any], *, whole: bool, is_known: bool) -> float:
    """The first number for plans that take so much, of which any that a number lets in answers."""
    limit = NumericLimit(
        key="x", unit="", now=now, loosest=loosest, used=lambda plan: plan if is_known else None, whole=whole
    )
    tries = 0

    def answer(number: float) -> Any:
        nonlocal tries
        tries += 1
        assert tries <= MOST_TRIES
        fits = [use for use in uses if (use >= number if limit.falling else use <= number)]
        return fits[tries % len(fits)] if fits else None

    farthest = answer(loosest)
    return first_number(limit, answer, farthest).number


@given(st.integers(1, 2000), USES, st.booleans(), st.booleans())
def test_it_is_the_least_that_some_plan_takes(now: int, uses: list[int], whole: bool, is_known: bool) -> None:
    number = found(now, 1e15, uses, whole=whole, is_known=is_known)
    if min(uses) <= now:  # the limit as it is lets a plan in, which only what plans take tells
        assert number == now if is_known else now <= number <= max(now * (1 + SEARCHED), now + whole)
    else:
        rel = 0.0 if whole else EQUAL if is_known else SEARCHED
        assert min(uses) <= number
        assert number == pytest.approx(min(uses), rel=rel, abs=0)


@given(st.integers(1, 2000), USES, st.booleans())
def test_it_is_the_most_where_less_lets_more_in(now: int, uses: list[int], is_known: bool) -> None:
    number = found(now, 1e-6, [*map(float, uses)], whole=False, is_known=is_known)
    if max(uses) >= now:
        assert number == now if is_known else now * (1 - SEARCHED) <= number <= now
    else:
        assert number == pytest.approx(max(uses), rel=EQUAL if is_known else SEARCHED)
        assert number <= max(uses) or math.isclose(number, max(uses), rel_tol=EQUAL)
