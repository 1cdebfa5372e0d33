"""Numbers short enough to type, on the side where they suffice, and counts of GPUs near those asked for."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context

from coopt.instance.schema import Instance

DIGITS = 5


def typed(value: float, *, up: bool = True) -> float:
    """The nearest number of five digits that is not below `value`; not above it where `up` is false."""
    rounding = ROUND_CEILING if up else ROUND_FLOOR
    return float(Context(prec=DIGITS, rounding=rounding).create_decimal_from_float(value))


def nearby_counts(instance: Instance) -> tuple[int, ...]:
    """Counts that fill whole HB domains, nearest first; without 0."""
    counts = instance.cluster.gpus
    near = {
        whole
        for gpus in counts
        for hb in instance.network.hb_domains
        for whole in (gpus // hb.size * hb.size, -(-gpus // hb.size) * hb.size)
    }
    return tuple(sorted(near - {0, *counts}, key=lambda n: min(abs(n - gpus) for gpus in counts)))
