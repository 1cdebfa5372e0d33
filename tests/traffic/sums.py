"""Plain sums over the flows of a demand."""

from __future__ import annotations

from collections import defaultdict

from coopt.network.family import Family
from coopt.network.wiring import leaf_numbers
from coopt.traffic.flows import TrafficDemand
from coopt.traffic.summary import talking_pairs, tiers_crossed


def bytes_by_kind(demand: TrafficDemand) -> dict[str, float]:
    """Bytes of an iteration by kind, over all ranks."""
    found: dict[str, float] = defaultdict(float)
    for stream in demand.streams:
        found[stream.kind] += float(stream.size_bytes.sum())
    return dict(found)


def bytes_by_tier(family: Family, demand: TrafficDemand) -> dict[int, float]:
    """Bytes of an iteration by the highest tier they cross, 0 for those that stay in a domain."""
    found: dict[int, float] = defaultdict(float)
    for stream in demand.streams:
        tiers = tiers_crossed(family, demand.active, stream, leaf_numbers(family))
        for tier, size_bytes in zip(tiers.tolist(), stream.size_bytes.tolist(), strict=True):
            found[tier] += size_bytes
    return dict(found)


def silent_share(demand: TrafficDemand) -> float:
    """Share of the ordered pairs of GPUs that exchange nothing in an iteration."""
    return 1.0 - talking_pairs(demand) / (demand.ranks * (demand.ranks - 1))
