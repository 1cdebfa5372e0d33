"""Colouring for groups: where links have to be shared, some groups keep links of their own and the rest share more."""

from __future__ import annotations

import numpy as np

from coopt.network.routing.colouring import coloured_cores, working_cores
from coopt.network.routing.layers import Flows, Ints, TwoLayer, require_paths
from coopt.network.routing.loads import degrees


def sheltered_cores(clos: TwoLayer, flows: Flows) -> Ints:
    """Cores of optimal alpha with as many groups as this finds on bundles that carry one flow each.

    A group waits for its slowest flow, so it is better to have a few groups share all their links than all groups
    share a few. Groups are taken, small ones first, while no leaf has more than `a` of their flows in or out; they are
    coloured with a cores and the rest with the others. a is as large as lets the rest keep to the optimal alpha.

    Returns
    -------
    Core of each flow, -1 inside a leaf; shape (flows,).

    Raises
    ------
    InstanceError
        As `coloured_cores`.
    """
    require_paths(clos, flows)
    working = working_cores(clos, flows)
    degree = degrees(clos.leaves, flows).ravel()
    most = int(degree.max(initial=0))
    if working is None or most <= working.size:
        return coloured_cores(clos, flows)
    level = -(-most // working.size)
    low, high = 0, working.size - 1
    kept = np.zeros(len(flows), dtype=np.bool_)
    ends = _ends_by_group(clos, flows)
    while low < high:
        a = (low + high + 1) // 2
        groups, used = _fitting(ends, 2 * clos.leaves, a)
        if (degree - used).max() <= level * (working.size - a):
            low, kept = a, np.isin(flows.group, groups)
        else:
            high = a - 1
    cores = np.empty(len(flows), dtype=np.int64)
    for share, part in ((working[:low], kept), (working[low:], ~kept)):
        rows = np.flatnonzero(part)
        links = np.zeros_like(clos.links)
        links[:, share] = clos.links[:, share]
        cores[rows] = coloured_cores(TwoLayer(links=links), flows.take(rows))
    return cores


def _ends_by_group(clos: TwoLayer, flows: Flows) -> list[tuple[int, list[int]]]:
    """Each group with the ends of its flows between leaves, leaf for out and leaves + leaf for in; small ones first."""
    moving = flows.take(flows.between)
    names, own = np.unique(moving.group, return_inverse=True)
    order = np.argsort(own, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(own))[:-1])
    ends = [np.concatenate([moving.src[part], clos.leaves + moving.dst[part]]).tolist() for part in parts]
    return sorted(zip(names.tolist(), ends, strict=True), key=lambda pair: len(pair[1]))


def _fitting(ends: list[tuple[int, list[int]]], size: int, most: int) -> tuple[list[int], Ints]:
    """Groups taken in turn while no end has more than `most` flows, and the flows of each end."""
    used = [0] * size
    taken = []
    for name, own in ends:
        for end in own:
            used[end] += 1
        if max(used[end] for end in own) <= most:
            taken.append(name)
        else:
            for end in own:
                used[end] -= 1
    return taken, np.array(used)
