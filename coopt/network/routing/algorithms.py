"""The routing algorithms: random, greedy, sheltered, the best of them, and all by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coopt.instance.errors import InstanceError
from coopt.network.routing.annealing import annealed_cores
from coopt.network.routing.colouring import coloured_cores, working_cores
from coopt.network.routing.layers import Floats, Flows, Ints, TwoLayer, require_paths
from coopt.network.routing.loads import degrees, fairness_key, flow_rates, group_rates, hops, link_loads

NO_LINK = np.iinfo(np.int64).max // 2  # more than any load; half of the largest number, so that a step fits on top
Assign = Callable[[TwoLayer, Flows, int], Ints]


def hashed_cores(clos: TwoLayer, flows: Flows, seed: int = 0) -> Ints:
    """A core for each flow, drawn with the odds of the source leaf's links to cores that reach the destination.

    Returns
    -------
    Core of each flow, -1 inside a leaf; shape (flows,).

    Raises
    ------
    InstanceError
        When two leaves with a flow between them share no core.
    """
    require_paths(clos, flows)
    cores = np.full(len(flows), -1, dtype=np.int64)
    src, dst = flows.src[flows.between], flows.dst[flows.between]
    odds = np.cumsum(np.where(clos.links[dst] > 0, clos.links[src], 0), axis=1)
    if src.size:
        drawn = np.random.default_rng(seed).integers(0, odds[:, -1])
        cores[flows.between] = (odds <= drawn[:, None]).sum(axis=1)
    return cores


def greedy_cores(clos: TwoLayer, flows: Flows) -> Ints:
    """A core for each flow: the first that keeps the busier of the two bundles, up and down, least busy.

    Leaves with most flows go first. At most twice the optimum where all working cores join all leaves by equally many
    links: of D - 1 flows at either end, fewer than `cores` bundles can hold 2 ceil(D / cores) or more
    (Cohen et al., arXiv 2503.05324).

    Returns
    -------
    Core of each flow, -1 inside a leaf; shape (flows,).

    Raises
    ------
    InstanceError
        When two leaves with a flow between them share no core.
    """
    require_paths(clos, flows)
    cores = np.full(len(flows), -1, dtype=np.int64)
    steps = list(clos.steps)
    level = np.where(clos.steps > 0, clos.steps, NO_LINK)
    up, down = list(level.copy()), list(level.copy())
    worse = np.empty(clos.cores, dtype=np.int64)
    order = _order(clos, flows)
    chosen = []
    for s, d in zip(flows.src[order].tolist(), flows.dst[order].tolist(), strict=True):
        above, below = up[s], down[d]
        core = np.maximum(above, below, out=worse).argmin()
        above[core] += steps[s][core]
        below[core] += steps[d][core]
        chosen.append(core)
    cores[order] = chosen
    return cores


def _order(clos: TwoLayer, flows: Flows) -> Ints:
    """Flows by the fullest leaf and direction they belong to; ties: up before down, then leaf, then flow."""
    busiest_first = np.argsort(-degrees(clos.leaves, flows).ravel(), kind="stable")
    rank = np.empty(2 * clos.leaves, dtype=np.int64)
    rank[busiest_first] = np.arange(2 * clos.leaves)
    out = flows.between
    turn = np.minimum(rank[flows.src[out]], rank[clos.leaves + flows.dst[out]])
    return out[np.argsort(turn, kind="stable")]


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
        # the rest of each leaf's flows has to fit on the cores left over, at most `level` of them a bundle
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


def best_cores(clos: TwoLayer, flows: Flows) -> Ints:
    """Cores by colouring where it is optimal, by the greedy algorithm elsewhere.

    Where even the optimum makes flows share links, many routings have its alpha: of a plain colouring and one that
    shelters groups the one is taken that is fairer to groups, the slowest first.
    """
    require_paths(clos, flows)
    if working_cores(clos, flows) is None:
        return greedy_cores(clos, flows)
    coloured = coloured_cores(clos, flows)
    if link_loads(clos, flows, coloured).alpha <= 1:  # no flow shares a link, so no group can do better
        return coloured
    either = coloured, sheltered_cores(clos, flows)
    return max(either, key=lambda cores: fairness_key(group_rates(flows.group, _rates(clos, flows, cores))))


def _rates(clos: TwoLayer, flows: Flows, cores: Ints) -> Floats:
    return flow_rates(hops(clos, flows, cores))


ALGORITHMS: dict[str, Assign] = {
    "ecmp": hashed_cores,
    "greedy": lambda clos, flows, seed: greedy_cores(clos, flows),
    "colouring": lambda clos, flows, seed: coloured_cores(clos, flows),
    "sheltered": lambda clos, flows, seed: sheltered_cores(clos, flows),
    "annealing": annealed_cores,
    "best": lambda clos, flows, seed: best_cores(clos, flows),
}


def algorithm(name: str) -> Assign:
    """The algorithm of a name."""
    if name not in ALGORITHMS:
        raise InstanceError(f"routing algorithm: {name!r}, needs one of {', '.join(ALGORITHMS)}")
    return ALGORITHMS[name]
