"""Random rings: the traffic on which routings are compared."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from coopt.instance.texts import InstanceError
from coopt.network.routing.layers import Flows, Ints


def random_rings(leaves: int, hosts: int, size: int, seed: int) -> Flows:
    """Every host in one ring with hosts from anywhere; each sends one flow to the next of its ring.

    Parameters
    ----------
    hosts
        Hosts of a leaf.
    size
        Hosts of a ring, at least 2; each ring is a group. The last ring holds what remains.
    """
    return random_jobs(leaves, hosts, size, seed, jobs=1, share=1)[0]


def random_jobs(
    leaves: int, hosts: int, size: int, seed: int, *, jobs: int, share: int
) -> tuple[Flows, ...]:
    """Jobs on one `share`-th of all hosts each, none on another's, every job in random rings."""
    if size < 2:
        raise InstanceError(f"ring size: {size}, needs at least 2 hosts")
    if not 0 <= jobs <= share:
        raise InstanceError(f"jobs: {jobs}, needs 0 to {share}, on 1/{share} of the hosts each")
    order = np.random.default_rng(seed).permutation(leaves * hosts)
    return tuple(
        _rings(part // max(hosts, 1), size) for part in np.array_split(order, share)[:jobs]
    )


def _rings(leaf: Ints, size: int) -> Flows:
    """Hosts in their order, each with its leaf, cut into rings."""
    place = np.arange(leaf.size)
    ring = place // size
    following = np.where(
        (place % size == size - 1) | (place == leaf.size - 1), ring * size, place + 1
    )
    return Flows(src=leaf, dst=leaf[following], group=ring)


def joint(parts: Iterable[Flows]) -> Flows:
    """All flows of several jobs; groups are numbered anew so that no two jobs share one."""
    src, dst, group, start = [], [], [], 0
    for part in parts:
        names, own = np.unique(part.group, return_inverse=True)
        src.append(part.src)
        dst.append(part.dst)
        group.append(own + start)
        start += names.size
    none = np.zeros(0, dtype=np.int64)
    return Flows(
        src=np.concatenate([none, *src]),
        dst=np.concatenate([none, *dst]),
        group=np.concatenate([none, *group]),
    )
