"""Whole numbers."""

from __future__ import annotations

import math
from functools import cache


@cache
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending."""
    small = [k for k in range(1, math.isqrt(number) + 1) if number % k == 0]
    return tuple(sorted({*small, *(number // k for k in small)}))
