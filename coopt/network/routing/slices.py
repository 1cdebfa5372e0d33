"""Slices of flows on three tiers, nearly as even for pods as for leaves, so that links above pods carry little more.

Flows of two slices at a time are dealt anew. At either end they are paired at their leaf, what is left over in their
pod, and what is left over then with any other; pairs chain all flows into rings, along which the two slices alternate.
So no leaf and no pod has two flows more in the one than in the other.
"""

from __future__ import annotations

import numpy as np

from coopt.network.routing.colouring import alternated
from coopt.network.routing.layers import Bools, Flows, Ints

NOBODY = -1
MOST_FAILURES = 200
"""Exchanges that make nothing more even after which the search ends."""


def even_slices(flows: Flows, slices: Ints, *, count: int, pod_leaves: int, most: int, most_of_pod: int) -> Ints:
    """Deal flows anew until no pod sends or receives more than so many by a slice, or exchanges help no more.

    Parameters
    ----------
    slices
        Slice of each flow below `count`, -1 inside a leaf, with no more than `most` flows of a leaf in one; shape
        (flows,).
    pod_leaves
        Leaves of a pod, the last of which may have fewer.
    most, most_of_pod
        Flows in a slice that a leaf may have, and a pod to others, in each direction.

    Returns
    -------
    Slice of each flow, with no more than `most` flows of a leaf in one; shape (flows,).
    """
    found, draw, failures = slices.copy(), np.random.default_rng(0), 0
    pods = flows.src // pod_leaves, flows.dst // pod_leaves
    beyond = pods[0] != pods[1]
    loads = _pod_loads(pods, beyond, found, count)
    while loads.max(initial=0) > most_of_pod and failures < MOST_FAILURES:
        *pod, full = np.unravel_index(int(loads.argmax()), loads.shape)
        other = draw.integers(count) if failures else int(loads[tuple(pod)].argmin())
        pair = draw.permutation(np.flatnonzero((found == full) | (found == other)))
        dealt = found.copy()
        dealt[pair] = np.where(_halves(flows.take(pair), pod_leaves, beyond[pair], 2 * most), full, other)
        changed = _pod_loads(pods, beyond, dealt, count)
        better = int((loads**2).sum() - (changed**2).sum())
        if better >= 0:
            found, loads = dealt, changed
        failures = 0 if better > 0 else failures + 1
    return found


def _pod_loads(pods: tuple[Ints, Ints], beyond: Bools, slices: Ints, count: int) -> Ints:
    """Flows of every pod to others in each slice; shape (2, pods, slices), out and in."""
    size = int(max(ends.max(initial=0) for ends in pods)) + 1
    return np.stack(
        [
            np.bincount(ends[beyond] * count + slices[beyond], minlength=size * count).reshape(size, count)
            for ends in pods
        ]
    )


def _halves(flows: Flows, pod_leaves: int, beyond: Bools, full: int) -> Bools:
    """Which of two halves each flow goes to; a leaf with `full` flows is halved, whoever else has to be uneven."""
    partners = []
    for leaves in (flows.src, flows.dst):
        odd = len(leaves) % 2  # one more flow, which is paired with whatever is left over
        more = np.full(odd, NOBODY)
        leaf, pod, away = (np.append(ends, more) for ends in (leaves, leaves // pod_leaves, beyond.astype(np.int64)))
        partner = np.full(len(leaf), NOBODY, dtype=np.int64)
        tight = np.bincount(leaves)[leaf] == full
        tight[len(leaves) :] = False
        real = leaf >= 0
        for key, there in (
            (2 * leaf + away, real),
            (leaf, real & tight),
            (pod, real & (away == 1)),
            (np.zeros_like(leaf), np.ones_like(real)),
        ):
            _pair(partner, key, there)
        partners.append(partner)
    return alternated(*partners)[: len(flows)]


def _pair(partner: Ints, key: Ints, there: Bools) -> None:
    """Pair those without a partner that have the same key."""
    free = np.flatnonzero(there & (partner == NOBODY))
    order = free[np.argsort(key[free], kind="stable")]
    sorted_keys = key[order]
    rank = np.arange(len(order)) - np.searchsorted(sorted_keys, sorted_keys)
    first = np.flatnonzero((rank[:-1] % 2 == 0) & (sorted_keys[:-1] == sorted_keys[1:]))
    partner[order[first]], partner[order[first + 1]] = order[first + 1], order[first]
