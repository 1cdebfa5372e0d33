"""How much of the traffic stays where, and how many pairs of GPUs never talk."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from coopt.network.family import Family
from coopt.network.graphs.numbering import leaf_numbers, rails_of
from coopt.perf.mapping import Floats, Ints
from coopt.traffic.streams import Demand, Stream


def bytes_by_kind(demand: Demand) -> dict[str, float]:
    """Bytes of an iteration by kind, over all ranks."""
    found: dict[str, float] = defaultdict(float)
    for stream in demand.streams:
        found[stream.kind] += float(stream.size_bytes.sum())
    return dict(found)


def silent_share(demand: Demand) -> float:
    """Share of the ordered pairs of GPUs that exchange nothing in an iteration."""
    pairs = demand.ranks * (demand.ranks - 1)
    return 1.0 - talking_pairs(demand) / pairs if pairs else 1.0


def talking_pairs(demand: Demand) -> int:
    """Ordered pairs of GPUs of which one sends to the other."""
    keys = [(s.src * demand.ranks + s.dst)[s.size_bytes > 0] for s in demand.streams]
    return len(np.unique(np.concatenate(keys))) if keys else 0


def matrix(demand: Demand) -> tuple[Ints, Ints, Floats]:
    """The demand as a sparse matrix: source, destination and bytes of every pair that talks, sorted; shape (pairs,)."""
    if not demand.streams:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
    keys = np.concatenate([s.src * demand.ranks + s.dst for s in demand.streams])
    sizes = np.concatenate([s.size_bytes for s in demand.streams])
    pairs, place = np.unique(keys[sizes > 0], return_inverse=True)
    totals = np.bincount(place, weights=sizes[sizes > 0], minlength=len(pairs))
    return pairs // demand.ranks, pairs % demand.ranks, np.asarray(totals, dtype=np.float64)


def tiers_crossed(family: Family, stream: Stream) -> Ints:
    """How far up every flow goes: 0 inside a domain, 1 on its leaf, 2 or 3 above; shape (flows,).

    A flow leaves by the first NIC of its GPU; the other NICs, each on its own rail, do likewise.
    """
    active = family.active
    src_domain, dst_domain = stream.src // active, stream.dst // active
    if family.tiers == 0:
        return np.zeros(len(stream.src), dtype=np.int64)
    leaves = leaf_numbers(family)
    rows = rails_of(family) // family.planes
    src = leaves[stream.src % active * family.nics_per_gpu % rows, src_domain]
    dst = leaves[stream.dst % active * family.nics_per_gpu % rows, dst_domain]
    above = np.full(len(src), family.tiers, dtype=np.int64)
    if family.pods is not None:
        above[src // family.pods.l == dst // family.pods.l] = 2
    return np.where(src_domain == dst_domain, 0, np.where(src == dst, 1, above))


def bytes_by_tier(family: Family, demand: Demand) -> dict[int, float]:
    """Bytes of an iteration by the highest tier they cross, 0 for those that stay in a domain."""
    found: dict[int, float] = defaultdict(float)
    for stream in demand.streams:
        totals = np.bincount(tiers_crossed(family, stream), weights=stream.size_bytes, minlength=family.tiers + 1)
        for tier, size_bytes in enumerate(totals.tolist()):
            found[tier] += size_bytes
    return dict(found)
