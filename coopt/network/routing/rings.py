"""Random rings: the traffic on which routings are compared."""

from __future__ import annotations

import numpy as np

from coopt.instance.errors import InstanceError
from coopt.network.routing.layers import Flows


def random_rings(leaves: int, hosts: int, size: int, seed: int) -> Flows:
    """Every host in one ring with hosts from anywhere; each sends one flow to the next of its ring.

    Parameters
    ----------
    hosts
        Hosts of a leaf.
    size
        Hosts of a ring, at least 2; each ring is a group. The last ring holds what remains.
    """
    if size < 2:
        raise InstanceError(f"ring size: {size}, needs at least 2 hosts")
    order = np.random.default_rng(seed).permutation(leaves * hosts)
    place = np.arange(order.size)
    ring = place // size
    following = np.where((place % size == size - 1) | (place == order.size - 1), ring * size, place + 1)
    leaf = order // max(hosts, 1)
    return Flows(src=leaf, dst=leaf[following], group=ring)
