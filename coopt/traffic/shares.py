"""Who talks to whom, and how far up the network it goes."""

from __future__ import annotations

import numpy as np

from coopt.network.family import Family
from coopt.network.plane_wires import rails_of
from coopt.perf.mapping import Floats, Ints
from coopt.traffic.streams import Demand, Stream


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


def tiers_crossed(family: Family, stream: Stream, leaves: Ints) -> Ints:
    """How far up every flow goes: 0 inside a domain, 1 on its leaf, 2 or 3 above; shape (flows,).

    `leaves` are the `leaf_numbers` of the family, which all streams share. A flow leaves by the first NIC of its GPU;
    the other NICs, each on its own rail, do likewise.
    """
    active = family.active
    src_domain, dst_domain = stream.src // active, stream.dst // active
    if family.tiers == 0:
        return np.zeros(len(stream.src), dtype=np.int64)
    rows = rails_of(family) // family.planes
    src = leaves[stream.src % active * family.nics_per_gpu % rows, src_domain]
    dst = leaves[stream.dst % active * family.nics_per_gpu % rows, dst_domain]
    above = np.full(len(src), family.tiers, dtype=np.int64)
    if family.pods is not None:
        above[src // family.pods.l == dst // family.pods.l] = 2
    return np.where(src_domain == dst_domain, 0, np.where(src == dst, 1, above))
