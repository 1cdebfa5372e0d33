"""One plane as arrays: the leaf of every NIC, and the links between its switches (docs/network.md)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coopt.network.family import Family, core_group

Ints = NDArray[np.int64]


def rails_of(family: Family) -> int:
    """NICs of a domain in all planes, those of idle GPUs included."""
    return family.nics_of_domain


def leaf_numbers(family: Family) -> Ints:
    """The leaf of every NIC of one plane; shape (rails of a domain in the plane, HB domains)."""
    rails, domains = rails_of(family) // family.planes, family.domains
    rail, domain = np.indices((rails, domains))
    if family.fabric == "clos":
        return np.asarray((domain * rails + rail) // family.down, dtype=np.int64)
    if domains <= family.down:
        return np.asarray(rail // (family.down // domains), dtype=np.int64)
    return np.asarray(rail * -(-domains // family.down) + domain // family.down, dtype=np.int64)


def nics_by_leaf(family: Family) -> Ints:
    """NICs on each leaf of one plane; shape (leaves,)."""
    if family.planes * family.leaves * family.down == family.nic_count:
        return np.full(family.leaves, family.down, dtype=np.int64)
    return np.bincount(leaf_numbers(family).ravel(), minlength=family.leaves)


@dataclass(frozen=True, kw_only=True)
class Wires:
    """Bundles of parallel links between two levels: `lower[i]` to `upper[i]` by `links[i]`; shape (bundles,)."""

    lower: Ints
    upper: Ints
    links: Ints


def spine_wires(family: Family, uplinks: int) -> Wires:
    """Two tiers: link j of leaf i goes to spine (i·u + j) mod spines."""
    number = np.arange(family.leaves * uplinks, dtype=np.int64)
    return _bundled(number // uplinks, number % family.spines(uplinks))


def pod_wires(family: Family, slices: int) -> Wires:
    """Three tiers: a bundle of a leaf goes to each aggregation switch j of its pod, numbered pod·slices + j."""
    assert family.pods is not None
    leaf, j = (part.ravel() for part in np.indices((family.leaves, slices)))
    return Wires(lower=leaf, upper=leaf // family.pods.leaves * slices + j, links=np.full(len(leaf), family.pods.each))


def core_wires(family: Family, slices: int) -> Wires:
    """Three tiers: up-link i of aggregation switch j of pod P goes to core (P·w + i) mod group of group j."""
    assert family.pods is not None
    group = core_group(family)
    pod, j, i = (part.ravel() for part in np.indices((family.pods.count, slices, family.pods.w)))
    return _bundled(pod * slices + j, j * group + (pod * family.pods.w + i) % group)


def _bundled(lower: Ints, upper: Ints) -> Wires:
    """Links between the same two switches, counted as one bundle."""
    width = int(upper.max()) + 1
    pairs, links = np.unique(lower * width + upper, return_counts=True)
    return Wires(lower=pairs // width, upper=pairs % width, links=links)
