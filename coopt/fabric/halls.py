"""Cables of a design by length, where it says how its racks stand (docs/designs.md)."""

from __future__ import annotations

import math
from collections import Counter

from coopt.fabric.chain import TierChain, blocks
from coopt.fabric.designs import chain_of, ends_by_leaf
from coopt.instance.designs import Hall, PublishedDesign
from coopt.instance.errors import InstanceError

LENGTHS_M = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 75, 100, 150, 200, 300, 500, 1000, 2000)
"""Lengths that cables and fibres are sold in; a longer one is cut to whole kilometres."""
MOST_ENDS = 5_000_000

Lengths = Counter[int]


def cable_lengths(design: PublishedDesign, file: str = "design") -> tuple[Lengths, ...]:
    """Cables below each tier over all networks by the length they are bought in (m); none without a hall.

    A switch stands in the middle rack of what hangs below it: a leaf amid its end points, spines amid the leaves of
    their pod, cores amid the pods.

    Raises
    ------
    InstanceError
        Where the design cannot be wired, or has more end points than can be placed.
    """
    chain, uplinks = chain_of(design, file)
    if design.hall is None:
        return ()
    if chain.ends > MOST_ENDS:
        raise InstanceError(
            f"{file}: design {design.id!r}: hall: {chain.ends:,} end points are too many to place one by one, needs at "
            f"most {MOST_ENDS:,} or no hall"
        )
    leaves, first = _leaf_racks(design, design.hall, chain)
    return (first, *_above(design.hall, chain, uplinks, leaves)) if len(chain.tiers) > 1 else (first,)


def sold_m(length_m: float) -> int:
    """The shortest length on sale that is long enough (m)."""
    return next((sold for sold in LENGTHS_M if sold >= length_m), math.ceil(length_m / 1000) * 1000)


def _leaf_racks(design: PublishedDesign, hall: Hall, chain: TierChain) -> tuple[list[int], Lengths]:
    """The rack of each leaf of one network, and the cables below leaves of all networks."""
    hung: dict[int, Counter[int]] = {}
    for (_, domain, _, _), leaf in ends_by_leaf(design, chain, 0):
        hung.setdefault(leaf, Counter())[hall.rack_of(domain)] += 1
    racks = {leaf: middle(below) for leaf, below in hung.items()}
    lengths = Lengths()
    for leaf, below in hung.items():
        for rack, ends in below.items():
            lengths[sold_m(hall.cable_m(rack, racks[leaf]))] += ends * chain.networks
    amid_all = middle(Counter(racks.values()))  # where leaves stand that no end point needs yet
    return [racks.get(leaf, amid_all) for leaf in range(chain.leaves)], lengths


def _above(hall: Hall, chain: TierChain, uplinks: int, leaves: list[int]) -> list[Lengths]:
    """Cables from leaves to spines and from spines to cores, of all networks."""
    low, high, pods = Lengths(), Lengths(), []
    first = 0
    for part in blocks(chain, uplinks):
        for _ in range(part.count):
            racks = leaves[first : first + part.leaves]
            first += part.leaves
            amid = middle(Counter(racks))
            pods.append((amid, part.spines * part.up))
            for rack in racks:
                low[sold_m(hall.cable_m(rack, amid))] += uplinks * chain.networks
    if len(chain.tiers) == 2:
        return [low]
    core = middle(Counter(rack for rack, _ in pods))
    for rack, cables in pods:
        high[sold_m(hall.cable_m(rack, core))] += cables * chain.networks
    return [low, high]


def middle(racks: Counter[int]) -> int:
    """The rack before and after which as many stand."""
    passed, half = 0, sum(racks.values()) / 2
    for rack in sorted(racks):
        passed += racks[rack]
        if passed >= half:
            return rack
    return 0
