"""Which leaf holds which NIC (docs/network.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from coopt.network.family import Family

Ints = NDArray[np.int64]


def rails_of(family: Family) -> int:
    """NICs of a domain in all planes: GPUs of a domain, idle ones included, times NICs of a GPU."""
    return family.hb.size * family.nics_per_gpu


def leaf_numbers(family: Family) -> Ints:
    """The leaf of every NIC of one plane; shape (rails of a domain in the plane, HB domains)."""
    rails, domains = rails_of(family) // family.planes, family.domains
    rail, domain = np.indices((rails, domains))
    if family.fabric == "clos":
        return np.asarray((domain * rails + rail) // family.down, dtype=np.int64)
    if domains <= family.down:
        return np.asarray(rail // (family.down // domains), dtype=np.int64)
    return np.asarray(rail * -(-domains // family.down) + domain // family.down, dtype=np.int64)


def filled(family: Family) -> Ints:
    """NICs on each leaf of one plane; shape (leaves,)."""
    if family.planes * family.leaves * family.down == family.nic_count:
        return np.full(family.leaves, family.down, dtype=np.int64)
    return np.bincount(leaf_numbers(family).ravel(), minlength=family.leaves)
