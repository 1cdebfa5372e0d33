"""Numbers short enough to type, on the side where they suffice."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context

DIGITS = 5


def typed(value: float, *, up: bool = True) -> float:
    """The nearest number of five digits that is not below `value`; not above it where `up` is false."""
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    return float(Context(prec=DIGITS, rounding=rounding).create_decimal_from_float(value))
